"""`sitr tables`: what is declared, and what is left of the budgets; no database is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidDeclaration
from .book import anchor_option
from .declared import declaration_argument
from .output import as_json, print_json, print_rows, print_table

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..tables.declaration import Column, Declaration, Table

NOT_BEGUN = "not begun: sitr budget begin"
UNSEEN = "not in the book, or not yours to see"


@click.command(short_help="List tables and columns, and what is left to spend.")
@declaration_argument
@anchor_option
@as_json
def tables(declaration: Path, anchor: Path | None, as_json: bool) -> None:
    """Say what DECLARATION allows to ask about: tables, columns, whom they are about, and what is left to spend.

    All of it is what the owner wrote: no database is opened, and no value is read.
    """
    from ..session.description import about
    from ..tables.declaration import Declaration

    declared = Declaration.read(declaration)
    budgets, remarks = _budgets(declared, anchor)
    if as_json:
        records = {name: _table_record(table) for name, table in declared.tables.items()}
        print_json(_about(declared) | {"tables": records, "budgets": budgets, "remarks": remarks})
        return
    print_rows([(name, _said(value)) for name, value in _about(declared).items() if value not in (None, [])])
    for table in declared.tables.values():
        click.echo(f"\n{table.name}: {about(table)}")
        rows = [_line(table, column) for column in table.columns.values()]
        print_table(("column", "type", "bounds", "categories", ""), rows)
    begun = declared.ledger_id is not None
    rows = [(one["name"], one["promise"], _left(one, begun)) for one in budgets]
    print_table(("budget", "promise", "left"), rows, whole="budget")
    for remark in remarks:
        click.echo(remark, err=True)


def _about(declared: Declaration) -> dict[str, Any]:
    return {
        "name": declared.name,
        "version": declared.version,
        "engine": declared.engine,
        "unit": declared.unit,
        "adjacency": declared.adjacency,
        "delta": declared.delta or None,
        "analysts": list(declared.analysts),
        "ledger": declared.ledger_id,
    }


def _said(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _line(table: Table, column: Column) -> tuple[str, ...]:
    from ..session.description import column_words

    roles = ["unit"] if table.unit == column.name else []
    roles += ["key"] if column.name in table.key else []
    bounds, categories, missing = column_words(column.domain)
    return column.name, column.type, bounds, categories, ", ".join([*roles, *filter(None, [missing])])


def _table_record(table: Table) -> dict[str, Any]:
    from ..tables.declaration import KeyPath

    unit: Any = table.unit
    if isinstance(table.unit, KeyPath):
        unit = {"through": table.unit.table, "on": dict(table.unit.columns)}
    elif table.unit is None and not table.public:
        unit = "row"
    return {
        "public": table.public,
        "dataset": table.dataset or None,
        "unit": unit,
        "max_rows_per_unit": None if table.public else table.max_rows_per_unit,
        "expected_units": table.expected_units,
        "expected_rows": table.expected_rows,
        "columns": {name: _column_record(column) for name, column in table.columns.items()},
    }


def _column_record(column: Column) -> dict[str, Any]:
    from ..session.description import ends

    domain = column.domain
    found, listed = ends(domain), domain.categories
    return {
        "type": column.type,
        "bounds": None if found is None else list(found),
        "categories": None if listed is None else [one if isinstance(one, (int, str)) else str(one) for one in listed],
        "nulls": "group" if domain.nulls else "drop" if domain.required else "skip",
    }


def _budgets(declared: Declaration, anchor: Path | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Every budget that is declared, and what the book says is left of it, if there is a book; and remarks."""
    from ..session.database import declared_book, declared_budgets

    promised = declared_budgets(declared)
    records: list[dict[str, Any]] = [
        {"name": name, "promise": str(budget), "remaining": None} for name, (_, _, budget) in promised.items()
    ]
    if declared.ledger is None or declared.ledger_id is None:
        return records, []
    with declared_book(declared, anchor) as book:
        remarks = _held(declared, book)
        for name, standing in book.standings(promised).items():
            record = next(record for record in records if record["name"] == name)
            record |= {"promise": str(standing.budget), "remaining": standing.remaining._asdict()}
    return records, remarks


def _held(declared: Declaration, book: Ledger) -> list[str]:
    """Whether the book was promised under this declaration, in words."""
    from ..session.terms import hold_to_terms

    try:
        return list(hold_to_terms(declared, book, {}))
    except InvalidDeclaration as refused:
        return [str(refused)]


def _left(record: dict[str, Any], begun: bool) -> str:
    from ..ledger import Amount
    from ..ledger.left import shares_text

    left = record["remaining"]
    if left is None:
        return UNSEEN if begun else NOT_BEGUN
    return shares_text(Amount(**left), spent=False)
