"""An anchor: the end of the book, written down elsewhere.

A chain shows that nothing was changed inside it, but not that its end was cut off, or that an older copy was put in
its place. A file on another disk, or in another's hands, does: it proves history up to its last line. An owner who can
write both can forge both.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .. import _validate
from ..errors import LedgerDamaged, LedgerUnavailable, WrongLedger
from .disk import owner_only
from .entry import Head, canonical, now

if TYPE_CHECKING:
    from .store import Store

TAIL = 2**16  # bytes at the end of an anchor, some hundred lines: processes write them out of order by a few


class Mark(NamedTuple):
    """One line of an anchor: this ledger had this head."""

    ledger: str
    head: Head
    at: str


def write_mark(path: Path, ledger: str, head: Head) -> None:
    """Add a line to an anchor; it is on the disk when this returns.

    Raises:
        LedgerUnavailable: The file cannot be written.
    """
    # A line end before it as well: what a crash left unfinished does not spoil this line.
    line = "\n" + canonical({"at": now(), "hash": head.hash, "ledger": ledger, "seq": head.seq}) + "\n"
    try:
        with open(path, "ab", opener=owner_only) as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise LedgerUnavailable(
            f"the anchor at {path} cannot be written: {error.strerror}.",
            why="what is not anchored can be cut off unseen.",
            do="make its folder, and the file, writable; or open the ledger without an anchor.",
        ) from None


def read_marks(path: Path, *, last: bool = False) -> list[Mark]:
    """Return the marks of an anchor, in their order; an unfinished line proves nothing and is left out.

    Args:
        path: The file.
        last: Read only its end, which takes no longer for a long one.

    Raises:
        LedgerUnavailable: The file cannot be read, or is not there.
        LedgerDamaged: It is something else.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL, 0) if last else 0)
            lines = file.read().split(b"\n")
    except OSError as error:
        raise LedgerUnavailable(f"the anchor at {path} cannot be read: {error.strerror}.") from None
    marks = [mark for line in lines if (mark := _mark(line)) is not None]
    if size and not marks:
        raise LedgerDamaged(f"the file {path} is no anchor of a ledger.", do="name the file that `anchor` wrote.")
    return marks


def _mark(line: bytes) -> Mark | None:
    try:
        record = json.loads(line)
        return Mark(str(record["ledger"]), Head(int(record["seq"]), str(record["hash"])), str(record["at"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def hold_to(anchor: Path, store: Store, ledger: str) -> bool:
    """Refuse a book that an anchor knows otherwise, and return whether it knows anything yet.

    Raises:
    LedgerDamaged: The book has lost entries that the anchor knows, or has others in their place.
    WrongLedger: The anchor is another ledger's.
    """
    marks = read_marks(anchor, last=True) if anchor.exists() else []
    others = [mark.ledger for mark in marks if mark.ledger != ledger]
    if others:
        raise WrongLedger(
            f"the anchor at {anchor} is of ledger {_validate.shown(others[-1])}, and this one is {ledger}.",
            do="look whether two books were exchanged.",
        )
    known = {mark.head for mark in marks}
    lost = known - store.heads(sorted(seq for seq, _ in known))
    if lost:
        raise LedgerDamaged(
            f"the ledger at {store.place} is behind its anchor: entry {min(lost).seq} is lost or changed.",
            why="what was charged after an old copy was made would be forgotten.",
            do="find the newest book; sitr ledger verify --anchor says where they part.",
        )
    return bool(marks)
