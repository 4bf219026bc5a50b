"""What still fits into a budget: a forecast, free of charge; the ledger alone decides."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..accounting import Event, choose_filter
from ..accounting.filters import MOST, WHOLE
from ..errors import SitrError
from ..ledger import Budget
from ..ledger.statement import Amount

DECADES = 6  # below what was asked for; less than a millionth of it is of no use
ALLOWED = MOST / WHOLE - 1  # what a full budget may be exceeded by (decision 0006)


class Room:
    """What one budget has left.

    Args:
        budget: The promise.
        left: What is left of it, by its ledger.
    """

    def __init__(self, budget: Budget, left: Amount) -> None:
        self.budget, self.left, self.filter = budget, left, budget.filter()
        if left.order is not None:  # a budget that was raised keeps its order
            epsilon, delta = budget.epsilon or 0.0, budget.delta or 0.0
            self.filter = choose_filter(epsilon, delta, alpha=left.order, adjacency=budget.adjacency)

    def after(self, event: Event) -> float | None:
        """Return which part of the budget an event would leave; None where it does not fit, or has no price there.

        Example:
            >>> from sitr.accounting import PureDP
            >>> room = Room(Budget(epsilon=1.0), Amount(0.75, 0.0, 0.75, "epsilon"))
            >>> room.after(PureDP(epsilon=0.25)), room.after(PureDP(epsilon=0.8))
            (0.5, None)
        """
        try:
            cost = self.filter.cost(event)
        except SitrError:
            return None
        filter, left = self.filter, self.left
        due = [(cost, left.value, filter.limit), (event.infinite_mass, left.delta, filter.delta)]
        if any(asked > rest + ALLOWED * limit for asked, rest, limit in due):
            return None
        return min(max(rest - asked, 0.0) / limit for asked, rest, limit in due if limit)


def largest(fits: Callable[[float], bool], most: float) -> float | None:
    """Return the largest number of three digits, below one that is too large, that fits; None where none does.

    Example:
        >>> largest(lambda amount: amount <= 0.41234, 4.0)
        0.412
    """
    top = math.ceil(math.log10(most)) - 1
    exponent = next((one for one in range(top, top - DECADES, -1) if fits(float(f"1e{one}"))), None)
    if exponent is None:
        return None
    low, high = 100, min(1000, math.ceil(most / float(f"1e{exponent - 2}")))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(float(f"{middle}e{exponent - 2}")) else (low, middle)
    return float(f"{low}e{exponent - 2}")
