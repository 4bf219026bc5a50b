"""What all filters do, and the whole numbers that they count in (docs/decisions/0006, 0022)."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ... import _validate
from ...errors import BudgetExceeded, IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from ...units import ADJACENCIES, Adjacency, join
from ..curve import Curve
from ..events import Event

if TYPE_CHECKING:
    from .single import SingleFilter

WHOLE = 2**60  # a limit is this many units; a cost is a whole number of them, rounded up
MOST = WHOLE + 2**20  # what may be used: a full budget is decided to one part in 2^40
PROMISE = 1 + 2.0**-39  # what a guarantee states over the limit: that part, and as much for rounding in the costs
AGREED = 2**40  # to one part in so many, another machine works out the same cost
REMEMBERED = 256  # costs of events that are asked for again and again

Units: TypeAlias = tuple[int | None, ...]
Kind = TypeVar("Kind", bound="Filter")


class Filter(ABC):
    """What all filters do. Each names its theorem, and the limits that it keeps (THEORY 5.1, 5.2, 5.4).

    Attributes:
        theorem: The result that allows the analyst to be fully adaptive.
        ways: Sets of positions. What was admitted is within the promise while in one of them every position is within
            its limit.
        adjacency: The relation that admitted events speak of; `None` until one of them fixes it.
        used: What was charged, in units of 2^-60 of the limit of each position: whole numbers of any size, all that a
            ledger has to keep. `None` where an event has no guarantee: nothing brings such a position back.

    Example:
        >>> from sitr.accounting import PureDP, PureFilter
        >>> filter: Filter = PureFilter(epsilon=1.0)
        >>> filter.charge(PureDP(epsilon=0.25))
        >>> filter.used[0] / 2**60
        0.25
    """

    theorem: str
    ways: tuple[tuple[int, ...], ...] = ((0, 1),)

    def __init__(self, adjacency: Adjacency | None) -> None:
        self.adjacency = None if adjacency is None else _validate.choice("adjacency", adjacency, ADJACENCIES)
        self.used: Units = (0,) * (1 + max(position for way in self.ways for position in way))
        self._remembered: dict[Event, Units] = {}  # limits never change, so what an event costs does not either

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_remembered": {}}  # another version of sitr may read it, with other costs

    @property
    @abstractmethod
    def limits(self) -> tuple[float, ...]:
        """The limit of each position: for squares that add, the square (THEORY 5.1).

        Example:
            >>> from sitr.accounting import GDPFilter
            >>> GDPFilter(mu=0.5, delta=1e-6).limits
            (0.25, 1e-06)
        """

    def units(self, event: Event) -> Units:
        """Return what an event would charge, in units of 2^-60 of each limit, rounded up: these add (THEORY 5.1).

        Raises:
            NoSuchGuarantee: The event has no guarantee that this filter could count.
            IncompatibleAdjacency: The event speaks of other neighbours than the filter.

        Example:
            >>> from sitr.accounting import PureDP, PureFilter
            >>> PureFilter(epsilon=1.0).units(PureDP(epsilon=0.25))  # a quarter of 2^60
            (288230376151711744, 0)
        """
        self._check(event)
        found = self._remembered.get(event)
        if found is None:
            found = self._due(event)
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            self._remembered[event] = found
        return found

    @abstractmethod
    def _due(self, event: Event) -> Units:
        """Work out `units` of an event that is one, and speaks of the neighbours of this filter."""

    @abstractmethod
    def guarantee(self) -> Event:
        """Return the promise: what is admitted, however it is chosen, costs no more than this event (THEORY 5.1).

        Example:
            >>> from sitr.accounting import GDPFilter
            >>> round(float(GDPFilter(mu=1.0).guarantee().epsilon(delta=1e-6)), 4)
            4.8866
        """

    @abstractmethod
    def accepts(self, event: Event, units: Units) -> bool:
        """Return whether a recorded charge is enough for its event: for who works old charges out again (THEORY 5.4).

        It may be more than is due today, as an accountant that was less tight charged it; and less by 2^-40, as another
        machine may round otherwise. A position that is recorded as `None` is paid for.

        Example:
            >>> from sitr.accounting import PureDP, PureFilter
            >>> filter, quarter = PureFilter(epsilon=1.0), PureDP(epsilon=0.25)
            >>> [units / 2**60 for units in (2**57, 2**58, 2**59) if filter.accepts(quarter, (units, 0))]
            [0.25, 0.5]
        """

    @abstractmethod
    def record(self) -> dict[str, float]:
        """Return what the filter was created with, as plain numbers; `from_record` makes the same limits of it.

        Limits are recorded, not worked out again: no other version and no other machine rounds them otherwise
        (THEORY 5.4: filters and shares are those of the creation).

        Example:
            >>> from sitr.accounting import ZCDPFilter
            >>> ZCDPFilter(rho=0.5).record()
            {'rho': 0.5, 'delta': 0.0}
        """

    @classmethod
    @abstractmethod
    def from_record(cls: type[Kind], record: Mapping[str, float], *, adjacency: Adjacency | None = None) -> Kind:
        """Return the filter of which `record` is the record, with nothing used (THEORY 5.4).

        Raises:
            InvalidArgument: It is none, or its limits are higher than its promise allows.

        Example:
            >>> from sitr.accounting import ZCDPFilter
            >>> ZCDPFilter.from_record({"rho": 0.5, "delta": 0.0})
            ZCDPFilter(rho=0.5, delta=0)
        """

    def having(self: Kind, used: Units) -> Kind:
        """Return this filter with so much used, as a ledger has counted it (THEORY 5.4).

        Example:
            >>> from sitr.accounting import PureFilter
            >>> PureFilter(epsilon=1.0).having((2**59, 0)).remaining()["epsilon"]
            0.5
        """
        other = copy.copy(self)
        other.used, other._remembered = used, self._remembered
        return other

    @abstractmethod
    def serving(self, event: Event | None = None) -> SingleFilter:
        """Return the one filter that would admit the most releases like an event, with what was charged to it.

        Without an event it is the one that has the largest part of its limits left. What is left is reported by it,
        never by a sum or a mean over several filters, of which each holds alone (THEORY 5.4). Its `remaining` tells the
        cost and the δ-parts apart.

        Raises:
            NoSuchGuarantee: The event has no guarantee that this filter could count.

        Example:
            >>> from sitr.accounting import Gaussian, Laplace, choose_union
            >>> union = choose_union(epsilon=1.0, delta=1e-6)
            >>> union.charge(Laplace(noise_multiplier=4))
            >>> union.serving(Laplace(noise_multiplier=2)).remaining()["epsilon"]
            0.75
        """

    def holds(self, used: Units) -> bool:
        """Return whether a history that used so much is within the promise: some way is (THEORY 5.4).

        Example:
            >>> from sitr.accounting import PureFilter
            >>> histories = (2**59, 0), (2**60, 0), (2**61, 0), (None, 0)
            >>> [used[0] / 2**60 for used in histories if PureFilter(epsilon=1.0).holds(used)]
            [0.5, 1.0]
        """
        return any(all(_within(used[position]) for position in way) for way in self.ways)

    def admits(self, event: Event) -> bool:
        """Return whether `charge(event)` would succeed: a filter stops before its sum passes the limit (THEORY 5.1).

        Nothing changes. What has no guarantee in the filter's notion is not admitted.

        Example:
            >>> from sitr.accounting import Gaussian, PureDP, PureFilter
            >>> filter = PureFilter(epsilon=1.0)
            >>> filter.charge(PureDP(epsilon=0.75))
            >>> asked = PureDP(epsilon=0.25), PureDP(epsilon=0.26), Gaussian(noise_multiplier=10)
            >>> filter.remaining()["epsilon"], [filter.admits(event) for event in asked]
            (0.25, [True, False, False])
        """
        try:
            return self.holds(added(self.used, self.units(event)))
        except (NoSuchGuarantee, IncompatibleAdjacency):
            return False

    def charge(self, event: Event) -> None:
        """Charge an event, before it is run, or refuse it and change nothing (THEORY 5.1, 5.4).

        Raises:
            BudgetExceeded: It would break the promise; the message says what was asked, what is left, what is missing.
            NoSuchGuarantee: The event has no guarantee that this filter could count.
            IncompatibleAdjacency: The event speaks of other neighbours than those before it.

        Example:
            >>> from sitr.accounting import Gaussian, ZCDPFilter
            >>> half = ZCDPFilter(rho=0.5)
            >>> half.charge(Gaussian(noise_multiplier=2) * 3)
            >>> half.charge(Gaussian(noise_multiplier=2) * 2)
            Traceback (most recent call last):
            sitr.errors.BudgetExceeded: BudgetExceeded [SITR-B01]: rho: 0.250 requested, 0.125 left, short by 0.125.
            Why: ...
        """
        used = added(self.used, self.units(event))
        if not self.holds(used):
            raise self._refusal(event)
        self.adjacency = join(self.adjacency, event.adjacency)
        self.used = used

    def releases(self, event: Event) -> float:
        """Return how many more releases like an event would be admitted; infinity for one that costs nothing.

        By the way that admits the most of them (THEORY 5.4).

        Example:
            >>> from sitr.accounting import Laplace, PureFilter
            >>> PureFilter(epsilon=1.0).releases(Laplace(noise_multiplier=20))
            20
        """
        units = self.units(event)
        most = max(self._room(way, units) for way in self.ways)
        return math.inf if most == math.inf else math.floor(max(most, Fraction(0)))

    def _room(self, way: tuple[int, ...], units: Units) -> Fraction | float:
        """How many such charges a way has room for, in exact parts of one; negative where it is overdrawn."""
        rooms: list[Fraction | float] = []
        for used, due in ((self.used[position], units[position]) for position in way):
            if used is None or due is None:
                return -math.inf
            left = MOST - used
            rooms.append(Fraction(left, due) if due else math.copysign(math.inf, left))
        return min(rooms)

    @abstractmethod
    def _refusal(self, event: Event) -> BudgetExceeded:
        """Say what is missing."""

    def _check(self, event: Event) -> None:
        """Refuse what is no event, or speaks of other neighbours."""
        if not isinstance(event, Event):
            raise InvalidArgument(f"{type(event).__name__} is not an event.", do="Pass one, such as Gaussian(10).")
        join(self.adjacency, event.adjacency)


def added(used: Units, units: Units) -> Units:
    """Return what is used after a charge; what is dead stays dead (THEORY 5.4).

    Example:
        >>> added((1, None, 3), (4, 5, None))
        (5, None, None)
    """
    pairs = zip(used, units, strict=True)
    return tuple(None if one is None or other is None else one + other for one, other in pairs)


def rescaled(used: Units, old: Iterable[float], new: Iterable[float]) -> Units:
    """Return what was used in units of other limits, exactly, and rounded up; what is dead stays dead (THEORY 5.4).

    Example:
        >>> rescaled((518 * 2**60, None), (1.0, 1e-6), (2.0, 1e-5)) == (259 * 2**60, None)
        True
    """
    return tuple(
        None if one is None else math.ceil(one * Fraction(before) / Fraction(after)) if one else 0
        for one, before, after in zip(used, old, new, strict=True)
    )


def in_units(cost: float, limit: float) -> int | None:
    """Return a cost in units of a limit, rounded up, by exact arithmetic; None where no such number exists.

    Example:
        >>> in_units(518.0, 1.0) == 518 * 2**60, in_units(math.inf, 1.0), in_units(1e-9, 0.0)
        (True, None, None)
    """
    if cost <= 0:
        return 0
    if limit == 0 or math.isinf(cost):
        return None
    (n, d), (limit_n, limit_d) = cost.as_integer_ratio(), limit.as_integer_ratio()
    return -(-n * limit_d * WHOLE // (d * limit_n))


def amount_of(units: int, limit: float, towards: float) -> float:
    """Return units as a number again, rounded towards +∞ or -∞.

    Example:
        >>> amount_of(2**59, 3.0, math.inf)
        1.5
    """
    exact = Fraction(limit) * units / WHOLE
    near = float(exact)
    wrong = near < exact if towards > 0 else near > exact
    return math.nextafter(near, towards) if wrong else near


def covers(paid: int | None, due: int | None) -> bool:
    """Return whether what was recorded is what is due, but for what another machine may round otherwise.

    Example:
        >>> covers(2**50, 2**50 + 1), covers(2**50, 2**50 + 2**20), covers(None, 3), covers(3, None)
        (True, False, True, False)
    """
    if paid is None or due is None:
        return paid is None
    return paid * AGREED >= due * (AGREED - 1)


@lru_cache(maxsize=256)
def curve_of(event: Event) -> Curve:
    """Return the curve of an event, apart from it: what was worked out for thousands of them is not kept with each.

    Example:
        >>> from sitr.accounting import Laplace
        >>> curve_of(Laplace(noise_multiplier=2)).pure()
        0.5
    """
    return event.curve


def _within(used: int | None) -> bool:
    return used is not None and used <= MOST
