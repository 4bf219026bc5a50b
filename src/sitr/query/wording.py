"""A query in words, for those who read the book: what was written in Python, as one would say it."""

from __future__ import annotations

from dataclasses import asdict

from ..tables.relations import Derive, Filter, Join, PerUnit, Relation, Scan, Select
from .query import Query

TOO_DEEP = "a question that is nested too deeply to be written out"


def question_text(query: Query) -> str:
    """Return what a query asks.

    Example:
        >>> from sitr.query.aggregates import count, mean
        >>> from sitr.query.query import Grouping
        >>> from sitr.tables.expressions import Column
        >>> adults = Filter(Scan("visits"), Column("age") >= 18)
        >>> grouped = (Grouping("region", Column("region")),)
        >>> question_text(Query(adults, grouped, {"n": count(), "cost": mean("cost")}))
        'n = count(), cost = mean(cost) of visits where age >= 18, by region'
    """
    try:
        asked = ", ".join(f"{name} = {aggregate}" for name, aggregate in query.aggregates.items())
        keys = [one.name if str(one.value) == one.name else f"{one.name} = {one.value}" for one in query.groupings]
        return f"{asked} of {rows_text(query.relation)}{', by ' if keys else ''}{', '.join(keys)}"
    except RecursionError:
        return TOO_DEEP


def limits_text(query: Query) -> str:
    """Return what the analyst asked to keep of a unit, in parentheses; nothing where nothing was asked.

    Example:
        >>> from sitr.query.query import Limits
        >>> limits_text(Query(Scan("visits"), (), {}, Limits(max_rows_per_unit=2)))
        ' (max_rows_per_unit = 2)'
    """
    asked = [f"{name} = {limit}" for name, limit in asdict(query.limits).items() if limit is not None]
    return f" ({', '.join(asked)})" if asked else ""


def rows_text(relation: Relation) -> str:
    """Return which rows a relation has."""
    if isinstance(relation, Scan):
        return relation.table
    if isinstance(relation, Filter):
        return f"{rows_text(relation.source)} where {relation.condition}"
    if isinstance(relation, Derive):
        made = ", ".join(f"{name} = {value}" for name, value in relation.columns)
        return f"{rows_text(relation.source)} with {made}"
    if isinstance(relation, Select):
        kept = ", ".join(new if new == old else f"{new} = {old}" for new, old in relation.columns)
        return f"({kept} of {rows_text(relation.source)})"
    if isinstance(relation, Join):
        on = " and ".join(f"{here} = {there}" for here, there in relation.on) or "the unit"
        joined = "joined, where it can be, with" if relation.keep else "joined with"
        return f"({rows_text(relation.left)} {joined} {rows_text(relation.right)} on {on})"
    assert isinstance(relation, PerUnit)
    keys = "".join(f", {key}" for key in relation.keys)
    made = ", ".join(f"{name} = {one.over}({'' if one.value is None else one.value})" for name, one in relation.values)
    return f"({made} of {rows_text(relation.source)}, for each unit{keys})"
