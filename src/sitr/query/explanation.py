"""What a plan says before anything is read: each measurement with its noise and price, the errors, and what is left."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import markup
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
        unit: Whom the promise protects, in a word.
        public_read: Whether rows of public tables were read, to list groups.
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
    unit: str = "unit"
    public_read: bool = False

    @property
    def queries(self) -> tuple[str, ...]:
        """What the engine will be asked, as text in lines."""
        return tuple(one.pretty for one in self.statements)

    def __str__(self) -> str:
        above = [self._cost(), "", *_aligned(self._measurements()), "", *_aligned(self._errors())]
        return "\n".join([*above, *self._below()])

    def __repr__(self) -> str:
        return f"Explanation({self._cost()})"

    def _repr_html_(self) -> str:
        tables = [markup.table(head, rows) for head, *rows in (self._measurements(), self._errors())]
        return markup.page(markup.lines(self._cost()), *tables, markup.lines(*self._below()))

    def _cost(self) -> str:
        delta = f" at δ = {scientific(self.target.delta)}" if self.target.delta else ""
        cost = rounded_up(reckoned(float(self.epsilon), spent=True))
        read = "Of private tables no row" if self.public_read else "Nothing"
        return f"This would cost ε = {cost}{delta}. {read} has been read."

    def _measurements(self) -> list[tuple[str, ...]]:
        return [("measured", "noise", "event"), *((line.label, line.noise, line.event) for line in self.lines)]

    def _errors(self) -> list[tuple[str, ...]]:
        asked = self.plan.query.aggregates.items()
        errors = ((f"{name} = {aggregate}", self._error(name, aggregate)) for name, aggregate in asked)
        return [("answer", "95 % of the time, noise is within"), *errors]

    def _below(self) -> list[str]:
        """What stands under the numbers: what is dropped, what is left, and remarks."""
        below = [self._bounding(), *budget_lines(self.remaining), *self.notes]
        return below if self.lasting else [*below, IN_MEMORY]

    def half(self, name: str) -> str:
        """Return what the interval of an aggregate will reach to either side, as a text."""
        if self.plan.query.aggregates[name].kind in COUNTS:
            return f"± {math.ceil(self.errors[name] - 1e-9):,}"
        return f"± {self.errors[name]:.4g}"

    def _error(self, name: str, aggregate: Aggregate) -> str:
        return self.half(name) + ("" if aggregate.kind in COUNTS else self._at(name, aggregate))

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
        none = f"Each {self.unit} has one row here: none is dropped."
        return next(iter(bounding(self.plan, self.facts, self.unit)), none)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, in columns; the last one is as wide as it is."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]


def bounding(plan: Plan, facts: Facts, unit: str) -> tuple[str, ...]:
    """Return in a sentence what is kept of a unit, and about how much that drops; nothing where nothing is dropped."""
    bound = plan.bound
    if bound is None or one_row_per_unit(plan.query.relation):
        return ()
    if bound.rows is not None:
        what = f"At most {counted(bound.rows, 'row')} per {unit} {_are(bound.rows)} used"
    else:
        groups, rows = bound.groups or 1, bound.rows_per_group or 1
        each = "" if plan.query.one_in_group() else f", with at most {counted(rows, 'row')} in each,"
        what = f"At most {counted(groups, 'group')} per {unit}{each} {_are(groups)} used"
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
    unit: str = "unit",
) -> Explanation:
    """Return what a plan says."""
    kept = None if plan.bound is None else facts.kept(plan.bound.l1)
    size = known_size(plan, facts) or TYPICAL
    notes += (*_beside(plan), *remarks(plan))
    errors = expected_errors(plan, size)
    for one in plan.measurements:
        errors |= _rank_errors(one, size) if isinstance(one, Ranks) else {}
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
        unit=unit,
    )


def known_size(plan: Plan, facts: Facts) -> float | None:
    """Return about how many rows of a group are kept, by what is publicly known; None where that is nothing."""
    if facts.rows is None or not plan.groups:
        return None
    kept = 1.0 if plan.bound is None else facts.kept(plan.bound.l1)
    return max(facts.rows * (1.0 if kept is None else kept) / plan.groups, 1.0)


def expected_errors(plan: Plan, size: float) -> dict[str, float]:
    """Return about what the interval of each aggregate but quantiles reaches to either side, in a group of a size."""
    measured = {name: plan.measurements[place] for name, place in plan.places.items()}
    return {
        name: _error(plan.query.aggregates[name], one, size)
        for name, one in measured.items()
        if not isinstance(one, Ranks)
    }


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
        return f"{one.selection.noise}, ± {_noise_of(one):.3g}; listed from about {one.selection.threshold:,} units"
    if isinstance(one, Ranks):
        return f"laplace, ± {3 * one.mechanism.scales[-1]:.3g} rows in a part"
    width = float(additive(np.zeros((1, 1)), np.ones(1), one.noise.scale, one.noise.kind).high[0])
    if isinstance(one, Sums) and isinstance(one.design, Total):
        grid = next(iter(one.measures.values())).grid
        return f"{one.noise.kind}, ± {width * float(one.noise.unit * grid.step):.3g}"
    return f"{one.noise.kind}, ± {width:.3g} {'units' if isinstance(one, Units) else 'rows'}"


def _error(aggregate: Aggregate, measured: Measurement, size: float) -> float:
    """About what the interval of an aggregate reaches to either side, in a group of so many rows."""
    if isinstance(measured, Sums):
        rows = np.full((1, measured.design.count), size / measured.design.count)
        return _half(of_sums(aggregate, measured, rows))
    if isinstance(measured, Groups):
        return _noise_of(measured)
    assert isinstance(measured, (Units, Distinct, Bins))
    return _half(additive(np.zeros((1, 1)), np.ones(1), measured.noise.scale, measured.noise.kind, integers=True))


def _rank_errors(measured: Ranks, size: float) -> dict[str, float]:
    """The same of quantiles, in a group whose rows are spread evenly."""
    tried = measured.mechanism.expected_errors(size) * float(measured.measure.grid.step)
    return dict(zip(measured.wanted, tried.tolist(), strict=True))


def _noise_of(groups: Groups) -> float:
    """About what the interval of a count reaches to either side, of a group far above the threshold."""
    noise = groups.selection
    return _half(additive(np.zeros((1, 1)), np.ones(1), noise.scale, noise.noise, integers=True))


def _half(one: Estimated) -> float:
    return float(one.high[0] - one.low[0]) / 2
