"""Rows of numbers, each clipped and put on a grid by itself, and their exact sums.

What a row becomes depends on that row alone, whatever it holds: no row is refused, because an error that one row can
cause tells of it. Whole numbers are added as such, so that no order, no overflow and no rounding of a sum exists
(Casacuberta et al. 2022).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..errors import InvalidArgument
from ..units import Adjacency
from .columns import Span, checked_bounds
from .samplers.table import Integers

CHUNK = 2**16  # rows that are added as int64, in two halves, before Python's integers take over
HALF = 32
LOW = 2**HALF - 1
PLAIN = frozenset({bool, int, float, np.float64, np.int64})  # types that NumPy reads together as we read each
FARTHEST = 2**48  # steps from 0 that a bound may lie: doubles are put there exactly, and events take as many


@dataclass(frozen=True)
class Rows:
    """How rows become steps of a grid.

    Args:
        span: The grid points between the bounds.
        low: The lower bound.
        high: The upper bound.
        missing: The grid point that stands for a missing number; None: such a row is left out.
    """

    span: Span
    low: float
    high: float
    missing: int | None

    @classmethod
    def of(
        cls, bounds: Any, missing: float | None, *, finest: int, reach: str = "width", integers: bool = False
    ) -> Rows:
        """Return the finest grid on which the bounds, their distance or the farther one, are so few steps apart.

        Args:
            bounds: Public, the lower under the upper.
            missing: A number between them that stands for missing ones, or None.
            finest: How many steps the reach may have.
            reach: "width", the distance of the bounds, or "size", the larger of their absolute values.
            integers: The grid is the whole numbers.

        Example:
            >>> rows = Rows.of((0, 10), None, finest=1000)
            >>> rows.span.upper, float(rows.span.step)
            (640, 0.015625)
        """
        low, high = checked_bounds(bounds, integers)
        size = max(-low, high)
        if integers and size > FARTHEST:
            raise InvalidArgument(f"bounds={_validate.shown(bounds)} are not in [-2^48, 2^48].", do="Take other units.")
        apart = high - low if reach == "width" else size
        exponent = None if integers else max(_exponent(size, FARTHEST), _exponent(apart, finest))
        step = Fraction(1) if exponent is None else Fraction(2) ** exponent
        span = Span(exponent, math.ceil(low / step), math.floor(high / step))
        if span.upper <= span.lower:
            raise InvalidArgument(
                f"bounds={_validate.shown(bounds)} are closer together than {float(step):.3g}, a step of the grid.",
                why="the grid is as fine as noise of this size, or numbers of this size, can be drawn on.",
                do="Take wider bounds, ask for less noise, or subtract a public constant from the data.",
            )
        stands = None if missing is None else Fraction(_validate.real("missing", missing, float(low), float(high)))
        placed = None if stands is None else min(max(round(stands / step), span.lower), span.upper)
        return cls(span, float(low), float(high), placed)

    @property
    def width(self) -> int:
        """How many steps the bounds are apart."""
        return self.span.upper - self.span.lower

    def power_sums(self, name: str, values: Any, degree: int) -> tuple[int, ...]:
        """Return n, Σk, Σk² … up to a degree of 2 as exact integers, where k counts steps from the lower bound.

        Privacy: a row adds (1, k, k²) with 0 ≤ k ≤ width, or nothing where it is missing and left out, and what it
        adds depends on no other row; so one row more moves the sums by exactly that.

        Example:
            >>> rows = Rows.of((0, 10), None, finest=10, integers=True)
            >>> rows.power_sums("values", [3, 4.4, float("inf"), float("nan"), None], 2)
            (3, 17, 125)
        """
        rows = read(name, values)
        totals = [0] * (degree + 1)
        for first in range(0, rows.size, CHUNK):
            steps = self._steps(rows[first : first + CHUNK])
            totals[0] += steps.size
            raised = steps
            for power in range(1, degree + 1):
                totals[power] += (int((raised >> HALF).sum()) << HALF) + int((raised & LOW).sum())
                raised = raised * steps if power < degree else raised
        return tuple(totals)

    def _steps(self, rows: NDArray[np.float64]) -> Integers:
        """Steps from the lower bound: clipped, rounded to the nearest grid point, kept inside the bounds."""
        missing = np.isnan(rows)
        if self.missing is None:
            rows = rows[~missing]
        else:
            rows = np.where(missing, self.span.value(self.missing), rows)
        return _nearest(self.span, rows) - self.span.lower


def sorted_rows(span: Span, name: str, values: Any, adjacency: Adjacency | None) -> Integers:
    """Return rows in steps, each at its nearest point inside the bounds, in ascending order; none is refused.

    Privacy: a row that is no number is left out, or stands in the middle where the number of rows is public
    (`replace_one`): what a row becomes depends on it alone.

    Example:
        >>> sorted_rows(Span(None, 0, 10), "values", [12, 3.4, None], "replace_one")
        array([ 3,  5, 10])
    """
    rows = read(name, values)
    missing = np.isnan(rows)
    middle = span.value((span.lower + span.upper) // 2)
    rows = np.where(missing, middle, rows) if adjacency == "replace_one" else rows[~missing]
    return np.sort(_nearest(span, rows))


def _nearest(span: Span, rows: NDArray[np.float64]) -> Integers:
    """Return for each row its nearest grid point inside the bounds."""
    ends = float(span.value(span.lower)), float(span.value(span.upper))
    return np.rint(np.ldexp(np.clip(rows, *ends), -(span.exponent or 0))).astype(np.int64)


def read(name: str, values: Any) -> NDArray[np.float64]:
    """Return rows as doubles, NaN for what is no number; refuse only what its type shows to be no column.

    Each row is rounded by itself and in order, so that clipping comes out as if it had been done before. True and
    False are 1 and 0. Where types differ from row to row, each is read alone: NumPy would let one decide for all.

    Example:
        >>> read("values", [1, None, "two", 10**400, True])
        array([ 1., nan, nan, inf,  1.])
    """
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray, memoryview)):
        rows: Any = list(values)
        if set(map(type, rows)) <= PLAIN:
            with suppress(OverflowError):  # a whole number beyond any double, beside a float
                found = np.asarray(rows)
                if found.dtype.kind in "biuf":
                    return found.astype(np.float64)
        return np.array([_number(row) for row in rows], dtype=np.float64)
    typed = hasattr(values, "dtype") or hasattr(values, "__array__")
    array = np.asarray(values) if typed else np.empty(())
    if array.ndim == 1 and array.dtype.kind in "biufO":
        with np.errstate(over="ignore"):  # long doubles beyond the largest double
            plain = array.dtype != object
            found = array.astype(np.float64) if plain else np.array([_number(row) for row in array], dtype=np.float64)
        return np.where(np.ma.getmaskarray(values), np.nan, found) if np.ma.isMaskedArray(values) else found
    raise InvalidArgument(f"{name} is not a column of numbers.", do="Pass a list or a one-dimensional array of them.")


def _number(entry: Any) -> float:
    """One row; what is no real number is NaN."""
    if not isinstance(entry, (numbers.Real, Decimal, np.bool_)):
        return math.nan
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else -math.inf  # type: ignore[operator]
    except Exception:  # whatever a row of a strange type raises would tell of it
        return math.nan


def _exponent(size: Fraction, steps: int) -> int:
    """The least e with size ≤ steps 2^e."""
    ratio = size / steps
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length() - 1
    while size > steps * Fraction(2) ** exponent:
        exponent += 1
    return exponent
