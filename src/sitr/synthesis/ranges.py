"""How many rows lie in a range of ordered cells: any range, any number of them, from one release, with intervals.

A histogram made of noisy counts has none under 0, and is too large where little is: in sums over many cells that adds
up. Here nothing is projected, and the noise is of a law that is small in the sum of any range (decision 0027).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..accounting import PureDP
from ..errors import InvalidArgument
from ..mechanisms import Mechanism
from ..mechanisms.hierarchy import Hierarchy
from ..mechanisms.randomness import Source
from ..units import ADJACENCIES, Adjacency
from .histogram import MOST_ROWS, counted, public_total

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST_CELLS = 10**5
DEVIATIONS = 2.17  # within which 95 of 100 lie, of any symmetric log-concave law (THEORY 6.6)
NOTHING = 1e-6  # rows: less is the rounding of floats


class Estimated(NamedTuple):
    """What is estimated of one range or border, or of many.

    Attributes:
        estimate: Of counts it is right on average, and may lie outside the interval's ends of 0 and the total.
        low: Where an interval begins that holds the truth at least 95 times in 100,
        high: and where it ends.
    """

    estimate: Any
    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class Noise:
    """What is publicly known of the noise between borders of cells.

    Args:
        law: Of the noise.
        cells: How many are asked about: there may be more with noise, behind the last one, that have no rows.
        known: The total is public: what all noise adds up to is taken off evenly.
    """

    law: Hierarchy
    cells: int
    known: bool

    @property
    def borders(self) -> Integers:
        """Where cells begin, in order; the last border is behind all that has noise."""
        return np.append(np.arange(self.cells), self.law.cells)

    def widths(self, first: Integers, last: Integers, share: float = 0.0) -> Floats:
        """Return what the noise between borders stays within 95 times in 100, less a share of all noise."""
        low, high = (self.borders[one].ravel() for one in (first, last))
        deviations = np.sqrt(self.law.variances(low, high, share, known=self.known))
        return np.asarray(np.ceil(DEVIATIONS * deviations - NOTHING)).reshape(first.shape)


@dataclass(frozen=True, eq=False)
class Ranges:
    """What is released: anyone may ask it for the rows of any range, for ever.

    Attributes:
        noisy: The counts of the cells with noise; right on average, and sums over them are what `count` gives.
        total: How many rows there are, where that is public.
        under: Estimated rows under each border of cells.
    """

    noisy: Integers
    total: int | None
    under: Floats
    _noise: Noise

    @classmethod
    def of(cls, noisy: Integers, under: Floats, rate: Fraction) -> Ranges:
        """Return what was released, again; of rows whose number is private."""
        return cls(noisy, None, under, Noise(Hierarchy.of(noisy.size, rate), noisy.size, False))

    def count(self, low: ArrayLike, high: ArrayLike) -> Estimated:
        """Return how many rows lie in the cells low … high, both included: of one range, or of many at once.

        Args:
            low: The first cell, or the first cells of many ranges.
            high: The last cell, or last cells.

        Raises:
            InvalidArgument: There is no such cell, or a range ends before it begins.

        Privacy: post-processing of the noisy counts (THEORY 6.2). Each interval holds its truth with probability 0.95
        at least; many of them together hold theirs less often.

        Example:
            >>> one = ranges(4, epsilon=1.0, adjacency="replace_one", total=40).release([10] * 4, unsafe_seed=1).value
            >>> one.count(1, 2)
            Estimated(estimate=25.5, low=18.5, high=32.5)
            >>> one.count(0, [0, 3]).high
            array([16.75, 40.  ])
        """
        first, last = _ends(low, high, self.noisy.size)
        estimate = self.under[last] - self.under[first]
        width = self._noise.widths(first, last)
        most = np.inf if self.total is None else self.total
        ends = (np.clip(estimate - width, 0, most), np.clip(estimate + width, 0, most))
        return Estimated(*(one.item() if one.ndim == 0 else one for one in (estimate, *ends)))

    def cumulative(self) -> Estimated:
        """Return how many rows lie in each cell and all before it: what a picture of the distribution is drawn from.

        Privacy: post-processing of the noisy counts (THEORY 6.2).

        Example:
            >>> one = ranges(4, epsilon=1.0, adjacency="replace_one", total=40).release([10] * 4, unsafe_seed=1).value
            >>> one.cumulative().estimate
            array([10.75, 26.5 , 36.25, 40.  ])
        """
        return self.count(0, np.arange(self.noisy.size))

    def quantile(self, p: float) -> Estimated:
        """Return the first cell up to which there are p of all rows.

        Args:
            p: Between 0 and 1: 0.5 for the median.

        Privacy: post-processing of the noisy counts. The interval spans all cells that are not contradicted at either
        border, which the true one is with probability 0.025 each at most (THEORY 6.5).

        Example:
            >>> one = ranges(100, epsilon=1.0).release([10] * 100, unsafe_seed=1).value
            >>> one.quantile(0.5)
            Estimated(estimate=50, low=49, high=51)
        """
        share = _validate.real("p", p, 0, 1, open_low=True, open_high=True)
        places = np.arange(self.under.size)
        distances = self.under - share * self.under[-1]
        widths = self._noise.widths(np.zeros_like(places), places, share)
        upwards = (np.maximum.accumulate(distances) + np.minimum.accumulate(distances[::-1])[::-1]) / 2
        estimate = int(np.argmax(np.append(upwards[1:-1] >= 0, True)))
        behind, before = distances[:-1] < widths[:-1], distances[1:] >= -widths[1:]
        behind[0] = before[-1] = True  # it lies between the ends
        found = np.append(np.flatnonzero(behind & before), estimate)
        return Estimated(estimate, int(found.min()), int(found.max()))


class PrivateRanges(Mechanism):
    """Counts of ordered cells with noise that is small in every range; made by `ranges`.

    Attributes:
        cells: How many.
        total: How many rows there are, where that is public.
        rate: What the rates of the noise add up to.
    """

    error95 = None

    def __init__(self, cells: int, epsilon: Fraction, adjacency: Adjacency, total: int | None, rows: int) -> None:
        moved = 2 * rows if adjacency == "replace_one" else rows  # a row leaves one cell, and comes into another
        self.cells, self.total, self.rate = cells, total, epsilon / moved
        self._noise = Noise(Hierarchy.of(cells, self.rate), cells, total is not None)
        self.event = PureDP(float(epsilon), adjacency=adjacency)

    def __repr__(self) -> str:
        return f"PrivateRanges({self.event!r}, cells={self.cells})"

    def expected_error(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return what the error in the cells low … high stays within, 95 times in 100; before anything is released.

        Example:
            >>> ranges(1000, epsilon=0.1, adjacency="replace_one", total=10**5).expected_error(100, [100, 599, 899])
            array([139., 374., 321.])
        """
        first, last = _ends(low, high, self.cells)
        return self._noise.widths(first, last)

    def _checked(self, value: ArrayLike) -> Integers:
        return np.minimum(counted(value, (self.cells,), self.total), MOST_ROWS)

    def _drawn(self, value: Integers, source: Source | None) -> Ranges:
        """Sum up; and where the total is known, take what is too much off evenly."""
        law, borders = self._noise.law, self._noise.borders
        noisy = np.pad(value, (0, law.cells - self.cells)) + (0 if source is None else law.noise(source))
        sums = np.concatenate([[0], np.cumsum(noisy)])
        surplus = 0 if self.total is None else int(sums[-1]) - self.total
        under = sums[borders] - surplus * (borders / law.cells)
        return Ranges(noisy[: self.cells], self.total, under, self._noise)


def ranges(
    cells: int,
    *,
    epsilon: float,
    adjacency: Adjacency = "add_remove",
    total: int | None = None,
    max_rows_per_unit: int = 1,
) -> PrivateRanges:
    """Return what answers how many rows lie in any range of ordered cells, and where quantiles are, with intervals.

    A release takes the counts of the cells. For rows to draw, take `histogram`: it is nearer cell by cell.

    Args:
        cells: How many: drawn from declared bounds, never from the data; up to 100,000.
        epsilon: The pure ε that a release costs.
        adjacency: "add_remove", or "replace_one", under which the number of rows may be public.
        total: That number.
        max_rows_per_unit: How many rows one unit has at most. The caller sees to it.

    Raises:
        InvalidArgument: A total under add_remove, where the number of rows is private; or too many cells.

    Privacy: pure ε-DP, charged as that. The noise d on the cells has P(d) ∝ e^{-N(d)}, where N(d) adds up rate ·
    |d_block| over single cells, blocks of 5, of 25 and so on. One row more or less moves one block of each level by 1,
    and the rates add up to ε; one replaced moves at most two, and they add up to ε/2: so N moves by ε at most (THEORY
    6.6). For units of several rows the rates are divided by their number. Blocks and rates depend on `cells` alone. All
    that is answered is post-processing (THEORY 6.2).

    Example:
        >>> made = ranges(1000, epsilon=0.1, adjacency="replace_one", total=100_000)
        >>> float(made.event.pure())
        0.1
        >>> found = made.release([100] * 1000, unsafe_seed=1).value
        >>> found.count(200, 699), found.quantile(0.5).estimate
        (Estimated(estimate=49805.5, low=49407.5, high=50203.5), 499)
    """
    size = _validate.integer("cells", cells, 1, MOST_CELLS)
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    rows = _validate.integer("max_rows_per_unit", max_rows_per_unit, 1, 10**6)
    return PrivateRanges(size, cost, adjacency, public_total(total, adjacency), rows)


def _ends(low: ArrayLike, high: ArrayLike, size: int) -> tuple[Integers, Integers]:
    """Return the borders before the first cells of ranges, and behind the last ones, or refuse them."""
    first, last = np.broadcast_arrays(low, high)
    if any(one.dtype.kind not in "iu" for one in (first, last)) or (first < 0).any() or (last >= size).any():
        raise InvalidArgument(f"cells are numbered from 0 to {size - 1}.", do="pass whole numbers of this range.")
    if (first > last).any():
        raise InvalidArgument("a range ends before it begins.", do="pass the first cell, then the last one.")
    return first.astype(np.int64), last.astype(np.int64) + 1
