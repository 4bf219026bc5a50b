"""How a book is opened, or begun: the one that was meant, in the form of today, and no older than its anchor."""

from __future__ import annotations

import uuid
from pathlib import Path

from .. import _validate
from .._version import __version__
from ..errors import LedgerDamaged, NotPermitted, UnknownName, WrongLedger
from . import schema
from .anchor import hold_to, read_marks, write_mark
from .entry import Head, canonical
from .lookalikes import close_to
from .store import Store, check_version


def open_book(store: Store, *, create: bool, expect: str | None, anchor: Path | None) -> str:
    """Open what a store holds, and return its id; see `Ledger.open`."""
    identity = store.identity()
    if identity is None:
        _check_none_lost(store, create, expect, anchor)
        store.make(uuid.uuid4().hex, canonical({"sitr": __version__}))
        identity = store.identity()
    assert identity is not None
    check_version(identity.schema_version, store.place)
    if identity.schema_version < schema.SCHEMA_VERSION:
        _migrate(store, identity.schema_version)
    if expect is not None and identity.id != expect:
        raise WrongLedger(
            f"the ledger at {store.place} is {identity.id}, and {_validate.shown(expect)} was asked for.",
            why="charges would go to another book, and the one that was meant would under-count.",
            do="look where the right book is, or whether two were exchanged.",
        )
    if anchor is not None and not hold_to(anchor, store, identity.id):
        _begin_anchor(anchor, identity.id, identity.head)
    return identity.id


def _check_none_lost(store: Store, create: bool, expect: str | None, anchor: Path | None) -> None:
    """Begin no new book where there should be one."""
    if not create and expect is not None:
        raise UnknownName(
            f"there is no ledger at {store.place}, where {_validate.shown(expect)} should be.",
            why="it has all that was charged; a new one would forget it.",
            do="find it; or put a copy back: sitr ledger restore COPY.",
        )
    if not create:
        close = None if store.separates else close_to(Path(store.place))
        meant = f"did you mean {close}? Otherwise " if close else ""
        do = f"{meant}name the right place, or create a budget there."
        raise UnknownName(f"there is no ledger at {store.place}.", do=do)
    if anchor is not None and anchor.exists() and read_marks(anchor, last=True):
        raise LedgerDamaged(
            f"the anchor at {anchor} knows a ledger, and there is none at {store.place}.",
            why="a new book would forget everything that was charged.",
            do="find the book, or name a new anchor for a new one.",
        )


def _migrate(store: Store, version: int) -> None:
    try:
        store.migrate()
    except NotPermitted:
        raise NotPermitted(
            f"the ledger at {store.place} has form {version}; this version of sitr needs {schema.SCHEMA_VERSION}.",
            do="let its owner open it once with this version: sitr ledger verify.",
        ) from None


def _begin_anchor(anchor: Path, ledger: str, head: Head) -> None:
    """Write the first mark of a new book; for an old one, an anchor that knows nothing was lost."""
    if head.seq > 1:
        raise LedgerDamaged(
            f"the anchor at {anchor} is missing or empty, and the book has {head.seq} entries.",
            why="that its end was not cut off, nothing can show now.",
            do="find it; or begin a new one from today: ledger.write_anchor(...), or sitr ledger anchor.",
        )
    write_mark(anchor, ledger, head)
