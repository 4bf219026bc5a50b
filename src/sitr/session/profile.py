"""What is not declared, found privately: how many rows units have, and between which bounds a column lies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidArgument
from ..query.aggregates import count, histogram
from ..query.answer import Answer
from ..query.explanation import Explanation
from ..query.facts import Facts
from ..tables.relations import Scan, require_column

if TYPE_CHECKING:
    from .question import Question
    from .table import PrivateTable

MOST_ROWS = 10**6  # of a unit; more count as so many
POWERS = range(-10, 41)  # of two: where the bounds of a column are looked for
STANDS_OUT = 4  # half widths: a hundred bins of noise alone pass once in 3000 profiles
COVERED = 0.995  # the part of the rows that found bounds hold


@dataclass(frozen=True)
class Profiled:
    """What a profile found.

    Attributes:
        facts: About units and rows; the database uses them from now on.
        bounds: For each column, bounds that hold nearly all of its values: powers of two, or 0.
        answers: The releases that it was found by.
    """

    facts: Facts | None
    bounds: Mapping[str, tuple[float, float]]
    answers: tuple[Answer, ...]

    def __str__(self) -> str:
        lines = []
        if self.facts is not None and self.facts.units is not None and self.facts.rows is not None:
            lines.append(f"about {self.facts.units:,.0f} units with {self.facts.rows:,.0f} rows")
        lines += [f"{name}: bounds = [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items()]
        return "\n".join(lines)


class Profile:
    """A question about a table itself; made by `PrivateTable.profile`."""

    def __init__(self, table: PrivateTable, columns: tuple[str, ...]) -> None:
        self.table, self.columns = table, columns
        schema = table.relation.schema(table.database.declared)
        for name in columns:
            if require_column(name, schema).kind != "number":
                raise InvalidArgument(f"{name} is no number.", do="bounds are found for numbers.")
        self._questions = self._asked()
        if not self._questions:
            raise InvalidArgument("there is nothing to profile: each row is a unit.", do="name columns.")

    def explain(self, *, epsilon: float) -> tuple[Explanation, ...]:
        """Return what each of the questions would cost; reads no row and costs nothing."""
        part = epsilon / len(self._questions)
        return tuple(question.explain(epsilon=part) for question in self._questions.values())

    def release(self, *, epsilon: float, purpose: str | None = None) -> Profiled:
        """Return what was found, for ε in all.

        Privacy: one histogram for the rows of units and one for each column, with equal parts of ε; each is charged.
        """
        part = epsilon / len(self._questions)
        answers = {name: one.release(epsilon=part, purpose=purpose) for name, one in self._questions.items()}
        facts = _facts(answers[""]) if "" in answers else None
        if facts is not None and isinstance(self.table.relation, Scan):
            self.table.database.learn(self.table.relation.table, facts)
        bounds = {name: _bounds(answer) for name, answer in answers.items() if name}
        return Profiled(facts, bounds, tuple(answers.values()))

    def _asked(self) -> dict[str, Question]:
        asked: dict[str, Question] = {}
        if self.table.has_unit:
            units = self.table.per_unit(rows=count(bounds=(1, MOST_ROWS)))
            asked[""] = units.aggregate(units=histogram("rows", SIZES))
        for name in self.columns:
            asked[name] = self.table.aggregate(rows=histogram(name, EDGES))
        return asked


def _geometric() -> list[int]:
    """1, 2, 3, … and then each about an eighth more than the last."""
    found = [1]
    while found[-1] < MOST_ROWS:
        found.append(min(max(found[-1] + 1, found[-1] * 9 // 8), MOST_ROWS))
    return found


SIZES = _geometric()
EDGES = [*(-(2.0**power) for power in reversed(POWERS)), 0.0, *(2.0**power for power in POWERS)]


def _kept(answer: Answer, column: str) -> list[float]:
    """The counts that stand out of the noise; the others are noise, and there are many of them."""
    return [
        count if count > STANDS_OUT * error else 0.0
        for count, error in zip(answer.raw[column], answer.error95[column], strict=True)
    ]


def _facts(answer: Answer) -> Facts:
    counts = _kept(answer, "units")
    units = sum(counts) or 1.0
    middles = [(low + high - 1) / 2 for low, high in itertools.pairwise(SIZES)]
    sizes = tuple((size, number / units) for size, number in zip(middles, counts, strict=True) if number)
    rows = sum(size * number for size, number in zip(middles, counts, strict=True))
    return Facts(units, max(rows, 1.0), sizes, source="by an earlier release")


def _bounds(answer: Answer) -> tuple[float, float]:
    counts = _kept(answer, "rows")
    total, spare = sum(counts), (1 - COVERED) / 2
    if not total:
        return EDGES[0], EDGES[-1]
    below = list(itertools.accumulate(counts))
    first = next(at for at, number in enumerate(below) if number > spare * total)
    last = next(at for at, number in enumerate(below) if number >= (1 - spare) * total)
    return EDGES[first], EDGES[last + 1]
