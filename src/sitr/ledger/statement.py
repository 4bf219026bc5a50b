"""What a budget has left, in numbers that people can use, and the exact composition beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .. import markup
from ..accounting import Bracket, Event
from ..display import reckoned, rounded_down, rounded_up, scientific
from .budget import Budget
from .change import Change
from .entry import Head
from .journal import Line
from .left import NO_GROUPS, amount_text
from .outside import Outside
from .standing import Amount

SHOWN = 5  # releases of a statement; the book has all
FIXED_IN_ADVANCE = "for a fixed list of questions (for information only)"


class Point(NamedTuple):
    """A budget after an entry.

    Attributes:
        seq: The entry.
        at: When.
        kind: What happened.
        left: What is left, as a share of the limit at the time.
        delta_left: What is left of what is kept for δ-parts; None where nothing is.

    Example:
        >>> Point(3, "2026-01-01T00:00:00+00:00", "reserve", 0.75).left
        0.75
    """

    seq: int
    at: str
    kind: str
    left: float
    delta_left: float | None = None


@dataclass(frozen=True)
class Statement:
    """What `Ledger.statement` says of a budget.

    Attributes:
        name: The budget.
        budget: Its promise.
        unit: To whom it is made by the declarations that hold now; the budget keeps its first word for ever.
        units: What a unit is in each table, in words; empty where no declaration was written down.
        before: What was promised before, and until when; and which rows another budget paid for.
        theorem: What allows the analyst to be fully adaptive.
        promises: When it was promised and raised: (date, promise, reason).
        changes: Everything that changed the promise since: raises, and declarations that say it otherwise.
        declared: The declarations that say what it depends on: (name, version, date).
        spent: By the filter, which enforces.
        remaining: By the filter.
        fits: The least noise of one release that still fits; empty where nothing does.
        more: How many more like the last release fit, in words; empty before the first.
        no_groups: Whether what is left for δ-parts does not pay for another question whose groups must be found, like
            the last of them.
        operations: How many were charged, by state.
        event: All that was released, composed; of several blocks, the one that spent most.
        exact_delta: The δ of `exact`.
        exact: The ε of `event`, for a fixed list of questions (for information only): a report, never a limit.
        claimed: Whether an event rests on a user's own numbers.
        unreadable: How many charges name an event that cannot be read or composed, and are not in `event`.
        block: The block that `event` is of, where blocks count apart.
        ledger: The id of the book.
        head: Its end, which fixes all of it.
        outside: What left of the dataset that no promise covers.
        points: What was left after everything that changed it, for a picture.
        releases: What was charged to it, a line for each.

    Example:
        >>> from sitr.ledger import Ledger
        >>> ledger = Ledger.open("memory://")
        >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
        >>> ledger.statement("clinic").remaining.value
        1.0
    """

    name: str
    budget: Budget
    unit: str
    units: str
    before: tuple[str, ...]
    theorem: str
    promises: tuple[tuple[str, str, str], ...]
    changes: tuple[Change, ...]
    declared: tuple[tuple[str, int, str], ...]
    spent: Amount
    remaining: Amount
    fits: str
    more: str
    no_groups: bool
    operations: dict[str, int]
    event: Event
    exact_delta: float
    exact: Bracket
    claimed: bool
    unreadable: int
    block: str | None
    ledger: str
    head: Head
    outside: tuple[Outside, ...]
    points: tuple[Point, ...]
    releases: tuple[Line, ...]

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self.rows())

    def __repr__(self) -> str:
        return f"Statement({self.name!r}: {self.promise}; left: {amount_text(self.remaining, spent=False)})"

    def _repr_html_(self) -> str:
        return markup.page(markup.table((), self.rows()))

    @property
    def promise(self) -> str:
        """The promise as it is now, in words."""
        return self.budget.made_to(self.unit)

    def _promise(self) -> list[tuple[str, str]]:
        """What is promised, or, of a share, what it is limited to."""
        at, first, _ = self.promises[0]
        dataset = self.name.partition("/")[0]
        units = [("unit", self.units)] if self.units else []
        before = [("before", text) for text in self.before]
        if self.name == dataset:
            return [("promise", self.promise), *units, *before, ("promised", f"{first} on {at[:10]}")]
        within = f"the promise of {dataset}: it is no promise of its own"
        return [("limit", self.promise), *units, *before, ("within", within), ("set", f"to {first} on {at[:10]}")]

    def rows(self) -> list[tuple[str, str]]:
        """Return names and what is said of them, rounded to the safe side."""
        rows = [("budget", self.name), *self._promise()]
        rows += [("declared", f"in {name}, version {version}, on {at[:10]}") for name, version, at in self.declared]
        rows += [(change.verb, change.text) for change in self.changes]
        full = f": {NO_GROUPS}" if self.no_groups else ""
        rows += [("OUTSIDE", f"the promise, and paid for by nothing: {one}") for one in self.outside]
        rows += [("spent", amount_text(self.spent, spent=True))]
        rows += [("left", f"{amount_text(self.remaining, spent=False)}{full}")]
        rows.append(("fits", self.more or (f"one {self.fits}" if self.fits else "nothing any more")))
        spent = rounded_up(reckoned(self.exact.upper, spent=True))
        exact = f"ε = {spent} at δ = {scientific(self.exact_delta)} {FIXED_IN_ADVANCE}"
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
        rows += [("release", release_text(line)) for line in self.releases[-SHOWN:]]
        before = len(self.releases) - SHOWN
        rows += [("releases", f"{before:,} more before these: sitr ledger show")] if before > 0 else []
        return [*rows, ("head", f"{self.head} of ledger {self.ledger}")]


def release_text(line: Line) -> str:
    """Say in a line what was released.

    Example:
        >>> from sitr.ledger.asked import Asked
        >>> asked = Asked("SELECT COUNT(*) FROM visits", epsilon=0.1)
        >>> line = Line(
        ...     3, "2026-01-01T09:00:00", "amina", "q", "committed", "audit", ("clinic",), asked.text, asked, {}
        ... )
        >>> release_text(line)
        '2026-01-01T09:00 by amina for audit: SELECT COUNT(*) FROM visits; ε = 0.1'
    """
    purpose = f" for {line.purpose}" if line.purpose else ""
    left = "".join(f"; {left} left" for left in line.left.values())
    return f"{line.at[:16]} by {line.analyst}{purpose}: {line.short}{'; ' if line.price else ''}{line.price}{left}"
