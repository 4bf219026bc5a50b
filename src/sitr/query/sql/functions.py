"""The aggregates of SQL: COUNT(*), AVG(x), PERCENTILE_CONT(x, 0.5) and their like, as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from ...errors import InvalidArgument, NotAllowed
from ...tables.domains import SAID
from ...tables.expressions import Case, Column, Constant, Expression
from .. import aggregates
from ..aggregates import Aggregate
from .expressions import Values, row_values
from .names import Scope
from .refusals import only, refused, shown

PER_GROUP, PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
OF_ONE: dict[str, Callable[[Expression], Aggregate]] = {
    "SUM": aggregates.sum,
    "AVG": aggregates.mean,
    "VARIANCE": aggregates.variance,
    "VAR_POP": aggregates.variance,
    "STDDEV": aggregates.stddev,
    "STDDEV_POP": aggregates.stddev,
    "MIN": aggregates.min,
    "MAX": aggregates.max,
    "MEDIAN": aggregates.median,
}
OF_TWO = {"COVAR_POP": aggregates.covariance, "CORR": aggregates.correlation}
RANKS = ("PERCENTILE_CONT", "QUANTILE", "QUANTILE_CONT")
NAMES = ("COUNT", "COUNTIF", "COUNT_IF", *OF_ONE, *OF_TWO, *RANKS)
SAMPLED = {"VAR_SAMP": "VAR_POP(x)", "STDDEV_SAMP": "STDDEV_POP(x)", "COVAR_SAMP": "COVAR_POP(x, y)"}
OVER_N = {"VARIANCE": "VAR_POP", "STDDEV": "STDDEV_POP"}
WITH_GROUP_BOUNDS = ("COUNT", "SUM", "AVG")


@dataclass(frozen=True)
class Asked:
    """An aggregate as it stands in a query.

    Attributes:
        aggregate: Ours.
        label: What its column is called where it has no alias.
        per_group: The bounds on what one unit adds in one group.
        note: What to tell about it.
    """

    aggregate: Aggregate
    label: str
    per_group: tuple[Any, Any] | None = None
    note: str = ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is the call of an aggregate."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in NAMES


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate is called anywhere in a node, outside of subqueries."""
    if isinstance(node, (exp.Select, exp.Subquery)):
        return False
    return is_aggregate(node) or any(has_aggregate(one) for one in node.iter_expressions())


def read_aggregate(node: exp.Expr, scope: Scope) -> Asked:
    """Return an aggregate over the rows of a scope.

    Raises:
        NotAllowed: It is not on the list, or its arguments are not.
    """
    values = row_values(scope, "an aggregate")
    if isinstance(node, exp.Filter):
        return _filtered(node, values)
    if isinstance(node, exp.WithinGroup):
        return _within(node, values)
    assert isinstance(node, exp.Anonymous)
    only(node, "this", "expressions")
    name, arguments, bounds = _split(node, values)
    if name == "COUNT":
        made = _count(arguments, values, scope)
    elif name in ("COUNTIF", "COUNT_IF"):
        made = Asked(aggregates.sum(_where(_value(name, _one(name, arguments), values))), "count")
    elif name in RANKS:
        if len(arguments) != 2:
            raise NotAllowed(f"{name} takes a value and a number.", do=f"{name}(x, 0.9).")
        made = _rank(name, arguments[0], arguments[1], values)
    elif name in OF_TWO:
        if len(arguments) != 2:
            raise NotAllowed(f"{name} takes two values.", do=f"{name}(x, y).")
        first, second = (_number(name, one, values, ", ...") for one in arguments)
        made = Asked(OF_TWO[name](first, second), _label(name, first, second))
    else:
        value = _number(name, _one(name, arguments), values)
        made = Asked(OF_ONE[name](value), _label(name, value), note=_over_n(name))
    return _with_bounds(made, name, bounds)


def _split(node: exp.Anonymous, values: Values) -> tuple[str, list[exp.Expr], dict[str, tuple[Any, Any]]]:
    """The name, the arguments by place, and the bounds."""
    name, arguments = str(node.this).upper(), []
    bounds: dict[str, tuple[Any, Any]] = {}
    for one in node.expressions:
        if not isinstance(one, exp.Kwarg):
            arguments.append(one)
            continue
        called = one.this.name.lower()
        if called not in (PER_GROUP, PER_ROW) or called in bounds:
            raise NotAllowed(f"{name}: {one.this.name} is not known, or is there twice.", do=f"{PER_ROW} => (0, 100).")
        bounds[called] = _ends(one, values)
    return name, arguments, bounds


def _ends(node: exp.Kwarg, values: Values) -> tuple[Any, Any]:
    pair = node.expression
    ends = [values.of(end) for end in pair.expressions] if isinstance(pair, exp.Tuple) else []
    if len(ends) != 2 or not all(isinstance(end, Constant) and not isinstance(end.value, (str, bool)) for end in ends):
        raise NotAllowed(f"{node.this.name} is no pair of numbers.", do=f"{node.this.name.lower()} => (0, 100).")
    low, high = (end.value for end in ends if isinstance(end, Constant))
    return low, high


def _with_bounds(made: Asked, name: str, bounds: dict[str, tuple[Any, Any]]) -> Asked:
    kind = made.aggregate.kind
    if PER_GROUP in bounds and (name not in WITH_GROUP_BOUNDS or kind in ("count_units", "count_distinct")):
        raise NotAllowed(f"{name} with {PER_GROUP}.", do=f"COUNT, SUM and AVG take it; {PER_ROW} => (0, 100) is wider.")
    if PER_ROW in bounds and (made.aggregate.value is None or kind in ("count", "count_distinct")):
        raise NotAllowed(
            f"{name} with {PER_ROW}.", why="it counts rows, whatever they hold.", do=f"leave {PER_ROW} out."
        )
    if PER_GROUP in bounds and PER_ROW in bounds:
        raise NotAllowed(f"{name} with two bounds.", do=f"give {PER_GROUP} or {PER_ROW}.")
    if PER_ROW in bounds:
        if made.aggregate.other is not None:
            raise NotAllowed(f"{name} with {PER_ROW}.", why="it is of two columns.", do="declare bounds for both.")
        made = replace(made, aggregate=replace(made.aggregate, bounds=bounds[PER_ROW]))
    return replace(made, per_group=bounds.get(PER_GROUP))


def _count(arguments: list[exp.Expr], values: Values, scope: Scope) -> Asked:
    if len(arguments) != 1:
        raise NotAllowed("COUNT takes one argument.", do="COUNT(*), COUNT(x) or COUNT(DISTINCT x).")
    inner = arguments[0]
    if isinstance(inner, exp.Star):
        only(inner)
        return Asked(aggregates.count(), "count")
    if isinstance(inner, exp.Distinct):
        only(inner, "expressions")
        if len(inner.expressions) != 1:
            raise NotAllowed("COUNT(DISTINCT ...) of several columns.", do="GROUP BY them, or count one of them.")
        if scope.is_unit(inner.expressions[0]):
            return Asked(aggregates.count_units(), "count_units")
        value = values.of(inner.expressions[0])
        return Asked(aggregates.count_distinct(value), _label("count_distinct", value))
    if scope.is_unit(inner):  # rows without a unit are never read
        return Asked(aggregates.count(), "count")
    value = values.of(inner)
    if isinstance(value, Constant):
        return Asked(aggregates.count(), "count")
    return Asked(aggregates.count(value), _label("count", value))


def _filtered(node: exp.Filter, values: Values) -> Asked:
    only(node, "this", "expression")
    inner, where = node.this, node.expression
    name = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else ""
    arguments = inner.expressions if isinstance(inner, exp.Anonymous) else []
    if not isinstance(where, exp.Where) or name not in ("COUNT", "SUM") or len(arguments) != 1:
        raise NotAllowed("FILTER stands after COUNT(*) and SUM(x) only.", do="AVG(x) ... WHERE condition.")
    condition = values.of(where.this)
    if name == "SUM":
        value = _number(name, arguments[0], values)
        return Asked(aggregates.sum(Case(condition, value, Constant(0))), _label(name, value))
    if not isinstance(arguments[0], exp.Star):
        raise NotAllowed("FILTER stands after COUNT(*) and SUM(x) only.", do="COUNT(*) FILTER (WHERE x IS NOT NULL).")
    return Asked(aggregates.sum(_where(condition)), "count")


def _within(node: exp.WithinGroup, values: Values) -> Asked:
    only(node, "this", "expression")
    inner, order = node.this, node.expression
    keys = order.expressions if isinstance(order, exp.Order) else []
    if not isinstance(inner, exp.Anonymous) or str(inner.this).upper() not in RANKS or len(keys) != 1:
        raise NotAllowed(
            "WITHIN GROUP stands after PERCENTILE_CONT only.", do="PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)."
        )
    name, arguments, bounds = _split(inner, values)
    if len(arguments) != 1 or not isinstance(keys[0], exp.Ordered):
        raise NotAllowed(f"{name} takes a number here.", do=f"{name}(0.5) WITHIN GROUP (ORDER BY x).")
    only(keys[0], "this", "desc", "nulls_first")
    made = _rank(name, keys[0].this, arguments[0], values)
    if keys[0].args.get("desc"):
        assert made.aggregate.q is not None
        made = replace(made, aggregate=replace(made.aggregate, q=1 - made.aggregate.q))
    return _with_bounds(made, name, bounds)


def _rank(name: str, value: exp.Expr, q: exp.Expr, values: Values) -> Asked:
    which = values.of(q)
    if not isinstance(which, Constant) or isinstance(which.value, (str, bool)):
        raise NotAllowed(f"{name}: which quantile is not a number.", do=f"{name}(x, 0.9).")
    if not 0 <= which.domain({}).ends[0] <= 1:
        raise NotAllowed(f"{name}: {which} is not between 0 and 1.", do=f"{name}(x, 0.9).")
    made = _number(name, value, values, ", ...")
    return Asked(aggregates.quantile(made, float(which.domain({}).ends[0])), _label(name, made))


def _one(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) != 1:
        raise NotAllowed(f"{name} takes one value.", do=f"{name}(x).")
    return arguments[0]


def _number(name: str, node: exp.Expr, values: Values, more: str = "") -> Expression:
    """A value that is no condition and no text; `more` stands for other arguments in what to write instead."""
    made = _value(name, node, values)
    kind = values.kind(made)
    if kind not in ("boolean", "string"):
        return made
    text = shown(node)
    instead = f"COUNT(DISTINCT {text}), or GROUP BY it."
    if kind == "boolean":
        instead = f"count what is true as 1: {name}(CASE WHEN {text} THEN 1 ELSE 0 END{more})."
    raise InvalidArgument(f"{name}: {text} is {SAID[kind]}, not a number.", do=instead)


def _value(name: str, node: exp.Expr, values: Values) -> Expression:
    if isinstance(node, exp.Distinct):
        raise NotAllowed(
            f"{name}(DISTINCT ...).",
            why="which values differ depends on all people's rows together.",
            do=f"{name}(x), or COUNT(DISTINCT x).",
        )
    if isinstance(node, exp.Star):
        raise NotAllowed(f"{name}(*).", do=f"{name}(x).")
    if isinstance(node, exp.Order):
        raise refused(node, name)
    return values.of(node)


def _where(condition: Expression) -> Expression:
    return Case(condition, Constant(1), Constant(0))


def _over_n(name: str) -> str:
    return f"{name} is over n, as {OVER_N[name]} is." if name in OVER_N else ""


def _label(name: str, *values: Expression) -> str:
    return "_".join([name.lower(), *(one.name for one in values if isinstance(one, Column))])
