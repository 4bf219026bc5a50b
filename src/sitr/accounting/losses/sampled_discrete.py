"""Poisson-sampled discrete Gaussian noise: the sum over the integers itself (THEORY 2.4, 2.7).

On a fine grid that sum is the integral of the continuous law. Poisson summation bounds their difference at c + it: with
y = aσ²/Δ and an angle a up to which |r(x+iy)| ≥ r(x) cos(a/2), it is at most 2 e^{-2πy + stretch + a|t|} of M(c), where
`stretch` is that of `SampledGaussianLoss`. Up to |t| = 3σ²/Δ and the steepest tilt below, a = 15Δ/σ² makes this e^-41.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .gaussian import DiscreteGaussianLoss
from .law import (
    FARTHEST,
    SMALL,
    UNIT,
    Complexes,
    Floats,
    Loss,
    Pair,
    log_sum_exp,
    profile_of,
    small_log_moment,
    small_mean,
    waves,
    waves_error,
)
from .sampled import SampledGaussianLoss

WIDE = 13.0  # deviations kept beyond both ends of the tilted law: less than 1e-37 of it lies outside
MOST_POINTS = 4_000_000
FINE = 1.5  # from this scale on the sum of e^{-x²/2σ²} is its integral to e^-44; moments follow on a finer grid
FAINT = 90.0  # points this many nats under the largest are dropped
FINEST = 1000.0  # from this scale on, in units of the grid and of sensitivity over scale, the continuous law is taken


def is_fine(scale: float, sensitivity: int) -> bool:
    """Return whether a grid is so fine that a sample of its noise has the continuous law."""
    return min(scale, scale**2 / sensitivity) >= FINEST


@dataclass(frozen=True)
class SampledDiscreteLoss(Loss):
    """One order of (1-q) P0 + q P1 against P0, P0 the discrete Gaussian and P1 the same moved by `sensitivity`."""

    scale: float
    sensitivity: int
    q: float
    removes: bool

    @classmethod
    def pair(cls, scale: float, sensitivity: int, q: float) -> Pair:
        """Return both orders."""
        return Pair(cls(scale, sensitivity, q, True), cls(scale, sensitivity, q, False), leads=True)

    @property
    def parts(self) -> tuple[tuple[Pair, int], ...]:
        """What is sampled, as `SampledMix` has it."""
        return ((Pair.symmetric(DiscreteGaussianLoss(self.scale, self.sensitivity)), 1),)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return math.inf if self.removes else -math.log1p(-self.q)

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return math.log1p(-self.q) if self.removes else -math.inf

    @property
    def is_fine(self) -> bool:
        """Whether the grid is so fine that the continuous law is this one, up to `reach`."""
        return is_fine(self.scale, self.sensitivity)

    @cached_property
    def _smooth(self) -> SampledGaussianLoss:
        """The continuous law."""
        return SampledGaussianLoss(self.scale / self.sensitivity, self.q, self.removes)

    @property
    def reach(self) -> float:  # type: ignore[override]
        return 3 * self.scale**2 / self.sensitivity if self.is_fine else math.inf

    @property
    def tilt_limit(self) -> float:  # type: ignore[override]
        if not self.is_fine:
            return MOST_POINTS / 4 / self.sensitivity
        steepest = (0.08 * self.scale**2 / self.sensitivity) ** 2 - 1  # for a negative power of r
        return math.inf if self.removes else min(steepest, self._smooth.tilt_limit)

    @lru_cache(maxsize=16)  # noqa: B019 - laws are frozen and small
    def _tilted(self, c: float) -> tuple[Floats, Floats, float]:
        """Return losses, tilted probabilities and ln M(c), over the integers that carry the tilted law.

        P0(x) r^{1+c} (or r^{-c}) lies between P0 and P0 moved by the steepest slope of its log, (1+c) sensitivities.
        """
        power = 1 + c if self.removes else -c
        far = math.ceil(WIDE * self.scale) + 1
        low, high = -far + min(power * self.sensitivity, 0.0), far + max(power * self.sensitivity, 0.0)
        if high - low > MOST_POINTS:
            raise MemoryError("too many points of a discrete Gaussian")
        x = np.arange(math.floor(low), math.ceil(high) + 1, dtype=np.float64)
        base = -(x**2) / (2 * self.scale**2)
        u = (2 * self.sensitivity * x - self.sensitivity**2) / (2 * self.scale**2)
        large = np.logaddexp(math.log1p(-self.q), u + math.log(self.q))
        ratio = np.where(u < 600, np.log1p(self.q * np.expm1(np.minimum(u, 600.0))), large)
        logs = base - log_sum_exp(base[np.abs(x) <= far]) + power * ratio
        kept = logs > np.max(logs) - FAINT
        total = float(log_sum_exp(logs[kept]))
        return (ratio if self.removes else -ratio)[kept], np.exp(logs[kept] - total), total

    def log_mgf(self, x: Floats) -> Floats:
        return np.array([self._log_moment(float(c)) for c in np.atleast_1d(x)]).reshape(np.shape(x))

    def _log_moment(self, c: float) -> float:
        if c == 0:
            return 0.0
        if abs(c) > self.tilt_limit:
            # As an upper bound: mixing in P0 only lowers the divergence, and discrete noise is under ρα (THEORY 2.4).
            return (self.sensitivity / self.scale) ** 2 * c * (c + 1) / 2 if self.removes else c * self.largest
        # The sum over the integers is a trapezoid sum of the continuous law's integral, with this step.
        if self.scale >= FINE and 1 / self.sensitivity <= self._smooth.widest_step(c):
            return float(self._smooth.log_mgf(np.float64(c)))
        losses, weights, total = self._tilted(c)
        if abs(total) > SMALL or abs(c) * float(np.max(np.abs(losses))) > FARTHEST:
            return total
        return small_log_moment(c, losses, weights * np.exp(total - c * losses))

    def work(self, c: float) -> int:
        return self._smooth.work(c) if self.is_fine else int(self._tilted(c)[0].size)

    def log_decay(self, c: float, t: Floats) -> Floats:
        return self._smooth.log_decay(c, t) if self.is_fine else super().log_decay(c, t)

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        if self.is_fine:
            return self._smooth.ratios(c, step, count)
        losses, weights, _ = self._tilted(c)
        tilt = 4 * UNIT * c * float(np.sum(weights * np.abs(losses)))
        return waves(losses, weights, step, count), waves_error(losses, weights, step * count) + tilt + 1e-35

    def profile(self, epsilon: Floats) -> Floats:
        if self.is_fine:
            return self._smooth.profile(epsilon)
        losses, weights, _ = self._tilted(0.0)
        return profile_of(losses, weights, epsilon)

    @lru_cache(maxsize=256)  # noqa: B019 - see _tilted; every composition asks for it again
    def mean(self) -> float:
        if self.is_fine:
            return self._smooth.mean()
        losses, weights, _ = self._tilted(0.0)
        return small_mean(losses, weights)
