"""What is done with released numbers, for nothing: arithmetic of columns, HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ...errors import NotAllowed
from ...tables.expressions import (
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
from ..answer import Additive, Answer
from ..half_widths import half_width
from ..rows import CHOSEN, in_order, taken

NO_INTERVAL = "{names}: no interval is stated, since the column is no sum of released ones."
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Output:
    """A column of the answer: an expression over released columns."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Order:
    """By what rows are sorted."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Shape:
    """What is made of an answer.

    Attributes:
        outputs: Its columns.
        having: Which rows stay.
        order: How they are sorted; by key unless told.
        limit: How many stay.
        offset: How many are passed over.
        notes: Remarks.

    Privacy: it reads released numbers only, and what is computed of them costs nothing.
    """

    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    notes: tuple[str, ...] = ()

    def __call__(self, answer: Answer) -> Answer:
        """Return the answer as it was asked for."""
        rows = self._rows(answer)
        made = answer if rows == list(range(len(answer))) else taken(answer, rows)
        made, bare = _with_outputs(made, self.outputs)
        notes = [NO_INTERVAL.format(names=", ".join(bare))] if bare else []
        notes += [CHOSEN] if self._chooses(answer) else []
        ranked = any(order.value.columns() & answer.raw.keys() for order in self.order)
        return replace(made, notes=(*made.notes, *self.notes, *notes), ranked=ranked)

    def _rows(self, answer: Answer) -> list[int]:
        tables = [{name: column[at] for name, column in answer.value.items()} for at in range(len(answer))]
        rows = list(range(len(tables)))
        if self.having is not None:
            rows = [at for at in rows if evaluate(self.having, tables[at]) is True]
        for order in reversed(self.order):
            values = [evaluate(order.value, row) for row in tables]
            rows = in_order(rows, values, descending=order.descending, nulls_first=order.nulls_first)
        return rows[self.offset :][: self.limit]

    def _chooses(self, answer: Answer) -> bool:
        """Whether which rows are there depends on noise."""
        cut = [order.value for order in self.order] if self.limit is not None or self.offset else []
        read = [*cut, *([self.having] if self.having is not None else [])]
        return any(one.columns() & answer.raw.keys() for one in read)

    def only_notes(self, keys: tuple[str, ...], aggregates: tuple[str, ...]) -> bool:
        """Whether the columns and the rows stay as they are."""
        plain = tuple(one.name for one in self.outputs if isinstance(one.value, Column) and one.value.name == one.name)
        whole = self.having is None and not self.order and self.limit is None and not self.offset
        return whole and plain == (*keys, *aggregates) and len(plain) == len(self.outputs)


# Columns


def _with_outputs(answer: Answer, outputs: tuple[Output, ...]) -> tuple[Answer, list[str]]:
    """The columns that were asked for, and the names of those without an interval."""
    keys: list[str] = []
    parts: dict[str, dict[str, Any]] = {name: {} for name in ("value", "raw", "low", "high", "error95")}
    additive: dict[str, Additive] = {}
    bare: list[str] = []
    for one in outputs:
        made = _column(answer, one.value)
        if made is None:
            keys.append(one.name)
            parts["value"][one.name] = _evaluated(one.value, answer.value, len(answer))
            continue
        columns, noise = made
        for part, column in columns.items():
            parts[part][one.name] = column
        if noise is not None:
            additive[one.name] = noise
        if columns["error95"] and all(error is None for error in columns["error95"]):
            bare.append(one.name)
    value = {name: parts["value"][name] for name in keys} | {name: parts["value"][name] for name in parts["raw"]}
    made_answer = replace(
        answer,
        value=value,
        error95=parts["error95"],
        keys=tuple(keys),
        raw=parts["raw"],
        low=parts["low"],
        high=parts["high"],
        additive=additive,
    )
    return made_answer, bare


def _column(answer: Answer, value: Expression) -> tuple[dict[str, list[Any]], Additive | None] | None:
    """A number with its interval; None for a label: what reads no aggregate, or is no number."""
    if isinstance(value, Column) and value.name in answer.raw:
        name = value.name
        columns = {part: list(getattr(answer, part)[name]) for part in ("value", "raw", "low", "high", "error95")}
        return columns, answer.additive.get(name)
    if not value.columns() & answer.raw.keys():
        return None
    size = len(answer)
    found = _evaluated(value, answer.value, size)
    if any(cell is not None and (isinstance(cell, bool) or not isinstance(cell, (int, float))) for cell in found):
        return None
    raw = _evaluated(value, {**answer.value, **answer.raw}, size)
    columns = {"value": found, "raw": raw, "low": [None] * size, "high": [None] * size, "error95": [None] * size}
    linear = _linear(value)
    if linear is None or not linear[1].keys() <= answer.raw.keys():
        return columns, None
    constant, factors = float(linear[0]), {name: float(factor) for name, factor in linear[1].items() if factor}
    if len(factors) == 1:
        return _scaled(answer, columns, constant, *next(iter(factors.items())))
    return _added(answer, columns, factors), None


def _scaled(
    answer: Answer, columns: dict[str, list[Any]], constant: float, name: str, factor: float
) -> tuple[dict[str, list[Any]], Additive | None]:
    """A constant and a multiple of one column: its interval moves with it."""
    ends = [
        (constant + factor * low, constant + factor * high)
        for low, high in zip(answer.low[name], answer.high[name], strict=True)
    ]
    columns |= {"low": [min(pair) for pair in ends], "high": [max(pair) for pair in ends]}
    columns |= {"error95": [abs(factor) * error for error in answer.error95[name]]}
    noise = answer.additive.get(name)
    if noise is None:
        return columns, None
    return columns, replace(noise, weights=tuple(factor * weight for weight in noise.weights))


def _added(answer: Answer, columns: dict[str, list[Any]], factors: Mapping[str, float]) -> dict[str, list[Any]]:
    """A sum of several columns, whose noises may be the same: each within its part of the 5 %, all of them together."""
    noises = {name: answer.additive.get(name) for name in factors}
    if not factors or any(noise is None for noise in noises.values()):
        return columns
    confidence = 1 - 0.05 / len(factors)
    width = 0.0
    for name, noise in noises.items():
        assert noise is not None
        weights = [factors[name] * weight for weight in noise.weights]
        width += half_width(weights, noise.scale, noise.kind, confidence, integers=noise.integers)  # type: ignore[arg-type]
    raw = columns["raw"]
    return columns | {
        "low": [None if cell is None else cell - width for cell in raw],
        "high": [None if cell is None else cell + width for cell in raw],
        "error95": [None if cell is None else width for cell in raw],
    }


def _linear(value: Expression) -> tuple[Fraction, dict[str, Fraction]] | None:
    """A constant and a factor for each column, where an expression is such a sum."""
    if isinstance(value, Column):
        return Fraction(0), {value.name: Fraction(1)}
    if isinstance(value, Constant):
        return (value.domain({}).ends[0], {}) if value.domain({}).kind == "number" else None
    if not isinstance(value, Arithmetic):
        return None
    left, right = _linear(value.left), _linear(value.right)
    if left is None or right is None:
        return None
    if value.operator in "+-":
        return _sum(left, right, 1 if value.operator == "+" else -1)
    if value.operator == "*" and not left[1]:
        left, right = right, left
    if right[1] or (value.operator == "/" and right[0] == 0):
        return None
    factor = right[0] if value.operator == "*" else 1 / right[0]
    return left[0] * factor, {name: one * factor for name, one in left[1].items()}


def _sum(
    left: tuple[Fraction, dict[str, Fraction]], right: tuple[Fraction, dict[str, Fraction]], sign: int
) -> tuple[Fraction, dict[str, Fraction]]:
    names = {**left[1], **right[1]}
    factors = {name: left[1].get(name, Fraction(0)) + sign * right[1].get(name, Fraction(0)) for name in names}
    return left[0] + sign * right[0], factors


# Expressions over one row of an answer


def _evaluated(value: Expression, columns: Mapping[str, Any], size: int) -> list[Any]:
    return [evaluate(value, {name: column[at] for name, column in columns.items()}) for at in range(size)]


def evaluate(value: Expression, row: Mapping[str, Any]) -> Any:
    """Return an expression over one row of an answer; None is missing, as in SQL.

    Example:
        >>> evaluate(Column("a") / Column("n") >= 2, {"a": 10, "n": 4}), evaluate(Column("a") / 0, {"a": 10})
        (True, None)
    """
    if isinstance(value, Column):
        found = row[value.name]
        return None if isinstance(found, float) and math.isnan(found) else found
    if isinstance(value, Constant):
        return float(value.value) if isinstance(value.value, Decimal) else value.value
    return EVALUATORS[type(value)](value, row)


def _arithmetic(one: Arithmetic, row: Mapping[str, Any]) -> Any:
    left, right = evaluate(one.left, row), evaluate(one.right, row)
    if left is None or right is None or (one.operator == "/" and right == 0):
        return None
    try:
        found = {"+": _plus, "-": _minus, "*": _product, "/": _quotient}[one.operator](left, right)
        return found if math.isfinite(found) else None
    except (OverflowError, TypeError):
        return None


def _plus(left: Any, right: Any) -> Any:
    return left + right


def _minus(left: Any, right: Any) -> Any:
    return left - right


def _product(left: Any, right: Any) -> Any:
    return left * right


def _quotient(left: Any, right: Any) -> Any:
    return left / right


def _comparison(one: Comparison, row: Mapping[str, Any]) -> bool | None:
    left, right = evaluate(one.left, row), evaluate(one.right, row)
    if left is None or right is None:
        return None
    left, right = _moments(left, right)
    try:
        return COMPARED[one.operator](left, right)
    except TypeError:
        return None


def _moments(left: Any, right: Any) -> tuple[Any, Any]:
    """A date beside a time is the begin of its day."""
    if isinstance(left, date) and isinstance(right, date):
        return tuple(  # type: ignore[return-value]
            one if isinstance(one, datetime) else datetime(one.year, one.month, one.day) for one in (left, right)
        )
    return left, right


def _logic(one: Logic, row: Mapping[str, Any]) -> bool | None:
    sides = evaluate(one.left, row), evaluate(one.right, row)
    decisive = one.operator == "or"
    if decisive in sides:
        return decisive
    return None if None in sides else not decisive


def _not(one: Not, row: Mapping[str, Any]) -> bool | None:
    found = evaluate(one.value, row)
    return None if found is None else not found


def _in(one: In, row: Mapping[str, Any]) -> bool | None:
    found = evaluate(one.value, row)
    if found is None:
        return None
    return any(_comparison(Comparison("==", Column("x"), Constant(each)), {"x": found}) for each in one.values)


def _is_null(one: IsNull, row: Mapping[str, Any]) -> bool:
    return evaluate(one.value, row) is None


def _coalesce(one: Coalesce, row: Mapping[str, Any]) -> Any:
    found = evaluate(one.value, row)
    return found if found is not None else evaluate(one.other, row)


def _case(one: Case, row: Mapping[str, Any]) -> Any:
    return evaluate(one.then if evaluate(one.condition, row) is True else one.other, row)


def _part(one: Part, row: Mapping[str, Any]) -> int | None:
    found = evaluate(one.value, row)
    if found is None:
        return None
    if one.which == "quarter":
        return int((found.month - 1) // 3 + 1)
    return int(found.weekday() if one.which == "weekday" else getattr(found, one.which))


def _truncated(one: Truncated, row: Mapping[str, Any]) -> Any:
    found = evaluate(one.value, row)
    if found is None:
        return None
    if isinstance(found, datetime) and one.unit == "hour":
        return found.replace(minute=0, second=0, microsecond=0)
    day = date(found.year, found.month, found.day)
    if one.unit == "week":
        day -= timedelta(days=day.weekday())
    months = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}
    day = day.replace(day=1, month=months[one.unit]) if one.unit in months else day
    return datetime(day.year, day.month, day.day) if isinstance(found, datetime) else day


EVALUATORS: dict[type[Expression], Callable[[Any, Mapping[str, Any]], Any]] = {
    Arithmetic: _arithmetic,
    Comparison: _comparison,
    Logic: _logic,
    Not: _not,
    In: _in,
    IsNull: _is_null,
    Coalesce: _coalesce,
    Case: _case,
    Part: _part,
    Truncated: _truncated,
}


# Kinds


def kind_of(value: Expression, kinds: Mapping[str, str]) -> str:
    """Return what an expression over an answer holds, or refuse one that mixes kinds.

    Example:
        >>> kind_of(Column("n") >= 2, {"n": "number"})
        'boolean'
    """
    if isinstance(value, Column):
        return kinds[value.name]
    if isinstance(value, Constant):
        return value.domain({}).kind
    if isinstance(value, Arithmetic):
        for side in (value.left, value.right):
            _need(side, kinds, "number")
        return "number"
    if isinstance(value, Comparison):
        _same(value.left, value.right, kinds)
        return "boolean"
    if isinstance(value, Logic):
        for side in (value.left, value.right):
            _need(side, kinds, "boolean")
        return "boolean"
    if isinstance(value, (Not, IsNull)):
        inner = kind_of(value.value, kinds)
        if isinstance(value, Not) and inner != "boolean":
            raise NotAllowed(f"NOT before {value.value}, a {inner}.", do="NOT (x >= 10).")
        return "boolean"
    if isinstance(value, In):
        for one in value.values:
            _same(value.value, Constant(one), kinds)
        return "boolean"
    if isinstance(value, Coalesce):
        return _same(value.value, value.other, kinds)
    if isinstance(value, Case):
        _need(value.condition, kinds, "boolean")
        return _same(value.then, value.other, kinds)
    assert isinstance(value, (Part, Truncated))
    kind = kind_of(value.value, kinds)
    wanted = value.which if isinstance(value, Part) else value.unit
    if kind not in ("date", "timestamp") or (kind == "date" and wanted in ("hour", "minute")):
        raise NotAllowed(f"{value}: a {kind} has no {wanted}.", do="use a date or a time.")
    return "number" if isinstance(value, Part) else kind


def _need(value: Expression, kinds: Mapping[str, str], wanted: str) -> None:
    found = kind_of(value, kinds)
    if found != wanted:
        raise NotAllowed(f"{value} is a {found}, where a {wanted} is needed.", do="compare it: x >= 10.")


def _same(left: Expression, right: Expression, kinds: Mapping[str, str]) -> str:
    one, other = kind_of(left, kinds), kind_of(right, kinds)
    if one != other and {one, other} != {"date", "timestamp"}:
        raise NotAllowed(f"{left} is a {one}, and {right} a {other}.", do="compare what is of one kind.")
    return one
