"""Where a book is kept. A store makes each step one durable transaction; what a step means is decided above it.

This is what SQLite and PostgreSQL have in common. Errors of drivers end here: a driver's message may hold an address,
or what was asked, so they become errors of sitr, in its own words.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    Connection,
    CursorResult,
    Engine,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ..errors import LedgerDamaged, LedgerUnavailable, NotPermitted, WrongLedger
from . import migration, schema
from .connections import Connections, Unreached
from .entry import BEFORE_ALL, Entry, Head, sealed
from .replay import Account
from .totals import Charge, Total, Vector, less, peak

T = TypeVar("T")
PAGE_SIZE = 10_000  # entries read at a time
FARTHEST = 2**63  # what a place is under


class Identity(NamedTuple):
    """Which book this is, and where it ends."""

    id: str
    schema_version: int
    head: Head


class Kept(NamedTuple):
    """A stored answer: its bytes, or the path of the file that has them."""

    media: str
    content: bytes | None
    path: str | None


class Stale(Exception):
    """A budget was changed, or created, after it was read: read again."""


class Unfit(Exception):
    """The operation is not in the state that the step asks for: read its entries."""


class Snapshot:
    """Everything in a book, at one moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: CursorResult[Any] | None = None

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in order."""
        for row in self._stream(select(schema.entry).order_by(schema.entry.c.seq)):
            yield _entry(row)

    def totals(self) -> list[Total]:
        """Return all budgets, in order."""
        return [Total(*row) for row in self._connection.execute(select(schema.budget).order_by(schema.budget.c.name))]

    def blocks(self) -> dict[tuple[str, str], Vector]:
        """Return what each block of each budget has used, besides what all of them have."""
        rows = self._connection.execute(select(schema.block))
        return {(row.budget, row.block): row.used for row in rows}

    def answers(self) -> Iterator[tuple[str, Kept]]:
        """Yield the stored answers by operation."""
        for row in self._stream(select(schema.answer)):
            yield row.operation, Kept(row.media, row.content, row.path)

    def _stream(self, statement: Select[Any]) -> Iterator[Row[Any]]:
        self._rows = self._connection.execute(statement, execution_options={"yield_per": 1000})
        return iter(self._rows)

    def close(self) -> None:
        """End what is still being read: whoever found a fault reads no further."""
        if self._rows is not None:
            self._rows.close()


class Store(ABC):
    """A book in a database.

    Attributes:
        engine: SQLAlchemy's; a forked child gets connections of its own.
        place: Where it is, as messages say it: no password.
    """

    begin = begin_reading = "BEGIN"
    separates = False  # whether it keeps analysts from what only owners may do

    def __init__(self, engine: Engine, place: str, *, alone: bool) -> None:
        self.engine, self.place = engine, place
        self._connections = Connections(engine, alone=alone)
        self._latest = Head(0, BEFORE_ALL)  # that this process knows of: a book without it is an older one
        self._turn: AbstractContextManager[Any] = nullcontext()

    # Steps of the protocol: each is one durable transaction.

    @abstractmethod
    def reserve(
        self, operation: str, analyst: str, body: str, charges: Sequence[Charge], names: Sequence[str]
    ) -> Entry:
        """Charge all budgets and write the entry, or do neither.

        Args:
            operation: Its id.
            analyst: Who asks.
            body: What the entry says; it names the same charges.
            charges: What every budget is due, in the order of names.
            names: Of all budgets that it may fall under.

        Raises:
            Exceeded: A budget has not enough left.
            Stale: Of these names, other budgets exist than those charged, or other versions of them.
            Unfit: The operation id is taken.
        """

    @abstractmethod
    def start(self, operation: str, analyst: str, body: str) -> Entry:
        """Mark a reserved operation as started.

        Raises:
            Unfit: It is not reserved by this analyst, or was started or refunded.
        """

    @abstractmethod
    def commit(self, operation: str, analyst: str, holder: str, body: str, kept: Kept) -> Entry:
        """Keep the answer of a started operation.

        Raises:
            Unfit: It was not started by this holder, or has an answer.
        """

    # What analysts may read.

    @abstractmethod
    def identity(self) -> Identity | None:
        """Return which book this is; None where there is none yet."""

    @abstractmethod
    def totals(self, names: Sequence[str]) -> list[Total]:
        """Return the budgets of these names, as far as they exist, in order."""

    @abstractmethod
    def operation(self, operation: str) -> list[Entry]:
        """Return the entries of an operation; on PostgreSQL, an analyst reads no body of another's."""

    @abstractmethod
    def kept(self, operation: str, analyst: str) -> Kept | None:
        """Return the stored answer to this analyst."""

    @abstractmethod
    def declared(self, declaration: str | None, datasets: Sequence[str]) -> list[Entry]:
        """Return the entries of terms of a declaration, and of these datasets; of None all, to an owner.

        On PostgreSQL, an analyst reads digests of them only.
        """

    @abstractmethod
    def has_terms(self) -> bool:
        """Whether the book says of any budget what its promise depends on."""

    def mine(self) -> list[Entry]:
        """Return the entries of whoever is logged in, in order; `NotPermitted` where the store knows no logins."""
        raise not_permitted(self.place)

    # What owners do.

    @abstractmethod
    def make(self, id: str, body: str) -> None:
        """Make the tables of a new book, and its first entry."""

    @abstractmethod
    def _append(
        self, connection: Connection, kind: str, operation: str | None, analyst: str | None, body: str
    ) -> Entry:
        """Write the next entry of the chain, in a transaction that holds the lock of the book."""

    def create_budget(self, new: Total, body: str) -> Entry:
        """Write a new budget down; `Unfit` where there is one of that name."""
        with self.transaction() as connection:
            if self._totals(connection, [new.name]):
                raise Unfit
            connection.execute(insert(schema.budget), new._asdict())
            return self._append(connection, "budget", None, None, body)

    def raise_budget(self, known: Total, definition: str, body: str, rescale: Callable[[Vector], Vector]) -> Entry:
        """Replace the definition of a budget, with everything used in the units of its new limits.

        Raises:
            Stale: It is no more of the version that is known.
        """
        name = known.name
        with self.transaction() as connection:
            (total,) = self._totals(connection, [name])
            if total.version != known.version:
                raise Stale
            used = {"whole": rescale(total.whole), "peak": rescale(total.peak)}
            connection.execute(
                update(schema.budget).where(schema.budget.c.name == name),
                {"version": total.version + 1, "body": definition, **used},
            )
            for row in connection.execute(select(schema.block).where(schema.block.c.budget == name)).all():
                self._set_block(connection, name, row.block, rescale(row.used))
            return self._append(connection, "raise", None, None, body)

    def replace_budget(self, name: str, known: Account, made: Account, body: str) -> Entry:
        """Replace the definition of a budget, and all that is counted of it.

        Raises:
            Stale: It is not what is known of it any more.
        """
        with self.transaction() as connection:
            (total,) = self._totals(connection, [name])
            rows = connection.execute(select(schema.block).where(schema.block.c.budget == name)).all()
            blocks = {row.block: row.used for row in rows}
            if (total.version, total.whole, blocks) != (known.version, known.whole, known.blocks):
                raise Stale
            changed = {"version": total.version + 1, "body": made.keeper.to_json()}
            changed |= {"whole": made.whole, "peak": made.peak}
            connection.execute(update(schema.budget).where(schema.budget.c.name == name), changed)
            for block, used in made.blocks.items():
                self._set_block(connection, name, block, used)
            return self._append(connection, "replace", None, None, body)

    def declare(self, body: str, known: int) -> Entry:
        """Write terms down.

        Raises:
            Stale: The last entry of terms is not the one that is known: its place, or 0.
        """
        with self.transaction() as connection:
            if (connection.execute(LAST_DECLARED).scalar() or 0) != known:
                raise Stale
            return self._append(connection, "declare", None, None, body)

    def note_outside(self, body: str, analyst: str | None) -> Entry:
        """Write down what left outside every promise; nothing is charged."""
        with self.transaction() as connection:
            return self._append(connection, "outside", None, analyst, body)

    def refund(self, operation: str, body: str, charges: Sequence[Charge]) -> Entry:
        """Give back what an operation was charged that never started.

        Raises:
            Unfit: It did start, or is not there.
            Stale: A budget was raised after the charges were worked out.
        """
        with self.transaction() as connection:
            entries = self._operation(connection, operation)
            if [found.kind for found in entries] != ["reserve"]:
                raise Unfit
            names = [charge.name for charge in charges]
            versions = {total.name: total.version for total in self._totals(connection, names)}
            if versions != {charge.name: charge.version for charge in charges}:
                raise Stale
            for charge in charges:
                self._give_back(connection, charge)
            return self._append(connection, "refund", operation, entries[0].analyst, body)

    def migrate(self) -> None:
        """Bring older tables to this form, step by step, in one transaction."""
        with self.transaction() as connection:
            version = connection.execute(select(schema.book.c.schema_version)).scalar_one()
            if version >= schema.SCHEMA_VERSION:
                return  # another process was faster
            if version not in migration.MIGRATIONS:
                raise damaged(self.place, f"its form is {version}, and there never was one")
            record = {"from": version, "to": schema.SCHEMA_VERSION}
            for step in range(version, schema.SCHEMA_VERSION):
                record |= migration.MIGRATIONS[step](connection) or {}
            connection.execute(update(schema.book), {"schema_version": schema.SCHEMA_VERSION})
            self._install(connection)
            self._append(connection, "migrate", None, None, sealed(record))

    def saw(self, head: Head, before: int = 0) -> None:
        """Remember the last entry that is known; a book that ends before what was known `before` is an older one."""
        if head.seq < before:
            raise older(self.place)
        self._latest = max(self._latest, head)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield the entries after a place, in order; those that come while it reads are among them."""
        while True:
            with self.connection() as connection:
                rows = connection.execute(PAGE, {"after": after}).all()
            yield from (_entry(row) for row in rows)
            if len(rows) < PAGE_SIZE:
                return
            after = rows[-1].seq

    def heads(self, places: Sequence[int]) -> set[Head]:
        """Return the entries at these places, as far as there are any."""
        near = [place for place in places if place < FARTHEST]  # others no table has
        asked = select(schema.entry.c.seq, schema.entry.c.hash).where(schema.entry.c.seq.in_(near))
        with self.connection() as connection:
            return {Head(*row) for row in connection.execute(asked)}

    def reserved(self, analyst: str, digest: str, last: int) -> str | None:
        """Return the operation that an analyst reserved for a request of this digest, latest among the last entries."""
        with self.connection() as connection:
            return connection.execute(RESERVED, {"asked": analyst, "digest": digest, "last": last}).scalar()

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The whole book as it is at one moment, whoever writes meanwhile."""
        with self.connection() as connection:
            snapshot = Snapshot(connection)
            try:
                connection.exec_driver_sql(self.begin_reading)
                yield snapshot
            finally:
                snapshot.close()
                self._roll_back(connection)

    @abstractmethod
    def copy_to(self, path: Path) -> None:
        """Write all of the book, as it is at one moment, into an empty file."""

    def restore_from(self, path: Path) -> None:
        """Make the book that a copy is of, where there is none and it is not made of one file."""
        raise NotImplementedError

    @abstractmethod
    def check_storage(self) -> None:
        """Look for damage that reading entries and totals does not meet, as in an index; raises `LedgerDamaged`."""

    def all_totals(self) -> list[Total]:
        """Return all budgets, in order."""
        with self.snapshot() as snapshot:
            return snapshot.totals()

    def allow(self, analyst: str) -> None:
        """Let an analyst ask and do nothing else; `NotPermitted` where the store cannot tell one from another."""
        raise NotPermitted(
            f"the ledger at {self.place} cannot keep analysts and owners apart.",
            why="who can open the file can change what was spent.",
            do="keep the book in PostgreSQL, or let analysts ask through a program of the owner's.",
        )

    def close(self) -> None:
        """Give connections back."""
        self._connections.close()

    def _with_driver(self, use: Callable[[Any], T]) -> T:
        """Let a function use a connection of the driver's; what that raises becomes ours."""
        self._stay_home()
        with self._turn:
            try:
                return self._connections.lend(use)
            except Unreached as error:
                explained = self._unreachable(error.reason)
            except (self.engine.dialect.loaded_dbapi.Error, SQLAlchemyError) as error:
                explained = self._told(error)
        raise explained  # out here: it has no context, which would hold what the driver said

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection of this process, in which every statement stands alone."""
        self._stay_home()
        inside = threading.Lock()
        with inside:
            self._connections.gate.admit(inside)
            with self._turn, self._speaking_sitr(), self.engine.connect() as connection:
                yield connection

    @contextmanager
    def transaction(self, *, locked: bool = True) -> Iterator[Connection]:
        """A connection in a transaction that holds the lock of the book: all is written, or nothing."""
        with self.connection() as connection:
            try:
                connection.exec_driver_sql(self.begin)  # in here: Ctrl-C may come while it waits for the lock
                if locked:
                    self._lock(connection)
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise

    def _stay_home(self) -> None:
        """Use nothing that a parent process has open."""
        if self._connections.home != os.getpid():
            raise self._abroad()

    def _abroad(self) -> LedgerUnavailable:
        """Return why a forked process may not use what it was passed."""
        return LedgerUnavailable(
            "this process was forked while its parent used the ledger, or had its file open.",
            why="locks do not pass to a fork, and what it charges could be lost.",
            do="fork when nothing uses the ledger, or start new processes: multiprocessing's 'spawn'.",
        )

    def _roll_back(self, connection: Connection) -> None:
        try:
            if not connection.invalidated:
                connection.exec_driver_sql("ROLLBACK")
        except SQLAlchemyError:  # the store has rolled back by itself, or is gone: what was raised first is told
            connection.invalidate()

    @abstractmethod
    def _lock(self, connection: Connection) -> None:
        """Take the lock of the book, where `begin` has not."""

    @abstractmethod
    def _install(self, connection: Connection) -> None:
        """Make what stands beside the tables: triggers, functions."""

    @contextmanager
    def _speaking_sitr(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, self.engine.dialect.loaded_dbapi.Error) as error:
            raise self._told(error) from None
        except SQLAlchemyError as error:
            raise LedgerUnavailable(f"the ledger at {self.place} cannot be used ({type(error).__name__}).") from None

    def _told(self, error: BaseException) -> Exception:
        driver = getattr(error, "orig", None) or error
        if isinstance(error, DBAPIError) and error.statement is None:  # no statement was made yet
            return self._unreachable(driver)
        return self._explained(driver)

    def _unreachable(self, error: BaseException) -> Exception:
        """Return why no connection could be made, in our words."""
        return self._explained(error)

    @abstractmethod
    def _explained(self, error: BaseException) -> Exception:
        """Return a driver's error in our words."""

    def _totals(self, connection: Connection, names: Sequence[str]) -> list[Total]:
        return [Total(*row) for row in connection.execute(TOTALS, {"names": list(names)})]

    def _operation(self, connection: Connection, operation: str) -> list[Entry]:
        return [_entry(row) for row in connection.execute(OPERATION, {"asked": operation})]

    def _set_block(self, connection: Connection, name: str, block: str, used: Vector) -> None:
        where = (schema.block.c.budget == name, schema.block.c.block == block)
        connection.execute(delete(schema.block).where(*where))
        connection.execute(insert(schema.block), {"budget": name, "block": block, "used": used})

    def _give_back(self, connection: Connection, charge: Charge) -> None:
        (total,) = self._totals(connection, [charge.name])
        made = update(schema.budget).where(schema.budget.c.name == charge.name)
        if not charge.blocks:
            connection.execute(made, {"whole": less(total.whole, charge.units)})
            return
        for name in charge.blocks:
            used = connection.execute(BLOCK, {"asked": charge.name, "part": name}).scalar_one()
            self._set_block(connection, charge.name, name, less(used, charge.units))
        of_blocks = select(schema.block.c.used).where(schema.block.c.budget == charge.name)
        nothing = (0,) * len(charge.units)
        connection.execute(made, {"peak": peak(nothing, connection.execute(of_blocks).scalars())})


TOTALS = select(schema.budget).where(schema.budget.c.name.in_(bindparam("names"))).order_by(schema.budget.c.name)
PAGE = select(schema.entry).where(schema.entry.c.seq > bindparam("after")).order_by(schema.entry.c.seq).limit(PAGE_SIZE)
OPERATION = select(schema.entry).where(schema.entry.c.operation == bindparam("asked")).order_by(schema.entry.c.seq)
_recent = select(func.max(schema.entry.c.seq)).scalar_subquery() - bindparam("last")
RESERVED = (
    select(schema.entry.c.operation)
    .where(schema.entry.c.seq > _recent, schema.entry.c.kind == "reserve", schema.entry.c.analyst == bindparam("asked"))
    .where(schema.entry.c.body.contains(bindparam("digest")))
    .order_by(schema.entry.c.seq.desc())
    .limit(1)
)
BLOCK = select(schema.block.c.used).where(
    schema.block.c.budget == bindparam("asked"), schema.block.c.block == bindparam("part")
)

# By the index of operations: what belongs to none is little, in the longest book.
OF_TERMS = schema.entry.c.operation.is_(None) & (schema.entry.c.kind == literal_column("'declare'"))
LAST_DECLARED = select(func.max(schema.entry.c.seq)).where(OF_TERMS)


def _entry(row: Row[Any]) -> Entry:
    return Entry(**row._mapping)


def check_version(version: int, place: str) -> None:
    """Refuse a book of a newer form.

    Raises:
        WrongLedger: A later version of sitr made it.
    """
    if version > schema.SCHEMA_VERSION:
        raise WrongLedger(
            f"the ledger at {place} has form {version}; this version of sitr knows up to {schema.SCHEMA_VERSION}.",
            why="to write into what is not understood could lose a charge.",
            do="upgrade sitr.",
        )


def busy(place: str) -> LedgerUnavailable:
    """The lock was not had in time."""
    return LedgerUnavailable(
        f"another process holds the ledger at {place}; nothing was changed.",
        why="charges are made one after the other, so that two cannot take the last of a budget.",
        do="try again; if it stays, look for a process that is stopped while it writes.",
    )


def damaged(place: str, what: str) -> LedgerDamaged:
    """What is stored cannot be read as a book."""
    return LedgerDamaged(
        f"the ledger at {place} is damaged: {what}.",
        why="a charge may be missing from it.",
        do="keep the file, restore the newest backup beside it, and compare both with the anchor: sitr ledger verify.",
    )


def older(place: str) -> LedgerDamaged:
    """The book ends before what was read of it."""
    return LedgerDamaged(
        f"the ledger at {place} was put back to an older copy, or exchanged, while it was open; nothing was granted.",
        why="what was charged since that copy was made would be forgotten.",
        do="find the newest book, and verify it against its anchor.",
    )


def not_permitted(place: str) -> NotPermitted:
    """The database refused for want of a right."""
    return NotPermitted(
        f"the ledger at {place} does not let this user do that.",
        do="ask its owner; analysts may reserve, start, commit, read their own answers, and see spent and remaining.",
    )
