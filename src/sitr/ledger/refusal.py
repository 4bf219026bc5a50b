"""Why an event does not fit into what a budget has left, and what would."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from ..accounting import Composed, Event, Gaussian, Laplace
from ..accounting.filters import MOST, GDPFilter, RDPFilter, SingleFilter, ZCDPFilter
from ..display import reckoned, rounded_down, rounded_up, scientific
from ..errors import BudgetExceeded, NoSuchGuarantee, SitrError
from .standing import Standing


def refusal(name: str, standing: Standing, event: Event) -> BudgetExceeded:
    """Return why an event does not fit into what a budget has left, and what would.

    Example:
        >>> from sitr.accounting import PureDP
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> print(refusal("clinic", Standing(Keeper.of(Budget(epsilon=1.0)), (3 * 2**58, 0)), PureDP(epsilon=0.5)))
        BudgetExceeded [SITR-B01]: budget 'clinic': ε: 0.500 requested, 0.250 left, short by 0.250.
        Why: ...
        Do: ...
    """
    filter = standing.filter
    what = "limit within the promise of the dataset" if "/" in name else "promise"
    return BudgetExceeded(
        f"budget {name!r}: {'; '.join(_missing(filter.serving(event), event))}.",
        why=f"its {what}, {standing.budget}, is kept by stopping before it would break ({filter.theorem}).",
        do=fitting(standing, event),
    )


def _missing(filter: SingleFilter, event: Event) -> list[str]:
    """What a filter is short of."""
    left = filter.remaining()
    over = [due is None or used + due > MOST for used, due in zip(filter.counted, filter.tally(event), strict=True)]
    try:
        short = [_short(filter, filter.cost(event), left[filter.parameter])] if over[0] else []
    except NoSuchGuarantee:
        return ["none of its filters that still hold can count this"]
    if over[1]:
        part, kept = filter.delta_part(event), left["delta"]
        shown = scientific(part, up=True), scientific(kept, up=False), scientific(part - kept, up=True)
        short.append("δ-parts: {} requested, {} left, short by {}".format(*shown))
    return short


def fitting(standing: Standing, event: Event) -> str:
    """Say what would fit into what a budget has left, of the event that was asked for if that can be.

    Example:
        >>> from sitr.accounting import PureDP
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> fitting(Standing(Keeper.of(Budget(epsilon=1.0)), (2**59, 0)), PureDP(epsilon=0.1) * 9)
        'what fits into this budget: 5 of these 9, or the same with 1.81 times the noise.'
    """
    found = []
    if isinstance(event, Composed) and len(event.events) == 1:
        ((single, count),) = event.events
        most = standing.filter.releases(single)
        found += [f"{most} of these {count}"] if most else []
    factor = noise_factor(standing, event)
    if factor:
        found.append(f"the same with {factor} times the noise")
    elif noise := least_noise(standing):
        found.append(f"one {noise}")
    if not found:
        return "nothing of the kind fits any more; an owner may raise the budget."
    return f"what fits into this budget: {', or '.join(found)}."


def noise_factor(standing: Standing, event: Event) -> str:
    """Return how many times the noise of an event has to grow for it to fit, rounded up; nothing where none helps.

    Example:
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> noise_factor(Standing(Keeper.of(Budget(epsilon=1.0)), (2**59, 0)), Laplace(noise_multiplier=1))
        '2.01'
    """

    def fits(factor: float) -> bool:
        more = _noisier(event, factor)
        return more is not None and standing.admits(more)

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
    for name, inside in given.items():
        if isinstance(inside, Event):
            noisier = _noisier(inside, factor)
            return None if noisier is None else type(event)(**{**given, name: noisier})
    more = {name: NOISIER[name](value, factor) for name, value in given.items() if name in NOISIER}
    return type(event)(**{**given, **more}) if more else None


def least_noise(standing: Standing) -> str:
    """Return the least noise that fits into what a budget has left, rounded up; nothing where none does.

    Example:
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
        >>> least_noise(Standing(keeper, keeper.nothing))
        'Laplace(noise_multiplier=1.00)'
    """
    filter = standing.filter.serving()
    left = filter.remaining()[filter.parameter]
    if left <= 0:
        return ""
    order = filter.alpha if isinstance(filter, RDPFilter) else 1.0
    gaussian = isinstance(filter, (RDPFilter, ZCDPFilter))
    least = rounded_up(math.sqrt(order / (2 * left)) if gaussian else 1 / left)
    try:
        event = Gaussian(float(least)) if gaussian or isinstance(filter, GDPFilter) else Laplace(float(least))
    except SitrError:  # out of the range of events
        return ""
    return f"{type(event).__name__}(noise_multiplier={least})" if standing.admits(event) else ""


def _digits(cost: float, left: float) -> int:
    """Enough for two numbers to look different that are."""
    if left <= 0 or cost <= left:
        return 3
    return min(max(3, 2 - math.floor(math.log10((cost - left) / left))), 17)


def _short(filter: SingleFilter, cost: float, rest: float) -> str:
    """What was requested and what is left: in ε or ρ, or in parts of a budget whose measure nobody names a price in."""
    sign, unit = ("ρ: " if isinstance(filter, ZCDPFilter) else "ε: "), ""
    if isinstance(filter, (RDPFilter, GDPFilter)):
        sign, unit = "", " %"
        cost, rest = (100 * amount**filter.power / filter.limit for amount in (cost, rest))
    plain = reckoned(cost, spent=True)
    cost = plain if plain > rest else cost  # what is short by a hair is short
    digits = _digits(cost, rest)
    requested, left, short = rounded_up(cost, digits), rounded_down(rest, digits), rounded_up(cost - rest)
    of = " of it" if unit else ""
    return f"{sign}{requested}{unit}{of} requested, {left}{unit} left, short by {short}{unit}"
