"""Numbers rounded towards more loss: what is promised is never under the truth, and what is exact stays as it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

ROUNDED = 2.0**-50  # by how much what is rounded a few times may be over the truth, or under it
SURE_DIGITS = 45  # of a logarithm before it is rounded
SLACK = Decimal("1e-40")  # of it: more than those digits leave open, and far less than a float can tell
FARTHEST = 850.0  # beyond, 1 - q is less than SLACK of q e^loss, or q e^loss of 1 - q, for any float q in (0, 1)


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


def log_above(above: int, below: int) -> float:
    """Return the least float that is not under ln(above / below), for whole numbers of which the first is not less.

    Example:
        >>> log_above(1, 1), log_above(2, 1), math.log(2)
        (0.0, 0.6931471805599454, 0.6931471805599453)
    """
    if above == below:
        return 0.0
    with localcontext(prec=_digits(above - below, below)):
        return _above((Decimal(above) / Decimal(below)).ln())


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
    with localcontext(prec=_digits(*(Fraction(q) * Fraction(min(abs(loss), 1.0))).as_integer_ratio())):
        if loss > FARTHEST:
            return _above(sign * (Decimal(loss) + Decimal(q).ln()))
        grown = Decimal(loss).exp() if loss > -FARTHEST else Decimal(0)
        return _above(sign * (1 - Decimal(q) + Decimal(q) * grown).ln())  # no digits cancel, however near 1 q is


def _digits(above: int, below: int) -> int:
    """Return with how many digits one and a fraction has enough of them behind the 1."""
    return SURE_DIGITS + max(math.ceil(math.log10(below) - math.log10(above)), 0)


def _above(number: Decimal) -> float:
    sure = number + abs(number) * SLACK
    nearest = float(sure)
    return math.nextafter(nearest, math.inf) if Decimal(nearest) < sure else nearest
