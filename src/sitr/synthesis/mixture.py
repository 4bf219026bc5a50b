"""A mixture of products: a few hundred kinds of rows, in each of which the columns are independent.

Every table of two columns at every resolution is one Gram matrix of it, so that all noisy tables are fitted at once by
two products of matrices a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .bins import Levels

Floats = NDArray[np.float32]
COMPONENTS = 300
MOST_STEPS = 600
COOLING = 60  # steps of a falling rate at the end
RATE = 0.1
DECAY = 0.01  # of the rate: how strongly components are drawn to what is common
START = 0.2  # spread of the first components; more of it makes up dependence where nothing was measured
LOOK = 5  # steps between two looks at how well it fits
MOMENTS = 0.9, 0.99
RAREST = 1e-5


@dataclass
class Targets:
    """What the mixture shall be like: shares, each with a weight, which is one over the variance of its noise.

    Attributes:
        levels: The bins.
        singles: Of each finest bin.
        single_weights: Theirs.
        pairs: Of each two bins of different columns, at one level.
        pair_weights: Theirs; 0 where nothing is known.
        measured: 1 where a pair was measured, and 0 where it is only drawn to independence.
        cells: How many cells were measured.
    """

    levels: Levels
    singles: Floats
    single_weights: Floats
    pairs: Floats = field(init=False)
    pair_weights: Floats = field(init=False)
    measured: Floats = field(init=False)
    cells: int = 0

    def __post_init__(self) -> None:
        shape = self.levels.cells, self.levels.cells
        self.pairs, self.pair_weights, self.measured = (np.zeros(shape, dtype=np.float32) for _ in range(3))

    def put(
        self, level: int, pair: tuple[int, int], shares: NDArray[np.float64], weight: float, *, measured: bool
    ) -> None:
        """State a table of two columns at a level."""
        here, there = (self.levels.slice(level, column) for column in pair)
        for rows, columns, table in ((here, there, shares), (there, here, shares.T)):
            self.pairs[rows, columns], self.pair_weights[rows, columns] = table, weight
            self.measured[rows, columns] = measured
        self.cells += shares.size if measured else 0


class Mixture:
    """Equally frequent components, each of which has a law for every column.

    Args:
        levels: The bins.
        logits: Of each component, those of each finest bin.
    """

    def __init__(self, levels: Levels, logits: Floats) -> None:
        self.levels, self.logits = levels, logits
        self.shares = _shares(levels, logits)

    @classmethod
    def begun(cls, levels: Levels, singles: Floats, generator: np.random.Generator) -> Mixture:
        """Components near what is common to all rows."""
        spread = generator.normal(0, START, (COMPONENTS, levels.finest))
        return cls(levels, _common(singles) + spread.astype(np.float32))

    def tables(self) -> Floats:
        """Return the shares of each two bins at every level; those of one column, and of two levels, mean nothing."""
        return _tables(_at_all_levels(self.levels, self.shares))

    def fitted(self, targets: Targets) -> Mixture:
        """Return the mixture after steps towards the targets, until it fits them as well as their noise lets it.

        Adam on logits. It fits where the weighted squares of what is measured add up to no more than their number;
        then the rate falls, and it stops: more steps would fit the noise.
        """
        levels, logits, common = self.levels, self.logits.copy(), _common(targets.singles)
        first, second = np.zeros_like(logits), np.zeros_like(logits)
        step, end = 0, MOST_STEPS
        while step < end:
            step += 1
            shares = _shares(levels, logits)
            wide = _at_all_levels(levels, shares)
            off = _tables(wide) - targets.pairs
            pull = targets.pair_weights * off
            if end == MOST_STEPS and step % LOOK == 0 and _fits(pull, off, targets):
                end = min(step + COOLING, MOST_STEPS)
            slope = _slope(levels, shares, wide @ pull, targets)
            first += (1 - MOMENTS[0]) * (slope - first)
            second += (1 - MOMENTS[1]) * (slope * slope - second)
            rate = RATE * min(1.0, max((end - step) / COOLING, 0.02))
            scale = np.sqrt(second / (1 - MOMENTS[1] ** step)) + 1e-12
            logits -= (rate / (1 - MOMENTS[0] ** step)) * first / scale
            logits -= (rate * DECAY) * (logits - common)
        return Mixture(levels, logits)


def _fits(pull: Floats, off: Floats, targets: Targets) -> bool:
    """Each pair of columns stands in the matrix twice."""
    return float(np.einsum("ij,ij,ij->", pull, off, targets.measured)) <= 2 * targets.cells


def _common(singles: Floats) -> Floats:
    return np.log(np.maximum(singles, RAREST)).astype(np.float32)[np.newaxis]


def _shares(levels: Levels, logits: Floats) -> Floats:
    """Logits to shares, column by column."""
    starts, owners = levels.starts[0], levels.owners
    raised = np.exp(logits - np.maximum.reduceat(logits, starts, axis=1)[:, owners])
    raised /= np.add.reduceat(raised, starts, axis=1)[:, owners]
    return raised


def _at_all_levels(levels: Levels, shares: Floats) -> Floats:
    coarser = [np.add.reduceat(shares[:, order], starts, axis=1) for order, starts in levels.gathered]
    return np.concatenate([shares, *coarser], axis=1)


def _tables(wide: Floats) -> Floats:
    return np.asarray((wide.T @ wide) / np.float32(len(wide)), dtype=np.float32)


def _slope(levels: Levels, shares: Floats, wide: Floats, targets: Targets) -> Floats:
    """By how much each logit raises what is to be made small."""
    single = targets.single_weights * (shares.mean(axis=0) - targets.singles)
    slope = sum((wide[:, lead] for lead in levels.leads), np.broadcast_to(single, shares.shape)) * shares
    return slope - shares * np.add.reduceat(slope, levels.starts[0], axis=1)[:, levels.owners]
