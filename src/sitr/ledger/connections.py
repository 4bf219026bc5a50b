"""The driver's connections of a store: lent to one step at a time, and never passed on to a forked process."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from .forks import FORKING, Gate

T = TypeVar("T")
NOWHERE = 0  # no process has this id
IDLE = 5.0  # seconds after which a connection is tried before it is used


class Unreached(Exception):
    """No connection could be made: the driver's reason."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason


class Connections:
    """Connections that were opened and are not in use.

    Args:
        engine: Opens them.
        alone: There is one connection, which is the store itself, and must not be closed: a book in memory.

    Attributes:
        gate: Whoever uses a connection is inside; a fork waits until nobody is.
        home: The process that may use them. A child that something in use was passed on to is not that.
    """

    def __init__(self, engine: Engine, *, alone: bool) -> None:
        self._engine, self._alone = engine, alone
        self._idle: deque[tuple[Any, float]] = deque()
        self.gate = Gate()
        self.home = os.getpid()
        FORKING.add(self)

    def lend(self, use: Callable[[Any], T]) -> T:
        """Let a function use a connection, which is given up if the driver fails or Ctrl-C comes."""
        inside = threading.Lock()
        with inside:
            self.gate.admit(inside)
            held = self._take()
            whole = self._alone
            try:
                used = use(held.driver_connection)
                whole = True
                return used
            except Exception as error:
                whole = whole or not isinstance(error, self._engine.dialect.loaded_dbapi.Error)
                raise
            finally:
                if whole:
                    self._idle.append((held, time.monotonic()))
                else:
                    _close(held)

    def close(self) -> None:
        """Close all that nobody uses; the next step opens one anew. What is another process's is left as it is."""
        while self._idle and not self._alone and self.home == os.getpid():
            _close(self._idle.pop()[0])

    def before_fork(self) -> None:
        """Let threads finish their steps, and let no connection pass.

        SQLite thinks that a fork has the locks of its parent, which it has not: with a connection that passed to it,
        used or not, it may write to a log that others delete.
        """
        self.gate.clear()
        self.close()

    def in_child(self) -> None:
        """Move in, unless a step that was under way, or a connection, was passed on."""
        passed = self._alone or self._idle or self.gate.inside()
        self.home = NOWHERE if passed or self.home == NOWHERE else os.getpid()

    def _take(self) -> Any:
        while True:
            try:
                held, used = self._idle.pop()
            except IndexError:
                return self._open()
            if self._alone or time.monotonic() - used < IDLE or self._answers(held.driver_connection):
                return held
            _close(held)

    def _open(self) -> Any:
        try:
            return self._engine.raw_connection()
        except (self._engine.dialect.loaded_dbapi.Error, SQLAlchemyError) as error:
            raise Unreached(getattr(error, "orig", None) or error) from None

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
