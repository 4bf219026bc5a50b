"""Scores: numbers learned from samples, high where an output speaks for the first input."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .cells import Bins, Cells, Cutter, Labels, LowBits, is_fractional, place
from .samples import Numbers, Sample

FEW = 5  # outputs in a cell, under which cells are taken together
MOST_LABELS = 0.25  # distinct outputs, as a share of all, up to which they are categories
GLANCE = 1000  # outputs that are looked at to decide that
MOST_NEWTON = 128  # columns up to which the linear score is fitted, with squares
MOST_ROWS = 20_000  # of each input, to fit it
RIDGE = 1.0
STEPS = 12


class Score(ABC):
    """A number for each output; an event is "at least t" or "at most t"."""

    name: str

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

    def __init__(self, cutter: Cutter, first: Sample, second: Sample) -> None:
        self.name, self._cutter = cutter.name, cutter
        cells = [cutter.cells(sample) for sample in (first, second)]
        self._cells = np.unique(np.concatenate(cells))
        hits = np.array([_counted(self._cells, found) for found in cells], dtype=np.float64)
        rare = hits.sum(axis=0) < FEW
        scores = np.log((hits[0] + 0.5) / (hits[1] + 0.5))
        self._other = float(np.log((hits[0, rare].sum() + 0.5) / (hits[1, rare].sum() + 0.5)))
        self._scores = np.where(rare, self._other, scores)

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

    def __init__(self, sample: Sample, column: int) -> None:
        self._column, self._what = column, place(sample, column)

    def values(self, sample: Sample) -> Numbers:
        """Return the number; what is none counts as the least."""
        return np.nan_to_num(sample.columns[:, self._column], nan=-np.inf, posinf=np.inf, neginf=-np.inf)

    def words(self, threshold: float, above: bool) -> str:
        """Say on which side of the threshold."""
        return f"{self._what} {'≥' if above else '≤'} {threshold:.6g}"


class LinearScore(Score):
    """A weighted sum of all numbers of an output and of their squares, fitted by logistic regression.

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
        kept = [_finite(sample.columns[:MOST_ROWS]) for sample in (first, second)]
        rows = np.concatenate(kept)
        self._squares = rows.shape[1] <= MOST_NEWTON
        self._centre, self._spread = rows.mean(axis=0), _spread(rows)
        features = self._features(rows)
        self._middle, self._scale = features.mean(axis=0), _spread(features)
        features = (features - self._middle) / self._scale
        sides = np.repeat([1.0, 0.0], [len(part) for part in kept])
        self._weights = _fitted(features, sides) if self._squares else _difference(features, sides)

    def values(self, sample: Sample) -> Numbers:
        """Return the weighted sum."""
        features = (self._features(_finite(sample.columns)) - self._middle) / self._scale
        return np.asarray(features @ self._weights, dtype=np.float64)

    def words(self, threshold: float, above: bool) -> str:
        """Say that it is a weighted sum, and of what most."""
        width = len(self._centre)
        leading = int(np.argmax(np.abs(self._weights))) % width + 1
        what = f"{width} numbers" + (" and their squares" if self._squares else "")
        sign = "≥" if above else "≤"
        return f"a weighted sum of {what} {sign} {threshold:.4g}, most weight on coordinate {leading}"

    def _features(self, rows: Numbers) -> Numbers:
        rows = (rows - self._centre) / self._spread
        return np.hstack([rows, rows**2]) if self._squares else rows


def learn(first: Sample, second: Sample) -> list[Score]:
    """Return every score that these outputs allow, learned from the two samples.

    Example:
        >>> numbers = np.arange(40.0).reshape(40, 1) / 8
        >>> [score.name for score in learn(Sample(numbers, numbers), Sample(numbers, numbers + 1))]
        ['value', 'bins', 'linear', 'low bits', 'low bits by size']
    """
    scores: list[Score] = []
    numbers = first.columns.shape[1] > 0 and not (np.isnan(first.columns).all() and np.isnan(second.columns).all())
    if not numbers or (_few_distinct(first) and _few_distinct(second)):
        scores.append(CellScore(Labels(first, second), first, second))
    if not numbers:
        return scores
    column = _leading(first, second)
    scores += [ValueScore(first, column), CellScore(Bins.of(first, second, column), first, second)]
    scores.append(LinearScore(first, second))
    if is_fractional(first.columns[:, column]) or is_fractional(second.columns[:, column]):
        cutters = [LowBits(column, place(first, column), sized) for sized in (False, True)]
        scores += [CellScore(cutter, first, second) for cutter in cutters]
    return scores


def _few_distinct(sample: Sample) -> bool:
    """Whether outputs repeat, and are not plain numbers, for which there are bins."""
    if sample.plain:
        return False
    glance = Sample(sample.raw[:GLANCE], sample.columns[:GLANCE])
    labels = glance.labels()
    return len(set(labels)) <= max(MOST_LABELS * len(labels), 2)


def _leading(first: Sample, second: Sample) -> int:
    """The column whose means differ most, in units of its spread."""
    left, right = _finite(first.columns), _finite(second.columns)
    apart = np.abs(left.mean(axis=0) - right.mean(axis=0))
    return int(np.argmax(apart / (_spread(left) + _spread(right))))


def _counted(cells: Cells, found: Cells) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(cells, found), minlength=len(cells))


def _finite(rows: Numbers) -> Numbers:
    return np.clip(np.nan_to_num(rows, nan=0.0), -1e100, 1e100)


def _spread(rows: Numbers) -> Numbers:
    spread = rows.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


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
