"""The trade-off curve from the privacy profile (THEORY 1.5), bracketed by convexity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .certify import Bounds
from .mix import Mix, minimise
from .solve import ROUNDED, Found, best_bounds

MOST_QUESTIONS = 60  # evaluations of the profile for one type-I error
MOST_TUNINGS = 6
STALLED = 8  # so many questions without progress are enough
ROUNDING = 1e-15
NEAR = 1e-5  # how near to the minimum, relative to its ε, the first points come
WIDE = 1e-4  # and at which it starts again
WIDTH = 1e-8  # the relative width of the power at which asking stops


def power_of_orders(mixes: list[Mix], x: float) -> Found:
    """Bracket the largest power of any test with type-I error x: the larger of both orders, to relative accuracy."""
    if x in (0.0, 1.0):
        exact = 1.0 if x == 1.0 else max(mix.infinite_mass for mix in mixes)
        return Found(exact, exact, "infinite-loss mass")
    first, second = mixes[0], mixes[-1]
    found = _power(first, second, x)
    return found if second is first else found.worst(_power(second, first, x))


@dataclass(frozen=True)
class _Point:
    """h = δ(ε) + x e^ε at y = e^ε, bracketed."""

    y: float
    lower: float
    upper: float


def _power(forward: Mix, backward: Mix, x: float) -> Found:
    """The power is min over y = e^ε > 0 of h(y) = δ(y) + xy, convex: any y bounds it from above.

    From below, the chord through two points, continued, lies under h beyond them. Where two such chords meet is the
    next point to ask: at a kink they meet in it, and elsewhere they close in on the minimum.
    """
    profile = _Profile(forward, backward)
    start = _start(forward, x)
    high = min(forward.largest, -math.log(x), 700.0)
    low = -min(backward.largest, 5.0)
    points = {e: profile.point(e, x) for e in (low, min(max(start, low), high), high)}
    points[-math.inf] = _Point(0.0, 1.0, 1.0)
    found = _closed_in(points, profile, x)
    if (
        found.upper - found.lower > WIDE * found.upper
    ):  # chords see little of a minimum that is far under its neighbours
        _approach(points, lambda e: profile.point(e, x), low, high)
        found = _closed_in(points, profile, x)
    return found


def _closed_in(points: dict[float, _Point], profile: _Profile, x: float) -> Found:
    """Ask where two chords meet, until the bounds meet as well or no question helps."""
    gaps: list[float] = []
    for _ in range(MOST_QUESTIONS):
        ordered = [points[e] for e in sorted(points)]
        upper = min(point.upper for point in ordered)
        lower, y = min(_lowest(ordered, i, x) for i in range(len(ordered)))
        found = Found(max(min(lower, upper), x), upper, "privacy profile")
        gaps.append(found.upper - found.lower)
        stalled = len(gaps) > STALLED and 0.7 * gaps[-1 - STALLED] < gaps[-1] < 1e-3 * upper
        if stalled or gaps[-1] <= WIDTH * upper:
            break
        epsilon = math.log(y)
        point = points[epsilon] if epsilon in points else profile.point(epsilon, x)
        if point.upper - point.lower > 0.1 * gaps[-1] and profile.tune(epsilon):
            again = profile.point(epsilon, x)
            point = _Point(point.y, max(point.lower, again.lower), min(point.upper, again.upper))
        elif epsilon in points:
            break
        points[epsilon] = point
    return found


def _approach(points: dict[float, _Point], ask: Callable[[float], _Point], low: float, high: float) -> None:
    """Ask near the minimum of h first, by golden section on ε: h is convex in e^ε, and falls and rises in ε."""
    share = (math.sqrt(5) - 1) / 2
    while high - low > NEAR * max(abs(low), abs(high), 1e-3):
        a, b = high - share * (high - low), low + share * (high - low)
        for epsilon in (a, b):
            if epsilon not in points:
                points[epsilon] = ask(epsilon)
        low, high = (low, b) if points[a].upper <= points[b].upper else (a, high)


def _lowest(points: list[_Point], i: int, x: float) -> tuple[float, float]:
    """Bound h from y_i to the next point from below by the chords of both neighbours; say where that is least."""
    left = points[i]
    falls, rises = x - 1, x  # δ falls, and no faster than y rises
    if i > 0 and points[i - 1].y < left.y:
        falls = max(falls, (left.lower - points[i - 1].upper) / (left.y - points[i - 1].y))
    if falls >= 0 or i + 1 == len(points):  # beyond the last point, h only rises: δ is constant there, or xy ≥ 1
        return left.lower, left.y
    right = points[i + 1]
    if i + 2 < len(points) and right.y < points[i + 2].y:
        rises = min(rises, (points[i + 2].upper - right.lower) / (points[i + 2].y - right.y))
    if rises <= 0:
        return right.lower, right.y
    width = right.y - left.y
    cut = min(max((right.lower - left.lower - rises * width) / (falls - rises), 0.0), width)
    # Each difference may cancel: what rounding can add to it is taken off.
    ends = ((left.lower, falls * cut), (right.lower, -rises * (width - cut)))
    return max(value + move - 8 * ROUNDING * (value + abs(move)) for value, move in ends), left.y + cut


def _start(mix: Mix, x: float) -> float:
    """Where Q[L > ε] is about x: Chernoff's bound e^{K(c) - (1+c)ε} for the best order."""
    if mix.mean == 0:
        return 0.0

    def height(c: float) -> float:
        return (float(mix.log_mgf(c)) - math.log(x)) / (1 + c)

    return min(max(height(minimise(height, 1.0, 0.02)), 0.0), mix.largest)


class _Profile:
    """δ_PQ on the whole real line: below 0 by duality, δ_PQ(-ε) = 1 - e^-ε + e^-ε δ_QP(ε)."""

    def __init__(self, forward: Mix, backward: Mix) -> None:
        self.forward, self.backward = forward, backward
        self.tuned: dict[tuple[bool, float], Bounds] = {}

    def tune(self, epsilon: float) -> bool:
        """Take bounds that are best at ε; false where that is nothing new."""
        mix = self.forward if epsilon >= 0 else self.backward
        where = min(max(abs(epsilon), 1e-6), mix.largest * 0.999)
        key = (mix is self.forward, where)
        if key in self.tuned or len(self.tuned) >= MOST_TUNINGS:
            return False
        self.tuned[key] = best_bounds(mix, where)
        return True

    def point(self, epsilon: float, x: float) -> _Point:
        """Return the bracket of h at ε, by the bounds that were tuned nearest to it."""
        mix = self.forward if epsilon >= 0 else self.backward
        size = abs(epsilon)
        if size >= mix.largest:
            lower, upper = 0.0, max(mix.largest * (1 + ROUNDED) - size, 0.0)
        else:
            bounds = self._nearest(mix, size, epsilon)
            lower, upper = (min(max(value, 0.0), 1.0) for value in (bounds.lower(size), bounds.upper(size)))
            top = math.exp(mix.log_top_mass) * -math.expm1(size - mix.largest) * (1 - 1e-12)
            lower = max(lower, top)  # the atom at the largest loss alone
        ends = []
        for finite, rounding in ((lower, 1 - ROUNDING), (upper, 1 + ROUNDING)):
            delta = mix.infinite_mass + (1 - mix.infinite_mass) * finite
            delta = delta if epsilon >= 0 else -math.expm1(-size) + math.exp(-size) * delta
            ends.append((delta + x * math.exp(epsilon)) * rounding)
        return _Point(math.exp(epsilon), ends[0], ends[1])

    def _nearest(self, mix: Mix, size: float, epsilon: float) -> Bounds:
        own = [key for key in self.tuned if key[0] is (mix is self.forward)]
        if not own:
            self.tune(epsilon)
            own = [key for key in self.tuned if key[0] is (mix is self.forward)]
        return self.tuned[min(own, key=lambda key: abs(key[1] - size))]
