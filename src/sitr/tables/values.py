"""Expressions of our plan over the rows of an engine, written down by Ibis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import ibis

from .dialect import Value
from .domains import FARTHEST, Domain
from .expressions import (
    Arithmetic,
    Bucket,
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
    align,
    steps_of,
)
from .grid import real, rounded, scaled, to_steps, whole

COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
NOWHERE = FARTHEST + 1  # steps, which no number has
TRUNCATIONS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h"}


@dataclass(frozen=True)
class Rows:
    """A relation as the engine sees it.

    Attributes:
        table: Ibis's table.
        names: The engine's name of each column.
        schema: What each holds.
        row_id: The engine's name of the column that tells rows apart, where there is one.
    """

    table: Value
    names: Mapping[str, str]
    schema: Mapping[str, Domain]
    row_id: str | None = None

    def value(self, expression: Expression) -> Value:
        """Return an expression over the rows."""
        return Values(self).of(expression)


class Values:
    """Expressions over the columns of some rows; numbers that were computed are whole steps."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.schema = rows, rows.schema

    def of(self, one: Expression) -> Value:
        """Return an expression as the engine holds it."""
        if isinstance(one, Column):
            return self.rows.table[self.rows.names[one.name]]
        if isinstance(one, Constant):
            return self._constant(one)
        if isinstance(one, Comparison):
            return self._compared(one)
        if isinstance(one, Logic):
            left, right = self.of(one.left), self.of(one.right)
            return left & right if one.operator == "and" else left | right
        if isinstance(one, Not):
            return ~self.of(one.value)
        if isinstance(one, In):
            return self._found(one)
        if isinstance(one, IsNull):
            return self.of(one.value).isnull()
        if isinstance(one, Part):
            return self._part(one)
        if isinstance(one, Truncated):
            return self._truncated(one)
        if isinstance(one, (Case, Coalesce)):
            return self._chosen(one)
        if isinstance(one, Bucket):
            found = self._bucket(one, 0, len(one.edges))
            return self.of(one.value).isnull().ifelse(ibis.null("int64"), found)
        assert isinstance(one, Arithmetic)
        return self._computed(one)

    def steps(self, one: Expression) -> Value:
        """Return a number in whole steps of its own grid."""
        domain = one.domain(self.schema)
        if domain.steps:
            return self.of(one)
        return to_steps(self.of(one), domain, steps_of(domain))

    def _constant(self, one: Constant) -> Value:
        domain = one.domain({})
        if domain.kind == "number":
            return whole(domain.span[0])
        return ibis.literal(one.value)

    def _plain(self, one: Expression) -> Value:
        """A side of a comparison that the engine makes on what it holds; a constant as the nearest double."""
        if not isinstance(one, Constant):
            return self.of(one)
        if one.domain({}).kind != "number":
            return ibis.literal(one.value)
        exact = one.domain({})
        return whole(exact.span[0]) if exact.step == 1 else real(exact.ends[0])

    def _compared(self, one: Comparison) -> Value:
        if one.native(self.schema):
            return COMPARE[one.operator](*_comparable(self._plain(one.left), self._plain(one.right)))
        against = one.against()
        if against is not None:
            return self._against(*against)
        left, right = (steps_of(side.domain(self.schema)) for side in (one.left, one.right))
        _, first, second = align(left, right)
        return COMPARE[one.operator](scaled(self.steps(one.left), first), scaled(self.steps(one.right), second))

    def _against(self, one: Expression, operator: str, constant: Constant) -> Value:
        """Whole steps beside a constant, which may lie between two of them: then the next one decides."""
        exact = constant.domain({}).ends[0] / steps_of(one.domain(self.schema)).step
        if operator in ("==", "!="):
            place = int(exact) if exact.denominator == 1 else NOWHERE
        else:
            place = math.ceil(exact) if operator in (">=", "<") else math.floor(exact)
        return COMPARE[operator](self.steps(one), whole(min(max(place, -NOWHERE), NOWHERE)))

    def _found(self, one: In) -> Value:
        domain = one.value.domain(self.schema)
        value = self.of(one.value)
        if domain.steps:  # what lies between two steps, or beyond all of them, equals none
            exact = [domain.measure(each) / domain.step for each in one.values]
            listed = [int(each) for each in exact if each.denominator == 1 and abs(each) < NOWHERE]
            return value.isin(listed or [NOWHERE])
        constants = [Constant(each) for each in one.values]
        if value.type().is_integer() and all(each.domain({}).step == 1 for each in constants):
            return value.isin([each.domain({}).span[0] for each in constants])  # casts would cost three times that
        value, *others = _comparable(value, *map(self._plain, constants))
        return value.isin(others)

    def _part(self, one: Part) -> Value:
        value = self.of(one.value)
        found = value.day_of_week.index() if one.which == "weekday" else getattr(value, one.which)()
        return found.cast("int64")

    def _bucket(self, one: Bucket, low: int, high: int) -> Value:
        """By halves: of edges low, …, high - 1 it is not known yet whether they lie below."""
        if low == high:
            return whole(low)
        middle = (low + high) // 2
        above, below = self._bucket(one, middle + 1, high), self._bucket(one, low, middle)
        return ibis.cases((self.of(one.reached(one.edges[middle])), above), else_=below)

    def _truncated(self, one: Truncated) -> Value:
        """By way of a timestamp: some engines make one of a date, and one with a time zone at that.

        Within `coalesce`, which changes nothing: DuckDB takes a bare `date_trunc('month', t) = c` for false wherever c
        begins no month, of a missing t too.
        """
        value = self.of(one.value)
        cut = ibis.coalesce(value.cast("timestamp").truncate(TRUNCATIONS[one.unit]), ibis.null("timestamp"))
        return cut.cast("date") if one.value.domain(self.schema).kind == "date" else cut

    def _chosen(self, one: Case | Coalesce) -> Value:
        first = one.then if isinstance(one, Case) else one.value
        domain = one.domain(self.schema)
        if domain.kind == "number":
            left, right = (steps_of(side.domain(self.schema)) for side in (first, one.other))
            yes = scaled(self.steps(first), int(left.step / domain.step))
            no = scaled(self.steps(one.other), int(right.step / domain.step))
        else:
            yes, no = self.of(first), self.of(one.other)
        if isinstance(one, Coalesce):
            return yes.fill_null(no)
        return ibis.cases((self.of(one.condition), yes), else_=no)

    def _computed(self, one: Arithmetic) -> Value:
        domain = one.domain(self.schema)
        left, right = (steps_of(side.domain(self.schema)) for side in (one.left, one.right))
        first, second = self.steps(one.left), self.steps(one.right)
        if one.operator == "*":
            return first * second
        if one.operator == "/":  # of doubles: whole numbers below 2^53 are exact there, and no divisor is zero
            by = real(left.step / right.step / domain.step)
            divisor = (second == 0).ifelse(ibis.null("float64"), second.cast("float64"))
            return rounded(first.cast("float64") * by / divisor)
        first, second = (
            scaled(value, int(side.step / domain.step)) for value, side in ((first, left), (second, right))
        )
        return first + second if one.operator == "+" else first - second


def _comparable(*values: Value) -> list[Value]:
    """Values that an engine compares without a cast that can fail: a whole number may not fit a decimal's digits."""
    if any(value.type().is_decimal() for value in values):
        return [value.cast("float64") for value in values]
    return list(values)
