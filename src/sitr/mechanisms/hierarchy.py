"""Noise on ordered cells that stays small in the sum of any range: one law over cells, blocks, and blocks of blocks.

Noise on each level by itself would say the same of a block twice: once itself, and once by what is in it. Here there is
one noise d on the cells, with P(d) ∝ e^{-Σ rate |d_block|} over all blocks of all levels (docs/decisions/0027).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .additive import in_range
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, accepted, discrete_laplace
from .samplers.table import Integers

BRANCHES = 5  # of each block
FEWEST = 4  # blocks of the highest level
CELL, TOP = Fraction(8, 5), Fraction(4, 5)  # the rates of cells and of the highest blocks, where others have 1
AT_ONCE = 2**20  # cells that are tried at a time
PROMISING = 3  # blocks that are tried for each that is needed: about a third are kept
FINE = 0.02  # of the largest rate: steps of the laws that are computed, where whole numbers are finer than needed
FAR = 45.0  # scales of the highest blocks, beyond which nothing of a law is left
UP = 1.001  # more than the computed variances may lack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hierarchy:
    """A law of whole-numbered noise on cells in order, and on the sums of blocks of them.

    Args:
        cells: How many have noise: a multiple of the largest block.
        rates: Of single cells, of blocks of 5 cells, of blocks of 25 and so on: each falls off by e^{-rate} per row.

    Privacy: P(d) depends on d by e^{-N(d)}, where N is the sum of rate · |d_block| over all blocks, a norm. So counts x
    and x' with the noise d are told apart by at most N(x - x'): pure ε-DP for ε = Σ rates where a row is in one cell,
    and twice that where it may move to another (THEORY 6.6). Exactly that law is drawn, by rational rates.
    """

    cells: int
    rates: tuple[Fraction, ...]

    @classmethod
    def of(cls, cells: int, total: Fraction) -> Hierarchy:
        """Return a law for at least so many cells, whose rates add up to a total.

        Example:
            >>> one = Hierarchy.of(1000, Fraction(1, 20))
            >>> one.cells, [str(rate) for rate in one.rates]
            (1000, ['1/55', '1/88', '1/88', '1/110'])
        """
        levels = 0
        while FEWEST * BRANCHES ** (levels + 1) <= cells:
            levels += 1
        weights = [CELL, *[Fraction(1)] * (levels - 1), TOP] if levels else [Fraction(1)]
        rates = tuple(total * weight / sum(weights) for weight in weights)
        in_range(float(1 / min(rates)), 1e-4, LARGEST_SCALE)
        largest = BRANCHES**levels
        return cls(-(-cells // largest) * largest, rates)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells a block of each level has."""
        return tuple(BRANCHES**level for level in range(len(self.rates)))

    def noise(self, source: Source) -> Integers:
        """Return noise for all cells; how long it takes depends on nothing but the noise."""
        return self._blocks(len(self.rates) - 1, self.cells // self.sizes[-1], source).ravel()

    def _blocks(self, level: int, count: int, source: Source) -> Integers:
        """Draw blocks whose parts are independent, and keep each with probability e^{-rate |sum|}: then it has the law.

        They are kept in the order in which they were drawn, until there are enough.
        """
        size = self.sizes[level]
        if level == 0:
            return discrete_laplace(1 / self.rates[0], count, source).reshape(count, 1)
        found, have = np.empty((count, size), dtype=np.int64), 0
        while have < count:
            tried = min(PROMISING * (count - have), max(AT_ONCE // size, 1))
            drawn = self._blocks(level - 1, tried * BRANCHES, source).reshape(tried, size)
            kept = drawn[accepted(np.abs(drawn.sum(axis=1)), 1 / self.rates[level], source)][: count - have]
            found[have : have + len(kept)] = kept
            have += len(kept)
        return found

    def variances(self, low: Integers, high: Integers, share: float = 0.0, *, known: bool = False) -> Floats:
        """Return the variance of the noise in the sums of the cells low, low + 1 … high - 1.

        Args:
            low: First cells.
            high: The cells after the last ones.
            share: Of the sum of all cells, that is taken off.
            known: What all noise adds up to is known, and taken off evenly.

        Blocks of a level are alike, so the covariance is Σ c_l (P_l - P_{l+1}), where P_l takes the means over the
        blocks of a level: for a range, |P_l 1|² is a matter of where it begins and ends in a block.

        Example:
            >>> law = Hierarchy.of(1000, Fraction(1, 20))
            >>> law.variances(np.array([0, 0, 100]), np.array([1, 125, 600])).round(-2)
            array([ 4100., 10800., 51300.])
        """
        inside = np.stack([_squares(low, high, size) for size in (*self.sizes, self.cells)])
        found = -np.diff(inside, axis=0).T @ self._parts
        if not known:
            found += self._parts[-1] * self.cells * ((high - low) / self.cells - share) ** 2
        return np.asarray(np.maximum(found, 0.0) * UP)

    @cached_property
    def _parts(self) -> Floats:
        """c_l: the variance of what is different between the blocks of a level inside one of the next, for a cell."""
        sums = self._sums
        upper = np.append(sums[1:], BRANCHES * sums[-1])  # the highest blocks are independent
        together = (upper - BRANCHES * sums) / (BRANCHES * (BRANCHES - 1))
        return np.asarray((sums - together) / np.array(self.sizes))

    @cached_property
    def _sums(self) -> Floats:
        """The variance of the sum of a block of each level: laws are carried up the tree, and down again."""
        rates = [float(rate) for rate in self.rates]
        step = max(math.floor(FINE / max(rates)), 1)
        length = 2 ** math.ceil(math.log2(max(2 * FAR / (min(rates) * step), 64)))
        distances = np.minimum(np.arange(length), length - np.arange(length)) * step
        falls = [np.exp(-rate * distances) for rate in rates]
        up = [falls[0] / falls[0].sum()]
        for fall in falls[1:]:
            up.append(_normal(fall * _convolved(np.ones(1), up[-1], BRANCHES, length)))
        down, found = np.ones(length), []
        for law, fall in zip(reversed(up), reversed(falls), strict=True):
            found.append(float(_normal(law * down) @ distances.astype(np.float64) ** 2))
            if law is not up[0]:
                below = up[len(up) - len(found) - 1]
                down = _normal(_convolved(fall * down, below, BRANCHES - 1, length))
        return np.array(found[::-1])


def _squares(low: Integers, high: Integers, size: int) -> Floats:
    """|P 1|² of ranges, for the means P over blocks of a size: their length, less what their ends leave of blocks."""
    first, last = low % size, high % size
    together = np.where(low // size == high // size, 2 * first * (size - last), 0)
    return np.asarray(high - low - (first * (size - first) + last * (size - last) - together) / size)


def _convolved(first: Floats, law: Floats, times: int, length: int) -> Floats:
    """A function convolved with a law so many times; (1) stands for nothing at all."""
    start = np.fft.rfft(first, length)
    return np.asarray(np.maximum(np.fft.irfft(start * np.fft.rfft(law) ** times, length), 0.0))


def _normal(law: Floats) -> Floats:
    return np.asarray(law / law.sum())
