"""A mixture of products: a few hundred kinds of rows, in each of which the columns are independent.

Every table of two columns at every resolution is one Gram matrix of it, so that all noisy tables are fitted at once by
two products of matrices a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bins import Levels

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
COMPONENTS = 300
RATE = 0.1
DECAY = 0.03  # of the rate: how strongly components are drawn to what is common
START = 0.4  # spread of the first components: with less of it, what only several columns tell is hardly found
MOMENTUM = 0.9
RAREST = 1e-5


class Triple(NamedTuple):
    """A table of three columns, at the coarsest level: shares, with one weight."""

    columns: tuple[int, ...]
    shares: Floats
    weight: float


@dataclass
class Targets:
    """What the mixture shall be like: shares, each with a weight, which is one over the variance of its noise.

    Attributes:
        levels: The bins.
        singles: Of each finest bin.
        single_weights: Theirs.
        pairs: By level, of each two bins of different columns.
        pair_weights: Theirs; 0 where nothing is known.
        triples: Tables of three columns, at the coarsest level.
    """

    levels: Levels
    singles: Floats
    single_weights: Floats
    triples: Sequence[Triple] = ()
    pairs: list[Floats] = field(init=False)
    pair_weights: list[Floats] = field(init=False)

    def __post_init__(self) -> None:
        widths = self.levels.sizes.sum(axis=1)
        self.pairs, self.pair_weights = (
            [np.zeros((width, width), dtype=np.float32) for width in widths] for _ in range(2)
        )

    def put(
        self, level: int, pair: tuple[int, int], shares: NDArray[np.float64], weight: float | NDArray[np.float64]
    ) -> None:
        """State a table of two columns at a level."""
        here, there = (self.levels.slice(level, column) for column in pair)
        weights = np.broadcast_to(weight, shares.shape)
        for rows, columns, table, by in ((here, there, shares, weights), (there, here, shares.T, weights.T)):
            self.pairs[level][rows, columns], self.pair_weights[level][rows, columns] = table, by


class Mixture:
    """Equally frequent components, each of which has a law for every column.

    Args:
        levels: The bins.
        logits: Of each component, those of each finest bin.
    """

    def __init__(self, levels: Levels, logits: Floats) -> None:
        self.levels, self.logits = levels, logits
        likely = np.maximum.reduceat(logits.T, levels.starts[0], axis=0)[levels.owners]
        shares, _ = _normal(levels, logits.T - likely)  # a file by anyone may have any logits
        self.shares = shares.T
        self._by_level = _at_all_levels(levels, shares)

    @classmethod
    def begun(cls, levels: Levels, singles: Floats, generator: np.random.Generator) -> Mixture:
        """Components near what is common to all rows."""
        spread = generator.normal(0, START, (COMPONENTS, levels.finest))
        return cls(levels, _common(singles) + spread.astype(np.float32))

    def tables(self) -> list[Floats]:
        """Return, by level, the shares of each two bins; those of one column mean nothing."""
        return [_tables(shares) for shares in self._by_level]

    def triple(self, columns: tuple[int, ...]) -> Floats:
        """Return the shares of each three bins of three columns, at the coarsest level."""
        one, other, third = (self._by_level[-1][self.levels.slice(-1, column)] for column in columns)
        table = _crossed(one, other) @ third.T / np.float32(third.shape[1])
        return np.asarray(table.reshape(len(one), len(other), len(third)))

    def fitted(self, targets: Targets, steps: int, window: float) -> Mixture:
        """Return the mixture after steps towards the targets, each shorter than the one before: Adam on logits.

        Args:
            targets: What it shall be like.
            steps: How many.
            window: Over how many steps slopes are averaged to scale a step: with a short one it goes farther, which is
                better where there is little noise that it could fit.
        """
        levels, common = self.levels, _common(targets.singles).T
        logits = np.ascontiguousarray(self.logits.T)
        first, second, memory = np.zeros_like(logits), np.zeros_like(logits), 1 - 1 / window
        for step in range(1, steps + 1):
            shares, logits = _normal(levels, logits)
            wide = _at_all_levels(levels, shares)
            off = [_tables(part) - table for part, table in zip(wide, targets.pairs, strict=True)]
            pull = [weight * part for weight, part in zip(targets.pair_weights, off, strict=True)]
            moved = [by @ part for part, by in zip(wide, pull, strict=True)]
            for triple in targets.triples:
                _add_slope(triple, levels, wide[-1], moved[-1])
            slope = _slope(levels, shares, moved, targets)
            first += (1 - MOMENTUM) * (slope - first)
            second += (1 - memory) * (slope * slope - second)
            rate = RATE * (1 - (step - 1) / steps)
            scale = np.sqrt(second / (1 - memory**step)) + 1e-12
            logits -= (rate / (1 - MOMENTUM**step)) * first / scale
            logits -= (rate * DECAY) * (logits - common)
        return Mixture(levels, logits.T)


def _common(singles: Floats) -> Floats:
    return np.log(np.maximum(singles, RAREST)).astype(np.float32)[np.newaxis]


# Below, each bin is a row, and each component a column.


def _normal(levels: Levels, logits: Floats) -> tuple[Floats, Floats]:
    """Return the shares of logits, column of data by column, and those logits of them that are logarithms of shares."""
    sums = np.log(levels.by_column @ np.exp(logits))[levels.owners]
    normal = logits - sums
    return np.exp(normal), normal


def _at_all_levels(levels: Levels, shares: Floats) -> list[Floats]:
    return [shares, *(adding @ shares for adding in levels.merging)]


def _tables(shares: Floats) -> Floats:
    return np.asarray((shares @ shares.T) / np.float32(shares.shape[1]), dtype=np.float32)


def _crossed(one: Floats, other: Floats) -> Floats:
    return (one[:, np.newaxis] * other[np.newaxis]).reshape(len(one) * len(other), -1)


def _add_slope(triple: Triple, levels: Levels, coarsest: Floats, moved: Floats) -> None:
    """Add the slope of one table of three columns to that of all bins of its level."""
    places = [levels.slice(-1, column) for column in triple.columns]
    one, other, third = (coarsest[place] for place in places)
    both = _crossed(one, other)
    off = both @ third.T / np.float32(third.shape[1]) - triple.shares.reshape(len(both), -1)
    pull = np.float32(triple.weight) * off
    moved[places[2]] += pull.T @ both
    back = (pull @ third).reshape(len(one), len(other), -1)
    moved[places[0]] += np.einsum("ijk,jk->ik", back, other)
    moved[places[1]] += np.einsum("ijk,ik->jk", back, one)


def _slope(levels: Levels, shares: Floats, by_level: list[Floats], targets: Targets) -> Floats:
    """By how much each logit raises what is to be made small."""
    single = targets.single_weights * (shares.mean(axis=1) - targets.singles)
    slope = np.broadcast_to(single[:, np.newaxis], shares.shape)
    for part, lead in zip(by_level, levels.leads, strict=True):
        slope = slope + part[lead]
    slope *= shares
    return np.asarray(slope - shares * (levels.by_column @ slope)[levels.owners])
