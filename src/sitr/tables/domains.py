"""What a column or an expression can hold: its kind, and for numbers the grid they are counted on and their ends.

Engines differ on floats, overflow, rounding and NaN; on whole numbers inside ±2^62 they agree. So a number is, inside
an engine, a whole number of steps between two public ends, and what could leave them is refused before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from .. import _validate
from ..errors import InvalidArgument

Kind = Literal["boolean", "number", "string", "date", "timestamp"]
SAID: Mapping[str, str] = {  # of kinds, to people
    "boolean": "true or false",
    "number": "a number",
    "string": "text",
    "date": "a date",
    "timestamp": "a time",
}
FARTHEST = 2**62  # steps: what stays within can be added once more without leaving 64 bits
FINE = 2**20  # steps between the bounds of a float, at least
SMALLEST, LARGEST = Fraction(2) ** -900, Fraction(2) ** 900  # steps that a double and its inverse can hold
EPOCH = date(1970, 1, 1)
FARTHEST_BOUND = 2**500
OTHERS = "(other)"  # the name of the group of all values that are not declared


@dataclass(frozen=True)
class Domain:
    """What an expression can hold.

    Attributes:
        kind: Of the values.
        step: A number is a multiple of this; a date is counted in days, a timestamp in seconds, since 1970.
        lower: The least number of steps; None where no bounds are declared.
        upper: The largest.
        categories: The values that are public, in the order in which they were declared or written.
        others: Whether the last of them is `OTHERS`, which stands for every value that is not declared.
        nulls: Whether a missing value is a key of its own; else rows without the value are left out of its groups.
        required: Whether no row lacks it: rows that do are dropped where they are read.
        steps: Whether the engine holds it as a whole number of steps already.
        float: Whether the engine holds it as a floating-point number.

    Example:
        >>> Domain("number", Fraction(1, 4), 0, 400).ends
        (Fraction(0, 1), Fraction(100, 1))
    """

    kind: Kind
    step: Fraction = Fraction(1)
    lower: int | None = None
    upper: int | None = None
    categories: tuple[Any, ...] | None = None
    others: bool = False
    nulls: bool = False
    required: bool = False
    steps: bool = False
    float: bool = False

    @property
    def bounded(self) -> bool:
        """Whether public bounds are known."""
        return self.lower is not None and self.upper is not None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The bounds, as numbers."""
        low, high = self.span
        return low * self.step, high * self.step

    @property
    def span(self) -> tuple[int, int]:
        """The bounds, in steps."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def listed(self) -> tuple[Any, ...]:
        """The categories that are values of the data.

        Example:
            >>> Domain("string", categories=("north", "south", OTHERS), others=True).listed
            ('north', 'south')
        """
        return (self.categories or ())[: -1 if self.others else None]

    @property
    def ordered(self) -> bool:
        """Whether it can be counted on a grid: numbers, dates and times."""
        return self.kind in ("number", "date", "timestamp")

    def within(self, bounds: tuple[Any, Any] | None, *, finest: int = FINE) -> Domain:
        """Return the grid for values that are clipped to bounds, or to their own, in at most about `finest` steps.

        Raises:
            InvalidArgument: There are no bounds, they are not in order, or no two steps lie between them.
        """
        if bounds is not None:
            low, high = (self.measure(end) for end in bounds)
        elif self.bounded:
            low, high = self.ends
        else:
            raise InvalidArgument(
                "the values have no bounds.",
                why="without public bounds one person could move the answer without limit.",
                do="declare bounds for the column, pass bounds=(lower, upper), or find them by profile(...).",
            )
        if not low < high:
            raise InvalidArgument(f"bounds=({_shown(low)}, {_shown(high)}) are not in order.")
        if max(-low, high) > FARTHEST_BOUND:
            raise InvalidArgument("bounds are so large that their squares are no numbers.", do="pass smaller bounds.")
        step = _coarse(self.step, high - low, finest) if not self.float else power_of_two((high - low) / finest)
        lower, upper = math.ceil(low / step), math.floor(high / step)
        if not lower < upper:
            raise InvalidArgument(f"no two steps of {float(step):g} lie between the bounds.", do="widen the bounds.")
        _check(step, lower, upper)
        return replace(self, step=step, lower=lower, upper=upper, categories=None)

    def measure(self, value: Any) -> Fraction:
        """Return a public value as a number: days of a date, seconds of a timestamp.

        Example:
            >>> Domain("date").measure(date(1970, 1, 31))
            Fraction(30, 1)
        """
        if self.ordered and isinstance(value, Fraction):  # measured before
            return value
        value = _validate.plain(value)
        if self.kind == "date" and type(value) is date:
            return Fraction((value - EPOCH).days)
        if self.kind == "timestamp" and isinstance(value, date):
            moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
            if moment.tzinfo is not None:
                raise InvalidArgument(
                    f"{value} has a time zone.", do="write the time on the clock of the declared time zone."
                )
            return Fraction(int((moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()))
        if self.kind == "number" and isinstance(value, float) and math.isfinite(value):
            return Fraction(repr(value))  # the number that was written, 0.1, and not its binary neighbour
        if self.kind == "number" and isinstance(value, (int, Decimal, Fraction)) and not isinstance(value, bool):
            return Fraction(value)
        raise InvalidArgument(f"{value!r:.40} is not a {self.kind}.")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, without what is listed.

        Example:
            >>> Domain.from_dict(Domain("number", Fraction(1, 4), 0, 400).to_dict()).ends
            (Fraction(0, 1), Fraction(100, 1))
        """
        plain = {
            name: getattr(self, name) for name in ("kind", "lower", "upper", "nulls", "required", "steps", "float")
        }
        return plain | {"step": [self.step.numerator, self.step.denominator]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Domain:
        """Return what `to_dict` wrote down."""
        return cls(**{**content, "step": Fraction(*content["step"])})

    def written(self, value: Any) -> Any:
        """Return a value that it can hold as JSON holds it."""
        return value.isoformat() if self.kind in ("date", "timestamp") else _validate.plain(value)

    def read(self, value: Any) -> Any:
        """Return a value that was written."""
        if self.kind == "timestamp":
            return datetime.fromisoformat(value)
        return date.fromisoformat(value) if self.kind == "date" else value

    def moment(self, number: int) -> date | datetime:
        """Return the date, or the time, that a number stands for.

        Example:
            >>> Domain("date").moment(30)
            datetime.date(1970, 1, 31)
        """
        if self.kind == "date":
            return EPOCH + timedelta(days=number)
        return datetime(1970, 1, 1) + timedelta(seconds=number)


def number(step: Fraction, lower: int, upper: int, *, required: bool = False) -> Domain:
    """Return a domain of numbers that the engine holds as steps, or refuse what could leave 64 bits.

    Example:
        >>> number(Fraction(1), 0, 10).steps
        True
    """
    _check(step, lower, upper)
    return Domain("number", step, lower, upper, steps=True, required=required)


def _check(step: Fraction, lower: int, upper: int) -> None:
    if max(-lower, upper) > FARTHEST or not SMALLEST <= step <= LARGEST:
        raise InvalidArgument(
            "the numbers of this expression could leave 64 bits.",
            why="an engine that overflows on one row would tell of it.",
            do="declare narrower bounds, or coarser steps, for its columns.",
        )


def power_of_two(least: Fraction) -> Fraction:
    """Return the least power of two that is no less than a positive number.

    Example:
        >>> power_of_two(Fraction(5)), power_of_two(Fraction(1, 3))
        (Fraction(8, 1), Fraction(1, 2))
    """
    power = Fraction(2) ** (least.numerator.bit_length() - least.denominator.bit_length() - 1)
    while power < least:
        power *= 2
    return power


def _shown(end: Fraction) -> str:
    return f"{float(end):g}" if abs(end) < FARTHEST_BOUND else "beyond all doubles"


def _coarse(step: Fraction, width: Fraction, finest: int) -> Fraction:
    """A multiple of a step, so that at most about `finest` of them fit into a width."""
    return step * max(1, math.ceil(width / step / finest))
