"""Whole queries on neighbouring databases, for the auditor: what is released, many times, and what is claimed of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

import sitr
from sitr.accounting import Event
from sitr.audit import AuditReport, audit
from sitr.ledger import Ledger
from sitr.query.answer import Answer
from sitr.session.database import create_budgets
from sitr.session.question import Question
from sitr.session.table import PrivateTable
from tests.query.databases import asked, column, people, plan_of

A_BOOK = 4  # releases are paid for by one book: their δ adds up
LETTERS = "abcdefghijklmnopqrs"  # the groups that are declared; all other letters are one more
EPSILON, DELTA = 1.0, 1e-2  # a δ that samples can see

# Twelve people with one row in each of two groups, so that nobody of them is bounded; then someone else.
COMMON = {
    "person": [person for person in range(12) for _ in range(2)],
    "g": ["a", "b"] * 12,
    "k": ["u", "v"] * 12,
    "x": [3, 7] * 12,
}
NEIGHBOURS: dict[str, Mapping[str, list[Any]]] = {
    "one row": {"g": ["a"], "k": ["u"], "x": [10]},
    "many rows": {"g": ["a"] * 40, "k": ["u"] * 40, "x": [10] * 40},
    "rows in every group": {"g": [*LETTERS, "t"] * 3, "k": ["u", "v", "only", "theirs"] * 15, "x": [10, 0] * 30},
    "groups of their own": {"g": ["a"] * 6, "k": list("pqrstw"), "x": list(range(6))},
}
QUESTIONS: dict[str, Callable[[PrivateTable], Question]] = {
    "count by group": lambda table: table.group_by("g").aggregate(z=sitr.count()),
    "named groups": lambda table: table.group_by(
        size=(table["x"] > 5).choose("large", "small"), u=table["k"] == "u"
    ).aggregate(z=sitr.count()),
    "sum": lambda table: table.aggregate(z=sitr.sum("x")),
    "mean": lambda table: table.aggregate(z=sitr.mean("x"), n=sitr.count()),
    "private keys": lambda table: table.group_by("k").aggregate(z=sitr.count_units(), n=sitr.count()),
    "count distinct": lambda table: table.aggregate(z=sitr.count_distinct("k"), u=sitr.count_units()),
}
ROWS = 2  # that are kept of a person


def rows(*parts: Mapping[str, list[Any]]) -> pyarrow.Table:
    """Return the rows of the common people, and of others, each in a part."""
    made = {name: list(values) for name, values in COMMON.items()}
    for number, part in enumerate(parts):
        made["person"] += [100 + number] * len(part["g"])
        for name, values in part.items():
            made[name] += values
    return pyarrow.table(made)


def table(engine: str, frame: pyarrow.Table) -> PrivateTable:
    """Return the table of a database with these rows."""
    columns = {
        "g": column("string", categories=list(LETTERS), others="group"),
        "k": column("string"),
        "x": column("integer", bounds=[0, 10]),
    }
    content = people(ROWS, **columns) | {"privacy": {"delta": DELTA}}
    content["budgets"] = {"test": {"epsilon": 1e4, "delta": 0.4}}
    database = asked(engine, {"visits": frame}, content)
    if engine == "duckdb":  # so few rows are the work of one thread, and others only wait for it
        database.source._connection.raw_sql("SET threads = 1")
    return database.table("visits")


@dataclass(frozen=True)
class Subject:
    """A question to a database, released as often as the auditor likes."""

    question: Question

    @property
    def event(self) -> Event:
        """What a release claims to cost."""
        return plan_of(self.question, EPSILON, DELTA).event

    def batch(self, count: int) -> Iterator[tuple[float, ...]]:
        """Yield so many releases; each is planned, rehearsed, charged, run, answered and kept, as for users."""
        database = self.question.database
        for at in range(count):
            if at % A_BOOK == 0:
                database.ledger.close()
                database.ledger = Ledger.open("memory://")
                create_budgets(database.declared, database.ledger)
            yield flat(self.question.release(epsilon=EPSILON, delta=DELTA))


GROUPS = ("u", "v", "only", "theirs", *"pqrstw")


def flat(answer: Answer) -> tuple[float, ...]:
    """Return the numbers of an answer as a tuple of one length: of found keys, those of each, or none."""
    if "k" not in answer.keys:
        return tuple(itertools.chain.from_iterable(answer.raw.values()))
    found = dict(zip(answer.value["k"], zip(*answer.raw.values(), strict=True), strict=True))
    nothing = (-1000.0,) * len(answer.raw)
    return tuple(number for name in GROUPS for number in found.get(name, nothing))


def audited(engine: str, asked_for: str, neighbour: str, samples: int, *, confidence: float = 0.95) -> AuditReport:
    """Audit a question on the common people, and on them with someone else."""
    frames = (rows(), rows(NEIGHBOURS[neighbour]))
    subjects = [Subject(QUESTIONS[asked_for](table(engine, frame))) for frame in frames]
    return audit(
        None,
        *subjects,
        claimed=subjects[0].event,
        samples=samples,
        confidence=confidence,
        batch=lambda subject, count: [np.array(one, dtype=float) for one in subject.batch(count)],
    )
