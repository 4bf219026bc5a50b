"""Propose–test–release: an answer is given only where the data are so far from trouble that nobody can bring it near.

The theorem (THEORY 2.5). A set of data sets is trouble: there a neighbour may have another answer, or one farther off
than was proposed. The distance of the data to trouble, in people, moves by at most 1 between neighbours, as any
distance to a fixed set does. With noise it is compared with a threshold (`stability.Gate`), and only what passes is
answered. Either both neighbours' answers agree as proposed, or both are trouble, have distance 0, and pass with
probability δ at most. That is a true chance of an infinite loss, so no Rényi, concentrated or Gaussian guarantee exists
(seed 000).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np

from .. import _validate
from ..accounting import DiscreteLaplace, Event
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency
from .additive import above, in_range, laplace95
from .columns import Span, checked_bounds
from .mechanism import Mechanism
from .partitions import Counted, counted
from .randomness import Source
from .rows import sorted_rows
from .samplers.draws import LARGEST_SCALE, discrete_laplace
from .samplers.table import Integers
from .stability import Gate

FARTHEST = 2**61  # people: a distance to trouble that does not exist


class StableMode(Mechanism):
    """The most common value, where it is so by far; made by `ptr_mode`.

    Attributes:
        threshold: The noisy distance that the data must have for an answer.
    """

    error95 = None

    def __init__(self, event: Event, gate: Gate, adjacency: Adjacency) -> None:
        self.event, self._gate, self.threshold = event, gate, gate.threshold
        self._moves = 1 if adjacency == "add_remove" else 2

    def __repr__(self) -> str:
        return f"StableMode({self.event!r}, threshold={self.threshold})"

    def distance(self, counts: Integers) -> int:
        """How many people can change while the mode stays, whichever they are; private."""
        first, second = np.sort(np.append(counts, [0, 0]))[:-3:-1]
        return max(-((int(second) - int(first)) // self._moves) - 1, 0)

    def _checked(self, value: Any) -> Counted:
        return counted("counts", value)

    def _drawn(self, value: Counted, source: Source | None) -> Hashable | None:
        noisy = self._gate.noisy(np.array([self.distance(value.counts)]), source)[0]
        best = value.keys[int(np.argmax(value.counts))] if value.keys else None
        return best if noisy >= self.threshold else None


def ptr_mode(*, epsilon: float, delta: float, adjacency: Adjacency = "add_remove") -> StableMode:
    """Return the most common value exactly, or None where one value is not ahead by enough.

    A release takes {value: how many people have it}; values need not be known in advance.

    Args:
        epsilon: The ε that a release costs, with
        delta: the δ: the chance of an answer where there should be none.
        adjacency: Each person has one value; under `replace_one` they may change it.

    Privacy: (ε,δ)-DP by propose–test–release (THEORY 2.5); `event.infinite_mass` is the chance of an infinite loss.
    Let g be how far the most common value is ahead of the next. One person moves g by at most s: 1 under `add_remove`,
    where one count moves, and 2 under `replace_one`; so d = max(⌈g/s⌉ - 1, 0) moves by at most 1. If d ≥ 1 then g > s,
    and every neighbour has the same mode; so where two neighbours' modes differ, both have d = 0.

    Example:
        >>> mode = ptr_mode(epsilon=1.0, delta=1e-6)
        >>> mode.release({"flu": 900, "cold": 400}).value, mode.release({"flu": 3}, unsafe_seed=1).value
        ('flu', None)
        >>> round(mode.event.infinite_mass, 9)
        6.08e-07
    """
    gate = _gate(epsilon, delta)
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    return StableMode(gate.event(adjacency), gate, adjacency)


class StableMedian(Mechanism):
    """The median with noise for a proposed local sensitivity, where that holds by far; made by `ptr_median`.

    Attributes:
        threshold: The noisy distance that the data must have for an answer.
        scale: Of the noise, in the units of the data.
        proposed: The local sensitivity, in steps of the grid.
        span: The grid.
    """

    def __init__(
        self, event: Event, gate: Gate, span: Span, proposed: int, noise: Fraction, adjacency: Adjacency
    ) -> None:
        self.event, self._gate, self.span, self.proposed, self._noise = event, gate, span, proposed, noise
        self.threshold, self.scale, self._adjacency = gate.threshold, float(noise * span.step), adjacency
        rounding = 0.0 if span.exponent is None else 0.5
        self.error95 = (laplace95(float(noise)) + rounding) * float(span.step)

    def __repr__(self) -> str:
        return f"StableMedian({self.event!r}, threshold={self.threshold}, scale={self.scale:g})"

    def distance(self, ordered: Integers) -> int:
        """How many people must change before the local sensitivity can exceed the proposed one; private.

        With x_0 and x_{n+1} the bounds, the local sensitivity of the median x_⌈n/2⌉ is x_{j+1} - x_j, j = ⌊n/2⌋, under
        `add_remove`, and the larger of the two gaps beside the median under `replace_one`. Some x_p and x_q, more than
        the proposed apart, become such neighbours when the q - p - 1 between them leave and, under `add_remove`, as
        many come or leave as make both sides as long (the right one by one more at most); under `replace_one` those
        between are moved, and p ≤ ⌈n/2⌉ ≤ q. For each p the first such q is the best.
        """
        ends = np.concatenate([[self.span.lower], ordered, [self.span.upper]])
        left = np.arange(ends.size)
        right = np.searchsorted(ends, ends + self.proposed, side="right")
        if self._adjacency == "replace_one":
            middle = (ordered.size + 1) // 2
            right, allowed = np.maximum(right, middle), left <= middle
            changes = right - left - 1
        else:
            more = ordered.size + 1 - right - left
            allowed = np.ones(left.size, dtype=bool)
            changes = right - left - 1 + np.maximum(more - 1, np.maximum(-more, 0))
        changes = changes[allowed & (right < ends.size)]
        return int(np.min(changes)) if changes.size else FARTHEST

    def _checked(self, value: Any) -> Integers:
        return sorted_rows(self.span, "values", value, self._adjacency)

    def _drawn(self, value: Integers, source: Source | None) -> Any:
        passed = self._gate.noisy(np.array([self.distance(value)]), source)[0] >= self.threshold
        median = int(value[(value.size - 1) // 2]) if value.size else self.span.lower
        noise = 0 if source is None else int(discrete_laplace(self._noise, 1, source)[0])
        answer = min(max(median + noise, self.span.lower), self.span.upper)
        return self.span.value(answer) if passed else None


def ptr_median(
    *,
    epsilon: float,
    delta: float,
    bounds: tuple[float, float],
    proposed_sensitivity: float,
    share: float = 0.5,
    integers: bool = False,
    adjacency: Adjacency = "add_remove",
) -> StableMedian:
    """Return the median with little noise, or None where the data do not lie closely about it.

    Args:
        epsilon: The ε that a release costs, test and noise together, with
        delta: the δ: the chance of an answer where there should be none.
        bounds: What the numbers are clamped to; public.
        proposed_sensitivity: How far one person is proposed to move the median of these data, less than the distance of
            the bounds; the noise has this over (1 - share) ε as its scale.
        share: Which part of ε the test takes.
        integers: The numbers are whole numbers, and so is the answer.
        adjacency: Under `add_remove` the number of people is private, under `replace_one` it is public.

    Privacy: (ε,δ)-DP by propose–test–release with noise (THEORY 2.5); `event.infinite_mass` is the chance of an
    infinite loss. Trouble is a local sensitivity of the median above the proposed one, and the distance to it is
    computed exactly, so it moves by at most 1. If two neighbours' medians differ by more than was proposed, both are
    trouble and pass with probability δ only. Else the test costs share ε, and the median, which moves by no more than
    the noise was made for, costs the discrete Laplace noise on it. The event composes the two.

    Example:
        >>> median = ptr_median(epsilon=1.0, delta=1e-6, bounds=(0, 100), proposed_sensitivity=0.5)
        >>> ages = [40 + person / 1000 for person in range(1000)]
        >>> abs(median.release(ages).value - 40.5) < 50, median.release([0, 100], unsafe_seed=1).value
        (True, None)
        >>> round(median.event.infinite_mass, 9), round(float(median.event.epsilon(delta=1e-6)), 4)
        (8.53e-07, 1.0)
    """
    part = Fraction(_validate.real("share", share, 0.001, 0.999))
    test = _gate(epsilon, delta, part)
    rest = test.rate / part * (1 - part)
    low, high = checked_bounds(bounds, integers)
    size = _validate.real("proposed_sensitivity", proposed_sensitivity, 0, float(high - low), open_low=True)
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    span = Span.of(bounds, integers, Fraction(size))
    proposed = math.floor(Fraction(size) / span.step)
    if not 1 <= proposed < span.upper - span.lower:
        raise InvalidArgument(
            f"proposed_sensitivity={size:g} is not between a step of the grid and the distance of the bounds.",
            do="Propose less than the bounds allow anyway, and for whole numbers at least 1.",
        )
    noise = above(proposed / rest)
    in_range(noise, 1e-4, LARGEST_SCALE)
    event = test.event(adjacency) + DiscreteLaplace(noise, proposed, adjacency=adjacency)
    return StableMedian(event, test, span, proposed, Fraction(noise), adjacency)


def _gate(epsilon: float, delta: float, share: Fraction = Fraction(1)) -> Gate:
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    return Gate.of(cost * share, delta)
