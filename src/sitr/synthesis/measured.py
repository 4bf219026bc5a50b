"""What was measured, as it was measured: noisy numbers, and sums of them.

Counts of a column are right on average, with noise that was fixed before. How precisely two columns are measured, and
which of them again, is chosen by noise that is in their numbers already; so of two columns this is only nearly true
(decision 0037).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
OFF = math.sqrt(2 / math.pi)  # mean size of a normal number, in standard deviations


class Sum(NamedTuple):
    """A sum of noisy counts.

    Attributes:
        value: The sum.
        variance: Of its noise.
    """

    value: float
    variance: float


@dataclass(frozen=True, eq=False)
class Margin:
    """The noisy counts of a column.

    Attributes:
        column: Which, by number.
        counts: Of rows, by value.
        variance: Of the noise on each count, which is independent of the others.
    """

    column: int
    counts: Floats
    variance: float

    @property
    def columns(self) -> tuple[int, ...]:
        """Of which columns it is."""
        return (self.column,)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many counts there are, by column."""
        return self.counts.shape

    @property
    def deviations(self) -> Floats:
        """Of the noise on each count."""
        return np.full(self.shape, math.sqrt(self.variance))

    def total(self, wanted: Mapping[int, Mask]) -> Sum:
        """Return how many rows have wanted values.

        Args:
            wanted: Of columns, by number, whether each of their values is; of other columns, all are.

        Example:
            >>> Margin(3, np.array([10.0, 20.0, 5.0]), 4.0).total({3: np.array([False, True, True])})
            Sum(value=25.0, variance=8.0)
        """
        chosen = self.counts[wanted[self.column]] if self.column in wanted else self.counts
        return Sum(float(chosen.sum()), chosen.size * self.variance)


@dataclass(frozen=True, eq=False)
class Interaction:
    """What was measured of two columns beside their counts.

    Attributes:
        margins: The counts of both columns.
        bins: Of each column, the bin of each value.
        cells: By how many rows more or less each two bins have in common than the counts of bins alone would say: the
            noisy interaction of `interactions`, which is centred.
        variance: Of the noise on each cell, before it was centred. It is drawn independently of the margins; where
            a table was measured again, this is the variance of the average if it had been planned so.
    """

    margins: tuple[Margin, Margin]
    bins: tuple[Integers, Integers]
    cells: Floats
    variance: float

    @property
    def columns(self) -> tuple[int, ...]:
        """Of which columns it is."""
        return self.margins[0].column, self.margins[1].column

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins there are, by column."""
        return self.cells.shape

    @property
    def deviations(self) -> Floats:
        """Of the noise on the rows in each two bins."""
        here, there = (np.bincount(bins) for bins in self.bins)
        return np.asarray(np.sqrt(self._variance(1, 1, here[:, np.newaxis], there)))

    def total(self, wanted: Mapping[int, Mask]) -> Sum | None:
        """Return how many rows have wanted values, or None where only a part of some bin is wanted.

        Args:
            wanted: Of columns, by number, whether each of their values is; of other columns, all are.

        Example:
            >>> margins = Margin(0, np.array([6.0, 4.0]), 1.0), Margin(1, np.array([5.0, 5.0]), 1.0)
            >>> one = Interaction(margins, (np.arange(2), np.arange(2)), np.array([[2.0, -2.0], [-2.0, 2.0]]), 8.0)
            >>> one.total({0: np.array([True, False]), 1: np.array([True, False])})
            Sum(value=5.0, variance=2.3125)
        """
        masks = [
            wanted.get(one.column, np.ones(bins.size, dtype=bool))
            for one, bins in zip(self.margins, self.bins, strict=True)
        ]
        inside = []
        for mask, bins in zip(masks, self.bins, strict=True):
            held, whole = np.bincount(bins, mask), np.bincount(bins)
            if ((held > 0) & (held < whole)).any():
                return None
            inside.append(held > 0)
        (x, y), (a, b) = self.shape, (int(one.sum()) for one in inside)
        here, there = (one.counts[mask].sum() for one, mask in zip(self.margins, masks, strict=True))
        rows = sum(part * one.counts.sum() for part, one in zip(self._parts, self.margins, strict=True))
        value = self.cells[np.ix_(*inside)].sum() + here * b / y + there * a / x - rows * a * b / (x * y)
        return Sum(float(value), float(self._variance(a, b, *(mask.sum() for mask in masks))))

    @property
    def _parts(self) -> tuple[float, float]:
        """How much either margin has to say in the number of all rows: by its precision."""
        one, other = (margin.counts.size * margin.variance for margin in self.margins)
        return other / (one + other), one / (one + other)

    def _variance(self, a: int, b: int, here: Any, there: Any) -> Any:
        """The variance of the rows in a · b cells, in bins of so many values on either side."""
        x, y = self.shape
        found = self.variance * a * (1 - a / x) * b * (1 - b / y)
        for margin, part, inside, share in zip(self.margins, self._parts, (here, there), (b / y, a / x), strict=True):
            taken = part * a * b / (x * y)  # of every value, from those that are counted and from the others
            found = found + margin.variance * (inside * (share - taken) ** 2 + (margin.counts.size - inside) * taken**2)
        return found


Measured: TypeAlias = Margin | Interaction


def averaged(sums: list[Sum]) -> Sum:
    """Return the best estimate by several sums of independent noise of one number.

    Example:
        >>> averaged([Sum(10.0, 1.0), Sum(20.0, 4.0)])
        Sum(value=12.0, variance=0.8)
    """
    precision = sum(1 / one.variance for one in sums)
    return Sum(sum(one.value / one.variance for one in sums) / precision, 1 / precision)
