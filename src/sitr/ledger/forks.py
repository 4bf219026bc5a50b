"""A fork waits until no thread is in the middle of a step: what is half done, and its locks, do not pass to a child."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Protocol
from weakref import WeakSet

FORK_WAITS = 10.0  # seconds for threads to finish their steps


class Gate:
    """Where threads go in and out, and which one of them closes to fork.

    Attributes:
        passed: Whether a thread was still inside at the fork.
    """

    def __init__(self) -> None:
        self.passed = False
        self._closed = False
        self._lock = threading.RLock()  # a signal may come, and fork, while its thread is in here
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, int] = {}  # how often each thread went in

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:
            while self._closed and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._lock:
            times = self._inside.pop(me)
            if times > 1:
                self._inside[me] = times - 1
            elif self._closed:
                self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in, and wait until those inside have left; not for ever, and not for whoever closes."""
        me = threading.get_ident()
        with self._changed:
            self._closed = self.passed = True  # until it is known that nobody is inside
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, FORK_WAITS)
            self.passed = bool(self._inside)

    def open(self) -> None:
        """Let threads in again."""
        with self._changed:
            self._closed = self.passed = False
            self._changed.notify_all()


class Forkable(Protocol):
    """What wants to know of a fork."""

    def before_fork(self) -> None:
        """Get ready."""

    def after_fork(self) -> None:
        """Go on, in the parent."""

    def in_child(self) -> None:
        """Begin anew, in the child."""


FORKING: WeakSet[Forkable] = WeakSet()


# One fork at a time: two threads that fork would open each other's gates.
_one = threading.RLock()


def _all() -> list[Forkable]:
    while True:
        with contextlib.suppress(RuntimeError):  # another thread added one just now
            return list(FORKING)


def _before() -> None:
    """Prepare everyone. Python forks even if this fails, so whoever was not prepared finds that out in the child."""
    _one.acquire()
    for one in _all():
        with contextlib.suppress(BaseException):  # Ctrl-C while one waits must not leave out the others
            one.before_fork()


def _after() -> None:
    for one in _all():
        one.after_fork()
    with contextlib.suppress(RuntimeError):  # where the lock was not had, it is not ours to give back
        _one.release()


def _in_child() -> None:
    global _one
    for one in _all():
        one.in_child()
    _one = threading.RLock()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
