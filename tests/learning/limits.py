"""Limits of statistical tests that hold for any number of samples."""

from __future__ import annotations

import math


def product_limit(count: int, alarm: float) -> float:
    """Return what the sum of so many products of two independent N(0, 1) exceeds with at most a chance of `alarm`.

    Chernoff: a product has E e^{tX} = (1 - t²)^{-1/2}, so P(S > s) ≤ e^{-ts} (1 - t²)^{-count/2} for all t in (0, 1).
    With s = count·t/(1 - t²) that is least; the least t for which it is at most `alarm` is found by halving.
    """

    def exponent(t: float) -> float:
        return -t * count * t / (1 - t * t) - count / 2 * math.log1p(-t * t)

    low, high = 0.0, 1 - 1e-12
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if exponent(middle) <= math.log(alarm) else (middle, high)
    return count * high / (1 - high * high)
