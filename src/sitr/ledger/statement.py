"""What a budget has left, in numbers that people can use, and the exact composition beside them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..accounting import (
    Bracket,
    Composed,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
)
from ..accounting.filters import MOST, WHOLE, Filter, RDPFilter, ZCDPFilter
from ..display import percent, reckoned, rounded_down, rounded_up, scientific
from ..errors import BudgetExceeded, SitrError
from .budget import Budget, Keeper
from .change import Change
from .entry import Head

FIXED_IN_ADVANCE = "if this sequence had been fixed in advance"


class Amount(NamedTuple):
    """An amount of privacy in a budget's own measure.

    Attributes:
        value: How much, rounded up where it was spent, and down where it is left.
        delta: How much of what is kept for δ-parts.
        share: The larger of both, of its limit.
        measure: "epsilon", "rho", or "rdp" for a Rényi divergence.
        order: Of that divergence, which the budget was given when it was created; None for the others.

    Example:
        >>> Amount(0.25, 0.0, 0.25, "epsilon").share
        0.25
    """

    value: float
    delta: float
    share: float
    measure: str
    order: float | None = None


class Point(NamedTuple):
    """A budget after an entry.

    Attributes:
        seq: The entry.
        at: When.
        kind: What happened.
        left: What is left, as a share of the limit of that day.

    Example:
        >>> Point(3, "2026-01-01T00:00:00+00:00", "reserve", 0.75).left
        0.75
    """

    seq: int
    at: str
    kind: str
    left: float


@dataclass(frozen=True)
class Statement:
    """What `Ledger.statement` says of a budget.

    Attributes:
        name: The budget.
        budget: Its promise.
        theorem: What allows the analyst to be fully adaptive.
        promises: When it was promised and raised: (date, promise, reason).
        changes: Everything that changed the promise since: raises, and declarations that say it otherwise.
        declared: The declarations that say what it depends on: (name, version, date).
        spent: By the filter, which enforces.
        remaining: By the filter.
        fits: The least noise of one release that still fits; empty where nothing does.
        operations: How many were charged, by state.
        event: All that was released, composed; of several blocks, the one that spent most.
        exact_delta: The δ of `exact`.
        exact: The ε of `event`, if this sequence had been fixed in advance: a report, never a limit.
        claimed: Whether an event rests on a user's own numbers.
        unreadable: How many charges name an event that cannot be read or composed, and are not in `event`.
        block: The block that `event` is of, where blocks count apart.
        ledger: The id of the book.
        head: Its end, which fixes all of it.
        points: What was left after everything that changed it, for a picture.

    Example:
        >>> from sitr.ledger import Ledger
        >>> ledger = Ledger.open("memory://")
        >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
        >>> ledger.statement("clinic").remaining.value
        1.0
    """

    name: str
    budget: Budget
    theorem: str
    promises: tuple[tuple[str, str, str], ...]
    changes: tuple[Change, ...]
    declared: tuple[tuple[str, int, str], ...]
    spent: Amount
    remaining: Amount
    fits: str
    operations: dict[str, int]
    event: Event
    exact_delta: float
    exact: Bracket
    claimed: bool
    unreadable: int
    block: str | None
    ledger: str
    head: Head
    points: tuple[Point, ...]

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Return names and what is said of them, rounded to the safe side."""
        rows = [("budget", self.name), ("promise", str(self.budget))]
        rows.append(("promised", f"{self.promises[0][1]} on {self.promises[0][0][:10]}"))
        rows += [("declared", f"in {name}, version {version}, on {at[:10]}") for name, version, at in self.declared]
        rows += [(change.verb, change.text) for change in self.changes]
        rows += [("spent", amount_text(self.spent, spent=True)), ("left", amount_text(self.remaining, spent=False))]
        rows.append(("fits", f"one {self.fits}" if self.fits else "nothing any more"))
        exact = f"ε = {rounded_up(self.exact.upper)} at δ = {scientific(self.exact_delta)} {FIXED_IN_ADVANCE}"
        rows.append(
            ("exact", f"{exact} (between {rounded_down(self.exact.lower, 6)} and {rounded_up(self.exact.upper, 6)})")
        )
        rows += [("block", f"{self.block!r}: the one that spent most")] if self.block else []
        rows += (
            [("CLAIMED", "an event rests on its user's own numbers, which sitr cannot check")] if self.claimed else []
        )
        if self.unreadable:
            rows.append(
                ("UNREADABLE", f"{self.unreadable} charges name no event that can be composed: sitr ledger verify")
            )
        rows.append(("operations", ", ".join(f"{count} {state}" for state, count in self.operations.items()) or "none"))
        return [*rows, ("head", f"{self.head} of ledger {self.ledger}")]


def amounts(keeper: Keeper, used: tuple[int, int]) -> tuple[Amount, Amount]:
    """Return what is spent, rounded up, and what remains, rounded down.

    Example:
        >>> spent, remaining = amounts(Keeper.of(Budget(epsilon=1.0)), (2**58, 0))
        >>> spent.value, remaining.value, spent.share
        (0.25, 0.75, 0.25)
    """
    filter = keeper.filter(used)
    measure = "rdp" if isinstance(filter, RDPFilter) else filter.parameter
    full = min(max(used), WHOLE)
    spent, left = filter.spent(), filter.remaining()
    return (
        Amount(spent[filter.parameter], spent["delta"], rounded_share(full, math.inf), measure, keeper.order),
        Amount(left[filter.parameter], left["delta"], rounded_share(WHOLE - full, -math.inf), measure, keeper.order),
    )


def rounded_share(units: int, towards: float) -> float:
    """Return units as a share of the limit, rounded towards +∞ or -∞ where a float cannot hold it.

    Example:
        >>> rounded_share(2**59, math.inf), rounded_share(2**60 - 1, -math.inf) < 1
        (0.5, True)
    """
    share = units / WHOLE
    wrong = share * WHOLE < units if towards > 0 else share * WHOLE > units
    return math.nextafter(share, towards) if wrong else share


def amount_text(amount: Amount, *, spent: bool) -> str:
    """Say an amount, rounded to the safe side.

    Example:
        >>> amount_text(Amount(0.12345, 0.0, 0.2, "rho"), spent=True)
        '20.0 % of the budget (ρ 0.124)'
    """
    rounded = rounded_up if spent else rounded_down
    value, mass = (reckoned(one, spent=spent) for one in (amount.value, amount.delta))
    signs = {"epsilon": "ε", "rho": "ρ", "rdp": f"Rényi divergence of order {amount.order or 0:.4g}:"}
    delta = f", δ {scientific(mass, up=spent)}" if mass else ""
    return f"{percent(amount.share, spent=spent)} of the budget ({signs[amount.measure]} {rounded(value)}{delta})"


def refusal(name: str, keeper: Keeper, used: tuple[int, int], event: Event) -> BudgetExceeded:
    """Return why an event does not fit into what a budget has left, and what would.

    Example:
        >>> from sitr.accounting import PureDP
        >>> print(refusal("clinic", Keeper.of(Budget(epsilon=1.0)), (3 * 2**58, 0), PureDP(epsilon=0.5)))
        BudgetExceeded [SITR-B01]: budget 'clinic': ε: 0.500 requested, 0.250 left, short by 0.250.
        Why: ...
        Do: ...
    """
    filter = keeper.filter(used)
    units = filter.units(event)
    cost, left = filter.cost(event), filter.remaining()
    short = []
    if used[0] + units[0] > MOST:
        short.append(_short(filter, cost, left[filter.parameter]))
    if used[1] + units[1] > MOST:
        mass, kept = event.infinite_mass, left["delta"]
        shown = scientific(mass, up=True), scientific(kept, up=False), scientific(mass - kept, up=True)
        short.append("δ-parts: {} requested, {} left, short by {}".format(*shown))
    return BudgetExceeded(
        f"budget {name!r}: {'; '.join(short)}.",
        why=f"its promise, {keeper.budget}, is kept by stopping before it would break ({filter.theorem}).",
        do=fitting(filter, event),
    )


def fitting(filter: Filter, event: Event) -> str:
    """Say what would fit into what a filter has left, of the event that was asked for if that can be.

    Example:
        >>> from sitr.accounting import PureDP
        >>> fitting(Keeper.of(Budget(epsilon=1.0)).filter((2**59, 0)), PureDP(epsilon=0.1) * 9)
        'what fits into this budget: 5 of these 9, or the same with 1.81 times the noise.'
    """
    found = []
    if isinstance(event, Composed) and len(event.events) == 1:
        ((single, count),) = event.events
        due = zip(filter.used, filter.units(single), strict=True)
        most = min((MOST - used) // units for used, units in due if units)
        found += [f"{most} of these {count}"] if most else []
    factor = noise_factor(filter, event)
    if factor:
        found.append(f"the same with {factor} times the noise")
    elif noise := least_noise(filter):
        found.append(f"one {noise}")
    if not found:
        return "nothing of the kind fits any more; an owner may raise the budget."
    return f"what fits into this budget: {', or '.join(found)}."


def noise_factor(filter: Filter, event: Event) -> str:
    """Return how many times the noise of an event has to grow for it to fit, rounded up; nothing where none helps.

    Example:
        >>> noise_factor(Keeper.of(Budget(epsilon=1.0)).filter((2**59, 0)), Laplace(noise_multiplier=1))
        '2.01'
    """

    def fits(factor: float) -> bool:
        more = _noisier(event, factor)
        return more is not None and filter.admits(more)

    try:
        high = next((2.0**power for power in range(21) if fits(2.0**power)), None)
        if high is None:
            return ""
        low = high / 2
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        shown = rounded_up(high)
        return shown if fits(float(shown)) else ""
    except SitrError:  # out of the range of events
        return ""


# How the parameters of events change when noise grows by a factor.
NOISIER: dict[str, Callable[[float, float], float]] = {
    "noise_multiplier": operator.mul,
    "scale": operator.mul,
    "epsilon": operator.truediv,
    "rho": lambda rho, factor: rho / factor**2,
}


def _noisier(event: Event, factor: float) -> Event | None:
    """The same with more noise; None where that means nothing."""
    if isinstance(event, Composed):
        parts = [(_noisier(part, factor), count) for part, count in event.events]
        return None if any(part is None for part, _ in parts) else Composed(tuple(parts))  # type: ignore[arg-type]
    given = event.parameters()
    if isinstance(event, PoissonSampled):
        inner = _noisier(event.event, factor)
        return None if inner is None else PoissonSampled(**{**given, "event": inner})
    more = {name: NOISIER[name](value, factor) for name, value in given.items() if name in NOISIER}
    return type(event)(**{**given, **more}) if more else None


def least_noise(filter: Filter) -> str:
    """Return the least noise that fits into what a filter has left, rounded up; nothing where none does.

    Example:
        >>> least_noise(Keeper.of(Budget(epsilon=1.0, delta=1e-6)).filter())
        'Gaussian(noise_multiplier=4.56)'
    """
    left = filter.remaining()[filter.parameter]
    if left <= 0:
        return ""
    order = filter.alpha if isinstance(filter, RDPFilter) else 1.0
    pure = not isinstance(filter, (RDPFilter, ZCDPFilter))
    least = rounded_up(1 / left if pure else math.sqrt(order / (2 * left)))
    try:
        event = Laplace(float(least)) if pure else Gaussian(float(least))
    except SitrError:  # out of the range of events
        return ""
    return f"{type(event).__name__}(noise_multiplier={least})" if filter.admits(event) else ""


def _digits(cost: float, left: float) -> int:
    """Enough for two numbers to look different that are."""
    if left <= 0 or cost <= left:
        return 3
    return min(max(3, 2 - math.floor(math.log10((cost - left) / left))), 17)


def _short(filter: Filter, cost: float, rest: float) -> str:
    """What was requested and what is left: in ε or ρ, or in parts of a budget whose measure nobody names a price in."""
    sign, unit = ("ρ: " if isinstance(filter, ZCDPFilter) else "ε: "), ""
    if isinstance(filter, RDPFilter):
        sign, unit, cost, rest = "", " %", 100 * cost / filter.limit, 100 * rest / filter.limit
    digits = _digits(cost, rest)
    requested, left, short = rounded_up(cost, digits), rounded_down(rest, digits), rounded_up(cost - rest)
    of = " of it" if unit else ""
    return f"{sign}{requested}{unit}{of} requested, {left}{unit} left, short by {short}{unit}"
