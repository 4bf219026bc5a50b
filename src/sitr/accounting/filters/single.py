"""One filter, by one theorem: a running sum of costs, and one of δ-parts, each under its limit (THEORY 5.1, 5.2)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, TypeVar

import numpy as np

from ... import _validate
from ...display import rounded_down, rounded_up, scientific
from ...errors import BudgetExceeded, InvalidArgument, NoSuchGuarantee
from ...units import Adjacency
from ..engines.mix import Mix, minimise
from ..events import (
    LARGEST,
    MOST_EPSILON,
    SMALLEST,
    ApproximateDP,
    Composed,
    Event,
    Gaussian,
    PureDP,
    Renyi,
    ZeroConcentrated,
)
from ..losses.law import UNIT
from ..notions import composed_gdp
from .filter import MOST, PROMISE, WHOLE, Filter, Units, amount_of, covers, curve_of, in_units

Kind = TypeVar("Kind", bound="SingleFilter")


class SingleFilter(Filter):
    """A filter that keeps one sum of costs and one of δ-parts: two positions, and one way (THEORY 5.1).

    Attributes:
        limit: What the costs may add up to; for squares that add, the square.
        delta: How much infinite-loss mass the admitted events may have in all; these δ-parts add (THEORY 1.4).
        parameter: What the limit is called.

    Privacy: what each kind of filter promises, for parameters chosen adaptively.

    Example:
        >>> filter: SingleFilter = PureFilter(epsilon=1.0)
        >>> filter.parameter, filter.limits
        ('epsilon', (1.0, 0.0))
    """

    parameter: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()  # what else was chosen in advance
    power: ClassVar[int] = 1  # it is value**power that adds up

    def __init__(self, limit: float, delta: float, adjacency: Adjacency | None) -> None:
        super().__init__(adjacency)
        self.limit = limit
        self.delta = _validate.real("delta", delta, 0, 0.5)

    def __repr__(self) -> str:
        names = [*self.fixed, self.parameter, "delta"]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name):g}' for name in names)})"

    @property
    def limits(self) -> tuple[float, ...]:
        """The limits of the sum of costs, and of that of δ-parts."""
        return self.limit, self.delta

    @abstractmethod
    def cost(self, event: Event) -> float:
        """Return what an event costs in the filter's notion, its δ-part apart: what its theorem adds up (THEORY 5.1).

        Example:
            >>> event = Gaussian(noise_multiplier=2)
            >>> ZCDPFilter(rho=0.5).cost(event), round(GDPFilter(mu=1.0).cost(event), 6)
            (0.125, 0.5)
        """

    def delta_part(self, event: Event) -> float:
        """Return the mass outside which the cost of an event holds, with what rounding may have taken (THEORY 1.4).

        Example:
            >>> PureFilter(epsilon=1.0, delta=1e-6).delta_part(ApproximateDP(epsilon=0.5, delta=1e-9))
            1e-09
        """
        return curve_of(event)._orders.most_infinite_mass

    def _due(self, event: Event) -> Units:
        """Work out what an event would charge: its cost, and its δ-part."""
        return in_units(self.cost(event) ** self.power, self.limit), in_units(self.delta_part(event), self.delta)

    def tally(self, event: Event) -> Units:
        """Return `units`, with `None` for a cost that does not exist, as beside other filters (THEORY 5.4).

        Example:
            >>> PureFilter(epsilon=1.0, delta=1e-6).tally(Gaussian(noise_multiplier=10))
            (None, 0)
        """
        try:
            return self.units(event)
        except NoSuchGuarantee:
            return None, in_units(self.delta_part(event), self.delta)

    def accepts(self, event: Event, units: Units) -> bool:
        """Return whether a recorded charge is enough for its event."""
        return all(covers(paid, due) for paid, due in zip(units, self.tally(event), strict=True))

    def serving(self, event: Event | None = None) -> SingleFilter:
        """Return this filter: there is no other."""
        return self

    def record(self) -> dict[str, float]:
        """Return the limits, and what else was chosen in advance."""
        return {name: getattr(self, name) for name in (*self.fixed, self.parameter, "delta")}

    @classmethod
    def from_record(cls: type[Kind], record: Mapping[str, float], *, adjacency: Adjacency | None = None) -> Kind:
        """Return the filter of such limits."""
        if set(record) != {*cls.fixed, cls.parameter, "delta"}:
            raise InvalidArgument(f"the record is not that of a {cls.__name__}.", do="pass what `record()` returned.")
        return cls(**record, adjacency=adjacency)

    def spent(self) -> dict[str, float]:
        """Return the sum of what was charged so far (THEORY 5.1), rounded up, and never more than the limit.

        Example:
            >>> filter = GDPFilter(mu=1.0, delta=1e-6)
            >>> filter.charge(Gaussian(noise_multiplier=5) * 9 + ApproximateDP(epsilon=0.0, delta=1e-7))
            >>> {name: round(value, 9) for name, value in filter.spent().items()}
            {'mu': 0.6, 'delta': 1e-07}
        """
        cost, mass = self.counted
        total = self._total(amount_of(cost, self.limit, math.inf))
        spent = amount_of(mass, self.delta, math.inf)
        return {self.parameter: min(total, getattr(self, self.parameter)), "delta": min(spent, self.delta)}

    def remaining(self) -> dict[str, float]:
        """Return the most that one more event may cost, rounded down: what the limit leaves (THEORY 5.1).

        Example:
            >>> filter = GDPFilter(mu=1.0)
            >>> filter.charge(Gaussian(noise_multiplier=5) * 9)
            >>> round(filter.remaining()["mu"], 6)
            0.8
        """
        cost, mass = self.counted
        left = amount_of(max(WHOLE - cost, 0), self.limit, -math.inf)
        root = left if self.power == 1 else max(math.nextafter(math.sqrt(left), -math.inf), 0.0)
        return {self.parameter: root, "delta": amount_of(max(WHOLE - mass, 0), self.delta, -math.inf)}

    @property
    def counted(self) -> tuple[int, int]:
        """What was used of both limits, in units of 2^-60, where a limit that is dead is used up (THEORY 5.4).

        Example:
            >>> [units / 2**60 for units in PureFilter(epsilon=1.0, delta=1e-6).having((2**58, 2**59)).counted]
            [0.25, 0.5]
        """
        cost, mass = (MOST if used is None else used for used in self.used)
        return cost, mass

    def _total(self, summed: float) -> float:
        """From the running sum to the parameter of all that was admitted."""
        return summed if self.power == 1 else math.nextafter(math.sqrt(summed), math.inf)

    def _refusal(self, event: Event) -> BudgetExceeded:
        left, short = self.remaining(), []
        over = [due is None or used + due > MOST for used, due in zip(self.counted, self.units(event), strict=True)]
        if over[0]:
            cost, rest = self.cost(event), left[self.parameter]
            shown = rounded_up(cost), rounded_down(rest), rounded_up(cost - rest)
            short.append("{}: {} requested, {} left, short by {}".format(self.parameter, *shown))
        if over[1]:
            mass, rest = self.delta_part(event), left["delta"]
            shown = scientific(mass), scientific(rest), scientific(mass - rest)
            short.append("delta: {} requested, {} left, short by {}".format(*shown))
        return BudgetExceeded(
            f"{'; '.join(short)}.",
            why=f"the promise is kept by stopping before it would break ({self.theorem}).",
            do="ask for an event that costs no more than what is left: more noise, a lower rate, fewer repetitions.",
        )


class PureFilter(SingleFilter):
    """Keeps Σ ε_i ≤ `epsilon`, and Σ δ_i ≤ `delta` (THEORY 5.1).

    Args:
        epsilon: The limit.
        delta: What the δ-parts of events may sum up to.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is (ε,δ)-DP together, for parameters chosen adaptively.

    Example:
        >>> filter = PureFilter(epsilon=1.0)
        >>> for _ in range(10):
        ...     filter.charge(PureDP(epsilon=0.1))
        >>> filter.spent()["epsilon"], filter.remaining()["epsilon"], filter.admits(PureDP(epsilon=1e-9))
        (1.0, 0.0, False)
    """

    theorem = "Rogers, Roth, Ullman and Vadhan 2016: basic composition with adaptively chosen parameters"
    parameter = "epsilon"

    def __init__(self, epsilon: float, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self.epsilon = _validate.real("epsilon", epsilon, 0, MOST_EPSILON / 2, open_low=True)
        super().__init__(self.epsilon, delta, adjacency)

    def cost(self, event: Event) -> float:
        """Return the ε of an event, outside its δ-part: its largest loss (THEORY 1.3).

        Raises:
            NoSuchGuarantee: Its loss is unbounded, as for Gaussian noise.

        Example:
            >>> PureFilter(epsilon=1.0).cost(ApproximateDP(epsilon=0.5, delta=1e-9))
            0.5
        """
        return curve_of(event).pure(delta_part=True)

    def guarantee(self) -> Event:
        """Return the promise as an event: (ε,δ)-DP, or pure where δ = 0, a hair (2^-39) over the limits (THEORY 5.1).

        Example:
            >>> round(PureFilter(epsilon=1.0).guarantee().pure(), 9)
            1.0
        """
        return _approximate(self.epsilon * PROMISE, self.delta * PROMISE, self.adjacency)


class ZCDPFilter(SingleFilter):
    """Keeps Σ ρ_i ≤ `rho`, and Σ δ_i ≤ `delta` (THEORY 5.1).

    Args:
        rho: The limit.
        delta: What the δ-parts of events may sum up to.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is δ-approximately ρ-zCDP together, for parameters chosen adaptively. An event that is
    (ξ,ρ)-zCDP is charged ξ + ρ, since ξ + ρα ≤ (ξ+ρ)α.

    Example:
        >>> filter = ZCDPFilter(rho=0.5)
        >>> filter.charge(Gaussian(noise_multiplier=10) * 30)
        >>> round(filter.remaining()["rho"], 6), round(float(filter.guarantee().epsilon(delta=1e-6)), 4)
        (0.35, 5.2215)
    """

    theorem = "Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023: fully adaptive composition of zCDP"
    parameter = "rho"

    def __init__(self, rho: float, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self.rho = _validate.real("rho", rho, 0, 1e12, open_low=True)
        super().__init__(self.rho, delta, adjacency)

    def cost(self, event: Event) -> float:
        """Return the ρ of an event, or ξ + ρ, outside its δ-part (THEORY 1.4, 3.1).

        Example:
            >>> ZCDPFilter(rho=0.5).cost(Gaussian(noise_multiplier=2))
            0.125
        """
        zcdp = curve_of(event).zcdp(delta_part=True)
        return zcdp.rho + zcdp.xi

    def guarantee(self) -> Event:
        """Return the promise as an event: zCDP, a hair (2^-39) over the limits (THEORY 5.1).

        Example:
            >>> round(float(ZCDPFilter(rho=0.1).guarantee().epsilon(delta=1e-6)), 4)
            2.1419
        """
        return ZeroConcentrated(rho=self.rho * PROMISE, delta=self.delta * PROMISE, adjacency=self.adjacency)


class RDPFilter(SingleFilter):
    """Keeps Σ D_α,i ≤ `epsilon` at one order α, fixed in advance, and Σ δ_i ≤ `delta` (THEORY 5.1).

    Args:
        alpha: The order, above 1. `choose_filter` finds a good one.
        epsilon: The limit on the Rényi divergence of that order.
        delta: What the δ-parts of events may sum up to.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted has D_α ≤ ε together, outside a mass of δ, for parameters chosen adaptively. To watch
    several orders and stop by the best one is another rule, with another promise: that of `UnionFilter`.

    Example:
        >>> filter = RDPFilter(alpha=20, epsilon=1.0)
        >>> filter.charge(Gaussian(noise_multiplier=10) * 5)
        >>> round(filter.spent()["epsilon"], 6), round(float(filter.guarantee().epsilon(delta=1e-6)), 3)
        (0.5, 1.518)
    """

    theorem = "Feldman and Zrnic 2021: Rényi filter at one order fixed in advance"
    fixed = ("alpha",)
    parameter = "epsilon"

    def __init__(self, alpha: float, epsilon: float, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self.alpha = _validate.real("alpha", alpha, 1, 1e12, open_low=True)
        self.epsilon = _validate.real("epsilon", epsilon, 0, 1e12, open_low=True)
        super().__init__(self.epsilon, delta, adjacency)

    def cost(self, event: Event) -> float:
        """Return D_α of an event, outside its δ-part, with the rounding error of its computation added (THEORY 1.4).

        Raises:
            NoSuchGuarantee: The event says nothing about this order.

        Example:
            >>> round(RDPFilter(alpha=20, epsilon=1.0).cost(Gaussian(noise_multiplier=10)), 6)
            0.1
        """
        divergence = _rdp(event, self.alpha)
        if math.isinf(divergence):
            raise NoSuchGuarantee(
                f"the event says nothing about the Rényi order {self.alpha:g} of this filter.",
                why="the order of a filter is fixed in advance (THEORY 5.1).",
                do="state the event's divergence at this order, or a higher one.",
            )
        return divergence

    def guarantee(self) -> Event:
        """Return the promise as an event: D_α at the one order, a hair (2^-39) over the limit (THEORY 5.1).

        Example:
            >>> RDPFilter(alpha=20, epsilon=1.0).guarantee().rdp(20)
            1.0
        """
        point = (self.alpha, self.epsilon * PROMISE)
        return Renyi(points=[point], delta=self.delta * PROMISE, adjacency=self.adjacency)


class GDPFilter(SingleFilter):
    """Keeps Σ μ_i² ≤ `mu`², and Σ δ_i ≤ `delta` (THEORY 5.1).

    Args:
        mu: The limit; that of one Gaussian event is 1/noise_multiplier.
        delta: What the δ-parts of events may sum up to. Discrete Gaussian noise has one, of about 1e-25: at 0 it is
            refused.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is μ-Gaussian DP together, outside a mass of δ, for parameters chosen adaptively.
    Exact where all events are Gaussian; others pay the least Gaussian that covers them.

    Example:
        >>> filter = GDPFilter(mu=1.0)
        >>> filter.charge(Gaussian(noise_multiplier=2) * 3)
        >>> filter.admits(Gaussian(noise_multiplier=2)), filter.admits(Gaussian(noise_multiplier=1.9))
        (True, False)
        >>> round(float(filter.guarantee().epsilon(delta=1e-6)), 4)
        4.8866
    """

    theorem = "Koskela, Tobaben and Honkela 2022; Smith and Thakurta 2022: fully adaptive composition of Gaussian DP"
    parameter = "mu"
    power = 2

    def __init__(self, mu: float, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self.mu = _validate.real("mu", mu, 2 / LARGEST, 1 / SMALLEST / 2)
        super().__init__(self.mu**2, delta, adjacency)

    def cost(self, event: Event) -> float:
        """Return the μ of an event, outside its δ-part, with the rounding error of its computation added (THEORY 3.5).

        Example:
            >>> round(GDPFilter(mu=1.0).cost(Gaussian(noise_multiplier=4)), 6)
            0.25
        """
        curve = curve_of(event)
        parts = sum(count for _, count in curve.parts)  # each may be off by 4 units, and squares add
        mu = composed_gdp(curve.parts)[0] if self.delta else curve.gdp(delta_part=True)
        return mu + 4 * UNIT * math.sqrt(parts)

    def delta_part(self, event: Event) -> float:
        """Return the mass outside which μ holds: infinite losses, and what discrete noise leaves out (THEORY 3.5).

        Example:
            >>> from sitr.accounting import DiscreteGaussian
            >>> f"{GDPFilter(mu=1.0, delta=1e-6).delta_part(DiscreteGaussian(scale=20)):.1g}"
            '1e-25'
        """
        mass = super().delta_part(event)
        try:
            outside = composed_gdp(curve_of(event).parts)[1]
        except NoSuchGuarantee:
            outside = 0.0
        return math.nextafter(mass + outside, math.inf) if outside else mass

    def guarantee(self) -> Event:
        """Return the promise as an event: the Gaussian of this μ, and the mass of the δ-parts (THEORY 2.3, 5.1).

        With δ-parts it says nothing of groups: a mass that is small for one person may be large two steps away.

        Example:
            >>> GDPFilter(mu=0.5).guarantee().gdp()
            0.5
        """
        gaussian = Gaussian(noise_multiplier=1 / (self.mu * PROMISE), adjacency=self.adjacency)
        return gaussian + ZeroConcentrated(0.0, delta=self.delta * PROMISE) if self.delta else gaussian


class AdvancedFilter(SingleFilter):
    """Keeps √(2 ln(1/δ') Σ ε_i²) + ½ Σ ε_i² ≤ `epsilon`, and Σ δ_i ≤ `delta` (THEORY 5.2).

    Args:
        epsilon: The limit.
        slack: δ', which the composition itself uses up.
        delta: δ'', what the δ-parts of events may sum up to.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is (ε, δ'+δ'')-DP together, for parameters chosen adaptively. `choose_filter` gives a
    tighter filter for the same promise; this one is the theorem in its own words.

    Example:
        >>> filter = AdvancedFilter(epsilon=1.0, slack=1e-6)
        >>> filter.charge(PureDP(epsilon=0.01) * 300)
        >>> round(filter.spent()["epsilon"], 4), filter.admits(PureDP(epsilon=0.01) * 40)
        (0.9255, True)
    """

    theorem = "Whitehouse, Ramdas, Rogers and Wu 2023: fully adaptive advanced composition"
    fixed = ("slack",)
    parameter = "epsilon"
    power = 2

    def __init__(self, epsilon: float, slack: float, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self.epsilon = _validate.real("epsilon", epsilon, 0, MOST_EPSILON / 2, open_low=True)
        self.slack = _validate.real("slack", slack, 0, 0.5, open_low=True)
        log = -math.log(self.slack)
        # The positive root x of √(2 log) x + x²/2 = ε, without cancellation.
        root = 2 * self.epsilon / (math.sqrt(2 * log + 2 * self.epsilon) + math.sqrt(2 * log))
        super().__init__(root**2, delta, adjacency)
        _validate.real("slack + delta", self.slack + self.delta, 0, 0.5)

    def cost(self, event: Event) -> float:
        """Return the ε of an event, outside its δ-part; √Σε_i² of several, as squares add (THEORY 5.2).

        Raises:
            NoSuchGuarantee: Its loss is unbounded, as for Gaussian noise.

        Example:
            >>> filter = AdvancedFilter(epsilon=1.0, slack=1e-6)
            >>> filter.cost(PureDP(epsilon=0.01)), filter.cost(PureDP(epsilon=0.01) * 100)
            (0.01, 0.1)
        """
        costs = [(curve_of(part).pure(delta_part=True), count) for part, count in _single(event)]
        return math.sqrt(math.fsum(cost * cost * count for cost, count in costs))

    def guarantee(self) -> Event:
        """Return the promise as an event: (ε, δ'+δ'')-DP, a hair (2^-39) over the limits (THEORY 5.2).

        Example:
            >>> round(float(AdvancedFilter(epsilon=1.0, slack=1e-6).guarantee().epsilon(delta=1e-6)), 9)
            1.0
        """
        return _approximate(self.epsilon * PROMISE, self.slack + self.delta * PROMISE, self.adjacency)

    def _total(self, summed: float) -> float:
        return math.nextafter(math.sqrt(-2 * math.log(self.slack) * summed) + summed / 2, math.inf)


def choose_filter(
    epsilon: float,
    delta: float,
    *,
    delta_share: float = 0.1,
    alpha: float | None = None,
    adjacency: Adjacency | None = None,
) -> RDPFilter:
    """Return the Rényi filter that keeps (ε,δ) and has room for the most Gaussian noise.

    At order α the budget is ε - ln((α-1)/α) + (ln δ' + ln α)/(α-1) (THEORY 3.2), and a Gaussian with ρ costs αρ: the
    order with the largest budget/α is taken. It is as large as the ρ of a zCDP filter for the same promise, and Laplace
    and sampled events cost less in it.

    Args:
        epsilon: The promise.
        delta: The promise, in (0, 1).
        delta_share: The part of δ that is kept for δ-parts. A tenth takes 0.9 % of the room at (1, 1e-6), and a half
            would take 6 %; at 0, events with a δ-part are refused.
        alpha: An order that is fixed already, as when a budget is raised: then only the limit is found.
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is (ε,δ)-DP together, for parameters chosen adaptively (THEORY 3.2, 5.1).

    Example:
        >>> filter = choose_filter(epsilon=1.0, delta=1e-6)
        >>> round(filter.alpha, 2), round(filter.epsilon / filter.alpha, 5)  # the order, and the room for ρ
        (22.18, 0.02413)
        >>> filter.admits(Gaussian(noise_multiplier=4.56)), filter.admits(Gaussian(noise_multiplier=4.55))
        (True, False)
    """
    epsilon = _validate.real("epsilon", epsilon, 1e-6, MOST_EPSILON)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    share = _validate.real("delta_share", delta_share, 0, 1, open_high=True)
    log_delta = math.log(delta) + math.log1p(-share)
    if alpha is None:
        start = math.sqrt(-2 * log_delta + 1) / epsilon
        alpha = 1 + minimise(lambda c: -renyi_limit(c, epsilon, log_delta) / (1 + c), start, 1e-6)
    alpha = _validate.real("alpha", alpha, 1, 1e12, open_low=True)
    limit = renyi_limit(alpha - 1, epsilon, log_delta) / PROMISE**2
    return RDPFilter(alpha, limit, delta * share / PROMISE, adjacency=adjacency)


def renyi_limit(c: float, epsilon: float, log_delta: float) -> float:
    """Return the largest divergence of order 1 + c that implies (ε,δ)-DP; not positive where none does (THEORY 3.2).

    Example:
        >>> round(renyi_limit(21.0, 1.0, math.log(1e-6)), 4)
        0.5358
    """
    return epsilon + math.log1p(1 / c) + (log_delta + math.log1p(c)) / c


def _approximate(epsilon: float, delta: float, adjacency: Adjacency | None) -> Event:
    if delta:
        return ApproximateDP(epsilon, delta, adjacency=adjacency)
    return PureDP(epsilon, adjacency=adjacency)


def _single(event: Event) -> tuple[tuple[Event, int], ...]:
    return event.events if isinstance(event, Composed) else ((event, 1),)


def _rdp(event: Event, alpha: float) -> float:
    """D_α outside the δ-part, the larger of both orders, with the bound of the rounding model added."""
    return max(0.0, *(_log_moment(mix, alpha - 1) / (alpha - 1) for mix in curve_of(event)._orders.all))


def _log_moment(mix: Mix, c: float) -> float:
    """Return ln E e^{cL} of one order and what `Mix.log_mgf_error` allows for its rounding, in one evaluation."""
    total = mix.m2 * c * (c + 1) / 2 * (1 + 8 * UNIT)
    with np.errstate(over="ignore"):
        for loss, count in mix.parts:
            value = float(loss.log_mgf(np.asarray(c, dtype=np.float64)))
            total += count * (value + UNIT * (16 + 16 * abs(value)))
    return total
