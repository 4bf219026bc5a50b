"""How a declaration is written into the book: what is new in it, and a change of promise with its reason only."""

from __future__ import annotations

from ..errors import LedgerUnavailable
from .entry import Entry
from .store import Stale, Store
from .terms import Terms, check_apart, differences, latest, refused

TRIES = 20  # how often a change is worked out again because another was made meanwhile


def declare(store: Store, terms: Terms, reason: str | None) -> Entry | None:
    """Write terms down, where anything in them is new, and return the entry; see `Ledger.declare`."""
    for _ in range(TRIES):
        entries = store.declared(None, ())
        known = latest(entries)
        before = known.get((terms.dataset, terms.declaration))
        now, new = terms.completed(before), differences(known, terms)
        if before is not None and before.knows(now):
            return None
        if new and reason is None:
            raise refused(terms.dataset, new)
        check_apart(known, now)
        said = (new or []) + (before.settings_changed(now) + before.moved(now) if before else [])
        try:
            return store.declare(now.body(said, reason if new else None), entries[-1].seq if entries else 0)
        except Stale:
            continue
    raise LedgerUnavailable("declarations change faster than they can be written down.", do="ask again.")
