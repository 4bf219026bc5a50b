"""Subqueries with one row for each unit: sums, counts and means over the rows of one person, clipped to bounds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from ... import _validate
from ...errors import InvalidArgument, NotAllowed, SitrError
from ...tables.domains import Domain
from ...tables.expressions import Column, Expression
from ...tables.relations import Derive, Filter, PerUnit, Relation, UnitAggregate, has_unit, rows_per_unit
from .expressions import Values, row_values
from .functions import Asked, has_aggregate, is_aggregate, read_aggregate
from .items import called, key_name, named, required_name, resolved
from .names import Scope, Visible, fresh
from .refusals import only
from .rows import with_columns

OVER_UNIT = ("count", "sum", "min", "max", "mean")


def per_unit(scope: Scope, select: exp.Select, group: exp.Expr, having: exp.Expr | None) -> Scope:
    """One row for each unit, or for each unit and group."""
    only(group, "expressions")
    keys = [resolved(one, select, scope) for one in group.expressions]
    others = [one for one in keys if not scope.is_unit(one)]
    if len(others) == len(keys):
        raise NotAllowed(
            "a subquery that is grouped by something else than the unit.",
            why="it would be a release of its own, with a price of its own.",
            do="GROUP BY the unit's column, and further keys; or ask for it as a query.",
        )
    rows = row_values(scope, "GROUP BY")
    found = [(rows.of(one), key_name(one, select)) for one in others]
    source, columns = keyed(scope, found)
    asked: dict[str, UnitAggregate] = {}
    values = _unit_values(scope, source, dict(zip(columns, (value for value, _ in found), strict=True)), asked)
    visible: list[Visible] = []
    computed: list[tuple[str, Expression]] = []
    aliases: dict[str, Expression] = {}
    for node in select.expressions:
        inner, alias = named(node)
        if scope.is_unit(inner):
            visible.append(Visible(alias or inner.name, None, unit=True))
            continue
        if is_aggregate(inner) and alias is not None:
            values.wanted = fresh(alias, {*columns, *asked})
        made = values.of(inner)
        values.wanted = None
        aliases |= {alias: made} if alias is not None else {}
        if isinstance(made, Column):
            visible.append(Visible(alias or made.name, made.name))
        else:
            computed.append((required_name(alias), made))
            visible.append(Visible(computed[-1][0], None))
    values.aliases = aliases
    condition = values.of(having.this) if having is not None else None
    relation: Relation = PerUnit(source, tuple(columns), tuple(asked.items()))
    if not asked:
        raise NotAllowed(
            "a subquery of units without an aggregate.", do="ask for one: COUNT(*) AS visits, SUM(x) AS total."
        )
    relation.schema(scope.declared)
    if condition is not None:
        relation = Filter(relation, condition)
    return with_columns(Scope(scope.declared, relation, {}), visible, computed)


class _UnitValues(Values):
    """Expressions over one unit: keys and aggregates, which are measured under a name."""

    wanted: str | None = None
    aliases: Mapping[str, Expression] = MappingProxyType({})


def _unit_values(
    scope: Scope, source: Relation, keys: Mapping[str, Expression], asked: dict[str, UnitAggregate]
) -> _UnitValues:
    plain = {name: key.to_dict() for name, key in keys.items()}

    def known(node: exp.Expr) -> Expression | None:
        for name, value in values.aliases.items():
            if called(node, name):
                return value
        if has_aggregate(node):
            return None
        try:
            found = row_values(scope, "SELECT").of(node).to_dict()
        except SitrError:
            return None
        return next((Column(name) for name, key in plain.items() if key == found), None)

    def column(node: exp.Column) -> Expression:
        scope.find(node)
        raise NotAllowed(
            f"{_validate.shown(node.name)} is neither grouped by nor aggregated.",
            why="a unit has several rows, and one row in the result.",
            do=f"SUM({node.name}), or GROUP BY it.",
        )

    def aggregate(node: exp.Expr) -> Expression | None:
        if not is_aggregate(node):
            return None
        one = read_aggregate(node, scope)
        made = over_unit(scope, one)
        for name, known_one in asked.items():
            if known_one.to_dict() == made.to_dict():
                return Column(name)
        name = values.wanted or fresh(one.label, {*keys, *asked})
        asked[name] = made
        return Column(name)

    def kind(one: Expression) -> str:
        return one.domain(PerUnit(source, tuple(keys), tuple(asked.items())).schema(scope.declared)).kind

    values = _UnitValues(column, kind, "a subquery of units", aggregate, known)
    return values


def keyed(scope: Scope, keys: list[tuple[Expression, str]]) -> tuple[Relation, list[str]]:
    """Return rows whose keys are columns, and the names of these."""
    taken, columns, computed = set(scope.schema), [], []
    for value, name in keys:
        if isinstance(value, Column):
            columns.append(value.name)
        else:
            columns.append(fresh(name, taken))
            taken.add(columns[-1])
            computed.append((columns[-1], value))
    return (Derive(scope.relation, tuple(computed)) if computed else scope.relation), columns


def over_unit(scope: Scope, asked: Asked) -> UnitAggregate:
    """Return an aggregate over the rows of one unit, clipped to bounds.

    They are those given, where they are tighter than the owner's; else the owner's: the declared bounds of the value,
    and for a sum or a count times the rows that a unit may have.
    """
    one = asked.aggregate
    if one.kind not in OVER_UNIT or (one.kind == "count" and one.value is not None):
        raise NotAllowed(
            f"{one} over the rows of one unit.",
            do="over one unit there are COUNT(*), SUM, MIN, MAX and AVG; SUM(CASE WHEN x IS NULL THEN 0 ELSE 1 END).",
        )
    given = asked.per_group if asked.per_group is not None else one.bounds
    return UnitAggregate(one.kind, one.value, _bounds(scope, one.kind, one.value, given))


def _bounds(scope: Scope, kind: str, value: Expression | None, given: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
    rows = rows_per_unit(scope.relation, scope.declared) if has_unit(scope.relation, scope.declared) else 1
    domain = value.domain(scope.schema) if value is not None else Domain("number", Fraction(1), 0, 1)
    if not domain.bounded:
        if given is None:
            raise InvalidArgument(
                f"{value} has no declared bounds.",
                why="without public bounds one person could move the answer without limit.",
                do="declare bounds for the column, or write SUM(x, contribution_bounds_per_group => (0, 100)).",
            )
        return given
    low, high = domain.ends
    if kind in ("sum", "count"):
        low, high = min(low, low * rows), max(high, high * rows)
    if given is None:
        return (_plain(low), _plain(high)) if kind in ("sum", "count") else None
    least, most = (domain.measure(end) for end in given)
    if not max(low, least) < min(high, most):
        raise NotAllowed(
            f"bounds ({float(least):g}, {float(most):g}) are not in order, or outside the owner's.",
            why="the owner's bounds may be tightened only.",
            do=f"bounds within ({float(low):g}, {float(high):g}).",
        )
    return tuple(  # type: ignore[return-value]
        end if inside else _plain(own)
        for end, own, inside in ((given[0], low, least >= low), (given[1], high, most <= high))
    )


def _plain(end: Fraction) -> int | Fraction:
    return int(end) if end.denominator == 1 else end
