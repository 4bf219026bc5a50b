"""The filters that keep one budget together, as the book counts them (THEORY 5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property

from ..accounting import Event
from ..accounting.filters import MOST, WHOLE, Filter
from ..errors import IncompatibleAdjacency, NoSuchGuarantee
from .totals import Vector, Ways, holds, plus

# Limits and costs may differ so far, relatively, from what another machine works out: as far as filters allow anyway.
TOLERANCE = 2.0**-40
_PARTS = round(1 / TOLERANCE)
REMEMBERED = 256  # costs of events that are asked for again and again


class Filters:
    """Filters of which at least one holds, under one common limit on δ-parts.

    Args:
        members: Each of another notion; all have the same limit on δ-parts, and each a way of its own.

    Attributes:
        used: What was used, in each place.

    Privacy: while one member admits the whole history, everything admitted is (ε, δ₀ + Σδ_k)-DP, where member k
    promises (ε, δ_k) outside of δ-parts that add up to δ₀ at most. Every step is charged to every member, also to
    those that no longer hold (THEORY 5.4).

    Example:
        >>> from sitr.accounting import Gaussian, PureDP, PureFilter, ZCDPFilter
        >>> both = Filters([ZCDPFilter(rho=0.5), PureFilter(epsilon=1.0)])
        >>> both.units(PureDP(epsilon=0.5))[2] / 2**60, both.units(Gaussian(noise_multiplier=2))[2]
        (0.5, None)
    """

    def __init__(self, members: Sequence[Filter]) -> None:
        self.members = tuple(members)
        self.used: Vector = (0,) * len(self.limits)
        self._costs: dict[Event, Vector] = {}

    def at(self, used: Vector) -> Filters:
        """Return the same filters with so much used.

        Example:
            >>> from sitr.accounting import PureFilter
            >>> Filters([PureFilter(epsilon=1.0)]).at((2**59, 0)).serving().remaining()["epsilon"]
            0.5
        """
        made = copy(self)
        made.used = used
        return made

    @cached_property
    def limits(self) -> tuple[float, ...]:
        """What each place is counted in units of: the limit of a cost, of δ-parts, and of the costs of other members.

        Example:
            >>> from sitr.accounting import PureFilter
            >>> Filters([PureFilter(epsilon=1.0, delta=1e-9)]).limits
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
        return ((0, 1), *((place, 1) for place in range(2, len(self.limits))))

    @property
    def theorem(self) -> str:
        """What allows the analyst to be fully adaptive."""
        several = "; while one of them holds (THEORY 5.4)" if len(self.members) > 1 else ""
        return "; or ".join(member.theorem for member in self.members) + several

    def units(self, event: Event) -> Vector:
        """Return what an event costs in each place, rounded up and never clamped (THEORY 5.1).

        Raises:
            NoSuchGuarantee: It has no guarantee in the notion of any member.
            IncompatibleAdjacency: It speaks of other neighbours than they do.
        """
        found = self._costs.get(event)
        if found is None:
            if len(self._costs) >= REMEMBERED:
                self._costs.clear()
            found = self._costs[event] = self._units(event)
        return found

    def _units(self, event: Event) -> Vector:
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
        return len(units) == len(self.limits) and all(map(covers, units, self.units(event)))

    def admits(self, event: Event) -> bool:
        """Return whether an event still fits; what has no price here does not.

        Example:
            >>> from sitr.accounting import Gaussian, PureDP, PureFilter
            >>> filters = Filters([PureFilter(epsilon=1.0)]).at((2**59, 0))
            >>> [filters.admits(event) for event in (PureDP(epsilon=0.5), PureDP(epsilon=0.6), Gaussian(10))]
            [True, False, False]
        """
        try:
            return holds(plus(self.used, self.units(event)), self.ways)
        except (NoSuchGuarantee, IncompatibleAdjacency):
            return False

    def releases(self, event: Event) -> int:
        """Return how many of an event still fit, by the member that admits the most.

        Example:
            >>> from sitr.accounting import PureDP, PureFilter
            >>> Filters([PureFilter(epsilon=1.0)]).at((2**59, 0)).releases(PureDP(epsilon=0.1))
            5
        """
        units = self.units(event)
        return int(max(0, *(self._room(way, units) for way in self.ways)))

    def serving(self, event: Event | None = None) -> Filter:
        """Return the member that speaks for all, with what it has used: never a sum or a mean (THEORY 5.4).

        It is the one that admits the most of an event or, without one, that has the most left.

        Example:
            >>> from sitr.accounting import Gaussian, PureFilter, ZCDPFilter
            >>> both = Filters([ZCDPFilter(rho=0.5), PureFilter(epsilon=1.0)]).at((2**59, 0, 2**58))
            >>> both.serving(), both.serving(Gaussian(noise_multiplier=2))
            (PureFilter(epsilon=1, delta=0), ZCDPFilter(rho=0.5, delta=0))
        """
        units = (1,) * len(self.used) if event is None else self.units(event)
        rooms = [self._room(way, units) for way in self.ways]
        best = rooms.index(max(rooms))
        member = copy(self.members[best])
        cost, mass = (self.used[place] for place in self.ways[best])
        member.used = (_told(cost), _told(mass))
        return member

    def _room(self, way: tuple[int, ...], units: Vector) -> Fraction | float:
        """How many times so many units fit into a way; less than none where it does not hold, or does not know them."""
        room: Fraction | float = math.inf
        for place in way:
            used, more = self.used[place], units[place]
            room = min(room, -math.inf if used is None or more is None else Fraction(MOST - used, max(more, 1)))
        return room


def _exact(cost: float, limit: float) -> int | None:
    """A cost over the limit, in units of it: the filter's own end at one more than may ever be used."""
    return None if math.isinf(cost) else -(-Fraction(cost) * WHOLE // Fraction(limit))


def covers(paid: int | None, due: int | None) -> bool:
    """Return whether what was recorded of one place is what is due, up to another machine's rounding.

    Example:
        >>> covers(2**50 - 1, 2**50), covers(2**49, 2**50), covers(None, 3), covers(3, None)
        (True, False, True, False)
    """
    return paid is None or (due is not None and (due - paid) * _PARTS <= due)


def _told(used: int | None) -> int:
    """What reports make of a total: over the limit is over the limit."""
    return MOST + 1 if used is None else min(used, MOST + 1)
