"""What a budget went through: for its statement, and for the picture of how it burns down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..accounting import Bracket, Composed, Event, PureDP
from ..errors import SitrError
from ..units import join
from .budget import Budget
from .change import Change, changed_terms, is_change
from .entry import BEFORE_ALL, Entry, Head
from .journal import Line, line_of
from .left import lacks_delta, more_text, shares_text
from .meaning import Meaning
from .outside import Outside
from .refusal import least_noise
from .replay import Replay, event_of
from .standing import Standing
from .statement import Point, Statement


class History:
    """One budget, read from the entries of its book.

    Attributes:
        promises: When it was promised and raised: (date, promise, reason).
        changes: Everything that changed the promise since.
        declared: By which declarations it is used: (name, version, date).
        points: What was left after everything that changed it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.promises: list[tuple[str, str, str]] = []
        self.changes: list[Change] = []
        self.declared: dict[str, tuple[int, str]] = {}
        self.points: list[Point] = []
        self._replay = Replay()
        self._meaning = Meaning(name.partition("/")[0])
        self._operations: dict[str, str] = {}  # what was left after each
        self._head = Head(0, BEFORE_ALL)

    @classmethod
    def of(cls, entries: Iterable[Entry], name: str) -> History:
        """Return the history of one budget in a book that has these entries.

        Raises:
            LedgerDamaged: One of them breaks the rules: `verify` says more.
        """
        history = cls(name)
        for entry in entries:
            history.read(entry)
        return history

    def read(self, entry: Entry) -> None:
        """Take the next entry.

        Raises:
            LedgerDamaged: It breaks the rules: `verify` says more.
        """
        self._replay.read(entry)
        self._head = entry.head
        if entry.kind == "declare":
            account = self._replay.accounts.get(self.name)
            self._meaning.read(entry, account.keeper.budget if account else None)
        if not self._concerns(entry):
            return
        account = self._replay.accounts[self.name]
        if entry.kind in ("budget", "raise", "replace"):
            promise, reason = account.keeper.budget.promise, entry.record.get("reason", "")
            self.promises.append((entry.at, promise, reason))
            self.changes += [Change(entry.at, entry.kind, promise, reason)] if is_change(entry) else []
        if entry.kind == "declare":
            self.declared[entry.record["declaration"]] = entry.record["version"], entry.at
            self.changes += [changed_terms(entry)] if is_change(entry) else []
            if not is_change(entry):
                return
        left = account.standing.remaining
        self.points.append(Point(entry.seq, entry.at, entry.kind, left.share, left.delta_share))
        if entry.kind == "reserve":
            self._operations[str(entry.operation)] = shares_text(left, spent=False)

    def statement(self, ledger: str) -> Statement:
        """Return all there is to say of the budget."""
        account = self._replay.accounts[self.name]
        standing, block = account.standing, account.dearest
        event, unreadable = self._composed(block)
        delta, exact = exact_of(account.keeper.budget, event)
        states = Counter(self._replay.operations[name].state for name in self._operations)
        return Statement(
            name=self.name,
            budget=account.keeper.budget,
            unit=self._meaning.unit(account.keeper.budget),
            units=self._meaning.units,
            before=(*self._meaning.before, *self._meaning.paid_before),
            theorem=account.keeper.filter.theorem,
            promises=tuple(self.promises),
            changes=tuple(self.changes),
            declared=tuple((name, version, at) for name, (version, at) in self.declared.items()),
            spent=standing.spent,
            remaining=standing.remaining,
            fits=least_noise(standing),
            more=self._more(standing),
            no_groups=any(lacks_delta(standing, found) for found in self._last(lambda event: event.infinite_mass > 0)),
            operations=dict(sorted(states.items())),
            event=event,
            exact_delta=delta,
            exact=exact,
            claimed=event.claimed,
            unreadable=unreadable,
            block=block,
            ledger=ledger,
            head=self._head,
            outside=tuple(self._outside()),
            points=tuple(self.points),
            releases=tuple(self._releases()),
        )

    def _outside(self) -> Iterator[Outside]:
        """What left of the dataset outside its promise."""
        found = map(Outside.of, self._replay.outside)
        return (one for one in found if one.dataset == self.name.partition("/")[0])

    def _more(self, standing: Standing) -> str:
        """How many more like the last release fit, in words."""
        for event in self._last(lambda event: True):
            line = list(self._releases())[-1]
            return more_text(standing, event, line.price, like="the last")
        return ""

    def _last(self, wanted: Callable[[Event], bool]) -> Iterator[Event]:
        """The last event of a kind that was charged and can be read, if there is one."""
        for name in reversed(self._operations):
            try:
                event = event_of(self._replay.operations[name].reserved.record["event"])
            except SitrError:
                continue
            if wanted(event):
                yield event
                return

    def _releases(self) -> Iterator[Line]:
        for name, left in self._operations.items():
            operation = self._replay.operations[name]
            yield line_of(operation.reserved, operation.state, {self.name: left})

    def _concerns(self, entry: Entry) -> bool:
        if entry.kind in ("budget", "raise", "replace"):
            return bool(entry.record["name"] == self.name)
        if entry.kind == "migrate":
            return self.name in entry.record.get("joined", {})
        if entry.kind == "declare":
            return bool(entry.record["name"] == self.name.partition("/")[0] and self.promises)
        if entry.kind == "reserve" and self.name in entry.record["budgets"]:
            return True
        return entry.kind == "refund" and entry.operation in self._operations

    def _composed(self, block: str | None) -> tuple[Event, int]:
        """All that one unit has to bear, of everything and of one block; and how many charges could not be read."""
        budget = self._replay.accounts[self.name].keeper.budget
        counts, unreadable = Counter[Event](), 0
        for name in self._operations:
            operation = self._replay.operations[name]
            record: dict[str, Any] = operation.reserved.record
            apart = budget.parallel and record["blocks"]
            if operation.state == "refunded" or (apart and block not in record["blocks"]):
                continue
            try:
                event = event_of(record["event"])
                join(budget.adjacency, event.adjacency)
                counts[event] += 1
            except SitrError:
                unreadable += 1
        try:
            return (Composed(tuple(counts.items())) if counts else PureDP(0.0)), unreadable
        except SitrError:  # more of one event than can be composed
            return PureDP(0.0), unreadable + counts.total()


def exact_of(budget: Budget, event: Event) -> tuple[float, Bracket]:
    """Return the δ at which a budget's exact ε is told, and that ε, if there is one.

    Example:
        >>> delta, exact = exact_of(Budget(epsilon=1.0), PureDP(epsilon=0.1) * 5)
        >>> delta, round(exact.upper, 9)
        (0.0, 0.5)
    """
    delta = budget.delta or (0.0 if budget.rho is None else 1e-6)
    try:
        return delta, event.epsilon(delta)
    except SitrError:  # of what was charged by hand, and has no such ε
        return delta, Bracket(0.0, math.inf, "not known")
