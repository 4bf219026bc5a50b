"""Integer bounds of exponentials hold the truth and are narrow."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.mechanisms.samplers.intervals import exp_interval, over, times

rationals = st.fractions(min_value=0, max_value=500, max_denominator=10**12)


@given(rationals, st.sampled_from([8, 64, 96, 160, 300]))
def test_the_exponential_lies_between(x, bits):
    low, high = exp_interval(x, bits)
    with mpmath.workdps(int(bits * 0.31) + 300):
        truth = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= truth <= high
    assert high - low <= 2


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 2**80), Fraction(2**70)])
def test_the_ends_of_the_range(x):
    low, high = exp_interval(x, 64)
    assert 0 <= low <= high <= 2**64 + 1


@given(st.lists(st.integers(1, 2**70), min_size=4, max_size=4))
def test_products_and_quotients_are_rounded_outwards(numbers):
    a, b, c, d = numbers
    first, second = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    low, high = times(first, second, 64)
    assert low << 64 <= first[0] * second[0]
    assert high << 64 >= first[1] * second[1]
    low, high = over(first, second, 64)
    assert low * second[1] <= first[0] << 64
    assert high * second[0] >= first[1] << 64
