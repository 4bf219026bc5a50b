"""What a declaration means by its promises, in words that the book keeps and compares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ..errors import DeclarationChanged, UnknownName
from ..ledger import Budget, Ledger
from ..ledger.budget import NEIGHBOURS
from ..ledger.entry import canonical, sha256
from ..ledger.terms import EACH_ROW, PUBLIC, SOURCE, UNIT, Recorded, Terms, check_apart, differences, refused, untold
from ..tables.declaration import Column, Declaration, KeyPath, Table
from ..tables.files import is_file
from ..tables.origins import named_source
from ..tables.source import Source
from .description import SHOWN, column_words

KINDS = {"number": "a number", "string": "a text", "boolean": "true or false", "date": "a date", "timestamp": "a time"}
UNTOLD = (
    "The book does not say what its promise depends on (whose rows, from where): nobody would notice if that were "
    "changed. Its owner writes it down: sitr budget begin DECLARATION."
)


def declared_terms(declared: Declaration, dataset: str, budget: Budget, found: Mapping[str, str]) -> Terms:
    """Return what a declaration says of a dataset.

    Args:
        declared: The declaration.
        dataset: Whose budget pays; it need not have a table any more.
        budget: Its promise, by the book.
        found: Under which names the rows of tables were found, as far as somebody could look.

    Example:
        >>> visits = {"unit": "patient", "max_rows_per_unit": 5, "columns": {"patient": {"type": "integer"}}}
        >>> declared = Declaration.of({"sitr": 1, "name": "clinic", "tables": {"visits": visits}})
        >>> for place, words in declared_terms(declared, "clinic", Budget(epsilon=1), {}).promise.items():
        ...     print(f"{place}: {words}")
        unit: person
        neighbours: one is added or removed
        tables.visits.unit: named by patient, a number
        tables.visits.source: main.visits
    """
    tables = _tables(declared, dataset)
    promise = {"unit": declared.unit, "neighbours": f"one is {NEIGHBOURS[declared.adjacency]}"}
    promise |= _blocks(budget) | _of_tables(tables, declared)
    settings = {"delta": f"{declared.delta:g}", "time_zone": declared.time_zone}
    for table in tables:
        settings |= {f"tables.{table.name}.{name}": text for name, text in _settings(table).items()}
    named = {table.name: found[table.name] for table in tables if table.name in found}
    return Terms(dataset, declared.name, declared.version, promise, named, settings, _places(tables, declared, found))


def place_of(declared: Declaration, table: Table, found: str | None = None) -> str:
    """Return where the rows of a table are, in words that mean the same from every folder.

    A frame is where the declaration is: nothing else is known of it.

    Args:
        declared: The declaration.
        table: One of its tables.
        found: Under which name its rows were found, if somebody could look.

    Example:
        >>> codes = {"public": True, "source": "a/../codes.csv", "columns": {"code": {"type": "string"}}}
        >>> declared = Declaration.of({"sitr": 1, "name": "clinic", "tables": {"codes": codes}}, "/")
        >>> place_of(declared, declared.tables["codes"])
        '/codes.csv'
    """
    if is_file(table.source):
        return table.source if "://" in table.source else os.path.realpath(declared.folder / table.source)
    named = named_source(declared, table)
    if declared.engine == "duckdb":
        name = found.lower() if found else named.partition(" of ")[0]
        return f"{name} of {os.path.realpath(declared.folder / declared.address)}"
    if declared.engine == "postgresql" and found:
        return f"{found} of {named.rpartition(' of ')[2]}"
    return named


def found_tables(source: Source) -> dict[str, str]:
    """Return under which name the rows of each table were found, by an engine that could open it; frames have none."""
    found = {table.name: source.found(table) for table in source.declared.tables.values()}
    return {name: text for name, text in found.items() if text is not None}


def known_terms(declared: Declaration, ledger: Ledger) -> dict[tuple[str, str], Recorded]:
    """Return what the book knows of a declaration, and of the datasets that it names, by dataset and declaration."""
    return ledger.terms(declared.name, _paying(declared))


def all_terms(declared: Declaration, ledger: Ledger, found: Mapping[str, str]) -> list[Terms]:
    """Return what a declaration says of each dataset that has a budget, and of those that it used to name.

    Raises:
        DeclarationChanged: It speaks of other neighbours than a budget, which keeps its own for ever.
    """
    named = {dataset for dataset, declaration in known_terms(declared, ledger) if declaration == declared.name}
    terms = []
    for dataset in sorted(named | _paying(declared)):
        try:
            budget = ledger.budget(dataset)
        except UnknownName:  # nothing can be charged to it
            continue
        if budget.adjacency != declared.adjacency:
            raise _other_neighbours(dataset, budget, declared)
        terms.append(declared_terms(declared, dataset, budget, found))
    return terms


def hold_to_terms(declared: Declaration, ledger: Ledger, found: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse a declaration under which the book's promises would mean something else; return remarks.

    Raises:
        DeclarationChanged: It is not the one that a budget was promised under; or the book does not say under which one
            that was, and of other budgets does.
        InvalidDeclaration: Another declaration of the book has one of its tables otherwise.

    Privacy: a promise to one patient is no promise once a row passes for a patient, or a table of patients for public.
    """
    if ledger.in_memory or not (unknown := check_terms(declared, ledger, found)):
        return ()
    if ledger.has_terms:
        raise untold(unknown[0])
    return (UNTOLD,)


def check_terms(declared: Declaration, ledger: Ledger, found: Mapping[str, str]) -> list[str]:
    """Refuse a declaration that is not the one of the book, and return the budgets of which the book does not tell.

    Raises:
        DeclarationChanged: It is another one.
        InvalidDeclaration: Another declaration of the book has one of its tables otherwise.
    """
    known, unknown = known_terms(declared, ledger), []
    for terms in all_terms(declared, ledger, found):
        changes = differences(known, terms)
        if changes:
            raise refused(terms.dataset, changes)
        if changes is None:  # also a budget that was made by hand, or left behind by a beginning that was refused
            unknown.append(terms.dataset)
        if changes is None or known[terms.dataset, declared.name].moved(terms):
            check_apart(ledger.terms(None), terms)
    return unknown


def check_sources(declared: Declaration, ledger: Ledger, found: Mapping[str, str], *, but: str | None = None) -> None:
    """Refuse tables that another declaration of the book has otherwise, before anything is promised for them.

    Args:
        declared: The declaration.
        ledger: Its book.
        found: Under which names the rows of tables were found.
        but: The name of a declaration that does not count, since it is about to end.

    Raises:
        InvalidDeclaration: Another declaration has one of the sources with another unit or budget.

    Privacy: a budget that is promised first, and refused its terms after, could be spent on the same people.
    """
    known = {key: recorded for key, recorded in ledger.terms(None).items() if key[1] != but}
    for dataset in sorted(_paying(declared)):
        tables = _tables(declared, dataset)
        promise, places = _of_tables(tables, declared), _places(tables, declared, found)
        check_apart(known, Terms(dataset, declared.name, declared.version, promise, places=places))


def _tables(declared: Declaration, dataset: str) -> list[Table]:
    """The tables of a dataset, and all public ones."""
    return [table for table in declared.tables.values() if table.public or table.dataset == dataset]


def _of_tables(tables: Iterable[Table], declared: Declaration) -> dict[str, str]:
    """What a promise depends on of tables."""
    promise: dict[str, str] = {}
    for table in tables:
        place = f"tables.{table.name}"
        promise |= {f"{place}{UNIT}": _unit(table), f"{place}{SOURCE}": named_source(declared, table)}
        promise |= {f"{place}.key": ", ".join(sorted(table.key))} if table.key else {}
    return promise


def _places(tables: Iterable[Table], declared: Declaration, found: Mapping[str, str]) -> dict[str, str]:
    return {table.name: place_of(declared, table, found.get(table.name)) for table in tables}


def _paying(declared: Declaration) -> set[str]:
    return {table.dataset for table in declared.tables.values() if not table.public}


def _other_neighbours(dataset: str, budget: Budget, declared: Declaration) -> DeclarationChanged:
    """The refusal of a declaration that measures by other neighbours than a budget promises."""
    return DeclarationChanged(
        f"budget {dataset!r} is promised for one {budget.unit} {NEIGHBOURS[budget.adjacency]}, and the declaration "
        f"says {NEIGHBOURS[declared.adjacency]}.",
        why="noise that is enough for the one is not enough for the other.",
        do=f'adjacency = "{budget.adjacency}" in [privacy]; a budget keeps its own for ever.',
    )


def _blocks(budget: Budget) -> dict[str, str]:
    if budget.disjoint_by:
        return {"blocks": f"each {budget.unit} is in one {budget.disjoint_by}"}
    return {"blocks": f"within one {budget.per}"} if budget.per else {}


def _unit(table: Table) -> str:
    if table.public:
        return PUBLIC
    if table.unit is None:
        return EACH_ROW
    if isinstance(table.unit, str):
        return f"named by {table.unit}, {KINDS[table.columns[table.unit].domain.kind]}"
    path: KeyPath = table.unit
    keys = (f"{here} ({KINDS[table.columns[here].domain.kind]}) is {there}" for here, there in path.columns)
    return f"found through {path.table}, where {' and '.join(keys)}"


def _settings(table: Table) -> dict[str, str]:
    names = ("max_rows_per_unit", "row_id", "expected_units", "expected_rows", "max_rows")
    found = {name: str(getattr(table, name)) for name in names if getattr(table, name) is not None}
    return found | {f"columns.{column.name}": _column(column) for column in table.columns.values()}


def _column(column: Column) -> str:
    bounds, categories, missing = column_words(column.domain)
    listed = column.domain.categories or ()
    more = f"sha256 {sha256(canonical([str(one) for one in listed]).encode())[:16]}" if len(listed) > SHOWN else ""
    return "; ".join(filter(None, [column.type, bounds, categories, more, missing]))
