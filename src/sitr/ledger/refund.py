"""A refund: what was charged to an operation that never started is given back."""

from __future__ import annotations

from ..errors import LedgerUnavailable, NotPermitted, UnknownName
from .entry import Entry, sealed
from .replay import Replay
from .store import Stale, Store, Unfit

TRIES = 20  # how often a refund is worked out again because a budget was raised meanwhile


def refund(store: Store, operation: str, reason: str) -> Entry:
    """Give back what an operation was charged, to every budget in its own measure; see `Ledger.refund`."""
    try:
        return _refunded(store, operation, reason)
    except Unfit:
        kinds = [entry.kind for entry in store.operation(operation)]
        if "refund" in kinds:
            raise NotPermitted(f"operation {operation!r} was refunded before.") from None
        raise NotPermitted(
            f"operation {operation!r} was started.",
            why="what was started may have run, and its answer may have been seen.",
            do="let it stay spent.",
        ) from None


def _refunded(store: Store, operation: str, reason: str) -> Entry:
    """Work out what is given back, and give it; again, if a budget was raised meanwhile."""
    for _ in range(TRIES):
        replay = Replay.of(store.entries())
        if operation not in replay.operations:
            raise UnknownName(f"there is no operation {operation!r}.")
        try:
            return store.refund(operation, sealed({"reason": reason}), replay.refunds(operation))
        except Stale:
            continue
    raise LedgerUnavailable("budgets change faster than they can be refunded.", do="ask again.")
