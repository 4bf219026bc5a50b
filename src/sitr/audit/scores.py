"""Scores: numbers learned from samples, high where an output speaks for the first input."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from .cells import FEW, GLANCE, Bins, Cells, Cutter, Labels, LowBits, Repeats, has_low_bits, lowest_bit
from .features import deviation, finite
from .samples import Numbers, Sample

MOST_LABELS = 0.25  # distinct outputs, as a share of all, up to which they are categories
MOST_LOOKED_AT = 32  # columns of outputs that are looked at one by one
FEW_CELLS = 8  # too few for luck in each of them to add up
MOST_KEPT = 3  # of them, those whose cells differ most, for each way to cut
MOST_NEWTON = 128  # columns up to which the linear score is fitted, with squares
MOST_ROWS = 20_000  # of each input, to fit it
CUTS = ("bins", "repeats", "low bits", "low bits by size")
RIDGE = 1.0
STEPS = 12


class Score(ABC):
    """A number for each output; an event is "at least t" or "at most t"."""

    name: str
    learned = True  # whether the samples that it was learned from speak for it by mere luck

    @abstractmethod
    def values(self, sample: Sample) -> Numbers:
        """Return the score of each output."""

    @abstractmethod
    def words(self, threshold: float, above: bool) -> str:
        """Say what the event is."""


class CellScore(Score):
    """The smoothed log-ratio of how often a cell is hit with the first input and with the second.

    Example:
        >>> first, second = (Sample([], np.array([[0.0]] * a + [[1.0]] * (100 - a))) for a in (80, 20))
        >>> score = CellScore(Bins.of(first, second), first, second)
        >>> score.values(Sample([], np.array([[0.0], [1.0]]))).round(3).tolist(), score.words(0.0, above=True)
        ([1.368, -1.368], 'output = 0')
    """

    def __init__(self, cutter: Cutter, first: Sample, second: Sample, column: int = 0) -> None:
        self.name, self.column, self._cutter = cutter.name, column, cutter
        cells = [cutter.cells(sample) for sample in (first, second)]
        self._cells = np.unique(np.concatenate(cells))
        hits = np.array([_counted(self._cells, found) for found in cells], dtype=np.float64)
        rare = hits.sum(axis=0) < FEW
        scores = np.log((hits[0] + 0.5) / (hits[1] + 0.5))
        self._other = float(np.log((hits[0, rare].sum() + 0.5) / (hits[1, rare].sum() + 0.5)))
        self._scores = np.where(rare, self._other, scores)
        self.learned = len(self._cells) > FEW_CELLS
        self.apart = _apart(np.column_stack([hits[:, ~rare], hits[:, rare].sum(axis=1)]))

    def values(self, sample: Sample) -> Numbers:
        """Look the cells up; cells never seen count as rare ones."""
        found = self._cutter.cells(sample)
        where = np.minimum(np.searchsorted(self._cells, found), len(self._cells) - 1)
        return np.where(self._cells[where] == found, self._scores[where], self._other)

    def words(self, threshold: float, above: bool) -> str:
        """Say which cells are in the event."""
        inside = self._scores >= threshold if above else self._scores <= threshold
        return self._cutter.words(self._cells[inside]) if inside.any() else "an output not seen before"


class ValueScore(Score):
    """One number of the output itself, with nothing to learn."""

    name = "value"
    learned = False

    def __init__(self, sample: Sample, column: int) -> None:
        self._column, self._what = column, sample.place(column)

    def values(self, sample: Sample) -> Numbers:
        """Return the number; what is none counts as the least."""
        return np.nan_to_num(sample.columns[:, self._column], nan=-np.inf, posinf=np.inf, neginf=-np.inf)

    def words(self, threshold: float, above: bool) -> str:
        """Say on which side of the threshold."""
        return f"{self._what} {'≥' if above else '≤'} {threshold:.6g}"


class BitScore(Score):
    """The lowest bit that is set in one number of the output: high where it lies on a coarser grid than others."""

    name = "low bits in order"
    learned = False

    def __init__(self, sample: Sample, column: int) -> None:
        self._column, self._what = column, sample.place(column)

    def values(self, sample: Sample) -> Numbers:
        """Return the exponent of the bit."""
        return lowest_bit(sample.columns[:, self._column]).astype(np.float64)

    def words(self, threshold: float, above: bool) -> str:
        """Say on which side of the threshold."""
        return f"lowest set bit of {self._what} {'≥' if above else '≤'} 2^{threshold:.0f}"


class LinearScore(Score):
    """A weighted sum of all numbers of an output, their squares and some products, fitted by logistic regression.

    Example:
        >>> rows = np.linspace(-1, 1, 200).reshape(100, 2)
        >>> score = LinearScore(Sample([], rows + 1), Sample([], rows - 1))
        >>> bool(np.all(score.values(Sample([], rows + 1)) > score.values(Sample([], rows - 1))))
        True
        >>> score.words(0.5, above=True)
        'a weighted sum of 2 numbers and their squares ≥ 0.5, most weight on coordinate 1'
    """

    name = "linear"

    def __init__(self, first: Sample, second: Sample) -> None:
        self._width = first.width
        products = [at for at, what in enumerate(first.derived, self._width) if "×" in what]
        self._columns = np.array([*range(self._width), *products])
        kept = [self._taken(sample)[:MOST_ROWS] for sample in (first, second)]
        rows = np.concatenate(kept)
        self._squares = self._width <= MOST_NEWTON
        self._centre, self._spread = rows.mean(axis=0), deviation(rows)
        features = self._features(rows)
        self._middle, self._scale = features.mean(axis=0), deviation(features)
        features = (features - self._middle) / self._scale
        sides = np.repeat([1.0, 0.0], [len(part) for part in kept])
        self._weights = _fitted(features, sides) if self._squares else _difference(features, sides)

    def values(self, sample: Sample) -> Numbers:
        """Return the weighted sum."""
        features = (self._features(self._taken(sample)) - self._middle) / self._scale
        return np.asarray(features @ self._weights, dtype=np.float64)

    def words(self, threshold: float, above: bool) -> str:
        """Say that it is a weighted sum, and of what most."""
        leading = int(np.argmax(np.abs(self._weights))) % len(self._columns)
        what = f"{self._width} numbers" + (" and their squares" if self._squares else "")
        if len(self._columns) > self._width:
            what += " and products"
        most = f"coordinate {leading + 1}" if leading < self._width else "a product"
        sign = "≥" if above else "≤"
        return f"a weighted sum of {what} {sign} {threshold:.4g}, most weight on {most}"

    def _taken(self, sample: Sample) -> Numbers:
        return finite(sample.columns[:, self._columns])

    def _features(self, rows: Numbers) -> Numbers:
        rows = (rows - self._centre) / self._spread
        return np.hstack([rows, rows[:, : self._width] ** 2]) if self._squares else rows


def learn(first: Sample, second: Sample) -> list[Score]:
    """Return every score that these outputs allow, learned from the two samples.

    Of many columns those are kept that set the samples apart most, for each way to cut them into cells.

    Example:
        >>> numbers = np.arange(40.0).reshape(40, 1) / 8
        >>> [score.name for score in learn(Sample(numbers, numbers), Sample(numbers, numbers + 1))]
        ['value', 'low bits in order', 'linear', 'bins', 'low bits', 'low bits by size']
    """
    scores: list[Score] = []
    own = [sample.columns[:, : sample.width] for sample in (first, second)]
    numbers = any(not np.isnan(columns).all() for columns in own)
    if not numbers or (_few_distinct(first) and _few_distinct(second)):
        scores.append(CellScore(Labels(first, second), first, second))
    if not numbers and not first.derived:
        return scores
    columns = _leading(first, second)
    looked_at = [score for column in columns for score in _cut(first, second, column)]
    cut: dict[str, list[CellScore]] = {}
    for score in sorted(looked_at, key=lambda score: -score.apart):
        cut.setdefault(score.name, []).append(score)
    told = dict.fromkeys([columns[0], *(score.column for score in cut["bins"][:MOST_KEPT])])
    scores += [ValueScore(first, column) for column in told]
    scores += [BitScore(first, score.column) for score in cut.get("low bits", [])[:MOST_KEPT]]
    scores += [LinearScore(first, second)] if numbers else []
    return scores + [score for kind in CUTS if kind in cut for score in cut[kind][:MOST_KEPT]]


def _cut(first: Sample, second: Sample, column: int) -> list[CellScore]:
    """All ways to cut one column that it allows."""
    bins, repeats = Bins.of(first, second, column), Repeats.of(first, second, column)
    cutters: list[Cutter] = [bins]
    if len(repeats.repeated) > len(bins.atoms):  # otherwise these are cells of the bins
        cutters.append(repeats)
    if has_low_bits(first.columns[:, column]) or has_low_bits(second.columns[:, column]):
        cutters += [LowBits(column, first.place(column), sized) for sized in (False, True)]
    return [CellScore(cutter, first, second, column) for cutter in cutters]


def _few_distinct(sample: Sample) -> bool:
    """Whether outputs repeat, and are not plain numbers, for which there are bins."""
    if sample.plain:
        return False
    glance = Sample(sample.raw[:GLANCE], sample.columns[:GLANCE])
    labels = glance.labels()
    return len(set(labels)) <= max(MOST_LABELS * len(labels), 2)


def _leading(first: Sample, second: Sample) -> list[int]:
    """The columns whose means, or mean squares, differ most, in units of their spread; the first is that of means.

    Of those that were made of others there are as many at most as of those of the outputs themselves.
    """
    apart = np.zeros((2, first.columns.shape[1]))
    left, right = finite(first.columns), finite(second.columns)
    middle, scale = (left.mean(axis=0) + right.mean(axis=0)) / 2, (deviation(left) + deviation(right)) / 2
    for power in (1, 2):
        one, two = (((rows - middle) / scale) ** power for rows in (left, right))
        apart[power - 1] = np.abs(one.mean(axis=0) - two.mean(axis=0)) / (deviation(one) + deviation(two))
    first_of_all = int(np.argmax(apart[0]))
    order = np.argsort(-apart.max(axis=0), kind="stable")
    own, derived = order[order < first.width], order[order >= first.width]
    columns = [*own[:MOST_LOOKED_AT].tolist(), *derived[:MOST_LOOKED_AT].tolist()]
    return [first_of_all, *(column for column in columns if column != first_of_all)]


def _apart(hits: Numbers) -> float:
    """How far two samples lie apart in their cells, in standard deviations: in all of them together, or in one."""
    totals = hits.sum(axis=1, keepdims=True)
    expected = hits.sum(axis=0) * totals / totals.sum()
    parts = 2 * np.sum(xlogy(hits, hits / np.maximum(expected, 1e-300)), axis=0)
    freedom = max(len(parts) - 1, 1)
    return max(float((parts.sum() - freedom) / np.sqrt(2 * freedom)), float(np.sqrt(max(parts.max(), 0.0))))


def _counted(cells: Cells, found: Cells) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(cells, found), minlength=len(cells))


def _difference(features: Numbers, sides: Numbers) -> Numbers:
    """Weights without a fit, for many columns: how far the means lie apart."""
    return np.asarray(features[sides == 1].mean(axis=0) - features[sides == 0].mean(axis=0))


def _fitted(features: Numbers, sides: Numbers) -> Numbers:
    """Logistic regression with a small ridge, by Newton's steps."""
    rows = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = expit(np.clip(rows @ weights, -30, 30))
        slope = rows.T @ (sides - chance) - RIDGE * weights
        bend = (rows.T * (chance * (1 - chance))) @ rows + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights = weights + step * min(1.0, 5 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-6:
            break
    return weights[:-1]
