"""Integer bounds on exponentials: no float is trusted.

A real number v is held as a pair of integers (low, high) with low ≤ v 2^bits ≤ high.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

Interval = tuple[int, int]


@lru_cache(maxsize=4096)
def exp_interval(x: Fraction, bits: int) -> Interval:
    """Return integers around e^{-x} 2^bits, for x ≥ 0; they differ by at most 2.

    `decimal` rounds exp correctly; x itself is rounded both ways first, and the result is widened by a unit.

    Example:
        >>> exp_interval(Fraction(1), 16)
        (24109, 24110)
    """
    digits = bits // 3 + 12
    scale = Decimal(1 << bits)
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
    near = Context(prec=digits)
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    low = near.exp(up.divide(top, bottom).copy_negate())  # a plain minus would round to 28 digits
    high = near.exp(down.divide(top, bottom).copy_negate())
    wide = Context(prec=2 * digits + bits)
    return (
        max(int(wide.multiply(near.next_minus(low), scale)), 0),
        int(wide.multiply(near.next_plus(high), scale)) + 1,
    )


def times(a: Interval, b: Interval, bits: int) -> Interval:
    """Return bounds on the product, rounded outwards."""
    return (a[0] * b[0]) >> bits, -((-a[1] * b[1]) >> bits)


def over(a: Interval, b: Interval, bits: int) -> Interval:
    """Return bounds on the quotient, rounded outwards."""
    return (a[0] << bits) // b[1], -((-a[1] << bits) // b[0])
