"""A fork waits until no thread is in the middle of a step: what is half done, and its locks, do not pass to a child.

Ctrl-C comes between two calls, so nothing here is counted, or has to be undone: who is inside is seen from locks, and
whether there is a fork from another one. `with`, and a hook that is the method of a lock itself, cannot be half done.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

from .disk import open_files

FORK_WAITS = 10.0  # seconds for threads to finish their steps
TICK = 0.001  # seconds between two looks at whether they have

# Held by the thread that forks: nobody goes in meanwhile, and no other forks. A signal may come, and fork, while its
# thread holds it.
_forking = threading.RLock()


class Gate:
    """Where threads go in and out; one that forks waits until nobody is inside."""

    def __init__(self) -> None:
        self._threads: dict[threading.Lock, int] = {}  # which one took each lock; it is inside while that is held

    def admit(self, held: threading.Lock) -> None:
        """Let a thread in that has just taken a lock of its own by `with`, and be out when that is released.

        Waits while another thread forks, unless this one is inside already: then the fork waits for it.
        """
        me, inside = threading.get_ident(), False
        for lock, thread in self._threads.copy().items():
            if not lock.locked():
                self._threads.pop(lock, None)
            elif thread == me:
                inside = True
        with contextlib.nullcontext() if inside else _forking:
            self._threads[held] = me

    def inside(self) -> set[int]:
        """Return the threads that are inside: after a fork, those that were."""
        return {thread for lock, thread in self._threads.copy().items() if lock.locked()}

    def clear(self) -> None:
        """Wait until those inside have left; not for ever, and not for whoever waits."""
        until = time.monotonic() + FORK_WAITS
        while self.inside() - {threading.get_ident()} and time.monotonic() < until:
            time.sleep(TICK)


class Forkable(Protocol):
    """What wants to know of a fork."""

    def before_fork(self) -> None:
        """Get ready."""

    def in_child(self) -> None:
        """Begin anew, in the child."""


FORKING: WeakSet[Forkable] = WeakSet()

# The files that a parent process had open when it forked this one: by a connection that Ctrl-C made it lose, or by one
# that is not ours. SQLite takes the locks on them for this process's own, which they are not.
PASSED_ON: set[tuple[int, int]] = set()


def _all() -> list[Forkable]:
    while True:
        with contextlib.suppress(RuntimeError):  # another thread added one just now
            return list(FORKING)


def _before() -> None:
    """Prepare everyone. Python forks even if this fails, so whoever was not prepared finds that out in the child."""
    for one in _all():
        with contextlib.suppress(BaseException):  # Ctrl-C while one waits must not leave out the others
            one.before_fork()


def _in_child() -> None:
    PASSED_ON.update(open_files())
    for one in _all():
        one.in_child()


# What is registered last comes first before a fork, and last after it.
os.register_at_fork(before=_before, after_in_child=_in_child)
os.register_at_fork(
    before=_forking.acquire,
    after_in_child=_forking._at_fork_reinit,  # type: ignore[attr-defined]  # as the standard library does with its own
    after_in_parent=_forking.release,
)
