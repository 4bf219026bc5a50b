"""The laws that are inverted: coins, geometric digits and the discrete normal, by integer bounds of their steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from .intervals import Interval, exp_interval, over, times
from .table import Integers, Law


@dataclass(frozen=True)
class Coin(Law):
    """1 with probability e^{-x}, else 0."""

    x: Fraction

    def steps(self, bits: int) -> Iterator[Interval]:
        low, high = exp_interval(self.x, bits)
        yield (1 << bits) - high, (1 << bits) - low

    def at(self, places: Integers) -> Integers:
        return places


@dataclass(frozen=True)
class Digit(Law):
    """The lowest digit, base `base`, of a geometric with ratio e^{-rate}: the digits of one are independent.

    P(d) = (1 - r) r^d / (1 - r^base); its distribution function is (1 - r^{d+1}) / (1 - r^base).
    """

    rate: Fraction
    base: int

    def steps(self, bits: int) -> Iterator[Interval]:
        one = 1 << bits
        whole = exp_interval(self.rate * self.base, bits)
        scale = (one - whole[1], one - whole[0])
        for digit in range(1, self.base):
            power = exp_interval(self.rate * digit, bits)
            yield over((one - power[1], one - power[0]), scale, bits)

    def at(self, places: Integers) -> Integers:
        return places


@dataclass(frozen=True)
class TwoSided(Law):
    """The leading digits of a discrete Laplace: h ≥ 0, or ~h for a negative one, in the order 0, -1, 1, -2.

    With r = e^{-rate} and R = r^base, P(h) = (1 - R) R^h / (1 + r) and P(~h) = r P(h). At base 1 it is the discrete
    Laplace itself.
    """

    rate: Fraction
    base: int = 1

    def steps(self, bits: int) -> Iterator[Interval]:
        one = 1 << bits
        r, big = exp_interval(self.rate, bits), exp_interval(self.rate * self.base, bits)
        share = over((one, one), (one + r[0], one + r[1]), bits)  # of the non-negative side
        power = (one, one)  # R^h
        while True:
            following = times(power, big, bits)
            # 1 - R^h of both sides are past; this side's next term is share (R^h - R^{h+1}).
            term = times(share, (max(power[0] - following[1], 0), power[1] - following[0]), bits)
            yield one - power[1] + term[0], one - power[0] + term[1]
            yield one - following[1], one - following[0]
            power = following

    def at(self, places: Integers) -> Integers:
        return (places >> 1) ^ -(places & 1)


@dataclass(frozen=True)
class Normal(Law):
    """P(x) ∝ e^{-x² / 2 variance}: all integers in the order 0, 1, -1, 2, -2 … or, one-sided, 0, 1, 2."""

    variance: Fraction
    one_sided: bool = False

    def steps(self, bits: int) -> Iterator[Interval]:
        weights, rest = self._weights(bits)
        total = weights[0]
        sides = 1 if self.one_sided else 2
        for weight in weights[1:]:
            total = (total[0] + sides * weight[0], total[1] + sides * weight[1])
        total = (total[0], total[1] + sides * rest)
        done: Interval = (0, 0)
        for place, weight in enumerate(weights):
            for _ in range(1 if place == 0 else sides):
                done = (done[0] + weight[0], done[1] + weight[1])
                yield over(done, total, bits)

    def _weights(self, bits: int) -> tuple[list[Interval], int]:
        """Return the unnormalised weights until they are about 2^-bits, and a bound on the sum of the rest.

        w_{x+1} = w_x s_x and s_{x+1} = s_x e^{-1/variance}; the ratios fall, so the rest is at most geometric.
        """
        ratio = exp_interval(1 / self.variance, bits)
        weight: Interval = (1 << bits, 1 << bits)
        slope = exp_interval(1 / (2 * self.variance), bits)
        weights = []
        for _ in range(math.isqrt(math.ceil(1.4 * bits * self.variance)) + 2):
            weights.append(weight)
            weight = times(weight, slope, bits)
            slope = times(slope, ratio, bits)
        return weights, weight[1] * (1 << bits) // max((1 << bits) - slope[1], 1) + 1

    def at(self, places: Integers) -> Integers:
        return places if self.one_sided else ((places + 1) >> 1) * (2 * (places & 1) - 1)
