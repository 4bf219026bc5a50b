"""A release outside the promise: it is charged to nothing, since no budget covers it, and every report shows it."""

from __future__ import annotations

from typing import NamedTuple

from .. import _validate
from .entry import Entry, sealed
from .reason import check_line, check_reason
from .store import Store

STAMP = "OUTSIDE THE PROMISE"
SAID = ("name", "what", "notion", "reason")


class Outside(NamedTuple):
    """What left and is covered by no promise.

    Attributes:
        seq: The entry that says so.
        at: When it was written down.
        dataset: Of whose people it was made.
        what: What left.
        notion: What holds of it instead.
        reason: Why it was made.
        analyst: By whom, if that was said.

    Example:
        >>> print(Outside(7, "2026-03-01T09:00:00", "clinic", "diagnoses", "random DP", "for a study", "amina"))
        diagnoses, noted on 2026-03-01, by amina: random DP; for a study
    """

    seq: int
    at: str
    dataset: str
    what: str
    notion: str
    reason: str
    analyst: str | None

    def __str__(self) -> str:
        by = f", by {self.analyst}" if self.analyst else ""
        return f"{self.what}, noted on {self.at[:10]}{by}: {self.notion}; {self.reason}"

    @classmethod
    def of(cls, entry: Entry) -> Outside:
        """Return what an entry says, as far as it can be read."""
        dataset, what, notion, reason = (str(entry.record.get(name, "")) for name in SAID)
        return cls(entry.seq, entry.at, dataset, what, notion, reason, entry.analyst)


def note_outside(store: Store, dataset: str, what: str, notion: str, reason: str, analyst: str | None) -> Entry:
    """Write down what left outside the promise of a dataset; see `Ledger.note_outside`."""
    record = {"name": dataset, "what": check_line("what left", what), "notion": check_line("a notion", notion)}
    by = None if analyst is None else _validate.name("analyst", analyst)
    return store.note_outside(sealed({**record, "reason": check_reason(reason)}), by)
