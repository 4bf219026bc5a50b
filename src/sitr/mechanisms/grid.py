"""Numbers on a grid: integers as they are, floats on a power of two, with the rounding charged to the sensitivity.

Floats have unevenly spaced values, and noise added to one betrays it by its last bits. On a grid that is fixed before
the data are seen, value and noise are integers, and the answer is exact (THEORY 2.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from .samplers.table import Integers

FINENESS = 20  # a grid of floats is 2^20 times finer than the noise
FARTHEST = 2**52  # grid points that a float can still tell apart, with room for noise
FARTHEST_INTEGER = 2**61


@dataclass(frozen=True)
class Grid:
    """Where the answers of a mechanism lie.

    Args:
        exponent: The grid is the multiples of 2^exponent; None for integers as they are.
        length: How many numbers an answer has; None for a single one.
    """

    exponent: int | None
    length: int | None

    @classmethod
    def below(cls, scale: Fraction, length: int | None) -> Grid:
        """Return a grid for floats that noise of this scale covers."""
        return cls(math.frexp(float(scale))[1] - 1 - FINENESS, length)

    @property
    def step(self) -> Fraction:
        """How far apart its points are."""
        return Fraction(1) if self.exponent is None else Fraction(2) ** self.exponent

    @property
    def count(self) -> int:
        """How many numbers an answer has."""
        return 1 if self.length is None else self.length

    def cells(self, sensitivity: Fraction) -> Fraction:
        """Return a sensitivity in grid steps."""
        return sensitivity / self.step

    def placed(self, name: str, value: Any) -> Integers:
        """Return a value, or a vector, in grid steps: the nearest point, and no farther than the farthest.

        Privacy: each coordinate moves by half a step at most, so two neighbours' distance grows by at most one step a
        coordinate; what lies beyond the farthest point is moved there, which brings neighbours no farther apart.
        """
        array = self._numbers(name, value)
        if self.exponent is None:
            return np.asarray(np.clip(array, -FARTHEST_INTEGER, FARTHEST_INTEGER), dtype=np.int64)
        with np.errstate(over="ignore"):
            steps = np.rint(np.ldexp(array, -self.exponent))
        return np.asarray(np.clip(steps, -FARTHEST, FARTHEST), dtype=np.int64)

    def value(self, steps: Integers) -> Any:
        """Return what lies so many steps out: a number, or an array of them."""
        found = steps if self.exponent is None else np.ldexp(steps.astype(np.float64), self.exponent)
        return found if self.length is not None else found[0].item()

    def _numbers(self, name: str, value: Any) -> NDArray[Any]:
        """Refuse what is not made of numbers of the right kind and shape, without showing it."""
        kind = "whole numbers" if self.exponent is None else "finite numbers"
        wanted = f"a sequence of {self.length} {kind}" if self.length is not None else f"one of the {kind}"
        refusal = InvalidArgument(f"{name} is not {wanted}.", do="Pass what the mechanism was made for.")
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            raise refusal from None
        if self.exponent is None and array.dtype == object:  # Python's own whole numbers have no largest
            array = _bounded(array)
        allowed = "iu" if self.exponent is None else "iuf"
        if array.dtype.kind not in allowed or array.shape != (() if self.length is None else (self.length,)):
            raise refusal
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise refusal
        return np.atleast_1d(array if self.exponent is None else array.astype(np.float64))


def _bounded(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of large Python integers as int64, moved to the farthest point where they are beyond it."""
    if not all(type(number) is int for number in array.ravel()):
        return array
    bounded = [min(max(number, -FARTHEST_INTEGER), FARTHEST_INTEGER) for number in array.ravel()]
    return np.array(bounded, dtype=np.int64).reshape(array.shape)
