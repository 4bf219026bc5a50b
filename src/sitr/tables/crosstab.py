"""Counts of several columns at once, in one pass over their rows: what is counted leaves, and no row does.

It stands on NumPy and Arrow alone: Spark counts in its own processes, to which this file is sent as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

Integers = NDArray[np.int64]
BATCH = 2**17  # rows that an engine hands over at a time
BLOCK = 2**16  # rows that are counted at a time: they stay in the cache of one core


@dataclass(frozen=True)
class Coder:
    """Makes whole numbers from 0 on of the values that an engine hands over.

    Attributes:
        values: The values that are listed; None where the engine counts in steps from 0 already.
        missing: The number of what is missing or not listed; None where there is no such row.
        bins: For each of these numbers, that of the bin it falls into.
    """

    values: Any
    missing: int | None
    bins: Integers

    @property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bins.max()) + 1

    def binned(self, column: Any) -> Integers:
        """Return the bin of each value of an Arrow column."""
        if self.values is not None:
            column = pyarrow.compute.index_in(column.cast(self.values.type), value_set=self.values)
        if self.missing is not None:
            column = column.fill_null(self.missing)
        return np.asarray(self.bins[column.to_numpy(zero_copy_only=False)])


@dataclass(frozen=True)
class Crosstab:
    """Tables of counts.

    Attributes:
        coders: Of each column.
        groups: The columns of each table, by number.

    Example:
        >>> yes = Coder(pyarrow.array(["no", "yes"]), None, np.arange(2))
        >>> rows = pyarrow.record_batch({"a": ["yes", "no", "yes"], "b": ["no", "no", "yes"]})
        >>> [table.tolist() for table in Crosstab((yes, yes), ((0,), (0, 1))).counts([rows])]
        [[1, 2], [[1, 0], [1, 1]]]
    """

    coders: tuple[Coder, ...]
    groups: tuple[tuple[int, ...], ...]

    def counts(self, batches: Iterable[Any]) -> list[Integers]:
        """Return how many rows are in each cell of each table."""
        flat = np.zeros(self.cells, dtype=np.int64)
        found = self._split(flat)
        for batch in batches:
            for start in range(0, batch.num_rows, BLOCK):
                self._add(found, batch.slice(start, BLOCK))
        return [counts.reshape(shape) for counts, shape in zip(found, self.shapes, strict=True)]

    def sparse(self, batches: Iterable[Any]) -> tuple[Integers, Integers]:
        """Return the cells that some row is in, of all tables one after the other, and how many are."""
        flat = np.concatenate([table.ravel() for table in self.counts(batches)])
        cells = np.flatnonzero(flat)
        return cells, flat[cells]

    def dense(self, cells: Integers, rows: Integers) -> list[Integers]:
        """Return the tables that have so many rows in these cells."""
        flat = np.zeros(self.cells, dtype=np.int64)
        flat[cells] = rows
        return [counts.reshape(shape) for counts, shape in zip(self._split(flat), self.shapes, strict=True)]

    def _split(self, flat: Integers) -> list[Integers]:
        return np.split(flat, np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """How many cells each table has, in each direction."""
        return [tuple(self.coders[column].size for column in group) for group in self.groups]

    @property
    def cells(self) -> int:
        """How many cells there are in all."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def _add(self, found: list[Integers], batch: Any) -> None:
        binned = [coder.binned(column) for coder, column in zip(self.coders, batch.columns, strict=True)]
        for counts, group in zip(found, self.groups, strict=True):
            counts += np.bincount(self._places(binned, group), minlength=counts.size)

    def _places(self, binned: Sequence[Integers], group: tuple[int, ...]) -> Integers:
        places = binned[group[0]]
        for column in group[1:]:
            places = places * self.coders[column].size + binned[column]
        return places
