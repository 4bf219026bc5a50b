"""Counts of groups that were found privately: only those are seen whose noisy count has reached a threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .measurements import Groups
from .planner import Plan

Floats = NDArray[np.float64]
MISSED = 0.05
SURE = 1 - 1e-9  # of a probability: floating point errs to the side of the wider interval
REMARK = (
    "{name}: a group is named when its noisy count reaches {threshold:,}, so that groups which barely are look larger "
    "than they are. The intervals allow for that: of a group that is named, 95 in 100 hold its true count."
)


def remarks(plan: Plan) -> list[str]:
    """Return a remark on each count that the groups of a plan are chosen by."""
    places = [(name, plan.measurements[place]) for name, place in plan.places.items()]
    return [
        REMARK.format(name=name, threshold=one.selection.threshold) for name, one in places if isinstance(one, Groups)
    ]


def count_interval(noisy: Floats, threshold: int, scale: float) -> tuple[Floats, Floats]:
    """Return the ends of a 95 % interval for a count, given that its noisy count has reached a threshold.

    The noise is discrete Laplace: with r = e^(-1/scale), P(X >= k) = r^k / (1 + r) for k >= 0 (THEORY 2.4). Each count
    is tested by the law of Y = n + X given Y >= T, and the interval holds all counts that are not refused. Given that
    it is reached, counts up to the threshold have one law, P(Y >= y) = r^(y - T): they are refused together, where that
    is at most 5 %. Larger ones are refused where either tail is at most 2.5 %. So whatever the count is, it is refused
    at most 5 times in 100, among the times that it is seen at all.

    Args:
        noisy: The counts that were seen, each at least the threshold.
        threshold: The threshold T.
        scale: Of the noise.

    Example:
        >>> count_interval(np.array([15.0, 20.0, 100.0]), 15, 1.0)
        (array([ 1., 17., 97.]), array([ 17.,  23., 103.]))
    """
    rate = 1 / scale
    beyond = np.exp(-rate * (noisy - threshold))  # P(Y >= y | Y >= T) of counts up to the threshold

    def reached(count: Floats) -> Floats:
        """P(Y >= T) of counts above the threshold."""
        return np.asarray(1 - np.exp(-rate * (count - threshold + 1)) / (1 + np.exp(-rate)))

    def above(count: Floats) -> Floats:
        """P(Y >= y | Y >= T), of counts from the threshold up to y."""
        return np.asarray(np.exp(-rate * (noisy - count)) / (1 + np.exp(-rate)) / reached(count))

    def below(count: Floats) -> Floats:
        """P(Y <= y | Y >= T), of counts from y on."""
        seen = -np.expm1(-rate * (noisy - threshold + 1))
        return np.asarray(np.exp(-rate * (count - noisy)) * seen / (1 + np.exp(-rate)) / reached(count))

    tail = MISSED / 2 * SURE
    widest = np.ceil(scale * 8) + 1  # e^-8 is far below the tail
    low = _least(lambda count: above(count) > tail, np.maximum(noisy - widest, threshold + 1), noisy)
    high = _least(lambda count: below(count + 1) <= tail, noisy, noisy + widest)
    return np.asarray(np.where(beyond > MISSED * SURE, 1.0, low)), high


def _least(holds: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """The least whole number from `low` on at which something holds, that holds from there on, and at `high`."""
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = np.floor((low + high) / 2)
        found = holds(middle)
        low, high = np.where(found, low, np.minimum(middle + 1, high)), np.where(found, middle, high)
    return low
