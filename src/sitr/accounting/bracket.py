"""A number known to lie between two others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True, eq=False)
class Bracket:
    """The truth lies in `[lower, upper]` (THEORY 4.5); `float()` is the safe side.

    The bounds are floats, or arrays where arrays were asked for. Read as a number, an epsilon or a delta is its
    upper end; a type-II error (`safe="lower"`) is its lower end.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> bracket = Gaussian(noise_multiplier=2.0).epsilon(delta=1e-6)
        >>> round(float(bracket), 6), bracket.method
        (2.254085, 'closed form')
        >>> f"{bracket:.3f}"
        '2.254'
    """

    lower: Any
    upper: Any
    method: str
    safe: Literal["upper", "lower"] = "upper"

    @property
    def value(self) -> Any:
        """The safe side, a float or an array: the upper end of a cost, the lower of a type-II error (THEORY 1.5, 4.5).

        Example:
            >>> from sitr.accounting import Gaussian
            >>> round(Gaussian(noise_multiplier=1.0).tradeoff(0.5).value, 4)
            0.1587
        """
        return self.upper if self.safe == "upper" else self.lower

    @property
    def width(self) -> Any:
        """How far apart the two ends are: the error of the computation, and what a claim leaves open (THEORY 4.5).

        Example:
            >>> from sitr.accounting import ZeroConcentrated
            >>> round(float(ZeroConcentrated(rho=0.5).epsilon(delta=1e-6).width), 4)
            0.335
        """
        with np.errstate(invalid="ignore"):  # two infinite ends are not apart
            return np.where(np.equal(self.lower, self.upper), 0.0, np.subtract(self.upper, self.lower))[()]

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bracket):
            return NotImplemented
        same = np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)
        return bool(same) and self.safe == other.safe
