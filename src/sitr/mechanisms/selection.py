"""Choosing one of several candidates by their scores: the exponential mechanism and permute-and-flip."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _validate
from ..accounting import Event, Exponential, PureDP
from ..errors import InvalidArgument
from ..units import Adjacency
from .additive import LEAST, MOST
from .grid import Grid
from .mechanism import Mechanism
from .randomness import Source
from .samplers.choices import choose, flip
from .samplers.table import Integers

MOST_CANDIDATES = 10**6


class Selection(Mechanism):
    """A choice by scores; made by `exponential_mechanism` and `permute_and_flip`.

    Attributes:
        candidates: What is chosen from, in the order in which scores are given.
        grid: Where scores are put before anything is drawn.
        rate: A candidate that lies k grid steps under the best one has weight e^{-k rate}, exactly.
    """

    error95 = None

    def __init__(
        self,
        event: Event,
        candidates: tuple[Any, ...],
        grid: Grid,
        rate: Fraction,
        pick: Callable[[Integers, Fraction, Source], int],
    ) -> None:
        self.event, self.candidates, self.grid, self.rate, self._pick = event, candidates, grid, rate, pick

    def __repr__(self) -> str:
        return f"Selection({self.event!r}, {len(self.candidates)} candidates)"

    def shortfall(self, probability: float = 0.95) -> float:
        """Return how far under the best score the chosen one falls at most, with this probability.

        A candidate k steps under the best is chosen with probability at most e^{-k rate}, by either mechanism, so
        one that is more than ln(candidates / (1 - probability)) / rate steps under it with at most 1 - probability.

        Example:
            >>> round(exponential_mechanism(epsilon=1.0, sensitivity=1.0, candidates=list("abc")).shortfall(), 3)
            8.189
        """
        probability = _validate.real("probability", probability, 0, 1, open_high=True)
        steps = math.log(len(self.candidates) / (1 - probability)) / float(self.rate)
        return (steps + (0 if self.grid.exponent is None else 1)) * float(self.grid.step)

    def _checked(self, value: Any) -> Integers:
        return self.grid.placed("scores", value)

    def _drawn(self, value: Integers, source: Source | None) -> Any:
        gaps = np.max(value) - value
        return self.candidates[int(np.argmin(gaps)) if source is None else self._pick(gaps, self.rate, source)]


def exponential_mechanism(
    *,
    epsilon: float,
    sensitivity: float,
    candidates: Iterable[Any],
    monotone: bool = False,
    integers: bool = False,
    adjacency: Adjacency | None = None,
) -> Selection:
    """Return a choice of one candidate, each with probability in proportion to e^{ε score / 2Δ}.

    Args:
        epsilon: The pure ε that a release costs, which is also its bounded range.
        sensitivity: How far one person moves any score: Δ.
        candidates: What is chosen from: public, different from each other, and hashable.
        monotone: Of any two neighbours, one has no score under the other's, as with counts under `add_remove`;
            then the weights are e^{ε score / Δ} at the same cost.
        integers: The scores are whole numbers.
        adjacency: The relation in which the sensitivity was measured.

    Privacy: bounded range ε, so pure ε-DP with the curve of `Exponential` (THEORY 2.5): between neighbours the log of a
    probability moves by rate (s_o - s'_o) less a constant, and rate times the spread of those is at most ε. Scores are
    put on a grid 2^20 times finer than Δ and no farther out than 2^32 Δ; the rounding, which keeps a monotone score
    monotone, is part of the Δ charged. The weights are exact at any distance from the best score. The time tells how
    many candidates there are and how many scores differ, and not which was chosen.

    Example:
        >>> mechanism = exponential_mechanism(epsilon=2.0, sensitivity=1.0, candidates=["red", "green", "blue"])
        >>> mechanism.release([10, 500, 30]).value
        'green'
        >>> round(float(mechanism.event.delta(epsilon=1.0)), 4)
        0.179
    """
    check_monotone(monotone, adjacency)
    made, grid, rate = _parameters(epsilon, sensitivity, candidates, monotone, integers)
    event = Exponential(epsilon, adjacency=adjacency)
    return Selection(event, made, grid, rate, lambda gaps, rate, source: choose(np.ones_like(gaps), gaps, rate, source))


def permute_and_flip(
    *,
    epsilon: float,
    sensitivity: float,
    candidates: Iterable[Any],
    monotone: bool = False,
    integers: bool = False,
    adjacency: Adjacency | None = None,
) -> Selection:
    """Return a choice of one candidate: in random order, the first whose coin of e^{ε (score - best) / 2Δ} shows heads.

    Its expected score is never under that of `exponential_mechanism` at the same ε; that one composes better.

    Args:
        epsilon: The pure ε that a release costs.
        sensitivity: How far one person moves any score: Δ.
        candidates: What is chosen from: public, different from each other, and hashable.
        monotone: As for `exponential_mechanism`; the coins are then e^{ε (score - best) / Δ}.
        integers: The scores are whole numbers.
        adjacency: The relation in which the sensitivity was measured.

    Privacy: pure ε-DP and *not* of bounded range, so charged as `PureDP` (THEORY 2.5). The law depends on differences
    of scores only, and the probability of a candidate falls when another's score rises; so the worst neighbours raise
    one score by 2Δ (Δ if monotone) and keep the others, which raises its probability by e^ε at most. Scores are rounded
    as for `exponential_mechanism`. Every coin is flipped, so the time does not tell which was chosen.

    Example:
        >>> mechanism = permute_and_flip(epsilon=2.0, sensitivity=1.0, candidates=["red", "green", "blue"])
        >>> mechanism.release([10, 500, 30]).value, mechanism.event.pure()
        ('green', 2.0)
    """
    check_monotone(monotone, adjacency)
    made, grid, rate = _parameters(epsilon, sensitivity, candidates, monotone, integers)
    return Selection(PureDP(epsilon, adjacency=adjacency), made, grid, rate, flip)


def check_monotone(monotone: bool, adjacency: Adjacency | None) -> None:
    """Refuse monotone scores under `replace_one`: a person who changes may raise one and lower another."""
    if monotone and adjacency == "replace_one":
        raise InvalidArgument(
            "monotone=True does not hold under adjacency='replace_one'.",
            why="a person who is replaced may raise one score and lower another.",
            do="Leave monotone out, or state the scores under 'add_remove'.",
        )


def _parameters(
    epsilon: float, sensitivity: float, candidates: Iterable[Any], monotone: bool, integers: bool
) -> tuple[tuple[Any, ...], Grid, Fraction]:
    """Check what both selections take, and return the candidates, the grid of the scores and the rate."""
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    size = Fraction(_validate.real("sensitivity", sensitivity, LEAST, MOST))
    made = distinct("candidates", candidates, MOST_CANDIDATES)
    grid = Grid(None, len(made)) if integers else Grid.below(size, len(made))
    moved = max(math.floor(grid.cells(size)) + (0 if integers else 1), 1)
    return made, grid, cost / (moved if monotone else 2 * moved)


def distinct(name: str, values: Iterable[Any], most: int) -> tuple[Any, ...]:
    """Return public choices as a tuple, or refuse what is empty, too long, repeated or cannot be looked up."""
    wrong = isinstance(values, (str, bytes))
    try:
        made = () if wrong else tuple(values)
        different = len(set(made))
    except TypeError:
        wrong, made, different = True, (), 0
    if wrong or not 1 <= len(made) <= most:
        raise InvalidArgument(f"{name} is not a list of 1 to {most} hashable values.", do="Pass a list of the choices.")
    if different < len(made):
        raise InvalidArgument(f"{name} has {len(made)} values, of which {different} differ.", do="Name each once.")
    return made
