"""What is left of a budget, as people read it: what is kept for δ-parts is told apart from the rest."""

from __future__ import annotations

from ..accounting import Event
from ..display import percent, reckoned, rounded_down, rounded_up, scientific
from ..errors import SitrError
from .standing import Amount, Standing

NO_GROUPS = "no more questions whose groups must be found"


def shares_text(amount: Amount, *, spent: bool) -> str:
    """Say which part of a budget was spent, or is left, rounded to the safe side.

    Example:
        >>> shares_text(Amount(0.68, 0.0, 0.68, "epsilon"), spent=False)
        '68.0 %'
        >>> shares_text(Amount(0.68, 7e-10, 0.68, "epsilon", delta_share=0.007), spent=False)
        'ε part 68.0 %, δ part 0.700 %'
    """
    first = percent(amount.share, spent=spent)
    if amount.delta_share is None:
        return first
    return f"{_sign(amount)} part {first}, δ part {percent(amount.delta_share, spent=spent)}"


def amount_text(amount: Amount, *, spent: bool) -> str:
    """Say an amount, rounded to the safe side.

    Example:
        >>> amount_text(Amount(0.12345, 0.0, 0.2, "rho"), spent=True)
        '20.0 % of the budget (ρ 0.124)'
        >>> amount_text(Amount(0.12345, 1e-8, 0.2, "epsilon", delta_share=0.1), spent=True)
        'ε part: 20.0 % (ε 0.124); δ part: 10.0 % (1e-08)'
    """
    rounded = rounded_up if spent else rounded_down
    value, mass = (reckoned(one, spent=spent) for one in (amount.value, amount.delta))
    measures = {"epsilon": "ε", "rho": "ρ", "mu": "μ", "rdp": f"Rényi divergence of order {amount.order or 0:.4g}:"}
    first, inside = percent(amount.share, spent=spent), f"({measures[amount.measure]} {rounded(value)})"
    if amount.delta_share is None:
        return f"{first} of the budget {inside}"
    parts = f"{percent(amount.delta_share, spent=spent)} ({scientific(mass, up=spent)})"
    return f"{_sign(amount)} part: {first} {inside}; δ part: {parts}"


def more_text(standing: Standing, event: Event, price: str, *, like: str) -> str:
    """Say how many more releases like one fit, by the filter that admits the most of them.

    Args:
        standing: The budget.
        event: Of the release.
        price: What it cost, as people say it.
        like: What it is called: "the last".

    Example:
        >>> from sitr.accounting import PureDP
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> standing = Standing(Keeper.of(Budget(epsilon=1.0)), (2**59, 0))
        >>> more_text(standing, PureDP(epsilon=0.1), "ε = 0.1", like="the last")
        'about 5 more like the last, at ε = 0.1'
        >>> more_text(standing, PureDP(epsilon=0.1), "ε = 0.1 at δ = 1e-08", like="the last")
        'about 5 more like the last, at ε = 0.1 and δ = 1e-08'
    """
    try:
        more = standing.filter.releases(event)
    except SitrError:  # it has no price here any more
        more = 0
    if more:
        return f"about {more:,} more like {like}{f', at {price}'.replace(' at δ', ' and δ') if price else ''}"
    return NO_GROUPS if lacks_delta(standing, event) else f"none like {like} any more"


def lacks_delta(standing: Standing, event: Event) -> bool:
    """Return whether an event has a δ-part that does not fit into what is kept for them.

    Example:
        >>> from sitr.accounting import ApproximateDP
        >>> from sitr.ledger.budget import Budget
        >>> from sitr.ledger.keeper import Keeper
        >>> lacks_delta(Standing(Keeper.of(Budget(epsilon=1.0)), (0, 0)), ApproximateDP(epsilon=0.1, delta=1e-9))
        True
    """
    return event.infinite_mass > standing.remaining.delta


def _sign(amount: Amount) -> str:
    return "ρ" if amount.measure == "rho" else "ε"
