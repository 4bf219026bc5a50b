"""How probable a loss above x is, from the privacy profile (THEORY 1.6).

As a function of y = e^ε the profile δ is convex, and its slope is -Q[L > ε]: so P[L > x] = δ - y dδ/dy, which is where
the tangent at y = e^x meets the axis. Chords to the right bound it from below, chords to the left from above; bounds on
δ bound the chords. What a pair dominates has a smaller δ, and not always a smaller tail. All that a chord to the left
says of it is δ(ε) / (1 - e^{ε-x}), ε < x; the least of these is attained by something that is dominated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..losses.law import UNIT
from ..losses.rounding import ROUNDED
from .delta import Found
from .mix import MODEL, Mix, log_kappa, minimise, saddle_tilt
from .profile import Order, Profile
from .solve import LEAST
from .ways import ENOUGH, Purse

GAPS = np.geomspace(1.0, 1e-7, 15)  # lengths of chords: shares of the distance over which δ falls by a factor of e
STALLED = 2  # so many chords, each shorter than the last, that are no better: then shorter ones are worse
ROUNDING = 16 * UNIT  # of a chord, relative to its terms
FLAT = 0.02  # of the log of an order, or of x - ε: so near to the least bound it is flat
INSIDE = 0.9  # of x: whether a bound rises from here to x - 0
SHORTEST = 1e-9  # of x: a gap that rounding does not swallow
FARTHEST = 40.0  # below -40, δ is 1 - e^ε to the last digit


class Tail(NamedTuple):
    """P[L > x] of a pair, bracketed, and a bound on that of everything that the pair dominates."""

    own: Found[float]
    most: float


def tail_of_orders(mixes: list[Mix], x: float, work: float = ENOUGH) -> Tail:
    """Return the larger tail of both orders, x ≥ 0; one whose Rényi curve says that it is the smaller is not asked."""
    first, second = mixes[0], mixes[-1]
    tail = tail_of(first, second, x, work / len(mixes))
    if second is first or tail_by_renyi(second, x) <= tail.own.lower:
        return tail
    other = tail_of(second, first, x, work / len(mixes))
    return Tail(tail.own.worst(other.own), max(tail.most, other.most))


@np.errstate(all="ignore")  # where an engine overflows it yields no number, and that proves nothing
def tail_of(forward: Mix, backward: Mix, x: float, work: float = ENOUGH) -> Tail:
    """Return the tail of the forward order; the other one says what δ is below 0."""
    profile = Profile(Order(forward), Order(backward), Purse(work))
    slope = 1.0
    if x < forward.largest * (1 + ROUNDED):
        profile.tune_best(max(x, 1e-6))
        slope = saddle_tilt(forward, x)
    most = Found(0.0, _dominated(profile, x, math.log1p(1 / slope)), "privacy profile")
    own = _between_chords(profile, x, 1 / (1 + slope)).meet(most)  # the pair dominates itself
    return Tail(own, max(most.upper, own.lower))


@np.errstate(all="ignore")
def tail_by_renyi(mix: Mix, x: float) -> float:
    """Bound P[L > x] of everything that has this Rényi curve, for the best order (THEORY 1.6, 3.2)."""
    fails, largest = mix.failure.upper, max(mix.largest, 0.0) * (1 + ROUNDED)
    if x >= largest:  # there δ is all infinite-loss mass
        return min(fails / -math.expm1(largest - x), 1.0) if fails > 0 and x > largest else float(fails > 0)
    spread = math.sqrt(2 * max(mix.mean, 1e-300))
    steepest = minimise(lambda c: float(mix.log_mgf(c)) - c * x, max((x - mix.mean) / spread**2, 1 / spread), FLAT)
    bound = min(_renyi_bound(mix, c, x, fails) for c in (steepest, *mix.kinks))
    return min(max(bound * (1 + MODEL), LEAST), 1.0)


def _renyi_bound(mix: Mix, c: float, x: float, fails: float) -> float:
    """The least (δ_∞ + (1-δ_∞) κ e^{K(c)-cε}) / (1 - e^{ε-x}); without infinite losses that is e^{K(c)-cx}."""
    moment = float(mix.log_mgf(c)) + mix.log_mgf_error(c) - c * x * (1 - ROUNDING)

    def height(gap: float) -> float:
        finite = math.exp(min(moment + float(log_kappa(c)) + c * gap, 0.0))
        return math.log(fails + (1 - fails) * finite) - math.log(-math.expm1(-gap))

    if fails == 0 or not math.isfinite(moment):
        return math.exp(min(moment, 0.0))
    return math.exp(min(height(minimise(height, math.log1p(1 / c), FLAT)), 0.0))


def _dominated(profile: Profile, x: float, start: float) -> float:
    """Bound P[L > x] of all that is dominated: the least δ(ε)/(1 - e^{ε-x}), which falls and then rises with ε."""
    if x == 0:
        return 1.0

    def height(gap: float) -> float:
        before = x - min(gap, limit)
        width = -math.expm1(before - x)  # of the gap as it was rounded
        return math.log(_delta_above(profile, before) / width) if width > 0 else math.inf

    limit = x
    if height(x) <= height(INSIDE * x):  # then it is least at an ε ≤ 0, where the other order speaks
        limit = x + FARTHEST
        profile.tune(-math.sqrt(2 * max(profile.backward.mix.mean, 0.0)))
    forward, backward = profile.forward.mix, profile.backward.mix
    ends = (x + backward.largest, x - forward.largest * (1 + ROUNDED))  # where the profile has kinks
    gaps = [minimise(height, min(max(start, SHORTEST * x), limit), FLAT), *(end for end in ends if 0 < end < limit)]
    return min(math.exp(min(*map(height, gaps), 0.0)) * (1 + ROUNDING), 1.0)


def _between_chords(profile: Profile, x: float, scale: float) -> Found[float]:
    """Bracket P[L > x] of the forward order by chords, ever shorter: all of them hold, and the best are kept."""
    here = profile.delta(x)
    found, idle = Found(float(here.lower), 1.0, here.method), 0
    for gap in scale * GAPS:
        lower, upper = _right_chord(profile, here.lower, x, x + gap), _left_chord(profile, here.lower, x, x - gap)
        idle = 0 if lower > found.lower or upper < found.upper else idle + 1
        found = Found(max(found.lower, lower), min(found.upper, upper), here.method)
        if idle >= STALLED or not profile.pays:
            break
    return Found(min(found.lower, 1.0), max(found.upper, found.lower), found.method)


def _right_chord(profile: Profile, least: float, x: float, after: float) -> float:
    """δ(x) + (δ(x) - δ(ε)) / (e^{ε-x} - 1) for an ε > x: at most P[L > x]."""
    width, there = math.expm1(after - x), _delta_above(profile, after)
    return least + (least - there - ROUNDING * (least + there)) / width if width > 0 else 0.0


def _left_chord(profile: Profile, least: float, x: float, before: float) -> float:
    """(δ(ε) - e^{ε-x} δ(x)) / (1 - e^{ε-x}) for an ε < x: at least P[L > x]."""
    width, there = -math.expm1(before - x), _delta_above(profile, before)
    return (there - math.exp(before - x) * least + ROUNDING * there) / width if width > 0 else 1.0


def _delta_above(profile: Profile, epsilon: float) -> float:
    """An upper bound on δ(ε), which may have been lost to underflow."""
    return max(float(profile.delta(epsilon).upper), LEAST)
