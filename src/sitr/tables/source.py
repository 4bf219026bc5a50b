"""An engine and the tables behind it: the only thing that sees rows."""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pyarrow

from .. import _validate
from ..errors import Cancelled, EngineFailed, InvalidDeclaration, NotAllowed
from .codes import Coded
from .crosstab import Crosstab, Integers
from .declaration import Column, Declaration, KeyPath, Table
from .dialect import Dialect, Value
from .draft import declared_type
from .emitter import PRIME, Emitter
from .files import Held
from .job import TICK, Job, by_ctrl_c
from .lines import Lines
from .origins import Seen, another_source, check_origins
from .relations import Relation, is_public
from .statement import Statement, check_library, stated
from .tally import Key, Tally, rows_of

KEPT = 8  # queries
log = logging.getLogger(__name__)


class Source(Dialect, ABC):
    """A connection to one engine, for one declaration.

    Attributes:
        declared: The declaration.
        engine: Its name.
        sources: What it calls a source, in words.
    """

    engine: str
    sources: str
    _connection: Value

    def __init__(self, declared: Declaration) -> None:
        check_library()
        self.declared = declared
        self._forked = False
        self._begin()
        self._by_row_id = any(table.row_id for table in declared.tables.values())
        self._tables: dict[str, Value] = {}
        # What each table was read from when it was first opened; files of theirs that are held until the end.
        self._seen: dict[str, Seen] = {}
        self._held = Held()
        # What was written lately, by the tally, which is held so that nothing else takes its identity.
        self._queries: dict[int, tuple[Tally | Coded, Value]] = {}
        self._statements: WeakKeyDictionary[Value, Statement] = WeakKeyDictionary()
        _sources.add(self)

    def _begin(self) -> None:
        self._turn = threading.RLock()  # held by the thread that works in the engine
        self._renewing = threading.Lock()

    @property
    def tested_as(self) -> tuple[str, ...]:
        """What the tests of an engine hold for."""
        return self.engine, self.version

    # What an engine has to give

    @abstractmethod
    def opened(self, table: Table) -> Value:
        """Return Ibis's table behind a declared one; it reads no row.

        What a source names is looked up in the engine's catalogue, or opened by a reader of ours: no text of the
        declaration is left for an engine to interpret.

        Raises:
            InvalidDeclaration: It is there, and cannot be read safely.
            LookupError: There is no such table.
        """

    @abstractmethod
    def seen(self, table: Table) -> Seen:
        """Look up what a declared table is read from now; it reads no row.

        Raises:
            InvalidDeclaration: It is there, and cannot be read safely.
            Exception: There is no such table, or it cannot be looked up.
        """

    @abstractmethod
    def found(self, table: Table) -> str | None:
        """Return under which name the rows of a declared table were found, behind links and views; None for a frame.

        Unlike an origin it lasts: rows may be added, and a file or a table may be written anew under its name.
        """

    def lines(self, table: Table) -> Lines | None:
        """Return the text file behind a declared table, if there is one that can be read from here."""
        return None

    def cells(self, table: Table) -> Value | None:
        """Return the cells of that file under the declared columns, as texts, before anything is made of them."""
        return None

    @property
    @abstractmethod
    def version(self) -> str:
        """Of the engine."""

    @abstractmethod
    def sample(self, name: str, frame: Any) -> Value:
        """Return a small table of our own, for this connection only, made from Arrow's: the engine is tested on it."""

    @property
    @abstractmethod
    def compiler(self) -> Any:
        """Of Ibis, for this engine."""

    @abstractmethod
    def fetch(self, statement: Statement) -> Any:
        """Run a statement and return its rows as an Arrow table."""

    def reduce(self, statement: Statement, crosstab: Crosstab) -> list[Integers]:
        """Run a statement and count its rows, a batch at a time."""
        return crosstab.counts(self.fetch(statement).to_batches())

    @abstractmethod
    def interrupt(self) -> None:
        """Stop what runs."""

    @abstractmethod
    def reseed(self, seed: int) -> None:
        """Seed the engine's generator anew, from 63 fresh bits."""

    @abstractmethod
    def renew(self) -> None:
        """Connect anew, in a forked process, and forget all that belongs to the old connection, which is not closed.

        Raises:
            NotAllowed: That cannot be done.
        """

    @abstractmethod
    def disconnect(self) -> None:
        """Give the connection back."""

    # What all of them do

    def table(self, table: Table) -> Value:
        """Return Ibis's table behind a declared one, which is opened once; it reads no row.

        Raises:
            InvalidDeclaration: It is there, and cannot be read safely.
            LookupError: There is no such table.
        """
        if table.name not in self._tables:
            if table.name not in self._seen:  # a forked process, which opens it again, believes what its parent saw
                self._seen[table.name] = self.seen(table)
            self._tables[table.name] = self.opened(table)
        return self._tables[table.name]

    def listed(self, values: tuple[Any, ...], kind: Any) -> Value:
        """As a small table of our own, which the same values always share."""
        name = f"sitr_list_{hashlib.sha256(repr((values, kind)).encode()).hexdigest()[:32]}"
        return self.sample(name, pyarrow.table({"known": pyarrow.array(values, kind)}))

    def close(self) -> None:
        """Give the connection back, if it is ours: to close that of a parent process would do harm."""
        self._tables.clear()
        self._seen.clear()
        self._held.close()
        if not self._forked:
            self.disconnect()

    def in_child(self) -> None:
        """Begin anew, in a forked process: threads that held a lock, or worked in the engine, are not here."""
        self._forked = True
        self._begin()

    def _connected(self) -> None:
        """Connect anew, where the connection is that of a parent process: two must not talk on one."""
        if not self._forked:
            return
        with self._renewing:
            if self._forked:
                _parents.append(self._connection)
                self._queries, self._tables = {}, {}
                self.renew()
                self._forked = False

    def check(self) -> None:
        """Hold the engine against what we need of one, and the declared columns against its own.

        Raises:
            EngineFailed: It computes otherwise than the engines that are known to be sound.
            InvalidDeclaration: A table or a column is missing, or of another type; or two tables read the same rows
                under different budgets or units.
        """
        from .conformance import require  # it needs this module

        require(self)
        for table in self.declared.tables.values():
            schema = self._schema(table)
            for column in table.columns.values():
                _check_column(table, column, schema)
        check_origins(self.declared.tables, self._seen)

    def statement(self, query: Value) -> Statement:
        """Return what a query is in the engine's words; one that is kept is written, and read again, once.

        Raises:
            EngineFailed: The text does not say what was meant.
        """
        if query not in self._statements:
            self._statements[query] = stated(query, self.compiler)
        return self._statements[query]

    def compiled(self, query: Value) -> str:
        """Return the text of a query, as it is sent."""
        return self.statement(query).text

    def asked(self, tally: Tally | Coded) -> Statement:
        """Return what a tally is answered by; nothing is run."""
        return self.statement(self._written(tally))

    def explain(self, tally: Tally) -> str:
        """Return the same as text in lines, for people."""
        return self.asked(tally).pretty

    def rehearse(self, tally: Tally | Coded) -> None:
        """Run a tally on empty tables, and read its text again: what cannot run fails now, before anything is charged.

        Raises:
            EngineFailed: It cannot run, or its text does not say what is meant.
            InvalidDeclaration: A table that it reads is not the one that was opened.
        """
        self._connected()
        self._check_sources(tally.relation)
        statement = self.statement(self._written(tally, _key(1) if self._by_row_id else None))
        self.guarded(lambda: self.fetch(statement.on_empty_tables))

    def _check_sources(self, relation: Relation) -> None:
        """Look up again what a relation reads: a name may have been given to another file, or to another table, since.

        Privacy: budgets and units were compared by what was read when the database was opened (0018).
        """
        with self._turn:
            for table in self._read_by(relation):
                before, now = self._seen[table.name], self._seen_now(table)
                if now is None or now.itself != before.itself:
                    raise another_source(table)
                if now.origins != before.origins:  # such as a partition that was attached
                    check_origins(self.declared.tables, {**self._seen, table.name: now})
                self._seen[table.name] = now

    def _read_by(self, relation: Relation) -> list[Table]:
        """The tables of a relation that are open already, and those through which they find their units."""
        tables = [self.declared.tables[name] for name in relation.tables()]
        names = {table.name for table in tables} | {
            table.unit.table for table in tables if isinstance(table.unit, KeyPath)
        }
        return [self.declared.tables[name] for name in names if name in self._seen]

    def _seen_now(self, table: Table) -> Seen | None:
        try:
            return self.seen(table)
        except Exception:  # gone, or no longer what it was: what is said of it may quote it
            return None

    def run(self, tally: Tally, *, unsafe_key: int | None = None) -> Any:
        """Answer a tally exactly, as an Arrow table with a row for each group that occurs.

        Args:
            tally: What is asked.
            unsafe_key: For tests: the key by which rows are chosen, where a table has a `row_id`.

        Raises:
            EngineFailed: The engine did not answer.
            Cancelled: The user stopped it.
        """
        key, seed = self._chosen_by(unsafe_key)
        return self.answered(lambda: self._written(tally, key), seed)

    def public_values(self, relation: Relation, keys: tuple[Key, ...], most: int) -> list[tuple[Any, ...]]:
        """Return what keys are in the rows of a public relation, each once and no more than so many, in any order.

        Raises:
            EngineFailed: The engine did not answer.
            InvalidDeclaration: A table that it reads is not the one that was opened.
            NotAllowed: It reads a private table.
        """
        if not is_public(relation, self.declared):
            raise NotAllowed("the rows of a private table are not listed.", do="ask for counts.")
        self._connected()
        self._check_sources(relation)
        return rows_of(self.answered(lambda: self._emitter(None).values(relation, keys, most)), len(keys))

    def count(self, coded: Coded, crosstab: Crosstab, *, unsafe_key: int | None = None) -> list[Integers]:
        """Count numbered rows exactly, in one pass over them, in several tables at once.

        Args:
            coded: Which rows.
            crosstab: What is counted of them.
            unsafe_key: For tests: the key by which rows are chosen, where a table has a `row_id`.

        Raises:
            EngineFailed: The engine did not answer.
            Cancelled: The user stopped it.
        """
        key, seed = self._chosen_by(unsafe_key)
        counts: list[Integers] = self.answered(
            lambda: self._written(coded, key), seed, lambda statement: self.reduce(statement, crosstab)
        )
        return counts

    def _chosen_by(self, unsafe_key: int | None) -> tuple[tuple[int, int, int] | None, int | None]:
        """A key of row ids, where there are such, and a seed of the engine's generator: fresh unless a test says."""
        key = _key(unsafe_key) if self._by_row_id else None
        return key, secrets.randbits(63) if unsafe_key is None else None

    def _written(self, tally: Tally | Coded, key: tuple[int, int, int] | None = None) -> Value:
        """The query of a tally; without a key it is the same each time, and written once.

        One at a time: lists of values become tables of the engine, in which another thread may work.
        """
        self._connected()
        with self._turn:
            if key is not None:
                return self._query(tally, key)
            kept = self._queries.get(id(tally))
            if kept is None:
                kept = tally, self._query(tally, None)
                if len(self._queries) >= KEPT:
                    self._queries.clear()
                self._queries[id(tally)] = kept
            return kept[1]

    def _query(self, tally: Tally | Coded, key: tuple[int, int, int] | None) -> Value:
        emitter = self._emitter(key)
        return emitter.coded(tally) if isinstance(tally, Coded) else emitter.tally(tally)

    def _emitter(self, key: tuple[int, int, int] | None) -> Emitter:
        return Emitter(self.declared, self.table, self, key)

    def refusal(self, table: Table) -> InvalidDeclaration | None:
        """Return why a table would not be opened, as far as the catalogue tells; its columns are not looked at."""
        try:
            self.seen(table)
        except InvalidDeclaration as error:
            return error
        except Exception:
            return self._unopened(table)
        return None

    def _schema(self, table: Table) -> Mapping[str, Any]:
        try:
            return dict(self.table(table).schema().items())
        except InvalidDeclaration as error:
            refusal = error
        except Exception:
            log.debug("the schema of a declared table could not be read")
            refusal = self._unopened(table)
        raise InvalidDeclaration(f"tables.{table.name}: {refusal.what}", why=refusal.why, do=refusal.do)

    def _unopened(self, table: Table) -> InvalidDeclaration:
        return InvalidDeclaration(
            f"{_validate.shown(table.source)} cannot be opened by {self.engine}.", do=f"a source is {self.sources}."
        )

    def answered(
        self, query: Callable[[], Value], seed: int | None = None, read: Callable[[Statement], Any] | None = None
    ) -> Any:
        """Write a query of ours and run it, one at a time, and return its rows as an Arrow table.

        Args:
            query: Writes it.
            seed: With which the engine's generator begins.
            read: What is made of its statement in the place of a table.

        Raises:
            EngineFailed: The engine did not answer.
            Cancelled: The user stopped it.
        """

        def work() -> Any:
            if seed is not None:
                self.reseed(seed)
            return (read or self.fetch)(self.statement(query()))

        return self.guarded(work)

    def guarded(self, work: Callable[[], Any]) -> Any:
        """Do what an engine does, in a thread, so that Ctrl-C reaches us; nothing that it says leaves.

        Raises:
            EngineFailed: The engine did not answer.
            Cancelled: The user stopped it.
        """
        self._connected()
        job, stopped = Job(work, self._turn, self._interrupted), False
        try:
            while not job.ended.is_set():
                try:
                    job.begin()
                    if stopped:
                        job.stop()
                    job.ended.wait(TICK)
                except (KeyboardInterrupt, RuntimeError) as error:
                    if not by_ctrl_c(error):
                        raise
                    stopped = True
        except KeyboardInterrupt:  # between two of these lines: the thread has the engine until it has ended
            stopped = True
            job.stop()
        if stopped:
            job.done.clear()  # it may have ended in time, and tracebacks can show variables
            raise Cancelled(
                "the query was stopped.",
                why="it may have read rows, so what it was charged stays.",
                do="ask again under a new operation id: that is charged anew.",
            )
        if not job.done:
            raise EngineFailed(
                f"{self.engine} could not answer.",
                why="its own message is not shown, since it may hold values of the data.",
                do="look into the engine's own log, if you may read it; `sitr doctor` tests the engines.",
            )
        return job.done[0]

    def _interrupted(self) -> None:
        try:
            self.interrupt()
        except Exception:
            log.debug("the engine could not be asked to stop")


_sources: WeakSet[Source] = WeakSet()
_parents: list[Value] = []  # connections of parent processes, which must not be closed here


def not_after_fork(what: str) -> NotAllowed:
    """Return the refusal to use in a forked process what belongs to its parent."""
    return NotAllowed(
        f"{what} was opened before this process was forked.",
        why="a parent and its child must not talk on one connection, and the child lacks the threads of its parent.",
        do='start the process with multiprocessing.get_context("spawn"), and open the database there.',
    )


def _in_child() -> None:
    """Begin anew. What the parent left for the garbage collector stays: DuckDB crashes where its threads are not."""
    gc.freeze()
    for source in list(_sources):
        source.in_child()


os.register_at_fork(after_in_child=_in_child)


def _key(unsafe_key: int | None) -> tuple[int, int, int]:
    """Three numbers below the prime of the mix, fresh unless a test says which."""
    if unsafe_key is None:
        first, second, third = (1 + secrets.randbelow(PRIME - 1) for _ in range(3))
        return first, second, third
    return unsafe_key % PRIME or 1, (unsafe_key * 31 + 7) % PRIME or 1, (unsafe_key * 1009 + 3) % PRIME or 1


def _check_column(table: Table, column: Column, schema: Mapping[str, Any]) -> None:
    place = f"tables.{table.name}.columns.{column.name}"
    if column.name not in schema:
        # The others are not listed: of a text file without a header they are the first row.
        raise InvalidDeclaration(f"{place}: the table has no such column.", do="look at how it is defined.")
    found, kind = schema[column.name], column.domain.kind
    fits = {
        "boolean": found.is_boolean(),
        "string": found.is_string() or found.is_uuid(),
        "date": found.is_date(),
        "timestamp": found.is_timestamp(),
        "number": found.is_integer() or _is_decimal(column, found) or _is_float(column, found),
    }
    if not fits[kind]:
        such = declared_type(found)
        raise InvalidDeclaration(
            f"{place}: declared as {column.type}, and the engine has {found}.",
            do=f'declare type = "{such}".' if such else "leave the column out.",
        )


def _is_decimal(column: Column, found: Any) -> bool:
    """Whether a decimal has no more digits after the point than declared: engines round the others differently."""
    fits = column.domain.float or (found.is_decimal() and column.domain.step <= Fraction(1, 10 ** (found.scale or 0)))
    return bool(found.is_decimal() and fits)


def _is_float(column: Column, found: Any) -> bool:
    """Whether a float may be read as declared: as a float, or as a decimal with digits after the point."""
    return bool(found.is_floating() and (column.domain.float or column.domain.step < 1))
