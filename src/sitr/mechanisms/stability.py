"""The test that stands before a release that is not private by itself: a distance, noise and a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..accounting import ApproximateDP
from ..units import Adjacency
from .additive import above, in_range
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, discrete_laplace
from .samplers.intervals import exp_interval
from .samplers.table import Integers


@dataclass(frozen=True)
class Gate:
    """Passes where a distance from 0 plus discrete Laplace noise reaches a threshold.

    Args:
        rate: One over the scale of the noise: what a distance of sensitivity 1 costs.
        threshold: What has to be reached.

    Privacy: let r = e^{-rate}. Neighbours whose distances differ by at most 1, and for which what is released is the
    same or private by itself, are told apart as by randomized response of ε = rate. All others have distance 0, and
    pass with probability δ = r^threshold/(1 + r) only. So the profile is at most max(δ_noise(ε), δ) in both orders
    (THEORY 2.5), and that is exactly the profile of a black box that is (ε*,δ)-DP, where δ_noise(ε*) = δ, which is
    e^{ε*} = e^{rate}(1 - δ) - δ (THEORY 2.1, 2.6). Its δ is the probability of an infinite loss.
    """

    rate: Fraction
    threshold: int

    @classmethod
    def of(cls, rate: Fraction, delta: float) -> Gate:
        """Return the gate with the least threshold that lets a distance of 0 pass with probability at most delta."""
        in_range(float(1 / rate), 1e-4, LARGEST_SCALE)
        least = -(math.log(delta) + math.log1p(math.exp(-float(rate)))) / float(rate)
        threshold = max(math.floor(least * (1 - 2.0**-40)) - 1, 0)
        while cls(rate, threshold).delta > delta:
            threshold += 1
        return cls(rate, threshold)

    @property
    def delta(self) -> float:
        """The probability that a distance of 0 passes, rounded up by integers: r^threshold/(1 + r)."""
        bits = 128 + math.ceil(2 * self.rate * self.threshold)
        power = exp_interval(self.rate * self.threshold, bits)[1]
        least = (1 << bits) + exp_interval(self.rate, bits)[0]
        return above(Fraction(power, least))

    def event(self, adjacency: Adjacency | None) -> ApproximateDP:
        """Return what one distance through the gate costs."""
        rate, delta = above(self.rate), self.delta
        left = -delta * (1 + math.exp(-rate))
        epsilon = rate + math.log1p(left) if left > -1 else 0.0
        return ApproximateDP(min(max(epsilon + 2.0**-48 * rate, 0.0), rate), delta, adjacency=adjacency)

    def noisy(self, distances: Integers, source: Source | None) -> Integers:
        """Return the distances with noise; what reaches the threshold passes."""
        return distances if source is None else distances + discrete_laplace(1 / self.rate, distances.size, source)
