"""A budget as the book keeps it: the promise, and the filters that were fixed for it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..accounting import Event, PureFilter, RDPFilter, ZCDPFilter, choose_filter
from ..accounting.events import MOST_EPSILON
from ..accounting.filters import Filter
from ..errors import LedgerDamaged
from .budget import Budget, check_raised
from .entry import canonical
from .filters import TOLERANCE, Filters
from .totals import Vector, Ways

# What each kind of keeper is created with: the first filter's own parameters, and the limits of those that joined it.
LIMITS = {
    "pure": ("epsilon", "delta"),
    "zcdp": ("rho", "delta"),
    "rdp": ("alpha", "epsilon", "delta"),
    "rdp+pure": ("alpha", "epsilon", "delta", "pure"),
}
FILTERS: dict[str, type[Filter]] = {"pure": PureFilter, "zcdp": ZCDPFilter, "rdp": RDPFilter}
NAMES = {kind: name for name, kind in FILTERS.items()}


@dataclass(frozen=True)
class Keeper:
    """A budget as the book keeps it: the promise, and what was fixed for it.

    Attributes:
        budget: The promise.
        kind: Which filters keep it.
        limits: What they were created with, by name.

    Example:
        >>> keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
        >>> keeper == Keeper.from_json(keeper.to_json())
        True
    """

    budget: Budget
    kind: str
    limits: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, budget: Budget, filter: Filter | None = None) -> Keeper:
        """Return what keeps a budget: its own filter, or one that was fixed before.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).limits
            (('epsilon', 1.0), ('delta', 0.0))
        """
        filter = filter or budget.filter()
        kind = NAMES[type(filter)]
        return cls(budget, kind, tuple((name, getattr(filter, name)) for name in LIMITS[kind]))

    def joined(self) -> Keeper:
        """Return the same with a filter on pure ε beside the Rényi order, which takes no part of δ (THEORY 5.4).

        Example:
            >>> keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).joined()
            >>> keeper.kind, keeper.ways, keeper.filters.limits[2]
            ('rdp+pure', ((0, 1), (2, 1)), 1.0)
        """
        assert self.kind == "rdp"
        assert self.budget.epsilon is not None
        pure = min(self.budget.epsilon, MOST_EPSILON / 2)  # as much as such a filter takes
        return dataclasses.replace(self, kind="rdp+pure", limits=(*self.limits, ("pure", pure)))

    @cached_property
    def filters(self) -> Filters:
        """The filters, with nothing used.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).filters.members
            (PureFilter(epsilon=1, delta=0),)
        """
        limits, adjacency = dict(self.limits), self.budget.adjacency
        pure = limits.pop("pure", None)
        first = FILTERS[self.kind.partition("+")[0]](**limits, adjacency=adjacency)
        return Filters([first] if pure is None else [first, PureFilter(pure, first.delta, adjacency=adjacency)])

    @property
    def ways(self) -> Ways:
        """The places of a total that hold together."""
        return self.filters.ways

    @property
    def nothing(self) -> Vector:
        """The total of a budget of which nothing was used."""
        return self.filters.used

    @property
    def order(self) -> float | None:
        """The Rényi order, which stays for ever; None where there is none."""
        return dict(self.limits).get("alpha")

    def units(self, event: Event) -> Vector:
        """Return what an event costs, in units of each limit, rounded up.

        Example:
            >>> from sitr.accounting import PureDP
            >>> Keeper.of(Budget(epsilon=1.0)).units(PureDP(epsilon=0.25))
            (288230376151711744, 0)
        """
        return self.filters.units(event)

    def raised(self, budget: Budget) -> Keeper:
        """Return what keeps a higher promise; a Rényi order stays, since it was fixed in advance.

        Raises:
            InvalidArgument: The new promise is of another kind, or lower, or for someone else.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0, delta=1e-6)).raised(Budget(epsilon=2.0, delta=1e-6)).limits[0]
            ('alpha', 22.17...)
        """
        check_raised(self.budget, budget)
        return self._due(budget)

    def keeps_promise(self) -> bool:
        """Whether the filters are of the kind of the promise, and their limits are no higher than that allows.

        Example:
            >>> keeper = Keeper.of(Budget(epsilon=1.0))
            >>> (
            ...     keeper.keeps_promise(),
            ...     dataclasses.replace(keeper, limits=(("epsilon", 2.0), ("delta", 0.0))).keeps_promise(),
            ... )
            (True, False)
        """
        if self.kind.partition("+")[0] != Keeper.of(self.budget).kind:
            return False
        limits = dict(self.limits)
        return all(limits[name] <= most * (1 + TOLERANCE) for name, most in self._due(self.budget).limits)

    def _due(self, budget: Budget) -> Keeper:
        """What keeps a promise of the same kind by the same order, whichever was the best for it at the creation."""
        if self.order is None:
            return Keeper.of(budget)
        assert budget.epsilon is not None
        assert budget.delta is not None
        fixed = choose_filter(budget.epsilon, budget.delta, alpha=self.order, adjacency=budget.adjacency)
        due = Keeper.of(budget, fixed)
        return due if self.kind == due.kind else due.joined()

    def rescaled(self, used: Vector, other: Keeper, *, up: bool = True) -> Vector:
        """Return what was used in units of another keeper's limits, rounded up, or down; what is dead stays dead.

        Of a filter that joined since, nothing.

        Example:
            >>> one, two = Keeper.of(Budget(epsilon=1.0)), Keeper.of(Budget(epsilon=2.0))
            >>> one.rescaled((2**59, 0), two) == (2**58, 0)
            True
        """
        limits = zip(used, self.filters.limits, other.filters.limits, strict=False)
        return (*(_rescaled(units, old, new, up) for units, old, new in limits), *other.nothing[len(used) :])

    def to_json(self) -> str:
        """Return the record that the book keeps.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).to_json()
            '{"adjacency":"add_remove","epsilon":1.0,"filter":{"delta":0.0,"epsilon":1.0,"type":"pure"},"unit":"person"}'
        """
        promise = {name: value for name, value in dataclasses.asdict(self.budget).items() if value is not None}
        ways = {"ways": self.ways} if len(self.ways) > 1 else {}  # the functions of PostgreSQL judge by them
        return canonical({**promise, "filter": {"type": self.kind, **dict(self.limits), **ways}})

    @classmethod
    def from_json(cls, text: str) -> Keeper:
        """Read what `to_json` wrote.

        Raises:
            LedgerDamaged: It is something else.
        """
        try:
            record = json.loads(text)
            limits = record.pop("filter")
            kind = limits.pop("type")
            keeper = cls(Budget(**record), kind, tuple((name, limits.pop(name)) for name in LIMITS[kind]))
            if limits.pop("ways", [[0, 1]]) != [list(way) for way in keeper.ways]:
                raise ValueError("its filters hold together in other ways")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerDamaged(f"a stored budget cannot be read ({type(error).__name__}).") from None
        return keeper


def _rescaled(units: int | None, old: float, new: float, up: bool) -> int | None:
    if not units:
        return units
    if not new:
        raise LedgerDamaged("a budget without δ has used some of it.", do="sitr ledger verify.")
    exact = units * Fraction(old) / Fraction(new)
    return -(-exact // 1) if up else exact // 1
