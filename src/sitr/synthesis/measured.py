"""What was measured of a table, as it was measured: noisy counts that nothing was done to, right on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Sum(NamedTuple):
    """A sum of noisy counts.

    Attributes:
        value: The sum.
        variance: Of its noise.
    """

    value: float
    variance: float


@dataclass(frozen=True, eq=False)
class Measured:
    """A noisy table of some columns.

    Attributes:
        columns: By number.
        bins: Of each of them, the bin of each value.
        counts: Of rows, by bins.
        variance: Of the noise on each count, which is independent of the others.
    """

    columns: tuple[int, ...]
    bins: tuple[Integers, ...]
    counts: Floats
    variance: float

    def total(self, wanted: Mapping[int, Mask]) -> Sum | None:
        """Return how many rows have wanted values, or None where only a part of some bin is wanted.

        Args:
            wanted: Of columns, by number, whether each of their values is; of other columns, all are.

        Example:
            >>> one = Measured((3,), (np.array([0, 1, 1]),), np.array([10.0, 20.0]), 4.0)
            >>> one.total({3: np.array([False, True, True])})
            Sum(value=20.0, variance=4.0)
            >>> one.total({3: np.array([False, True, False])}) is None
            True
        """
        inside = []
        for column, bins in zip(self.columns, self.bins, strict=True):
            mask = wanted.get(column, np.ones(bins.size, dtype=bool))
            held, whole = np.bincount(bins, mask), np.bincount(bins)
            if ((held > 0) & (held < whole)).any():
                return None
            inside.append(held > 0)
        chosen = self.counts[np.ix_(*inside)]
        return Sum(float(chosen.sum()), chosen.size * self.variance)


def together(sums: list[Sum]) -> Sum:
    """Return the best estimate by several sums of independent noise of one number.

    Example:
        >>> together([Sum(10.0, 1.0), Sum(20.0, 4.0)])
        Sum(value=12.0, variance=0.8)
    """
    precision = sum(1 / one.variance for one in sums)
    return Sum(sum(one.value / one.variance for one in sums) / precision, 1 / precision)
