"""What a plan measures before noise, as vectors that can be compared: the law of privacy is about these."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ibis

from sitr.accounting import Composed
from sitr.query.execution import _cells, _whole
from sitr.query.measurements import Bins, Distinct, Groups, Ranks, Sums, Units
from sitr.query.planner import Plan
from sitr.tables.duckdb import DuckDB
from sitr.tables.emitter import Emitter, mixed
from sitr.tables.source import _key
from sitr.tables.tally import rows_of

Vector = dict[Any, Any]  # exact whole numbers, by group and place


def measurer(plan: Plan, source: DuckDB, key: int) -> Callable[[], list[Vector]]:
    """Return what measures the exact vector of each measurement, on the rows of the moment; absent groups are 0.

    The queries are written once: most of the time of a small one is spent on its text.
    """
    texts = {id(tally): source.compiled(source._emitter(_key(key)).tally(tally)) for tally in plan.tallies}

    def vectors() -> list[Vector]:
        run = source._connection.con.execute
        tables = {place: run(text).to_arrow_table() for place, text in texts.items()}
        return [measured(plan, one, tables) for one in plan.measurements]

    return vectors


def measured(plan: Plan, one: Any, tables: Mapping[int, Any]) -> Vector:
    """Return the exact vector of a measurement, from what the engine returned, by the identity of the tally."""
    if isinstance(one, (Sums, Units, Groups)):
        assert plan.tally is not None
        return _of_main(plan, one, tables[id(plan.tally)])
    table = tables[id(one.tally)]
    groups, counts = rows_of(table, len(plan.keys)), _whole(table, "sum0").tolist()
    if isinstance(one, Distinct):
        return dict(zip(groups, counts, strict=True))
    assert isinstance(one, (Bins, Ranks))
    first = 1 if isinstance(one, Bins) else 0  # of a histogram, cell 0 lies below the first edge
    made: Vector = defaultdict(int)
    for group, cell, count in zip(groups, _cells(table).tolist(), counts, strict=True):
        if cell >= first:
            made[group, cell] += count
    return dict(made)


def _of_main(plan: Plan, one: Sums | Units | Groups, table: Any) -> Vector:
    assert plan.tally is not None
    groups = rows_of(table, len(plan.keys))
    if not isinstance(one, Sums):
        column = "units" if plan.bound is not None else f"sum{plan.tally.sums.index(())}"
        return dict(zip(groups, _whole(table, column).tolist(), strict=True))
    moments = {powers: _whole(table, f"sum{plan.tally.sums.index(powers)}") for powers in one.design.sums}
    statistics = one.design.statistics(moments, one.widths)
    return {(group, at): int(statistics[row, at]) for row, group in enumerate(groups) for at in range(one.design.count)}


def moves(first: Vector, second: Vector) -> list[int]:
    """Return how far each number moves."""
    keys = first.keys() | second.keys()
    return [abs(first.get(key, 0) - second.get(key, 0)) for key in keys]


def broken(plan: Plan, first: list[Vector], second: list[Vector]) -> Iterator[str]:
    """Say which measurements move by more than their reach between neighbours."""
    for one, before, after in zip(plan.measurements, first, second, strict=True):
        moved = moves(before, after)
        l1, l2, each = allowed(one)
        far = math.sqrt(sum(move * move for move in moved))
        if sum(moved) > l1 or far > l2 * (1 + 1e-12) or max(moved, default=0) > each:
            yield f"{one.label}: moves {sum(moved)} and {far:g}, where {l1} and {l2:g} are allowed"


def allowed(one: Any) -> tuple[float, float, float]:
    """Return how far a measurement may move in ℓ1 and in ℓ2, and each of its numbers, by what is charged for it."""
    if isinstance(one, Groups):
        most = one.selection.max_groups_per_unit * (2 if one.event.adjacency == "replace_one" else 1)
        return most, math.sqrt(most), 1
    if isinstance(one, Ranks):  # every stage is charged with the same
        moved = {int(stage.sensitivity) for stage in _stages(one.event)}
        return min(moved), min(moved), math.inf
    reach, unit = one.noise.reach, one.noise.unit
    return reach.l1 * unit, reach.l2 * unit, math.inf


def _stages(event: Any) -> list[Any]:
    """The events that one is composed of, or itself."""
    return [stage for stage, _ in event.events] if isinstance(event, Composed) else [event]


def ordered_by_content(self: Emitter, table: Any, row_id: str | None) -> Any:
    """An order that both neighbours share, in place of a random column: equal rows are equal whichever is kept.

    The random column is independent of all else, row by row, so any order that depends on each row alone is a coupling
    of the two runs.
    """
    if self.key is not None and row_id is not None and row_id in table.columns:
        return mixed(table[row_id].cast("int64"), self.key)
    parts = [table[name].cast("string").fill_null("missing") for name in sorted(table.columns)]
    text = parts[0]
    for part in parts[1:]:
        text = text + ibis.literal("|") + part
    return (text + ibis.literal(str(self.key))).hash()
