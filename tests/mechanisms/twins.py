"""Naive twins: mechanisms as they are written at first, each broken by an attack of the literature. None is private.

The twin of the exponential mechanism, which underflows, is in test_selection.py; bugs of scale are in tests/audit.
"""

from fractions import Fraction

import numpy as np

CHANCES = np.random.default_rng()  # a new seed each time: the tests bear it


def float_laplace(value, n):
    """Noise in floating point, added to a float: low bits and support tell the value (Mironov 2012, Haney 2022)."""
    return value + CHANCES.laplace(size=n)


def float_gaussian(value, n):
    return value + CHANCES.normal(size=n)


def four_gaussians(value, n):
    """The usual repair, a sum of several normal draws: harder to invert, and as easy to tell by its low bits."""
    return value + CHANCES.normal(size=(4, n)).sum(axis=0) / 2


def wrapping_sum(rows):
    """The sum of a column in its own type: it wraps around (Casacuberta and others 2022)."""
    return int(np.sum(np.asarray(rows, dtype=np.int64)))


def wrapping_release(value, noise):
    """A count and its noise added in 64 bits."""
    with np.errstate(over="ignore"):
        return int(np.int64(value) + np.int64(noise))


def float_sum(rows, dtype):
    """The sum of a column in its own precision, row by row: it depends on the order."""
    return float(np.cumsum(np.asarray(rows, dtype=dtype), dtype=dtype)[-1])


class Rejection:
    """Discrete Laplace and Gaussian noise one draw at a time (Canonne, Kamath and Steinke 2020): exact, and its work
    depends on what is drawn (Jin and others 2022)."""

    def __init__(self, source):
        self.source = source

    def below(self, high):
        size = (high.bit_length() + 7) // 8
        while True:
            found = int.from_bytes(self.source.bytes(size), "little")
            if found < 256**size // high * high:
                return found % high

    def coin(self, x):
        """Heads with probability e^{-x}, 0 ≤ x ≤ 1."""
        k = 1
        while self.below(k * x.denominator) < x.numerator:
            k += 1
        return k % 2 == 1

    def laplace(self, scale):
        while True:
            low = self.below(scale)
            if not self.coin(Fraction(low, scale)):
                continue
            high = 0
            while self.coin(Fraction(1)):
                high += 1
            found, negative = low + scale * high, self.below(2)
            if found or not negative:
                return -found if negative else found


class Forked:
    """A generator that lives in a module: children of a fork inherit its state."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def release(self, value, n):
        return value + self.generator.laplace(size=n)
