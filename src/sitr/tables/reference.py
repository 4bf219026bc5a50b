"""What an expression of the plan is on one row, in Python alone: the meaning that every engine is held to.

Whole numbers and steps are exact; doubles are Python's, which are IEEE's; None is missing. Nothing is shared with
`values`, which says the same to an engine.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from .domains import EPOCH, OTHERS, Domain
from .expressions import (
    EXACT,
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
    steps_of,
)

Row = Mapping[str, Any]
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPUTED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class Reference:
    """Expressions over rows of a schema.

    Example:
        >>> schema = {"age": Domain("number", Fraction(1), 0, 120)}
        >>> Reference(schema).value(Column("age") / 8 > 5, {"age": 41})
        True
    """

    def __init__(self, schema: Mapping[str, Domain]) -> None:
        self.schema = schema

    def value(self, one: Expression, row: Row) -> Any:
        """Return an expression as an engine holds it: numbers that were computed as exact fractions."""
        if isinstance(one, Column):
            return self._held(row[one.name], self.schema[one.name])
        if isinstance(one, Constant):
            return self._constant(one)
        if isinstance(one, Comparison):
            return self._compared(one, row)
        if isinstance(one, Logic):
            return self._joined(one.operator == "or", self.value(one.left, row), self.value(one.right, row))
        if isinstance(one, Not):
            found = self.value(one.value, row)
            return None if found is None else not found
        if isinstance(one, In):
            equal = [self.value(Comparison("==", one.value, Constant(listed)), row) for listed in one.values]
            return None if None in equal else True in equal
        if isinstance(one, IsNull):
            return self.value(one.value, row) is None
        if isinstance(one, Coalesce):
            first = self._side(one, one.value, row)
            return self._side(one, one.other, row) if first is None else first
        if isinstance(one, Case):
            return self._side(one, one.then if self.value(one.condition, row) is True else one.other, row)
        if isinstance(one, Bucket):
            reached = [self.value(one.reached(edge), row) for edge in one.edges]
            return None if self.value(one.value, row) is None else Fraction(reached.count(True))
        if isinstance(one, (Part, Truncated)):
            found = self.value(one.value, row)
            if found is None:
                return None
            return Fraction(part_of(found, one.which)) if isinstance(one, Part) else begin_of(found, one.unit)
        assert isinstance(one, Arithmetic)
        return self._computed(one, row)

    def steps(self, one: Expression, row: Row) -> Fraction | None:
        """Return a number as it enters arithmetic: clipped to its bounds, and a multiple of its step."""
        found, domain = self.value(one, row), one.domain(self.schema)
        if found is None or domain.steps:
            return None if found is None else Fraction(found)
        return on_grid(found, domain, steps_of(domain))

    @staticmethod
    def _held(found: Any, domain: Domain) -> Any:
        """A cell as it is asked about."""
        if found is None or (isinstance(found, float) and math.isnan(found)):
            return None
        return OTHERS if domain.others and found not in domain.listed else found

    def _constant(self, one: Constant) -> Any:
        return one.domain({}).ends[0] if one.domain({}).kind == "number" else one.value

    def _side(self, one: Expression, side: Expression, row: Row) -> Any:
        return self.steps(side, row) if one.domain(self.schema).kind == "number" else self.value(side, row)

    @staticmethod
    def _joined(decisive: bool, left: bool | None, right: bool | None) -> bool | None:
        if left is decisive or right is decisive:
            return decisive
        return None if left is None or right is None else not decisive

    def _compared(self, one: Comparison, row: Row) -> bool | None:
        if not one.native(self.schema):
            left, right = self.steps(one.left, row), self.steps(one.right, row)
        else:
            left, right = _alike(self.value(one.left, row), self.value(one.right, row))
        return None if left is None or right is None else COMPARED[one.operator](left, right)

    def _computed(self, one: Arithmetic, row: Row) -> Fraction | None:
        left, right = self.steps(one.left, row), self.steps(one.right, row)
        if left is None or right is None:
            return None
        return self._quotient(one, left, right) if one.operator == "/" else COMPUTED[one.operator](left, right)

    def _quotient(self, one: Arithmetic, left: Fraction, right: Fraction) -> Fraction | None:
        """By doubles, of steps, rounded to the step of the result."""
        if right == 0:
            return None
        step = one.domain(self.schema).step
        first, second = (steps_of(side.domain(self.schema)).step for side in (one.left, one.right))
        scaled = float(left / first) * float(first / second / step)
        return math.floor(scaled / float(right / second) + 0.5) * step


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values as engines compare them: days with moments, and numbers as doubles unless both are whole."""
    if left is None or right is None:
        return None, None
    if isinstance(left, datetime) != isinstance(right, datetime) and isinstance(left, date):
        return _moment(left), _moment(right)
    if isinstance(left, (bool, str, date)) or all(_whole(side) for side in (left, right)):
        return left, right
    return float(left), float(right)


def _whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1)


def _moment(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


def on_grid(found: Any, domain: Domain, grid: Domain) -> Fraction:
    """Return a value of a column clipped to the ends of a grid, and rounded to its step, halves up."""
    low, high = grid.span
    if isinstance(found, date):
        found = counted(found)
    if domain.step == 1 and grid.step == 1 and not domain.float:
        return Fraction(min(max(int(found), low), high))
    inside = min(max(float(found), float(low * grid.step)), float(high * grid.step))
    if grid.step > 1 and abs(inside) < float(grid.step / 4):
        inside = 0.0
    steps = math.floor(inside * float(1 / grid.step) + 0.5)
    return (min(max(steps, low), high) if max(-low, high) > EXACT else steps) * grid.step


def counted(moment: date) -> int:
    """Return the days of a date, or the seconds of a time, since 1970, rounded down.

    Example:
        >>> counted(date(1969, 12, 31)), counted(datetime(1969, 12, 31, 23, 59, 59, 5))
        (-1, -1)
    """
    if isinstance(moment, datetime):
        return (moment - datetime(1970, 1, 1)) // timedelta(seconds=1)
    return (moment - EPOCH).days


def part_of(moment: date, which: str) -> int:
    """Return a part of a date or a time.

    Example:
        >>> part_of(date(2024, 2, 29), "weekday"), part_of(date(2024, 2, 29), "quarter")
        (3, 1)
    """
    if which == "weekday":
        return moment.weekday()
    return (moment.month - 1) // 3 + 1 if which == "quarter" else int(getattr(moment, which))


def begin_of(moment: date, unit: str) -> date:
    """Return the begin of the year, quarter, month, week, day or hour that a date or a time lies in.

    Example:
        >>> begin_of(date(2024, 2, 29), "week")
        datetime.date(2024, 2, 26)
    """
    if isinstance(moment, datetime):
        if unit == "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        return _moment(begin_of(moment.date(), unit))
    if unit == "week":
        return moment - timedelta(days=moment.weekday())
    first = {"year": 1, "quarter": (moment.month - 1) // 3 * 3 + 1, "month": moment.month}
    return moment.replace(month=first[unit], day=1) if unit in first else moment


def truth(found: bool | None) -> int:
    """Return 2 for true, 1 for false and 0 for missing: a condition as a number that engines can add up."""
    return {None: 0, False: 1, True: 2}[found]
