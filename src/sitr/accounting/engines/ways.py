"""The ways of keeping rare steps off the line: in which order they are asked, and what a question may cost.

Where one sampled step of many makes the loss, no tilt of the whole law peaks at ε (`rare.py`). Three ways help, each
tuned at an ε: `cut_at` counts the largest steps whole, which suits a loss that many steps make; `gated_at` (gentle
noise) and `split_at` (the rest) sum single large steps apart. Each holds at every ε, if less tightly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from .certify import Bounds, Tuned, certify
from .cut import Cut, cut_at, truncated_epsilon
from .delta import NARROW, Finite, Found
from .line import MOST_WORK
from .mix import Mix
from .near import Gated, gated_at
from .rare import rare_laws, single_jump
from .split import Split, split_at

RARE = 9e-5  # a bracket this narrow is good enough where events are rare
GENTLE = 1.3  # noise multipliers from which on one step's loss is no longer lognormal-like
MANY = 0.25  # of ε: where a single step makes less, many do
FAIR = 1e-2  # where many steps make the loss, a bracket this narrow is not improved by ways made for a single one
FAR = 1.25  # from a limit: a search that is further away goes on to other values, and need not know how far it is
NEARLY = 0.1  # a bracket this narrow tells where to tune
ENOUGH = 2 * MOST_WORK  # what a question may cost
RETUNED = 3  # a way that was tuned elsewhere is asked again, so often at most

Made = TypeVar("Made", bound=Bounds)


class Purse:
    """What a question may still cost, in multiplications; and what all questions of a search may, in `whole`."""

    def __init__(self, work: float = ENOUGH, limit: float | None = None, whole: Purse | None = None) -> None:
        """Take the ε that a search compares with, where there is one: far from it, it need not be known how far."""
        self._left, self.limit, self.whole = work, limit, whole
        self._bought: set[object] = set() if whole is None else whole._bought

    @property
    def left(self) -> float:
        return self._left if self.whole is None else min(self._left, self.whole.left)

    def spend(self, work: float) -> None:
        """Pay for what is done in any case."""
        self._left -= work
        if self.whole is not None:
            self.whole.spend(work)

    def buys(self, thing: object, work: float) -> None:
        """Pay for something that is kept, once."""
        if thing not in self._bought:
            self._bought.add(thing)
            self.spend(work)

    def pays(self, bounds: Bounds) -> bool:
        """Pay for bounds before they are evaluated; false where they cost more than is left."""
        work = bounds.work
        if not work <= self.left:
            return False
        self.spend(work)
        return True

    def moment(self, mix: Mix, c: float) -> bool:
        """Pay for K(c), which steep tilts and groups make dear and which is kept; false where nothing was left."""
        pays = self.left > 0
        for loss, _ in mix.parts:
            work = loss.moment_work(c) if pays else 0.0
            if work:
                self.buys((loss, c), work)
        return pays

    def tunes(self, mix: Mix) -> bool:
        """Pay for a tilt, which groups make dear; false where nothing is left to evaluate anything there."""
        self.spend(mix.tuning)
        return self.left > 0

    def asks(self, bounds: Bounds) -> bool:
        """Pay for one question of bounds that were made; false where nothing is left, and it is asked all the same."""
        self.spend(bounds.asked)
        return self.left > 0

    def settles(self, found: Found[float], width: float = NARROW) -> bool:
        """Whether a bracket of ε says enough: it is narrow, or lies far to one side of what a search compares with."""
        far = self.limit is not None and (found.upper * FAR <= self.limit or found.lower >= self.limit * FAR)
        return found.within(width) or far


@dataclass(frozen=True)
class Way:
    """One way of bounding δ, and the ε at which it is tuned first."""

    at: Callable[[Mix, float, float], Tuned | None]
    method: str
    start: float


def attempt(make: Callable[[], Made | None], purse: Purse) -> Made | None:
    """Make bounds that the purse pays for; None where it does not, or where they would need more nodes than are made.

    Tuning itself may fail where numbers end (a tilt that nothing tolerates, a loss that no x has): that proves nothing.
    """
    try:
        bounds = make()
        return bounds if bounds is not None and purse.pays(bounds) else None
    except (ArithmeticError, ValueError):
        return None


def truncated(mix: Mix, delta: Finite) -> float:
    """The truncated bound on ε; where it cannot be computed, it proves nothing."""
    try:
        return truncated_epsilon(mix, delta)
    except (ArithmeticError, ValueError):
        return math.inf


def narrowed_by_ways(mix: Mix, found: Found[float], delta: Finite, high: float, purse: Purse) -> Found[float]:
    """Narrow a bracket of ε by the ways that suit what makes the loss; the first that is narrow enough wins."""
    ways = _in_order(mix, delta, found.upper, high)
    for number, way in enumerate(ways):
        if purse.settles(found, FAIR if number and ways[0].at is cut_at else RARE):
            break
        middle = (found.lower + found.upper) / 2
        found = _narrowed(way, mix, found, delta, middle if found.within(NEARLY) else way.start, purse)
    return found


def _in_order(mix: Mix, delta: Finite, upper: float, high: float) -> tuple[Way, ...]:
    """Many steps or other events: the largest are cut off. A single step: gated if gentle, and split off if not."""
    jump = single_jump(mix, delta, upper)
    cut = Way(cut_at, Cut.method, high)
    gated, split = Way(gated_at, Gated.method, jump), Way(split_at, Split.method, jump)
    single = (gated, split) if min(loss.sigma for loss, _ in rare_laws(mix)) > GENTLE else (split, gated)
    others = mix.without(rare_laws(mix))
    alone = not others.parts and not others.m2
    many = jump < MANY * high
    return (cut, *single) if alone == many else (cut,) if many else single


@np.errstate(all="ignore")  # where a way overflows it yields no number, and that proves nothing
def _narrowed(way: Way, mix: Mix, found: Found[float], delta: Finite, start: float, purse: Purse) -> Found[float]:
    """Solve with a way that is tuned near ε; ask again where it was tuned elsewhere."""
    log_delta = math.log(delta)
    epsilon = min(max(start, found.lower), found.upper)
    for _ in range(RETUNED):
        tuned = epsilon > 0 and purse.tunes(mix)
        bounds = attempt(partial(way.at, mix, epsilon, log_delta), purse) if tuned else None
        if bounds is None:
            break
        if bounds.upper(0.0) <= delta:
            return found.meet(Found(0.0, 0.0, way.method))
        proposed = min(max(bounds.guess(log_delta, epsilon), found.lower, epsilon / 4), found.upper)
        lower, upper = certify(bounds, delta, proposed, _slope(bounds, proposed))
        found = found.meet(Found(lower, upper, way.method))
        if purse.settles(found, RARE) or abs(proposed - epsilon) < 0.02 * epsilon:
            break
        epsilon = proposed
    return found


def _slope(bounds: Bounds, epsilon: float) -> float:
    """About -d ln δ/dε; sets the first step of a search only."""
    near, far = bounds.upper(epsilon * 0.999), bounds.upper(epsilon * 1.001)
    return math.log(near / far) / (0.002 * epsilon) if near > far > 0 else 1 / epsilon
