"""A histogram of the cells that occur, for domains that are huge or not known: what is rare stays unnamed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import _validate
from ..errors import InvalidArgument
from ..mechanisms import Mechanism, laplace, select_partitions
from ..mechanisms.partitions import Counted, counted
from ..mechanisms.randomness import Source
from ..units import ADJACENCIES, Adjacency
from .histogram import MOST_ROWS, public_total

SHARE = Fraction(1, 10)  # of ε, that the number of rows is estimated by
ROUNDING = 1e-9  # of it, so that an accountant who rounds up finds no more than ε


class Other(Enum):
    """What rows are drawn as whose cells are not named; no value of the data is equal to it."""

    OTHER = "other"

    def __repr__(self) -> str:
        return "OTHER"


OTHER = Other.OTHER


@dataclass(frozen=True, eq=False)
class SparseHistogram:
    """What is released: the cells that are named, with their counts, and how many rows are in others.

    Attributes:
        counts: Rows in each cell that is named.
        total: How many rows there are: a public number, or an estimate.

    Example:
        >>> one = SparseHistogram({"flu": 70, "cold": 20}, total=100)
        >>> one.other, sorted({str(cell) for cell in one.sample(1000, seed=1)})
        (10, ['Other.OTHER', 'cold', 'flu'])
    """

    counts: Mapping[Hashable, int]
    total: int

    @property
    def other(self) -> int:
        """How many rows are in cells that are not named: what the counts lack of the total."""
        return max(self.total - sum(self.counts.values()), 0)

    def sample(self, rows: int, *, seed: int | None = None) -> list[Any]:
        """Return the cells of so many rows, drawn at random by the counts; those of no named cell are `OTHER`.

        Args:
            rows: How many.
            seed: To draw the same again. It makes nothing less private: the histogram is public.

        Privacy: post-processing of the histogram (THEORY 6.3).
        """
        wanted = _validate.integer("rows", rows, 0, MOST_ROWS)
        cells = [*self.counts, OTHER]
        weights = np.array([*self.counts.values(), self.other], dtype=np.float64)
        if not weights.any():
            raise InvalidArgument("nothing can be drawn from a histogram without rows.")
        drawn = np.random.default_rng(seed).choice(len(cells), size=wanted, p=weights / weights.sum())
        return [cells[place] for place in drawn]


class PrivateSparseHistogram(Mechanism):
    """Counts of the cells that occur often enough; made by `sparse_histogram`.

    Attributes:
        total: How many rows there are, where that is public.
        threshold: A cell is named if its noisy count reaches this.
        scale: Of the noise on each count.
    """

    error95 = None

    def __init__(self, epsilon: Fraction, delta: float, adjacency: Adjacency, total: int | None) -> None:
        share = SHARE if total is None else Fraction(0)
        self._cells = select_partitions(epsilon=float(epsilon * (1 - share)), delta=delta, adjacency=adjacency)
        self.event, self.total = self._cells.event, total
        self.threshold, self.scale = self._cells.threshold, self._cells.scale
        if total is None:
            cost = float(epsilon * share) * (1 - ROUNDING)
            self._rows = laplace(sensitivity=1, epsilon=cost, integers=True, adjacency=adjacency)
            self.event = self.event + self._rows.event

    def __repr__(self) -> str:
        return f"PrivateSparseHistogram({self.event!r}, threshold={self.threshold})"

    def chance(self, count: int) -> float:
        """Return the probability that a cell of so many rows is named (THEORY 2.5).

        Example:
            >>> [round(sparse_histogram(epsilon=1.0, delta=1e-6).chance(rows), 3) for rows in (1, 16, 30)]
            [0.0, 0.711, 1.0]
        """
        return self._cells.chance(count)

    def _checked(self, value: Any) -> Counted:
        found = counted("counts", value)
        if self.total is not None and int(found.counts.sum()) != self.total:
            raise InvalidArgument("the counts do not add up to the total, which is public.")
        return found

    def _drawn(self, value: Counted, source: Source | None) -> SparseHistogram:
        named = self._cells._drawn(value, source)
        rows = self.total
        if rows is None:
            noise = 0 if source is None else int(self._rows.noise(source)[0])
            rows = max(int(value.counts.sum()) + noise, 0)
        return SparseHistogram(MappingProxyType(named), rows)


def sparse_histogram(
    *, epsilon: float, delta: float, adjacency: Adjacency = "add_remove", total: int | None = None
) -> PrivateSparseHistogram:
    """Return the histogram for domains that are huge or not known: cells that occur often enough, and the rest as one.

    A release takes {cell: rows} over the cells that occur, and work and memory grow with those alone. Counts of cells
    near the threshold are too large on average, since only those are named on which the noise was large.

    Args:
        epsilon: The ε that a release costs, with
        delta: the δ: the probability that a cell of one row is named.
        adjacency: "add_remove", or "replace_one", under which the number of rows may be public.
        total: That number. Left out, a tenth of ε goes into an estimate of it.

    Privacy: (ε,δ)-DP. A row is in one cell: that cell's count moves by 1 under noise, or the cell is the row's alone,
    and is named with probability δ at most; of a row that is replaced that holds twice, at half the ε and δ each
    (THEORY 2.5). The number of rows has discrete Laplace noise. The event composes both (THEORY 4.3), and what is
    drawn is post-processing (THEORY 6.3). The time tells how many cells occur.

    Example:
        >>> made = sparse_histogram(epsilon=1.0, delta=1e-6)
        >>> made.threshold, float(made.event.epsilon(delta=1e-6)) <= 1.0
        (16, True)
        >>> found = made.release({"flu": 700, "cold": 200, "a rare one": 1}, unsafe_seed=1).value
        >>> sorted(found.counts)
        ['cold', 'flu']
    """
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-7, 1e4))
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    return PrivateSparseHistogram(cost, delta, adjacency, public_total(total, adjacency))
