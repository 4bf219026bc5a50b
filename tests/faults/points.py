"""Points at which a process may die or be interrupted: before and after every statement, seen from outside.

Nothing in sitr knows of them: the cursors of both drivers are exchanged for ones that tell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from sqlalchemy import Engine, event

Reached = Callable[[str], None]


class Telling(sqlite3.Cursor):
    """A cursor that tells what begins and what has ended."""

    reached: Reached | None = None

    def execute(self, statement: str, *arguments: Any) -> Any:
        return _told(super().execute, Telling.reached, statement, *arguments)


class Connection(sqlite3.Connection):
    """A connection of which all statements tell."""

    def cursor(self, *_: Any) -> Any:
        return super().cursor(Telling)

    def execute(self, statement: str, *arguments: Any) -> Any:
        return self.cursor().execute(statement, *arguments)


@contextmanager
def watched(reached: Reached) -> Iterator[None]:
    """Call `reached` with the name of every point, in all ledgers that are opened meanwhile.

    What `reached` raises passes through the ledger as if it had been raised there.
    """
    Telling.reached = reached
    event.listen(Engine, "do_connect", _connect)
    postgresql = _watch_psycopg(reached) if find_spec("psycopg") else None
    try:
        yield
    finally:
        Telling.reached = None
        event.remove(Engine, "do_connect", _connect)
        if postgresql:
            postgresql()


def _connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> None:
    if dialect.name == "sqlite":
        options["factory"] = Connection


def _watch_psycopg(reached: Reached) -> Callable[[], None]:
    import psycopg

    execute = psycopg.Cursor.execute

    def telling(self: Any, statement: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return _told(lambda *given: execute(self, *given, **options), reached, statement, *arguments)
        except psycopg.OperationalError:  # raised by a point: as where the server is gone
            self.connection.close()
            raise

    psycopg.Cursor.execute = telling  # type: ignore[method-assign, assignment]
    return lambda: setattr(psycopg.Cursor, "execute", execute)


def _told(execute: Callable[..., Any], reached: Reached | None, statement: Any, *arguments: Any) -> Any:
    if reached is None:
        return execute(statement, *arguments)
    name = " ".join(str(statement).split())[:60]
    reached(f"before {name}")
    found = execute(statement, *arguments)
    reached(f"after {name}")
    return found
