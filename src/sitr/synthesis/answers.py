"""How many rows there are, by what was measured: with an interval where its noise tells one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tables.codes import Code
from .conditions import share
from .measured import Mask, Measured, Sum, averaged
from .measuring import Learnt

NOT_MEASURED = "not measured: no interval"
DEVIATIONS = 1.959964  # within which 95 of 100 normal numbers lie
ADAPTIVE = 1.05  # times as wide for two columns: noise in a table helps to decide how it is measured again (0037)
WHOLE = 0.5  # rows: noise is of whole rows, and half of one may be lost at each end


@dataclass(frozen=True)
class Count:
    """How many rows there are, about.

    Attributes:
        value: Where there is an interval, a sum of noisy counts: right on average, for two columns nearly so, and it
            may be negative. Elsewhere what the model says.
        low: Where an interval begins that holds the truth at least 95 times in 100, which for two columns is not proved
            but simulated (decision 0037); None where nothing tells,
        high: and where it ends.
        notes: Remarks.

    Example:
        >>> print(Count(120.4, 100.0, 140.8))
        120 (from 100 to 141 with 95 %)
        >>> print(Count(120.4, None, None))
        120 (not measured: no interval)
    """

    value: float
    low: float | None
    high: float | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            said = NOT_MEASURED
        else:
            said = f"from {math.floor(self.low):,} to {math.ceil(self.high):,} with 95 %"
        return "\n".join([f"{self.value:z,.0f} ({said})", *self.notes])


def count_rows(learnt: Learnt, codes: Sequence[Code], conditions: Iterable[tuple[int, Any]]) -> Count:
    """Return how many rows have wanted values.

    Args:
        learnt: What was learnt.
        codes: How the columns are numbered.
        conditions: Columns, by number, and what is wanted of each: as `Code.allowed` takes it.

    Privacy: post-processing of what was measured (THEORY 6.3).
    """
    notes, wanted, parts = [], dict[int, Mask](), dict[int, Any]()
    for column, one in conditions:
        code = codes[column]
        mask = code.whole(one)
        if mask is None:
            notes.append(f"{code.name}: the range cuts a cell in two, and cells were counted whole.")
        else:
            wanted[column] = wanted.get(column, True) & mask
        parts[column] = np.minimum(parts.get(column, 1.0), code.parts(one))
    narrowed = {column: mask for column, mask in wanted.items() if not mask.all()}
    found = None if notes else measured_sum(learnt.measured, narrowed)
    if found is None:
        if not notes and any(narrowed.keys() <= set(one.columns) for one in learnt.measured):
            names = ", ".join(codes[column].name for column in narrowed)
            notes.append(f"{names}: counted together in wider cells, which the condition cuts.")
        return Count(learnt.rows * share(learnt, parts), None, None, tuple(notes))
    return Count(found.value, *_interval(found, len(narrowed)))


def measured_sum(measured: Sequence[Measured], wanted: Mapping[int, Mask]) -> Sum | None:
    """Return how many rows have wanted values by the tables that were measured, or None where none tells.

    All columns are counted, whatever their noise is; so what asks for one column takes its counts, and what asks for
    none takes those of all. Where several columns are asked for, those tables tell that have the fewest others beside
    them, and of these the one whose noise adds up to least. Nothing else is averaged: to add a table that is there
    *because* a number was large to that number would favour some errors.
    """
    if not all(mask.any() for mask in wanted.values()):
        return Sum(0.0, 0.0)
    if not wanted:
        return averaged([found for one in measured if len(one.columns) == 1 and (found := one.total(wanted))])
    tables = [one for one in measured if wanted.keys() <= set(one.columns)]
    for width in sorted({len(one.columns) for one in tables}):
        sums = [found for one in tables if len(one.columns) == width and (found := one.total(wanted))]
        if sums:
            return min(sums, key=lambda one: one.variance)
    return None


def _interval(found: Sum, columns: int) -> tuple[float, float]:
    """Where the truth is by counts of so many columns, 95 times in 100: no number of rows is negative."""
    if not found.variance:
        return found.value, found.value
    width = DEVIATIONS * (ADAPTIVE if columns > 1 else 1.0) * math.sqrt(found.variance) + WHOLE
    low, high = (float(np.maximum(found.value + way * width, 0.0)) for way in (-1, 1))
    return low, high
