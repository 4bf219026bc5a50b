"""The Rényi curve of a Poisson-sampled law of atoms or on an interval, before any law is made of it (THEORY 2.7).

With l = ln P/Q under Q and r(l) = 1 - q + q e^l, the *remove* order has M(x) = E r^{1+x} and the *add* order M(x) =
E r^{-x}. Atoms are summed; a density is integrated by Gauss–Legendre rules whose error is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .atoms import Atoms
from .interval import IntervalLoss
from .law import UNIT, Complexes, Floats, Loss, Pair, log_sum_exp, mean_excess, share_of
from .rounding import ROUNDED, added_above, sampled_above

PANELS = 256  # of a rule at most; where they are not enough, the law is cut into cells
CELLS = 4096  # whose masses are spread to their ends
LARGE = 30.0  # a loss under minus this is no small difference of large numbers
FARTHEST = 700.0  # beyond, e^l is no number, and both terms of r are added by their logs
# The 16-point Gauss–Legendre rule on [-1, 1], to the last digit: its positive nodes, and their weights.
NODES = (
    0.09501250983763744,
    0.2816035507792589,
    0.45801677765722737,
    0.6178762444026438,
    0.755404408355003,
    0.8656312023878318,
    0.9445750230732326,
    0.9894009349916499,
)
WEIGHTS = (
    0.1894506104550685,
    0.18260341504492358,
    0.16915651939500254,
    0.14959598881657674,
    0.12462897125553388,
    0.09515851168249279,
    0.062253523938647894,
    0.027152459411754096,
)


@dataclass(frozen=True, eq=False)
class SampledCurve(Loss):
    """One order of `pair`, sampled at rate q. It is a curve, not a law: engines ask for the laws of the whole pair."""

    pair: Pair
    q: float
    removes: bool

    @classmethod
    def of(cls, pair: Pair, q: float) -> Pair:
        """Return the curves of both orders of a pair of atoms, or on an interval."""
        leads = pair.is_symmetric and not pair.forward.infinite_mass
        return Pair(cls(pair, q, True), cls(pair, q, False), leads=leads)

    @property
    def parts(self) -> tuple[tuple[Pair, int], ...]:
        """What is sampled, as `SampledMix` has it."""
        return ((self.pair, 1),)

    @property
    def infinite_mass(self) -> float:  # type: ignore[override]
        return share_of(self.q, self.pair.forward.infinite_mass) if self.removes else 0.0

    @cached_property
    def largest(self) -> float:  # type: ignore[override]
        return self._most_removed if self.removes else self._most_added

    @property
    def largest_below(self) -> float:
        forward = self.pair.forward
        if self.removes:
            return log_ratio(forward.largest_below, self.q) * (1 - ROUNDED)
        least = -math.inf if self.pair.backward.infinite_mass else forward.smallest * (1 - ROUNDED)
        return -log_ratio(least, self.q) * (1 - ROUNDED)

    @cached_property
    def smallest(self) -> float:  # type: ignore[override]
        return -self._most_added if self.removes else -self._most_removed

    @property
    def _most_removed(self) -> float:
        return sampled_above(self.pair.forward.largest, self.q)

    @property
    def _most_added(self) -> float:
        """Where P has nothing, l is -∞ and r is 1 - q."""
        return added_above(-math.inf if self.pair.backward.infinite_mass else self.pair.forward.smallest, self.q)

    def log_mgf(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0:
            return self._law(self._panels(float(x))).log_mgf(x)
        values = [float(self._law(self._panels(float(c))).log_mgf(c)) for c in x.ravel()]
        return np.array(values).reshape(x.shape)

    def mean(self) -> float:
        return self._mean

    @cached_property
    def _mean(self) -> float:
        law = self._law(self._panels(0.0))
        if self.pair.forward.infinite_mass or self.pair.backward.infinite_mass or law.smallest < -LARGE:
            return law.mean()
        return float(np.sum(np.exp(law.logs) * mean_excess(law.losses)))

    def _panels(self, c: float) -> int:
        loss = self.pair.forward
        return panels(loss, self.q, 1 + c if self.removes else -c) if isinstance(loss, IntervalLoss) else 0

    @lru_cache(maxsize=64)  # noqa: B019 - curves are frozen, and these laws small
    def _law(self, panels: int) -> Atoms:
        """Return atoms that have the moments of the curve: its own, or the nodes of its rules."""
        losses, logs = self._under_q(panels)
        ratios = log_ratios(losses, self.q)
        logs = logs + ratios if self.removes else logs
        if not panels:  # masses of atoms carry rounding; rules are as good as their bound
            logs = logs - log_sum_exp(logs)
        uneven = bool(self.pair.forward.infinite_mass)  # what only Q could produce, both can
        if self.removes:
            return Atoms(ratios, logs, uneven=uneven)
        return Atoms(-ratios[::-1], logs[::-1], uneven=uneven)

    def _under_q(self, panels: int) -> tuple[Floats, Floats]:
        """Return the finite l, ascending, and the logs of their masses under Q."""
        loss = self.pair.forward
        if isinstance(loss, IntervalLoss):
            return _rule(loss, panels) if panels else _spread(loss)
        assert isinstance(loss, Atoms)
        logs = loss.logs - loss.losses + loss.log_finite
        only_q = self.pair.backward.infinite_mass
        if not only_q:
            return loss.losses, logs
        return np.concatenate(([-math.inf], loss.losses)), np.concatenate(([math.log(only_q)], logs))

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        raise TypeError("a Rényi curve has no characteristic function")

    def profile(self, epsilon: Floats) -> Floats:
        raise TypeError("a Rényi curve has no profile")


def log_ratio(loss: float, q: float) -> float:
    """Return ln r(l) = ln(1 - q + q e^l), which rises with l and is convex."""
    if loss > FARTHEST:
        return float(np.logaddexp(math.log1p(-q), loss + math.log(q)))
    excess = q * math.expm1(loss)
    return math.log1p(excess) if excess >= -0.5 else math.log(1 - q + q * math.exp(loss))


def log_ratio_error(loss: float, q: float) -> float:
    """Bound what rounding makes of `log_ratio`: of a large loss and a rare sample a small difference may be left."""
    size = loss - math.log(q) if FARTHEST < loss < math.inf else 0.0
    return 8 * UNIT * log_ratio(loss, q) + 2 * UNIT * size


def log_ratios(losses: Floats, q: float) -> Floats:
    """Return ln r of ascending losses; where r is far under one, its two terms are added, which keeps its digits."""
    excess = q * np.expm1(np.minimum(losses, FARTHEST))
    ratios = np.log1p(np.maximum(excess, -0.5))
    if excess[0] < -0.5:
        ratios = np.where(excess < -0.5, np.log(1 - q + q * np.exp(np.minimum(losses, 0.0))), ratios)
    if losses[-1] > FARTHEST:
        ratios = np.where(losses > FARTHEST, np.logaddexp(math.log1p(-q), losses + math.log(q)), ratios)
    return ratios


def panels(law: IntervalLoss, q: float, power: float) -> int:
    """Return on how many equal panels the 16-point rule gives E r^power to a relative e^-38; 0 where they are too many.

    Under Q the density of l is g(l) = edge e^{-(l+e0)/2}. On a panel of half width d the rule errs by at most (64/15) d
    H ρ^-30 / (1 - ρ^-2), H the largest |g r^p| on the ellipse with half axes a = 3.07 d, b = 2.9 d, and ρ = e^1.787
    (Trefethen 2013, Theorem 19.3). The slope of ln(g r^p) is at most k there; |r(l+iy)| is at most r(l) and, for |y| ≤
    1.5, at least r(l) e^{-0.7 s y²}, s the slope of ln r. With kd ≤ 2 and d ≤ 1/2, H is at most e^15 times the least
    value on the panel, and e^15 ρ^-30 < e^-38.
    """
    far = law.e0 + 1.1  # no ellipse reaches further
    steepest = abs(power) * q * math.exp(far - log_ratio(far, q)) + 0.5
    count = math.ceil(law.e0 * max(2.0, steepest / 2))
    return count if count <= PANELS else 0


@lru_cache(maxsize=PANELS)
def _legendre(count: int) -> tuple[Floats, Floats]:
    """The nodes on `count` equal panels of [-1, 1], ascending, between both ends; and the logs of their weights."""
    half = np.array(NODES), np.array(WEIGHTS)
    nodes, weights = np.concatenate([-half[0][::-1], half[0]]), np.concatenate([half[1][::-1], half[1]])
    middles = (2 * np.arange(count) + 1) / count - 1
    inner = (middles[:, None] + nodes / count).ravel()
    return np.concatenate([[-1.0], inner, [1.0]]), np.concatenate(
        [[0.0], np.log(np.tile(weights / count, count)), [0.0]]
    )


def _rule(law: IntervalLoss, count: int) -> tuple[Floats, Floats]:
    """Losses ln P/Q and the logs of their masses under Q: both atoms, and the nodes of the rules between."""
    nodes, weights = _legendre(count)
    losses = law.e0 * nodes
    logs = weights + (math.log(law.edge * law.e0) - law.e0 / 2) - losses / 2
    logs[0] = math.log(law.top) if law.top else -math.inf  # bounded range has no mass at the ends
    logs[-1] = -law.e0 - math.log(2) if law.bottom else -math.inf
    return losses, logs


def _spread(law: IntervalLoss) -> tuple[Floats, Floats]:
    """The same on the ends of cells, to which their masses under P and Q are spread: that can only raise a moment."""
    edges = np.linspace(-law.e0, law.e0, CELLS + 1)
    half = law.e0 / CELLS
    cells = 2 * law.edge * np.exp(-(edges[:-1] + law.e0) / 2) * -math.expm1(-half)
    masses = np.zeros(CELLS + 1)
    masses[0], masses[-1] = law.top, law.bottom
    masses[:-1] += cells / (1 + math.exp(-half))
    masses[1:] += cells / (1 + math.exp(half))
    return edges, np.log(masses)
