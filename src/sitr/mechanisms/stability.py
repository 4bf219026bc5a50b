"""The test that stands before a release that is not private by itself: a distance, noise and a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from ..accounting import ApproximateDP, Event, Gaussian, ZeroConcentrated
from ..accounting.notions import LEAST_VARIANCE, discrete_gdp
from ..errors import InvalidArgument
from ..units import Adjacency
from .additive import above, in_range
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, LARGEST_SIGMA, Variance, discrete_gaussian, discrete_laplace
from .samplers.intervals import exp_interval
from .samplers.table import Integers

Kind = Literal["laplace", "gaussian"]
Floats = NDArray[np.float64]
ROUNDED = 2.0**-30  # far more than what a sum of up to 2^22 floats loses
TABLED = 1e5  # standard deviations of discrete noise from which on the normal law has its tails, to a part in 10^9
LEAST_SIGMA = math.nextafter(math.sqrt(LEAST_VARIANCE), 2)  # so that its square is no less
LEAST = 2.0**-1000  # a probability that is nothing in floats is taken for this
FAR = 16  # standard deviations beyond a threshold that are tabled


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
    kind: ClassVar[Kind] = "laplace"

    @property
    def scale(self) -> float:
        """Of the noise."""
        return float(1 / self.rate)

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

    def log_tail(self, least: Floats) -> Floats:
        """Return the logarithms of the probabilities that noise is at least so many whole numbers."""
        rate = float(self.rate)
        other = -rate * np.where(least > 0, least, 1 - least) - math.log1p(math.exp(-rate))
        return np.where(least > 0, other, np.log1p(-np.exp(other)))


@dataclass(frozen=True)
class NormalGate:
    """The same with discrete Gaussian noise.

    Args:
        sigma: Its standard deviation.
        threshold: What has to be reached.

    Privacy: neighbours whose distances differ by at most 1, and for which what is released is the same or private by
    itself, are told apart no better than by the noise: a discrete Gaussian moved by 1, since what is made of it is
    post-processing; and that passes for continuous noise, but for a mass η of at most 1e-19 (THEORY 3.5). All others
    have distance 0, and pass with probability δ = P(X ≥ threshold) only, which is (0,δ)-DP. Which of the two it is,
    nobody has to know: both in one event dominate either (THEORY 2.5). That is said of neighbours alone: a group of s
    passes with probability P(X ≥ threshold - s + 1), far more than s times δ, so the event has no group property.
    """

    sigma: float
    threshold: int
    kind: ClassVar[Kind] = "gaussian"

    @property
    def scale(self) -> float:
        """The standard deviation of the noise."""
        return self.sigma

    @classmethod
    def of(cls, sigma: float, delta: float) -> NormalGate:
        """Return the gate with the least threshold that lets a distance of 0 pass with probability at most delta."""
        in_range(sigma, LEAST_SIGMA, LARGEST_SIGMA)
        if delta < LEAST:
            raise InvalidArgument(
                f"delta={delta:.3g} is smaller than any probability that Gaussian noise is held to.",
                do='take noise="laplace".',
            )
        threshold = max(math.floor(-sigma * float(ndtri(min(delta, 0.5)))) - 2, 1)
        while cls(sigma, threshold).delta > delta:
            threshold += 1
        return cls(sigma, threshold)

    @cached_property
    def delta(self) -> float:
        """The probability that a distance of 0 passes, rounded up.

        All whole numbers weigh √(2π)σ together, or more (Poisson's sum), so that the terms from the threshold on are
        added up and divided by that.
        """
        count = math.ceil(FAR * self.sigma) + 2
        if count > 2**22:  # then the terms fall slowly, and lie under the density from one before on
            return max(float(ndtr(-(self.threshold - 1) / self.sigma)) * (1 + ROUNDED), LEAST)
        places = self.threshold + np.arange(count, dtype=np.float64)
        terms = np.exp(-0.5 * (places / self.sigma) ** 2)
        share = float(terms.sum()) / (math.sqrt(2 * math.pi) * self.sigma) * (1 + ROUNDED)
        return max(share, LEAST)

    def event(self, adjacency: Adjacency | None) -> Event:
        """Return what one distance through the gate costs."""
        mu, eta = discrete_gdp(self.sigma, 1)
        noise = Gaussian(math.nextafter(1 / mu, 0), adjacency=adjacency)
        failing = math.nextafter(self.delta + eta, 1)
        return noise + ZeroConcentrated(0.0, delta=failing, adjacency=adjacency)

    def noisy(self, distances: Integers, source: Source | None) -> Integers:
        """Return the distances with noise; what reaches the threshold passes."""
        variance = Variance(Fraction(self.sigma) ** 2)
        return distances if source is None else distances + discrete_gaussian(variance, distances.size, source)

    def log_tail(self, least: Floats) -> Floats:
        """Return the logarithms of the probabilities that noise is at least so many whole numbers."""
        if self.sigma >= TABLED:
            return np.asarray(log_ndtr((0.5 - least) / self.sigma))
        table = self._log_tails
        positive = np.where(least > 0, least, 1 - least)
        found = table[np.minimum(positive, len(table) - 1).astype(np.int64)]
        return np.where(least > 0, found, np.log1p(-np.exp(found)))

    @cached_property
    def _log_tails(self) -> Floats:
        """The logarithms of P(X ≥ k) for k from 0 on; the last ones are next to nothing."""
        places = np.arange(self.threshold + math.ceil(FAR * self.sigma) + 2, dtype=np.float64)
        sums = np.logaddexp.accumulate(-0.5 * (places[::-1] / self.sigma) ** 2)[::-1]
        return np.asarray(sums - math.log(2 * math.exp(sums[0]) - 1))
