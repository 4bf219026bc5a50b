"""The trade-off curve from the privacy profile (THEORY 1.5), bracketed by convexity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..losses.rounding import ROUNDED
from .delta import Found
from .mix import Mix, minimise
from .profile import ROUNDING, Order, Profile
from .ways import ENOUGH, Purse

MOST_QUESTIONS = 60  # evaluations of the profile for one type-I error
STALLED = 8  # so many questions without progress are enough
NEAR = 1e-5  # how near to the minimum, relative to its ε, the first points come
WIDE = 1e-4  # and at which it starts again
WIDTH = 1e-8  # the relative width of the power at which asking stops


@np.errstate(all="ignore")  # where an engine overflows it yields no number, and that proves nothing
def power_of_orders(mixes: list[Mix], x: float, work: float = 2 * ENOUGH) -> Found[float]:
    """Bracket the largest power of any test with type-I error x: the larger of both orders, to relative accuracy."""
    if x in (0.0, 1.0):
        if x == 1.0:
            return Found(1.0, 1.0, "infinite-loss mass")
        lower, upper = max(mix.failure.lower for mix in mixes), max(mix.failure.upper for mix in mixes)
        return Found(lower, upper, "infinite-loss mass")
    work = work / 2 if any(mix.tuning for mix in mixes) else work  # tilts take as long again
    purse = Purse(work)
    first, second = (Order(mix) for mix in mixes) if len(mixes) > 1 else 2 * (Order(mixes[0]),)
    if second is first:
        return _power(Profile(first, first, purse), x)
    found = _power(Profile(first, second, Purse(work / 2, whole=purse)), x)  # what one does not use is for the other
    return found.worst(_power(Profile(second, first, purse), x, found.lower))


@dataclass(frozen=True)
class _Point:
    """h = δ(ε) + x e^ε at y = e^ε, bracketed."""

    y: float
    lower: float
    upper: float


def _power(profile: Profile, x: float, least: float = 0.0) -> Found[float]:
    """The power is min over y = e^ε > 0 of h(y) = δ(y) + xy, convex: any y bounds it from above.

    From below, the chord through two points, continued, lies under h beyond them. Where two such chords meet is the
    next point to ask: at a kink they meet in it, and elsewhere they close in on the minimum. Where the other order has
    `least` for sure, a power that is no larger need not be known.
    """
    forward, backward = profile.forward.mix, profile.backward.mix
    profile.purse.tunes(forward)
    start = _start(forward, x)
    low = -min(max(backward.largest, 0.0), 5.0)
    top = forward.largest * (1 + ROUNDED) if forward.largest > 0 else forward.largest  # where no finite loss is left
    high = max(min(top, -math.log(x), 700.0), low)  # a finite loss may be far under 0 in one order
    points = {e: _point(profile, e, x) for e in (low, min(max(start, low), high), high)}
    points[-math.inf] = _Point(0.0, 1.0, 1.0)
    found = _closed_in(points, profile, x, least)
    if profile.pays and found.upper - found.lower > WIDE * found.upper and found.upper > least:
        # Chords see little of a minimum that is far under its neighbours.
        _approach(points, lambda e: _point(profile, e, x), low, high)
        found = _closed_in(points, profile, x, least)
    return found


def _point(profile: Profile, epsilon: float, x: float) -> _Point:
    """Return the bracket of h at ε."""
    delta, test = profile.delta(epsilon), x * math.exp(epsilon)
    return _Point(math.exp(epsilon), (delta.lower + test) * (1 - ROUNDING), (delta.upper + test) * (1 + ROUNDING))


def _closed_in(points: dict[float, _Point], profile: Profile, x: float, least: float) -> Found[float]:
    """Ask where two chords meet, until the bounds meet as well, no question helps, or it is no more than `least`."""
    gaps: list[float] = []
    for _ in range(MOST_QUESTIONS):
        ordered = [points[e] for e in sorted(points)]
        upper = min(point.upper for point in ordered)
        lower, y = min(_lowest(ordered, i, x) for i in range(len(ordered)))
        found = Found(max(min(lower, upper), x), upper, "privacy profile")
        gaps.append(found.upper - found.lower)
        stalled = len(gaps) > STALLED and 0.7 * gaps[-1 - STALLED] < gaps[-1] < 1e-3 * upper
        if stalled or gaps[-1] <= WIDTH * upper or upper <= least or not profile.pays:
            break
        epsilon = math.log(y)
        point = points[epsilon] if epsilon in points else _point(profile, epsilon, x)
        if point.upper - point.lower > 0.1 * gaps[-1] and profile.tune(epsilon):
            again = _point(profile, epsilon, x)
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
