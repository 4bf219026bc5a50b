"""Numbers made of several numbers of an output: what one column does not tell, two may."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .samples import Numbers, Sample

MOST_PAIRS = 10  # of columns, those that go together most differently with the two inputs
MOST_PAIRED = 128  # columns that are looked through for them, by their correlation
MOST_COMPARED = 32  # and by how often two numbers are equal
FARTHEST = 5.0  # standard deviations, beyond which a number counts no more for a correlation
MOST_WRITTEN = 8  # numbers of an output that is also looked at as text
MOST_GAPS = 50  # columns whose pattern of missing numbers is a number exactly


@dataclass(frozen=True)
class Features:
    """Which columns are added to a sample: differences, sums and products of pairs, what is missing, and lengths.

    Products are of what lies beyond the means of both samples together: high where two numbers go together. Lengths
    are those of the outputs as text: equal numbers may be written in different ways.

    Example:
        >>> sample = Sample([], np.array([[1.0, 2.0], [3.0, 2.0], [np.nan, 5.0]]))
        >>> added = Features.of(sample, sample).added(sample)
        >>> added.derived[0], added.columns[:, 2].tolist()[:2]
        ('coordinate 1 - coordinate 2', [-1.0, 1.0])
        >>> added.derived[-1], added.columns[:, -1].tolist()
        ('pattern of missing numbers', [0.0, 0.0, 1.0])
    """

    pairs: tuple[tuple[int, int], ...]
    centre: Numbers
    gaps: bool
    lengths: bool

    @classmethod
    def of(cls, first: Sample, second: Sample) -> Features:
        """Choose the columns by two samples together."""
        rows = [finite(sample.columns) for sample in (first, second)]
        centre = np.concatenate(rows).mean(axis=0) if first.columns.shape[1] else np.zeros(0)
        gaps = bool(np.isnan(first.columns).any() or np.isnan(second.columns).any())
        written = [*first.lengths(), *second.lengths()] if first.width <= MOST_WRITTEN else []
        return cls(_pairs(*rows), centre, gaps, lengths=len(set(written)) > 1)

    def added(self, sample: Sample) -> Sample:
        """Return the sample with the columns of pairs, and with those of gaps and of lengths where there are any."""
        columns, names = [sample.columns], []
        for left, right in self.pairs:
            one, two = sample.columns[:, left], sample.columns[:, right]
            with np.errstate(over="ignore", invalid="ignore"):
                product = (one - self.centre[left]) * (two - self.centre[right])
                columns.append(np.column_stack([one - two, one + two, product]))
            names += [f"coordinate {left + 1} {sign} coordinate {right + 1}" for sign in ("-", "+", "×")]
        if self.gaps:
            missing = np.isnan(sample.columns[:, :MOST_GAPS])
            columns.append((missing @ 2.0 ** np.arange(missing.shape[1]))[:, None])
            names.append("pattern of missing numbers")
        if self.lengths:
            columns.append(sample.lengths()[:, None])
            names.append("length as text")
        if not names:
            return sample
        return replace(sample, columns=np.hstack(columns), derived=tuple(names))


def _pairs(first: Numbers, second: Numbers) -> tuple[tuple[int, int], ...]:
    width = min(first.shape[1], MOST_PAIRED)
    left, right = np.triu_indices(width, 1)
    if len(left) > MOST_PAIRS:
        both = np.concatenate([first, second])[:, :width]
        middle, spread = both.mean(axis=0), deviation(both)
        change = _correlation(first[:, :width], middle, spread) - _correlation(second[:, :width], middle, spread)
        size = np.maximum(np.abs(change[left, right]), _told_by_equality(first, second, left, right))
        best = np.argsort(-size, kind="stable")[:MOST_PAIRS]
        left, right = left[best], right[best]
    return tuple(zip(left.tolist(), right.tolist(), strict=True))


def _correlation(rows: Numbers, middle: Numbers, spread: Numbers) -> Numbers:
    near = np.clip((rows - middle) / spread, -FARTHEST, FARTHEST)
    return np.asarray(near.T @ near / len(near))


def _told_by_equality(first: Numbers, second: Numbers, left: Any, right: Any) -> Numbers:
    """How differently often two numbers are equal: in standard deviations of one output, as correlations are."""
    told = np.zeros(len(left))
    for place, (one, two) in enumerate(zip(left, right, strict=True)):
        if two < MOST_COMPARED:
            rates = [np.mean(rows[:, one] == rows[:, two]) for rows in (first, second)]
            middle = (rates[0] + rates[1]) / 2
            told[place] = abs(rates[0] - rates[1]) / np.sqrt(max(middle * (1 - middle), 1 / len(first)))
    return told


def finite(rows: Numbers) -> Numbers:
    """Return numbers that one can compute with: 0 for what is none, and nothing that overflows."""
    return np.clip(np.nan_to_num(rows, nan=0.0), -1e100, 1e100)


def deviation(rows: Numbers) -> Numbers:
    """Return the standard deviation of each column; 1 where nothing varies."""
    found = rows.std(axis=0)
    return np.where(found > 0, found, 1.0)
