"""From a query to its plan: which measurements, what each of them may cost, and what the engine is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .. import _validate
from ..accounting import Event, compose
from ..errors import InvalidArgument, NotAllowed
from ..mechanisms import histogram_quantiles, select_partitions
from ..mechanisms.histograms import MOST_CELLS
from ..mechanisms.partitions import MOST_GROUPS as MOST_SELECTED
from ..tables.declaration import Declaration
from ..tables.domains import FINE, Domain
from ..tables.expressions import Bucket, Column, Expression
from ..tables.relations import Derive, Filter, Relation, table_of
from ..tables.tally import THERE, Bound, Key, Measure, Powers, Tally
from .aggregates import DEGREES, OF_RANKS, Aggregate
from .designs import Design, Total
from .facts import Facts, chosen_bound
from .measurements import Bins, Distinct, Groups, Measurement, Ranks, Sums, Units, widths
from .noise import LARGEST, Kind, Noise, Reach, deviation, ratio, rho_of
from .query import Query

FARTHEST = 2**58  # steps in the sum of all rows that may ever be
KEYS = 0.2  # the part of ε that the choice of groups takes, where no count of units is asked for
CELLS = 2**20  # of the grids on which quantiles of all groups are found; each group has so few at least:
FEWEST_CELLS = 2**8


@dataclass(frozen=True)
class Target:
    """What a release may cost: ε, with a δ; or ρ."""

    epsilon: float | None
    delta: float
    rho: float | None = None

    @classmethod
    def of(cls, declared: Declaration, epsilon: float | None, delta: float | None, rho: float | None) -> Target:
        """Check what was asked for; the declared δ stands in for one that was not."""
        if epsilon is None and rho is None:
            raise InvalidArgument(
                "say how much to spend: epsilon or rho.",
                why="the more you spend, the less noise there is.",
                do="pass epsilon=0.1, or rho=0.005; without either, explain() shows what several prices buy.",
            )
        if epsilon is not None and rho is not None:
            raise InvalidArgument("both epsilon and rho were given.", do="pass one of them.")
        if epsilon is not None:
            _validate.real("epsilon", epsilon, 1e-9, 1e4)
        else:
            _validate.real("rho", rho, 1e-18, 1e8)
        return cls(epsilon, _validate.real("delta", declared.delta if delta is None else delta, 0, 0.5), rho)


@dataclass(frozen=True)
class Layout:
    """What is measured, before it has a price.

    Attributes:
        designs: Of the sums, with the measures of each.
        units: Whether units are counted.
        distinct: Aggregates that count different values.
        bins: Histograms.
        ranks: Quantiles, by the expression and the bounds that they are of.
    """

    designs: tuple[tuple[Design, Mapping[str, tuple[Expression, Any]]], ...]
    units: bool
    distinct: tuple[tuple[str, Aggregate], ...]
    bins: tuple[tuple[str, Aggregate], ...]
    ranks: tuple[tuple[tuple[str, Aggregate], ...], ...]

    @property
    def parts(self) -> int:
        """How many measurements share the price."""
        return len(self.designs) + self.units + len(self.distinct) + len(self.bins) + len(self.ranks)


@dataclass(frozen=True)
class Plan:
    """How a query is answered, and what it costs; nothing was read to make it.

    Attributes:
        query: What is asked.
        keys: What rows are grouped by.
        bound: What is kept of a unit; None where each row is a unit.
        measurements: In the order in which they are made.
        tally: What the engine is asked for, for sums and units.
        event: What a release costs.
        kind: Of the noise on sums and counts.
        places: Where each aggregate finds its measurement, among `measurements`.
    """

    query: Query
    keys: tuple[Key, ...]
    bound: Bound | None
    measurements: tuple[Measurement, ...]
    tally: Tally | None
    event: Event
    kind: Kind
    places: Mapping[str, int]

    @property
    def selects(self) -> bool:
        """Whether groups are found privately."""
        return any(key.known is None for key in self.keys)

    @property
    def spends_delta(self) -> bool:
        """Whether a release has an infinite loss with a small chance, or noise that has no pure ε."""
        return self.kind == "gaussian" or self.selects

    def delta_of(self, target: Target) -> float:
        """Return the δ that a release is priced with: none where it spends none, or is priced in ρ."""
        return target.delta if self.spends_delta and target.rho is None else 0.0

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """All that the engine is asked for."""
        own = [one.tally for one in self.measurements if isinstance(one, (Distinct, Bins, Ranks))]
        return tuple(([self.tally] if self.tally is not None else []) + own)

    @property
    def groups(self) -> int | None:
        """How many groups the answer has, where that is public."""
        return None if self.selects else self.query.count_groups(self.keys)


def plan(query: Query, declared: Declaration, target: Target, facts: Facts) -> Plan:
    """Return the plan of a query at a price.

    Raises:
        InvalidArgument: A column is unknown, or has no bounds.
        NotAllowed: No proof covers the query, or it needs a δ.

    Privacy: every unit moves each measured vector by no more than its `Reach`, since the engine bounds what is kept of
    it before it adds up; the measurements are composed (THEORY 4.5), and their cost is at most the target.
    """
    query.check(declared)
    return _Planner(query, declared, target, facts).plan()


class _Planner:
    def __init__(self, query: Query, declared: Declaration, target: Target, facts: Facts) -> None:
        self.query, self.declared, self.target, self.facts = query, declared, target, facts
        self.schema = query.relation.schema(declared)
        self.keys = query.keys(declared)
        self.selects = any(key.known is None for key in self.keys)
        self.layout, self.places = _layout(query, self.schema, selects=self.selects)
        self.totals = self._totals()
        self.max_rows = max(table_of(declared, name).max_rows for name in query.relation.tables())

    def plan(self) -> Plan:
        epsilon, rho, selection = self._split()
        self.bound = self._bound(epsilon, rho)
        self.kind, self.cost = self._kind(epsilon, rho)
        groups = self._groups(selection)
        measured = [*groups, *self._measured()]
        places = {name: place + len(groups) for name, place in self.places.items()}
        if self.layout.units is False:
            places |= {name: 0 for name, one in self.query.aggregates.items() if one.kind == "count_units"}
        event = compose(*(one.event for one in measured))
        return Plan(self.query, self.keys, self.bound, tuple(measured), self._tally(measured), event, self.kind, places)

    def _totals(self) -> set[Design]:
        """The designs of which nothing but a sum is asked for."""
        asked: dict[int, set[str]] = {}
        for name, place in self.places.items():
            asked.setdefault(place, set()).add(self.query.aggregates[name].kind)
        return {design for place, (design, _) in enumerate(self.layout.designs) if asked[place] == {"sum"}}

    # The price

    def _split(self) -> tuple[float | None, float | None, float]:
        """The ε, or ρ, of the measurements, and the ε of the choice of groups."""
        epsilon, rho = self.target.epsilon, self.target.rho
        if not self.selects:
            return epsilon, rho, 0.0
        if self.target.delta <= 0:
            raise NotAllowed(
                "the groups are not public, and to find them privately needs a δ.",
                do="declare categories for the key, list its values, or pass delta=1e-6.",
            )
        if epsilon is None:
            raise NotAllowed("the groups are not public; to find them is priced in ε and δ.", do="pass epsilon, delta.")
        counted = any(one.kind == "count_units" for one in self.query.aggregates.values())
        share = 1 / (1 + self.layout.parts) if counted or self.layout.parts == 0 else KEYS
        return epsilon * (1 - share), None, epsilon * share

    def _kind(self, epsilon: float | None, rho: float | None) -> tuple[Kind, float]:
        """The noise that deviates less, and what each measurement may cost in its measure."""
        parts = max(self.layout.parts, 1)
        reach = self._reach()
        if rho is not None:
            return "gaussian", rho / parts
        assert epsilon is not None
        each = epsilon / parts  # 0 where all of it goes into the choice of groups: then nothing else is measured
        delta = self.target.delta / 2 if self.selects else self.target.delta
        if not epsilon or delta <= 0 or self.layout.ranks:
            return "laplace", each
        gaussian = rho_of(epsilon, delta) / parts
        if deviation("gaussian", gaussian, reach) < deviation("laplace", each, reach):
            return "gaussian", gaussian
        return "laplace", each

    def _bound(self, epsilon: float | None, rho: float | None) -> Bound | None:
        most = self.query.most_rows(self.declared)
        if most is None:
            return None
        limits, one_in_group = self.query.limits, self.query.one_in_group()
        if limits.max_rows_per_unit is not None or limits.by_group:
            return limits.bound(most, one_in_group=one_in_group)
        if one_in_group:
            return Bound(groups=most if self.selects else min(most, self._known_groups()), rows_per_group=1)
        cost = epsilon if rho is None else math.sqrt(2 * rho)
        noise = ratio("laplace", (cost or 1.0) / max(self.layout.parts, 1))
        return chosen_bound(self.facts, most, noise, self._known_groups())

    def _known_groups(self) -> int:
        return self.query.count_groups(self.keys)

    def _reach(self, *, per_group: int | None = None) -> Reach:
        """How far a unit moves counts of rows, or with `per_group` what it has at most so many of in a group."""
        if self.bound is None:
            return Reach(1, 1.0).doubled(self.declared.adjacency)
        if per_group is not None:
            groups = self.bound.most_groups
            if not self.selects:
                groups = min(groups, self._known_groups())
            return Reach(groups * per_group, math.sqrt(groups) * per_group).doubled(self.declared.adjacency)
        return Reach(self.bound.l1, self.bound.l2).doubled(self.declared.adjacency)

    # The measurements

    def _groups(self, epsilon: float) -> list[Groups]:
        if not self.selects:
            return []
        most = 1 if self.bound is None else self.bound.most_groups
        if most > MOST_SELECTED:
            raise NotAllowed(
                f"groups that are found privately, of which one unit may be in {most}.",
                do=f"pass max_groups_per_unit, {MOST_SELECTED} at most.",
            )
        delta = self.target.delta if self.kind == "laplace" else self.target.delta / 2
        adjacency = self.declared.adjacency
        return [Groups(select_partitions(epsilon=epsilon, delta=delta, max_groups_per_unit=most, adjacency=adjacency))]

    def _measured(self) -> list[Measurement]:
        made: list[Measurement] = [self._sums(design, values) for design, values in self.layout.designs]
        if self.layout.units:
            made.append(Units(self._noise(self._reach(per_group=1), 1)))
        made += [self._distinct(name, one) for name, one in self.layout.distinct]
        made += [self._bins(name, one) for name, one in self.layout.bins]
        return made + [self._ranks(wanted) for wanted in self.layout.ranks]

    def _noise(self, reach: Reach, unit: int) -> Noise:
        return Noise(self.kind, self.cost, reach, unit, self.declared.adjacency)

    def _sums(self, design: Design, values: Mapping[str, tuple[Expression, Any]]) -> Sums:
        degree = sum(design.degrees)
        finest = self._finest(max(degree, 1))
        counted = degree == 0  # whether it is there is all that is asked of a value
        measures = {
            name: Measure(value, THERE) if counted else self._measure(value, bounds, finest)
            for name, (value, bounds) in values.items()
        }
        used: Design | Total = design
        if design in self.totals:
            total = Total(design.measures, next(iter(measures.values())).grid.span)
            used = total if total.unit({}) <= self._drawable() else design
        return Sums(used, measures, self._noise(self._reach(), used.unit(widths(measures))))

    def _finest(self, degree: int) -> int:
        """How many steps bounds may be apart: no sum over all rows leaves 64 bits, and the noise can be drawn."""
        return max(int(min(FINE, (FARTHEST / self.max_rows) ** (1 / degree), self._drawable() ** (1 / degree))), 2)

    def _drawable(self) -> float:
        """How many steps a row may have: the samplers draw the noise that covers it."""
        reach = self._reach().l1  # the larger one
        return LARGEST[self.kind] / (4 * reach * max(ratio(self.kind, self.cost), 1.0))

    def _measure(self, value: Expression, bounds: Any, finest: int) -> Measure:
        try:
            return Measure(value, _tightened(value.domain(self.schema), bounds).within(None, finest=finest))
        except InvalidArgument as error:
            raise InvalidArgument(f"{value}: {error.what}", why=error.why, do=error.do) from None

    def _distinct(self, name: str, one: Aggregate) -> Distinct:
        tally = Tally(self.query.relation, self.keys, self.bound, {}, distinct=one.value)
        return Distinct(name, tally, self._noise(self._reach(), 1))

    def _bins(self, name: str, one: Aggregate) -> Bins:
        assert one.value is not None
        relation, value = self._column(one.value)
        inside = Filter(relation, value.between(one.edges[0], one.edges[-1]))
        bucket = Bucket(value, one.edges[:-1])
        measure = Measure(bucket, bucket.domain(inside.schema(self.declared)))
        tally = Tally(inside, self.keys, self.bound, {"cell": measure}, cells="cell")
        return Bins(name, tally, one.edges, self._noise(self._reach(), 1))

    def _column(self, value: Expression) -> tuple[Relation, Expression]:
        """The rows with a value as a column: it is compared with every edge, and would be written down each time."""
        if isinstance(value, Column):
            return self.query.relation, value
        name = "value"
        while name in self.schema:
            name += "_"
        return Derive(self.query.relation, ((name, value),)), Column(name)

    def _ranks(self, wanted: tuple[tuple[str, Aggregate], ...]) -> Ranks:
        first = wanted[0][1]
        assert first.value is not None
        cells = min(max(CELLS // self._known_groups(), FEWEST_CELLS), MOST_CELLS)
        measure = self._measure(first.value, first.bounds, cells - 1)
        mechanism = histogram_quantiles(
            q=[one.q or 0.0 for _, one in wanted],
            cells=measure.width + 1,
            max_rows=1 if self.bound is None else self.bound.l1,
            epsilon=self.cost if self.kind == "laplace" else math.sqrt(2 * self.cost),  # (THEORY 3.1)
            adjacency=self.declared.adjacency,
        )
        tally = Tally(self.query.relation, self.keys, self.bound, {"cell": measure}, cells="cell")
        return Ranks(measure, {name: one.q or 0.0 for name, one in wanted}, tally, mechanism)

    def _tally(self, measured: list[Measurement]) -> Tally | None:
        sums = [one for one in measured if isinstance(one, Sums)]
        units = self.selects or self.layout.units
        if not sums and not units:
            return None
        measures = {name: measure for one in sums for name, measure in one.measures.items()}
        wanted: dict[Powers, None] = {powers: None for one in sums for powers in one.design.sums}
        wanted |= {(): None} if units and self.bound is None else {}
        return Tally(
            self.query.relation, self.keys, self.bound, measures, tuple(wanted), units and self.bound is not None
        )


def _tightened(domain: Domain, bounds: Any) -> Domain:
    """A domain with the bounds of the query, which may be no wider than the declared ones."""
    if bounds is None:
        return domain
    low, high = (domain.measure(end) for end in bounds)
    if domain.bounded:
        low, high = max(low, domain.ends[0]), min(high, domain.ends[1])
    if not low < high:
        raise InvalidArgument("bounds are not in order, or outside the declared ones.")
    grid = Fraction(1, math.lcm(low.denominator, high.denominator)) if domain.float else domain.step
    return replace(domain, step=grid, lower=math.ceil(low / grid), upper=math.floor(high / grid))


def _layout(query: Query, schema: Mapping[str, Domain], *, selects: bool) -> tuple[Layout, dict[str, int]]:
    """Which measurements the aggregates share, and where each finds its own."""
    asked = list(query.aggregates.items())
    designs = _designs([(name, one) for name, one in asked if one.kind in DEGREES], schema)
    units = any(one.kind == "count_units" for _, one in asked) and not selects
    distinct = tuple((name, one) for name, one in asked if one.kind == "count_distinct")
    bins = tuple((name, one) for name, one in asked if one.kind == "histogram")
    by_value: dict[str, list[tuple[str, Aggregate]]] = {}
    for name, one in asked:
        if one.kind in OF_RANKS:
            by_value.setdefault(_identity(one.value, one.bounds), []).append((name, one))
    ranks = tuple(tuple(wanted) for wanted in by_value.values())
    places = {name: place for place, (_, _, names) in enumerate(designs) for name in names}
    after = len(designs)
    places |= {name: after for name, one in asked if one.kind == "count_units"}
    after += units
    places |= {name: after + place for place, (name, _) in enumerate((*distinct, *bins))}
    after += len(distinct) + len(bins)
    places |= {name: after + place for place, wanted in enumerate(ranks) for name, _ in wanted}
    return Layout(tuple((design, values) for design, values, _ in designs), units, distinct, bins, ranks), places


def _designs(
    asked: list[tuple[str, Aggregate]], schema: Mapping[str, Domain]
) -> list[tuple[Design, Mapping[str, tuple[Expression, Any]], list[str]]]:
    """Of the same values the highest degree first, which covers the others; a count of rows if nothing else has one."""
    made: list[tuple[Design, Mapping[str, tuple[Expression, Any]], list[str]]] = []
    shared: dict[tuple[str, ...], list[int]] = {}  # the places of designs of the same values
    for name, one in sorted(asked, key=lambda item: -DEGREES[item[1].kind]):
        if one.value is None:
            continue
        values = [(one.value, one.bounds)] + ([(one.other, one.other_bounds)] if one.other is not None else [])
        known = shared.setdefault(tuple(_identity(value, bounds) for value, bounds in values), [])
        place = next((place for place in known if min(made[place][0].degrees) >= DEGREES[one.kind]), None)
        if place is None:
            known.append(len(made))
            names = tuple(f"x{len(made)}_{at}" for at, _ in enumerate(values))
            degrees = (DEGREES[one.kind],) * len(values)
            made.append((Design(names, degrees), dict(zip(names, values, strict=True)), [name]))
        else:
            made[place][2].append(name)
    counts = [name for name, one in asked if one.value is None]
    if counts and not made:
        return [(Design((), ()), {}, counts)]
    if counts:
        best = min(range(len(made)), key=lambda place: (_optional(made[place][1], schema), made[place][0].count))
        design, values_of, names_of = made[best]
        made[best] = (replace(design, missing=_optional(values_of, schema)), values_of, [*names_of, *counts])
    return made


def _identity(value: Expression | None, bounds: Any) -> str:
    """What aggregates that share a measurement agree in; by text alone, a column named "a + b" would be a sum."""
    assert value is not None
    return f"{value.to_dict()} {bounds}"


def _optional(values: Mapping[str, tuple[Expression, Any]], schema: Mapping[str, Domain]) -> bool:
    """Whether a row may lack one of the values."""
    return not all(value.domain(schema).required for value, _ in values.values())
