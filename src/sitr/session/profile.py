"""What is not declared, found privately: how many rows units have, and between which bounds a column lies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import markup
from ..accounting import compose
from ..display import counted
from ..errors import InvalidArgument
from ..query import consistency
from ..query.aggregates import count, histogram
from ..query.answer import Additive, Answer
from ..query.explanation import Explanation, budget_lines
from ..query.facts import Facts
from ..tables.relations import Derive, Scan, require_column
from .priced import UNASKED

if TYPE_CHECKING:
    from .question import Question
    from .table import PrivateTable

MOST_ROWS = 10**6  # of a unit; more count as so many
POWERS = range(-10, 41)  # of two: where the bounds of a column are looked for
COVERED = 0.995  # the part of the rows that found bounds hold
FOUND = "by an earlier release, which does not see the few units with the most rows"
ALARM = 0.01  # the chance that noise alone is taken for a bin with rows, in all bins of a profile together


@dataclass(frozen=True)
class Profiled:
    """What a profile found.

    Attributes:
        facts: About units and rows; the database uses them from now on.
        bounds: For each column, bounds that hold nearly all of its values: powers of two, or 0. Where units have many
            rows it is a row of each, by chance, that they were found by.
        answers: The releases that it was found by.
    """

    facts: Facts | None
    bounds: Mapping[str, tuple[float, float]]
    answers: tuple[Answer, ...]

    def __str__(self) -> str:
        lines = []
        if self.facts is not None and self.facts.units is not None and self.facts.rows is not None:
            units, rows = counted(round(self.facts.units), "unit"), counted(round(self.facts.rows), "row")
            lines.append(f"about {units} with {rows}")
        lines += [f"{name}: bounds = [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Profiled({'; '.join(str(self).splitlines())})"

    def _repr_html_(self) -> str:
        return markup.page(markup.lines(*str(self).splitlines()))


@dataclass(frozen=True)
class ProfileExplanation:
    """What a profile will cost, and how wrong it will be; `print` shows it.

    Attributes:
        epsilon: In all.
        questions: What each of its questions will cost: that about the rows of units, under "", and of each column.
        remaining: For each budget, what is left now and after all of them; as text.
    """

    epsilon: float
    questions: Mapping[str, Explanation]
    remaining: Mapping[str, tuple[str, str]]

    def __str__(self) -> str:
        lines = [f"This would cost ε = {self.epsilon:g}, in equal parts. Nothing has been read."]
        for name, one in self.questions.items():
            what = f"{name}, in bins of rows" if name else "rows of a unit, in bins of units"
            lines += [f"{what}: 95 % of the time, noise is within ± {error:.4g}" for error in one.errors.values()]
        return "\n".join([*lines, *budget_lines(self.remaining)])

    def __repr__(self) -> str:
        return f"ProfileExplanation({str(self).splitlines()[0]})"

    def _repr_html_(self) -> str:
        return markup.page(markup.lines(*str(self).splitlines()))


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

    def __repr__(self) -> str:
        return f"Profile({'; '.join(self._sought())})"

    def _repr_html_(self) -> str:
        return markup.page(markup.lines(*self._sought(), UNASKED))

    def _sought(self) -> list[str]:
        return [f"the bounds of {name}" if name else "how many rows units have" for name in self._questions]

    def explain(self, *, epsilon: float) -> ProfileExplanation:
        """Return what it would cost and how wrong it would be; reads no row and costs nothing."""
        part = epsilon / len(self._questions)
        found = {name: question.explain(epsilon=part) for name, question in self._questions.items()}
        event = compose(*(one.plan.event for one in found.values()))
        remaining = next(iter(self._questions.values())).forecast().remaining(event)
        return ProfileExplanation(epsilon, found, remaining)

    def release(
        self, *, epsilon: float, operation: str | None = None, purpose: str | None = None, anyway: bool = False
    ) -> Profiled:
        """Return what was found, for ε in all.

        Args:
            epsilon: In all.
            operation: An id, to ask for the same again for nothing; that of a column's histogram ends in its name.
            purpose: What for; a budget for that purpose is charged as well.
            anyway: Spend even on what is known beforehand to be useless.

        Raises:
            UselessQuestion: By what is declared, no row passes a filter of the table; nothing was charged.

        Privacy: one histogram for the rows of units and one for each column, with equal parts of ε; each is charged.
        """
        part = epsilon / len(self._questions)
        answers = {
            name: one.release(epsilon=part, operation=_named(operation, name), purpose=purpose, anyway=anyway)
            for name, one in self._questions.items()
        }
        facts = _facts(answers[""]) if "" in answers else None
        relation = self.table.relation
        while isinstance(relation, Derive):  # more columns, and the same rows
            relation = relation.source
        if facts is not None and isinstance(relation, Scan):
            self.table.database.learn(relation.table, facts)
        bounds = {name: _bounds(answer) for name, answer in answers.items() if name}
        return Profiled(facts, bounds, tuple(answers.values()))

    def _asked(self) -> dict[str, Question]:
        asked: dict[str, Question] = {}
        if self.table.has_unit:
            units = self.table.per_unit(rows=count(bounds=(1, MOST_ROWS)))
            asked[""] = units.aggregate(units=histogram("rows", SIZES))
        for name in self.columns:
            # One row of each unit, by chance: more of them would raise the noise by as much, and mostly by more.
            question = self.table.aggregate(rows=histogram(name, EDGES))
            asked[name] = question.bounded(max_rows_per_unit=1) if self.table.has_unit else question
        return asked


def _geometric() -> list[int]:
    """1, 2, 3, … and then each about an eighth more than the last."""
    found = [1]
    while found[-1] < MOST_ROWS:
        found.append(min(max(found[-1] + 1, found[-1] * 9 // 8), MOST_ROWS))
    return found


SIZES = _geometric()
EDGES = [*(-(2.0**power) for power in reversed(POWERS)), 0.0, *(2.0**power for power in POWERS)]


def _named(operation: str | None, column: str) -> str | None:
    return f"{operation} {column}" if operation is not None and column else operation


def _standing_out(noise: Additive, bins: int, together: int = 1) -> float:
    """How large the count of some bins together has to be, not to be noise.

    Of all runs of bins none is mistaken but with the chance `ALARM`: a single one far out that is noise would make
    units of a million rows, or bounds of a billion. By Chernoff's bound on the sum of so many Laplace noises.
    """
    tail = math.log((bins if together == 1 else bins**2) * 2 / ALARM)
    if noise.kind == "gaussian":
        return noise.scale * math.sqrt(2 * together * tail)
    slopes = np.linspace(0, 1, 1000)[1:-1]
    return noise.scale * float(np.min((tail - together * np.log1p(-(slopes**2))) / slopes))


def _facts(answer: Answer) -> Facts:
    """Up to the last bin that stands out the counts are taken as they are, as their noise cancels.

    Further out units are few: bins are taken together until their sum stands out, and it is spread over them.
    """
    raw, noise = np.asarray(answer.raw["units"], dtype=float), answer.additive["units"]
    out = np.nonzero(raw > _standing_out(noise, len(raw)))[0]
    end = int(out[-1]) + 1 if out.size else 0
    counts = np.zeros(len(raw))
    counts[:end] = consistency.counts(raw[:end])
    least = [_standing_out(noise, len(raw), together) for together in range(1, len(raw) + 1)]
    for last in range(end, len(raw)):
        if (found := float(raw[end : last + 1].sum())) > least[last - end]:
            counts[end : last + 1] = found / (last + 1 - end)
            end = last + 1
    units = float(counts.sum()) or 1.0
    middles = np.array([(low + high - 1) / 2 for low, high in itertools.pairwise(SIZES)])
    sizes = tuple(
        (float(size), float(number / units)) for size, number in zip(middles, counts, strict=True) if number > 0
    )
    return Facts(units, max(float(middles @ counts), 1.0), sizes, source=FOUND)


def _bounds(answer: Answer) -> tuple[float, float]:
    least = _standing_out(answer.additive["rows"], len(answer.raw["rows"]))
    counts = [count if count > least else 0.0 for count in answer.raw["rows"]]
    total, spare = sum(counts), (1 - COVERED) / 2
    if not total:
        return EDGES[0], EDGES[-1]
    below = list(itertools.accumulate(counts))
    first = next(at for at, number in enumerate(below) if number > spare * total)
    last = next(at for at, number in enumerate(below) if number >= (1 - spare) * total)
    return EDGES[first], EDGES[last + 1]
