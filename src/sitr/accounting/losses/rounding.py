"""Numbers rounded towards more loss: what is promised is never under the truth, and what is exact stays as it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

ROUNDED = 2.0**-50  # by how much what is rounded a few times may be over the truth, or under it
SURE_DIGITS = 60  # of a logarithm before it is rounded
SLACK = Decimal("1e-40")  # of it: more than those digits leave open, and far less than a float can tell
FARTHEST = 700.0  # beyond, 1 - q is less than SLACK of q e^loss, or q e^loss of 1 - q


def rounded_up(number: Fraction) -> float:
    """Return the least float that is not under a number; infinity where there is none.

    Example:
        >>> rounded_up(Fraction(1, 2)), rounded_up(Fraction(1, 3)) * 3 >= 1
        (0.5, True)
    """
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


def sum_above(terms: Iterable[float]) -> float:
    """Return the least float that is not under a sum of floats.

    Example:
        >>> sum_above([0.5, 0.25]), sum_above([1.0, 1e-30]) > 1
        (0.75, True)
    """
    terms = list(terms)
    nearest = math.fsum(terms)
    if math.isinf(nearest) or math.fsum([*terms, -nearest]) <= 0:
        return nearest
    return math.nextafter(nearest, math.inf)


def log_above(ratio: Fraction) -> float:
    """Return the least float that is not under ln(ratio), for a ratio of at least 1.

    Example:
        >>> log_above(Fraction(1)), log_above(Fraction(2)), math.log(2)
        (0.0, 0.6931471805599454, 0.6931471805599453)
    """
    if ratio == 1:
        return 0.0
    with localcontext(prec=_digits(ratio - 1)):
        return _above((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def sampled_above(loss: float, q: float) -> float:
    """Return the least float that is not under ln(1 - q + q e^loss), which a sample at rate q < 1 makes of a loss.

    Example:
        >>> sampled_above(0.0, 0.5), round(sampled_above(1.0, 0.01), 6)
        (0.0, 0.017037)
    """
    return _sampled(loss, q, 1)


def added_above(loss: float, q: float) -> float:
    """Return the least float that is not under -ln(1 - q + q e^loss), the loss of the add order there.

    Example:
        >>> added_above(0.0, 0.5), round(added_above(-math.inf, 0.01), 6)
        (0.0, 0.01005)
    """
    return _sampled(loss, q, -1)


def _sampled(loss: float, q: float, sign: int) -> float:
    if loss == 0 or loss == math.inf:
        return sign * loss
    with localcontext(prec=_digits(Fraction(q) * Fraction(min(abs(loss), 1.0)))):
        if loss > FARTHEST:
            return _above(sign * (Decimal(loss) + Decimal(q).ln()))
        grown = Decimal(loss).exp() if loss > -FARTHEST else Decimal(0)
        return _above(sign * (1 + Decimal(q) * (grown - 1)).ln())


def _digits(excess: Fraction) -> int:
    """Return with how many digits 1 + excess has enough of them behind the 1."""
    return SURE_DIGITS + max(math.ceil(math.log10(excess.denominator) - math.log10(excess.numerator)), 0)


def _above(number: Decimal) -> float:
    return rounded_up(Fraction(number + abs(number) * SLACK))
