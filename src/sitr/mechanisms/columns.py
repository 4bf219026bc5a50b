"""Columns of numbers of any length, on a grid and within bounds.

Each number is moved by itself, before anything is computed of the column: neighbours stay neighbours, and neither
clamping nor rounding costs anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _validate
from ..errors import InvalidArgument
from .additive import LEAST, MOST
from .grid import FARTHEST, Grid
from .samplers.table import Integers


def column(name: str, values: Any, exponent: int | None, most: int) -> Integers:
    """Return numbers of any length up to `most` in steps of 2^exponent, or refuse them without showing them."""
    try:
        count = 1 if isinstance(values, (str, bytes)) else len(values)
    except TypeError:
        count = 1
    if count > most:
        raise InvalidArgument(f"{name} has more than {most} numbers.", do="Pass fewer at a time.")
    if count == 0 and np.ndim(values) == 1:
        return np.empty(0, dtype=np.int64)
    try:
        return Grid(exponent, count).placed(name, values)
    except InvalidArgument:
        kind = "whole numbers" if exponent is None else "finite numbers"
        raise InvalidArgument(f"{name} is not a sequence of {kind}.", do="Pass a list or an array of them.") from None


@dataclass(frozen=True)
class Span:
    """The grid points between two public bounds.

    Args:
        exponent: The grid is the multiples of 2^exponent; None for integers.
        lower: The first grid point inside the bounds, in steps.
        upper: The last one.
    """

    exponent: int | None
    lower: int
    upper: int

    @classmethod
    def of(cls, bounds: tuple[float, float], integers: bool, finest: Fraction | None = None) -> Span:
        """Return the grid for bounds: 2^20 times finer than their distance, or than `finest` where that is less.

        Example:
            >>> Span.of((0, 100), integers=True).upper
            100
        """
        low, high = checked_bounds(bounds, integers)
        grid = Grid(None, None) if integers else Grid.below(min(finest or high - low, high - low), None)
        span = cls(grid.exponent, math.ceil(low / grid.step), math.floor(high / grid.step))
        if max(-span.lower, span.upper) > FARTHEST:
            raise InvalidArgument(
                f"bounds={_validate.shown(bounds)} lie {float(max(-low, high) / (high - low)):.3g} times their distance"
                " from 0, too far for a grid between them.",
                do="Subtract a public constant from the data, or take wider bounds.",
            )
        return span

    @property
    def step(self) -> Fraction:
        """How far apart its points are."""
        return Grid(self.exponent, None).step

    def value(self, steps: int) -> Any:
        """Return what lies so many steps out."""
        return steps if self.exponent is None else math.ldexp(float(steps), self.exponent)


def checked_bounds(bounds: Any, integers: bool) -> tuple[Fraction, Fraction]:
    """Return two public numbers, the first under the second."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"bounds={_validate.shown(bounds)} is not a pair.", do="Pass bounds=(lower, upper)."
        ) from None
    if integers:
        ends = [Fraction(_validate.integer("bounds", end, -FARTHEST, FARTHEST)) for end in (low, high)]
    else:
        ends = [Fraction(_validate.real("bounds", end, -MOST, MOST)) for end in (low, high)]
    if ends[1] - ends[0] < LEAST:
        raise InvalidArgument(
            f"bounds={_validate.shown(bounds)}: the lower is not under the upper.", do="Pass bounds=(lower, upper)."
        )
    return ends[0], ends[1]
