"""Several filters at once: an (ε,δ) budget that admits what any of them admits (THEORY 5.4; docs/decisions/0022)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from ... import _validate
from ...errors import BudgetExceeded, InvalidArgument, NoSuchGuarantee
from ...units import Adjacency
from ..events import LARGEST, MOST_EPSILON, SMALLEST, ApproximateDP, Event
from ..losses.gaussian import log_profile
from ..losses.law import UNIT
from .filter import AGREED, PROMISE, Filter, Units, rescaled
from .single import GDPFilter, PureFilter, RDPFilter, SingleFilter, choose_filter, renyi_limit
from .whole import WholeFilter

# Which part of δ each filter takes (docs/decisions/0022). Capacities move with the logarithm of a share.
PARTS = 0.10  # δ-parts of events, as pure ε and the Rényi orders count them
WHOLE_EVENTS = 0.25
GAUSSIAN, GAUSSIAN_PARTS = 0.17, 0.01
MAIN = 0.30  # the Rényi order with the most room for many small releases
LOWER = ((0.75, 0.07), (0.60, 0.10))  # for sampled steps one by one: (α-1) over that of the main order, and the share
USEFUL = 0.01  # of ε: an order with a lower limit holds next to nothing, and that limit would be mostly rounding
MU = (2 * PROMISE**2 / LARGEST, 1 / SMALLEST / 2)  # where Gaussian DP can be promised
SLACK = 1 + 1 / AGREED  # another machine may round a limit otherwise, and a promise covers twice that
FIXED = ("epsilon", "delta", "parts", "mu", "gdp", "gdp_parts", "whole")  # what a record has besides the orders

T = TypeVar("T")


class Order(NamedTuple):
    """A Rényi order that a union watches (THEORY 5.1).

    Attributes:
        alpha: The order.
        delta: The part of δ that turns its divergence into ε.
        divergence: What the divergences may add up to.

    Example:
        >>> round(choose_union(epsilon=1.0, delta=1e-6).orders[0].alpha, 2)
        24.2
    """

    alpha: float
    delta: float
    divergence: float


class UnionFilter(Filter):
    """Admits a history while at least one of several filters does; each event is charged to all (THEORY 5.4).

    The filters: pure ε; Rényi divergences of some orders; Gaussian DP; and whole events by a point of their own curves.
    The first two share one limit on δ-parts, the others have one each. `choose_union` chooses them.

    Args:
        epsilon: The promise.
        delta: The promise: all that follows comes out of it.
        parts: What the δ-parts of events may add up to for pure ε and the Rényi orders.
        orders: The Rényi orders, each with its part of δ and its limit.
        mu: The limit of Gaussian DP; 0 for none.
        gdp: The part of δ that turns μ into ε.
        gdp_parts: What δ-parts may add up to for Gaussian DP.
        whole: The limit on the δ of whole events; 0 for no such filter.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Attributes:
        members: The filters, in the order of `ways`: each is one of them, and its two positions are its costs and its
            δ-parts.

    Raises:
        InvalidArgument: A limit is higher than its part of δ allows, or the parts are more than δ.

    Privacy: everything admitted is (ε,δ)-DP together, for parameters chosen adaptively. On the outcomes at whose end a
    filter is the first that holds, it held throughout, so these outcomes are as likely as under that filter alone: the
    δ of the filters add, and a pure filter takes none. The shared δ-parts count once (THEORY 5.4).

    Example:
        >>> from sitr.accounting import Gaussian, Laplace
        >>> union = choose_union(epsilon=1.0, delta=1e-6)
        >>> events = [Laplace(noise_multiplier=n) for n in (1, 2, 10, 100)] + [Gaussian(noise_multiplier=20)]
        >>> [union.releases(event) for event in events]
        [1, 2, 10, 445, 19]
    """

    theorem = "several filters at once, each by its own theorem (THEORY 5.4)"

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        parts: float,
        orders: Iterable[Order] = (),
        mu: float = 0.0,
        gdp: float = 0.0,
        gdp_parts: float = 0.0,
        whole: float = 0.0,
        adjacency: Adjacency | None = None,
    ) -> None:
        self.epsilon = _validate.real("epsilon", epsilon, 1e-6, MOST_EPSILON / 2)
        self.delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
        self.parts = _part("parts", parts)
        self.orders = tuple(Order(alpha, _part("delta of an order", own), limit) for alpha, own, limit in orders)
        self.mu = _validate.real("mu", mu, 0, math.inf)
        self.gdp, self.gdp_parts, self.whole = _part("gdp", gdp), _part("gdp_parts", gdp_parts), _part("whole", whole)
        self.members: tuple[SingleFilter, ...] = (
            PureFilter(self.epsilon, self.parts),
            *(RDPFilter(order.alpha, order.divergence, self.parts) for order in self.orders),
            *([GDPFilter(self.mu, self.gdp_parts)] if self.mu else []),
            *([WholeFilter(self.epsilon, self.whole)] if self.whole else []),
        )
        self._check_promise()
        shared = 1 + len(self.orders)
        own = range(shared + 1, shared + 1 + 2 * (len(self.members) - shared), 2)
        self.ways = (*((position, shared) for position in range(shared)), *((first, first + 1) for first in own))
        super().__init__(adjacency)

    def __repr__(self) -> str:
        return f"UnionFilter(epsilon={self.epsilon:g}, delta={self.delta:g}, members={len(self.members)})"

    @property
    def limits(self) -> tuple[float, ...]:
        """The limits of all positions: pure ε, the Rényi orders, their δ-parts; then pairs for the other filters."""
        return self._gathered([member.limits for member in self.members])

    def units(self, event: Event) -> Units:
        """Return what an event would charge to every filter, with `None` where it has no guarantee (THEORY 5.4).

        Example:
            >>> from sitr.accounting import Gaussian
            >>> union = choose_union(epsilon=1.0, delta=1e-6)
            >>> [units is None for units in union.units(Gaussian(noise_multiplier=20))]
            [True, False, False, False, False, False, False, False, False]
        """
        found = super().units(event)
        if all(any(found[position] is None for position in way) for way in self.ways):
            raise NoSuchGuarantee(
                "the event has no guarantee that any filter of this budget counts.",
                why="it has no pure ε, and says nothing of the Rényi orders that were fixed in advance (THEORY 5.4).",
                do="describe the mechanism itself, or give a claim that says more.",
            )
        return found

    def _due(self, event: Event) -> Units:
        """Work out what an event would charge to every filter."""
        return self._gathered([member.tally(event) for member in self.members])

    def accepts(self, event: Event, units: Units) -> bool:
        """Return whether a recorded charge is enough for its event: every filter has to accept its part of it.

        Raises:
            IncompatibleAdjacency: The event speaks of other neighbours than the filter.
        """
        self._check(event)  # the members have no adjacency of their own
        if len(units) != len(self.used):
            return False
        return all(
            member.accepts(event, tuple(units[position] for position in way))
            for member, way in zip(self.members, self.ways, strict=True)
        )

    def serving(self, event: Event | None = None) -> SingleFilter:
        """Return the member that would admit the most releases like an event, with what was charged to it."""
        units = (1,) * len(self.used) if event is None else self.units(event)
        pairs = list(zip(self.members, self.ways, strict=True))

        def rank(pair: tuple[SingleFilter, tuple[int, ...]]) -> tuple[Fraction | float, bool]:
            return self._room(pair[1], units), None not in [units[position] for position in pair[1]]

        member, way = max(pairs, key=rank)  # where all are dead, one that knows what the event costs
        return member.having(tuple(self.used[position] for position in way))

    def guarantee(self) -> Event:
        """Return the promise as an event: (ε,δ)-DP, a hair (2^-39) over the limits (THEORY 5.4).

        Example:
            >>> promise = choose_union(epsilon=1.0, delta=1e-6).guarantee()
            >>> round(float(promise.epsilon(delta=1.1e-6)), 9)
            1.0
        """
        return ApproximateDP(self.epsilon * PROMISE, self.delta * PROMISE, adjacency=self.adjacency)

    def record(self) -> dict[str, float]:
        """Return the promise, the parts of δ, and the orders with their limits (THEORY 5.4).

        Example:
            >>> record = choose_union(epsilon=1.0, delta=1e-6).record()
            >>> record["epsilon"], record["whole"], round(record["alpha_1"], 2)
            (1.0, 2.5e-07, 24.2)
        """
        fixed = {name: getattr(self, name) for name in FIXED}
        rows = enumerate(self.orders, 1)
        return fixed | {f"{name}_{number}": value for number, order in rows for name, value in order._asdict().items()}

    @classmethod
    def from_record(cls, record: Mapping[str, float], *, adjacency: Adjacency | None = None) -> UnionFilter:
        """Return the filter of which `record` is the record, with nothing used (THEORY 5.4).

        Raises:
            InvalidArgument: It is none, or its limits are higher than its promise allows.

        Example:
            >>> union = choose_union(epsilon=1.0, delta=1e-6)
            >>> UnionFilter.from_record(union.record()).limits == union.limits, union.limits[0]
            (True, 1.0)
        """
        count = (len(record) - len(FIXED)) // len(Order._fields)
        names = [[f"{name}_{number}" for name in Order._fields] for number in range(1, count + 1)]
        if set(record) != {*FIXED, *(name for row in names for name in row)}:
            raise InvalidArgument("the record is not that of several filters.", do="pass what `record()` returned.")
        orders = [Order(*(record[name] for name in row)) for row in names]
        return cls(**{name: record[name] for name in FIXED}, orders=orders, adjacency=adjacency)

    def raised(self, epsilon: float, delta: float) -> UnionFilter:
        """Return the filter for a higher promise, with what was used: the orders stay, and so do the shares of δ.

        No limit is lowered, and what is dead stays dead (THEORY 5.4).

        Raises:
            InvalidArgument: The promise is lower in ε or in δ.

        Example:
            >>> from sitr.accounting import Laplace
            >>> union = choose_union(epsilon=1.0, delta=1e-6)
            >>> union.charge(Laplace(noise_multiplier=1))
            >>> union.raised(epsilon=4.0, delta=1e-6).serving(Laplace(noise_multiplier=1)).remaining()["epsilon"]
            3.0
        """
        epsilon = _validate.real("epsilon", epsilon, self.epsilon, MOST_EPSILON / 2)
        grown = _validate.real("delta", delta, self.delta, 1, open_high=True) / self.delta
        gdp = self.gdp * grown
        raised = UnionFilter(
            epsilon,
            delta,
            parts=self.parts * grown,
            orders=[_raised(order, epsilon, order.delta * grown) for order in self.orders],
            mu=max(self.mu, _largest_mu(epsilon, gdp)) if self.mu else 0.0,
            gdp=gdp,
            gdp_parts=self.gdp_parts * grown,
            whole=self.whole * grown,
            adjacency=self.adjacency,
        )
        raised.used = rescaled(self.used, self.limits, raised.limits)
        return raised

    def _gathered(self, rows: list[tuple[T, ...]]) -> tuple[T, ...]:
        """Rows of costs and δ-parts, one for each member, as positions: what is shared stands once."""
        shared = 1 + len(self.orders)
        own = (value for row in rows[shared:] for value in row)
        return (*(row[0] for row in rows[:shared]), rows[0][1], *own)

    def _check_promise(self) -> None:
        """Refuse limits that the parts of δ do not allow, and parts that are more than all of it."""
        total = math.fsum([self.parts, self.gdp, self.gdp_parts, self.whole, *(order.delta for order in self.orders)])
        due = [(order.divergence, _divergence(order.alpha, self.epsilon, order.delta)) for order in self.orders]
        over = self.mu and _log_delta(self.mu * PROMISE, self.epsilon) > _log(self.gdp)
        if total > self.delta * SLACK or over or any(limit > most * SLACK for limit, most in due):
            raise InvalidArgument(
                "the limits of the filters are higher than the promise allows.",
                why="the δ of the filters add, and each limit follows from its part of δ (THEORY 5.4).",
                do="use choose_union(epsilon, delta).",
            )

    def _refusal(self, event: Event) -> BudgetExceeded:
        refusal = self.serving(event)._refusal(event)
        why = "the promise is kept by stopping before it would break; of several filters, this one has the most room."
        return BudgetExceeded(refusal.what, why=why, do=refusal.do)


def choose_union(epsilon: float, delta: float, *, adjacency: Adjacency | None = None) -> UnionFilter:
    """Return several filters that keep (ε,δ) together: few large releases, many small ones, and whole plans all fit.

    The Rényi order with the most room for small releases is watched, and for sampled steps lower ones, if they have any
    room at their share of δ. The shares are those of docs/decisions/0022.

    Args:
        epsilon: The promise, in [1e-6, 5000].
        delta: The promise, in (0, 1).
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is (ε,δ)-DP together, for parameters chosen adaptively (THEORY 5.4).

    Example:
        >>> union = choose_union(epsilon=1.0, delta=1e-6)
        >>> [round(order.alpha, 2) for order in union.orders], round(union.mu, 4)
        ([24.2, 18.4, 14.92], 0.2185)
    """
    epsilon = _validate.real("epsilon", epsilon, 1e-6, MOST_EPSILON / 2)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    main = choose_filter(epsilon, MAIN * delta, delta_share=0.0).alpha
    lower = [(1 + (main - 1) * part, share) for part, share in LOWER]
    useful = [(alpha, share) for alpha, share in lower if _divergence(alpha, epsilon, share * delta) > USEFUL * epsilon]
    unused = math.fsum(share for alpha, share in lower if (alpha, share) not in useful)
    orders = [(main, MAIN + unused), *useful]
    return UnionFilter(
        epsilon,
        delta,
        parts=PARTS * delta,
        orders=[Order(alpha, share * delta, _divergence(alpha, epsilon, share * delta)) for alpha, share in orders],
        mu=_largest_mu(epsilon, GAUSSIAN * delta),
        gdp=GAUSSIAN * delta,
        gdp_parts=GAUSSIAN_PARTS * delta,
        whole=WHOLE_EVENTS * delta,
        adjacency=adjacency,
    )


def _part(name: str, value: float) -> float:
    return _validate.real(name, value, 0, 1)


def _raised(order: Order, epsilon: float, delta: float) -> Order:
    return Order(order.alpha, delta, max(order.divergence, _divergence(order.alpha, epsilon, delta)))


def _divergence(alpha: float, epsilon: float, delta: float) -> float:
    """The limit of a Rényi order that keeps (ε,δ), with what a promise allows over limits taken off (THEORY 3.2)."""
    return renyi_limit(alpha - 1, epsilon, _log(delta)) / PROMISE**2


def _largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ of Gaussian DP that keeps (ε,δ), with what a promise allows over limits taken off (THEORY 2.3)."""
    low, high = MU
    while high > low * (1 + 4 * UNIT):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _log_delta(middle, epsilon) <= _log(delta) else (low, middle)
    return low / PROMISE**2


def _log_delta(mu: float, epsilon: float) -> float:
    return float(log_profile(mu, np.float64(epsilon)))


def _log(delta: float) -> float:
    return math.log(delta) if delta > 0 else -math.inf
