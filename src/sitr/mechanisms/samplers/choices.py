"""Exact choices by weights that no float can hold: a length times e^{-rate gap}, whole numbers and one rational rate.

The weights are bounded by integers, and a uniform number is revealed bit by bit until it lies surely in one place of
their sum. Every weight is computed and compared, whichever wins, and the first bits decide all but about one choice in
2^100: the work tells how many weights there are and how many differ, and not which was chosen.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice

import numpy as np
from numpy.typing import NDArray

from ..randomness import Source, words
from .draws import MOST_TABLES, accepted_exactly, shuffled
from .intervals import Interval, exp_interval, times
from .table import Integers

REVEALED = 128  # bits of a uniform number that are drawn at first
GUARD = 64  # bits by which weights are known better than the uniform number
DIGIT_BITS = 8  # of a gap: e^{-rate gap} is the product over its digits


def choose(lengths: Integers, gaps: Integers, rate: Fraction, source: Source) -> int:
    """Return a place, each with a probability in proportion to lengths e^{-rate gaps}.

    Args:
        lengths: Whole numbers, not all zero.
        gaps: Whole numbers from 0; the least is 0, where the length is not.
        rate: Positive.
        source: Where bits come from.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> choose(np.array([1, 1]), np.array([20_000, 0]), Fraction(1, 2), Seeded(1))
        1
    """
    uniform, bits = 0, 0
    while True:
        uniform, bits = _revealed(uniform, bits, source)
        lows, highs = _running_sums(lengths, gaps, rate, bits + GUARD)
        # The place is how many sums, without the last, are at most u times the last one.
        surely, possibly = uniform * lows[-1] >> bits, ((uniform + 1) * highs[-1] - 1) >> bits
        passed = sum(high <= surely for high in islice(highs, len(highs) - 1))
        if passed == sum(low <= possibly for low in islice(lows, len(lows) - 1)):
            return passed


def flip(gaps: Integers, rate: Fraction, source: Source) -> int:
    """Return a place by permute-and-flip: in random order, the first whose coin of e^{-rate gap} shows heads.

    All coins are flipped, and of those with heads the first in a random order is taken, which is the same law.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> flip(np.array([20_000, 0]), Fraction(1, 2), Seeded(1))
        1
    """
    heads = _coins(gaps, rate, source)
    order = shuffled(gaps.size, source)
    return int(order[np.argmax(heads[order])])


def uniform_below(high: int, source: Source) -> int:
    """Return a uniform whole number from 0 to high - 1, by work that does not depend on `high`.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> uniform_below(10**12, Seeded(1)) < 10**12
        True
    """
    uniform, bits = 0, 0
    while True:
        uniform, bits = _revealed(uniform, bits, source)
        place = uniform * high >> bits
        if place == ((uniform + 1) * high - 1) >> bits:
            return place


def _revealed(uniform: int, bits: int, source: Source) -> tuple[int, int]:
    """Return a uniform number with more bits, and how many it has now: at first `REVEALED`, then twice as many."""
    more = max(bits, REVEALED)
    return uniform << more | int.from_bytes(source.bytes(more // 8), "little"), bits + more


def _coins(gaps: Integers, rate: Fraction, source: Source) -> NDArray[np.bool_]:
    """Return coins that are true with probability e^{-rate gap}, each its own."""
    weights, index = _weights(gaps, rate, 64 + GUARD)
    largest = 2**64 - 1
    sure = np.array([min(low >> GUARD, largest) for low, _ in weights], dtype=np.uint64)
    possible = np.array([min(-(-high >> GUARD) - 1, largest) for _, high in weights], dtype=np.uint64)
    uniform = words(source, 64, gaps.size)
    found: NDArray[np.bool_] = (uniform < sure[index]) | (gaps == 0)  # a gap of 0 is sure, and 2^64 no such number
    for place in np.flatnonzero(~found & (uniform <= possible[index])):
        found[place] = accepted_exactly(int(gaps[place]) * rate, int(uniform[place]), source)
    return found


def _running_sums(lengths: Integers, gaps: Integers, rate: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Return integers under and over the sums of the weights up to each place, times 2^bits."""
    weights, index = _weights(gaps, rate, bits)
    counted = list(zip(lengths.tolist(), index.tolist(), strict=True))
    lows = accumulate(length * weights[place][0] for length, place in counted)
    highs = accumulate(length * weights[place][1] for length, place in counted)
    return list(lows), list(highs)


def _weights(gaps: Integers, rate: Fraction, bits: int) -> tuple[list[Interval], Integers]:
    """Return bounds on the different e^{-rate gap} 2^bits, and which of them each gap has."""
    farthest = min(math.ceil(bits / rate), 2**62)  # beyond, a weight is under e^{-bits}, less than a unit
    different, index = np.unique(np.minimum(gaps, farthest + 1), return_inverse=True)
    tables: list[tuple[Interval, ...]] = []
    while len(tables) * DIGIT_BITS < max(int(min(different[-1], farthest)).bit_length(), 1):
        tables.append(_powers(rate * (1 << len(tables) * DIGIT_BITS), bits))
    return [_product(gap, tables, bits) if gap <= farthest else (0, 1) for gap in different.tolist()], index


@lru_cache(MOST_TABLES)
def _powers(rate: Fraction, bits: int) -> tuple[Interval, ...]:
    """Return bounds on e^{-rate digit} 2^bits for every digit."""
    one, step = (1 << bits, 1 << bits), exp_interval(rate, bits)
    return tuple(accumulate([step] * ((1 << DIGIT_BITS) - 1), lambda power, by: times(power, by, bits), initial=one))


def _product(gap: int, tables: list[tuple[Interval, ...]], bits: int) -> Interval:
    """Multiply the powers of the digits of a gap."""
    weight = tables[0][gap & ((1 << DIGIT_BITS) - 1)]
    for table in tables[1:]:
        gap >>= DIGIT_BITS
        weight = times(weight, table[gap & ((1 << DIGIT_BITS) - 1)], bits)
    return weight
