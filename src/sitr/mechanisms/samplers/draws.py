"""The samplers: exact for rational parameters, vectorised, and of a work that does not depend on what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from ..randomness import Source, words
from .intervals import exp_interval
from .laws import Coin, Digit, Normal, TwoSided
from .table import BATCH, CHUNK, Integers, Table

Variance = NewType("Variance", Fraction)  # so that nobody hands over a standard deviation

DIGIT_BITS = 8
BASE = 1 << DIGIT_BITS  # of the digits of a large discrete Laplace
DIRECT_SCALE = 48  # up to here a discrete Laplace is one table
DIRECT_SIGMA = 1400  # up to here a discrete Gaussian is one table
BINS = 512  # a larger one has about so many bins to a standard deviation
LARGEST_SCALE = 2**40
LARGEST_SIGMA = 2**29
BAND = 2.0**-40  # floats decide only this far from a boundary: a thousand times their rounding error
MOST_TABLES = 64  # parameters whose tables are kept


def coins(x: Fraction, count: int, source: Source) -> Integers:
    """Return draws that are 1 with probability e^{-x}, else 0, for rational x ≥ 0.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> int(coins(Fraction(1), 100_000, Seeded(1)).sum())  # about 36,788
        36722
    """
    return np.ones(count, dtype=np.int64) if x == 0 else _coin_table(x).draw(source, count)


def bernoulli(p: Fraction, count: int, source: Source) -> Integers:
    """Return draws that are 1 with probability p, else 0, for rational p in [0, 1].

    Sixty-four bits decide, and more where those are the first of p itself.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> int(bernoulli(Fraction(1, 3), 90_000, Seeded(1)).sum())  # about 30,000
        30123
    """
    floor, rest = divmod(p * 2**64, 1)
    if floor == 2**64:
        return np.ones(count, dtype=np.int64)
    uniform = words(source, 64, count)
    found = (uniform < np.uint64(floor)).astype(np.int64)
    for place in np.flatnonzero(uniform == np.uint64(floor)) if rest else ():
        found[place] = bernoulli(rest, 1, source)[0]
    return found


def included(p: Fraction, count: int, source: Source) -> Integers:
    """Return the places among `count` that are chosen, each with probability p and by itself, in order.

    Sixteen bits decide most places; of those that are the first bits of p itself, `bernoulli` decides by more.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> included(Fraction(1, 3), 10, Seeded(1))
        array([8, 9])
    """
    floor, rest = divmod(p * 2**16, 1)
    chosen = []
    for first in range(0, count, CHUNK):
        here = words(source, 16, min(CHUNK, count - first))
        found = here < floor
        unsure = np.flatnonzero(here == floor) if rest else ()
        if len(unsure):
            found[unsure] = bernoulli(rest, len(unsure), source)
        chosen.append(np.flatnonzero(found) + first)
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)


def geometric(rate: Fraction, count: int, source: Source) -> Integers:
    """Return draws with P(k) = (1 - r) r^k, k = 0, 1, 2 …, r = e^{-rate}: a discrete Laplace without its sign.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> geometric(Fraction(1, 3), 5, Seeded(1))
        array([2, 9, 0, 8, 1])
    """
    found = discrete_laplace(1 / rate, count, source)
    return np.where(found < 0, ~found, found)


def discrete_laplace(scale: Fraction, count: int, source: Source) -> Integers:
    """Return draws with P(x) ∝ e^{-|x|/scale} on the integers (THEORY 2.4).

    A draw is g or ~g, g geometric, whose digits are independent: the leading ones, with the sign, are one table, each
    lower digit another. Nothing is rejected.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> discrete_laplace(Fraction(3), 6, Seeded(1))
        array([ 2,  9,  0, -9,  1, -2])
    """
    found = np.empty(count, dtype=np.int64)
    for first in range(0, count, CHUNK):
        found[first : first + CHUNK] = _some_laplace(scale, min(CHUNK, count - first), source)
    return found


def _some_laplace(scale: Fraction, count: int, source: Source) -> Integers:
    digits = _digit_count(scale)
    found = _two_sided_table(1 / scale, BASE**digits).draw(source, count)
    flipped = (found >> 63) & (BASE - 1)  # ~(h B + l) = ~h B + (B - 1 - l): below a negative one digits count down
    for place in reversed(range(digits)):
        found <<= DIGIT_BITS
        found |= _digit_table(BASE**place / scale).draw(source, count) ^ flipped
    return found


def discrete_gaussian(variance: Variance, count: int, source: Source) -> Integers:
    """Return draws with P(x) ∝ e^{-x²/2 variance} on the integers (THEORY 2.4).

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> discrete_gaussian(Variance(Fraction(9)), 6, Seeded(1))
        array([-2,  6,  1,  6, -1,  2])
    """
    if variance <= DIRECT_SIGMA**2:
        return _normal_table(variance).draw(source, count)
    found = np.empty(0, dtype=np.int64)
    while found.size < count:  # a batch is drawn whole, and what is too much is dropped: no draw's own work shows
        missing = count - found.size
        found = np.concatenate([found, _wide_gaussian(variance, missing + missing // 128 + 16, source)])
    return found[:count]


def _wide_gaussian(variance: Fraction, count: int, source: Source) -> Integers:
    """Draw a bin by its largest probability and a place in it, and accept with what that exceeds by; then a sign.

    The accepted magnitudes have P(y) ∝ e^{-y²/2 variance}, y ≥ 0; of the two zeros that signs make one is dropped.
    """
    bits = math.isqrt(math.floor(variance)).bit_length() - BINS.bit_length()
    width = 1 << bits
    bins = _half_normal_table(variance / width**2).draw(source, count)
    places = (words(source, 32, count) >> (32 - bits)).astype(np.int64)  # 20 bits up to `LARGEST_SIGMA`
    top = places * (2 * bins * width + places)
    kept = accepted(top, 2 * variance, source)
    negative = np.unpackbits(words(source, 8, count // 8 + 1))[:count].astype(bool)
    found = bins * width + places
    kept &= ~(negative & (found == 0))
    return np.where(negative, -found, found)[kept]


def accepted(top: Integers, bottom: Fraction, source: Source) -> NDArray[np.bool_]:
    """Return independent coins that are true with probability e^{-top/bottom}, each its own.

    Sixteen bits decide where they are under 1 - top/bottom ≤ e^{-top/bottom}; then 64 bits, by floats that keep
    their distance; then as many as it takes, by integers. Of a few coins all go to the second level, as in a table.
    """
    exponent = top / float(bottom)
    first = words(source, 16, top.size)
    found = first < (1 - exponent - 1e-9) * 65536 - 1
    unsure = np.flatnonzero(~found) if top.size >= BATCH else np.arange(top.size)
    uniform = first[unsure].astype(np.uint64) << np.uint64(48) | words(source, 64, unsure.size) >> np.uint64(16)
    distance = np.exp(-exponent[unsure]) - (uniform >> np.uint64(11)) * 2.0**-53
    found[unsure] = distance > 0
    for place in np.flatnonzero(np.abs(distance) < BAND):
        found[unsure[place]] = accepted_exactly(Fraction(int(top[unsure[place]])) / bottom, int(uniform[place]), source)
    return found


def accepted_exactly(x: Fraction, uniform: int, source: Source) -> bool:
    """Whether a uniform number that begins with these 64 bits is under e^{-x}."""
    bits = 64
    while True:
        low, high = exp_interval(x, bits)
        if uniform < low:
            return True
        if uniform >= high:
            return False
        bits += 64
        uniform = uniform << 64 | int(words(source, 64, 1)[0])


def uniform_integers(high: int, count: int, source: Source) -> Integers:
    """Return uniform draws from 0, 1, … high - 1.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> uniform_integers(6, 8, Seeded(1))
        array([1, 3, 5, 0, 4, 3, 5, 2])
    """
    bits = max((high - 1).bit_length(), 1)
    word = next(width for width in (8, 16, 32, 64) if width >= bits)
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        missing = count - found.size
        drawn = words(source, word, 2 * missing + 16) >> np.array(word - bits, dtype=f"u{word // 8}")
        found = np.concatenate([found, drawn[drawn < high].astype(np.int64)])
    return found[:count]


def shuffled(count: int, source: Source) -> Integers:
    """Return a uniform permutation of 0, 1, … count - 1: the order of random keys, drawn again if two are equal.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> sorted(shuffled(5, Seeded(1)).tolist())
        [0, 1, 2, 3, 4]
    """
    while True:
        keys = words(source, 64, count)
        order = np.argsort(keys)
        ordered = keys[order]
        if not np.any(ordered[1:] == ordered[:-1]):
            return order


def _digit_count(scale: Fraction) -> int:
    """How many lower digits leave leading ones whose table is small."""
    digits = 0
    while scale > DIRECT_SCALE:
        scale, digits = scale / BASE, digits + 1
    return digits


@lru_cache(MOST_TABLES)
def _coin_table(x: Fraction) -> Table:
    return Table(Coin(x))


@lru_cache(MOST_TABLES)
def _digit_table(rate: Fraction) -> Table:
    return Table(Digit(rate, BASE))


@lru_cache(MOST_TABLES)
def _two_sided_table(rate: Fraction, base: int) -> Table:
    return Table(TwoSided(rate, base))


@lru_cache(MOST_TABLES)
def _normal_table(variance: Fraction) -> Table:
    return Table(Normal(variance))


@lru_cache(MOST_TABLES)
def _half_normal_table(variance: Fraction) -> Table:
    return Table(Normal(variance, one_sided=True))
