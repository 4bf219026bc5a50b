"""What a plan measures before noise, as vectors that can be compared: the law of privacy is about these."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import ibis
import numpy as np

from sitr.query.execution import _cells, _rows, _whole
from sitr.query.measurements import Bins, Distinct, Groups, Sums, Units
from sitr.query.planner import Plan
from sitr.tables.duckdb import DuckDB
from sitr.tables.emitter import Emitter, mixed
from sitr.tables.source import _key

Vector = dict[Any, Any]  # exact whole numbers, by group and place


def measurer(plan: Plan, source: DuckDB, key: int) -> Callable[[], list[Vector]]:
    """Return what measures the exact vector of each measurement, on the rows of the moment; absent groups are 0.

    The queries are written once: most of the time of a small one is spent on its text.
    """
    texts = {id(tally): source.compiled(source._emitter(_key(key)).tally(tally)) for tally in plan.tallies}

    def vectors() -> list[Vector]:
        run = source._connection.con.execute
        tables = {place: run(text).to_arrow_table() for place, text in texts.items()}
        return [_vector(plan, one, tables) for one in plan.measurements]

    return vectors


def _vector(plan: Plan, one: Any, tables: dict[int, Any]) -> Vector:
    if isinstance(one, Sums):
        assert plan.tally is not None
        table = tables[id(plan.tally)]
        moments = {powers: _whole(table, f"sum{plan.tally.sums.index(powers)}") for powers in one.design.sums}
        statistics = one.design.statistics(moments, one.widths)
        return {
            (group, at): int(statistics[row, at])
            for row, group in enumerate(_rows(table, len(plan.keys)))
            for at in range(one.design.count)
        }
    if isinstance(one, (Units, Groups)):
        assert plan.tally is not None
        table = tables[id(plan.tally)]
        column = "units" if plan.bound is not None else f"sum{plan.tally.sums.index(())}"
        return dict(zip(_rows(table, len(plan.keys)), _whole(table, column).tolist(), strict=True))
    assert isinstance(one, (Distinct, Bins))
    table = tables[id(one.tally)]
    groups, counts = _rows(table, len(plan.keys)), _whole(table, "sum0").tolist()
    if isinstance(one, Distinct):
        return dict(zip(groups, counts, strict=True))
    made: Vector = defaultdict(int)
    for group, cell, count in zip(groups, _cells(table).tolist(), counts, strict=True):
        place = int(np.searchsorted(np.array(one.edges), cell, side="right")) - 1
        if cell >= 0 and 0 <= place < len(one.edges) - 1:
            made[group, place] += count
    return dict(made)


def moves(first: Vector, second: Vector) -> list[int]:
    """Return how far each number moves."""
    keys = first.keys() | second.keys()
    return [abs(first.get(key, 0) - second.get(key, 0)) for key in keys]


def broken(plan: Plan, first: list[Vector], second: list[Vector]) -> Iterator[str]:
    """Say which measurements move by more than their reach between neighbours."""
    for one, before, after in zip(plan.measurements, first, second, strict=True):
        moved = moves(before, after)
        if isinstance(one, Groups):
            if max(moved, default=0) > 1 or sum(moved) > one.selection.max_groups_per_unit:
                yield f"{one.label}: {moved}"
            continue
        reach, unit = one.noise.reach, one.noise.unit  # type: ignore[union-attr]
        far = math.sqrt(sum(move * move for move in moved))
        if sum(moved) > reach.l1 * unit or far > reach.l2 * unit * (1 + 1e-12):
            yield f"{one.label}: moves {sum(moved)} and {far}, where {reach} times {unit} is allowed"


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
