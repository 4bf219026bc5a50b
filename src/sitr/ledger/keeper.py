"""A budget as the book keeps it: the promise, and the filters that were fixed for it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..accounting import Event, PureFilter, RDPFilter, UnionFilter, ZCDPFilter, choose_filter
from ..accounting.events import MOST_EPSILON
from ..accounting.filters import Filter, Order
from ..errors import LedgerDamaged, SitrError
from .budget import Budget, check_raised
from .entry import canonical
from .totals import Vector, Ways

# One Rényi order alone kept the (ε,δ) budgets of older books.
FILTERS: dict[str, type[Filter]] = {"pure": PureFilter, "zcdp": ZCDPFilter, "rdp": RDPFilter, "union": UnionFilter}
NAMES = {kind: name for name, kind in FILTERS.items()}
# Limits may differ so far, relatively, from what another machine works out: as far as filters allow anyway.
TOLERANCE = 2.0**-40


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
        return cls(budget, NAMES[type(filter)], tuple(filter.record().items()))

    @property
    def alone(self) -> bool:
        """Whether one Rényi order keeps an (ε,δ) budget where pure ε could be counted beside it (THEORY 5.4)."""
        return self.kind == "rdp" and _number(self.budget.epsilon) <= MOST_EPSILON / 2

    def joined(self) -> Keeper:
        """Return the same with a filter on pure ε beside the one Rényi order, which takes no part of δ (THEORY 5.4).

        Example:
            >>> from sitr.accounting import choose_filter
            >>> budget = Budget(epsilon=1.0, delta=1e-6)
            >>> keeper = Keeper.of(budget, choose_filter(epsilon=1.0, delta=1e-6)).joined()
            >>> keeper.filter.members
            (PureFilter(epsilon=1, delta=1e-07), RDPFilter(alpha=22.1775, epsilon=0.535134, delta=1e-07))
        """
        epsilon, delta, limits = _number(self.budget.epsilon), _number(self.budget.delta), dict(self.limits)
        order = Order(limits["alpha"], delta - limits["delta"], limits["epsilon"])
        return Keeper.of(self.budget, UnionFilter(epsilon, delta, parts=limits["delta"], orders=[order]))

    @cached_property
    def filter(self) -> Filter:
        """The filter, with nothing used.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).filter
            PureFilter(epsilon=1, delta=0)
        """
        return FILTERS[self.kind].from_record(dict(self.limits), adjacency=self.budget.adjacency)

    @property
    def ways(self) -> Ways:
        """The places of a total that hold together."""
        return self.filter.ways

    @property
    def nothing(self) -> Vector:
        """The total of a budget of which nothing was used."""
        return self.filter.used

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
        return self.filter.units(event)

    def raised(self, budget: Budget) -> Keeper:
        """Return what keeps a higher promise; Rényi orders and shares of δ stay, since they were fixed in advance.

        Raises:
            InvalidArgument: The new promise is of another kind, or lower, or for someone else.

        Example:
            >>> raised = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).raised(Budget(epsilon=2.0, delta=1e-6))
            >>> [round(order.alpha, 2) for order in raised.filter.orders]
            [24.2, 18.4, 14.92]
        """
        check_raised(self.budget, budget)
        return self._due(budget)

    def keeps_promise(self) -> bool:
        """Whether the filter is of the kind of the promise, and its limits are no higher than that allows.

        Example:
            >>> keeper = Keeper.of(Budget(epsilon=1.0))
            >>> (
            ...     keeper.keeps_promise(),
            ...     dataclasses.replace(keeper, limits=(("epsilon", 2.0), ("delta", 0.0))).keeps_promise(),
            ... )
            (True, False)
        """
        limits = dict(self.limits)
        if self.kind == "union":  # which refuses limits that its own promise does not allow
            return (limits["epsilon"], limits["delta"]) == (self.budget.epsilon, self.budget.delta)
        approximate = self.budget.rho is None and bool(self.budget.delta)
        if (self.kind == "rdp") != approximate:
            return False
        due = self._due(self.budget)
        return self.kind == due.kind and all(limits[name] <= most * (1 + TOLERANCE) for name, most in due.limits)

    def follows(self, due: Keeper) -> bool:
        """Whether this is a keeper that is due, up to another machine's rounding: for who reads a raise again.

        Example:
            >>> one, two = (Keeper.of(Budget(epsilon=epsilon, delta=1e-6)) for epsilon in (1.0, 2.0))
            >>> two.follows(one.raised(two.budget)), one.raised(two.budget).follows(one.raised(two.budget))
            (False, True)
        """
        if (self.budget, self.kind) != (due.budget, due.kind) or len(self.limits) != len(due.limits):
            return False
        pairs = zip(self.limits, due.limits, strict=True)
        return all(name == other and abs(value - most) <= most * TOLERANCE for (name, value), (other, most) in pairs)

    def _due(self, budget: Budget) -> Keeper:
        """What keeps a promise of the same kind by the same orders, whichever were chosen at the creation."""
        if isinstance(self.filter, UnionFilter):
            return Keeper.of(budget, self.filter.raised(_number(budget.epsilon), _number(budget.delta)))
        if self.kind == "rdp":
            order = dict(self.limits)["alpha"]
            return Keeper.of(budget, choose_filter(_number(budget.epsilon), _number(budget.delta), alpha=order))
        return Keeper.of(budget)

    def rescaled(self, used: Vector, other: Keeper, *, up: bool = True) -> Vector:
        """Return what was used in units of another keeper's limits, rounded up, or down; what is dead stays dead.

        Of a filter on pure ε that joined since, nothing.

        Example:
            >>> one, two = Keeper.of(Budget(epsilon=1.0)), Keeper.of(Budget(epsilon=2.0))
            >>> one.rescaled((2**59, 0), two) == (2**58, 0)
            True
        """
        before, after = self.filter.limits, other.filter.limits
        if self.kind == "rdp" and other.kind == "union":
            used, before = (0, *used), (after[0], *before)
        limits = zip(used, before, after, strict=True)
        return tuple(_rescaled(units, old, new, up) for units, old, new in limits)

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
            ways, budget = limits.pop("ways", [[0, 1]]), Budget(**record)
            keeper = cls.of(budget, FILTERS[kind].from_record(limits))
            if ways != [list(way) for way in keeper.ways]:
                raise ValueError("its filters hold together in other ways")
        except (ValueError, TypeError, KeyError, AttributeError, SitrError) as error:
            raise LedgerDamaged(f"a stored budget cannot be read ({type(error).__name__}).") from None
        return keeper


def _rescaled(units: int | None, old: float, new: float, up: bool) -> int | None:
    if not units:
        return units
    if not new:
        raise LedgerDamaged("a budget without δ has used some of it.", do="sitr ledger verify.")
    exact = units * Fraction(old) / Fraction(new)
    return -(-exact // 1) if up else exact // 1


def _number(value: float | None) -> float:
    assert value is not None
    return value
