"""What still fits into the budgets of a question: a forecast, free of charge; the ledger alone decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..accounting import Event
from ..errors import SitrError
from ..ledger import Budget
from ..ledger.left import more_text, shares_text
from ..ledger.standing import Standing
from ..query.explanation import NO_FIT
from ..query.planner import Target

if TYPE_CHECKING:
    from .database import Database

DECADES = 6  # below what was asked for; less than a millionth of it is of no use


class Forecast:
    """How much of a question the budgets that it falls under still pay for.

    Args:
        database: Which one.
        datasets: Whose budgets pay.
        event_at: What is done at a price.
        purpose: What for; a budget for that purpose has to have room as well.

    Attributes:
        rooms: How each of them stands, by its name.
    """

    def __init__(
        self,
        database: Database,
        datasets: tuple[str, ...],
        event_at: Callable[[Target], Event],
        purpose: str | None = None,
    ) -> None:
        self._event = event_at
        self.rooms = database.ledger.left_for(datasets, analyst=database.analyst, purpose=purpose)

    def remaining(self, event: Event) -> dict[str, tuple[str, str]]:
        """Return for each budget what is left now, and after an event."""
        found = {}
        for name, room in self.rooms.items():
            after = shares_text(room.after(event).remaining, spent=False) if room.admits(event) else NO_FIT
            found[name] = (f"{shares_text(room.remaining, spent=False)} of {room.budget.promise}", after)
        return found

    def left(self) -> dict[str, str]:
        """Return for each budget what is left now."""
        return {name: shares_text(room.remaining, spent=False) for name, room in self.rooms.items()}

    def left_after(self, event: Event, target: Target) -> tuple[str, ...]:
        """Say for each budget what a release left of it, and how many more like it fit."""
        price = f"ρ = {target.rho:g}" if target.epsilon is None else f"ε = {target.epsilon:g}"
        return tuple(
            f"{left} of the budget {name} is left: {more_text(self.rooms[name], event, price, like='this')}"
            for name, left in self.left().items()
        )

    def affordable(self, target: Target) -> float | None:
        """Return the largest ε, or ρ, of three digits that fits, in the place of one that does not; None: none does."""
        measure = "rho" if target.epsilon is None else "epsilon"
        most = target.epsilon or target.rho or 1.0
        return largest(lambda amount: self._fits(replace(target, **{measure: amount})), most)

    def _fits(self, target: Target) -> bool:
        try:
            event = self._event(target)
        except SitrError:  # so little that its noise cannot be drawn, or no δ where it takes one
            return False
        return all(room.admits(event) for room in self.rooms.values())

    def advice(self, target: Target) -> str:
        """Say how much of a question that does not fit is paid for by what is left."""
        found = self.affordable(target)
        if found is not None:
            return f"what is left pays for {'ρ' if target.epsilon is None else 'ε'} = {found:g} of this question."
        if target.delta and self._fits(replace(target, delta=0.0)):
            return "ask for it without a δ: it fits with delta=0."
        delta = largest(lambda amount: self._fits(replace(target, delta=amount)), target.delta or 1.0)
        if delta is not None:
            return f"ask for a smaller δ: it fits with delta={delta:g}."
        mass = self._event(target).infinite_mass
        short = [name for name, room in self.rooms.items() if mass > room.remaining.delta]
        if short:
            instead = "declare the values that have to be found, or ask an owner for a budget with a δ"
            return f"its δ does not fit, whatever its ε: {instead}{_given_delta(short, self.rooms)}."
        full = [name for name, room in self.rooms.items() if not room.admits(self._event(target))]
        return f"at no price does this question fit into what is left; an owner may raise the budget {full[0]}."


def _given_delta(short: list[str], rooms: Mapping[str, Standing]) -> str:
    """What an owner can do for shares that have no δ at all, where the dataset has one."""
    for name in short:
        dataset, _, holder = name.partition("/")
        if holder and not rooms[name].budget.delta and rooms[dataset].budget.delta:
            whose = " ".join(f"--{holder}".split("/", 1))
            limits = " ".join(f"--{limit} {value:g}" for limit, value in _limits(rooms[name].budget))
            return (
                f"; or let its owner give this share a δ: sitr budget replace {dataset} {whose} {limits} --reason ..."
            )
    return ""


def _limits(share: Budget) -> list[tuple[str, float]]:
    return [(name, value) for name in ("epsilon", "rho") if (value := getattr(share, name)) is not None]


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
