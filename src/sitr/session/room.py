"""What still fits into the budgets of a question: a forecast, free of charge; the ledger alone decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..accounting import Event
from ..display import percent
from ..errors import SitrError
from ..query.explanation import NO_FIT
from ..query.planner import Target, plan
from ..query.query import Query

if TYPE_CHECKING:
    from .database import Database

DECADES = 6  # below what was asked for; less than a millionth of it is of no use


class Forecast:
    """How much of a query the budgets that it falls under still pay for.

    Args:
        database: Which one.
        query: What is asked.
        purpose: What for; a budget for that purpose has to have room as well.

    Attributes:
        rooms: How each of them stands, by its name.
    """

    def __init__(self, database: Database, query: Query, purpose: str | None = None) -> None:
        self.database, self.query = database, query
        paying = query.datasets(database.declared)
        self.rooms = database.ledger.left_for(paying, analyst=database.analyst, purpose=purpose)

    def remaining(self, event: Event) -> dict[str, tuple[str, str]]:
        """Return for each budget what is left now, and after an event."""
        found = {}
        for name, room in self.rooms.items():
            after = percent(room.after(event).remaining.share, spent=False) if room.admits(event) else NO_FIT
            found[name] = (f"{percent(room.remaining.share, spent=False)} of {room.budget.promise}", after)
        return found

    def left(self) -> dict[str, str]:
        """Return for each budget what is left now."""
        return {name: percent(room.remaining.share, spent=False) for name, room in self.rooms.items()}

    def affordable(self, target: Target) -> float | None:
        """Return the largest ε, or ρ, of three digits that fits, in the place of one that does not; None: none does."""

        def fits(amount: float) -> bool:
            try:
                event = self._event(replace(target, **{"rho" if target.epsilon is None else "epsilon": amount}))
            except SitrError:  # so little that its noise cannot be drawn
                return False
            return all(room.admits(event) for room in self.rooms.values())

        return largest(fits, target.epsilon or target.rho or 1.0)

    def advice(self, target: Target) -> str:
        """Say how much of a question that does not fit is paid for by what is left."""
        found = self.affordable(target)
        if found is not None:
            return f"what is left pays for {'ρ' if target.epsilon is None else 'ε'} = {found:g} of this question."
        mass = self._event(target).infinite_mass
        if any(mass > room.remaining.delta for room in self.rooms.values()):
            return "its δ does not fit, whatever its ε: ask for a smaller δ, or declare what is grouped by."
        return "at no price does this question fit into what is left; an owner may raise the budget."

    def _event(self, target: Target) -> Event:
        facts = self.database.facts(self.query.relation)
        return plan(self.query, self.database.declared, target, facts).event


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
