"""What a budget has left, in numbers that people can use, and the exact composition beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..accounting import Bracket, Composed, Event, Gaussian, Laplace
from ..accounting.filters import MOST, WHOLE, Filter, RDPFilter, ZCDPFilter
from ..display import rounded_down, rounded_up, scientific
from ..errors import BudgetExceeded, SitrError
from .budget import Budget, Keeper
from .entry import Head

FIXED_IN_ADVANCE = "if this sequence had been fixed in advance"


class Amount(NamedTuple):
    """An amount of privacy in a budget's own measure.

    Attributes:
        value: How much, rounded up where it was spent, and down where it is left.
        delta: How much of what is kept for δ-parts.
        share: The larger of both, of its limit.
        measure: "epsilon", "rho", or "rdp" for the Rényi divergence of the order that the budget was given.
    """

    value: float
    delta: float
    share: float
    measure: str


@dataclass(frozen=True)
class Statement:
    """What `Ledger.statement` says of a budget.

    Attributes:
        name: The budget.
        budget: Its promise.
        theorem: What allows the analyst to be fully adaptive.
        promises: When it was promised and raised: (date, promise, reason).
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
    """

    name: str
    budget: Budget
    theorem: str
    promises: tuple[tuple[str, str, str], ...]
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

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """Return names and what is said of them, rounded to the safe side."""
        rows = [("budget", self.name), ("promise", str(self.budget))]
        rows.append(("promised", f"{self.promises[0][1]} on {self.promises[0][0][:10]}"))
        rows += [("raised", f"to {what} on {at[:10]}: {why}") for at, what, why in self.promises[1:]]
        rows += [("spent", amount_text(self.spent, spent=True)), ("left", amount_text(self.remaining, spent=False))]
        rows.append(("fits", f"one {self.fits}" if self.fits else "nothing any more"))
        exact = f"ε = {rounded_up(self.exact.upper)} at δ = {scientific(self.exact_delta)} {FIXED_IN_ADVANCE}"
        rows.append(
            ("exact", f"{exact} (between {rounded_down(self.exact.lower, 6)} and {rounded_up(self.exact.upper, 6)})")
        )
        rows += [("block", f"{self.block}: the one that spent most")] if self.block else []
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
        Amount(spent[filter.parameter], spent["delta"], rounded_share(full, math.inf), measure),
        Amount(left[filter.parameter], left["delta"], rounded_share(WHOLE - full, -math.inf), measure),
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
        'ρ 0.124, 20.0 % of the budget'
    """
    rounded = rounded_up if spent else rounded_down
    signs = {"epsilon": "ε", "rho": "ρ", "rdp": "Rényi divergence"}
    delta = f" and δ {rounded(amount.delta)}" if amount.delta else ""
    return f"{signs[amount.measure]} {rounded(amount.value)}{delta}, {rounded(100 * amount.share)} % of the budget"


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
        shown = rounded_up(cost), rounded_down(left[filter.parameter]), rounded_up(cost - left[filter.parameter])
        short.append("{}: {} requested, {} left, short by {}".format(_measure(filter), *shown))
    if used[1] + units[1] > MOST:
        mass = event.infinite_mass
        shown = rounded_up(mass), rounded_down(left["delta"]), rounded_up(mass - left["delta"])
        short.append("δ-parts: {} requested, {} left, short by {}".format(*shown))
    return BudgetExceeded(
        f"budget {name!r}: {'; '.join(short)}.",
        why=f"its promise, {keeper.budget}, is kept by stopping before it would break ({filter.theorem}).",
        do=fitting(filter, event),
    )


def fitting(filter: Filter, event: Event) -> str:
    """Say what would fit into what a filter has left.

    Example:
        >>> from sitr.accounting import PureDP
        >>> fitting(Keeper.of(Budget(epsilon=1.0)).filter((2**59, 0)), PureDP(epsilon=0.1) * 9)
        'what fits: 5 of these 9, or one Laplace(noise_multiplier=2.00).'
    """
    found = []
    if isinstance(event, Composed) and len(event.events) == 1:
        ((single, count),) = event.events
        most = min(
            (MOST - used) // units for used, units in zip(filter.used, filter.units(single), strict=True) if units
        )
        found += [f"{most} of these {count}"] if most else []
    found += [noise] if (noise := least_noise(filter)) else []
    return (
        f"what fits: {', or one '.join(found)}." if found else "nothing fits any more; an owner may raise the budget."
    )


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


def _measure(filter: Filter) -> str:
    if isinstance(filter, RDPFilter):
        return f"Rényi divergence of order {filter.alpha:.4g}"
    return "ρ" if isinstance(filter, ZCDPFilter) else "ε"
