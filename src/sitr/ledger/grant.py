"""A grant: the permission to run one thing once, already paid for."""

from __future__ import annotations

import logging
import os
import secrets
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..accounting import Composed, Event, compose
from ..errors import AlreadyAnswered, AlreadySpent, ConnectionLost, InvalidArgument, NotPermitted
from .answer import LARGE, LARGEST, STILL, encoded, events_of, file_content, written
from .entry import Entry, canonical, sha256, start_body
from .store import Kept, Unfit

if TYPE_CHECKING:
    from .ledger import Ledger


class Grant:
    """What `Ledger.reserve` returns: charged, and not yet run.

    In a `with` block the operation is marked as started before the first line runs. Leaving the block without `commit`,
    by an error or Ctrl-C or not at all, leaves it spent.

    Attributes:
        event: What was paid for.
        operation: The id under which it runs once.
        analyst: Who asked.
        entry: The entry that charged for it, for a `Release`.

    Example:
        >>> from sitr.accounting import Laplace
        >>> from sitr.ledger import Budget, Ledger
        >>> ledger = Ledger.open("memory://")
        >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
        >>> with ledger.reserve("clinic", Laplace(noise_multiplier=2), analyst="amina") as grant:
        ...     grant.commit(42)
        >>> ledger.answer(grant.operation, analyst="amina").value
        42
    """

    def __init__(self, ledger: Ledger, event: Event, reserved: Entry) -> None:
        self.event = event
        self.operation = str(reserved.operation)
        self.analyst = str(reserved.analyst)
        self.entry = ledger.name_of(reserved)
        self._ledger = ledger
        self._holder = secrets.token_hex(16)  # tells our start from that of a process with the same id
        self._pid = os.getpid()
        self._started = self._committed = False

    def __repr__(self) -> str:
        return f"Grant(operation={self.operation!r}, analyst={self.analyst!r}, entry={self.entry!r})"

    def __enter__(self) -> Grant:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Change nothing: what was charged stays charged."""
        if not self._committed:
            told = (
                f"operation {self.operation!r} is charged and has no answer; grant.commit still works in this process."
            )
            if error is not None:
                error.add_note(told)
            else:
                logging.getLogger("sitr").warning(told)

    def start(self) -> None:
        """Mark the operation as started: from here on it cannot be refunded. A `with` block does this by itself.

        Raises:
            AlreadySpent: It was started before, or refunded.
        """
        self._check_process()
        if self._started:
            raise self._spent("was started before")
        try:
            self._ledger.store.start(self.operation, self.analyst, start_body(self._holder))
        except Unfit:
            raise self._spent("was started by another holder of the same id, or refunded") from None
        except ConnectionLost:
            if self._written("start") is None:
                raise
        self._started = True

    def commit(self, answer: Any, *, left: Mapping[str, str] | None = None) -> None:
        """Keep the answer, so that asking again with the same id returns it.

        Args:
            answer: Bytes, text, a private `Release`, what JSON can hold (with releases in it, as of a `Blueprint`), or
                the path of a file, of which a copy is kept. Never an exact value: what is kept may be shown.
            left: What each budget has left, in words, for those who read the book.

        Raises:
            AlreadyAnswered: It has an answer, which is another one.
            AlreadySpent: The operation was not started by this grant.
            InvalidArgument: The answer cannot be kept, is too large, is a release of another event, or not private.
                What was charged stays charged, and this grant can still commit.
        """
        self._check_process()
        if not self._started:
            raise AlreadySpent(
                f"operation {self.operation!r} is not started.", do="with ledger.reserve(...) as grant: ..."
            )
        kept, record = self._kept(answer)
        said = {"left": dict(left)} if left else {}
        store, body = self._ledger.store, canonical({**record, **said, "holder": self._holder})
        try:
            store.commit(self.operation, self.analyst, self._holder, body, kept)
        except (Unfit, ConnectionLost) as error:
            stored = self._written("commit")
            # If it was us, the answer to that was lost.
            if stored is None or stored.record["sha256"] != record["sha256"]:
                raise (error if isinstance(error, ConnectionLost) else self._conflict(stored)) from None
        self._committed = True

    def _kept(self, answer: Any) -> tuple[Kept, dict[str, Any]]:
        """The answer as the store keeps it, and what the entry says of it."""
        if isinstance(answer, Path):
            answer = file_content(answer)
        try:
            released = events_of(answer)
        except RecursionError:
            raise InvalidArgument("an answer holds itself, or is nested too deeply to be kept.", do=STILL) from None
        if released and _parts(released) != _parts([self.event]):
            raise InvalidArgument(
                f"what is released is {compose(*released)!r:.80}, and {self.event!r:.80} was paid for.",
                do="reserve the event that the mechanism, or the blueprint, has.",
            )
        media, content = encoded(answer, self.entry)
        about = {"bytes": len(content), "media": media, "sha256": sha256(content)}
        folder = self._ledger.answers
        if len(content) > LARGEST:
            raise InvalidArgument(f"an answer of more than {LARGEST} bytes is too large to be kept.", do=STILL)
        if len(content) <= LARGE or self._ledger.in_memory:
            return Kept(media, content, None), about
        if folder is None:
            raise InvalidArgument(
                f"an answer of {len(content)} bytes is too large for the ledger itself, which keeps up to {LARGE}.",
                do=f"open the ledger with answers=<a folder> before you reserve. {STILL}",
            )
        return Kept(media, None, written(folder, content)), about

    def _written(self, kind: str) -> Entry | None:
        """The entry of this kind if this grant wrote it, found by a connection of its own."""
        for entry in self._ledger.store.operation(self.operation):
            if entry.kind == kind and entry.record.get("holder") in (self._holder, sha256(self._holder.encode())):
                return entry
        return None

    def _conflict(self, stored: Entry | None) -> Exception:
        if stored is None:
            return self._spent("was started by another holder of the same id")
        return AlreadyAnswered(
            f"operation {self.operation!r} has another answer already.",
            why="an operation is answered once; a second answer is a second release.",
            do="use the first: ledger.answer(...).",
        )

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise NotPermitted(
                f"operation {self.operation!r} was granted to another process.",
                why="a grant is the permission to run one thing once; a fork would make two of it.",
                do="reserve, and commit, in the same process.",
            )

    def _spent(self, how: str) -> AlreadySpent:
        return already_spent(self.operation, how)


def _parts(events: list[Event]) -> Counter[Event]:
    """The events as they add up, however they are put together."""
    counts: Counter[Event] = Counter()
    for event in events:
        for part, count in event.events if isinstance(event, Composed) else ((event, 1),):
            counts[part] += count
    return counts


def already_spent(operation: str, how: str) -> AlreadySpent:
    """The operation never runs again under this id."""
    return AlreadySpent(
        f"operation {operation!r} {how}.",
        why="it may have run and its answer may have been seen, so running it again is a second release.",
        do="if it is still running, wait, and ask ledger.answer(...); if it crashed, a new operation id costs anew.",
    )
