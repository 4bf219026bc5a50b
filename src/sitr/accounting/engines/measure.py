"""What the vertical line asks of the measure that it integrates."""

from __future__ import annotations

from typing import Protocol

from ..losses.law import Complexes, Floats


class Measure(Protocol):
    """A positive measure on losses: a composed law, or the part of one that has rare steps, or has none."""

    @property
    def reach(self) -> float:
        """How far up the line `ratios` is accurate."""

    @property
    def largest(self) -> float:
        """The largest loss."""

    @property
    def mass(self) -> float:
        """An upper bound on the total mass."""

    @property
    def mean(self) -> float:
        """About the mean loss; only a hint."""

    def log_mgf(self, x: Floats | float) -> Floats:
        """Return the log of the moment generating function at real x."""

    def log_mgf_error(self, c: float) -> float:
        """Bound the rounding error of `log_mgf` at c."""

    def work(self, c: float) -> int:
        """About how many multiplications one node of the line costs."""

    def ratios(self, c: float, step: float, count: int, whisper: float) -> tuple[Complexes, float]:
        """Return the transform on c + i k step over its value at c, smoothed, and a bound on each error."""

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Bound the log modulus of the transform over its value at c, from t up to `reach`."""
