"""A process that uses a ledger as a program does, and may die at any point.

Run as `python -m tests.faults.worker`, it is a nursery: it imports everything, opens nothing, and forks a child for
each job that it reads from its standard input, so that a child costs milliseconds.

Every answer is written to a side file, and synced, before it is committed: from then on it has left. What a ledger
promises is that each line of that file was charged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sitr.accounting import PureDP
from sitr.errors import SitrError
from sitr.ledger import Ledger
from tests.faults import points

DATASET, ANALYST = "clinic", "amina"
EVENT = PureDP(epsilon=1.0)


@dataclass
class Job:
    """What a child does.

    Attributes:
        url: The book.
        side: Where answers that left, and what else happened, are written.
        operations: The ids to ask, one after the other.
        die_at: The point at which it kills itself, from 1 on; None: never.
        from_open: Whether points are counted from the opening on, or from the first operation.
        ready: A file that it makes when the book is open.
        barrier: A file; work begins when it is there.
        options: For `Ledger.open`.
        ask: For `reserve`, besides.
    """

    url: str
    side: str
    operations: list[str]
    die_at: int | None = None
    from_open: bool = False
    ready: str | None = None
    barrier: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    ask: dict[str, Any] = field(default_factory=dict)


class Side:
    """A file of lines, each on the disk when `write` returns."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **record: Any) -> None:
        os.write(self._file, json.dumps(record).encode() + b"\n")
        os.fsync(self._file)


class Points:
    """Counts points, and dies at one."""

    def __init__(self, die_at: int | None) -> None:
        self.names: list[str] = []
        self.counting = False
        self._die_at = die_at

    def __call__(self, name: str) -> None:
        if not self.counting:
            return
        self.names.append(name)
        if len(self.names) == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def work(job: Job) -> None:
    """Open the book and ask: reserve, start, let the answer leave, commit."""
    at, side = Points(job.die_at), Side(job.side)
    with points.watched(at):
        _work(job, at, side)


def _work(job: Job, at: Points, side: Side) -> None:
    at.counting = job.from_open
    ledger = Ledger.open(job.url, **job.options)
    if job.ready:
        Path(job.ready).touch()
    if job.barrier:
        while not Path(job.barrier).exists():
            time.sleep(0.001)
    at.counting = True
    for operation in job.operations:
        try:
            ask(ledger, operation, side, at, job.ask)
        except SitrError as error:
            side.write(operation=operation, refused=type(error).__name__, says=error.what)
            if type(error).__name__ in ("BudgetExceeded", "LedgerDamaged"):
                break
    at.counting = False
    side.write(points=at.names)


def ask(ledger: Ledger, operation: str, side: Side, at: Points, about: dict[str, Any]) -> None:
    """One operation, to its end."""
    grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=operation, **about)
    at("reserved")
    with grant:
        at("started")
        answer = random.getrandbits(64).to_bytes(8, "big").hex()
        side.write(operation=operation, answer=answer)
        at("left")
        grant.commit(answer)
    at("committed")


def fork(job: Job) -> int:
    """Start a child on a job, and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        random.seed()
        work(job)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def serve() -> None:
    """Read commands, one a line: fork a job, kill a child, stop or continue it, or wait for it."""
    for line in sys.stdin:
        command = json.loads(line)
        if "job" in command:
            answer: Any = fork(Job(**command["job"]))
        elif "signal" in command:
            os.kill(command["child"], command["signal"])
            answer = None
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(command["child"], 0)[1])
        print(json.dumps(answer), flush=True)


def to_record(job: Job) -> dict[str, Any]:
    return asdict(job)


if __name__ == "__main__":
    serve()
