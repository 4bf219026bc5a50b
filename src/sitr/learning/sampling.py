"""Which examples a step takes: drawn anew from the operating system's bits, or read off shuffled passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.randomness import EXPANDED, Source
from ..mechanisms.samplers.draws import included
from .plan import TrainingPlan

Integers = NDArray[np.int64]


class Sampler(Protocol):
    """Says which examples are in a step."""

    def draw(self, step: int) -> Integers:
        """Return the places of the examples of a step, counted from 0."""


@dataclass(frozen=True)
class PoissonSampler:
    """Each example is in a step with probability `rate`, by itself, and so in any two steps.

    Attributes:
        n: How many examples there are.
        rate: A fraction, which is drawn exactly.
        source: Of bits, whatever `torch.manual_seed` was given.

    Privacy: the sampling that `PoissonSampled` speaks of (THEORY 2.7). A batch may be empty, or everyone.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> PoissonSampler(1000, Fraction(1, 100), Seeded(1)).draw(0)
        array([ 36, 247, 375, 380, 392, 566, 694, 926])
    """

    n: int
    rate: Fraction
    source: Source = EXPANDED

    def draw(self, step: int) -> Integers:
        """Return a fresh draw: asked twice, a step has two."""
        return included(self.rate, self.n, self.source)


@dataclass(frozen=True)
class ShuffledSampler:
    """Passes over all examples, each in an order of its own, cut into batches.

    Attributes:
        n: How many examples there are.
        batch: How many are in a batch; in the last one of a pass there may be fewer.
        seed: Of the orders. It is no secret: `ShuffledEpochs` costs the same for orders that are known.

    Privacy: an example is in one batch of each pass (THEORY 4.9), also where a run is resumed, as the order of a pass
    follows from the seed and the number of the pass alone.

    Example:
        >>> [ShuffledSampler(5, 2, seed=7).draw(step).tolist() for step in range(3)]
        [[2, 0], [4, 1], [3]]
    """

    n: int
    batch: int
    seed: int

    def draw(self, step: int) -> Integers:
        """Return the batch of a step: asked twice, the same."""
        epoch, place = divmod(step, -(-self.n // self.batch))
        return _order(self.n, self.seed, epoch)[place * self.batch : (place + 1) * self.batch]


@lru_cache(maxsize=1)  # all steps of a pass ask for it
def _order(n: int, seed: int, epoch: int) -> Integers:
    return np.random.default_rng([seed, epoch]).permutation(n)


def sampler_of(plan: TrainingPlan, *, order: int, source: Source = EXPANDED) -> Sampler:
    """Return what draws for a plan; `order` is the seed of shuffled passes."""
    if plan.sampling == "poisson":
        return PoissonSampler(plan.n, plan.rate, source)
    return ShuffledSampler(plan.n, plan.batch, order)


def microbatches(places: Integers, most: int | None) -> Iterator[Integers]:
    """Yield the examples of one step in parts of at most `most`; none where there is no example.

    Example:
        >>> [part.tolist() for part in microbatches(np.arange(5), 2)], list(microbatches(np.arange(0), 2))
        ([[0, 1], [2, 3], [4]], [])
    """
    size = most or max(places.size, 1)
    for first in range(0, places.size, size):
        yield places[first : first + size]
