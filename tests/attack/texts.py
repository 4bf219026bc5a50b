"""Queries as SQL: the same question a second time, by way of the parser; and a failing one, for people to read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sitr.query.aggregates import Aggregate
from sitr.query.query import Query
from sitr.tables.expressions import (
    Arithmetic,
    Case,
    Coalesce,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Logic,
    Not,
    Part,
    Truncated,
)
from sitr.tables.relations import Derive, Filter, Join, PerUnit, Relation, Scan, Select, UnitAggregate
from tests.attack.worlds import World

OPERATORS = {"==": "=", "!=": "<>"}
OF_ONE = {"sum": "SUM", "mean": "AVG", "variance": "VAR_POP", "stddev": "STDDEV_POP", "min": "MIN", "max": "MAX"}
OF_TWO = {"covariance": "COVAR_POP", "correlation": "CORR"}


class Unwritten(Exception):
    """SQL has no words for it."""


def query_text(query: Query, world: World) -> str:
    """Return a query as SQL.

    Raises:
        Unwritten: It has a histogram, listed keys, or limits that SQL has not.
    """
    writer = _Writer(world)
    relation, where = query.relation, []
    while isinstance(relation, Filter):
        where.append(_text(relation.condition))
        relation = relation.source
    source = writer.source(relation)
    if any(one.values is not None for one in query.groupings) or any(vars(query.limits).values()):
        raise Unwritten
    keys = [_text(one.value) for one in query.groupings]
    named = [f"{key} AS {_name(one.name)}" for key, one in zip(keys, query.groupings, strict=True)]
    units = writer.units(relation)
    asked = [f"{_aggregate(one, units)} AS {_name(name)}" for name, one in query.aggregates.items()]
    text = f"SELECT {', '.join(named + asked)} FROM {source}"
    text += f" WHERE {' AND '.join(f'({one})' for one in reversed(where))}" if where else ""
    return text + (f" GROUP BY {', '.join(keys)}" if keys else "")


class _Writer:
    def __init__(self, world: World) -> None:
        self.world, self.count = world, 0

    def source(self, relation: Relation) -> str:
        """What stands in FROM, under a name of its own."""
        self.count += 1
        alias = f"t{self.count}"
        if isinstance(relation, Scan):
            return f"{_name(relation.table)} AS {alias}"
        if isinstance(relation, Filter):
            return f"(SELECT * FROM {self.source(relation.source)} WHERE {_text(relation.condition)}) AS {alias}"
        if isinstance(relation, Derive):
            made = ", ".join(f"{_text(value)} AS {_name(name)}" for name, value in relation.columns)
            return f"(SELECT *, {made} FROM {self.source(relation.source)}) AS {alias}"
        if isinstance(relation, Select):
            made = ", ".join(f"{_name(old)} AS {_name(new)}" for new, old in relation.columns)
            return f"(SELECT {made} FROM {self.source(relation.source)}) AS {alias}"
        if isinstance(relation, PerUnit):
            return f"({self._per_unit(relation)}) AS {alias}"
        assert isinstance(relation, Join)
        return self._joined(relation)

    def _joined(self, join: Join) -> str:
        """Columns of a world have names of their own, so that only those of units are told apart."""
        left, right = self.source(join.left), self.source(join.right)
        on = [f"{_name(one)} = {_name(other)}" for one, other in join.on]
        if not self._public(join.right):
            if isinstance(join.left, Join):
                raise Unwritten
            first, second = (side.rsplit(" AS ", 1)[1] for side in (left, right))
            on.append(f"{first}.{_name(self._unit(join.left))} = {second}.{_name(self._unit(join.right))}")
        return f"{left} {'LEFT ' if join.keep else ''}JOIN {right} ON {' AND '.join(on)}"

    def _public(self, relation: Relation) -> bool:
        return all(self.world.tables[name].settings.get("public", False) for name in relation.tables())

    def units(self, relation: Relation) -> str | None:
        """The column of the unit, if SQL can name it."""
        try:
            return self._unit(relation)
        except Unwritten:
            return None

    def _unit(self, relation: Relation) -> str:
        if isinstance(relation, Scan):
            unit = self.world.tables[relation.table].unit
            if unit is None:
                raise Unwritten
            return unit
        if isinstance(relation, Select):
            old = self._unit(relation.source)
            found = [new for new, source in relation.columns if source == old]
            if not found:
                raise Unwritten
            return found[0]
        return self._unit(relation.left if isinstance(relation, Join) else relation.source)  # type: ignore[attr-defined]

    def _per_unit(self, relation: PerUnit) -> str:
        unit = _name(self._unit(relation.source))
        keys = [_name(name) for name in relation.keys]
        made = [f"{_over_unit(one)} AS {_name(name)}" for name, one in relation.values]
        by = ", ".join(dict.fromkeys([unit, *keys]))
        return f"SELECT {by}, {', '.join(made)} FROM {self.source(relation.source)} GROUP BY {by}"


def _over_unit(one: UnitAggregate) -> str:
    name = {"count": "COUNT", "sum": "SUM", "min": "MIN", "max": "MAX", "mean": "AVG"}[one.over]
    value = "*" if one.value is None else _text(one.value)
    if one.bounds is None or one.over in ("min", "max"):
        return f"{name}({value})"
    return f"{name}({value}, contribution_bounds_per_group => ({one.bounds[0]}, {one.bounds[1]}))"


def _aggregate(one: Aggregate, unit: str | None) -> str:
    value = None if one.value is None else _text(one.value)
    bounds = f", contribution_bounds_per_row => ({one.bounds[0]}, {one.bounds[1]})" if one.bounds else ""
    if one.kind == "count":
        return f"COUNT({value or '*'})"
    if one.kind == "count_units" and unit is not None:
        return f"COUNT(DISTINCT {_name(unit)})"
    if one.kind == "count_distinct":
        return f"COUNT(DISTINCT {value})"
    if one.kind in OF_ONE:
        return f"{OF_ONE[one.kind]}({value}{bounds})"
    if one.kind in OF_TWO and one.other is not None and one.bounds is None and one.other_bounds is None:
        return f"{OF_TWO[one.kind]}({value}, {_text(one.other)})"
    if one.kind == "quantile":
        return f"PERCENTILE_CONT({value}, {one.q}{bounds})"
    raise Unwritten


def _text(one: Expression) -> str:
    """An expression in SQL, with parentheses around every part."""
    if isinstance(one, Column):
        return _name(one.name)
    if isinstance(one, Constant):
        return _literal(one.value)
    if isinstance(one, (Arithmetic, Comparison)):
        return f"({_text(one.left)} {OPERATORS.get(one.operator, one.operator)} {_text(one.right)})"
    if isinstance(one, Logic):
        return f"({_text(one.left)} {one.operator.upper()} {_text(one.right)})"
    if isinstance(one, Not):
        return f"(NOT {_text(one.value)})"
    if isinstance(one, In):
        return f"({_text(one.value)} IN ({', '.join(map(_literal, one.values))}))"
    if isinstance(one, IsNull):
        return f"({_text(one.value)} IS NULL)"
    if isinstance(one, Coalesce):
        return f"COALESCE({_text(one.value)}, {_text(one.other)})"
    if isinstance(one, Case):
        return f"CASE WHEN {_text(one.condition)} THEN {_text(one.then)} ELSE {_text(one.other)} END"
    if isinstance(one, Part):
        return f"EXTRACT({one.which} FROM {_text(one.value)})"
    if isinstance(one, Truncated):
        return f"DATE_TRUNC('{one.unit}', {_text(one.value)})"
    raise Unwritten


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if hasattr(value, "isoformat"):
        return f"DATE '{value.isoformat()}'"
    return str(value)
