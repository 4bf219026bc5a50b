"""The driver's connections of a store: lent to one step at a time, and never passed on to a forked process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from .forks import FORKING, Gate

T = TypeVar("T")
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
        forked_inside: Whether this process was forked while something was in use, in spite of that.
    """

    def __init__(self, engine: Engine, *, alone: bool) -> None:
        self._engine, self._alone = engine, alone
        self._idle: deque[tuple[Any, float]] = deque()
        self.gate = Gate()
        self.forked_inside = self._ready = False
        self._inherited: deque[tuple[Any, float]] = deque()
        FORKING.add(self)

    def lend(self, use: Callable[[Any], T]) -> T:
        """Let a function use a connection, which is given up if the driver fails or Ctrl-C comes."""
        with self.gate:
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
        """Close all that nobody uses; the next step opens one anew."""
        while self._idle and not self._alone:
            _close(self._idle.pop()[0])

    def before_fork(self) -> None:
        """Let threads finish their steps, and let no connection pass.

        SQLite thinks that a fork has the locks of its parent, which it has not: with a connection that passed to it,
        used or not, it may write to a log that others delete.
        """
        self.gate.close()
        self.close()
        self._ready = True  # last: what was interrupted before, or made since, is not

    def after_fork(self) -> None:
        """Let threads go on, in the parent."""
        self._ready = False
        self.gate.open()

    def in_child(self) -> None:
        """Begin anew, in the child; whether anything was in use at the fork is remembered for good."""
        prepared = self._ready and not self.gate.passed and not self._idle
        self.forked_inside = self.forked_inside or not prepared
        self._inherited, self._idle = self._idle, deque()  # kept: to close what is the parent's would do harm
        self.gate, self._ready = Gate(), False

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
