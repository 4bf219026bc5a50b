"""Tables and columns as people read them: all of it is public, as the owner declared it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from .. import markup
from ..display import counted
from ..tables.declaration import KeyPath, Table
from ..tables.domains import OTHERS, Domain

SHOWN = 8  # categories in a line


def about(table: Table) -> str:
    """Say in a line whom a table is about, and who pays."""
    if table.public:
        return "public, it costs nothing to read"
    if isinstance(table.unit, KeyPath):
        whom = f"about units that are found through {table.unit.table}"
    else:
        whom = "each row is a unit of its own" if table.unit is None else f"about units named by {table.unit}"
    rows = "" if table.unit is None else f", {counted(table.max_rows_per_unit, 'row')} of each at most"
    expected = {"unit": table.expected_units, "row": table.expected_rows}
    known = [f"about {counted(count, what)}" for what, count in expected.items() if count is not None]
    return f"{'; '.join([f'{whom}{rows}', *known])}; paid from {table.dataset}"


def column_words(domain: Domain) -> tuple[str, str, str]:
    """Return the bounds of a column, its categories, and what missing values are, each as a text.

    Example:
        >>> column_words(Domain("string", categories=("north", "south"), nulls=True))
        ('', 'north, south', 'missing is a group')
    """
    found = ends(domain)
    bounds = "" if found is None else f"{_value(found[0])} to {_value(found[1])}"
    listed = [_value(one) for one in domain.listed]
    more = f", … {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    more += f"; all others are {OTHERS}" if domain.others else ""
    missing = "missing is a group" if domain.nulls else "missing is dropped" if domain.required else ""
    return bounds, f"{', '.join(listed[:SHOWN])}{more}", missing


def ends(domain: Domain) -> tuple[Any, Any] | None:
    """Return the bounds as they were declared, or as the type sets them; None where there are none."""
    if not domain.bounded:
        return None
    low, high = (_end(domain, end) for end in domain.ends)
    return low, high


def columns_text(schema: Mapping[str, Domain]) -> str:
    """Return a line for each column: its name, kind, bounds and categories.

    Example:
        >>> print(
        ...     columns_text({"region": Domain("string", categories=("north", "south")), "urgent": Domain("boolean")})
        ... )
        region  string   north, south
        urgent  boolean
    """
    rows = _column_rows(schema)
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    return "\n".join(
        f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {'; '.join(filter(None, words))}".rstrip()
        for name, kind, *words in rows
    )


def columns_html(schema: Mapping[str, Domain]) -> str:
    """Return a table with a row for each column: its name, kind, bounds and categories."""
    return markup.table(("column", "type", "bounds", "categories", "missing values"), _column_rows(schema))


def _column_rows(schema: Mapping[str, Domain]) -> list[tuple[str, ...]]:
    return [(name, _kind(domain), *column_words(domain)) for name, domain in schema.items()]


def _kind(domain: Domain) -> str:
    if domain.kind != "number":
        return domain.kind
    return "float" if domain.float else "integer" if domain.step == 1 else "decimal"


def _value(value: Any) -> str:
    return str(value) if not isinstance(value, float) else f"{value:g}"


def _end(domain: Domain, end: Any) -> Any:
    if domain.kind == "date":
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(end))).isoformat()
    if domain.kind == "timestamp":
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(end))).isoformat(sep=" ")
    return int(end) if end.denominator == 1 else float(end)
