"""Values of a column pooled into bins that hold enough rows, at several resolutions: all chosen from noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_BINS = 1500  # of all columns together
WIDER = 1.2  # by so much more is to be in a bin, until there are few enough


def pooled(shares: Floats, least: float) -> Integers:
    """Return the bin of each value: neighbours are pooled until they hold `least`; one that holds it stands alone.

    What stands alone is stepped over, so that the values on both sides of it may be in one bin.

    Example:
        >>> pooled(np.array([0.05, 0.5, 0.06, 0.3, 0.09]), 0.1)
        array([0, 1, 0, 2, 0])
    """
    bins, latest, held = np.empty(shares.size, dtype=np.int64), -1, np.inf  # a new bin is begun at first
    count, last_pool = 0, -1
    for value, share in enumerate(shares):
        if share >= least:
            bins[value], count = count, count + 1
            continue
        if held >= least:
            latest, held, count, last_pool = count, 0.0, count + 1, latest
        bins[value], held = latest, held + share
    if held < least and last_pool >= 0:  # what is left over joins the bin before it
        bins[bins == latest] = last_pool
    return np.unique(bins, return_inverse=True)[1]


def pooled_to(shares: Floats, least: float, most: int | None) -> Integers:
    """Return the bin of each value as `pooled` does, with `least` raised until there are at most so many bins.

    Example:
        >>> pooled_to(np.full(6, 1 / 6), 0.1, 3)
        array([0, 0, 1, 1, 2, 2])
    """
    bins = pooled(shares, least)
    while most is not None and bins.max() >= most:
        least *= WIDER
        bins = pooled(shares, least)
    return bins


def even_share(sizes: Sequence[int], most: int) -> int:
    """Return how many bins a column may have at most, so that all have at most so many: at least 1.

    Example:
        >>> even_share([2, 100, 100], 52)
        25
    """
    left = most
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(share, 1)
        left -= size
    return max(sizes)


def held(bins: Integers, shares: Floats) -> Floats:
    """Return what each bin holds.

    Example:
        >>> held(np.array([0, 1, 0]), np.array([0.25, 0.5, 0.25]))
        array([0.5, 0.5])
    """
    return np.asarray(np.bincount(bins, shares), dtype=np.float64)


@dataclass(frozen=True)
class Levels:
    """The bins of all columns at all levels: of each level one long row, column after column.

    Args:
        bins: Of each column, the bin of each value at the finest level.
        coarser: Of each further level and column, the bin of each finest bin.
    """

    bins: Sequence[Integers]
    coarser: Sequence[Sequence[Integers]]

    @classmethod
    def of(cls, shares: Sequence[Floats], least: Sequence[float], most: int | None = None) -> Levels:
        """Pool values by their shares until bins hold `least[0]`, and those bins further for each number after it.

        Args:
            shares: Of each column, the share of each value.
            least: What a bin holds at least, by level.
            most: How many bins a column has at most; any number unless told.
        """
        bins = [pooled_to(share, least[0], most) for share in shares]
        within = [held(bin_, share) for bin_, share in zip(bins, shares, strict=True)]
        return cls(bins, [[pooled(share, bound) for share in within] for bound in least[1:]])

    @cached_property
    def sizes(self) -> Integers:
        """How many bins each column has, by level."""
        finest = [int(bins.max()) + 1 for bins in self.bins]
        return np.array([finest, *([int(bins.max()) + 1 for bins in level] for level in self.coarser)])

    @cached_property
    def starts(self) -> Integers:
        """Where the bins of each column begin, by level."""
        return np.cumsum(self.sizes, axis=1) - self.sizes

    @property
    def finest(self) -> int:
        """How many bins there are at the finest level."""
        return int(self.sizes[0].sum())

    @cached_property
    def owners(self) -> Integers:
        """The column of each finest bin."""
        return np.repeat(np.arange(len(self.bins)), self.sizes[0])

    @cached_property
    def leads(self) -> list[Integers]:
        """Of each level, where each finest bin is in its row."""
        coarser = [
            np.concatenate([start + bins for start, bins in zip(starts, columns, strict=True)])
            for starts, columns in zip(self.starts[1:], self.coarser, strict=True)
        ]
        return [np.arange(self.finest), *coarser]

    @cached_property
    def merging(self) -> list[csr_array]:
        """Of each coarser level, the matrix that adds finest bins up to its own."""
        return [_adding(lead, int(sizes.sum())) for lead, sizes in zip(self.leads[1:], self.sizes[1:], strict=True)]

    @cached_property
    def by_column(self) -> csr_array:
        """The matrix that adds finest bins up to columns."""
        return _adding(self.owners, len(self.bins))

    def slice(self, level: int, column: int) -> slice:
        """Where a column is in the row of a level."""
        start = int(self.starts[level, column])
        return slice(start, start + int(self.sizes[level, column]))

    def of_values(self, level: int, column: int) -> Integers:
        """Return the bin of each value of a column at a level."""
        return self.coarser[level - 1][column][self.bins[column]] if level else self.bins[column]

    def merged(self, table: NDArray[np.int64], level: int, one: int, other: int) -> NDArray[np.int64]:
        """Return a table of two columns at a coarser level, from that of their finest bins."""
        if level == 0:
            return table
        rows, columns = self.coarser[level - 1][one], self.coarser[level - 1][other]
        made = np.zeros(self.sizes[level][[one, other]], dtype=table.dtype)
        np.add.at(made, (rows[:, np.newaxis], columns), table)
        return made


def _adding(places: Integers, count: int) -> csr_array:
    """Return the matrix that adds rows up at their places: sparse, and so ten times as fast as `reduceat`."""
    ones = np.ones(places.size, dtype=np.float32)
    return csr_array((ones, (places, np.arange(places.size))), shape=(count, places.size))
