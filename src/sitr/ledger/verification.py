"""Whether a book is whole: its chain, its totals, its answers, and its anchor."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LedgerDamaged
from .anchor import Mark, read_marks
from .answer import OutOfReach, content_of
from .entry import BEFORE_ALL, Entry, Head, entry_hash
from .replay import Fault, Replay
from .standing import Standing, rounded_share
from .store import Snapshot, Store

TOLD_EVERY = 1000  # entries, of progress
MOST_TOLD = 100  # of what is wrong, and of remarks
NOT_ANCHORED = "not anchored: that the end of the book was not cut off, nothing here can show"


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found.

    Attributes:
        ledger: The id of the book.
        valid: Whether everything held.
        head: The last entry that holds.
        bad_entry: The first that does not, if any.
        problem: What is wrong with it, or with the book.
        others: What else is wrong; after a break of the chain nothing more is read.
        anchored: How far an anchor vouches for it.
        spent: What every budget has used, worked out again, as a share of its limit: (cost, δ-parts) of the filter
            that has the most left.
        remarks: What is odd but breaks nothing, such as a clock that was set back.

    Example:
        >>> print(Verification("b7c1", True, Head(3, "9f" * 32), None, "", (), NOT_ANCHORED, {}, ()))
        valid: 3 entries, head 3:9f9f9f9f9f9f9f9f...
        not anchored: that the end of the book was not cut off, nothing here can show
    """

    ledger: str
    valid: bool
    head: Head
    bad_entry: int | None
    problem: str
    others: tuple[str, ...]
    anchored: str
    spent: dict[str, tuple[float, float]]
    remarks: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        found = f"valid: {self.head.seq} entries, head {self.head}" if self.valid else f"NOT VALID: {self.problem}"
        return "\n".join([found, *self.others, self.anchored, *self.remarks])


class Wrong(Exception):
    """Something that does not hold: the entry, if it is one, and what is wrong."""

    def __init__(self, seq: int | None, what: str) -> None:
        super().__init__(what)
        self.seq, self.what = seq, what


def verify(
    store: Store, ledger: str, answers: Path | None, anchor: Path | None, progress: Callable[[int], object] | None
) -> Verification:
    """Read the whole book and check it; see `Ledger.verify`."""
    marks = read_marks(anchor) if anchor else []
    reading = _Reading(ledger, marks)
    try:
        with store.snapshot() as snapshot:
            for entry in snapshot.entries():
                reading.take(entry)
                if progress is not None and entry.seq % TOLD_EVERY == 0:
                    progress(entry.seq)
            # Each by itself, and the end of the book first: one fault must not hide another.
            reading.note(reading.check_end)
            reading.note(lambda: _check_totals(snapshot, reading.replay))
            reading.note(lambda: _check_answers(snapshot, reading, answers, anywhere=not store.separates))
        reading.note(store.check_storage)
    except Wrong as found:
        reading.wrong.append(found)
    except LedgerDamaged as error:
        reading.wrong.append(Wrong(None, error.what))
    return reading.verification(_vouched(marks, valid=not reading.wrong))


class _Reading:
    """The book while it is read. What breaks the chain ends it; an entry that breaks the rules is noted."""

    def __init__(self, ledger: str, marks: list[Mark]) -> None:
        self.replay = Replay(recount=True)
        self.wrong: list[Wrong] = []
        self._ledger, self._head, self._at = ledger, Head(0, BEFORE_ALL), ""
        self.remarks: list[str] = []
        self._marks: dict[int, list[Mark]] = defaultdict(list)
        for mark in marks:
            self._marks[mark.head.seq].append(mark)

    def take(self, entry: Entry) -> None:
        """Check that an entry stands where it belongs, and apply it."""
        if entry.seq != self._head.seq + 1:
            raise Wrong(self._head.seq + 1, f"entry {self._head.seq + 1} is missing")
        if entry_hash(self._ledger, self._head.hash, entry) != entry.hash:
            where = f"entry {self._head.seq} of this ledger"
            raise Wrong(entry.seq, f"entry {entry.seq} was changed, or does not follow {where}")
        self._head = entry.head
        if any((mark.ledger, mark.head) != (self._ledger, self._head) for mark in self._marks.pop(entry.seq, [])):
            raise Wrong(entry.seq, f"entry {entry.seq} is not what the anchor says it was")
        if entry.at < self._at:
            self.remarks.append(f"entry {entry.seq} is dated before the one it follows: a clock was set back")
        self._at = entry.at
        try:
            self.replay.apply(entry)
        except Fault as fault:
            self.wrong.append(Wrong(entry.seq, f"entry {entry.seq} breaks the rules: {fault}"))

    def note(self, check: Callable[[], None]) -> None:
        """Make a check, and write down what it finds."""
        try:
            check()
        except Wrong as found:
            self.wrong.append(found)
        except LedgerDamaged as error:
            self.wrong.append(Wrong(None, error.what))

    def check_end(self) -> None:
        """The book has everything that the anchor knows."""
        if self._marks:
            ends = f"the book ends at {self._head.seq}: its end was lost"
            raise Wrong(None, f"the anchor knows entry {max(self._marks)}, and {ends}")

    def verification(self, anchored: str) -> Verification:
        """Return what was found."""
        first = self.wrong[0] if self.wrong else Wrong(None, "")
        return Verification(
            ledger=self._ledger,
            valid=not self.wrong,
            head=self._head,
            bad_entry=first.seq,
            problem=first.what,
            others=tuple(wrong.what for wrong in self.wrong[1 : MOST_TOLD + 1]),
            anchored=anchored,
            spent={name: _shares(account.standing) for name, account in self.replay.accounts.items()},
            remarks=tuple(self.remarks[:MOST_TOLD]),
        )


def _check_totals(snapshot: Snapshot, replay: Replay) -> None:
    """The running totals are what the entries add up to."""
    totals = {total.name: total for total in snapshot.totals()}
    if totals.keys() != replay.accounts.keys():
        raise Wrong(None, f"budgets and entries disagree on {sorted(totals.keys() ^ replay.accounts.keys())[0]!r}")
    for name, account in replay.accounts.items():
        total = totals[name]
        if (total.version, total.body) != (account.version, account.keeper.to_json()):
            raise Wrong(None, f"the budget {name!r} is defined otherwise than its entries say")
        if (total.whole, total.peak) != (account.whole, account.peak):
            raise Wrong(None, f"the running total of the budget {name!r} is not what its entries add up to")
    blocks = {(name, block): used for name, a in replay.accounts.items() for block, used in a.blocks.items()}
    if blocks != snapshot.blocks():
        raise Wrong(None, "the running totals of blocks are not what the entries add up to")


def _check_answers(snapshot: Snapshot, reading: _Reading, folder: Path | None, *, anywhere: bool) -> None:
    """Every committed answer is stored as it was, and no other; files that are not in reach are a remark."""
    away = 0
    operations = reading.replay.operations
    committed = {name: found.committed for name, found in operations.items() if found.committed}
    for operation, kept in snapshot.answers():
        entry = committed.pop(operation, None)
        if entry is None:
            reading.wrong.append(Wrong(None, f"there is an answer to operation {operation!r}, which was not committed"))
            continue
        try:
            content_of(kept, folder, entry.record, anywhere=anywhere)
        except OutOfReach:
            away += 1
        except LedgerDamaged as error:
            reading.wrong.append(Wrong(entry.seq, f"entry {entry.seq}: {error.what}"))
    if committed:
        reading.wrong.append(Wrong(None, f"the answer to operation {min(committed)!r} is gone"))
    if away:
        reading.remarks.append(f"{away} large answers are in files that are not here, and were not compared")


def _vouched(marks: list[Mark], *, valid: bool) -> str:
    if not marks:
        return NOT_ANCHORED
    last = max(marks, key=lambda mark: mark.head.seq)
    if not valid:
        return f"the anchor reaches to entry {last.head.seq}, on {last.at}"
    return f"anchored up to entry {last.head.seq}, on {last.at}: what came later could have been cut off unseen"


def _shares(standing: Standing) -> tuple[float, float]:
    cost, delta = standing.filter().used
    return rounded_share(cost, math.inf), rounded_share(delta, math.inf)
