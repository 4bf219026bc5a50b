"""The measurements behind a synthetic table: all of them Gaussian, on whole numbers, and so one Gaussian event.

Three parts of a fixed μ are spent: on the counts of each column; on how far each table of two columns is from what is
known so far; and on the tables that are chosen by that. Which ones, and with how much noise, is chosen from what was
released before, but the sum of their μ² is fixed before anything is read (THEORY 4.6, 5.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.randomness import Source
from ..mechanisms.samplers.draws import discrete_gaussian
from .bins import Levels
from .choice import Pair, Scores
from .denoising import Spread, denoised
from .mixture import Mixture, Targets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SINGLES, SCORES = 0.3, 0.06  # parts of μ²; the tables have the rest
ROUNDS = 2
WIDER = 2 / 3  # columns of many values get a larger part, by this power of their number
HELD = 14.0  # deviations of the noise on a typical cell that a bin holds
FEWEST, MOST = 0.002, 0.05  # of all rows that a bin holds
COARSER = 3.0  # by which the bins of the second level hold more
UNKNOWN = 0.25  # of its distance: how far a pair that was never measured may be from independence
SMOOTHING = 3  # of variance, that discrete noise gives up for the proof that it is Gaussian (THEORY 3.5)


class Counter(Protocol):
    """What counts rows, exactly: nothing of it may leave but by the measurements here."""

    def singles(self) -> list[Integers]:
        """Return how many rows have each value of each column."""

    def pairs(self, bins: Sequence[Integers]) -> Mapping[Pair, Integers]:
        """Return how many rows are in each two bins of each two columns."""


@dataclass(frozen=True)
class Fitted:
    """What was learnt: a model, and nothing of the rows.

    Attributes:
        mixture: Of bins.
        singles: The share of each value of each column.
        rows: How many there are, about.
    """

    mixture: Mixture
    singles: list[Floats]
    rows: int


def fitted(
    counter: Counter, sizes: Sequence[int], ordered: Sequence[bool], mu: float, source: Source, generator: np.random.Generator
) -> Fitted:
    """Measure, and fit a mixture to what was measured."""
    parts = [share * mu**2 for share in (SINGLES, SCORES / ROUNDS, (1 - SINGLES - SCORES) / ROUNDS)]
    singles, deviations, rows = _singles(counter.singles(), sizes, ordered, parts[0], source)
    columns = range(len(sizes))
    pairs = tuple(combinations(columns, 2))
    typical = math.sqrt(len(pairs) / (ROUNDS * parts[2])) if pairs else 1.0
    least = min(max(HELD * typical / rows, FEWEST), MOST)
    levels = Levels.of(singles, (least, COARSER * least))
    counted = counter.pairs(levels.bins)
    held = [np.bincount(bins, share) for bins, share in zip(levels.bins, singles, strict=True)]
    weights = [
        np.full(share.size, (rows / deviations[column]) ** 2) / np.bincount(levels.bins[column])
        for column, share in enumerate(held)
    ]
    flat = np.concatenate(held).astype(np.float32)
    mixture = Mixture.begun(levels, flat, generator)
    model = _product(levels, held)
    known: dict[tuple[Pair, int], tuple[Floats, float]] = {}
    first: Scores | None = None
    for _ in range(ROUNDS):
        scores = _scored(levels, counted, pairs, model, rows, math.sqrt(parts[1]), source)
        first = first or scores
        for pair, (level, part) in scores.chosen(math.sqrt(parts[2])).items():
            variance = 1 / part**2 + SMOOTHING
            table = levels.merged(counted[pair], level, *pair)
            noisy = table + discrete_gaussian(Fraction(math.sqrt(variance)), table.size, source).reshape(table.shape)
            before, weight = known.get((pair, level), (np.zeros(table.shape), 0.0))
            together = weight + 1 / variance
            known[pair, level] = (before * weight + noisy / variance) / together, together
        targets = Targets(levels, flat, np.concatenate(weights).astype(np.float32))
        for (pair, level), (table, weight) in known.items():
            targets.put(level, *pair, table / rows, rows**2 * weight, measured=True)
        _leave_independent(targets, held, pairs, {pair for pair, _ in known}, first, rows, math.sqrt(parts[1]))
        mixture = mixture.fitted(targets)
        model = mixture.tables().astype(np.float64)
    return Fitted(mixture, singles, round(rows))


def _singles(
    counts: Sequence[Integers], sizes: Sequence[int], ordered: Sequence[bool], budget: float, source: Source
) -> tuple[list[Floats], Floats, float]:
    """The share of each value of each column, the noise on the counts, and how many rows there are."""
    weights = np.asarray(sizes, dtype=np.float64) ** WIDER
    deviations = np.sqrt(weights.sum() / (weights * budget) + SMOOTHING)
    noisy = [
        count + discrete_gaussian(Fraction(float(deviation)), count.size, source)
        for count, deviation in zip(counts, deviations, strict=True)
    ]
    precision = 1 / (np.asarray(sizes) * deviations**2)
    rows = max(float(np.dot([one.sum() for one in noisy], precision) / precision.sum()), 1.0)
    shares = []
    for one, deviation, in_order in zip(noisy, deviations, ordered, strict=True):
        found = denoised(one, Spread("gaussian", float(deviation)), ordered=in_order).counts
        shares.append(found / found.sum() if found.any() else np.full(found.size, 1 / found.size))
    return shares, deviations, rows


def _product(levels: Levels, held: Sequence[Floats]) -> Floats:
    """The tables of independent columns, at all levels."""
    flat = [*held]
    for columns in levels.coarser:
        flat += [np.bincount(bins, share) for bins, share in zip(columns, held, strict=True)]
    row = np.concatenate(flat)
    return np.outer(row, row)


def _scored(
    levels: Levels, counted: Mapping[Pair, Integers], pairs: Sequence[Pair], model: Floats, rows: float, mu: float, source: Source
) -> Scores:
    """How far each table is from the model, with noise: one row moves each distance by at most 1."""
    depth = len(levels.sizes)
    variance = len(pairs) * depth / mu**2 + SMOOTHING
    distances, cells = np.zeros((len(pairs), depth)), np.zeros((len(pairs), depth))
    for place, (one, other) in enumerate(pairs):
        for level in range(depth):
            expected = np.rint(rows * model[levels.slice(level, one), levels.slice(level, other)]).astype(np.int64)
            distances[place, level] = np.abs(levels.merged(counted[one, other], level, one, other) - expected).sum()
            shape = levels.sizes[level][[one, other]]
            repeats = level > 0 and (shape == levels.sizes[level - 1][[one, other]]).all()
            cells[place, level] = 0 if repeats or shape.min() < 2 else shape.prod()
    noise = discrete_gaussian(Fraction(math.sqrt(variance)), distances.size, source).reshape(distances.shape)
    return Scores(tuple(pairs), distances + noise, cells)


def _leave_independent(
    targets: Targets,
    held: Sequence[Floats],
    pairs: Sequence[Pair],
    known: set[Pair],
    scores: Scores,
    rows: float,
    mu: float,
) -> None:
    """Draw pairs that were never measured to independence, weakly: no farther than their distance says."""
    floor = 2 * math.sqrt(len(pairs) * len(targets.levels.sizes)) / mu
    for place, (one, other) in enumerate(pairs):
        if (one, other) in known:
            continue
        table = np.outer(held[one], held[other])
        far = UNKNOWN * max(scores.distances[place, 0], floor)
        targets.put(0, one, other, table, rows**2 * table.size / far**2, measured=False)
