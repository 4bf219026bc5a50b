"""Whether a book is whole: its chain, its totals, its answers, and its anchor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LedgerDamaged
from .anchor import Mark, read_marks
from .answer import content_of
from .entry import BEFORE_ALL, Entry, Head, entry_hash
from .replay import Fault, Replay
from .store import Snapshot, Store

NOT_ANCHORED = "not anchored: that the end of the book was not cut off, nothing here can show"


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found.

    Attributes:
        ledger: The id of the book.
        valid: Whether everything held.
        head: The last entry that holds.
        bad_entry: The first that does not, if any.
        problem: What is wrong.
        anchored: How far an anchor vouches for it.
        spent: What every budget has used, worked out again, as a share of its limit; (cost, δ-parts).
        remarks: What is odd but breaks nothing, such as a clock that was set back.

    Example:
        >>> print(Verification("b7c1", True, Head(3, "9f" * 32), None, "", NOT_ANCHORED, {}, ()))
        valid: 3 entries, head 3:9f9f9f9f9f9f9f9f...
        not anchored: that the end of the book was not cut off, nothing here can show
    """

    ledger: str
    valid: bool
    head: Head
    bad_entry: int | None
    problem: str
    anchored: str
    spent: dict[str, tuple[float, float]]
    remarks: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        found = f"valid: {self.head.seq} entries, head {self.head}" if self.valid else f"NOT VALID: {self.problem}"
        return "\n".join([found, self.anchored, *self.remarks])


class Wrong(Exception):
    """The first thing that does not hold: the entry, if it is one, and what is wrong."""

    def __init__(self, seq: int | None, what: str) -> None:
        super().__init__(what)
        self.seq, self.what = seq, what


def verify(
    store: Store, ledger: str, answers: Path | None, anchor: Path | None, progress: Callable[[int], object] | None
) -> Verification:
    """Read the whole book and check it; see `Ledger.verify`."""
    replay, remarks = Replay(recount=True), list[str]()
    head, wrong = Head(0, BEFORE_ALL), Wrong(None, "")
    marks: dict[int, list[Mark]] = defaultdict(list)
    for mark in read_marks(anchor) if anchor else ():
        marks[mark.head.seq].append(mark)
    before = ""
    try:
        with store.snapshot() as snapshot:
            for entry in snapshot.entries():
                head = _follow(ledger, head, entry, replay)
                if entry.at < before:
                    remarks.append(f"entry {entry.seq} is dated before the one it follows: a clock was set back")
                before = entry.at
                _check_marks(ledger, head, marks.pop(entry.seq, []))
                if progress is not None and entry.seq % 1000 == 0:
                    progress(entry.seq)
            _check_totals(snapshot, replay)
            _check_answers(snapshot, replay, answers)
        _check_end(head, marks)
        store.check_storage()
    except Wrong as found:
        wrong = found
    except LedgerDamaged as error:
        wrong = Wrong(None, error.what)
    return Verification(
        ledger=ledger,
        valid=not wrong.what,
        head=head,
        bad_entry=wrong.seq,
        problem=wrong.what,
        anchored=_anchored(anchor),
        spent={name: (account.used[0] / 2**60, account.used[1] / 2**60) for name, account in replay.accounts.items()},
        remarks=tuple(remarks[:10]),
    )


def _follow(ledger: str, head: Head, entry: Entry, replay: Replay) -> Head:
    """Check that an entry stands where it belongs, and apply it."""
    if entry.seq != head.seq + 1:
        raise Wrong(head.seq + 1, f"entry {head.seq + 1} is missing")
    if entry_hash(ledger, head.hash, entry) != entry.hash:
        raise Wrong(entry.seq, f"entry {entry.seq} was changed, or does not follow entry {head.seq} of this ledger")
    try:
        replay.apply(entry)
    except Fault as fault:
        raise Wrong(entry.seq, f"entry {entry.seq} breaks the rules: {fault}") from None
    return Head(entry.seq, entry.hash)


def _check_totals(snapshot: Snapshot, replay: Replay) -> None:
    """The running totals are what the entries add up to."""
    totals = {total.name: total for total in snapshot.totals()}
    if totals.keys() != replay.accounts.keys():
        raise Wrong(None, f"budgets and entries disagree on {sorted(totals.keys() ^ replay.accounts.keys())[0]!r}")
    for name, account in replay.accounts.items():
        total = totals[name]
        if (total.version, total.body) != (account.version, account.keeper.to_json()):
            raise Wrong(None, f"the budget {name!r} is defined otherwise than its entries say")
        if ((total.cost, total.delta), (total.peak_cost, total.peak_delta)) != (account.whole, account.peak):
            raise Wrong(None, f"the running total of the budget {name!r} is not what its entries add up to")
    blocks = {(name, block): used for name, a in replay.accounts.items() for block, used in a.blocks.items()}
    if blocks != snapshot.blocks():
        raise Wrong(None, "the running totals of blocks are not what the entries add up to")


def _check_answers(snapshot: Snapshot, replay: Replay, folder: Path | None) -> None:
    """Every committed answer is stored as it was, and no other."""
    committed = {name: found.sha256 for name, found in replay.operations.items() if found.state == "committed"}
    for operation, kept in snapshot.answers():
        if operation not in committed:
            raise Wrong(None, f"there is an answer to operation {operation!r}, which was not committed")
        content_of(kept, folder, committed.pop(operation), operation)
    if committed:
        raise Wrong(None, f"the answer to operation {min(committed)!r} is gone")


def _check_marks(ledger: str, head: Head, marks: list[Mark]) -> None:
    if any((mark.ledger, mark.head) != (ledger, head) for mark in marks):
        raise Wrong(head.seq, f"entry {head.seq} is not what the anchor says it was")


def _check_end(head: Head, left: dict[int, list[Mark]]) -> None:
    if left:
        raise Wrong(None, f"the anchor knows entry {max(left)}, and the book ends at {head.seq}: its end was lost")


def _anchored(anchor: Path | None) -> str:
    marks = read_marks(anchor) if anchor else []
    if not marks:
        return NOT_ANCHORED
    last = max(marks, key=lambda mark: mark.head.seq)
    return f"anchored up to entry {last.head.seq}, on {last.at}: what came later could have been cut off unseen"
