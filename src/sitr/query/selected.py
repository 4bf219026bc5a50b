"""Counts of groups that were found privately: only those are seen whose noisy count has reached a threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import PartitionSelection
from .measurements import Groups
from .planner import Plan

Floats = NDArray[np.float64]
MISSED = 0.05
SURE = 1 - 1e-9  # of a probability: floating point errs to the side of the wider interval
REMARK = (
    "{name}: a group is listed when its noisy count reaches {threshold:,}, so that groups which barely are look larger "
    "than they are. The intervals allow for that: of a group that is listed, 95 in 100 hold its true count."
)


def remarks(plan: Plan) -> list[str]:
    """Return a remark on each count that the groups of a plan are chosen by."""
    places = [(name, plan.measurements[place]) for name, place in plan.places.items()]
    return [
        REMARK.format(name=name, threshold=one.selection.threshold) for name, one in places if isinstance(one, Groups)
    ]


def count_interval(noisy: Floats, selection: PartitionSelection) -> tuple[Floats, Floats]:
    """Return the ends of a 95 % interval for a count, given that its noisy count has reached the threshold.

    Each count n is tested by the law of Y = n + X given Y >= T, and the interval holds all counts that are not refused.
    Counts up to the threshold are refused by the upper tail alone, where that is at most 5 %, since no count below what
    was seen is refused by the lower one; larger ones are refused where either tail is at most 2.5 %. So whatever the
    count is, it is refused at most 5 times in 100, among the times that it is seen at all. Both tails are monotone in
    the count, as the densities of Laplace and Gaussian noise are log-concave.

    Args:
        noisy: The counts that were seen, each at least the threshold.
        selection: What they were chosen by.

    Example:
        >>> from sitr.mechanisms import select_partitions
        >>> groups = select_partitions(epsilon=1.0, delta=1e-6)
        >>> groups.threshold, count_interval(np.array([15.0, 20.0, 100.0]), groups)
        (15, (array([ 1., 17., 97.]), array([ 17.,  23., 103.])))
    """
    threshold, log_tail = float(selection.threshold), selection.log_tail

    def above(count: Floats) -> Floats:
        """P(Y >= y | Y >= T)."""
        return np.asarray(np.exp(log_tail(noisy - count) - log_tail(threshold - count)))

    def below(count: Floats) -> Floats:
        """P(Y <= y | Y >= T), of counts from y on."""
        return np.asarray(-np.expm1(log_tail(noisy + 1 - count) - log_tail(threshold - count)))

    half, widest = MISSED / 2 * SURE, np.ceil(selection.scale * 8) + 1  # e^-8 is far below half
    at_threshold = np.full_like(noisy, threshold)
    small = _least(lambda count: above(count) > MISSED * SURE, np.ones_like(noisy), at_threshold)
    large = _least(lambda count: above(count) > half, np.maximum(noisy - widest, threshold + 1), noisy)
    high = _least(lambda count: below(count + 1) <= half, noisy, noisy + widest)
    return np.asarray(np.where(above(at_threshold) > MISSED * SURE, small, large)), high


def _least(holds: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """The least whole number from `low` on at which something holds, that holds from there on, and at `high`."""
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = np.floor((low + high) / 2)
        found = holds(middle)
        low, high = np.where(found, low, np.minimum(middle + 1, high)), np.where(found, middle, high)
    return low
