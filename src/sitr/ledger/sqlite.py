"""A book in one SQLite file, or in memory. Whoever can open the file can change it: there is no separation here."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, case, create_engine, event, insert, select, update
from sqlalchemy import bindparam as given
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import StaticPool

from ..accounting.filters import MOST
from ..errors import LedgerUnavailable, NotPermitted
from . import schema
from .entry import BEFORE_ALL, Entry, Head, entry_hash, now
from .store import Charge, Exceeded, Identity, Kept, Stale, Store, Total, Unfit, busy, damaged

FOR_EVER = ("entry", "book", "answer")
APPEND_ONLY = """
CREATE TRIGGER {table}_no_{what} BEFORE {what} ON {table} BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END
"""
_budget = schema.budget.c
_peak_cost = case((_budget.peak_cost > given("peak_c"), _budget.peak_cost), else_=given("peak_c"))
_peak_delta = case((_budget.peak_delta > given("peak_d"), _budget.peak_delta), else_=given("peak_d"))
# The one statement that grants: it changes a row only if the promise still holds after it.
GRANT = (
    update(schema.budget)
    .where(
        _budget.name == given("asked"),
        _budget.version == given("known"),
        _budget.cost + given("more_c") + _peak_cost <= MOST,
        _budget.delta + given("more_d") + _peak_delta <= MOST,
    )
    .values(
        cost=_budget.cost + given("more_c"),
        delta=_budget.delta + given("more_d"),
        peak_cost=_peak_cost,
        peak_delta=_peak_delta,
    )
)
HEAD = select(schema.entry.c.seq, schema.entry.c.hash).order_by(schema.entry.c.seq.desc()).limit(1)
APPEND = insert(schema.entry)
KEEP = insert(schema.answer)
KEPT = select(schema.answer.c.media, schema.answer.c.content, schema.answer.c.path).where(
    schema.answer.c.operation == given("asked")
)


class SQLite(Store):
    """A file with the rights of its owner only, in write-ahead mode, synced at every commit.

    Args:
        path: The file; None is a book in memory, gone with the process.
        wait: How many seconds to wait for another process.
    """

    begin = "BEGIN IMMEDIATE"  # takes the lock before anything is read

    def __init__(self, path: Path | None, wait: float) -> None:
        self.path = path
        self._id = ""
        options: dict[str, Any] = {} if path else {"poolclass": StaticPool}
        engine = create_engine(
            URL.create("sqlite", database=str(path) if path else None),
            isolation_level="AUTOCOMMIT",  # transactions begin and end by our own words
            connect_args={"timeout": wait, "check_same_thread": False},
            **options,
        )
        event.listen(engine, "connect", _configure)
        super().__init__(engine, str(path) if path else "memory")
        if path is None:
            self._turn = threading.RLock()  # one connection for all threads

    def reserve(self, operation: str, analyst: str, body: str, charges: Sequence[Charge]) -> Entry:
        with self.transaction() as connection:
            for charge in charges:
                self._grant(connection, charge)
            return self._append(connection, "reserve", operation, analyst, body)

    def start(self, operation: str, analyst: str, body: str) -> Entry:
        with self.transaction() as connection:
            entries = self._operation(connection, operation)
            if [(found.kind, found.analyst) for found in entries] != [("reserve", analyst)]:
                raise Unfit(operation)
            return self._append(connection, "start", operation, analyst, body)

    def commit(self, operation: str, analyst: str, holder: str, body: str, kept: Kept) -> Entry:
        with self.transaction() as connection:
            entries = self._operation(connection, operation)
            if [(found.kind, found.analyst) for found in entries] != [("reserve", analyst), ("start", analyst)]:
                raise Unfit(operation)
            if entries[1].record["holder"] != holder:
                raise Unfit(operation)
            connection.execute(KEEP, {"operation": operation, **kept._asdict()})
            return self._append(connection, "commit", operation, analyst, body)

    def identity(self) -> Identity | None:
        if self.path is not None:
            if not self.path.exists() or self.path.stat().st_size == 0:
                return None
            _check_mode(self.path)
        with self.connection() as connection:
            if not connection.dialect.has_table(connection, "book"):
                if self.path is None:
                    return None
                raise damaged(self.place, "it is an SQLite file, but no ledger")
            row = connection.execute(select(schema.book)).first()
            head = connection.execute(HEAD).first() if row else None
            if row is None or head is None:
                raise damaged(self.place, "it has no first entry")
            self._id = row.id
            return Identity(row.id, row.schema_version, Head(*head))

    def totals(self, names: Sequence[str]) -> list[Total]:
        with self.connection() as connection:
            return self._totals(connection, names)

    def operation(self, operation: str) -> list[Entry]:
        with self.connection() as connection:
            return self._operation(connection, operation)

    def kept(self, operation: str, analyst: str) -> Kept | None:
        with self.connection() as connection:
            row = connection.execute(KEPT, {"asked": operation}).first()
            return Kept(*row) if row else None

    def make(self, id: str, body: str) -> None:
        if self.path is not None:
            _make_file(self.path, self.place)
            with self.connection() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        with self.transaction() as connection:
            if connection.dialect.has_table(connection, "book"):
                return  # another process was faster: its book is the book
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.book), {"id": id, "schema_version": schema.SCHEMA_VERSION})
            self._install(connection)
            self._id = id
            self._append(connection, "open", None, None, body)

    def _lock(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE has it."""

    def _install(self, connection: Connection) -> None:
        for table in FOR_EVER:
            for what in ("update", "delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_no_{what}")
                if (table, what) != ("book", "update"):  # its form may change
                    connection.exec_driver_sql(APPEND_ONLY.format(table=table, what=what))

    def _append(
        self, connection: Connection, kind: str, operation: str | None, analyst: str | None, body: str
    ) -> Entry:
        last = connection.execute(HEAD).first()
        seq, previous = (last.seq, last.hash) if last else (0, BEFORE_ALL)
        entry = Entry(seq + 1, now(), kind, operation, analyst, body, "")
        row = {**vars(entry), "hash": entry_hash(self._id, previous, entry)}
        try:
            connection.execute(APPEND, row)
        except IntegrityError:
            raise Unfit(operation) from None
        return Entry(**row)

    def _forked(self) -> None:
        if self.path is None:
            raise LedgerUnavailable(
                "a ledger in memory stays in the process that made it.",
                why="what a forked process charged would be lost.",
                do="use a file: Ledger.open('sqlite:///book.db').",
            )
        super()._forked()

    def _grant(self, connection: Connection, charge: Charge) -> None:
        before = [self._block(connection, charge.name, name) for name in charge.blocks]
        peak_cost, peak_delta = max((c for c, _ in before), default=0), max((d for _, d in before), default=0)
        if charge.blocks:
            values = {"more_c": 0, "more_d": 0, "peak_c": peak_cost + charge.cost, "peak_d": peak_delta + charge.delta}
        else:
            values = {"more_c": charge.cost, "more_d": charge.delta, "peak_c": 0, "peak_d": 0}
        granted = connection.execute(GRANT, {"asked": charge.name, "known": charge.version, **values})
        if granted.rowcount != 1:
            found = self._totals(connection, [charge.name])
            if [total.version for total in found] != [charge.version]:
                raise Stale(charge.name)
            whole = found[0]
            touched = (whole.cost + peak_cost, whole.delta + peak_delta)
            raise Exceeded(charge.name, touched if charge.blocks else whole.used)
        for name, (cost, delta) in zip(charge.blocks, before, strict=True):
            self._set_block(connection, charge.name, name, cost + charge.cost, delta + charge.delta)

    def _translated(self, error: DBAPIError) -> Exception:
        text = str(error.orig)
        if "locked" in text:
            return busy(self.place)
        if "readonly" in text or "unable to open" in text:
            return LedgerUnavailable(
                f"the ledger at {self.place} cannot be written; nothing was changed.",
                why="every release is charged before a row is read.",
                do="give this user the right to write the file and its folder.",
            )
        if "full" in text or "disk I/O" in text:
            return LedgerUnavailable(
                f"the disk under the ledger at {self.place} is full or fails; nothing was granted.",
                do="make room, then ask again with the same operation id.",
            )
        if isinstance(error, IntegrityError) and "only added to" in text:
            return NotPermitted("entries of a ledger are only added to.")
        return damaged(self.place, "SQLite cannot read it")


def _configure(connection: Any, _: Any) -> None:
    """Every commit is on the disk before it is answered; FULL, since NORMAL may lose the last ones with the power."""
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")


def _make_file(path: Path, place: str) -> None:
    """Make an empty file that only its owner may read, and make its name last."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise LedgerUnavailable(f"the ledger at {place} cannot be made: {error.strerror}.") from None


def _check_mode(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise NotPermitted(
            f"the ledger at {path} may be used by others (mode {mode:o}).",
            why="who can write the file can change what was spent.",
            do=f"chmod 600 {path}",
        )
