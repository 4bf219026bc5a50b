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
WHOLE = (int, np.integer)
FLOATS = (float, np.floating)


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
    def below(cls, scale: Fraction, length: int | None, finer: int = 0) -> Grid:
        """Return a grid for floats that noise of this scale covers; a long vector's is `finer` by so many bits."""
        return cls(math.frexp(float(scale))[1] - 1 - FINENESS - finer, length)

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
        farthest = FARTHEST_INTEGER if self.exponent is None else FARTHEST
        if array.dtype == object or (array.dtype.kind in "iu" and self.exponent is not None and self.exponent > 60):
            nearest = (round(_exactly(number) / self.step) for number in array)
            return np.array([min(max(steps, -farthest), farthest) for steps in nearest], dtype=np.int64)
        if self.exponent is None:
            steps = array
        elif array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                steps = np.rint(np.ldexp(array, -self.exponent))
        elif self.exponent > 0:  # ties to even, as everywhere: how one number is rounded may not depend on the others
            steps, half = array >> self.exponent, 1 << self.exponent - 1
            rest = array - (steps << self.exponent)
            steps = steps + ((rest > half) | ((rest == half) & (steps & 1 == 1)))
        else:  # what is beyond the farthest point is moved there first, so that nothing overflows
            reach = max(FARTHEST.bit_length() - 1 + self.exponent, 0)
            inside = np.asarray(np.clip(array, -(1 << reach), 1 << reach), dtype=np.int64)
            steps = inside << min(-self.exponent, FARTHEST.bit_length() - 1)
        return np.asarray(np.clip(steps, -farthest, farthest), dtype=np.int64)

    def value(self, steps: Integers) -> Any:
        """Return what lies so many steps out: a number, or an array of them."""
        found = steps if self.exponent is None else np.ldexp(steps.astype(np.float64), self.exponent)
        return found if self.length is not None else found[0].item()

    def _numbers(self, name: str, value: Any) -> NDArray[Any]:
        """Refuse what is not made of numbers of the right kind and shape, without showing it."""
        kind = "whole numbers" if self.exponent is None else "finite numbers"
        wanted = f"a sequence of {self.length} {kind}" if self.length is not None else f"one of the {kind}"
        refusal = InvalidArgument(
            f"{name} is not {wanted}.",
            do="Pass what the mechanism was made for: length= says how many numbers, integers= of which kind.",
        )
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            raise refusal from None
        coarse = self.exponent is None or self.exponent > 0
        mixed = coarse and array.dtype.kind == "f" and isinstance(value, (list, tuple))
        if mixed and any(isinstance(number, WHOLE) for number in value):
            array = np.array(value, dtype=object)  # NumPy made floats of whole numbers that may be too large for them
        shape = () if self.length is None else (self.length,)
        if array.shape != shape or not _all_numbers(array, floats=self.exponent is not None):
            raise refusal
        wide = {"i": np.int64, "u": np.uint64, "f": np.float64}.get(array.dtype.kind, object)
        return np.atleast_1d(array.astype(np.result_type(array.dtype, wide), copy=False))


def _all_numbers(array: NDArray[Any], floats: bool) -> bool:
    """Whether an array holds whole numbers alone, or also finite floats where those are allowed."""
    if array.dtype == object:  # Python's own whole numbers have no largest
        return all(
            (isinstance(number, WHOLE) and not isinstance(number, bool))
            or (floats and isinstance(number, FLOATS) and bool(np.isfinite(number)))
            for number in array.ravel()
        )
    return array.dtype.kind in "iu" or (floats and array.dtype.kind == "f" and bool(np.all(np.isfinite(array))))


def _exactly(number: Any) -> Fraction:
    """Return a number of Python or NumPy as it is."""
    return Fraction(int(number)) if isinstance(number, WHOLE) else Fraction(*number.as_integer_ratio())
