"""The first of several answers that lies above a threshold, at the cost of one positive answer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _validate
from ..accounting import PureDP
from ..units import Adjacency
from .additive import LEAST, MOST, in_range
from .columns import column
from .grid import Grid
from .mechanism import Mechanism
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, discrete_laplace
from .samplers.table import Integers
from .selection import check_monotone

MOST_QUERIES = 10**7


class AboveThreshold(Mechanism):
    """The sparse vector technique with one positive; made by `above_threshold`.

    Attributes:
        threshold: What answers are compared with, before noise.
        threshold_scale: Of the noise on the threshold, in the units of the answers.
        query_scale: Of the noise on each answer.
    """

    error95 = None

    def __init__(self, event: PureDP, threshold: int, grid: Grid, noises: tuple[Fraction, Fraction]) -> None:
        self.event, self._threshold, self._grid, self._noises = event, threshold, grid, noises
        self.threshold = float(threshold * grid.step)
        self.threshold_scale, self.query_scale = (float(noise * grid.step) for noise in noises)

    def __repr__(self) -> str:
        return f"AboveThreshold({self.event!r}, threshold={self.threshold:g})"

    def accuracy(self, queries: int, probability: float = 0.95) -> float:
        """Return α: with this probability all before the answer are under threshold + α, and it is over threshold - α.

        No noise is farther out than α in all: that on the threshold exceeds its part with half of what is left over,
        those on the answers theirs with the other half, by P(|X| ≥ x) = 2 r^x / (1 + r) (THEORY 2.4).

        Example:
            >>> mechanism = above_threshold(epsilon=1.0, sensitivity=1.0, threshold=100.0)
            >>> round(mechanism.accuracy(queries=50), 1)
            38.4
        """
        queries = _validate.integer("queries", queries, 1, MOST_QUERIES)
        rest = (1 - _validate.real("probability", probability, 0, 1, open_high=True)) / 2
        first, others = self.threshold_scale * math.log(2 / rest), self.query_scale * math.log(2 * queries / rest)
        return first + others + float(self._grid.step)

    def _checked(self, value: Any) -> Integers:
        return column("queries", value, self._grid.exponent, MOST_QUERIES)

    def _drawn(self, value: Integers, source: Source | None) -> int | None:
        noisy, threshold = value, np.int64(self._threshold)
        if source is not None:  # all noise is drawn, so that the work does not tell where the answer lies
            threshold = threshold + discrete_laplace(self._noises[0], 1, source)[0]
            noisy = value + discrete_laplace(self._noises[1], value.size, source)
        above = noisy >= threshold
        return int(np.argmax(above)) if np.any(above) else None


def above_threshold(
    *,
    epsilon: float,
    sensitivity: float,
    threshold: float,
    monotone: bool = False,
    share: float | None = None,
    integers: bool = False,
    adjacency: Adjacency | None = None,
) -> AboveThreshold:
    """Return the place of the first answer that is above a threshold, or None: one positive, whatever their number.

    A release takes the list of exact answers; how many there are is public. To go on after a positive, release again
    with what is left of the list, at the same cost again.

    Args:
        epsilon: The pure ε that a release costs, whether an answer is found or not.
        sensitivity: How far one person moves any answer: Δ.
        threshold: What answers are compared with; public.
        monotone: Of any two neighbours, one has no answer under the other's; then answers need half the noise.
        share: Which part of ε the threshold takes: ε1 = share ε, and the answers ε2, the rest. Left out, it is
            1/(1 + 2^{2/3}), for monotone answers 1/2, which makes the noises' variance least.
        integers: The answers and the threshold are whole numbers.
        adjacency: The relation in which the sensitivity was measured.

    Privacy: pure ε-DP by discrete Laplace noise of scale Δ/ε1 on the threshold and 2Δ/ε2 on each answer, or Δ/ε2 where
    answers are monotone (THEORY 2.5). With the earlier noises fixed, a neighbour gives the same outcome when the
    threshold's noise moves by the change of the largest earlier noisy answer and the last one's by that and its own
    change: by Δ and 2Δ, or Δ, at most. Answers are rounded to a grid, and that is part of the Δ charged. All noise is
    drawn before anything is compared, so the time tells how many answers there are and not which is above.

    Example:
        >>> mechanism = above_threshold(epsilon=1.0, sensitivity=1.0, threshold=100.0)
        >>> mechanism.release([0.0, 3.0, 1000.0, 1000.0]).value, mechanism.event.pure()
        (2, 1.0)
    """
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    size = Fraction(_validate.real("sensitivity", sensitivity, LEAST, MOST))
    check_monotone(monotone, adjacency)
    if share is None:
        share = 0.5 if monotone else 1 / (1 + 2 ** (2 / 3))
    first = cost * Fraction(_validate.real("share", share, 0.001, 0.999))
    times = 1 if monotone else 2
    widest = max(size / first, times * size / (cost - first))
    # As fine as the sensitivity asks for, and as coarse as the largest noise that is drawn.
    grid = Grid(None, None) if integers else Grid.below(max(size, widest / 2**18), None)
    moved = max(math.floor(grid.cells(size)) + (0 if integers else 1), 1)
    at = _validate.integer("threshold", threshold, -(2**61), 2**61) if integers else _placed(threshold, grid)
    noises = Fraction(moved) / first, Fraction(times * moved) / (cost - first)
    for noise in noises:
        in_range(float(noise), 1e-4, LARGEST_SCALE)
    return AboveThreshold(PureDP(epsilon, adjacency=adjacency), at, grid, noises)


def _placed(threshold: float, grid: Grid) -> int:
    farthest = float(2**52 * grid.step)
    return round(Fraction(_validate.real("threshold", threshold, -farthest, farthest)) / grid.step)
