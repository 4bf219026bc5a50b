"""Kills workers, and holds the book that they leave to what a ledger promises.

On storage that honours fsync: no answer without a charge, never more granted than the budget, the chain valid, and an
operation asked again after a crash resumes, is refused as spent, or is answered with the same bytes.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sitr.errors import AlreadyAnswered, AlreadySpent
from sitr.ledger import Budget, Ledger
from tests.faults.worker import ANALYST, DATASET, EVENT, Job, to_record

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Nursery:
    """A warm process without threads that forks workers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout
        self._process.stdout.close()

    def fork(self, job: Job) -> int:
        """Start a worker, and return its process id."""
        return int(self._say(job=to_record(job)))

    def signal(self, child: int, number: int) -> None:
        self._say(child=child, signal=int(number))

    def wait(self, child: int) -> int:
        """Wait for a worker, and return its exit code; negative: the signal that ended it."""
        return int(self._say(child=child))

    def run(self, job: Job) -> int:
        return self.wait(self.fork(job))

    def _say(self, **command: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


AT_WORK = """
    SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND state <> 'idle'
"""


@dataclass
class Outcome:
    """What a campaign found.

    Attributes:
        kills: How many processes were killed.
        answers: How many answers left.
        under_counts: Answers that left without a charge, and grants over the budget: must be none.
        over_counts: Operations that were charged and had no answer leave: what crashes cost.
        resumed: Operations that were asked again and went on, free of another charge.
        refused: Operations that were asked again and are spent.
        repeated: Operations that were asked again and gave the same bytes.
        seconds: How long it took.
        faults: What was broken, in words.
    """

    kills: int = 0
    answers: int = 0
    under_counts: int = 0
    over_counts: int = 0
    resumed: int = 0
    refused: int = 0
    repeated: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not self.under_counts and not self.faults


def prepare(url: str, budget: int, **options: Any) -> str:
    """Begin a book with a budget for so many events, and return its id."""
    with Ledger.open(url, **options) as ledger:
        ledger.create_budget(DATASET, Budget(epsilon=float(budget)))
        return ledger.id


def lines(side: str | Path) -> list[dict[str, Any]]:
    """What workers wrote beside the book; the last line may be unfinished."""
    path = Path(side)
    found = path.read_text().split("\n") if path.exists() else []
    return [json.loads(line) for line in found if line.endswith("}")]


def left(side: str | Path) -> dict[str, str]:
    """The answers that left, by operation; one that left twice is a fault."""
    answers: dict[str, str] = {}
    for line in lines(side):
        if "answer" in line:
            assert line["operation"] not in answers, f"operation {line['operation']} was answered twice"
            answers[line["operation"]] = line["answer"]
    return answers


def check(ledger: Ledger, side: str | Path, budget: int, outcome: Outcome | None = None) -> dict[str, str]:
    """Hold a book to its promises, count what was found, and return the state of every operation."""
    outcome = outcome if outcome is not None else Outcome()
    _wait_for_server(ledger)
    found = ledger.verify()
    if not found.valid:
        outcome.faults.append(found.problem)
    states: dict[str, str] = {}
    for entry in ledger.entries():
        if entry.operation is not None:
            before = {"reserve": None, "start": "reserve", "commit": "start", "refund": "reserve"}[entry.kind]
            if states.get(entry.operation) != before:
                outcome.faults.append(f"{entry.operation}: {entry.kind} after {states.get(entry.operation)}")
            states[entry.operation] = entry.kind
    answers = left(side)
    reserves = sum(state != "refund" for state in states.values())
    outcome.answers = len(answers)
    outcome.under_counts += sum(states.get(name) not in ("start", "commit") for name in answers)
    outcome.under_counts += max(reserves - budget, 0)
    outcome.over_counts = sum(name not in answers and state != "commit" for name, state in states.items())
    if abs(ledger.spent(DATASET).value - reserves * EVENT.epsilon(0.0).upper) > 1e-6:
        outcome.faults.append(f"{reserves} were reserved and {ledger.spent(DATASET).value} was spent")
    return states


def _wait_for_server(ledger: Ledger) -> None:
    """A server ends what a process asked for that was killed meanwhile: then it is at rest."""
    if ledger.store.separates:
        with ledger.store.connection() as connection:
            for _ in range(200):
                if not connection.exec_driver_sql(AT_WORK).scalar():
                    return
                time.sleep(0.05)


def ask_again(ledger: Ledger, operation: str, state: str | None, answers: dict[str, str], outcome: Outcome) -> None:
    """Ask what was killed again: it goes on, is refused, or gives the bytes that left, and is never charged twice."""
    before = _charges(ledger, operation)
    try:
        grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=operation)
        ended = "reserve" if before else None
        if ended:
            outcome.resumed += 1
        if operation in answers:
            outcome.faults.append(f"{operation} was answered, and may run again")
        with grant:
            grant.commit("asked again")
    except AlreadySpent:
        ended = "start"
        outcome.refused += 1
    except AlreadyAnswered:
        ended = "commit"
        outcome.repeated += 1
        if ledger.answer(operation, analyst=ANALYST).value != answers.get(operation):
            outcome.faults.append(f"{operation} has another answer than the one that left")
    if _charges(ledger, operation) > 1:
        outcome.faults.append(f"{operation} was charged for the second time")
    if ended != state:
        outcome.faults.append(f"{operation} was left in state {state}, and asked again is in state {ended}")


def _charges(ledger: Ledger, operation: str) -> int:
    """How often an operation was charged. Not what was spent in all: a server may still end what others asked for."""
    return sum(entry.kind == "reserve" for entry in ledger.store.operation(operation))


def campaign(
    fresh: Callable[[], str],
    kills: int,
    seed: int,
    *,
    nursery: Nursery,
    budget: int = 200,
    workers: int = 2,
    longest: float = 0.05,
    progress: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Kill workers at random moments, and check the book after each; a new book when one is used up.

    Args:
        fresh: Makes the address of a new book.
        kills: How many kills.
        seed: Of the moments.
        nursery: Where workers come from.
        budget: How many events a book has room for.
        workers: How many work on it at once, all of which are killed.
        longest: The longest time in seconds that a worker works before it, and then the next, is killed.
        progress: Called after every round.
    """
    chance, total, began, books = random.Random(seed), Outcome(), time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="sitr-side-") as folder:
        while total.kills < kills:
            books += 1
            url, side = fresh(), f"{folder}/{books}"
            prepare(url, budget)
            book = _one_book(url, side, nursery, chance, kills - total.kills, budget, workers, longest)
            for name in ("kills", "answers", "under_counts", "over_counts", "resumed", "refused", "repeated"):
                setattr(total, name, getattr(total, name) + getattr(book, name))
            total.faults += [f"{url}: {fault}" for fault in book.faults]
            total.seconds = time.monotonic() - began
            if progress is not None:
                progress(total)
    return total


def _one_book(
    url: str, side: str, nursery: Nursery, chance: random.Random, kills: int, budget: int, workers: int, longest: float
) -> Outcome:
    outcome = Outcome()
    with Ledger.open(url) as ledger:
        while outcome.kills < kills and ledger.remaining(DATASET).value > workers + 1:
            tag = f"k{outcome.kills}"
            jobs = [
                Job(url, side, [f"{tag}-{number}-{turn}" for turn in range(budget)], ready=f"{side}-{tag}-{number}")
                for number in range(min(workers, kills - outcome.kills))
            ]
            children = [nursery.fork(job) for job in jobs]
            _wait_for(Path(str(job.ready)) for job in jobs)
            for child in children:
                time.sleep(chance.uniform(0, longest))
                nursery.signal(child, signal.SIGKILL)
            ends = [nursery.wait(child) for child in children]
            outcome.kills += ends.count(KILLED)
            if any(end not in (0, KILLED) for end in ends):
                outcome.faults.append(f"workers ended with {ends}")
            states = check(ledger, side, budget, outcome)
            _last_asked_again(ledger, side, tag, states, outcome)
    return outcome


def _wait_for(files: Iterable[Path]) -> None:
    until = time.monotonic() + 60
    for file in files:
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.0005)


def _last_asked_again(ledger: Ledger, side: str, tag: str, states: dict[str, str], outcome: Outcome) -> None:
    """Ask the last operation of every killed worker again: the one that it died in."""
    answers = left(side)
    last = {name.rsplit("-", 1)[0]: name for name in states if name.startswith(f"{tag}-")}
    for name in last.values():
        ask_again(ledger, name, states[name], answers, outcome)
