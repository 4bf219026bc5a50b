"""What a plan says before anything is read: each measurement with its noise and price, the errors, and what is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..accounting import Bracket
from ..accounting.notation import event_text
from ..display import counted, reckoned, rounded_up, scientific
from ..errors import InvalidArgument
from ..release import IN_MEMORY
from ..tables.relations import one_row_per_unit, per_unit_within
from ..tables.statement import Statement
from .aggregates import COUNTS, Aggregate
from .designs import Total
from .estimates import Estimated, additive, of_sums
from .facts import Facts
from .measurements import Bins, Distinct, Groups, Measurement, Ranks, Sums, Units
from .planner import Plan, Target
from .selected import remarks

NO_FIT = "does not fit"  # what is said to be left after an event that a budget has no room for
TYPICAL = 1000.0  # rows of a group, where nothing is known of its size


@dataclass(frozen=True)
class Line:
    """A measurement as people read it."""

    label: str
    noise: str
    event: str


@dataclass(frozen=True)
class Explanation:
    """What a query will cost and how wrong it will be; `print` shows it.

    Attributes:
        plan: The plan.
        target: What the release may cost.
        epsilon: What it costs at the δ of the target.
        lines: Its measurements.
        errors: For each aggregate about what its interval will reach to either side.
        size: For how many rows in a group the errors are stated.
        kept: About which part of the rows is kept by bounding; None where nothing is known.
        facts: What is publicly known of the rows.
        remaining: For each budget, what is left now and after; as text.
        statements: What the engine will be asked.
        notes: Remarks.
        lasting: Whether the ledger that a release is charged to outlives the process; one in memory does not.
    """

    plan: Plan
    target: Target
    epsilon: Bracket
    lines: tuple[Line, ...]
    errors: Mapping[str, float]
    size: float
    kept: float | None
    facts: Facts
    remaining: Mapping[str, tuple[str, str]]
    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()
    lasting: bool = True

    @property
    def queries(self) -> tuple[str, ...]:
        """What the engine will be asked, as text in lines."""
        return tuple(one.pretty for one in self.statements)

    def __str__(self) -> str:
        lines = [self._cost(), "", *self._measurements(), "", *self._errors(), self._bounding()]
        lines += [*budget_lines(self.remaining), *self.notes]
        return "\n".join(lines if self.lasting else [*lines, IN_MEMORY])

    def __repr__(self) -> str:
        return f"Explanation({self._cost()})"

    def _cost(self) -> str:
        delta = f" at δ = {scientific(self.target.delta)}" if self.target.delta else ""
        cost = rounded_up(reckoned(float(self.epsilon), spent=True))
        return f"This would cost ε = {cost}{delta}. Nothing has been read."

    def _measurements(self) -> list[str]:
        rows = [("measured", "noise", "event"), *((line.label, line.noise, line.event) for line in self.lines)]
        widths = [max(len(row[at]) for row in rows) for at in range(2)]
        return ["  ".join([*map(str.ljust, row, widths), row[2]]).rstrip() for row in rows]

    def _errors(self) -> list[str]:
        rows = [("answer", "95 % of errors within")]
        rows += [
            (f"{name} = {aggregate}", self._error(name, aggregate))
            for name, aggregate in self.plan.query.aggregates.items()
        ]
        width = max(len(row[0]) for row in rows)
        return [f"{name.ljust(width)}  {error}" for name, error in rows]

    def _error(self, name: str, aggregate: Aggregate) -> str:
        if aggregate.kind in COUNTS:
            return f"± {math.ceil(self.errors[name] - 1e-9):,}"
        return f"± {self.errors[name]:.4g}{self._at(name, aggregate)}"

    def _at(self, name: str, aggregate: Aggregate) -> str:
        measured = self.plan.measurements[self.plan.places[name]]
        if isinstance(measured, Ranks):
            unit = {"date": " days", "timestamp": " seconds"}.get(measured.measure.grid.kind, "")
            return f"{unit} in a group of {self.size:,.0f} rows, spread evenly"
        ratio = aggregate.kind in ("mean", "variance", "stddev", "covariance", "correlation")
        return f" in a group of {self.size:,.0f} rows" if ratio else ""

    def _bounding(self) -> str:
        if self.plan.bound is None:
            return "Each row is a unit of its own: none is dropped."
        return next(iter(bounding(self.plan, self.facts)), "A unit has one row here: none is dropped.")


def bounding(plan: Plan, facts: Facts) -> tuple[str, ...]:
    """Return in a sentence what is kept of a unit, and about how much that drops; nothing where nothing is dropped."""
    bound = plan.bound
    if bound is None or one_row_per_unit(plan.query.relation):
        return ()
    if bound.rows is not None:
        what = f"{counted(bound.rows, 'row')} of a unit {_are(bound.rows)} kept at most"
    else:
        groups, rows = bound.groups or 1, bound.rows_per_group or 1
        each = "" if plan.query.one_in_group() else f", and {counted(rows, 'row')} in each,"
        what = f"{counted(groups, 'group')} of a unit{each} {'are' if each else _are(groups)} kept at most"
    return (_dropping(what, plan, facts),)


def _dropping(what: str, plan: Plan, facts: Facts) -> str:
    """How much a bound drops, as far as that is known."""
    bound, relation = plan.bound, plan.query.relation
    assert bound is not None
    kept = facts.kept(bound.l1)
    dropped = 0.0 if kept is None else 100 * (1 - kept)
    if kept is None or (bound.rows is None and dropped < 1):  # a bound on groups may drop more than one on rows
        plain = kept is None and per_unit_within(relation) is None and len(set(relation.tables())) == 1
        advice = ": declare expected_units and expected_rows" if plain else ""
        return f"{what}. How many rows that drops is not known{advice}."
    least = "at least " if facts.sizes or bound.rows is None else ""  # a release does not see the largest units
    if dropped >= 1:
        part = f"{least}about {dropped:.2g} % of the rows"
    else:
        part = "few of the rows that were seen" if least else "about 1 % of the rows or less"
    return f"{what}: that drops {part} ({facts.source})."


def budget_lines(remaining: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a line for each budget: what is left now, and after."""
    return [
        f"budget {name}: {left} left{': this does not fit' if after == NO_FIT else f', {after} after this'}."
        for name, (left, after) in remaining.items()
    ]


def explained(
    plan: Plan,
    target: Target,
    facts: Facts,
    remaining: Mapping[str, tuple[str, str]],
    statements: tuple[Statement, ...],
    notes: tuple[str, ...] = (),
) -> Explanation:
    """Return what a plan says."""
    kept = None if plan.bound is None else facts.kept(plan.bound.l1)
    size = TYPICAL
    if facts.rows is not None and plan.groups:
        size = max(facts.rows * (1.0 if kept is None else kept) / plan.groups, 1.0)
    notes += (*_few_units(plan, facts), *_beside(plan), *remarks(plan))
    tried = {id(one): one.mechanism.expected_errors(size) for one in plan.measurements if isinstance(one, Ranks)}
    errors = {name: _error(plan, name, size, tried) for name in plan.query.aggregates}
    return Explanation(
        plan=plan,
        target=target,
        epsilon=plan.event.epsilon(delta=target.delta),
        lines=tuple(Line(one.label, _noise(one), event_text(one.event)) for one in plan.measurements),
        errors=errors,
        size=size,
        kept=kept,
        facts=facts,
        remaining=remaining,
        statements=statements,
        notes=notes,
    )


def _few_units(plan: Plan, facts: Facts) -> tuple[str, ...]:
    """A warning where no group can have as many units as it takes to be named."""
    needed = [one.selection.threshold for one in plan.measurements if isinstance(one, Groups)]
    if not needed or facts.units is None or needed[0] <= facts.units:
        return ()
    bounded = "" if plan.bound is None else "bound the groups of a unit (max_groups_per_unit), "
    advice = f"{bounded}declare the categories, or spend more."
    return (
        f"No group can be named: that takes {needed[0]:,} units, and there are about {facts.units:,.0f}. "
        f"{advice[0].upper()}{advice[1:]}",
    )


def _beside(plan: Plan) -> tuple[str, ...]:
    """A remark where rows without a value are counted beside a mean, which takes noise of its own."""
    notes = []
    for place, one in enumerate(plan.measurements):
        if isinstance(one, Sums) and one.design.missing:
            asked = [(name, plan.query.aggregates[name]) for name, at in plan.places.items() if at == place]
            counts = ", ".join(name for name, aggregate in asked if aggregate.value is None)
            values = " and ".join(str(measure.value) for measure in one.measures.values())
            notes.append(
                f"{counts}: rows without {values} are counted too, which takes more noise. Where they are of no use, "
                'nulls = "drop" in the declaration makes the count more exact.'
            )
    return tuple(notes)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def expected_sizes(plan: Plan, facts: Facts) -> dict[str, float]:
    """Return about how large each count of a plan will be in a group, by what is publicly known, before filters.

    Raises:
        InvalidArgument: An aggregate is no count, or nothing is known of its size.
    """
    return {name: _expected(name, aggregate, plan, facts) for name, aggregate in plan.query.aggregates.items()}


def _expected(name: str, aggregate: Aggregate, plan: Plan, facts: Facts) -> float:
    of_units = aggregate.kind == "count_units"
    if aggregate.kind not in ("count", "count_units", "histogram"):
        raise InvalidArgument(
            f"{name} = {aggregate}: a relative error is for counts.",
            why="how large this will be is not known before it is released.",
            do="say how large the error may be: error=500.",
        )
    if plan.groups is None:
        raise InvalidArgument(
            f"{name} = {aggregate}: how many groups there will be is not public, nor how large they are.",
            do="declare categories for the keys, or say how large the error may be: error=500.",
        )
    known = facts.units if of_units else facts.rows
    if known is None:
        raise InvalidArgument(
            f"{name} = {aggregate}: no size is declared, and a relative error is one of a size.",
            do=f"declare {'expected_units' if of_units else 'expected_rows'} for the table, or say error=500.",
        )
    return max(known / max(plan.groups, 1) / max(len(aggregate.edges) - 1, 1), 1.0)


def _noise(one: Measurement) -> str:
    if isinstance(one, Groups):
        noise = additive(np.zeros((1, 1)), np.ones(1), one.selection.scale, "laplace", integers=True)
        return f"named from {one.selection.threshold} units, ± {_half(noise):.3g}"
    if isinstance(one, Ranks):
        return f"laplace, ± {3 * one.mechanism.scales[-1]:.3g} rows in a part"
    width = float(additive(np.zeros((1, 1)), np.ones(1), one.noise.scale, one.noise.kind).high[0])
    if isinstance(one, Sums) and isinstance(one.design, Total):
        grid = next(iter(one.measures.values())).grid
        return f"{one.noise.kind}, ± {width * float(one.noise.unit * grid.step):.3g}"
    return f"{one.noise.kind}, ± {width:.3g} {'units' if isinstance(one, Units) else 'rows'}"


def _error(plan: Plan, name: str, size: float, tried: Mapping[int, NDArray[np.float64]]) -> float:
    """About what the interval of an aggregate reaches to either side, in a group of so many rows spread evenly."""
    aggregate, measured = plan.query.aggregates[name], plan.measurements[plan.places[name]]
    if isinstance(measured, Sums):
        rows = np.full((1, measured.design.count), size / measured.design.count)
        return _half(of_sums(aggregate, measured, rows))
    if isinstance(measured, (Units, Distinct, Bins)):
        return _half(additive(np.zeros((1, 1)), np.ones(1), measured.noise.scale, measured.noise.kind, integers=True))
    if isinstance(measured, Groups):
        return _half(additive(np.zeros((1, 1)), np.ones(1), measured.selection.scale, "laplace", integers=True))
    place = list(measured.wanted).index(name)
    return float(tried[id(measured)][place]) * float(measured.measure.grid.step)


def _half(one: Estimated) -> float:
    return float(one.high[0] - one.low[0]) / 2
