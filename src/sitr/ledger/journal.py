"""The journal: the book as people read it, a line for each release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..accounting.notation import event_text
from ..display import shortened
from ..errors import SitrError
from .asked import Asked
from .entry import Entry
from .left import shares_text
from .outside import STAMP, Outside
from .replay import Fault, Replay, event_of

STATES = {"reserve": "reserved", "start": "started", "commit": "committed", "refund": "refunded"}
LONGEST = 120  # characters of a question in a line; an export has all that was kept


@dataclass(frozen=True)
class Line:
    """A release.

    Attributes:
        seq: The entry that charged for it.
        at: When.
        analyst: Who asked.
        operation: Its id.
        state: "reserved", "started", "committed" or "refunded"; or "outside", of what no promise covers.
        purpose: What for; empty where none was said.
        datasets: Who paid.
        question: What was asked; for a charge by hand, and in old entries, the event.
        asked: The question as it was kept; None where it was not.
        left: What each budget had left after it.
        refunded: Why it was refunded, if it was.

    Example:
        >>> from sitr.accounting import Laplace
        >>> from sitr.ledger import Budget, Ledger
        >>> ledger = Ledger.open("memory://")
        >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
        >>> asked = Asked("SELECT COUNT(*) FROM visits", ("visits",), epsilon=0.25)
        >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina", asked=asked)
        >>> (line,) = ledger.releases()
        >>> line.question, line.price, line.left
        ('SELECT COUNT(*) FROM visits', 'ε = 0.25', {'clinic': '75.0 %'})
    """

    seq: int
    at: str
    analyst: str
    operation: str
    state: str
    purpose: str
    datasets: tuple[str, ...]
    question: str
    asked: Asked | None
    left: Mapping[str, str]
    refunded: str = ""

    @property
    def price(self) -> str:
        """What was asked to be spent; empty where the question was not kept."""
        return self.asked.price if self.asked else ""

    @property
    def short(self) -> str:
        """The question in a line of its own, and whether it has no answer, or is covered by no promise."""
        if self.state == "outside":
            return shortened(f"{STAMP}: {self.question}", LONGEST)
        why = f": {shortened(self.refunded, LONGEST)}" if self.refunded else ""
        ended = "" if self.state == "committed" else f" ({self.state}{why})"
        return f"{shortened(' '.join(self.question.split()), LONGEST)}{ended}"

    @property
    def room(self) -> str:
        """What was left after it."""
        return "; ".join(f"{name}: {left}" for name, left in self.left.items())

    def to_dict(self) -> dict[str, Any]:
        """Return it as exports hold it.

        Example:
            >>> line = Line(3, "2026-01-01", "amina", "q", "answered", "", ("clinic",), "laplace(4)", None, {})
            >>> line.to_dict()["question"]
            'laplace(4)'
        """
        asked = self.asked or Asked("")
        price = {"epsilon": asked.epsilon, "rho": asked.rho, "delta": asked.delta}
        about = {name: getattr(self, name) for name in ("seq", "at", "analyst", "operation", "state")}
        about |= {"purpose": self.purpose or None, "datasets": list(self.datasets), "question": self.question}
        about |= {"tables": list(asked.tables), **(price if self.asked else dict.fromkeys(price))}
        about |= {"declaration": asked.declaration or None, "left": dict(self.left)}
        return about | {"refunded": self.refunded or None}


class Journal:
    """Reads entries in their order, and makes a line of each release.

    Args:
        whole: Whether all entries of the book are read, so that what was left can be worked out; otherwise it is what
            the answers say.
    """

    def __init__(self, *, whole: bool) -> None:
        self._replay = Replay() if whole else None
        self._shown: dict[str | int, Entry] = {}  # by operation; what is outside has none, and goes by its place
        self._states: dict[str, str] = {}
        self._left: dict[str, dict[str, str]] = {}
        self._refunded: dict[str, str] = {}

    def read(self, entry: Entry) -> None:
        """Take the next entry; a book that was tampered with is read as far as it can be."""
        if self._replay is not None:
            try:
                self._replay.apply(entry)
            except Fault:
                self._replay = None  # from here on, what was left is not known
        if entry.kind == "outside":
            self._shown[entry.seq] = entry
        if entry.operation is None or entry.kind not in STATES:
            return
        self._states[entry.operation] = STATES[entry.kind]
        if entry.kind == "reserve":
            self._shown[entry.operation] = entry
            self._left[entry.operation] = self._shares(entry)
        elif entry.kind == "refund":
            self._refunded[entry.operation] = str(_record(entry).get("reason", ""))
        elif entry.kind == "commit" and not self._left.get(entry.operation):
            self._left[entry.operation] = _texts(entry)

    def lines(self) -> list[Line]:
        """Return the releases, in their order, and among them what left outside the promise."""
        return [self._line(name, entry) for name, entry in self._shown.items()]

    def _line(self, name: str | int, entry: Entry) -> Line:
        if isinstance(name, int):
            return _outside_line(entry)
        line = line_of(entry, self._states[name], self._left[name])
        return replace(line, refunded=self._refunded.get(name, ""))

    def _shares(self, entry: Entry) -> dict[str, str]:
        if self._replay is None:
            return {}
        standings = {name: self._replay.accounts[name].standing for name in entry.record["budgets"]}
        return {name: shares_text(standing.remaining, spent=False) for name, standing in standings.items()}


def line_of(entry: Entry, state: str, left: Mapping[str, str]) -> Line:
    """Return the line of a release, by the entry that charged for it."""
    record = _record(entry)
    asked, purpose, datasets = Asked.of(record.get("asked")), record.get("purpose"), record.get("datasets")
    return Line(
        seq=entry.seq,
        at=entry.at,
        analyst=str(entry.analyst),
        operation=str(entry.operation),
        state=state,
        purpose=purpose if isinstance(purpose, str) else "",
        datasets=tuple(map(str, datasets)) if isinstance(datasets, list) else (),
        question=asked.text if asked and asked.text else _event(record),
        asked=asked,
        left=left,
    )


def _outside_line(entry: Entry) -> Line:
    """What left outside the promise, as a line among releases."""
    try:
        found = Outside.of(entry)
    except SitrError:  # of a book that was tampered with
        found = Outside(entry.seq, entry.at, "", "cannot be read", "", "sitr ledger verify", entry.analyst)
    question = f"{found.what} ({found.notion}; {found.reason})"
    return Line(entry.seq, entry.at, entry.analyst or "", "", "outside", "", (found.dataset,), question, None, {})


def journal(entries: Iterable[Entry], *, whole: bool = True) -> list[Line]:
    """Return a line for each release among entries."""
    made = Journal(whole=whole)
    for entry in entries:
        made.read(entry)
    return made.lines()


def _event(record: Mapping[str, Any]) -> str:
    try:
        return event_text(event_of(record["event"]))
    except (SitrError, KeyError, TypeError):
        return "cannot be read: sitr ledger verify"


def _record(entry: Entry) -> dict[str, Any]:
    """What an entry says; nothing, where it cannot be read."""
    try:
        return entry.record
    except SitrError:
        return {}


def _texts(entry: Entry) -> dict[str, str]:
    """What an answer says was left, as far as it is text."""
    left = _record(entry).get("left")
    return {name: text for name, text in left.items() if isinstance(text, str)} if isinstance(left, dict) else {}
