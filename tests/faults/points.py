"""Points at which a process may die: before and after every statement that it sends to a store, seen from outside.

Nothing in sitr knows of them. SQLite itself tells what begins, SQLAlchemy what ended; the driver of PostgreSQL is wrapped
by the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

Reached = Callable[[str], None]


def install(reached: Reached) -> None:
    """Call `reached` with the name of every point, in all ledgers that this process opens from now on."""

    def after(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if connection.dialect.name == "sqlite":
            reached(f"after {_short(statement)}")

    def connected(connection: Any, record: Any) -> None:
        if hasattr(connection, "set_trace_callback"):
            connection.set_trace_callback(lambda statement: reached(f"before {_short(statement)}"))

    event.listen(Engine, "after_cursor_execute", after)
    event.listen(Pool, "connect", connected)
    if find_spec("psycopg"):
        _watch_psycopg(reached)


def _watch_psycopg(reached: Reached) -> None:
    import psycopg

    execute = psycopg.Cursor.execute

    def watched(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        reached(f"before {_short(str(query))}")
        found = execute(self, query, *arguments, **options)
        reached(f"after {_short(str(query))}")
        return found

    psycopg.Cursor.execute = watched  # type: ignore[method-assign]


def _short(statement: str) -> str:
    return " ".join(statement.split())[:60]
