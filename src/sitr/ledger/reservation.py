"""A reservation: a request that is charged, once, and goes on if it was charged before and never started."""

from __future__ import annotations

from ..errors import (
    AlreadyAnswered,
    AlreadySpent,
    BudgetExceeded,
    ConnectionLost,
    LedgerUnavailable,
    NoSuchGuarantee,
    NotPermitted,
    OperationTaken,
)
from .budgets import Budgets
from .entry import Entry
from .grant import already_spent
from .refusal import refusal
from .replay import Fault, Replay
from .request import Request
from .standing import Standing
from .store import Stale, Store, Unfit
from .totals import Exceeded

RECENT = 600  # entries that are looked through for the same question
TRIES = 20  # how often a reservation is worked out again because a budget changed meanwhile


def reserve(store: Store, budgets: Budgets, asked: Request) -> Entry:
    """Charge a request to every budget that it falls under, or to none; see `Ledger.reserve`."""
    try:
        return _charged(store, budgets, asked)
    except (Unfit, ConnectionLost, BudgetExceeded) as error:
        failed = _settled(error)
    # The id may have been used before: by a process that crashed, or by this one, whose answer was lost.
    known = _known(store, budgets, asked)
    if known is None:
        raise failed
    return known


def answered_before(store: Store, asked: Request) -> str | None:
    """Return the operation under which the very same was answered lately; see `Ledger.asked_before`."""
    try:
        found = store.reserved(asked.analyst, asked.digest, RECENT)
    except (LedgerUnavailable, NotPermitted):
        return None
    answered = found is not None and any(entry.kind == "commit" for entry in store.operation(found))
    return found if answered else None


def _charged(store: Store, budgets: Budgets, asked: Request) -> Entry:
    """Work out what is due, outside of any lock, and charge it; again, if a budget was changed meanwhile."""
    for _ in range(TRIES):
        keepers = budgets.keepers(asked)
        try:
            charges = asked.charges(keepers)
        except NoSuchGuarantee:  # a share may have been replaced by one of another kind since it was read
            budgets.forget()
            keepers = budgets.keepers(asked)
            charges = asked.charges(keepers)
        try:
            return store.reserve(asked.operation, asked.analyst, asked.body(charges), charges, asked.budgets)
        except Stale:
            budgets.forget()
        except Exceeded as found:
            standing = Standing(keepers[found.name][1], found.used)
            raise refusal(found.name, standing, asked.event) from None
    raise LedgerUnavailable("budgets change faster than they can be charged.", do="ask again.")


def _settled(error: Exception) -> Exception:
    """An id that was taken, and is not, belongs to an operation that is being written now."""
    return OperationTaken("the operation id is in use.", do="ask again.") if isinstance(error, Unfit) else error


def _known(store: Store, budgets: Budgets, asked: Request) -> Entry | None:
    """The reservation that was made under this id before, if it may go on; whatever else it is raises."""
    entries = {entry.kind: entry for entry in store.operation(asked.operation)} if asked.named else {}
    reserved = entries.get("reserve")
    if reserved is None:
        return None
    if reserved.analyst != asked.analyst or not asked.same_as(reserved.record):
        raise OperationTaken(
            f"the operation id {asked.operation!r} stands for another request.",
            why="an id names one release for ever, so that a retry is never charged or run twice.",
            do="choose a new id.",
        )
    if "commit" in entries:
        raise AlreadyAnswered(
            f"operation {asked.operation!r} was answered on {entries['commit'].at[:19]}.",
            why="to run it again would be a second release.",
            do=f"ledger.answer({asked.operation!r}, analyst={asked.analyst!r}) returns it, free of charge.",
        )
    if "start" in entries:
        raise already_spent(asked.operation, "was started and has no answer")
    if "refund" in entries:
        raise already_spent(asked.operation, "was refunded")
    if not (asked.paid_by(reserved.record, budgets.keepers(asked)) or _was_paid(store, reserved)):
        raise AlreadySpent(
            f"operation {asked.operation!r} was charged otherwise, or before a budget was changed.",
            why="whether it paid what it costs cannot be told.",
            do="ask with a new operation id; an owner may refund this one, which never started.",
        )
    return reserved


def _was_paid(store: Store, reserved: Entry) -> bool:
    """Whether a reservation charged what its event cost when it was made, before a budget was raised or added."""
    replay = Replay(recount=True)
    try:
        for entry in store.entries():
            replay.apply(entry)
            if entry.seq == reserved.seq:
                return True
    except (Fault, NotPermitted):  # an analyst of PostgreSQL does not read the book
        pass
    return False
