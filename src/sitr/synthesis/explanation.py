"""What a synthesis says before anything is read: what it costs, how wrong it will be, and how long it will take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .. import markup
from ..accounting import Bracket, Event
from ..display import counted, reckoned, rounded_up, scientific
from ..tables.codes import Code
from .bins import MOST_BINS, even_share
from .linked import LinkedPlan
from .measured import OFF
from .measuring import FEWEST, HELD, MOST, ROUNDS, STEPS
from .mixture import COMPONENTS
from .plan import SynthesisPlan

COUNTING = 6e-9  # seconds for a row and a table of two columns, on one core of a small machine
FITTING = 1e-10  # seconds for a step, a component and two bins
SCORING = 4e-4  # seconds for two columns, in all rounds together


class Line(NamedTuple):
    """A column as people read it.

    Attributes:
        name: Of the column.
        what: How it is cut.
        noise: What 95 % of the noise on one of its counts stays within, in rows; None where its values are found first.
        error: About how far its shares will be from the true ones, in total variation; None where rows are not known.
    """

    name: str
    what: str
    noise: float | None
    error: float | None


@dataclass(frozen=True)
class SynthesisExplanation:
    """What a synthesis will cost and how wrong it will be; `print` shows it.

    Attributes:
        plan: The plan.
        epsilon: What it costs,
        delta: at this δ.
        lines: Its columns.
        pair_noise: What 95 % of the noise on a cell of a typical table of two columns stays within, in rows.
        bins: About how many bins the columns of such tables have; None where rows are not known.
        seconds: About how long it takes, on one core; None where rows are not known.
        megabytes: About how much memory that takes.
        remaining: For each budget, what is left now and after; as text.
        notes: Remarks.
    """

    plan: SynthesisPlan
    epsilon: Bracket
    delta: float
    lines: tuple[Line, ...]
    pair_noise: float
    bins: tuple[int, ...] | None
    seconds: float | None
    megabytes: float | None
    remaining: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"SynthesisExplanation({self._cost()})"

    def _repr_html_(self) -> str:
        return markup.page(markup.code(str(self)))

    def __str__(self) -> str:
        return "\n".join(
            [
                self._cost(),
                "",
                *self._columns(),
                "",
                *self._pairs(),
                *self._check(),
                *self._rules(),
                *self._bound(),
                *self._time(),
                *self._left(),
            ]
        )

    def _cost(self) -> str:
        cost = rounded_up(reckoned(float(self.epsilon), spent=True))
        return f"This would cost ε = {cost} at δ = {scientific(self.delta)}, once. Nothing has been read."

    def _columns(self) -> list[str]:
        rows = [("column", "cut into", "noise on a count", "expected error")]
        for line in self.lines:
            error = "not known" if line.error is None else _percent(line.error)
            noise = "not known" if line.noise is None else f"± {line.noise:,.0f} rows"
            rows.append((line.name, line.what, noise, error))
        widths = [max(len(row[at]) for row in rows) for at in range(4)]
        return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]

    def _pairs(self) -> list[str]:
        columns = len(self.lines)
        if columns < 2:
            return []
        return [
            f"{counted(columns * (columns - 1) // 2, 'pair')} of columns: the most informative tables are measured, in "
            f"{ROUNDS} rounds,",
            f"with noise of about ± {self.pair_noise:,.0f} rows per cell. Relations among three are mostly inferred.",
        ]

    def _check(self) -> list[str]:
        costs = self.plan.mechanism.costs
        if not costs.check:
            return []
        return [
            f"{100 * costs.check:.2g} % of the price goes into measuring how close the result is to the data, with "
            f"noise of about ± {1.96 * costs.check_deviation() / 2:,.0f} rows",
            "on the distance of each column and each pair, and far less on their averages.",
        ]

    def _rules(self) -> list[str]:
        rules = self.plan.rules_in_words
        if not rules:
            return []
        return ["By what you state as public knowledge, in every row:", *(f"  {rule}" for rule in rules)]

    def _bound(self) -> list[str]:
        most = self.plan.rows_per_unit
        if self.plan.coded.bound is None:
            return ["Each row is a unit of its own, and counts once in each table."]
        kept = "row of a unit is used, and counts" if most == 1 else "rows of a unit are used, and count"
        times = {1: "once", 2: "twice"}.get(most, f"{most:,} times")
        return [
            f"At most {most:,} {kept} at most {times} in each table.",
            "A synthetic row stands for a row, not for a unit: nobody in the synthetic table has several.",
        ]

    def _time(self) -> list[str]:
        if self.seconds is None:
            return ["How long it will take is not known: declare expected_rows for the table."]
        return [f"It will take about {max(self.seconds, 1):,.0f} s on one core, and {self.megabytes:,.0f} MB."]

    def _left(self) -> list[str]:
        lines = [f"budget {name}: {left} left, {after} after this." for name, (left, after) in self.remaining.items()]
        return [*lines, *self.notes]


@dataclass(frozen=True)
class LinkedExplanation:
    """What two linked tables will cost and how wrong they will be; `print` shows it.

    Attributes:
        plan: The plan.
        parents: What is said of the parents,
        children: and of both together, with the columns of the children.
    """

    plan: LinkedPlan
    parents: SynthesisExplanation
    children: SynthesisExplanation

    @property
    def delta(self) -> float:
        """The δ at which the cost is stated."""
        return self.children.delta

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks."""
        return self.children.notes

    def __str__(self) -> str:
        head = f"Parents, one for each unit; {self.plan.count} is the number of its children."
        return f"{head}\n{self.parents}\n\nAll:\n{self.children}"


def explained(
    plan: SynthesisPlan,
    delta: float,
    rows: float | None,
    remaining: Mapping[str, tuple[str, str]],
    notes: tuple[str, ...] = (),
    event: Event | None = None,
) -> SynthesisExplanation:
    """Return what a plan says.

    Args:
        plan: Which.
        delta: At which δ its cost is stated.
        rows: About how many rows there are, where that is public.
        remaining: For each budget, what is left now and after; as text.
        notes: Remarks.
        event: What is charged, where that is more than the plan.
    """
    codes, costs = plan.coded.codes, plan.mechanism.costs
    sizes = [code.size for code in codes]
    deviations = [float(one) for one in costs.deviations(sizes)]
    pairs = len(codes) * (len(codes) - 1) // 2
    typical = costs.deviation(costs.pairs(triples=False) * math.sqrt(ROUNDS / max(pairs, 1)))
    bins = seconds = megabytes = None
    if rows:
        bins = tuple(min(size, _bins(rows, typical)) for size in sizes)
        share = even_share(bins, MOST_BINS)
        bins = tuple(min(size, share) for size in bins)
        wide = sum(bins)
        seconds = (COUNTING * rows + SCORING) * (pairs + 2 * len(codes)) + FITTING * sum(STEPS) * COMPONENTS * wide**2
        megabytes = (72 * wide**2 + 6 * 4 * COMPONENTS * wide + 2048 * pairs) / 2**20 + 20
    return SynthesisExplanation(
        plan=plan,
        epsilon=(plan.event if event is None else event).epsilon(delta=delta),
        delta=delta,
        lines=tuple(_line(code, plan, noise, rows) for code, noise in zip(codes, deviations, strict=True)),
        pair_noise=1.96 * typical,
        bins=bins,
        seconds=seconds,
        megabytes=megabytes,
        remaining=remaining,
        notes=notes,
    )


def _bins(rows: float, typical: float) -> int:
    return max(int(1 / min(max(HELD * typical / rows, FEWEST), MOST)), 1)


def _line(code: Code, plan: SynthesisPlan, noise: float, rows: float | None) -> Line:
    if code.name in plan.found:
        named = plan.found[code.name].selection.threshold
        return Line(code.name, f"values shared by about {named:,} units", None, None)
    what = counted(code.known, "cell" if code.ordered else "value") + (" or missing" if code.nulls else "")
    return Line(code.name, what, 1.96 * noise, None if not rows else OFF * noise * code.size / rows / 2)


def _percent(error: float) -> str:
    """The part of the rows that is wrong, in per cent: of more than a half nothing is left to learn."""
    if error > 0.5:
        return "more noise than rows"
    return f"{100 * error:.2g} % of the rows"
