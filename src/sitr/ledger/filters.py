"""The filters that keep one budget together, as the book counts them (THEORY 5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property

from ..accounting import Event
from ..accounting.filters import MOST, WHOLE, Filter
from ..errors import NoSuchGuarantee
from .totals import Vector, Ways

# Limits and costs may differ so far, relatively, from what another machine works out: as far as filters allow anyway.
TOLERANCE = 2.0**-40
_PARTS = round(1 / TOLERANCE)


class Filters:
    """Filters of which at least one holds, under one common limit on δ-parts.

    Args:
        members: Each of another notion; all have the same limit on δ-parts, and each a way of its own.

    Privacy: while one member admits the whole history, everything admitted is (ε, δ₀ + Σδ_k)-DP, where member k
    promises (ε, δ_k) outside of δ-parts that add up to δ₀ at most. Every step is charged to every member, also to
    those that no longer hold, and the members are those of the creation (THEORY 5.4).

    Example:
        >>> from sitr.accounting import Gaussian, PureDP, PureFilter, ZCDPFilter
        >>> both = Filters([ZCDPFilter(rho=0.5), PureFilter(epsilon=1.0)])
        >>> both.units(PureDP(epsilon=0.5))[2] / 2**60, both.units(Gaussian(noise_multiplier=2))[2]
        (0.5, None)
    """

    def __init__(self, members: Sequence[Filter]) -> None:
        self.members = tuple(members)

    @cached_property
    def scale(self) -> tuple[float, ...]:
        """The limit that each place is counted in units of: a cost, the δ-parts, and the costs of other members.

        Example:
            >>> from sitr.accounting import PureFilter
            >>> Filters([PureFilter(epsilon=1.0, delta=1e-9)]).scale
            (1.0, 1e-09)
        """
        first, *others = self.members
        return (first.limit, first.delta, *(other.limit for other in others))

    @cached_property
    def ways(self) -> Ways:
        """The places that hold together, for each member: its cost and the δ-parts.

        Example:
            >>> from sitr.accounting import PureFilter, ZCDPFilter
            >>> Filters([ZCDPFilter(rho=0.5), PureFilter(epsilon=1.0)]).ways
            ((0, 1), (2, 1))
        """
        return ((0, 1), *((place, 1) for place in range(2, len(self.scale))))

    @property
    def theorem(self) -> str:
        """What allows the analyst to be fully adaptive."""
        several = " (THEORY 5.4: while one of them holds)" if len(self.members) > 1 else ""
        return "; or ".join(member.theorem for member in self.members) + several

    def units(self, event: Event) -> Vector:
        """Return what an event costs in each place, rounded up and never clamped (THEORY 5.1).

        Raises:
            NoSuchGuarantee: It has no guarantee in the notion of any member.
            IncompatibleAdjacency: It speaks of other neighbours than they do.
        """
        costs: list[int | None] = []
        parts, reasons = [], []
        for member in self.members:
            try:
                cost, mass = member.units(event)
                parts.append(mass)
                costs.append(cost if cost <= MOST else _exact(member.cost(event) ** member.power, member.limit))
            except NoSuchGuarantee as reason:
                reasons.append(reason)
                costs.append(None)
        if not parts:
            raise reasons[0]
        return (costs[0], parts[0], *costs[1:])

    def accepts(self, event: Event, units: Vector) -> bool:
        """Return whether recorded units are enough for an event: what is due, up to another machine's rounding.

        Example:
            >>> from sitr.accounting import PureDP, PureFilter
            >>> filters, event = Filters([PureFilter(epsilon=1.0)]), PureDP(epsilon=0.5)
            >>> [filters.accepts(event, (units, 0)) for units in (2**59, 2**59 - 2**10, 2**58, None)]
            [True, True, False, True]
        """
        return len(units) == len(self.scale) and all(map(_enough, units, self.units(event)))

    def speaker(self, used: Vector, event: Event | None = None) -> Filter:
        """Return the member that speaks for all, with what it has used.

        It is the one that admits the most of an event, or, without one, that has the most left: never a sum or a mean.

        Example:
            >>> from sitr.accounting import Gaussian, PureFilter, ZCDPFilter
            >>> both = Filters([ZCDPFilter(rho=0.5), PureFilter(epsilon=1.0)])
            >>> both.speaker((2**59, 0, 2**58)), both.speaker((2**59, 0, 2**58), Gaussian(noise_multiplier=2))
            (PureFilter(epsilon=1, delta=0), ZCDPFilter(rho=0.5, delta=0))
        """
        units = (1,) * len(used) if event is None else self.units(event)
        rooms = [_room(used, units, way) for way in self.ways]
        best = rooms.index(max(rooms))
        member = copy(self.members[best])
        cost, delta = (used[place] for place in self.ways[best])
        member.used = (_told(cost), _told(delta))
        return member

    def times(self, used: Vector, event: Event) -> int:
        """Return how many of an event still fit, by the member that admits the most.

        Example:
            >>> from sitr.accounting import PureDP, PureFilter
            >>> Filters([PureFilter(epsilon=1.0)]).times((2**59, 0), PureDP(epsilon=0.1))
            5
        """
        units = self.units(event)
        return int(max(0, *(_room(used, units, way) for way in self.ways)))


def _exact(cost: float, limit: float) -> int | None:
    """A cost over the limit, in units of it: the filter's own end at one more than may ever be used."""
    return None if math.isinf(cost) else -(-Fraction(cost) * WHOLE // Fraction(limit))


def _enough(paid: int | None, due: int | None) -> bool:
    return paid is None or (due is not None and (due - paid) * _PARTS <= due)


def _told(used: int | None) -> int:
    """What reports make of a total: over the limit is over the limit."""
    return MOST + 1 if used is None else min(used, MOST + 1)


def _room(used: Vector, units: Vector, way: tuple[int, ...]) -> Fraction | float:
    """How many times so many units fit into a way; less than none where it does not hold, or does not know them."""
    room: Fraction | float = math.inf
    for place in way:
        spent, more = used[place], units[place]
        room = -math.inf if spent is None or more is None else min(room, Fraction(MOST - spent, max(more, 1)))
    return room
