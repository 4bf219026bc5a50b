"""The Rényi curve of several events run on one Poisson sample (THEORY 2.7).

With w = P/Q of the composition and r = 1 - q + qw, the *remove* order has M(x) = E_Q r^{1+x} and the *add* order M(x) =
E_Q r^{-x}. Of w only the moments of both orders are known, K(x) = ln E_P w^x; everything here is an upper bound on
ln M, and at whole orders of the remove order it is exact where K is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln

from .engines.mix import Mix
from .losses.law import Complexes, Floats, Loss, share_of
from .losses.rounding import ROUNDED, added_above, sampled_above
from .losses.sampled_curve import log_ratio

MOST_TERMS = 1000  # of a binomial sum; at higher orders convexity says nearly as much
SLACK = 1e-10  # by how much a sum is raised for the rounding in its terms
NEAR = 1e-3  # D_{1+NEAR} stands for the mean, which it bounds


@dataclass(frozen=True, eq=False)
class SampledMix(Loss):
    """One order; `forward` and `backward` are the composed curves of both orders before sampling, of `parts`."""

    parts: Any
    forward: Mix
    backward: Mix
    q: float
    removes: bool

    @property
    def infinite_mass(self) -> float:  # type: ignore[override]
        """Q has no mass where w is infinite: only the remove order has such losses."""
        return share_of(self.q, self.forward.infinite_mass) if self.removes else 0.0

    @cached_property
    def largest(self) -> float:  # type: ignore[override]
        """The largest finite loss: where w is largest (remove) or least (add)."""
        if self.removes:
            return sampled_above(self.forward.largest, self.q)
        return added_above(-math.inf if self.backward.infinite_mass else self.forward.smallest, self.q)

    @property
    def largest_below(self) -> float:
        """What some loss reaches."""
        if self.removes:
            return log_ratio(self.forward.largest_below, self.q) * (1 - ROUNDED)
        least = -math.inf if self.backward.infinite_mass else self.forward.smallest * (1 - ROUNDED)
        return -log_ratio(least, self.q) * (1 - ROUNDED)

    def mean(self) -> float:
        """Return a bound on E L, which no divergence of a higher order is under."""
        return float(self.log_mgf(NEAR)) / NEAR

    def log_mgf(self, x: Floats) -> Floats:
        """Return a bound on ln M(x) for real x > 0."""
        x = np.asarray(x, dtype=np.float64)
        return np.array([self._log_moment(float(c)) for c in x.ravel()]).reshape(x.shape)

    @lru_cache(maxsize=4096)  # noqa: B019 - as of `_whole`: else samples of samples would ask twice at each level
    def _log_moment(self, c: float) -> float:
        if c <= 0:
            return 0.0
        return min(self._remove(c) if self.removes else self._add(c), c * self.largest)

    def _remove(self, c: float) -> float:
        """The least of what holds: r^{1+c} is convex in w; ln M is convex in c; near 1, r^{1+c} is under a parabola."""
        # (1-q) + q w^{1+c} is over r^{1+c}; K is of finite losses, which P has 1 - m of and the sample 1 - qm.
        fails = self.forward.infinite_mass
        finite = float(self.forward.log_mgf(c)) + math.log1p(-fails) if fails < 1 else -math.inf
        bounds = [float(np.logaddexp(math.log1p(-self.q), math.log(self.q) + finite)) - math.log1p(-self.q * fails)]
        if c + 1 < MOST_TERMS:
            below = math.floor(c)
            share = c - below
            bounds.append((1 - share) * self._whole(below + 1) + (share * self._whole(below + 2) if share else 0.0))
        if c < 1 and not self.forward.infinite_mass:
            # With y = r - 1 ≥ -q: (1+y)^{1+c} ≤ 1 + (1+c) y + (1+c) c/2 (1-q)^{c-1} y², and E_Q y = 0.
            bounds.append(self._parabola(c * (c + 1) / 2, c - 1))
        return min(bounds)

    @lru_cache(maxsize=4096)  # noqa: B019 - curves are frozen; every order between two whole ones asks for both
    def _whole(self, alpha: int) -> float:
        """Bound ln M at a whole order: 1 + Σ_k≥2 C(α,k) (1-q)^{α-k} q^k (e^{K(k-1)} - 1); exact without infinite loss.

        The binomial weights sum to one, and E_Q w^k is at most e^{K(k-1)}, which is 1 at k = 0 and 1.
        """
        if alpha < 2:
            return 0.0
        k = np.arange(2, alpha + 1)
        weights = gammaln(alpha + 1) - gammaln(k + 1) - gammaln(alpha - k + 1)
        weights = weights + (alpha - k) * math.log1p(-self.q) + k * math.log(self.q)
        moments = np.maximum(_moments(self.forward, min(1 << (alpha - 1).bit_length(), MOST_TERMS))[: alpha - 1], 0.0)
        with np.errstate(divide="ignore"):
            logs = weights + moments + np.log(-np.expm1(-moments))
        highest = float(np.max(logs))
        if not math.isfinite(highest):
            return 0.0 if highest < 0 else math.inf
        excess = math.log(float(np.sum(np.exp(logs - highest)))) + highest + SLACK
        return float(np.logaddexp(0.0, excess)) if excess > -30 else math.exp(excess)

    def _add(self, c: float) -> float:
        """The least of what holds: r ≥ w^q (means), r ≥ 1 - q, and r^{-c} lies under a parabola in w."""
        only_q = self.backward.infinite_mass  # where w is 0 and r is 1 - q
        bound = float(self.backward.log_mgf(self.q * c))
        if only_q:
            finite = math.log1p(-only_q) + bound if only_q < 1 else -math.inf
            bound = float(np.logaddexp(finite, math.log(only_q) - c * math.log1p(-self.q)))
        if only_q or self.forward.infinite_mass:
            return bound
        return min(bound, self._parabola(c * (c + 1) / 2, -c - 2))

    def _parabola(self, half: float, power: float) -> float:
        """Return ln(1 + half (1-q)^power q² E_Q (w-1)²); E_Q w² is e^{K(1)}."""
        second = max(float(self.forward.log_mgf(1.0)), 0.0)  # as E_Q w is 1; rounding may take it under
        log = math.log(half) + power * math.log1p(-self.q) + 2 * math.log(self.q)
        if second + abs(log) > 600:  # too steep for doubles, and no use as a bound
            return math.inf
        return math.log1p(math.exp(log) * math.expm1(second) * (1 + SLACK))

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        """Refuse: a Rényi curve is no law."""
        raise TypeError("a Rényi curve has no characteristic function")

    def profile(self, epsilon: Floats) -> Floats:
        """Refuse: a Rényi curve is no law."""
        raise TypeError("a Rényi curve has no profile")


@lru_cache(maxsize=64)
def _moments(mix: Mix, count: int) -> Floats:
    """Return K at 1, 2, … up to `count`: made once for all orders up to there, and for all rates."""
    return mix.log_mgf(np.arange(1.0, count + 1))
