"""Work in an engine: in a thread of its own, so that Ctrl-C reaches whoever waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

TICK = 0.1  # seconds between two looks at whether the user wants to stop
log = logging.getLogger(__name__)


class Job:
    """One piece of work. Its thread takes the engine and gives it back, even if whoever asked for it is gone by then.

    Ctrl-C may come between any two steps of the one who asks, so each of them may be taken again.

    Args:
        work: What is done.
        engine: Is held by the thread that works in the engine.
        interrupt: Asks the engine to stop what it does.

    Attributes:
        done: What the work returned, if it did; what it raised is forgotten, since it may quote a value.
        ended: Whether nothing of it runs any more.
    """

    def __init__(self, work: Callable[[], Any], engine: Any, interrupt: Callable[[], None]) -> None:
        self.done: list[Any] = []
        self.ended = threading.Event()  # a thread whose `join` is interrupted passes for dead in Python 3.11
        self._work, self._engine, self._interrupt = work, engine, interrupt
        self._begun = threading.Lock()
        self._stopped = self._inside = False
        self._leaving = threading.Lock()  # so that what is interrupted is this work, and not the next one's

    def begin(self) -> None:
        """Begin, if that was not done yet."""
        if not self._begun.locked():
            threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ask the engine to stop; to be called until it has ended, as what was asked to stop may not have begun yet."""
        self._stopped = True
        with self._leaving:
            if self._inside:
                self._interrupt()

    def _run(self) -> None:
        if not self._begun.acquire(blocking=False):
            return  # whoever asked was interrupted, and began twice
        try:
            while not self._stopped:
                if self._engine.acquire(timeout=TICK):
                    self._within()
                    break
        finally:
            self.ended.set()

    def _within(self) -> None:
        try:
            self._inside = True
            if not self._stopped:
                self.done.append(self._work())
        except BaseException:  # whatever it is, it may quote a value
            log.debug("the engine failed")
        finally:
            with self._leaving:
                self._inside = False
            self._engine.release()


def by_ctrl_c(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C, or what `threading` makes of one that comes while it gives back a lock.

    Example:
        >>> by_ctrl_c(KeyboardInterrupt()), by_ctrl_c(RuntimeError("can't start new thread"))
        (True, False)
    """
    return isinstance(error, KeyboardInterrupt) or isinstance(error.__context__, KeyboardInterrupt)
