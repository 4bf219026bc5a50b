"""How a budget stands: what was spent of it, what is left, and what still fits."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..accounting import Event
from ..accounting.filters import WHOLE, Filter, RDPFilter, SingleFilter
from .budget import Budget
from .keeper import Keeper
from .totals import Vector, plus


class Amount(NamedTuple):
    """An amount of privacy in a budget's own measure.

    Attributes:
        value: How much, rounded up where it was spent, and down where it is left.
        delta: How much of what is kept for δ-parts.
        share: How much of the limit on ε, or on ρ.
        measure: "epsilon", "rho", "mu" of Gaussian DP, or "rdp" for a Rényi divergence.
        order: Of that divergence, which the budget was given when it was created; None for the others.
        delta_share: How much of what is kept for δ-parts; None where nothing is.

    Example:
        >>> Amount(0.25, 0.0, 0.25, "epsilon").share
        0.25
    """

    value: float
    delta: float
    share: float
    measure: str
    order: float | None = None
    delta_share: float | None = None


class Standing(NamedTuple):
    """A budget and what was used of it.

    Of several filters that keep a budget together, the one that has the most left speaks (THEORY 5.4).

    Attributes:
        keeper: The promise, and the filters that were fixed for it.
        used: What was used, in units of each limit.

    Example:
        >>> standing = Standing(Keeper.of(Budget(epsilon=1.0)), (2**58, 0))
        >>> standing.spent.value, standing.remaining.value, standing.budget.promise
        (0.25, 0.75, 'ε = 1')
    """

    keeper: Keeper
    used: Vector

    @property
    def budget(self) -> Budget:
        """The promise."""
        return self.keeper.budget

    @property
    def spent(self) -> Amount:
        """What was spent, rounded up.

        Example:
            >>> Standing(Keeper.of(Budget(rho=0.5)), (2**58, 0)).spent.value
            0.125
        """
        filter = self.filter.serving()
        cost, parts = (rounded_share(min(used, WHOLE), math.inf) for used in filter.counted)
        return self._amount(filter, filter.spent(), cost, parts)

    @property
    def remaining(self) -> Amount:
        """The most that one more event may cost, rounded down.

        Example:
            >>> Standing(Keeper.of(Budget(rho=0.5)), (2**58, 0)).remaining.value
            0.375
        """
        filter = self.filter.serving()
        cost, parts = (rounded_share(WHOLE - min(used, WHOLE), -math.inf) for used in filter.counted)
        return self._amount(filter, filter.remaining(), cost, parts)

    @property
    def filter(self) -> Filter:
        """The filter that keeps the budget, with what was used."""
        return self.keeper.filter.having(self.used)

    def admits(self, event: Event) -> bool:
        """Return whether an event still fits; what has no price in this budget does not.

        Example:
            >>> from sitr.accounting import Gaussian, PureDP
            >>> standing = Standing(Keeper.of(Budget(epsilon=1.0)), (2**59, 0))
            >>> [standing.admits(event) for event in (PureDP(epsilon=0.5), PureDP(epsilon=0.6), Gaussian(10))]
            [True, False, False]
        """
        return self.filter.admits(event)

    def after(self, event: Event) -> Standing:
        """Return how the budget would stand after an event.

        Example:
            >>> from sitr.accounting import PureDP
            >>> Standing(Keeper.of(Budget(epsilon=1.0)), (2**59, 0)).after(PureDP(epsilon=0.25)).remaining.share
            0.25
        """
        return self._replace(used=plus(self.used, self.keeper.units(event)))

    @staticmethod
    def _amount(filter: SingleFilter, found: dict[str, float], share: float, parts: float) -> Amount:
        measure, order = ("rdp", filter.alpha) if isinstance(filter, RDPFilter) else (filter.parameter, None)
        kept = parts if filter.delta else None
        return Amount(found[filter.parameter], found["delta"], share, measure, order, kept)


def rounded_share(units: int, towards: float) -> float:
    """Return units as a share of the limit, rounded towards +∞ or -∞ where a float cannot hold it.

    Example:
        >>> rounded_share(2**59, math.inf), rounded_share(2**60 - 1, -math.inf) < 1
        (0.5, True)
    """
    share = units / WHOLE
    wrong = share * WHOLE < units if towards > 0 else share * WHOLE > units
    return math.nextafter(share, towards) if wrong else share
