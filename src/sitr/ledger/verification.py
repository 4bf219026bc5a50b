"""Whether a book is whole: its chain, its totals, its answers, and its anchor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LedgerDamaged
from .anchor import Mark, read_marks
from .answer import OutOfReach, content_of
from .entry import Head
from .reading import Reading, Wrong
from .standing import Standing, rounded_share
from .store import Snapshot, Store

TOLD_EVERY = 1000  # entries, of progress
MOST_TOLD = 100  # of what is wrong, and of remarks
NOT_ANCHORED = "not anchored: missing entries at the end cannot be detected"


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
        remarks: What is odd but breaks nothing, such as a clock that was set back, or releases outside the promise.

    Example:
        >>> print(Verification("b7c1", True, Head(3, "9f" * 32), None, "", (), NOT_ANCHORED, {}, ()))
        valid: 3 entries, head 3:9f9f9f9f9f9f9f9f...
        not anchored: missing entries at the end cannot be detected
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


def verify(
    store: Store, ledger: str, answers: Path | None, anchor: Path | None, progress: Callable[[int], object] | None
) -> Verification:
    """Read the whole book and check it; see `Ledger.verify`."""
    marks = read_marks(anchor) if anchor else []
    reading = Reading(ledger, marks)
    try:
        with store.snapshot() as snapshot:
            for entry in snapshot.entries():
                reading.take(entry)
                if progress is not None and entry.seq % TOLD_EVERY == 0:
                    progress(entry.seq)
            # Each by itself, and the end of the book first: one fault must not hide another.
            reading.note(reading.check_end)
            reading.note(lambda: reading.check_totals(snapshot.totals(), snapshot.blocks()))
            reading.note(lambda: _check_answers(snapshot, reading, answers, anywhere=not store.separates))
        reading.note(store.check_storage)
    except Wrong as found:
        reading.wrong.append(found)
    except LedgerDamaged as error:
        reading.wrong.append(Wrong(None, error.what))
    if outside := len(reading.replay.outside):
        reading.remarks.insert(0, f"{outside} {'release is' if outside == 1 else 'releases are'} outside every promise")
    first = reading.wrong[0] if reading.wrong else Wrong(None, "")
    return Verification(
        ledger=ledger,
        valid=not reading.wrong,
        head=reading.head,
        bad_entry=first.seq,
        problem=first.what,
        others=tuple(wrong.what for wrong in reading.wrong[1 : MOST_TOLD + 1]),
        anchored=_vouched(marks, valid=not reading.wrong),
        spent={name: _shares(account.standing) for name, account in reading.replay.accounts.items()},
        remarks=tuple(reading.remarks[:MOST_TOLD]),
    )


def _check_answers(snapshot: Snapshot, reading: Reading, folder: Path | None, *, anywhere: bool) -> None:
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
    cost, delta = standing.filter.serving().counted
    return rounded_share(cost, math.inf), rounded_share(delta, math.inf)
