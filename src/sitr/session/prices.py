"""What a question would cost at several prices: how wrong its answer, what would be left, how often it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import markup
from ..display import scientific
from ..query.explanation import Explanation

if TYPE_CHECKING:
    from .room import Forecast

LADDER = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Price:
    """One of several prices.

    Attributes:
        epsilon: The price.
        errors: For each aggregate about what its interval will reach to either side.
        shown: The same as text.
        after: For each budget what would be left of it, as text.
        times: How often the question fits at this price into what is left; inf if it costs nothing.
    """

    epsilon: float
    errors: Mapping[str, float]
    shown: Mapping[str, str]
    after: Mapping[str, str]
    times: float

    @classmethod
    def of(cls, found: Explanation, forecast: Forecast) -> Price:
        """Return the price of what was explained."""
        assert found.target.epsilon is not None
        event, rooms = found.plan.event, forecast.rooms
        after = {name: text for name, (_, text) in forecast.remaining(event).items()}
        fits = (room.filter.releases(event) if room.admits(event) else 0 for room in rooms.values())
        times = min(fits, default=0)
        shown = {name: found.half(name) for name in found.plan.query.aggregates}
        return cls(found.target.epsilon, found.errors, shown, after, times)


@dataclass(frozen=True)
class Prices:
    """What a question would cost, to choose from; `print` shows a table.

    Attributes:
        rows: The prices, from the lowest on.
        delta: The δ that goes with each.
        spends_delta: Whether any of them spends it.
        notes: Remarks that hold at every price.
    """

    rows: tuple[Price, ...]
    delta: float
    spends_delta: bool
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = self._table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, "", *self._below()])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        return markup.page(markup.table(head, rows), markup.lines(*self._below()))

    def __repr__(self) -> str:
        return f"Prices({', '.join(f'{one.epsilon:g}' for one in self.rows)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the prices as JSON holds them."""
        rows = [
            {"epsilon": one.epsilon, "errors": dict(one.errors), "after": dict(one.after), "times": one.times}
            for one in self.rows
        ]
        return {"prices": rows, "delta": self.delta, "notes": list(self.notes)}

    def _below(self) -> list[str]:
        delta = f", at δ = {scientific(self.delta)}" if self.spends_delta else ""
        said = f"ε is for the whole release{delta}."
        how = "95 % of the time, noise is within ±. Nothing has been spent: choose one, as in epsilon=0.1."
        return [said, how, *self.notes]

    def _table(self) -> list[list[str]]:
        first = self.rows[0]
        left = [f"left of {name}" if len(first.after) > 1 else "left after" for name in first.after]
        rows = [["ε", *first.shown, *left, "fits"]]
        rows += [
            [f"{one.epsilon:g}", *one.shown.values(), *one.after.values(), f"{one.times:,} ×"] for one in self.rows
        ]
        return rows
