"""The driver's connections of a store: lent to one step at a time, and never passed on to a forked process."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

from sqlalchemy import Engine

T = TypeVar("T")
IDLE = 5.0  # seconds after which a connection is tried before it is used


class Connections:
    """Connections that were opened and are not in use, and which are.

    Args:
        engine: Opens them.
        alone: There is one connection, which is the store itself, and must not be closed: a book in memory.
    """

    def __init__(self, engine: Engine, *, alone: bool) -> None:
        self._engine, self._alone = engine, alone
        self._idle: deque[tuple[Any, float]] = deque()
        self._in_use: set[object] = set()
        self.forked_in_use = False
        if not alone:
            OPEN.add(self)

    def lend(self, use: Callable[[Any], T]) -> T:
        """Let a function use a connection, which is given up if the driver fails or Ctrl-C comes."""
        held = self._take()
        self._in_use.add(held)
        whole = self._alone
        try:
            used = use(held.driver_connection)
            whole = True
            return used
        except Exception as error:
            whole = whole or not isinstance(error, self._engine.dialect.loaded_dbapi.Error)
            raise
        finally:
            self._in_use.discard(held)
            if whole:
                self._idle.append((held, time.monotonic()))
            else:
                _close(held)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a connection that is not lent here, while it is in use."""
        token = object()
        self._in_use.add(token)
        try:
            yield
        finally:
            self._in_use.discard(token)

    def close(self) -> None:
        """Close all that nobody uses; the next step opens one anew."""
        while self._idle and not self._alone:
            _close(self._idle.pop()[0])

    def before_fork(self) -> None:
        """Close what is idle, and remember whether anything could not be."""
        self.forked_in_use = bool(self._in_use)
        self.close()

    def after_fork(self) -> None:
        """Begin anew in the child; nothing of the parent's is touched."""
        self._in_use = set()

    def _take(self) -> Any:
        while True:
            try:
                held, used = self._idle.pop()
            except IndexError:
                return self._engine.raw_connection()
            if self._alone or time.monotonic() - used < IDLE or self._answers(held.driver_connection):
                return held
            _close(held)

    def _answers(self, driver: Any) -> bool:
        """Whether a connection that nobody used for a while still stands."""
        try:
            driver.execute("SELECT 1")
        except self._engine.dialect.loaded_dbapi.Error:
            return False
        return True


def _close(held: Any) -> None:
    held.invalidate()
    held.close()


# SQLite thinks that a fork has the locks of its parent, which it has not: a connection that passes to it, even if it is
# not used, makes it write to a file that others delete. So none passes.
OPEN: WeakSet[Connections] = WeakSet()


def _before_fork() -> None:
    for connections in list(OPEN):
        connections.before_fork()


os.register_at_fork(before=_before_fork)
