"""Which examples a step takes: drawn anew from the operating system's bits, or read off shuffled passes."""

from __future__ import annotations

import math
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
LOG_NEVER = math.log(1e-50)  # of a chance that no price counts, as little as that of noise which is not Gaussian


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
class TurnSampler:
    """Groups of examples take turns; each example of a step's group is in it with probability `rate`, by itself.

    Attributes:
        n: How many examples there are.
        rate: A fraction, which is drawn exactly.
        groups: How many; a step has the one of its number.
        seed: Of the groups. It is no secret: the cost is the same for groups that are known.
        source: Of bits, whatever `torch.manual_seed` was given.

    Privacy: the sampling that `BandedNoise.poisson_event` speaks of. An example has its turns `groups` steps apart,
    also where a run is resumed, as its group follows from the seed and its place alone. Groups may be known where an
    example that is removed leaves its place empty; as places are put into groups at random, others may also move up, as
    long as the seed is not known (decision 0034).

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> sampler = TurnSampler(12, Fraction(1, 2), groups=3, seed=7, source=Seeded(1))
        >>> [sampler.draw(step).tolist() for step in range(4)]
        [[0], [], [10, 3, 11], [4]]
    """

    n: int
    rate: Fraction
    groups: int
    seed: int
    source: Source = EXPANDED

    def draw(self, step: int) -> Integers:
        """Return a fresh draw from the group of a step."""
        group = _order(self.n, self.seed, 0)[step % self.groups :: self.groups]
        return group[included(self.rate, group.size, self.source)]


@dataclass(frozen=True)
class ShuffledSampler:
    """Passes over all examples, each in an order of its own, cut into batches.

    Attributes:
        n: How many examples there are.
        batch: How many are in a batch; in the last one of a pass there may be fewer.
        seed: Of the orders. It is no secret: `ShuffledEpochs` costs the same for orders that are known.
        same: All passes are in the order of the first, as `BandedNoise.passes_event` needs it.

    Privacy: an example is in one batch of each pass (THEORY 4.9), also where a run is resumed, as the order of a pass
    follows from the seed and the number of the pass alone. In passes of one order its steps are a whole pass apart.

    Example:
        >>> [ShuffledSampler(5, 2, seed=7).draw(step).tolist() for step in range(3)]
        [[2, 0], [4, 1], [3]]
    """

    n: int
    batch: int
    seed: int
    same: bool = False

    def draw(self, step: int) -> Integers:
        """Return the batch of a step: asked twice, the same."""
        epoch, place = divmod(step, -(-self.n // self.batch))
        return _order(self.n, self.seed, 0 if self.same else epoch)[place * self.batch : (place + 1) * self.batch]


@lru_cache(maxsize=1)  # all steps of a pass ask for it
def _order(n: int, seed: int, epoch: int) -> Integers:
    return np.random.default_rng([seed, epoch]).permutation(n)


def most_drawn(plan: TrainingPlan) -> int:
    """Return how many a step draws at most, but for a chance of 1e-50 that any step of the plan draws more.

    By Chernoff's bound P[N ≥ k] ≤ e^{k - b - k ln(k/b)} for independent draws with a mean of b: `rate` of everyone, or
    of the largest of the groups that take turns, which may have one example more than n/bands.

    Example:
        >>> from sitr.learning.plan import plan
        >>> most_drawn(plan(n=10**6, batch=1000, max_grad_norm=1.0, delta=1e-7, steps=500, noise_multiplier=1.0))
        1532
    """
    if plan.sampling == "shuffle":
        return plan.batch
    largest = -(-plan.n // plan.bands)
    mean, level = largest * plan.rate, math.log(plan.steps) - LOG_NEVER
    low, high = math.ceil(mean), largest
    while low < high:
        middle = (low + high) // 2
        rare = float(mean - middle) + middle * math.log(middle / mean) >= level
        low, high = (low, middle) if rare else (middle + 1, high)
    return low


def sampler_of(plan: TrainingPlan, *, order: int, source: Source = EXPANDED) -> Sampler:
    """Return what draws for a plan; `order` is the seed of shuffled passes, and of groups."""
    if plan.sampling == "shuffle":
        return ShuffledSampler(plan.n, plan.batch, order, same=plan.bands > 1)
    if plan.bands > 1:
        return TurnSampler(plan.n, plan.rate, plan.bands, order, source)
    return PoissonSampler(plan.n, plan.rate, source)


def microbatches(places: Integers, most: int | None) -> Iterator[Integers]:
    """Yield the examples of one step in parts of at most `most`; none where there is no example.

    Example:
        >>> [part.tolist() for part in microbatches(np.arange(5), 2)], list(microbatches(np.arange(0), 2))
        ([[0, 1], [2, 3], [4]], [])
    """
    size = most or max(places.size, 1)
    for first in range(0, places.size, size):
        yield places[first : first + size]
