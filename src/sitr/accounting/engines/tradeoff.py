"""The trade-off curve from the privacy profile (THEORY 1.5), bracketed by convexity."""

from __future__ import annotations

import math

from .mix import Mix, best_tilt, chernoff_epsilon
from .solve import Found, best_bounds

ETA = 3e-5  # how far, in ε, the flanking points lie from the best one


def tradeoff_of_orders(mixes: list[Mix], x: float) -> Found:
    """Bracket the least type-II error at type-I error x: the smaller of both orders."""
    if x in (0.0, 1.0):
        exact = 0.0 if x == 1.0 else 1 - max(mix.infinite_mass for mix in mixes)
        return Found(exact, exact, "infinite-loss mass")
    first, second = mixes[0], mixes[-1]
    found = [_tradeoff(first, second, x)]
    if second is not first:
        found.append(_tradeoff(second, first, x))
    return min(found, key=lambda f: f.lower)


def _tradeoff(forward: Mix, backward: Mix, x: float) -> Found:
    """f(x) = 1 - min over y = e^ε > 0 of h(y) = δ(y) + xy, a convex function; any y bounds f from below."""
    profile = _Profile(forward, backward, _start(forward, x))
    epsilon = profile.minimise(x)
    profile.retune(epsilon)
    epsilon = profile.minimise(x)
    points = [epsilon - ETA, epsilon, epsilon + ETA]
    y = [math.exp(e) for e in points]
    low = [profile.lower(e) + x * v for e, v in zip(points, y, strict=True)]
    high = [profile.upper(e) + x * v for e, v in zip(points, y, strict=True)]
    lower = max(1 - min(high), 0.0)
    # Beyond a flank that lies above the middle, h only rises; between, a chord continued from the other side bounds it.
    if low[0] >= high[1] and low[2] >= high[1]:
        left = low[1] - max((high[2] - low[1]) * (y[1] - y[0]) / (y[2] - y[1]), 0.0)
        right = low[1] - max((high[0] - low[1]) * (y[2] - y[1]) / (y[1] - y[0]), 0.0)
        upper = 1 - min(left, right)
    else:
        upper = 1 - x
    return Found(lower, min(max(upper, lower), 1 - x), "privacy profile")


def _start(mix: Mix, x: float) -> float:
    """Where to begin: the ε whose δ is about x."""
    if mix.mean == 0:
        return 0.0
    log_delta = math.log(min(x, 0.3))
    return min(max(chernoff_epsilon(mix, best_tilt(mix, log_delta), log_delta), 0.0), mix.largest)


class _Profile:
    """δ_PQ on the whole real line: below 0 by duality, δ_PQ(-ε) = 1 - e^-ε + e^-ε δ_QP(ε)."""

    def __init__(self, forward: Mix, backward: Mix, epsilon: float) -> None:
        self.forward, self.backward = forward, backward
        self.retune(epsilon)

    def retune(self, epsilon: float) -> None:
        """Tune the bounds of both orders near ε."""
        where = max(abs(epsilon), 1e-6)
        self.positive = best_bounds(self.forward, min(where, self.forward.largest * 0.999))
        same = self.backward is self.forward
        self.negative = self.positive if same else best_bounds(self.backward, min(where, self.backward.largest * 0.999))

    def upper(self, epsilon: float) -> float:
        return self._at(epsilon, "upper")

    def lower(self, epsilon: float) -> float:
        return self._at(epsilon, "lower")

    def _at(self, epsilon: float, side: str) -> float:
        mix, bounds = (self.forward, self.positive) if epsilon >= 0 else (self.backward, self.negative)
        size = abs(epsilon)
        finite = 0.0 if size >= mix.largest else min(max(getattr(bounds, side)(size), 0.0), 1.0)
        delta = mix.infinite_mass + (1 - mix.infinite_mass) * finite
        return delta if epsilon >= 0 else -math.expm1(-size) + math.exp(-size) * delta

    def minimise(self, x: float) -> float:
        """Return an ε near the minimum of δ(ε) + x e^ε, by golden section."""
        reach = max(min(self.forward.largest, self._reach(x)), 1e-3)
        low, high = -max(min(self.backward.largest, self._reach(1 - x)), 1e-3), reach
        ratio = (math.sqrt(5) - 1) / 2
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        fa, fb = self.upper(a) + x * math.exp(a), self.upper(b) + x * math.exp(b)
        for _ in range(60):
            if high - low < 1e-7:
                break
            if fa <= fb:
                high, b, fb = b, a, fa
                a = high - ratio * (high - low)
                fa = self.upper(a) + x * math.exp(a)
            else:
                low, a, fa = a, b, fb
                b = low + ratio * (high - low)
                fb = self.upper(b) + x * math.exp(b)
        return (low + high) / 2

    @staticmethod
    def _reach(x: float) -> float:
        """X e^ε passes 1 here, and h with it."""
        return -math.log(x) if x > 0 else 700.0
