"""Remarks on a query by what is declared: what is asked as it was written, and may not be what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

from .. import _validate
from ..display import counted, scientific
from ..tables.declaration import Declaration
from ..tables.domains import OTHERS, Kind
from ..tables.expressions import Column, Comparison, Constant, Expression, In, constant_kind
from ..tables.relations import Derive, Filter, Join, PerUnit, Relation, Schema, Select
from .measurements import Groups
from .planner import Plan
from .query import Query

WELL_BELOW = 10  # times smaller


def unlisted(query: Query, declared: Declaration) -> tuple[str, ...]:
    """Return a remark for each constant that a column with declared categories is compared with, and that is none."""
    asked = [key.value for key in query.groupings]
    asked += [one.value for one in query.aggregates.values() if one.value is not None]
    remarks = _on(asked, query.relation.schema(declared))
    return tuple(dict.fromkeys([*_remarks(query.relation, declared), *remarks]))


def large_delta(delta: float, units: float | None, unit: str) -> tuple[str, ...]:
    """Return a remark on a δ that is not well below one in the number of units, where that is known.

    Example:
        >>> large_delta(1e-3, 300, "patient")[0][:60]
        'PrivacyWarning: δ = 1e-03 is not well below 1/300: with that'
        >>> large_delta(1e-8, 300, "patient")
        ()
    """
    if units is None or delta * units * WELL_BELOW < 1:
        return ()
    return (
        f"PrivacyWarning: δ = {scientific(delta)} is not well below 1/{units:,.0f}: with that chance a release may "
        f"tell everything about some {unit}. A δ under {scientific(1 / (WELL_BELOW * units), up=False)} would be.",
    )


def least_listed(plan: Plan, unit: str) -> tuple[str, ...]:
    """Return a remark on groups that are found: how small those are that are not listed, and what would list more."""
    several = plan.bound is not None and plan.bound.most_groups > 1
    fewer = f", or fewer groups of each {unit} (max_groups_per_unit)," if several else ""
    return tuple(
        f"Groups of fewer than about {counted(one.selection.threshold, unit)} are not listed. A larger ε{fewer} lists "
        "smaller ones."
        for one in plan.measurements
        if isinstance(one, Groups)
    )


def unshared(query: Query, declared: Declaration, purpose: str | None) -> tuple[str, ...]:
    """Return a remark on a purpose without a budget, where others have one; where none has, any word will do."""
    paying = query.datasets(declared)
    known = {one for dataset in paying for one in declared.budgets.get(dataset, {}).get("purposes", {})}
    if purpose is None or not known or purpose in known:
        return ()
    close = _validate.meant(purpose, sorted(known)) or f"Purposes: {', '.join(sorted(known))}."
    return (f"No budget is declared for the purpose {_validate.shown(purpose)}. {close}".rstrip(),)


def _remarks(relation: Relation, declared: Declaration) -> Iterator[str]:
    if isinstance(relation, Join):
        yield from _remarks(relation.left, declared)
        yield from _remarks(relation.right, declared)
    elif isinstance(relation, (Filter, Derive, Select, PerUnit)):
        yield from _remarks(relation.source, declared)
        yield from _on(_written(relation), relation.source.schema(declared))


def _written(relation: Relation) -> list[Expression]:
    if isinstance(relation, Filter):
        return [relation.condition]
    if isinstance(relation, Derive):
        return [value for _, value in relation.columns]
    if isinstance(relation, PerUnit):
        return [one.value for _, one in relation.values if one.value is not None]
    return []


def _on(values: Iterable[Expression], schema: Schema) -> Iterator[str]:
    for value in values:
        for column, constant in _compared(value):
            yield from remark(column, constant, schema)


def _compared(value: Expression) -> Iterator[tuple[Column, object]]:
    """The columns of an expression that have to equal a constant somewhere in it, or not to."""
    if isinstance(value, In) and isinstance(value.value, Column):
        yield from ((value.value, one) for one in value.values)
    if isinstance(value, Comparison) and value.operator in ("==", "!="):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, Column) and isinstance(other, Constant):
                yield one, other.value
    for part in vars(value).values():
        if isinstance(part, Expression):
            yield from _compared(part)


def remark(column: Column, constant: object, schema: Schema) -> Iterator[str]:
    """Yield a remark, if a column has declared categories, and a constant is none of them."""
    listed = schema[column.name].categories
    if listed is not None and not _is_among(constant, listed, schema[column.name].kind):
        close = _validate.meant(constant, listed) if isinstance(constant, str) else ""
        among = f"All that are none are {OTHERS!r}. " if schema[column.name].others else ""
        yield f"{_validate.shown(constant)} is no declared category of {column.name}. {among}{close}".rstrip()


def _is_among(constant: Any, listed: tuple[Any, ...], kind: Kind) -> bool:
    """Whether a constant is one of some values of a kind; a date beside a time is its midnight, as engines have it."""
    if {constant_kind(constant), kind} == {"date", "timestamp"}:
        return _midnight(constant) in map(_midnight, listed)
    return constant in listed


def _midnight(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
