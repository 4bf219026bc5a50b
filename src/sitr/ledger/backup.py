"""Copies of a book: made by the store itself, checked, and put back where there is no book.

A copy has forgotten what was charged after it was made. Whoever goes on with it would let that be spent again: so a
copy says where it ends, and none is put back that an anchor knows to be older.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidArgument, LedgerDamaged, LedgerUnavailable
from .address import store_at
from .anchor import hold_to
from .disk import owner_only, sync_folder
from .entry import Head
from .ledger import Ledger
from .lookalikes import DUMPED, HEAD
from .sqlite import LOGS
from .store import Store

AFTER = (
    "charges that were made after entry {seq} are not in it: before anyone goes on with a copy, hold it to the "
    "anchor, charge again what it lost, and treat as spent what nobody can find out (docs/ledger.md, Backup)"
)
NEWER = (
    "look for a newer copy. If there is none: restore it by its path, so that no anchor is asked, charge again what "
    "was lost, and begin a new anchor (docs/ledger.md, Backup)."
)
REMOVE = " What was put back is still there: DROP SCHEMA sitr CASCADE removes it."
COMPLETE = b"PostgreSQL database dump complete"
TAIL = 1000  # bytes
WHOLE = re.compile("[0-9a-f]{64}")  # the name of a large answer; one that is being written has another
WAIT = 10.0  # seconds for another process that writes


class Copy(NamedTuple):
    """A copy of a book, or what was put back from one.

    Attributes:
        place: Where it is.
        ledger: The id of the book.
        head: Where it ends.
        answers: How many large answers are beside it.

    Example:
        >>> Copy("copy.db", "b7c1", Head(41, "9f" * 32), 0).warning[:53]
        'charges that were made after entry 41 are not in it: '
    """

    place: str
    ledger: str
    head: Head
    answers: int

    @property
    def warning(self) -> str:
        """What whoever keeps it, or goes on with it, has to know."""
        return AFTER.format(seq=self.head.seq)


def back_up(ledger: Ledger, path: str | Path) -> Copy:
    """Copy a book to a new file, by SQLite's own backup or by `pg_dump`, with its large answers beside it; check it.

    Args:
        ledger: The book; others may go on to use it.
        path: A new file; nothing is overwritten.

    Raises:
        InvalidArgument: There is something already, or the book is in memory.
        LedgerDamaged: The copy is not whole, and was not kept.
        LedgerUnavailable: It cannot be written.

    Privacy: a copy has forgotten what is charged after it is made.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Ledger.open(folder / "book.db") as ledger:
        ...     copy = back_up(ledger, folder / "copy.db")
        >>> copy.head.seq, Ledger.open(copy.place, create=False).verify().valid
        (1, True)
    """
    path = Path(path).absolute()
    if ledger.in_memory:
        raise InvalidArgument("a ledger in memory is gone with its process, and has no copies.", do="use a file.")
    known = ledger.head
    with _new_folder(_answers_of(path)) as folder, _new_file(path) as made:
        ledger.store.copy_to(made)
        answers = _copied(ledger.answers, folder)  # after the book: an answer is written before its entry
        head = _dumped(made, known) if ledger.store.separates else _verified(made, folder, ledger.id, None)[0]
    return Copy(str(path), ledger.id, head, answers)


def restore(
    copy: str | Path,
    url: str | Path,
    *,
    expect: str | None = None,
    anchor: str | Path | None = None,
    answers: str | Path | None = None,
) -> Copy:
    """Put a copy back where there is no book; it is verified before anybody can use it.

    Args:
        copy: What `back_up` made.
        url: Where the book shall be: a new file, or a database of PostgreSQL without one.
        expect: The id that it must have.
        anchor: A copy that is older than this anchor is not put back.
        answers: The folder for large answers; for SQLite it is beside the file by default.

    Raises:
        InvalidArgument: There is a book, or something else, already; or the copy is none for such a place.
        LedgerDamaged: The copy is not whole, or older than the anchor.
        WrongLedger: It is of another book.

    Privacy: without an anchor nothing shows what was charged after the copy was made.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Ledger.open(folder / "book.db") as ledger:
        ...     copy = back_up(ledger, folder / "copy.db")
        >>> restore(copy.place, folder / "again.db").head == copy.head
        True
    """
    copy = Path(copy).absolute()
    store, beside = store_at(url, WAIT)
    folder = Path(answers) if answers else beside
    try:
        _check_none(store)
        if store.separates:
            _check_dump(copy)
            store.restore_from(copy)
            count = _copied(_answers_of(copy), folder)
            head, id = _verified(url, folder, expect, anchor)
            return Copy(store.place, id, head, count)
    finally:
        store.close()
    assert folder is not None
    with _new_folder(folder) as kept, _new_file(Path(store.place)) as made:
        source, _ = store_at(copy, WAIT)
        source.copy_to(made)
        source.close()
        count = _copied(_answers_of(copy), kept)
        head, id = _verified(made, kept, expect, anchor)
    return Copy(store.place, id, head, count)


def _check_none(store: Store) -> None:
    """Refuse to put anything in the place of a book, or of what is left of one."""
    left = [] if store.separates else [end for end in LOGS if Path(f"{store.place}{end}").exists()]
    if left or store.identity() is not None:
        raise InvalidArgument(
            f"there is a book at {store.place} already, or a part of one.",
            why="what was charged in it would be forgotten.",
            do="move it away first, with its logs, while nobody uses it; keep it, and compare it with the copy.",
        )


def _verified(url: str | Path, answers: Path | None, expect: str | None, anchor: str | Path | None) -> tuple[Head, str]:
    with Ledger.open(url, create=False, expect=expect, answers=answers) as ledger:
        found = ledger.verify()
        if not found.valid:
            raise LedgerDamaged(
                f"the copy of ledger {ledger.id} is not whole: {found.problem}.",
                why="a charge may be missing from it.",
                do=f"look for another copy.{REMOVE if ledger.store.separates else ''}",
            )
        if anchor is not None:
            _hold(ledger, found.head, Path(anchor))
        return found.head, ledger.id


def _hold(ledger: Ledger, head: Head, anchor: Path) -> None:
    try:
        hold_to(anchor, ledger.store, ledger.id)
    except LedgerDamaged:
        raise LedgerDamaged(
            f"the copy ends at entry {head.seq}, and the anchor at {anchor} knows what was charged after it.",
            why="it would be forgotten, and could be spent a second time.",
            do=f"{NEWER}{REMOVE if ledger.store.separates else ''}",
        ) from None


def _check_dump(copy: Path) -> None:
    try:
        with copy.open("rb") as file:
            head = file.read(HEAD)
            file.seek(max(copy.stat().st_size - TAIL, 0))
            tail = file.read()
    except OSError as error:
        raise InvalidArgument(f"the copy at {copy} cannot be read: {error.strerror}.") from None
    if DUMPED not in head or COMPLETE not in tail:
        raise InvalidArgument(f"{copy} is no complete dump of PostgreSQL.", do="name one that `back_up` made.")


def _dumped(made: Path, known: Head) -> Head:
    """Whether a dump is complete, and reaches as far as the book did when it was begun: it may reach farther."""
    _check_dump(made)
    with made.open("rb") as file:
        if not any(known.hash.encode() in line for line in file):
            raise LedgerDamaged(f"the copy has no entry {known.seq}, at which the book ended.", do="make another one.")
    return known


def _answers_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.answers")


def _copied(source: Path | None, folder: Path | None) -> int:
    """Copy large answers, and return how many there are; a folder is made only for some.

    A folder of a server's books may be there already, and be used: each file gets its name once it is whole.
    """
    there = sorted(source.iterdir()) if source is not None and source.is_dir() else []
    files = [file for file in there if WHOLE.fullmatch(file.name)]
    if not files or folder is None:
        return 0
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in files:
        made = folder / f".{secrets.token_hex(16)}"
        try:
            with open(file, "rb") as whole, open(made, "xb", opener=owner_only) as copy:
                shutil.copyfileobj(whole, copy)
            with suppress(FileExistsError):  # a file is named by what is in it; whether it still is, `verify` says
                os.link(made, folder / file.name)
        finally:
            made.unlink(missing_ok=True)
    return len(files)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file under another name, that gets its own when all is well; nothing is overwritten."""
    made = path.with_name(f".{path.name}.{secrets.token_hex(16)}")
    try:
        open(made, "xb", opener=owner_only).close()
        yield made
        os.link(made, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise InvalidArgument(f"{path} is there already.", do="name a new file: nothing is overwritten.") from None
    except OSError as error:
        raise LedgerUnavailable(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        for end in ("", *LOGS):
            Path(f"{made}{end}").unlink(missing_ok=True)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder of our own, which is removed again where something fails, or nothing was put into it.

    It is made at once: whoever makes one of that name meanwhile would lose it with ours.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        raise InvalidArgument(f"{path} is there already.", do="move it away: nothing is overwritten.") from None
    except OSError as error:
        raise LedgerUnavailable(f"{path} cannot be written: {error.strerror}.") from None
    try:
        yield path
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    with suppress(OSError):  # it has answers
        path.rmdir()
