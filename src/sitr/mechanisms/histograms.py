"""Quantiles of many groups from their histograms, with intervals: counts are measured again and again, ever finer.

All quantiles of all groups are read off the same noisy counts. Each stage cuts the cells of a group into parts, adds
noise to the count of each part, and the next stage cuts finely where the quantiles seem to be (docs/decisions/0011).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import _validate
from ..accounting import DiscreteLaplace, Event, compose
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency
from .additive import above, in_range
from .grid import Grid
from .mechanism import Mechanism
from .quantiles import FINEST_PART
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, discrete_laplace
from .samplers.table import Integers

MOST_CELLS = 2**16
MOST_QUANTILES = 99
MOST_ROWS = 10**9  # of one person
MOST_COUNT = 2**40  # of rows in one cell; what is beyond counts as this
PIECES = 16  # into which each stage cuts the range where a quantile may lie
GROWTH = 4  # by which the parts outside that range grow
LAST = Fraction(3, 5)  # the share of ε that the last stage has: the interval rests on it alone
RISE = Fraction(3, 2)  # by which the shares of the other stages grow
LOCATED = 0.75  # of the critical value: how far from it the quantile is looked for at the next stage
BLOCK = 2048  # groups at a time
TRIALS = 200  # groups on which it is tried how far off the estimates will be,
EVEN_POINTS = 4096  # and how many different cells their rows are in at most

Floats = NDArray[np.float64]


class QuantileIntervals(NamedTuple):
    """What is released: arrays with a row for each group and a column for each q.

    Attributes:
        estimate: The cell in which the quantile is estimated to lie.
        low: The first cell of an interval that holds the true one 95 times in 100.
        high: The last cell of that interval.
        rank_error: How many rows the estimate is from the quantile, at most, 95 times in 100.
    """

    estimate: Integers
    low: Integers
    high: Integers
    rank_error: Floats


@dataclass(frozen=True)
class Histograms:
    """The histograms of groups, one after the other: the rows under any border are two look-ups away.

    Args:
        groups: How many there are.
        cells: Of each histogram.
        keys: group · cells + cell, in order, of the cells that have rows.
        totals: How many rows lie under each key; one more at the end.
    """

    groups: int
    cells: int
    keys: Integers
    totals: Integers

    def between(self, first: int, borders: Integers) -> Integers:
        """Return how many rows lie between the borders of each group, from group `first` on."""
        starts = (first + np.arange(borders.shape[0], dtype=np.int64)) * self.cells
        return np.diff(self.totals[np.searchsorted(self.keys, starts[:, np.newaxis] + borders)])


@dataclass(frozen=True)
class Measured:
    """Noisy counts of the parts between the borders of each group, which start at 0 and end at the last cell.

    Args:
        borders: Of the parts, in order; a part between equal borders is empty and has no noise.
        under: The noisy number of rows under each border.
        noises: How many noises that number has.
        scale: Of each of them; 0 where noise was left out.
    """

    borders: Integers
    under: Integers
    noises: Integers
    scale: float

    @property
    def wide(self) -> NDArray[np.bool_]:
        """Which parts have cells."""
        return np.diff(self.borders) > 0

    def distances(self, q: Fraction) -> Floats:
        """Return the noisy #{x < border} - q n, by whole numbers but for a fraction: not negative above the quantile.

        For q = 0 half a row is taken off, so that it is negative where no row lies under the border.
        """
        whole, rest = np.divmod(self.under[:, -1:], q.denominator)
        wanted = self.under - q.numerator * whole
        return np.asarray(wanted - q.numerator * rest / q.denominator - (0.5 if q == 0 else 0.0))

    def critical(self, q: Fraction, missed: float) -> Floats:
        """Return what the noise in each distance exceeds with probability at most `missed`, upwards or downwards."""
        right = self.noises[:, -1:] - self.noises
        return critical_value(self.noises, right, float(q), self.scale, missed)


class HistogramQuantiles(Mechanism):
    """Quantiles of groups from their histograms; made by `histogram_quantiles`.

    Attributes:
        q: Which quantiles.
        cells: Of each histogram.
        scales: Of the noise at each stage.
    """

    error95 = None

    def __init__(self, event: Event, q: tuple[Fraction, ...], cells: int, scales: tuple[float, ...]) -> None:
        self.event, self.q, self.cells, self.scales = event, q, cells, scales

    def __repr__(self) -> str:
        return f"HistogramQuantiles({self.event!r}, q={[float(q) for q in self.q]}, cells={self.cells})"

    def expected_errors(self, rows: float) -> Floats:
        """Return by how many cells the estimate of each q is off, 95 times in 100, in a group of rows spread evenly.

        Tried on rows of its own, with one seed: it costs nothing, and says the same each time.

        Example:
            >>> median = histogram_quantiles(q=[0.5], cells=120, max_rows=1, epsilon=1.0)
            >>> median.expected_errors(100), median.expected_errors(10_000)
            (array([12.]), array([1.]))
        """
        count = max(round(rows), 1)
        points = min(count, self.cells, EVEN_POINTS)
        places = (2 * np.arange(points) + 1) * self.cells // (2 * points)
        counts = np.diff(np.arange(points + 1) * count // points)
        found = self.release([(places, counts)] * TRIALS, unsafe_seed=1).value
        under = np.cumsum(counts)
        true = places[[int(np.searchsorted(under, max(math.ceil(q * count), 1))) for q in self.q]]
        return np.asarray(np.quantile(np.abs(found.estimate - true), 0.95, axis=0))

    def _checked(self, value: Any) -> Histograms:
        return gathered("histograms", value, self.cells)

    def _drawn(self, value: Histograms, source: Source | None) -> QuantileIntervals:
        blocks = [self._block(value, first, source) for first in range(0, max(value.groups, 1), BLOCK)]
        return QuantileIntervals(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _block(self, value: Histograms, first: int, source: Source | None) -> QuantileIntervals:
        """Measure some groups, stage by stage, and read the quantiles off the last one."""
        *_, measured = self._stages(value, first, source)
        found = [_released(measured, q) for q in self.q]
        return QuantileIntervals(*(np.stack(columns, axis=1) for columns in zip(*found, strict=True)))

    def _stages(self, value: Histograms, first: int, source: Source | None) -> Iterator[Measured]:
        """Yield what each stage measures; its borders are computed of the stage before, and of nothing else."""
        borders = self._first_borders(min(BLOCK, value.groups - first))
        for scale in self.scales[:-1]:
            measured = measure(value, first, borders, scale, source)
            yield measured
            borders = self._finer([_ranged(measured, q) for q in self.q])
        yield measure(value, first, borders, self.scales[-1], source)

    def _first_borders(self, groups: int) -> Integers:
        """Return equal parts, which are single cells where there is one stage only."""
        parts = min(PIECES * len(self.q), self.cells) if len(self.scales) > 1 else self.cells
        return np.tile(np.arange(parts + 1, dtype=np.int64) * self.cells // parts, (groups, 1))

    def _finer(self, ranges: list[tuple[Integers, Integers]]) -> Integers:
        """Cut each range into equal pieces, and what lies between it and the next ones into parts that grow."""
        ordered = sorted(range(len(ranges)), key=lambda place: self.q[place])
        ends = [np.zeros_like(ranges[0][0]), *(ranges[place][1] for place in ordered)]
        starts = [*(ranges[place][0] for place in ordered), np.full_like(ends[0], self.cells)]
        borders = [ends[0][:, np.newaxis], starts[-1][:, np.newaxis]]
        grown = (GROWTH ** np.arange(1, self.cells.bit_length() // 2 + 2, dtype=np.int64) - 1) // (GROWTH - 1)
        for place in range(len(ranges)):
            start, end = starts[place][:, np.newaxis], ends[place + 1][:, np.newaxis]
            away = np.maximum((end - start) // 2, 1) * grown
            borders.append(start + (end - start) * np.arange(PIECES + 1) // PIECES)
            borders.append(np.maximum(start - away, np.minimum(ends[place][:, np.newaxis], start)))
            borders.append(np.minimum(end + away, np.maximum(starts[place + 1][:, np.newaxis], end)))
        return np.sort(np.concatenate(borders, axis=1), axis=1)


def histogram_quantiles(
    *, q: Sequence[float], cells: int, max_rows: int, epsilon: float, adjacency: Adjacency = "add_remove"
) -> HistogramQuantiles:
    """Return quantiles of a column in each of many groups, with intervals, from histograms over cells 0 … cells - 1.

    A release takes a sequence with a pair for each group: the cells that have rows, and how many. Cells outside the
    range count as its ends. It returns `QuantileIntervals`. The quantile q of n rows is the first cell c with
    #{x ≤ c} ≥ q n and #{x ≤ c} ≥ 1; of a group without rows every cell is one.

    Args:
        q: From 0, the least, to 1, the largest; each read as a fraction with a denominator of at most a million.
        cells: Of each histogram, from 2 to 65,536.
        max_rows: How many rows one person has at most, in all cells of all groups together.
        epsilon: The pure ε that a release of all quantiles of all groups costs.
        adjacency: Under `replace_one` a person's rows may become as many others: twice as many counts move.

    Privacy: pure ε-DP. At each stage every group is cut into parts at borders that depend on what earlier stages
    released and on nothing else. The parts are disjoint, so each row is counted once, and the counts of all parts of
    all groups move together by at most max_rows in ℓ1, twice that under `replace_one`. They have discrete Laplace
    noise, charged by its own curve (THEORY 2.2, 2.4), and the stages, whose scales are fixed in advance, compose
    (THEORY 4.1, 6.5): the event is their composition, and its pure ε is the sum, which is `epsilon`. All else is
    computed of the noisy counts. Which groups there are, and in which order, is public or was released before; the
    time tells how many groups and how many cells with rows there are.

    The interval: only the noise of the last stage is used, and its borders were fixed before it was drawn. For the
    part in which the true quantile lies, #{x < border} - q n is negative at the lower border and not at the upper one;
    their noisy values contradict that with probability at most 0.025 each. The interval spans all parts that are not
    contradicted, so it holds the quantile with probability 0.95 at least, whatever the data are (THEORY 6.5). For
    `rank_error` the noise is bounded at all borders at once. A least or largest value may be that of a single row,
    which no private answer shows: their intervals reach to the end of the range, and their estimates stay where rows
    are surely seen.

    Example:
        >>> median = histogram_quantiles(q=[0.5], cells=120, max_rows=1, epsilon=1.0)
        >>> round(median.event.pure(), 9)
        1.0
        >>> ages = (range(20, 60), [50] * 40)
        >>> found = median.release([ages, ages, ([], [])], unsafe_seed=1).value
        >>> found.estimate[:, 0], found.low[:, 0], found.high[:, 0]
        (array([40, 39, 26]), array([39, 39,  0]), array([ 40,  40, 119]))
        >>> found.rank_error[:, 0].round()
        array([13., 12., 21.])
    """
    parts = _parts(q)
    cells = _validate.integer("cells", cells, 2, MOST_CELLS)
    rows = _validate.integer("max_rows", max_rows, 1, MOST_ROWS)
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    moved = rows if _validate.choice("adjacency", adjacency, ADJACENCIES) == "add_remove" else 2 * rows
    scales = tuple(above(moved / (cost * share)) for share in shares(stages(cells, len(parts))))
    for scale in scales:
        in_range(scale, 1e-4, LARGEST_SCALE)
    event = compose(*(DiscreteLaplace(scale=scale, sensitivity=moved, adjacency=adjacency) for scale in scales))
    return HistogramQuantiles(event, parts, cells, scales)


def stages(cells: int, quantiles: int) -> int:
    """Return how many stages it takes to come down to single cells, each cutting a part into pieces.

    Example:
        >>> stages(16, 1), stages(100, 1), stages(65_536, 1)
        (1, 2, 4)
    """
    found, parts = 1, PIECES * quantiles
    while parts < cells:
        found, parts = found + 1, parts * PIECES
    return found


def shares(count: int) -> list[Fraction]:
    """Return the share of ε that each stage has.

    Example:
        >>> [str(share) for share in shares(3)]
        ['4/25', '6/25', '3/5']
    """
    if count == 1:
        return [Fraction(1)]
    weights = [RISE**place for place in range(count - 1)]
    return [(1 - LAST) * weight / sum(weights) for weight in weights] + [LAST]


def critical_value(left: Integers, right: Integers, q: float, scale: float, missed: float) -> Floats:
    """Return what (1 - q) L - q R exceeds with probability at most `missed`: sums of discrete Laplace noises.

    A sum of n independent Laplace noises has an excess kurtosis of 3/n, and the term that Cornish and Fisher give for
    it makes the normal quantile one that was too small nowhere on a grid of exact laws, for `missed` ≤ 0.025: it is
    checked, not proved. Half a row covers that noise is whole (THEORY 6.5).

    Args:
        left: How many noises L is the sum of.
        right: How many R is the sum of.
        q: Between 0 and 1.
        scale: Of the noise; 0 where there is none.
        missed: At most 0.025.

    Example:
        >>> critical_value(np.array([1, 8]), np.array([0, 8]), 0.5, 10.0, 0.025).round(2)  # exactly 15, 55.5
        array([15.6 , 56.16])
    """
    squares = left * (1 - q) ** 2 + right * q**2
    fourth = (left * (1 - q) ** 4 + right * q**4) / np.maximum(squares, 1e-99) ** 2
    normal = -float(ndtri(missed))
    found = 1.002 * scale * np.sqrt(2 * squares) * (normal + (normal**3 - 3 * normal) / 8 * fourth)
    return np.asarray(np.where((squares > 0) & (scale > 0), found + 0.5 * max(q, 1 - q), 0.0))


def measure(value: Histograms, first: int, borders: Integers, scale: float, source: Source | None) -> Measured:
    """Return the counts between the borders of each group, with noise; as many noises are drawn whatever they are.

    Privacy: the counts move by at most as many as rows do, in ℓ1; a part without cells counts 0 for everyone.
    """
    counts, wide = value.between(first, borders), np.diff(borders) > 0
    if source is not None:
        counts += wide * discrete_laplace(Fraction(scale), counts.size, source).reshape(counts.shape)
    return Measured(borders, _running(counts), _running(wide), scale if source is not None else 0.0)


def gathered(name: str, value: Any, cells: int) -> Histograms:
    """Return pairs of cells and counts, a pair for each group, or refuse them without showing them."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise _refusal(name)
    try:
        pairs = [(_whole(one), _whole(other)) for one, other in value]
    except (TypeError, ValueError):
        raise _refusal(name) from None
    if any(one.shape != other.shape for one, other in pairs):
        raise _refusal(name)
    sizes = np.array([one.size for one, _ in pairs], dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    places = np.clip(np.concatenate([none, *(one for one, _ in pairs)]), 0, cells - 1)
    counts = np.concatenate([none, *(other for _, other in pairs)])
    if np.any(counts < 0):
        raise _refusal(name)
    keys = np.repeat(np.arange(sizes.size), sizes) * cells + places
    order = np.argsort(keys, kind="stable")
    totals = np.concatenate([[0], np.cumsum(np.minimum(counts, MOST_COUNT)[order])])
    return Histograms(sizes.size, cells, keys[order], totals.astype(np.int64))


def _refusal(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{name} is not a sequence of pairs of cells and counts, whole numbers and counts from 0.",
        do="Pass a pair of arrays of one length for each group; ([], []) for a group without rows.",
    )


def _whole(numbers: Any) -> Integers:
    """Return a sequence of whole numbers, or raise ValueError or TypeError."""
    array = np.asarray(numbers)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim == 1 and array.dtype.kind == "i":
        return array.astype(np.int64, copy=False)
    try:
        return Grid(None, array.size).placed("numbers", numbers)
    except InvalidArgument:
        raise ValueError from None


def _parts(q: Any) -> tuple[Fraction, ...]:
    """Return the quantiles as fractions, or refuse them."""
    if isinstance(q, (str, bytes)) or not isinstance(q, (Sequence, np.ndarray)) or not 1 <= len(q) <= MOST_QUANTILES:
        raise InvalidArgument(
            f"q={_validate.shown(q)} is not a list of 1 to {MOST_QUANTILES} numbers.", do="Pass q=[0.25, 0.5, 0.75]."
        )
    return tuple(Fraction(_validate.real("q", one, 0, 1)).limit_denominator(FINEST_PART) for one in q)


def _running(parts: NDArray[Any]) -> Integers:
    """Return the sums up to each border."""
    return np.pad(np.cumsum(parts, axis=1, dtype=np.int64), ((0, 0), (1, 0)))


def _ranged(measured: Measured, q: Fraction) -> tuple[Integers, Integers]:
    """Return where a quantile seems to lie: the first cell of that range, and the first one after it."""
    near = measured.critical(q, 0.025)
    distances = _inwards(measured, q, near)
    part = _crossing(distances)
    return _spanned(measured, _possible(measured, distances, LOCATED * near), part)


def _released(measured: Measured, q: Fraction) -> tuple[Integers, Integers, Integers, Floats]:
    """Return the estimate, its interval and its rank error."""
    near, distances = measured.critical(q, 0.025), measured.distances(q)
    inwards = _inwards(measured, q, near)
    part = _crossing(inwards)
    low, end = _spanned(measured, _possible(measured, distances, near), part)
    estimate = np.clip(_interpolated(measured, inwards, part), low, end - 1)
    return estimate, low, end - 1, _rank_error(measured, q, distances, estimate)


def _inwards(measured: Measured, q: Fraction, near: Floats) -> Floats:
    """Return monotone distances from q n or, where fewer rows lie outside than noise looks like, from a rank inside.

    So the estimate of a least or largest value does not follow the noise into cells without rows.
    """
    rows = np.maximum(measured.under[:, -1:], 0)
    least = np.minimum(near, rows / 2)
    moved = np.maximum(least - float(q) * rows, 0) - np.maximum(least - float(1 - q) * rows, 0)
    distances = measured.distances(q) - moved
    rising, falling = np.maximum.accumulate(distances, axis=1), np.minimum.accumulate(distances[:, ::-1], axis=1)
    return np.asarray((rising + falling[:, ::-1]) / 2)


def _crossing(distances: Floats) -> Integers:
    """Return the part at whose upper border distances cease to be negative: the last part, if none."""
    return np.asarray(np.minimum(np.sum(distances[:, 1:] < 0, axis=1), distances.shape[1] - 2))


def _possible(measured: Measured, distances: Floats, near: Floats) -> NDArray[np.bool_]:
    """Return which parts may hold the quantile: noise within `near` does not contradict it at either border."""
    above_lower, under_upper = distances[:, :-1] < near[:, :-1], distances[:, 1:] >= -near[:, 1:]
    above_lower[:, 0] = under_upper[:, -1] = True  # it lies between the ends
    return np.asarray(above_lower & under_upper & measured.wide)


def _spanned(measured: Measured, possible: NDArray[np.bool_], part: Integers) -> tuple[Integers, Integers]:
    """Return where the possible parts start and end; where there is none, the part that was estimated."""
    none, groups = ~np.any(possible, axis=1), np.arange(part.size)
    first = np.where(none, part, np.argmax(possible, axis=1))
    last = np.where(none, part, possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1))
    start, end = measured.borders[groups, first], measured.borders[groups, last + 1]
    return np.minimum(start, end - 1), end


def _interpolated(measured: Measured, distances: Floats, part: Integers) -> Integers:
    """Return the cell inside a part at which distances would cross 0 if its rows were spread evenly."""
    groups = np.arange(part.size)
    start, end = measured.borders[groups, part], measured.borders[groups, part + 1]
    lower, upper = distances[groups, part], distances[groups, part + 1]
    rise = np.where(upper > lower, upper - lower, 1.0)
    inside = np.clip(np.where(upper > lower, -lower / rise, 0.5), 0, 1)
    return np.asarray(start + np.minimum((inside * (end - start)).astype(np.int64), np.maximum(end - start - 1, 0)))


def _rank_error(measured: Measured, q: Fraction, distances: Floats, estimate: Integers) -> Floats:
    """Return max(#{x < estimate} - q n, q n - #{x ≤ estimate}, 0), bounded by noise that is bounded at all borders."""
    groups = np.arange(estimate.size)
    bounds = measured.critical(q, 0.025 / measured.borders.shape[1])
    before = np.sum(measured.borders <= estimate[:, np.newaxis], axis=1) - 1  # the last border that is not above it
    after = before + 1
    single = measured.borders[groups, after] - measured.borders[groups, before] == 1
    highest = distances + bounds
    fewest = distances - bounds
    over = np.where(single, highest[groups, before], highest[groups, after])
    under = np.where(single, fewest[groups, after], fewest[groups, before])
    return np.asarray(np.maximum(np.maximum(over, -under), 0) + (0.5 if q == 0 else 0.0))
