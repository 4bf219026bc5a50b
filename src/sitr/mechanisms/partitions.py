"""Which groups may be named at all: those that enough people are in."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..accounting import Event, Gaussian, calibrate_noise
from ..accounting.notions import SMOOTHING
from ..errors import InvalidArgument, SitrError
from ..units import ADJACENCIES, Adjacency
from .grid import Grid
from .mechanism import Mechanism
from .randomness import Source
from .samplers.draws import shuffled
from .samplers.table import Integers
from .stability import LEAST_SIGMA, Gate, Kind, NormalGate

MOST_GROUPS = 512
NOISES = get_args(Kind)
SHARE = 0.5  # of δ, that the threshold behind Gaussian noise may take; what it does not take, the noise has
WIDER = (2.0**-40, 2.0**-30, 2.0**-20, 2.0**-10)  # what rounding may take


class Counted(NamedTuple):
    """Groups of the data with how many people are in each."""

    keys: list[Hashable]
    counts: Integers


class PartitionSelection(Mechanism):
    """Stability-based selection of groups; made by `select_partitions`.

    Attributes:
        threshold: A group is released if its noisy count reaches this.
        noise: "laplace" or "gaussian".
        scale: Of the noise: the scale of Laplace noise, the standard deviation of Gaussian noise.
        max_groups_per_unit: How many groups one person may be in.
    """

    error95 = None

    def __init__(self, event: Event, gate: Gate | NormalGate, max_groups_per_unit: int) -> None:
        self.event, self._gate, self.max_groups_per_unit = event, gate, max_groups_per_unit
        self.threshold, self.noise, self.scale = gate.threshold + 1, gate.kind, gate.scale

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
        return math.exp(self.log_tail(np.array([float(missing)]))[0])

    def log_tail(self, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities that the noise on a count is at least so many whole numbers."""
        return self._gate.log_tail(least)

    def _checked(self, value: Any) -> Counted:
        return counted("counts", value)

    def _drawn(self, value: Counted, source: Source | None) -> dict[Hashable, int]:
        noisy = self._gate.noisy(value.counts - 1, source)
        order = np.arange(noisy.size) if source is None else shuffled(noisy.size, source)
        passed = order[noisy[order] >= self._gate.threshold]
        return {value.keys[place]: int(noisy[place]) + 1 for place in passed.tolist()}


def select_partitions(
    *,
    epsilon: float,
    delta: float,
    max_groups_per_unit: int = 1,
    adjacency: Adjacency = "add_remove",
    noise: Kind | None = None,
) -> PartitionSelection:
    """Return the groups that enough people are in, with their noisy counts; the others stay unnamed.

    A release takes {key: how many different people} over the groups that occur, and returns {key: noisy count} for
    those whose noisy count reaches a threshold, in random order, as the order of the data may tell of them.

    Args:
        epsilon: The ε that a release costs, with
        delta: the δ: at most half of it, or all, is the probability that a group of one person is named.
        max_groups_per_unit: How many groups one person is in at most; each counts a person once.
        adjacency: Under `replace_one` a person may leave their groups and enter as many others: twice as many change.
        noise: Laplace noise grows with the number of groups that a person is in, Gaussian noise with its root; the one
            with the smaller threshold by default.

    Privacy: (ε,δ)-DP (THEORY 2.5). In each group that a person changes the count moves by 1, and the noise hides it; or
    the group is theirs alone, and it is named, an infinite loss, with a small probability: r^{T-1}/(1 + r),
    r = e^{-1/scale}, for Laplace noise. Either is dominated by one event of its gate (`stability`), the noises are
    independent, and so m groups are dominated by m of them: the event is that composition (THEORY 2.6, 4.3), with
    infinite-loss mass 1 - (1 - δ_T)^m. The time tells how many groups the data have, and not which are named.

    Example:
        >>> groups = select_partitions(epsilon=1.0, delta=1e-6)
        >>> sorted(groups.release({"common": 1000, "known": 500, "rare": 1}, unsafe_seed=1).value)
        ['common', 'known']
        >>> groups.event.infinite_mass <= 1e-6, round(float(groups.event.epsilon(delta=1e-6)), 4)
        (True, 1.0)
        >>> many = select_partitions(epsilon=1.0, delta=1e-6, max_groups_per_unit=20)
        >>> many.noise, many.threshold < select_partitions(epsilon=0.05, delta=5e-8).threshold / 2
        ('gaussian', True)
    """
    cost = _validate.real("epsilon", epsilon, 1e-9, 1e4)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    most = _validate.integer("max_groups_per_unit", max_groups_per_unit, 1, MOST_GROUPS)
    changed = most if _validate.choice("adjacency", adjacency, ADJACENCIES) == "add_remove" else 2 * most
    wanted = NOISES if noise is None else (_validate.choice("noise", noise, NOISES),)
    found: list[PartitionSelection] = []
    for kind in wanted:
        try:
            gate, event = GATES[kind](cost, delta, changed, adjacency)
        except SitrError:  # this noise cannot be drawn, or no price was found for it
            if kind == wanted[-1] and not found:
                raise
            continue
        found.append(PartitionSelection(event, gate, most))
    return min(found, key=lambda one: one.threshold)


def _laplace_gate(epsilon: float, delta: float, changed: int, adjacency: Adjacency) -> tuple[Gate, Event]:
    gate = Gate.of(Fraction(epsilon) / changed, delta / changed)
    return gate, gate.event(adjacency) * changed


@lru_cache(maxsize=256)
def _normal_gate(epsilon: float, delta: float, changed: int, adjacency: Adjacency) -> tuple[NormalGate, Event]:
    """Gaussian noise for a part of δ; what it takes to pass for continuous noise is added to its variance."""

    def sigma(left: float) -> float:
        noise = calibrate_noise(Gaussian, epsilon=epsilon, delta=left).value
        return max(math.sqrt(noise**2 * changed + SMOOTHING), LEAST_SIGMA)

    first = NormalGate.of(sigma((1 - SHARE) * delta), SHARE * delta / changed)
    mass = -math.expm1(changed * math.log1p(-first.delta))  # thresholds are whole: less of δ may be taken
    least = sigma((delta - mass) / (1 - mass))
    for more in WIDER:
        gate = NormalGate.of(least * (1 + more), first.delta)
        event = gate.event(adjacency) * changed
        if event.epsilon(delta=delta).upper <= epsilon:
            return gate, event
    raise InvalidArgument("no Gaussian noise was found at this cost.", do='take noise="laplace".')


GATES: dict[str, Callable[[float, float, int, Adjacency], tuple[Gate | NormalGate, Event]]] = {
    "laplace": _laplace_gate,
    "gaussian": _normal_gate,
}


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
