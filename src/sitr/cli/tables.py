"""`sitr tables`: what is declared, and what is left of the budgets; no database is opened."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import percent
from .declared import declaration_argument
from .output import as_json, print_json, print_rows, print_table

if TYPE_CHECKING:
    from ..tables.declaration import Column, Declaration, Table
    from ..tables.domains import Domain

SHOWN = 8  # categories in a line
NOT_BEGUN = "not begun: sitr budget begin"


@click.command()
@declaration_argument
@as_json
def tables(declaration: Path, as_json: bool) -> None:
    """Say what DECLARATION allows to ask about: tables, columns, whom they are about, and what is left to spend.

    All of it is what the owner wrote: no database is opened, and no value is read.
    """
    from ..tables.declaration import Declaration

    declared = Declaration.read(declaration)
    budgets = _budgets(declared)
    if as_json:
        records = {name: _table_record(table) for name, table in declared.tables.items()}
        print_json(_about(declared) | {"tables": records, "budgets": budgets})
        return
    print_rows([(name, _said(value)) for name, value in _about(declared).items() if value not in (None, [])])
    for table in declared.tables.values():
        click.echo(f"\n{table.name}: {_words(table)}")
        rows = [_line(table, column) for column in table.columns.values()]
        print_table(("column", "type", "bounds", "categories", ""), rows)
    print_table(("budget", "promise", "left"), [(one["name"], one["promise"], _left(one)) for one in budgets])


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


def _words(table: Table) -> str:
    """What is said of a table in a line."""
    from ..tables.declaration import KeyPath

    if table.public:
        return "public, it costs nothing to read"
    if isinstance(table.unit, KeyPath):
        whom = f"about units that are found through {table.unit.table}"
    else:
        whom = "each row is a unit of its own" if table.unit is None else f"about units named by {table.unit}"
    rows = "" if table.unit is None else f", {table.max_rows_per_unit} rows of each at most"
    expected = {"units": table.expected_units, "rows": table.expected_rows}
    known = [f"about {count:,} {what}" for what, count in expected.items() if count is not None]
    return f"{'; '.join([f'{whom}{rows}', *known])}; paid from {table.dataset}"


def _line(table: Table, column: Column) -> tuple[str, ...]:
    roles = ["unit"] if table.unit == column.name else []
    roles += ["key"] if column.name in table.key else []
    domain = column.domain
    roles += ["missing is a group"] if domain.nulls else ["missing is dropped"] if domain.required else []
    listed = [_value(one) for one in domain.categories or ()]
    more = f", … {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    ends = _ends(domain)
    bounds = "" if ends is None else f"{_value(ends[0])} to {_value(ends[1])}"
    return column.name, column.type, bounds, f"{', '.join(listed[:SHOWN])}{more}", ", ".join(roles)


def _value(value: Any) -> str:
    return str(value) if not isinstance(value, float) else f"{value:g}"


def _ends(domain: Domain) -> tuple[Any, Any] | None:
    """The bounds as they were declared, or as the type sets them."""
    if not domain.bounded:
        return None
    low, high = (_end(domain, end) for end in domain.ends)
    return low, high


def _end(domain: Domain, end: Any) -> Any:
    if domain.kind == "date":
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(end))).isoformat()
    if domain.kind == "timestamp":
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(end))).isoformat(sep=" ")
    return int(end) if end.denominator == 1 else float(end)


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
    domain = column.domain
    ends, listed = _ends(domain), domain.categories
    return {
        "type": column.type,
        "bounds": None if ends is None else list(ends),
        "categories": None if listed is None else [one if isinstance(one, (int, str)) else str(one) for one in listed],
        "nulls": "group" if domain.nulls else "drop" if domain.required else "skip",
    }


def _budgets(declared: Declaration) -> list[dict[str, Any]]:
    """Every budget that is declared, and what the book says is left of it, if there is a book."""
    from ..ledger import Ledger
    from ..session.database import declared_budgets, ledger_url

    promised = declared_budgets(declared)
    records: list[dict[str, Any]] = [
        {"name": name, "promise": str(budget), "remaining": None} for name, (_, _, budget) in promised.items()
    ]
    if declared.ledger is None or declared.ledger_id is None:
        return records
    with Ledger.open(ledger_url(declared), create=False, expect=declared.ledger_id) as book:
        known = book.budgets()
        for record in records:
            dataset, holder, _ = promised[record["name"]]
            if record["name"] in known:
                record["promise"] = str(known[record["name"]])
                record["remaining"] = book.remaining(dataset, **holder)._asdict()
    return records


def _left(record: dict[str, Any]) -> str:
    left = record["remaining"]
    return NOT_BEGUN if left is None else percent(left["share"], spent=False)
