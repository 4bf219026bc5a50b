"""The Rényi curve of events run on one batch without replacement, under replace-one (THEORY 2.8).

With p the density under P of a loss l of the remove order, the pair of a batch has p(l) at l > 0 and e^{-l} p(l) at -l.
So M(x) - 1 is the integral over l > 0 of p times e^{xl} - 1 + e^{-l}(e^{-xl} - 1), which is at most e^{xl}, and at most
twice e^{xl} - 1 + x(e^{-l} - 1), whose integral over all l is that of the remove order. And a mixture of pairs has no
larger divergence than the largest of them, which is that of what is run on everyone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .engines.mix import Mix
from .losses.atoms import two_point
from .losses.law import Complexes, Floats, Loss
from .sampled_mix import NEAR


@dataclass(frozen=True, eq=False)
class BatchMix(Loss):
    """Both orders of `parts` on a batch, the share q of all.

    `removed` are their remove orders on a Poisson sample, and `whole` both orders of what is run on everyone.
    """

    parts: Any
    q: float
    removed: tuple[Loss, ...]
    whole: tuple[Mix, ...]

    @property
    def infinite_mass(self) -> float:  # type: ignore[override]
        """The larger of both orders: either value may be the one that the others have."""
        return max(curve.infinite_mass for curve in self.removed)

    @property
    def largest(self) -> float:  # type: ignore[override]
        """The largest finite loss."""
        return max(curve.largest for curve in self.removed)

    @property
    def largest_below(self) -> float:
        """What some loss reaches."""
        return max(curve.largest_below for curve in self.removed)

    def mean(self) -> float:
        """Return a bound on E L, which no divergence of a higher order is under."""
        return float(self.log_mgf(NEAR)) / NEAR

    def log_mgf(self, x: Floats) -> Floats:
        """Return a bound on ln M(x) for real x > 0."""
        x = np.asarray(x, dtype=np.float64)
        values = np.array([self._bound(float(c)) if c > 0 else 0.0 for c in x.ravel()]).reshape(x.shape)
        return values if self._pure is None else np.minimum(values, self._pure.log_mgf(x))

    @cached_property
    def _pure(self) -> Loss | None:
        """The worst law whose losses are no larger."""
        return two_point(self.largest, 0.0).forward if math.isfinite(self.largest) else None

    def _bound(self, c: float) -> float:
        if self.infinite_mass:
            return self._mirrored(c)
        return min(self._mirrored(c), max(float(mix.log_mgf(c)) for mix in self.whole))

    def _mirrored(self, c: float) -> float:
        """Bound ln M(c) by the integral above."""
        excess = math.fsum(self._excess(curve, c) for curve in self.removed) / (1 - self.infinite_mass)
        if math.isfinite(excess):
            return math.log1p(excess)
        logs = [math.log1p(-curve.infinite_mass) + float(curve.log_mgf(np.float64(c))) for curve in self.removed]
        return float(np.logaddexp.reduce([0.0, *logs])) - math.log1p(-self.infinite_mass)

    @staticmethod
    def _excess(curve: Loss, c: float) -> float:
        """Bound the integral above for one order; of P's mass the share m is infinite loss, and E e^{-L} is 1/(1-m)."""
        fails, log_moment = curve.infinite_mass, float(curve.log_mgf(np.float64(c)))
        if log_moment > 700:
            return math.inf
        finite = 1 - fails
        return min(2 * max(finite * math.expm1(log_moment) + c * fails, 0.0), finite * math.exp(log_moment))

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        """Refuse: a Rényi curve is no law."""
        raise TypeError("a Rényi curve has no characteristic function")

    def profile(self, epsilon: Floats) -> Floats:
        """Refuse: a Rényi curve is no law."""
        raise TypeError("a Rényi curve has no profile")
