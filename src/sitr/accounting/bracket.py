"""A number known to lie between two others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from operator import ge, gt, le, lt
from typing import Any, ClassVar, Literal

import numpy as np

from .. import markup
from ..display import counted, rounded_down, rounded_up

DIGITS = 8  # of an end that is shown
SHOWN = 20  # numbers of a bracket of arrays that are shown


@dataclass(frozen=True, eq=False)
class Bracket:
    """The truth lies in `[lower, upper]` (THEORY 4.5); `float()` is the safe side.

    The bounds are floats, or arrays where arrays were asked for. Read as a number, an epsilon or a delta is its
    upper end; a type-II error (`safe="lower"`) is its lower end.

    A comparison with a number holds if it holds of the whole bracket: `<` and `<=` ask the upper end, `>` and `>=` the
    lower one. So `b <= x` and `b > x` may both be false, where x lies inside. Two brackets have no order.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> bracket = Gaussian(noise_multiplier=2.0).epsilon(delta=1e-6)
        >>> round(float(bracket), 6), bracket.method
        (2.254085, 'closed form')
        >>> f"{bracket:.3f}"
        '2.254'
        >>> bracket <= 2.26, bracket > 2.25, Bracket(1.0, 2.0, "by hand") <= 1.5, Bracket(1.0, 2.0, "by hand") > 1.5
        (True, True, False, False)
    """

    __array_priority__: ClassVar[float] = 1.0  # `array < bracket` is asked here: NumPy would read the safe side

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

    def __repr__(self) -> str:
        ends = f"lower={self.lower!r}, upper={self.upper!r}"
        if np.ndim(self.upper):
            ends = f"of {counted(np.size(self.upper), 'number')}"
        return f"Bracket({ends}, method={self.method!r}, safe={self.safe!r})"

    def _repr_html_(self) -> str:
        lower, upper = (np.ravel(end)[:SHOWN].tolist() for end in (self.lower, self.upper))
        rows = [(rounded_down(low, DIGITS), rounded_up(high, DIGITS)) for low, high in zip(lower, upper, strict=True)]
        more = np.size(self.upper) - len(rows)
        below = [f"… {counted(more, 'more number')}"] if more else []
        return markup.page(markup.table(("lower", "upper"), rows, numbers=2), markup.lines(*below, f"by {self.method}"))

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bracket):
            return NotImplemented
        same = np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)
        return bool(same) and self.safe == other.safe

    def __lt__(self, other: object) -> Any:
        return _compared(lt, self.upper, other)

    def __le__(self, other: object) -> Any:
        return _compared(le, self.upper, other)

    def __gt__(self, other: object) -> Any:
        return _compared(gt, self.lower, other)

    def __ge__(self, other: object) -> Any:
        return _compared(ge, self.lower, other)


def _compared(relation: Callable[[Any, Any], Any], end: Any, other: object) -> Any:
    """Compare one end with a number, or with each of an array; nothing else has a place in this order."""
    return relation(end, other) if isinstance(other, (Real, np.ndarray)) else NotImplemented
