"""A plan that was paid for, run once: aggregate, add noise, and make the numbers consistent."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from ..mechanisms import Mechanism
from ..tables.source import Source
from ..tables.tally import Powers, Tally, key_cells, rows_of
from . import consistency, selected
from .aggregates import COUNTS, OF_RANKS, Aggregate
from .answer import Answer
from .estimates import Estimated, additive, of_sums
from .listed import in_order
from .measurements import Bins, Distinct, Groups, Ranks, Sums, Units
from .noise import Noise
from .planner import Plan
from .selected import count_interval

Progress = Callable[[str], None]


class Execution:
    """One run of a plan.

    Args:
        plan: What is measured.
        source: The engine.
        progress: Is told which stage begins.
        unsafe_without_noise: For tests: exact numbers; the answer is stamped NOT PRIVATE.
        unsafe_key: For tests: the key by which rows are chosen.
    """

    def __init__(
        self,
        plan: Plan,
        source: Source,
        progress: Progress = lambda stage: None,
        *,
        unsafe_without_noise: bool = False,
        unsafe_key: int | None = None,
    ) -> None:
        self.plan, self.source, self.progress = plan, source, progress
        self.schema = plan.query.relation.schema(source.declared)
        self.unsafe = {"unsafe_without_noise": True} if unsafe_without_noise else {}
        self.unsafe_key = unsafe_key
        self.notes: list[str] = []
        self._tables: dict[int, Any] = {}  # what the engine returned, by tally; and what was made of it, once each:
        self._placings: dict[int, NDArray[np.int64]] = {}
        self._drawn: dict[int, NDArray[np.float64]] = {}
        self._ranked: dict[int, dict[str, Estimated]] = {}

    def answer(self) -> Answer:
        """Return the answer; it is not charged here."""
        plan = self.plan
        self._tables = {id(tally): self._fetched(tally) for tally in plan.tallies}
        self.progress("adding noise")
        self.groups, self.units = self._chosen()
        self._places = _places(plan, self.groups)
        keys = {key.name: [group[at] for group in self.groups] for at, key in enumerate(plan.keys)}
        bins = next((one for one in plan.measurements if isinstance(one, Bins)), None)
        if bins is not None:  # a histogram stands alone
            return self._histogram(bins, keys)
        return self._made(keys, {name: self._estimated(name) for name in plan.query.aggregates})

    def _fetched(self, tally: Tally) -> Any:
        self.progress("aggregating")
        return self.source.run(tally, unsafe_key=self.unsafe_key)

    # Groups

    def _chosen(self) -> tuple[list[tuple[Any, ...]], dict[tuple[Any, ...], int]]:
        """The groups of the answer, and what the choice says of their units."""
        plan = self.plan
        if not plan.selects:
            return plan.query.groups(plan.keys), {}
        selection = next(one for one in plan.measurements if isinstance(one, Groups)).selection
        assert plan.tally is not None
        table = self._tables[id(plan.tally)]
        names = rows_of(table, len(plan.keys))
        counts = _whole(table, self._units_column()).tolist()
        passed = selection.release(dict(zip(names, counts, strict=True)), **self.unsafe).value
        return in_order(passed), passed

    def _units_column(self) -> str:
        """Where the main tally has the number of units: where each row is one, it is that of rows."""
        assert self.plan.tally is not None
        return "units" if self.plan.bound is not None else f"sum{self.plan.tally.sums.index(())}"

    def _place(self, table: Any) -> NDArray[np.int64]:
        """Where each row of a result stands among the groups: looked up once for all columns of the result."""
        if id(table) not in self._placings:
            self._placings[id(table)] = self._places(table)
        return self._placings[id(table)]

    # Numbers

    def _noisy(self, noise: Noise, exact: NDArray[Any]) -> NDArray[np.float64]:
        """Statistics with noise, in rows."""
        if exact.size == 0:
            return np.zeros(exact.shape)
        mechanism: Mechanism = noise.mechanism(exact.size)
        released = mechanism.release(exact.ravel(), **self.unsafe).value
        return np.asarray(released, dtype=np.float64).reshape(exact.shape) / noise.unit

    def _placed(self, table: Any, column: NDArray[Any]) -> NDArray[Any]:
        """A column of the engine's result, in the order of the answer's groups; what is no group of it is left out."""
        found = np.zeros(len(self.groups), dtype=column.dtype)
        places = self._place(table)
        np.add.at(found, places[places >= 0], column[places >= 0])
        return found

    def _estimated(self, name: str) -> Estimated:
        aggregate = self.plan.query.aggregates[name]
        measured = self.plan.measurements[self.plan.places[name]]
        if isinstance(measured, Sums):
            return of_sums(aggregate, measured, self._statistics(measured))
        if isinstance(measured, Groups):
            selection, found = measured.selection, [self.units[group] for group in self.groups]
            values = np.array(found, dtype=np.float64)
            # What was chosen by its noise does not add up to what the noise of a sum says.
            return Estimated(values, *count_interval(values, selection))
        if isinstance(measured, Ranks):
            return self._ranks(measured)[name]
        assert isinstance(measured, (Units, Distinct))
        noisy = self._counted(measured)
        return additive(noisy, np.ones(1), measured.noise.scale, measured.noise.kind, integers=True)

    def _counted(self, measured: Units | Distinct) -> NDArray[np.float64]:
        tally = self.plan.tally if isinstance(measured, Units) else measured.tally
        assert tally is not None
        table = self._tables[id(tally)]
        column = self._units_column() if isinstance(measured, Units) else "sum0"
        return self._noisy(measured.noise, self._placed(table, _whole(table, column))[:, None])

    def _statistics(self, measured: Sums) -> NDArray[np.float64]:
        """The noisy statistics of a design: drawn once, however many aggregates read them."""
        known = self._drawn
        if id(measured) not in known:
            assert self.plan.tally is not None
            table = self._tables[id(self.plan.tally)]
            moments: dict[Powers, NDArray[Any]] = {
                powers: self._placed(table, _whole(table, f"sum{self.plan.tally.sums.index(powers)}"))
                for powers in measured.design.sums
            }
            known[id(measured)] = self._noisy(measured.noise, measured.design.statistics(moments, measured.widths))
        return known[id(measured)]

    def _ranks(self, measured: Ranks) -> dict[str, Estimated]:
        """Quantiles of all groups at once, in the units of the values."""
        known = self._ranked
        if id(measured) not in known:
            table = self._tables[id(measured.tally)]
            groups, cells, counts = self._place(table), _cells(table), _whole(table, "sum0")
            inside = (groups >= 0) & (cells >= 0)
            order = np.argsort(groups[inside], kind="stable")
            ends = np.searchsorted(groups[inside][order], np.arange(1, len(self.groups)))
            split = [np.split(column[inside][order], ends) for column in (cells, counts)]
            histograms = list(zip(*split, strict=True)) if self.groups else []
            known[id(measured)] = self._quantiles(measured, histograms)
        return known[id(measured)]

    def _quantiles(self, measured: Ranks, histograms: list[Any]) -> dict[str, Estimated]:
        if not histograms:
            empty = np.empty(0)
            return {name: Estimated(empty, empty, empty) for name in measured.wanted}
        found = measured.mechanism.release(histograms, **self.unsafe).value
        low, step = measured.measure.grid.span[0], float(measured.measure.grid.step)
        made = {}
        # Free, and what quantiles have to be: a higher one is not below a lower one.
        order = np.argsort(list(measured.wanted.values()), kind="stable")
        rising = {}
        for what in ("estimate", "low", "high"):
            column = np.array(getattr(found, what))
            column[:, order] = np.maximum.accumulate(column[:, order], axis=1)
            rising[what] = column
        for at, name in enumerate(measured.wanted):
            value, least, most = ((low + column[:, at]) * step for column in rising.values())
            made[name] = Estimated(value, least, most)
            rows = float(np.max(found.rank_error[:, at], initial=0.0))
            self.notes.append(f"{name} is at most {rows:,.0f} rows from the rank that was asked for, with 95 %.")
        return made

    def _histogram(self, measured: Bins, keys: dict[str, list[Any]]) -> Answer:
        """An answer with a row for each group and bin."""
        table = self._tables[id(measured.tally)]
        bins = len(measured.edges) - 1
        exact = np.zeros((len(self.groups), bins), dtype=np.int64)
        at = _cells(table) - 1  # from the edge below it
        groups = self._place(table)
        inside = (groups >= 0) & (at >= 0)
        np.add.at(exact, (groups[inside], at[inside]), _whole(table, "sum0")[inside])
        noisy = self._noisy(measured.noise, exact)
        column = additive(noisy.reshape(-1, 1), np.ones(1), measured.noise.scale, measured.noise.kind, integers=True)
        repeated = {key: [cell for cell in cells for _ in range(bins)] for key, cells in keys.items()}
        texts = [f"[{low}, {high})" for low, high in pairwise(measured.edges)]
        repeated[f"{measured.name}_bin"] = [*texts[:-1], f"{texts[-1][:-1]}]"] * len(self.groups)
        return self._made(repeated, {measured.name: column})

    def _possible(self, name: str) -> tuple[float, float]:
        """Between which numbers an aggregate lies whatever the data are; means and their like are there already."""
        aggregate, measured = self.plan.query.aggregates[name], self.plan.measurements[self.plan.places[name]]
        if aggregate.kind in COUNTS:
            return 0.0, math.inf
        if aggregate.kind == "sum" and isinstance(measured, Sums):
            ends = _ends(aggregate, measured)
            return 0.0 if ends[0] >= 0 else -math.inf, 0.0 if ends[1] <= 0 else math.inf
        return -math.inf, math.inf

    def _remarks(self, keys: dict[str, list[Any]], found: dict[str, Estimated]) -> list[str]:
        if self.plan.selects and not any(keys.values()):
            return ["No group had enough units to be listed: explain() says how many it takes."]
        empty = [remark for name, one in found.items() for remark in self._empty(name, one)]
        return [*selected.remarks(self.plan), *empty]

    def _empty(self, name: str, found: Estimated) -> list[str]:
        """A remark on a mean or a quantile of which noise has left nothing in some groups."""
        aggregate, measured = self.plan.query.aggregates[name], self.plan.measurements[self.plan.places[name]]
        if aggregate.kind != "mean" and not isinstance(measured, Ranks):
            return []
        assert isinstance(measured, (Sums, Ranks))
        least, most = map(float, _ends(aggregate, measured))
        nothing = int(np.sum((found.low <= least) & (found.high >= most)))
        where = f" in {nothing:,} of {len(self.groups):,} groups" if self.plan.keys else ""
        return [f"{name} says nothing{where}: its interval is all that is possible."] if nothing else []

    def _written(self, name: str) -> Callable[[NDArray[Any]], list[Any]]:
        """How the numbers of a column are written: those of dates and times as such."""
        value = self.plan.query.aggregates[name].value
        domain = None if value is None else value.domain(self.schema)
        if domain is None or domain.kind == "number" or self.plan.query.aggregates[name].kind not in OF_RANKS:
            return lambda numbers: list(numbers.tolist())
        return lambda numbers: [domain.moment(round(number)) for number in numbers.tolist()]

    def _made(self, keys: dict[str, list[Any]], found: dict[str, Estimated]) -> Answer:
        """The table, with counts that are whole and not negative, and intervals inside what is possible."""
        value: dict[str, list[Any]] = dict(keys)
        low, high, raw, error = {}, {}, {}, {}
        for name, one in found.items():
            counted = self.plan.query.aggregates[name].kind in COUNTS
            least, most = self._possible(name)
            written = self._written(name)
            value[name] = written(consistency.counts(one.raw) if counted else np.clip(one.raw, least, most))
            raw[name] = written(one.raw)
            low[name], high[name] = (written(np.clip(end, least, most)) for end in (one.low, one.high))
            error[name] = (np.maximum(one.high - one.raw, one.raw - one.low)).tolist()
        noises = {name: one.additive for name, one in found.items() if one.additive is not None}
        return Answer(
            value=value,
            error95=error,
            event=self.plan.event,
            private=not self.unsafe and self.unsafe_key is None,
            keys=tuple(keys),
            raw=raw,
            low=low,
            high=high,
            additive=noises,
            notes=(*self.notes, *self._remarks(keys, found)),
        )


def _ends(aggregate: Aggregate, measured: Sums | Ranks) -> tuple[Fraction, Fraction]:
    """The bounds that the values of an aggregate were clipped to."""
    measures = [measured.measure] if isinstance(measured, Ranks) else measured.measures.values()
    return next(one.grid.ends for one in measures if str(one.value) == str(aggregate.value))


def _whole(table: Any, name: str) -> NDArray[Any]:
    """A column of whole numbers; what an engine returns as something wider is read without loss, and missing is 0."""
    column = table.column(name)
    try:
        return np.asarray(column.cast(pyarrow.int64()).fill_null(0).to_numpy())
    except pyarrow.ArrowInvalid:  # more than 64 bits
        found = [0 if value is None else value for value in column.to_pylist()]
    values = [int(value) for value in found]
    if values != found:
        raise ValueError("a sum is not whole")
    small = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, dtype=np.int64 if small else object)


def _cells(table: Any) -> NDArray[np.int64]:
    """The cells of a histogram; -1 for rows without a value."""
    return np.array([-1 if cell is None else int(cell) for cell in table.column("cell").to_pylist()], dtype=np.int64)


def _places(plan: Plan, groups: list[tuple[Any, ...]]) -> Callable[[Any], NDArray[np.int64]]:
    """Where each row of a result stands among the groups; -1 where it is none of them."""
    if plan.selects or plan.query.together:
        order = {group: place for place, group in enumerate(groups)}
        return lambda table: np.array([order.get(row, -1) for row in rows_of(table, len(plan.keys))], dtype=np.int64)
    codes = [{value: place for place, value in enumerate(key.known or ())} for key in plan.keys]

    def placed(table: Any) -> NDArray[np.int64]:
        found = np.zeros(table.num_rows, dtype=np.int64)
        known = np.ones(table.num_rows, dtype=bool)
        for at, code in enumerate(codes):
            here = np.array([code.get(cell, -1) for cell in key_cells(table, at)], dtype=np.int64)
            known &= here >= 0
            found = found * len(code) + here
        return np.where(known, found, -1)

    return placed
