"""The book while it is read from its first entry: its chain, its rules, and its totals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ..errors import LedgerDamaged
from .anchor import Mark
from .entry import BEFORE_ALL, Entry, Head, entry_hash
from .replay import Fault, Replay
from .totals import Total, Vector


class Wrong(Exception):
    """Something that does not hold: the entry, if it is one, and what is wrong."""

    def __init__(self, seq: int | None, what: str) -> None:
        super().__init__(what)
        self.seq, self.what = seq, what


class Reading:
    """The book while it is read. What breaks the chain ends it; an entry that breaks the rules is noted.

    Args:
        ledger: Its id.
        marks: Of its anchor.

    Attributes:
        replay: What the entries say.
        head: The last entry that holds.
        wrong: What does not hold.
        remarks: What is odd but breaks nothing.
    """

    def __init__(self, ledger: str, marks: Iterable[Mark] = ()) -> None:
        self.replay = Replay(recount=True)
        self.wrong: list[Wrong] = []
        self._ledger, self._at = ledger, ""
        self.head = Head(0, BEFORE_ALL)
        self.remarks: list[str] = []
        self._marks: dict[int, list[Mark]] = defaultdict(list)
        for mark in marks:
            self._marks[mark.head.seq].append(mark)

    def take(self, entry: Entry) -> None:
        """Check that an entry stands where it belongs, and apply it."""
        if entry.seq != self.head.seq + 1:
            raise Wrong(self.head.seq + 1, f"entry {self.head.seq + 1} is missing")
        if entry_hash(self._ledger, self.head.hash, entry) != entry.hash:
            where = f"entry {self.head.seq} of this ledger"
            raise Wrong(entry.seq, f"entry {entry.seq} was changed, or does not follow {where}")
        self.head = entry.head
        if any((mark.ledger, mark.head) != (self._ledger, self.head) for mark in self._marks.pop(entry.seq, [])):
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
            ends = f"the book ends at {self.head.seq}: its end was lost"
            raise Wrong(None, f"the anchor knows entry {max(self._marks)}, and {ends}")

    def check_totals(self, totals: Iterable[Total], blocks: dict[tuple[str, str], Vector]) -> None:
        """The running totals are what the entries add up to."""
        found, accounts = {total.name: total for total in totals}, self.replay.accounts
        if found.keys() != accounts.keys():
            raise Wrong(None, f"budgets and entries disagree on {sorted(found.keys() ^ accounts.keys())[0]!r}")
        for name, account in accounts.items():
            total = found[name]
            if (total.version, total.body) != (account.version, account.keeper.to_json()):
                raise Wrong(None, f"the budget {name!r} is defined otherwise than its entries say")
            if (total.whole, total.peak) != (account.whole, account.peak):
                raise Wrong(None, f"the running total of the budget {name!r} is not what its entries add up to")
        if blocks != {(name, block): used for name, one in accounts.items() for block, used in one.blocks.items()}:
            raise Wrong(None, "the running totals of blocks are not what the entries add up to")
