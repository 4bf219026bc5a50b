"""Quantiles by the exponential mechanism over the points of a grid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from .. import _validate
from ..accounting import Exponential
from ..units import ADJACENCIES, Adjacency
from .columns import Span
from .mechanism import Mechanism
from .randomness import Source
from .rows import sorted_rows
from .samplers.choices import choose, uniform_below
from .samplers.table import Integers

FINEST_PART = 10**6  # the largest denominator of q: ranks are compared as whole numbers


class Quantile(Mechanism):
    """A quantile of a column; made by `quantile`.

    Attributes:
        q: Which quantile.
        span: The grid points that may be released.
    """

    error95 = None

    def __init__(self, event: Exponential, q: Fraction, span: Span, rate: Fraction) -> None:
        self.event, self.q, self.span, self._rate = event, q, span, rate

    def __repr__(self) -> str:
        return f"Quantile({self.event!r}, q={float(self.q):g})"

    def _checked(self, value: Any) -> Integers:
        return sorted_rows(self.span, "values", value, self.event.adjacency)

    def _drawn(self, value: Integers, source: Source | None) -> Any:
        starts, lengths, gaps = self._pieces(value)
        if source is None:
            best = int(np.argmin(gaps))
            return self.span.value(int(starts[best] + (lengths[best] - 1) // 2))
        place = choose(lengths, gaps, self._rate, source)
        return self.span.value(int(starts[place]) + uniform_below(int(lengths[place]), source))

    def _pieces(self, ordered: Integers) -> tuple[Integers, Integers, Integers]:
        """Cut the grid at the data: where each piece starts, its length, and its denominator(q) u below the best."""
        values, counts = np.unique(ordered, return_counts=True)
        upto = np.cumsum(counts)
        starts = np.empty(2 * values.size + 1, dtype=np.int64)  # a gap, a value, a gap, … a gap
        starts[0], starts[1::2], starts[2::2] = self.span.lower, values, values + 1
        lengths = np.diff(np.append(starts, self.span.upper + 1))
        below, within = np.zeros_like(starts), np.zeros_like(starts)
        below[1::2], below[2::2], within[1::2], within[2::2] = upto - counts, upto, upto, upto
        wanted = self.q.numerator * ordered.size
        gaps = np.maximum(np.maximum(below * self.q.denominator - wanted, wanted - within * self.q.denominator), 0)
        there = lengths > 0
        return starts[there], lengths[there], gaps[there] - np.min(gaps[there])


def quantile(
    *,
    q: float,
    epsilon: float,
    bounds: tuple[float, float],
    integers: bool = False,
    adjacency: Adjacency = "add_remove",
) -> Quantile:
    """Return the quantile `q` of a column of numbers, one of each person; q = 0.5 is the median.

    Args:
        q: From 0, the least, to 1, the largest; read as a fraction with a denominator of at most a million.
        epsilon: The pure ε that a release costs.
        bounds: What the numbers are clamped to, and where the answer lies; public, never read off the data.
        integers: The numbers are whole numbers, and so is the answer; else it lies on a grid 2^20 times finer than
            the distance of the bounds.
        adjacency: Under `add_remove` the number of people is private, under `replace_one` it is public.

    Privacy: bounded range ε, so pure ε-DP with the curve of `Exponential` (THEORY 2.5). Each grid point o has weight
    e^{εu/2Δ}, where u(o) = -max(0, #{x < o} - qn, qn - #{x ≤ o}) is how many people lie between o and the quantile; for
    data without ties it is THEORY's u but at the data themselves, and ties do not push the answer away from them. One
    person moves both counts by 0 or 1 and qn by q, or by 0 where n is fixed, so Δ = max(q, 1 - q) under `add_remove`
    and 1 under `replace_one`. Without data the answer is uniform between the bounds. A row that is no number is
    left out, or stands in the middle of the bounds where n is public: none is refused. The time tells how many
    different values there are, and not which was chosen.

    Example:
        >>> median = quantile(q=0.5, epsilon=1.0, bounds=(0, 120), integers=True)
        >>> 30 <= median.release(list(range(20, 60)) * 50).value <= 50
        True
        >>> round(float(median.event.delta(epsilon=0.5)), 4)
        0.0774
    """
    part = Fraction(_validate.real("q", q, 0, 1)).limit_denominator(FINEST_PART)
    cost = Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    span = Span.of(bounds, integers)
    if _validate.choice("adjacency", adjacency, ADJACENCIES) == "add_remove":
        moved = max(part.numerator, part.denominator - part.numerator)
    else:
        moved = part.denominator
    return Quantile(Exponential(epsilon, adjacency=adjacency), part, span, cost / (2 * moved))
