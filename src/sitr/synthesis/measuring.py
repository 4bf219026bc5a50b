"""The measurements behind a synthetic table: all of them Gaussian, on whole numbers, and so one Gaussian event.

Three parts of a fixed μ are spent: on the counts of each column; on how far each table of two columns is from what is
known so far; and on the tables that are chosen by that. Which tables, and how noisy, is chosen from what was measured
before, but what each part costs is fixed before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..accounting.notions import LEAST_VARIANCE, SMOOTHING, discrete_gdp
from ..mechanisms.randomness import Source
from ..mechanisms.samplers.draws import Variance, discrete_gaussian
from .bins import Levels, held
from .choice import Pair, Scores
from .denoising import Spread, denoised
from .measured import Measured
from .mixture import Mixture, Targets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SINGLES, SCORES = 0.3, 0.06  # parts of μ²; the tables of two columns have the rest
ROUNDS = 2
WIDER = 2 / 3  # a column of many values gets a larger part, by this power of their number
HELD = 14.0  # deviations of the noise on a typical cell that a bin holds,
FEWEST, MOST = 0.002, 0.05  # but no smaller and no larger part of the rows
COARSER = 3.0  # times as many rows are in the bins of the second level
UNKNOWN = 0.25  # of its distance: how far a table that was never measured may be from independence


@runtime_checkable
class Counter(Protocol):
    """What counts rows, exactly: nothing of it leaves but by the measurements here."""

    def singles(self) -> Sequence[Integers]:
        """Return how many rows have each value of each column."""

    def pairs(self, bins: Sequence[Integers]) -> Mapping[Pair, Integers]:
        """Return how many rows are in each two bins of each two columns."""


@dataclass(frozen=True)
class Costs:
    """What is spent on what.

    Attributes:
        mu: All of it.
        reach: How far a unit moves a table in ℓ2, in rows,
        moved: and a distance between two tables.
    """

    mu: float
    reach: float
    moved: float

    @property
    def singles(self) -> float:
        """What the counts of all columns cost."""
        return self.mu * math.sqrt(SINGLES)

    @property
    def scores(self) -> float:
        """What the distances of one round cost."""
        return self.mu * math.sqrt(SCORES / ROUNDS)

    @property
    def pairs(self) -> float:
        """What the tables of one round cost."""
        return self.mu * math.sqrt((1 - SINGLES - SCORES) / ROUNDS)

    def deviation(self, mu: float) -> float:
        """Return the noise on a table that shall cost μ: discrete noise gives up a little variance (THEORY 3.5)."""
        return math.sqrt(max((self.reach / mu) ** 2 + SMOOTHING, LEAST_VARIANCE)) * (1 + 2.0**-40)

    def deviations(self, sizes: Sequence[int]) -> Floats:
        """Return the noise on the counts of each column, of so many values each."""
        weights = np.array([size**WIDER for size in sizes])
        mus = self.singles * np.sqrt(weights / weights.sum())
        return np.array([self.deviation(float(mu)) for mu in mus])

    def outside(self, columns: int) -> float:
        """Return the probability that some noise is not what passes for Gaussian, over all that a unit moves."""
        pairs = columns * (columns - 1) // 2
        moved = (columns + ROUNDS * pairs) * math.ceil(self.reach**2) + 2 * ROUNDS * pairs * math.ceil(self.moved**2)
        return moved * discrete_gdp(math.sqrt(LEAST_VARIANCE) * (1 + 2.0**-40), 1)[1]


@dataclass(frozen=True)
class Learnt:
    """What was learnt: a model, and nothing of the rows.

    Attributes:
        mixture: Of bins.
        singles: The share of each value of each column.
        rows: How many there are, about.
        measured: The noisy tables that it was learnt from.
    """

    mixture: Mixture
    singles: Sequence[Floats]
    rows: int
    measured: tuple[Measured, ...] = ()


class Measuring:
    """Measures, and fits a mixture to what was measured.

    Args:
        counter: Counts rows.
        ordered: Of each column, whether neighbouring values may be alike.
        costs: What may be spent.
        source: Of noise.
        generator: Of what is not noise: where the mixture begins.
    """

    def __init__(
        self,
        counter: Counter,
        ordered: Sequence[bool],
        costs: Costs,
        source: Source,
        generator: np.random.Generator,
    ) -> None:
        self.costs, self.source = costs, source
        self.pairs = tuple(combinations(range(len(ordered)), 2))
        self._measure_singles(counter.singles(), ordered)
        typical = costs.deviation(costs.pairs * math.sqrt(ROUNDS / max(len(self.pairs), 1)))
        least = min(max(HELD * typical / self.rows, FEWEST), MOST)
        self.levels = Levels.of(self.singles, (least, COARSER * least))
        finest, depth = counter.pairs(self.levels.bins), len(self.levels.sizes)
        self.counted = {
            (pair, level): self.levels.merged(finest[pair], level, *pair)
            for pair in self.pairs
            for level in range(depth)
        }
        self.held = [held(bins, share) for bins, share in zip(self.levels.bins, self.singles, strict=True)]
        self.known: dict[tuple[Pair, int], tuple[Floats, float]] = {}
        self.generator = generator

    def learnt(self) -> Learnt:
        """Choose tables, measure them and fit the mixture to all that is known, twice."""
        mixture = Mixture.begun(self.levels, np.concatenate(self.held).astype(np.float32), self.generator)
        model, first = _independent(self.levels, self.held), None
        for _ in range(ROUNDS):
            scores = self._scores(model)
            first = first or scores
            self._measure_pairs(scores)
            mixture = mixture.fitted(self._targets(first))
            model = mixture.tables().astype(np.float64)
        return Learnt(mixture, self.singles, round(self.rows), self._measured())

    def _measured(self) -> tuple[Measured, ...]:
        """All noisy tables, without the scores by which they were chosen."""
        made = [
            Measured((column,), (np.arange(noisy.size),), noisy.astype(np.float64), float(noise) ** 2)
            for column, (noisy, noise) in enumerate(zip(self.noisy, self.deviations, strict=True))
        ]
        for (pair, level), (table, weight) in self.known.items():
            bins = tuple(
                self.levels.coarser[level - 1][column][self.levels.bins[column]] if level else self.levels.bins[column]
                for column in pair
            )
            made.append(Measured(pair, bins, table, 1 / weight))
        return tuple(made)

    def _noisy(self, counts: Integers, deviation: float) -> Integers:
        variance = Variance(Fraction(deviation) ** 2)  # the sampler takes a variance, never a deviation
        return counts + discrete_gaussian(variance, counts.size, self.source).reshape(counts.shape)

    def _measure_singles(self, counts: Sequence[Integers], ordered: Sequence[bool]) -> None:
        """Count each column, and all rows by all of them together."""
        self.deviations = self.costs.deviations([count.size for count in counts])
        noisy = [self._noisy(count, float(noise)) for count, noise in zip(counts, self.deviations, strict=True)]
        self.noisy = noisy
        precision = 1 / (np.array([count.size for count in counts]) * self.deviations**2)
        self.rows = max(float(np.dot([one.sum() for one in noisy], precision) / precision.sum()), 1.0)
        self.singles = [
            _shares(denoised(one, Spread("gaussian", float(noise)), ordered=in_order).counts)
            for one, noise, in_order in zip(noisy, self.deviations, ordered, strict=True)
        ]

    def _scores(self, model: Floats) -> Scores:
        """How far each table is from the model: a distance moves no farther than the table does in ℓ1."""
        levels, costs = self.levels, self.costs
        shape = len(self.pairs), len(levels.sizes)
        distances, cells = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        for place, pair in enumerate(self.pairs):
            for level, sizes in enumerate(levels.sizes):
                expected = np.rint(self.rows * model[tuple(levels.slice(level, column) for column in pair)])
                distances[place, level] = np.abs(self.counted[pair, level] - expected.astype(np.int64)).sum()
                same = level > 0 and (sizes[[*pair]] == levels.sizes[level - 1][[*pair]]).all()
                cells[place, level] = 0 if same or sizes[[*pair]].min() < 2 else sizes[[*pair]].prod()
        each = costs.scores / math.sqrt(max(distances.size, 1)) * costs.reach / costs.moved
        return Scores(self.pairs, self._noisy(distances, costs.deviation(each)), cells, costs.reach)

    def _measure_pairs(self, scores: Scores) -> None:
        """Measure what was chosen; what was measured before is averaged with it."""
        for pair, (level, mu) in scores.chosen(self.costs.pairs).items():
            deviation = self.costs.deviation(mu)
            table = self._noisy(self.counted[pair, level], deviation)
            before, weight = self.known.get((pair, level), (np.zeros(table.shape), 0.0))
            together = weight + deviation**-2
            self.known[pair, level] = (before * weight + table * deviation**-2) / together, together

    def _targets(self, scores: Scores) -> Targets:
        """All that is known, as shares; tables that were never measured are drawn to independence, weakly."""
        weights = [
            (self.rows / noise) ** 2 / np.bincount(bins)
            for noise, bins in zip(self.deviations, self.levels.bins, strict=True)
        ]
        singles, single_weights = (np.concatenate(parts).astype(np.float32) for parts in (self.held, weights))
        targets = Targets(self.levels, singles, single_weights)
        for (pair, level), (table, weight) in self.known.items():
            targets.put(level, pair, table / self.rows, self.rows**2 * weight, measured=True)
        measured = {pair for pair, _ in self.known}
        least = 2 * self.costs.moved * math.sqrt(scores.distances.size) / self.costs.scores
        for place, pair in enumerate(self.pairs):
            if pair not in measured:
                product = np.outer(self.held[pair[0]], self.held[pair[1]])
                far = UNKNOWN * max(float(scores.distances[place, 0]), least)
                targets.put(0, pair, product, self.rows**2 * product.size / far**2, measured=False)
        return targets


def _shares(counts: Floats) -> Floats:
    return counts / counts.sum() if counts.any() else np.full(counts.size, 1 / counts.size)


def _independent(levels: Levels, shares: Sequence[Floats]) -> Floats:
    """The tables of independent columns, at all levels."""
    row = [*shares]
    for columns in levels.coarser:
        row += [held(bins, share) for bins, share in zip(columns, shares, strict=True)]
    return np.outer(np.concatenate(row), np.concatenate(row))
