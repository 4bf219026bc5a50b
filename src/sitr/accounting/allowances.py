"""How much ε each of several queries may have under a total (ε,δ), theorem by theorem (seed 000; THEORY 4.10)."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from .. import _validate
from ..errors import CannotCalibrate
from .calibration import calibrate
from .events import MOST_COUNT, MOST_EPSILON, PureDP
from .theorems import Guarantee, basic, tightest

Theorem = Callable[..., Guarantee]

CLOSE = 1e-9  # a named theorem is inverted to this relative accuracy
APART = 4.0  # by what factor the search for an ε that is small enough walks
TINY = 1e-6  # and where it ends: a share of what basic composition would give


def allowance(count: int, *, epsilon: float, delta: float, theorem: Theorem = tightest) -> float:
    """Return the largest ε' such that a theorem finds `count` ε'-DP queries to be (ε,δ)-DP together (THEORY 4.10).

    Args:
        count: The number of queries.
        epsilon: What they may cost in all, together with `delta`.
        delta: In (0, 1).
        theorem: One of `sitr.accounting.theorems`, such as `advanced`; `tightest` gives the exact answer for the worst
            queries there are.

    Raises:
        CannotCalibrate: The theorem proves nothing so small at this δ, however little each query may have.

    Privacy: `count` queries, each ε'-DP with this ε', are (ε,δ)-DP together, by the theorem named, also where a query
    is chosen after seeing answers. Queries of a known kind may have more: calibrate their noise.

    Example:
        >>> from sitr.accounting.theorems import advanced, basic
        >>> shares = [allowance(100, epsilon=1.0, delta=1e-6, theorem=t) for t in (basic, advanced, tightest)]
        >>> [round(share, 5) for share in shares]
        [0.01, 0.01838, 0.02401]
    """
    count, epsilon, delta = _checked(count, epsilon, delta)
    if theorem is tightest:
        bounds = (epsilon / count * (1 - CLOSE), epsilon)
        return calibrate(lambda each: PureDP(each) * count, bounds=bounds, epsilon=epsilon, delta=delta).value

    def total(each: float) -> float:
        event = PureDP(each) * count
        return (basic(event) if theorem is basic else theorem(event, delta)).epsilon

    high = epsilon
    if total(high) <= epsilon:
        return high
    low = high / APART
    while total(low) > epsilon:
        low, high = low / APART, low
        if low * count < TINY * epsilon:
            raise CannotCalibrate(
                f"no ε is small enough for this theorem to find count={count} within epsilon={epsilon:g}.",
                why="the moments accountant, for one, proves no ε under ln(1/δ)/64, whatever was done (seed 004).",
                do="ask at a larger δ, or take theorem=tightest.",
            )
    share = brentq(lambda each: total(each) - epsilon, low, high, rtol=CLOSE)
    step = 0.0
    while total(share * (1 - step)) > epsilon:  # the theorem itself has the last word
        step = max(2 * step, CLOSE)
    return float(share * (1 - step))


def classical_allowance(count: int, *, epsilon: float, delta: float) -> float:
    """Return ε/√(2k ln(1/δ)), the rule of thumb for each of k queries under a total (ε,δ) (seed 000; THEORY 4.10).

    It is what `advanced` leaves when the mean loss is left out. So it is no bound, and too large where ε is; where ε is
    small it is smaller than the exact `allowance`. Seed 000 writes ε√(ln(1/δ)/k), which is a slip of the pen.

    Args:
        count: The number of queries.
        epsilon: What they may cost in all, together with `delta`.
        delta: In (0, 1).

    Privacy: none by itself: account for the queries, or ask for their `allowance`.

    Example:
        >>> round(classical_allowance(100, epsilon=1.0, delta=1e-6), 5)
        0.01902
    """
    count, epsilon, delta = _checked(count, epsilon, delta)
    return epsilon / math.sqrt(-2 * count * math.log(delta))


def _checked(count: int, epsilon: float, delta: float) -> tuple[int, float, float]:
    return (
        _validate.integer("count", count, 1, MOST_COUNT),
        _validate.real("epsilon", epsilon, 1e-6, MOST_EPSILON),
        _validate.real("delta", delta, 0, 1, open_low=True, open_high=True),
    )
