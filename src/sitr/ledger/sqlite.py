"""A book in one SQLite file, or in memory. Whoever can open the file can change it: there is no separation here."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as Driver
from sqlite3 import Cursor
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, func, insert, select, update
from sqlalchemy import bindparam as given
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.pool import NullPool, StaticPool
from sqlalchemy.sql import ClauseElement

from ..errors import LedgerUnavailable, NotPermitted
from . import schema
from .disk import owner_only, sync_folder
from .entry import BEFORE_ALL, Entry, Head, chained, now, start_body
from .forks import PASSED_ON
from .schema import vector, vector_text
from .store import OF_TERMS, Identity, Kept, Stale, Store, Unfit, busy, check_version, damaged, older
from .totals import Charge, Total, Vector, plus

T = TypeVar("T")
LOGS = ("-wal", "-shm", "-journal")
FOR_EVER = ("entry", "book", "answer")
MOUNTS = Path("/proc/self/mounts")
SHARED_DISKS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "9p", "virtiofs", "vboxsf")
APPEND_ONLY = """
CREATE TRIGGER {table}_no_{what} BEFORE {what} ON {table} BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END
"""
_budget = schema.budget.c

DIALECT = dialect(paramstyle="qmark")


def _prepared(statement: ClauseElement) -> str:
    """Compile a statement once, for the driver: in each step of the protocol that would take longer than to run it.

    Its values are given in the order in which they stand in it, which the driver binds faster than by name.
    """
    return str(statement.compile(dialect=DIALECT))


# The one statement that grants: it changes a row only if that is still what was judged.
GRANT = _prepared(
    update(schema.budget)
    .where(
        _budget.name == given("asked"),
        _budget.version == given("known"),
        _budget.whole == given("old_whole"),
        _budget.peak == given("old_peak"),
    )
    .values(whole=given("new_whole"), peak=given("new_peak"))
)
_named = _budget.name.in_(select(func.json_each(given("names")).table_valued("value").c.value))
TOTALS = _prepared(select(schema.budget).where(_named).order_by(_budget.name))
TOTAL = _prepared(select(schema.budget).where(_budget.name == given("asked")))
_last = select(func.max(schema.entry.c.seq)).scalar_subquery()
_id, _form = (select(column).scalar_subquery() for column in (schema.book.c.id, schema.book.c.schema_version))
HEAD = _prepared(select(schema.entry.c.seq, schema.entry.c.hash, _id, _form).where(schema.entry.c.seq == _last))
HASH = _prepared(select(schema.entry.c.hash).where(schema.entry.c.seq == given("place")))
_asked = schema.entry.c.operation == given("asked")
OPERATION = _prepared(select(schema.entry).where(_asked).order_by(schema.entry.c.seq))
STATE = _prepared(
    select(schema.entry.c.kind, schema.entry.c.analyst, schema.entry.c.body).where(_asked).order_by(schema.entry.c.seq)
)
BLOCK = _prepared(
    select(schema.block.c.used).where(schema.block.c.budget == given("asked"), schema.block.c.block == given("part"))
)
SET_BLOCK = _prepared(insert(schema.block).prefix_with("OR REPLACE"))
DECLARED = _prepared(select(schema.entry).where(OF_TERMS).order_by(schema.entry.c.seq))
APPEND = _prepared(insert(schema.entry))
KEEP = _prepared(insert(schema.answer))
KEPT = _prepared(
    select(schema.answer.c.media, schema.answer.c.content, schema.answer.c.path).where(
        schema.answer.c.operation == given("asked")
    )
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
        self._file: tuple[int, int] | None = None
        engine = create_engine(
            URL.create("sqlite", database=str(path) if path else None),
            isolation_level="AUTOCOMMIT",  # transactions begin and end by our own words
            connect_args={"timeout": wait, "check_same_thread": False},
            poolclass=NullPool if path else StaticPool,
            pool_reset_on_return=None,  # nothing is left open
        )
        event.listen(engine, "connect", _configure)
        event.listen(engine, "handle_error", self._interrupted)
        super().__init__(engine, str(path) if path else "memory", alone=path is None)
        if path is not None:
            _check_disk(path)
        else:
            self._turn = threading.RLock()  # one connection for all threads

    def reserve(
        self, operation: str, analyst: str, body: str, charges: Sequence[Charge], names: Sequence[str]
    ) -> Entry:
        def step(cursor: Cursor) -> Entry:
            rows = [row for name in names for row in cursor.execute(TOTAL, (name,))]
            if [row[:2] for row in rows] != [charge[:2] for charge in charges]:
                raise Stale
            for row, charge in zip(rows, charges, strict=True):
                _grant(cursor, row, charge)
            return self._add(cursor, "reserve", operation, analyst, body)

        return self._step(step)

    def start(self, operation: str, analyst: str, body: str) -> Entry:
        def step(cursor: Cursor) -> Entry:
            state = cursor.execute(STATE, (operation,)).fetchall()
            if [step[:2] for step in state] != [("reserve", analyst)]:
                raise Unfit
            return self._add(cursor, "start", operation, analyst, body)

        return self._step(step)

    def commit(self, operation: str, analyst: str, holder: str, body: str, kept: Kept) -> Entry:
        started = start_body(holder)

        def step(cursor: Cursor) -> Entry:
            state = cursor.execute(STATE, (operation,)).fetchall()
            if [step[:2] for step in state] != [("reserve", analyst), ("start", analyst)] or state[1][2] != started:
                raise Unfit
            cursor.execute(KEEP, (operation, *kept))
            return self._add(cursor, "commit", operation, analyst, body)

        return self._step(step)

    def identity(self) -> Identity | None:
        if self.path is not None and not _there(self.path):
            return None
        known = self._latest
        with self.connection() as connection:
            if not connection.dialect.has_table(connection, "book"):
                if self.path is None:
                    return None
                empty = not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
                lost = "it is empty: what was charged in it is lost"
                raise damaged(self.place, lost if empty else "it is an SQLite file, but no ledger")
            rows = connection.execute(select(schema.book)).all()
            head = connection.exec_driver_sql(HEAD).first()
            if len(rows) != 1 or head is None:
                raise damaged(self.place, "it has no first entry, or says twice which book it is")
            self._id = self._id or rows[0].id
            self._check_goes_on(connection.connection.driver_connection, known, Head(head.seq, head.hash))
            self.saw(Head(head.seq, head.hash), known.seq)
            return Identity(rows[0].id, rows[0].schema_version, Head(*head[:2]))

    def totals(self, names: Sequence[str]) -> list[Total]:
        asked = (json.dumps(names),)
        return [_total(row) for row in self._with_driver(lambda driver: driver.execute(TOTALS, asked).fetchall())]

    def operation(self, operation: str) -> list[Entry]:
        rows = self._with_driver(lambda driver: driver.execute(OPERATION, (operation,)).fetchall())
        return [Entry(*row) for row in rows]

    def kept(self, operation: str, analyst: str) -> Kept | None:
        row = self._with_driver(lambda driver: driver.execute(KEPT, (operation,)).fetchone())
        return Kept(*row) if row else None

    def declared(self, declaration: str | None, datasets: Sequence[str]) -> list[Entry]:
        entries = [Entry(*row) for row in self._with_driver(lambda driver: driver.execute(DECLARED).fetchall())]
        if declaration is None:
            return entries
        about = [(entry, entry.record) for entry in entries]
        return [entry for entry, of in about if of.get("declaration") == declaration or of.get("name") in datasets]

    def has_terms(self) -> bool:
        return bool(self.declared(None, ()))

    def make(self, id: str, body: str) -> None:
        if self.path is None:
            self._make_tables(id, body)
            return
        # In this order: a book that another process makes just now has its name before it has a log.
        if any(self.path.with_name(self.path.name + end).exists() for end in LOGS) and not self.path.exists():
            raise damaged(self.place, "its log is there, and the file itself is gone")
        # Only a whole book gets the name: nothing that is cut short, by a crash or by hand, passes for a new one.
        beside = self.path.with_name(f".{self.path.name}.{id}")
        try:
            open(beside, "xb", opener=owner_only).close()
            made = SQLite(beside, 1.0)
            with made.connection() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            made._make_tables(id, body)
            made.close()
            with contextlib.suppress(FileExistsError):  # another process was faster: its book is the book
                os.link(beside, self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise LedgerUnavailable(f"the ledger at {self.place} cannot be made: {error.strerror}.") from None
        finally:
            beside.unlink(missing_ok=True)

    def _make_tables(self, id: str, body: str) -> None:
        with self.transaction() as connection:
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.book), {"id": id, "schema_version": schema.SCHEMA_VERSION})
            self._install(connection)
            self._id = id
            self._append(connection, "open", None, None, body)

    def copy_to(self, path: Path) -> None:
        """By SQLite's own backup, which sees the newest commits while others write."""
        with contextlib.closing(sqlite3.connect(path)) as target:
            self._with_driver(lambda driver: driver.backup(target))

    def check_storage(self) -> None:
        with self.connection() as connection:
            if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
                raise damaged(self.place, "a table and its index disagree, or a page is broken")

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
        driver = connection.connection.driver_connection
        assert driver is not None
        return self._add(driver.cursor(), kind, operation, analyst, body)

    def _add(self, cursor: Cursor, kind: str, operation: str | None, analyst: str | None, body: str) -> Entry:
        seq, previous, id, form = cursor.execute(HEAD).fetchone() or (0, BEFORE_ALL, self._id, schema.SCHEMA_VERSION)
        if id != self._id:
            raise older(self.place)
        self._check_goes_on(cursor, self._latest, Head(seq, previous))
        check_version(form, self.place)
        entry = chained(self._id, previous, seq + 1, now(), kind, operation, analyst, body)
        try:
            cursor.execute(APPEND, (entry.seq, entry.at, kind, operation, analyst, body, entry.hash))
        except sqlite3.IntegrityError:
            raise Unfit from None
        return entry

    def _check_goes_on(self, cursor: Any, known: Head, head: Head) -> None:
        """Refuse a book that ends before what is known of it, or has something else there: it went on from a copy."""
        if head.seq < known.seq:
            raise older(self.place)
        if known.seq and known != (
            head if head.seq == known.seq else (known.seq, cursor.execute(HASH, (known.seq,)).fetchone()[0])
        ):
            raise older(self.place)

    def _step(self, step: Callable[[Cursor], Entry]) -> Entry:
        """Make a step of the protocol: all of it is on the disk when this returns, or nothing is."""

        def durable(driver: Driver) -> Entry:
            cursor = driver.cursor()
            try:
                cursor.execute(self.begin)  # in here: Ctrl-C may come while it waits for the lock
                entry = step(cursor)
                cursor.execute("COMMIT")
                return entry
            except BaseException:
                cursor.close()  # the traceback holds it, and while it reads it would bar the connection from writing
                _roll_back(driver)
                raise

        entry = super()._with_driver(durable)
        self._check_file()  # afterwards: what was written to a file that was replaced is lost
        self.saw(entry.head)
        return entry

    def _with_driver(self, use: Callable[[Any], T]) -> T:
        self._check_file()
        return super()._with_driver(use)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        self._check_file()
        with super().connection() as connection:
            yield connection

    def _check_file(self) -> None:
        """Refuse a file that is not the one that was opened, or that a parent process had open when it forked this one.

        Nor may it have a second name: each name has a log of its own.
        """
        if self.path is None:
            return
        try:
            about = os.stat(self.place)
        except OSError:
            raise older(self.place) from None
        self._file = self._file or (about.st_dev, about.st_ino)
        if self._file != (about.st_dev, about.st_ino):
            raise older(self.place)
        if self._file in PASSED_ON:
            raise self._abroad()
        if about.st_nlink > 1 and not _made_just_now(self.path):
            raise LedgerUnavailable(
                f"the ledger at {self.place} has a second name (a hard link).",
                why="SQLite keeps a log for each name, and what is charged under one is lost under the other.",
                do="remove one of the two names while nobody uses the ledger.",
            )

    def _roll_back(self, connection: Connection) -> None:
        if not connection.invalidated:
            _roll_back(connection.connection.driver_connection)
            if self.path is not None:  # a traceback may hold a cursor that still reads, and bars it from writing
                connection.invalidate()

    def _interrupted(self, context: ExceptionContext) -> None:
        """Roll back before SQLAlchemy drops the connection: a cursor in the traceback would keep it, and its lock."""
        if not isinstance(context.original_exception, Exception) and context.connection is not None:
            _roll_back(context.connection.connection.driver_connection)
            context.is_disconnect = self.path is not None  # a book in memory would go with its connection

    def _abroad(self) -> LedgerUnavailable:
        if self.path is not None:
            return super()._abroad()
        return LedgerUnavailable(
            "a ledger in memory stays in the process that made it.",
            why="what a forked process charged would be lost.",
            do="use a file: Ledger.open('sqlite:///book.db').",
        )

    def _explained(self, error: BaseException) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes have the kind in their last byte
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return busy(self.place)
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return LedgerUnavailable(
                f"the ledger at {self.place} cannot be written; nothing was changed.",
                why="every release is charged before a row is read.",
                do="give this user the right to write the file and its folder.",
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return LedgerUnavailable(
                f"the disk under the ledger at {self.place} is full or fails; nothing was granted.",
                do="make room, then ask again with the same operation id.",
            )
        if code == sqlite3.SQLITE_CONSTRAINT and "only added to" in str(error):
            return NotPermitted("entries of a ledger are only added to.")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR):
            return damaged(self.place, "SQLite cannot read it, or finds it other than it was made")
        return LedgerUnavailable(
            f"SQLite failed at {self.place} ({type(error).__name__}, {code}); nothing was granted."
        )


def _total(row: tuple[str, int, str, str, str]) -> Total:
    name, version, body, whole, peak = row
    return Total(name, version, body, vector(whole), vector(peak))


def _grant(cursor: Cursor, row: tuple[str, int, str, str, str], charge: Charge) -> None:
    """Charge one budget, and its blocks where they count apart."""
    before = [_block(cursor, charge, name) for name in charge.blocks]
    made, (name, version, _, whole, peak) = _total(row).after(charge, before), row
    new = vector_text(made.whole), vector_text(made.peak)
    if cursor.execute(GRANT, (*new, name, version, whole, peak)).rowcount != 1:
        raise Stale
    for block, used in zip(charge.blocks, before, strict=True):
        cursor.execute(SET_BLOCK, (name, block, vector_text(plus(used, charge.units))))


def _block(cursor: Cursor, charge: Charge, block: str) -> Vector:
    row = cursor.execute(BLOCK, (charge.name, block)).fetchone()
    return vector(row[0]) if row else (0,) * len(charge.units)


def _configure(connection: Any, _: Any) -> None:
    """Every commit is on the disk before it is answered; FULL, since NORMAL may lose the last ones with the power."""
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")


def _roll_back(driver: Driver | Any) -> None:
    if driver.in_transaction:  # SQLite has rolled back by itself where the disk failed
        driver.execute("ROLLBACK")


def _check_disk(path: Path) -> None:
    """Refuse a file that other machines may write too: write-ahead mode works between processes of one machine only."""
    if not MOUNTS.exists():  # not Linux: nothing is known of the disk
        return
    rows = [line.split() for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    if any(row[1] == str(path) for row in rows):
        raise LedgerUnavailable(
            f"the ledger at {path} is mounted as a file of its own.",
            why="its log would be beside it here, and elsewhere for others: each could grant the last of a budget.",
            do="mount the folder that it is in.",
        )
    over = [row for row in rows if path.is_relative_to(row[1].replace("\\040", " "))]
    kind = (
        max(enumerate(over), key=lambda at: (len(at[1][1]), at[0]))[1][2] if over else ""
    )  # the last one mounted there
    if kind in SHARED_DISKS or kind.startswith("fuse."):
        raise LedgerUnavailable(
            f"the ledger at {path} is on a network file system ({kind}).",
            why="two machines could each grant the last of a budget.",
            do="keep the file on a local disk, or the book in PostgreSQL.",
        )


def _made_just_now(path: Path) -> bool:
    """Whether the second name of a file is the one under which it was made, which goes."""
    for beside in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 32}"):
        with contextlib.suppress(FileNotFoundError):
            if beside.samefile(path):
                beside.unlink(missing_ok=True)
    return path.stat().st_nlink == 1


def _there(path: Path) -> bool:
    """Whether there is a file; one that is not its owner's alone, or out of reach, is refused."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LedgerUnavailable(f"the ledger at {path} cannot be reached: {error.strerror}.") from None
    if mode & 0o077:
        raise NotPermitted(
            f"the ledger at {path} may be used by others (mode {mode:o}).",
            why="who can write the file can change what was spent.",
            do=f"chmod 600 {path}",
        )
    return True
