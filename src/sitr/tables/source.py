"""An engine and the tables behind it: the only thing that sees rows."""

from __future__ import annotations

import logging
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from .. import _validate
from ..errors import Cancelled, EngineFailed, InvalidDeclaration
from .declaration import Column, Declaration, Table
from .emitter import PRIME, Emitter, Value
from .tally import Tally

TICK = 0.1  # seconds between two looks at whether the user wants to stop
log = logging.getLogger(__name__)


class Source(ABC):
    """A connection to one engine, for one declaration.

    Attributes:
        declared: The declaration.
        engine: Its name.
    """

    engine: str

    def __init__(self, declared: Declaration) -> None:
        self.declared = declared
        self._lock = threading.Lock()

    # What an engine has to give

    @abstractmethod
    def table(self, table: Table) -> Value:
        """Return Ibis's table behind a declared one; it reads no row."""

    @abstractmethod
    def compiled(self, query: Value) -> str:
        """Return the text of a query."""

    @abstractmethod
    def fetch(self, query: Value) -> Any:
        """Run a query and return its rows as an Arrow table."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop what runs."""

    @abstractmethod
    def reseed(self, seed: int) -> None:
        """Seed the engine's generator anew, from 63 fresh bits."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""

    def local(self, moment: Value) -> Value:
        """Return a moment as the clock on the wall of the declared time zone shows it."""
        return moment

    # What all of them do

    def check(self) -> None:
        """Hold the declared columns against the engine's.

        Raises:
            InvalidDeclaration: A table or a column is missing, or of another type.
        """
        for table in self.declared.tables.values():
            schema = self._schema(table)
            for column in table.columns.values():
                _check_column(table, column, schema)

    def explain(self, tally: Tally) -> str:
        """Return the query that a tally is answered by; nothing is run."""
        return self.compiled(self._emitter(None).tally(tally))

    def rehearse(self, tally: Tally) -> None:
        """Run a tally on empty tables: what cannot run fails now, before anything is charged.

        Raises:
            EngineFailed: It cannot run.
        """
        self._run(self._emitter(None, empty=True).tally(tally))

    def run(self, tally: Tally, *, unsafe_key: int | None = None) -> Any:
        """Answer a tally exactly, as an Arrow table with a row for each group that occurs.

        Args:
            tally: What is asked.
            unsafe_key: For tests: the key by which rows are chosen, where a table has a `row_id`.

        Raises:
            EngineFailed: The engine did not answer.
            Cancelled: The user stopped it.
        """
        if unsafe_key is None:
            self._guarded(lambda: self.reseed(secrets.randbits(63)))
        return self._run(self._emitter(_key(unsafe_key)).tally(tally))

    def _emitter(self, key: tuple[int, int, int] | None, *, empty: bool = False) -> Emitter:
        def table(declared: Table) -> Value:
            found = self.table(declared)
            return found.limit(0) if empty else found

        return Emitter(self.declared, table, self.local, key)

    def _schema(self, table: Table) -> Mapping[str, Any]:
        try:
            return dict(self.table(table).schema().items())
        except Exception:
            log.debug("the schema of a declared table could not be read")
        raise InvalidDeclaration(
            f"tables.{table.name}: {_validate.shown(table.source)} cannot be opened by {self.engine}.",
            do="look at its source, and at the connection.",
        )

    def _run(self, query: Value) -> Any:
        with self._lock:
            return self._guarded(lambda: self.fetch(query))

    def _guarded(self, work: Any) -> Any:
        """Do what an engine does, in a thread, so that Ctrl-C reaches us; nothing that it says leaves."""
        done: list[Any] = []
        failed: list[bool] = []

        def job() -> None:
            try:
                done.append(work())
            except BaseException:  # whatever it is, it may quote a value
                failed.append(True)

        thread = threading.Thread(target=job, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(TICK)
        except KeyboardInterrupt:
            failed.append(False)
            self.interrupt()
            thread.join()
        if False in failed:
            done.clear()  # it may have ended in time, and tracebacks can show variables
            raise Cancelled(
                "the query was stopped.",
                why="it may have read rows, so what it was charged stays.",
                do="ask again under a new operation id: that is charged anew.",
            )
        if failed:
            raise EngineFailed(
                f"{self.engine} could not answer.",
                why="its own message is not shown, since it may hold values of the data.",
                do="look into the engine's own log, if you may read it; `sitr doctor` tests the engines.",
            )
        return done[0]


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
        "number": found.is_integer()
        or (found.is_decimal() and _allows_scale(column, found))
        or (found.is_floating() and _allows_floats(column)),
    }
    if not fits[kind]:
        raise InvalidDeclaration(f"{place}: declared as {column.type}, and the engine has {found}.")


def _allows_scale(column: Column, found: Any) -> bool:
    """Whether the engine's decimals are what is declared: whole numbers have no digits after the point."""
    return column.domain.step != 1 or column.domain.float or not found.scale


def _allows_floats(column: Column) -> bool:
    return column.domain.float or column.type.startswith("decimal")
