"""The measurements behind a synthetic table: all of them Gaussian, on whole numbers, and so one Gaussian event.

Parts of a fixed μ are spent on the counts of each column, and then in rounds: on how far each table of two columns is
from what is known so far, and on the tables that are chosen by that. Where there are enough rows, the last round does
the same with tables of three columns. Which tables, and how noisy, is chosen from what was measured before, and what a
round leaves is spent by the next one. So only the sum of all μ² is fixed: that of Gaussian DP is a filter, which holds
whatever is chosen of what was measured (THEORY 5.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..accounting.notions import LEAST_VARIANCE, SMOOTHING, discrete_gdp
from ..errors import InvalidArgument
from ..mechanisms.randomness import Source
from ..mechanisms.samplers.draws import LARGEST_SIGMA, Variance, discrete_gaussian
from ..units import Adjacency
from . import interactions
from .bins import MOST_BINS, WIDER, Levels, even_share, held
from .choice import LEAST_DEVIATION, Chosen, Columns, Pair, Scores, again
from .denoising import Spread, denoised
from .fit import Fit
from .measured import OFF, Interaction, Margin, Measured
from .mixture import Mixture, Targets, Triple

Floats = NDArray[np.float64]
Weight = Any  # of a table, or of each of its cells
Integers = NDArray[np.int64]

SINGLES, SCORES = 0.41, 0.05  # parts of μ²; the tables of two columns have the rest,
TRIPLES, TRIPLE_SCORES = 0.06, 0.01  # less these, where tables of three columns are measured
ROUNDS = 4
STEPS = 100, 100, 100, 150  # of the fit, by round
LARGER = 2 / 3  # a column of many values gets a larger part, by this power of their number,
MOST_VALUES = 10**5  # as if it had no more than these
HELD = 3.5  # deviations of the noise on a typical cell that a bin of the finest level holds,
FEWEST, MOST = 0.0007, 0.01  # but no smaller and no larger part of the rows
LEVELS = 1.0, 3.0, 9.0  # times as many rows are in the bins of each level
SPREAD = 1.8  # times its distance: how far a table may be from what was expected of it
WINDOW = 20_000.0, 10.0, 100.0  # steps of the fit that are averaged: times the part in a bin, at least, at most
COARSEST = 0.05, 0.1  # the least part of the rows in a bin of tables of three columns, and the most at which they pay
CANDIDATES, CHOSEN = 150, 60  # tables of three columns: how many are scored, and about how many are measured
TINY = 1e-300  # instead of dividing by nothing
WITHIN = 4.0  # times the typical noise on an interaction: so much is to be drawn, or plain counts are measured
UNKNOWN = 0.25  # of its distance: how far a table that was never measured may be from independence


@runtime_checkable
class Counter(Protocol):
    """What counts rows, exactly: nothing of it leaves but by the measurements here."""

    def singles(self) -> Sequence[Integers]:
        """Return how many rows have each value of each column."""

    def pairs(self, bins: Sequence[Integers]) -> Mapping[Pair, Integers]:
        """Return how many rows are in each two bins of each two columns."""

    def tables(self, groups: Sequence[Columns], bins: Sequence[Integers]) -> Mapping[Columns, Integers]:
        """Return how many rows are in each bins of each group of columns: an axis for each."""


@dataclass(frozen=True)
class Costs:
    """What is spent on what.

    Attributes:
        mu: All of it.
        rows: How many rows a unit has at most.
        adjacency: Between neighbours.
        columns: How many there are.
        check: The part of μ² that goes into measuring how far the result is from the rows.
    """

    mu: float
    rows: int
    adjacency: Adjacency
    columns: int
    check: float = 0.0

    @property
    def reach(self) -> float:
        """How far a unit moves a table in ℓ2, in rows: under replace_one its rows leave, and others come."""
        return self.rows * math.sqrt(2) if self.adjacency == "replace_one" else float(self.rows)

    @property
    def moved(self) -> int:
        """How far it moves a distance between two tables; and how many cells of a table of counts it moves at most."""
        return 2 * self.rows if self.adjacency == "replace_one" else self.rows

    def _part(self, of_learning: float) -> float:
        return self.mu * math.sqrt((1 - self.check) * of_learning)

    @property
    def singles(self) -> float:
        """What the counts of all columns cost: all of it where there is only one."""
        return self._part(SINGLES if self.columns > 1 else 1.0)

    def scores(self, *, triples: bool) -> float:
        """Return what the distances of one round cost; those of three columns, of the round that has them."""
        return self._part(TRIPLE_SCORES if triples else SCORES / ROUNDS)

    def pairs(self, *, triples: bool) -> float:
        """Return what the tables of two columns of one round cost, with or without such of three besides."""
        return self._part((1 - SINGLES - SCORES - (TRIPLES + TRIPLE_SCORES if triples else 0)) / ROUNDS)

    @property
    def triples(self) -> float:
        """What the tables of three columns cost, where they are measured."""
        return self._part(TRIPLES)

    @property
    def checked(self) -> int:
        """How many distances tell how near the result is: of each column, and of each two."""
        return self.columns + math.comb(self.columns, 2) if self.check else 0

    def check_deviation(self) -> float:
        """Return the noise on each of them."""
        return self._distance_deviation(self.mu * math.sqrt(self.check), self.checked)

    def deviation(self, mu: float) -> float:
        """Return the noise on a table that shall cost μ: discrete noise gives up a little variance (THEORY 3.5)."""
        return math.sqrt(max((self.reach / mu) ** 2 + SMOOTHING, LEAST_VARIANCE)) * (1 + 2.0**-40)

    def deviations(self, sizes: Sequence[int]) -> Floats:
        """Return the noise on the counts of each column, of so many values each."""
        weights = _weights(sizes)
        mus = self.singles * np.sqrt(weights / weights.sum())
        return np.array([self.deviation(float(mu)) for mu in mus])

    def score_deviation(self, scores: int, *, triples: bool = False) -> float:
        """Return the noise on each of so many distances: one moves by `moved`, where a table moves by `reach`."""
        return self._distance_deviation(self.scores(triples=triples), scores)

    def _distance_deviation(self, mu: float, distances: int) -> float:
        """The noise on each of so many distances that cost μ together."""
        return self.deviation(mu / math.sqrt(max(distances, 1)) * self.reach / self.moved)

    def require_drawn(self, sizes: Sequence[int], most: Sequence[int] | None = None) -> None:
        """Refuse noise that is more than the sampler draws, before anything is charged.

        Args:
            sizes: How many values each column has; or at least has,
            most: where it may have more.

        Raises:
            InvalidArgument: Beyond that, what is drawn would not be what is charged.
        """
        least, largest = _weights(sizes), _weights(sizes if most is None else most)
        parts = least / (least + largest.sum() - largest)
        drawn = [self.deviation(self.singles * math.sqrt(float(parts.min())))]
        if self.columns > 1:
            drawn.append(self.score_deviation(len(LEVELS) * math.comb(self.columns, 2)))
        if self.check:
            drawn.append(self.check_deviation())
        _require_drawn(max(drawn))

    @property
    def triples_drawn(self) -> bool:
        """Whether the noise on distances of tables of three columns can be drawn."""
        return self.score_deviation(CANDIDATES, triples=True) <= LARGEST_SIGMA

    @property
    def outside(self) -> float:
        """The probability that some noise is not what passes for Gaussian, over all that a unit moves.

        Each number that moves counts once, however far it moves (`discrete_gdp`). Of counts `moved` cells of a table
        move at most; of a round's interactions all cells may, which are fewer than half of the square of all bins.
        """
        pairs, triples = math.comb(self.columns, 2), min(math.comb(self.columns, 3), CANDIDATES)
        distances = len(LEVELS) * ROUNDS * pairs + triples + self.checked
        counts = self.columns * self.moved + distances
        cells = triples * self.moved + (ROUNDS * MOST_BINS**2 // 2 if pairs else 0)
        least = math.sqrt(LEAST_VARIANCE) * (1 + 2.0**-40)
        return counts * discrete_gdp(least, 1)[1] + cells * discrete_gdp(LEAST_DEVIATION, 1)[1]


@dataclass(frozen=True)
class Learnt:
    """What was learnt: a model, and nothing of the rows.

    Attributes:
        mixture: Of bins.
        singles: The share of each value of each column.
        rows: How many there are, about.
        measured: The noisy tables that it was learnt from.
        fit: How far it is from the rows, where that was measured.
    """

    mixture: Mixture
    singles: Sequence[Floats]
    rows: int
    measured: tuple[Measured, ...] = ()
    fit: Fit | None = None


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
        self.counter, self.costs, self.source, self.generator = counter, costs, source, generator
        self.pairs = tuple(combinations(range(len(ordered)), 2))
        self.singly = counter.singles()
        self._measure_singles(self.singly, ordered)
        coarsest = self._coarsest()
        self.with_triples = len(ordered) > 2 and coarsest <= COARSEST[1] and self.costs.triples_drawn
        self.levels = self._levels((coarsest,) if self.with_triples else ())
        finest = counter.pairs(self.levels.bins)
        self.counted = {
            (pair, level): self.levels.merged(finest[pair], level, *pair)
            for pair in self.pairs
            for level in range(len(LEVELS))
        }
        self.held = [held(bins, share) for bins, share in zip(self.levels.bins, self.singles, strict=True)]
        self.known: dict[tuple[Pair, int], tuple[Floats, Floats]] = {}
        self.found: dict[tuple[Pair, int], tuple[Floats, float]] = {}  # interactions, without what was expected
        self.triples: list[Triple] = []

    def learnt(self) -> Learnt:
        """Choose tables, measure them and fit the mixture to all that is known, some times over."""
        mixture = Mixture.begun(self.levels, np.concatenate(self.held).astype(np.float32), self.generator)
        model: Sequence[NDArray[np.floating]] = _independent(self.levels, self.held)
        first, left = None, Fraction(0)  # of μ², exactly: what was not spent is handed on
        for rounds_left, steps in zip(reversed(range(ROUNDS)), STEPS, strict=True):
            scores = self._scores(model)
            first = first or scores
            if self.with_triples and not rounds_left:
                left += Fraction(self.costs.triples) ** 2 - self._measure_triples(mixture)
            left += Fraction(self.costs.pairs(triples=self.with_triples)) ** 2
            left -= self._measure_pairs(scores, model, left, last=not rounds_left)
            mixture = mixture.fitted(self._targets(first), steps, self._window())
            model = mixture.tables()
        fit = self._fit(mixture) if self.costs.check else None
        return Learnt(mixture, self.singles, round(self.rows), self._measured(), fit)

    def _fit(self, mixture: Mixture) -> Fit:
        """How far the rows are from what was learnt. Nothing is chosen by it, so that it is right on average."""
        shares, table = mixture.shares.mean(axis=0).astype(np.float64), mixture.tables()[0]
        distances: dict[Columns, int] = {}
        for column, (bins, within) in enumerate(zip(self.levels.bins, self.singles, strict=True)):
            times = shares[self.levels.slice(0, column)] / np.maximum(self.held[column], TINY)
            distances[column,] = self._distance(self.singly[column], within * times[bins])
        for pair in self.pairs:
            here, there = (self.levels.slice(0, column) for column in pair)
            distances[pair] = self._distance(self.counted[pair, 0], table[here, there])
        deviation = self.costs.check_deviation()
        noisy = self._noisy(np.array(list(distances.values()), dtype=np.int64), deviation)
        return Fit(dict(zip(distances, noisy.tolist(), strict=True)), deviation, self.rows)

    def _measured(self) -> tuple[Measured, ...]:
        """All noisy tables, without the scores by which they were chosen."""
        margins = [
            Margin(column, noisy.astype(np.float64), float(noise) ** 2)
            for column, (noisy, noise) in enumerate(zip(self.noisy, self.deviations, strict=True))
        ]
        made: list[Measured] = [*margins]
        for ((one, other), level), (table, weight) in self.found.items():
            bins = self.levels.of_values(level, one), self.levels.of_values(level, other)
            made.append(Interaction((margins[one], margins[other]), bins, table, 1 / weight))
        return tuple(made)

    def _coarsest(self) -> float:
        """The part of the rows in bins of tables of three columns, so that a typical cell holds a deviation."""
        noise = self.costs.deviation(self.costs.triples / math.sqrt(CHOSEN))
        return max(math.cbrt(noise / self.rows), COARSEST[0])

    def _levels(self, coarsest: tuple[float, ...]) -> Levels:
        """Bins that hold more rows the more noise there is, and more where there would be too many of them.

        Where even bins of a hundredth of the rows are too many, columns of many bins get fewer of them each.
        """
        each = self.costs.pairs(triples=self.with_triples) * math.sqrt(ROUNDS / max(len(self.pairs), 1))
        self.noise = HELD * self.costs.deviation(each) / self.rows
        least, most = min(max(self.noise, FEWEST), MOST), None
        while True:
            levels = Levels.of(self.singles, (*(least * times for times in LEVELS), *coarsest), most)
            if levels.finest <= MOST_BINS:
                return levels
            if least <= MOST:
                least *= WIDER
            else:
                most = even_share(levels.sizes[0].tolist(), MOST_BINS)

    def _window(self) -> float:
        times, least, most = WINDOW
        return min(max(times * self.noise, least), most)

    def _noisy(self, counts: Integers, deviation: float) -> Integers:
        if not counts.size:
            return counts
        _require_drawn(deviation)
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

    def _scores(self, model: Sequence[NDArray[np.floating]]) -> Scores[Pair]:
        """How far each table is from the model: a distance moves no farther than the table does in ℓ1."""
        levels, shape = self.levels, (len(self.pairs), len(LEVELS))
        distances, errors, reaches = np.zeros(shape, dtype=np.int64), np.zeros(shape), np.ones(shape)
        for place, pair in enumerate(self.pairs):
            for level, sizes in enumerate(levels.sizes[: len(LEVELS), list(pair)]):
                same = level > 0 and (sizes == levels.sizes[level - 1, list(pair)]).all()
                if not same and sizes.min() > 1:
                    expected = model[level][tuple(levels.slice(level, column) for column in pair)]
                    distances[place, level] = self._distance(self.counted[pair, level], expected)
                    one, other = map(int, sizes)
                    times, reaches[place, level] = self._whole((one, other))
                    cells = one * other * math.sqrt((1 - 1 / one) * (1 - 1 / other))  # less what is centred
                    errors[place, level] = reaches[place, level] / times * cells
        return Scores(self.pairs, self._noisy_distances(distances, errors > 0), errors, reaches)

    def _distance(self, counts: Integers, shares: NDArray[np.floating]) -> int:
        expected = np.rint(self.rows * shares.astype(np.float64)).astype(np.int64)
        return int(np.abs(counts - expected).sum())

    def _noisy_distances(self, distances: Integers, told: NDArray[np.bool_], *, triples: bool = False) -> Floats:
        """Distances with noise, less its deviation, where they are told; 0 elsewhere."""
        deviation = self.costs.score_deviation(int(told.sum()), triples=triples)
        noisy = np.zeros(distances.shape)
        noisy[told] = self._noisy(distances[told], deviation) - deviation
        return noisy

    def _measure_pairs(
        self, scores: Scores[Pair], model: Sequence[NDArray[np.floating]], budget: Fraction, *, last: bool
    ) -> Fraction:
        """Measure what is chosen for a μ² of at most the budget, and return what was spent.

        In the last round that is all of it, if any table was ever measured, unless no noise may be smaller.
        """
        mu = math.sqrt(budget) * (1 - 2.0**-44)
        chosen = scores.chosen(mu, whole=last)
        if last and not chosen:
            chosen = self._again(mu)
        for pair, (level, _, deviation) in chosen.items():
            key = pair, level
            if key not in self.known:
                self.known[key] = self._expected(pair, level, scores, model)
            self.known[key] = _averaged(self.known[key], self._measured_pair(pair, level, deviation))
        return _spent(chosen)

    def _again(self, mu: float) -> dict[Pair, Chosen]:
        """Return the tables that were measured before, where no table is worth the μ that is left."""
        levels = dict(self.found.keys())  # of each pair the one that was first measured after its others
        shapes = {pair: self.counted[pair, level].shape for pair, level in levels.items()}
        return again({pair: (level, self._whole(shapes[pair])[1]) for pair, level in levels.items()}, mu)

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, float]:
        """Return what an interaction is measured times, so that it is of whole numbers, and how far a unit moves those.

        Of x × y counts that is xy. Where so much noise is not drawn, as for units of very many rows, the counts are
        measured as they are: their margins are then thrown away, which costs little of a table of many cells.
        """
        one, other = shape
        reach = interactions.reach((one, other), self.costs.rows, self.costs.adjacency)
        typical = self.costs.pairs(triples=self.with_triples) / math.sqrt(len(self.pairs))
        return (one * other, reach) if WITHIN * reach <= LARGEST_SIGMA * typical else (1, self.costs.reach)

    def _measured_pair(self, pair: Pair, level: int, deviation: float) -> tuple[Floats, float]:
        """Measure the interaction of two columns; return the table that it makes with their counts, and its weight."""
        counts, key = self.counted[pair, level], (pair, level)
        times, _ = self._whole(counts.shape)
        noisy = self._noisy(counts if times == 1 else interactions.interaction(counts), deviation)
        found = interactions.centred(noisy / times), (times / deviation) ** 2
        self.found[key] = _averaged(self.found[key], found) if key in self.found else found
        table, weight = found
        return interactions.with_margins(table, *(self.rows * self._held(level, column) for column in pair)), weight

    def _expected(
        self, pair: Pair, level: int, scores: Scores[Pair], model: Sequence[NDArray[np.floating]]
    ) -> tuple[Floats, Floats]:
        """What is expected of a table by the model, before it is measured: counts and their weights."""
        expected = self.rows * model[level][tuple(self.levels.slice(level, column) for column in pair)]
        distance = float(scores.distances[self.pairs.index(pair), level])
        return _spread(expected.astype(np.float64), distance)

    def _held(self, level: int, column: int) -> Floats:
        """What each bin of a column holds at a level."""
        return held(self.levels.coarser[level - 1][column], self.held[column]) if level else self.held[column]

    def _measure_triples(self, mixture: Mixture) -> Fraction:
        """Measure tables of three columns that the mixture does not tell, and return the μ² that was spent on them."""
        levels, candidates = self.levels, self._candidates(mixture)
        coarsest = [coarser[bins] for coarser, bins in zip(levels.coarser[-1], levels.bins, strict=True)]
        counted = self.counter.tables(candidates, coarsest)
        distances = np.array([self._distance(counted[one], mixture.triple(one)) for one in candidates], dtype=np.int64)
        noisy = self._noisy_distances(distances, np.full(distances.shape, fill_value=True), triples=True)
        farthest = np.argsort(-noisy)[:CHOSEN]
        tables = tuple(candidates[place] for place in farthest)
        cells = np.array([counted[one].size for one in tables], dtype=np.float64)
        far, reach = noisy[farthest, np.newaxis], np.full((len(tables), 1), self.costs.reach)
        scores = Scores(tables, far, self.costs.reach * cells[:, np.newaxis], reach)
        chosen = scores.chosen(self.costs.triples, whole=True)
        for columns, (_, _, deviation) in chosen.items():
            table = self._noisy(counted[columns], deviation)
            self.triples.append(Triple(columns, (table / self.rows).astype(np.float32), (self.rows / deviation) ** 2))
        return _spent(chosen)

    def _candidates(self, mixture: Mixture) -> list[Columns]:
        """Three columns each, of which the mixture has most dependence in pairs: chosen for nothing."""
        levels, tables = self.levels, mixture.tables()[-1].astype(np.float64)
        singles = np.concatenate([held(*one) for one in zip(levels.coarser[-1], self.held, strict=True)])
        starts = levels.starts[-1]
        far = np.abs(tables - np.outer(singles, singles))
        far = np.add.reduceat(np.add.reduceat(far, starts, axis=0), starts, axis=1)
        told = [column for column, size in enumerate(levels.sizes[-1]) if size > 1]
        found = sorted(combinations(told, 3), key=lambda one: -sum(far[pair] for pair in combinations(one, 2)))
        return list(found[:CANDIDATES])

    def _targets(self, scores: Scores[Pair]) -> Targets:
        """All that is known, as shares; tables that were never measured are drawn to independence, weakly."""
        weights = [
            (self.rows / noise) ** 2 / np.bincount(bins)
            for noise, bins in zip(self.deviations, self.levels.bins, strict=True)
        ]
        singles, single_weights = (np.concatenate(parts).astype(np.float32) for parts in (self.held, weights))
        targets = Targets(self.levels, singles, single_weights, self.triples)
        for (pair, level), (table, weight) in self.known.items():
            targets.put(level, pair, table / self.rows, self.rows**2 * weight)
        measured = {pair for pair, _ in self.known}
        least = 2 * self.costs.moved * math.sqrt(scores.distances.size) / self.costs.scores(triples=False)
        for place, pair in enumerate(self.pairs):
            if pair not in measured:
                product = np.outer(self.held[pair[0]], self.held[pair[1]])
                far = UNKNOWN * max(float(scores.distances[place, 0]), least)
                targets.put(0, pair, product, self.rows**2 * product.size / far**2)
        return targets


def _spread(table: Floats, distance: float) -> tuple[Floats, Floats]:
    """Return a table, and the weights of its cells where another one is so far from it.

    That one's cells are spread around it, those of many rows more than those of few, as the square root.
    """
    likely = np.sqrt(np.maximum(table, 1e-3))
    spread = SPREAD * distance / OFF * likely / likely.sum()
    return table, 1 / spread**2


def _averaged(known: tuple[Floats, Weight], found: tuple[Floats, Weight]) -> tuple[Floats, Weight]:
    """Return two noisy tables as one, and its weight: each counts as much as it is precise."""
    (one, sure), (other, surer) = known, found
    return (one * sure + other * surer) / (sure + surer), sure + surer


def _spent(chosen: Mapping[Any, Chosen]) -> Fraction:
    return sum((Fraction(one.mu) ** 2 for one in chosen.values()), Fraction(0))


def _weights(sizes: Sequence[int]) -> Floats:
    return np.minimum(np.array(sizes, dtype=np.float64), MOST_VALUES) ** LARGER


def _require_drawn(deviation: float) -> None:
    if deviation > LARGEST_SIGMA:
        raise InvalidArgument(
            f"noise with a deviation of {deviation:.3g} rows is more than is drawn, {LARGEST_SIGMA:.3g}.",
            do="take a larger epsilon, fewer columns, or a smaller max_rows_per_unit.",
        )


def _shares(counts: Floats) -> Floats:
    return counts / counts.sum() if counts.any() else np.full(counts.size, 1 / counts.size)


def _independent(levels: Levels, shares: Sequence[Floats]) -> list[Floats]:
    """The tables of independent columns, by level."""
    coarser = [[held(bins, share) for bins, share in zip(columns, shares, strict=True)] for columns in levels.coarser]
    return [np.outer(row, row) for row in map(np.concatenate, [shares, *coarser])]
