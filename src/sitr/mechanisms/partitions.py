"""Which groups may be named at all: those that enough people are in."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from ..accounting import Event
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency
from .grid import Grid
from .mechanism import Mechanism
from .randomness import Source
from .samplers.draws import shuffled
from .samplers.table import Integers
from .stability import Gate

MOST_GROUPS = 512


class Counted(NamedTuple):
    """Groups of the data with how many people are in each."""

    keys: list[Hashable]
    counts: Integers


class PartitionSelection(Mechanism):
    """Stability-based selection of groups; made by `select_partitions`.

    Attributes:
        threshold: A group is released if its noisy count reaches this.
        scale: Of the noise.
        max_groups_per_unit: How many groups one person may be in.
    """

    error95 = None

    def __init__(self, event: Event, gate: Gate, max_groups_per_unit: int) -> None:
        self.event, self._gate, self.max_groups_per_unit = event, gate, max_groups_per_unit
        self.threshold, self.scale = gate.threshold + 1, float(1 / gate.rate)

    def __repr__(self) -> str:
        return f"PartitionSelection({self.event!r}, threshold={self.threshold})"

    def chance(self, count: int) -> float:
        """Return the probability that a group of so many people is released (THEORY 2.5).

        Example:
            >>> groups = select_partitions(epsilon=1.0, delta=1e-6)
            >>> groups.threshold, [round(groups.chance(count), 3) for count in (1, 10, 15, 20)]
            (15, [0.0, 0.005, 0.731, 0.998])
        """
        missing = self.threshold - _validate.integer("count", count, 1, 2**61)
        rate = float(self._gate.rate)
        if missing >= 0:
            return math.exp(-rate * missing) / (1 + math.exp(-rate))
        return 1 - math.exp(rate * (missing - 1)) / (1 + math.exp(-rate))

    def _checked(self, value: Any) -> Counted:
        return counted("counts", value)

    def _drawn(self, value: Counted, source: Source | None) -> dict[Hashable, int]:
        noisy = self._gate.noisy(value.counts - 1, source)
        order = np.arange(noisy.size) if source is None else shuffled(noisy.size, source)
        passed = order[noisy[order] >= self._gate.threshold]
        return {value.keys[place]: int(noisy[place]) + 1 for place in passed.tolist()}


def select_partitions(
    *, epsilon: float, delta: float, max_groups_per_unit: int = 1, adjacency: Adjacency = "add_remove"
) -> PartitionSelection:
    """Return the groups that enough people are in, with their noisy counts; the others stay unnamed.

    A release takes {key: how many different people} over the groups that occur, and returns {key: noisy count} for
    those whose noisy count reaches a threshold, in random order, as the order of the data may tell of them.

    Args:
        epsilon: The ε that a release costs, with
        delta: the δ: the probability that a group of one person is named.
        max_groups_per_unit: How many groups one person is in at most; each counts a person once.
        adjacency: Under `replace_one` a person may leave their groups and enter as many others: twice as many change.

    Privacy: (ε,δ)-DP (THEORY 2.5). In each group that a person changes the count moves by 1, and the noise hides it; or
    the group is theirs alone, and it is named, an infinite loss, with probability r^{T-1}/(1 + r), r = e^{-1/scale}.
    Either is dominated by one (ε*,δ_T) black box (`stability.Gate`), the noises are independent, and so m groups are
    dominated by m of them: the event is that composition (THEORY 2.6, 4.3), with infinite-loss mass 1 - (1 - δ_T)^m.
    The time tells how many groups the data have, and not which are named.

    Example:
        >>> groups = select_partitions(epsilon=1.0, delta=1e-6)
        >>> sorted(groups.release({"common": 1000, "known": 500, "rare": 1}, unsafe_seed=1).value)
        ['common', 'known']
        >>> groups.event.infinite_mass <= 1e-6, round(float(groups.event.epsilon(delta=1e-6)), 4)
        (True, 1.0)
    """
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    most = _validate.integer("max_groups_per_unit", max_groups_per_unit, 1, MOST_GROUPS)
    changed = most if _validate.choice("adjacency", adjacency, ADJACENCIES) == "add_remove" else 2 * most
    gate = Gate.of(cost / changed, delta / changed)
    return PartitionSelection(gate.event(adjacency) * changed, gate, most)


def counted(name: str, value: Any) -> Counted:
    """Return groups and how many people are in each, without empty ones, or refuse them without showing them."""
    refusal = InvalidArgument(
        f"{name} is not a dictionary from groups to whole numbers from 0.", do="Pass {key: number of people}."
    )
    if not isinstance(value, Mapping):
        raise refusal
    if not value:
        return Counted([], np.empty(0, dtype=np.int64))
    try:
        counts = Grid(None, len(value)).placed(name, list(value.values()))
    except InvalidArgument:
        raise refusal from None
    if np.any(counts < 0):
        raise refusal
    return Counted([key for key, count in zip(value, counts, strict=True) if count > 0], counts[counts > 0])
