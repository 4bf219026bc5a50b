"""Dates and times that are written as texts beside a date or a time: `visits["day"] >= "2025-07-01"`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from typing import Any

from .. import _validate
from ..errors import InvalidArgument
from .domains import Domain
from .expressions import Case, Coalesce, Comparison, Constant, Expression, In

Schema = Mapping[str, Domain]
# What has two sides of one kind, and what they are called.
SIDES: dict[type[Expression], tuple[str, str]] = {
    Comparison: ("left", "right"),
    Coalesce: ("value", "other"),
    Case: ("then", "other"),
}


def date_of(text: str) -> date | None:
    """Return the date that a text is, year first; None if it is none.

    Example:
        >>> date_of("2025-07-01"), date_of("1 July"), date_of("2025-07-01 12:00")
        (datetime.date(2025, 7, 1), None, None)
    """
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None


def time_of(text: str) -> datetime | None:
    """Return the time that a text is; None if it is none, or has a time zone.

    Example:
        >>> time_of("2025-07-01 08:30"), time_of("2025-07-01"), time_of("2025-07-01 08:30+03:00")
        (datetime.datetime(2025, 7, 1, 8, 30), datetime.datetime(2025, 7, 1, 0, 0), None)
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is None else None


def dated(value: Expression, schema: Schema) -> Expression:
    """Return an expression in which a text beside a date or a time is the date or the time that it names.

    Args:
        value: The expression.
        schema: What its columns hold.

    Raises:
        InvalidArgument: A text beside a date is none.

    Example:
        >>> from sitr.tables.expressions import Column
        >>> dated(Column("day") >= "2025-07-01", {"day": Domain("date")}).right
        Constant(value=datetime.date(2025, 7, 1))
    """
    made: dict[int, Expression] = {}  # by identity: what is used twice is read once

    def read(one: Expression) -> Expression:
        if id(one) not in made:
            made[id(one)] = _beside_a_date(_with_parts(one, read), schema)
        return made[id(one)]

    return read(value)


def _with_parts(one: Expression, read: Callable[[Expression], Expression]) -> Expression:
    """An expression whose parts were read; the same one, if that changes none of them."""
    changed = {}
    for field in fields(one):  # type: ignore[arg-type]
        part = getattr(one, field.name)
        if isinstance(part, Expression) and (found := read(part)) is not part:
            changed[field.name] = found
    return replace(one, **changed) if changed else one  # type: ignore[type-var]


def _beside_a_date(one: Expression, schema: Schema) -> Expression:
    """An expression with two sides, or a list: a text in it, and no text beside it, may be a date."""
    if isinstance(one, In):
        kind = one.value.domain(schema).kind if any(isinstance(value, str) for value in one.values) else ""
        return replace(one, values=tuple(_read(value, kind) for value in one.values)) if _dates(kind) else one
    if type(one) not in SIDES:
        return one
    sides = {name: getattr(one, name) for name in SIDES[type(one)]}
    texts = [name for name, side in sides.items() if isinstance(side, Constant) and isinstance(side.value, str)]
    if len(texts) != 1:
        return one
    (name,) = texts
    (other,) = (side for place, side in sides.items() if place != name)
    kind = other.domain(schema).kind
    return replace(one, **{name: Constant(_read(sides[name].value, kind))}) if _dates(kind) else one  # type: ignore[type-var]


def _dates(kind: str) -> bool:
    return kind in ("date", "timestamp")


def _read(value: Any, kind: str) -> Any:
    """A text as a date or a time; anything else as it is."""
    if not isinstance(value, str):
        return value
    found = date_of(value) if kind == "date" else time_of(value)
    if found is None:
        such, what = ("2025-06-01", "a date") if kind == "date" else ("2025-06-01 12:00", "a time without a time zone")
        raise InvalidArgument(f"{_validate.shown(value)} is not {what}.", do=f'write "{such}".')
    return found
