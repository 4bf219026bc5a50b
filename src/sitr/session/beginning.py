"""How the book of a declaration is begun, and its id written into the declaration."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..display import reckoned, scientific
from ..errors import InvalidDeclaration, SitrError, UnknownName
from ..ledger import Ledger
from ..ledger.keeper import Keeper
from ..ledger.terms import Terms
from ..ledger.terms import differences as changes
from ..query.remarks import large_delta
from ..tables.declaration import Declaration
from .database import connect, create_budgets, declared_anchor, declared_book, declared_budgets, ledger_url
from .terms import all_terms, check_sources, check_terms, found_tables, known_terms

UNSEEN = "The tables cannot be opened from here, so nobody looked whether the declaration fits them; sitr.open will."
BY_HAND = 'write a section [ledger] with a line url = "book.db", and run it again.'


def begin(path: str | Path, *, tell: Callable[[str], None] = lambda remark: None) -> Ledger:
    """Make the book that a declaration names, promise the declared budgets, and write the book's id into the file.

    What is there already stays as it is: a second time nothing is changed, and budgets or shares that were added to
    the declaration since are promised. Before a book is made the declaration is held against its tables, if they can
    be opened from here.

    Args:
        path: The declaration.
        tell: Is told what an owner should know: that the tables were not looked at, or that a δ is too large.

    Raises:
        InvalidDeclaration: It names no ledger, or not all that is needed, or does not fit its tables; or the id cannot
            be written into it.
        EngineFailed: The engine computes otherwise than those that are known to be sound.
        WrongLedger: The book there is not the one whose id the declaration has.
        UnknownName: The declaration has an id, and there is no book: it was lost, or is elsewhere.

    Privacy: a declaration that has an id never gets another book, which would forget what was spent.
    """
    path = Path(path)
    declared = Declaration.read(path)
    if declared.ledger is None:
        raise InvalidDeclaration("the declaration names no ledger.", do=BY_HAND)
    _check_budgets(declared)
    if declared.ledger_id is not None:
        ledger, found = declared_book(declared), _looked_up(declared)
    else:
        with_ledger_id(_read(path), "0" * 32)  # refuses what cannot be written, before a book is begun
        found = _looked_up(declared, check=True)
        if found is None:
            tell(UNSEEN)
        ledger = Ledger.open(ledger_url(declared), create=True, anchor=declared_anchor(declared))
    try:
        check_terms(declared, ledger, found or {})  # before anything is promised
        check_sources(declared, ledger, found or {})
        create_budgets(declared, ledger)
        _declare(declared, ledger, found or {})
        for remark in delta_remarks(declared):
            tell(remark)
        if declared.ledger_id is None:
            _write(path, with_ledger_id(_read(path), ledger.id))
            if Declaration.read(path).ledger_id != ledger.id:
                raise InvalidDeclaration(f"{path} was changed by someone else meanwhile.", do="run it again.")
    except BaseException:
        ledger.close()
        raise
    return ledger


def redeclare(path: str | Path, *, reason: str, instead_of: str | None = None) -> tuple[Ledger, list[str]]:
    """Change the promises of a book to what a declaration says now, with a reason; return the book and what changed.

    It is a dated change of promise, which every statement shows. What was released before it was released under the
    old words.

    Args:
        path: The declaration; its book was begun before.
        reason: Why.
        instead_of: The name of another declaration of the book, which ends: such as the one that this one had before.

    Raises:
        UnknownName: The book knows no other declaration of that name.
        DeclarationChanged: It speaks of other neighbours than the budget, which keeps its own.
        InvalidDeclaration: The book is not begun; or another declaration of the book reads one of the sources, with
            another unit or budget.

    Privacy: whoever was promised something under the old declaration is told by every statement that it changed.
    """
    declared = Declaration.read(path)
    if declared.ledger is None or declared.ledger_id is None:
        raise InvalidDeclaration("the book of the declaration is not begun.", do="sitr budget begin DECLARATION.")
    _check_budgets(declared)
    ledger = declared_book(declared)
    try:
        found = _looked_up(declared) or {}
        ended = [] if instead_of is None else _ended(instead_of, declared, ledger)
        check_sources(declared, ledger, found, but=instead_of)
        for terms in ended:
            ledger.declare(terms, reason=reason)
        said = _declare(declared, ledger, found, reason)
        create_budgets(declared, ledger)
        _declare(declared, ledger, found)  # of datasets that are new
    except BaseException:
        ledger.close()
        raise
    return ledger, said


def _ended(name: str, declared: Declaration, ledger: Ledger) -> list[Terms]:
    """The terms of another declaration once it promises nothing any more: whoever still opens it is refused."""
    known = {} if name == declared.name else ledger.terms(name)
    if not known:
        raise UnknownName(f"the book knows no other declaration {name!r}.", do="sitr budget show lists them.")
    return [Terms(dataset, name, recorded.record["version"], {}) for (dataset, _), recorded in known.items()]


def _declare(declared: Declaration, ledger: Ledger, found: Mapping[str, str], reason: str | None = None) -> list[str]:
    """Write down what the promises depend on, and return in words how that differs from what they did."""
    known, said = known_terms(declared, ledger), []
    for terms in all_terms(declared, ledger, found):
        said += [f"budget {terms.dataset!r}: {change}" for change in changes(known, terms) or []]
        ledger.declare(terms, reason=reason)
    return said


def delta_remarks(declared: Declaration) -> list[str]:
    """Return remarks on declared δs: on those that are large for the number of units, or can be paid only once."""
    remarks: list[str] = []
    for dataset, (_, share, budget) in declared_budgets(declared).items():
        tables = [table for table in declared.tables.values() if table.dataset == dataset]
        units = max((table.expected_units or 0 for table in tables), default=0) or None
        for delta in (budget.delta or 0.0, 0.0 if share else declared.delta):
            remarks += large_delta(delta, units, declared.unit)
        filter = Keeper.of(budget).filter
        kept = reckoned(max(filter.limits[way[1]] for way in filter.ways), spent=False)
        if declared.delta and kept and kept < 2 * declared.delta:
            paid = "no question" if kept < declared.delta else "one question"
            remarks.append(
                f"Of the budget {dataset}, δ = {scientific(kept)} is kept for questions whose groups must be found, "
                f"and the declared δ of a release is {scientific(declared.delta)}: that pays for {paid}. About a "
                f"hundred could be paid with delta = {kept / 100:.1g} in [privacy]."
            )
    return list(dict.fromkeys(remarks))


def differences(declared: Declaration, ledger: Ledger) -> list[str]:
    """Return in which budgets the book and the declaration say different things; the book is what holds."""
    known = ledger.budgets()
    return [
        f"budget {name!r}: the declaration says {budget.promise}, and the book promises {known[name].promise}. The "
        f"book holds: sitr budget {'replace' if share else 'raise'} changes it."
        for name, (_, share, budget) in declared_budgets(declared).items()
        if name in known and known[name] != budget
    ]


def with_ledger_id(text: str, id: str) -> str:
    """Return the text of a declaration with the id of its ledger; nothing else in it changes, comments included.

    Raises:
        InvalidDeclaration: There is no place for it that can be found.

    Example:
        >>> print(with_ledger_id('ledger.url = "book.db"  # beside this file', "7f3a"))
        ledger.url = "book.db"  # beside this file
        ledger.id = "7f3a"
    """
    wanted = tomllib.loads(text)
    wanted["ledger"] = {**wanted.get("ledger", {}), "id": id}
    for changed in _candidates(text, id):
        if _loaded(changed) == wanted:  # each change is a guess about lines, and what it makes of the file is the proof
            return changed
    raise InvalidDeclaration("the place for the id of the ledger was not found in the declaration.", do=BY_HAND)


def _candidates(text: str, id: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"

    def inserted(after: int, line: str) -> str:
        before = lines[: after + 1]
        before[-1] = before[-1] if before[-1].endswith("\n") else before[-1] + end
        last = end if lines[after + 1 :] or lines[after].endswith("\n") else ""
        return "".join([*before, line + last, *lines[after + 1 :]])

    for at, line in enumerate(lines):
        if re.match(r'\s*(ledger\s*\.\s*)?id\s*=\s*""', line):
            yield "".join([*lines[:at], re.sub(r'=\s*""', f'= "{id}"', line, count=1), *lines[at + 1 :]])
    for at, line in enumerate(lines):
        if re.match(r"\s*ledger\s*\.\s*url\s*=", line):
            yield inserted(at, f'ledger.id = "{id}"')
        elif re.match(r"\s*url\s*=", line):
            yield inserted(at, f'id = "{id}"')
    for at, line in enumerate(lines):
        if re.match(r"\s*\[\s*ledger\s*\]", line):
            yield inserted(at, f'id = "{id}"')
        elif re.match(r"\s*ledger\s*=\s*\{", line):
            for brace in re.finditer(r"\s*\}", line):
                changed = f'{line[: brace.start()]}, id = "{id}" }}{line[brace.end() :]}'
                yield "".join([*lines[:at], changed, *lines[at + 1 :]])


def _loaded(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _check_budgets(declared: Declaration) -> None:
    """Refuse budgets that cannot be promised, and private tables without one, before a book is begun."""
    promised = declared_budgets(declared)
    for table in declared.tables.values():
        if not table.public and table.dataset not in promised:
            raise InvalidDeclaration(
                f"tables.{table.name}: no budget is declared for its dataset {table.dataset!r}.",
                why="without one, nothing can be asked of it.",
                do=f"[budgets.{table.dataset}], with epsilon = 1.0 below it.",
            )


def _looked_up(declared: Declaration, *, check: bool = False) -> dict[str, str] | None:
    """Under which names the rows of the tables were found, and None where they cannot be opened from here.

    Whoever promises need not be able to reach the data: the book may be begun on another machine than the one that
    asks, and frames come later. There `sitr.open` looks, before anything is charged.

    Args:
        declared: The declaration.
        check: Whether to hold it against its tables.
    """
    try:
        source = connect(declared)
    except SitrError:
        return None
    try:
        for table in declared.tables.values():
            try:
                source.table(table).schema()
            except InvalidDeclaration:
                if not check:
                    return None
                break  # it is there, and not as declared: the check says where
            except Exception:  # what an engine says may hold values
                return None
        if check:
            source.check()
        return found_tables(source)
    finally:
        source.close()


def _read(path: Path) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def _write(path: Path, text: str) -> None:
    """Put a text in the place of a file, at once."""
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, path.stat().st_mode & 0o7777)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InvalidDeclaration(
            f"the id of the ledger cannot be written into {path}: {error.strerror}.",
            do="make it writable, and run it again.",
        ) from None
