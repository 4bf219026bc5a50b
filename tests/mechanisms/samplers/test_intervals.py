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
    assert (low + 1) << 64 > first[0] * second[0]  # and by less than a unit
    assert (high - 1) << 64 < first[1] * second[1]
    low, high = over(first, second, 64)
    assert low * second[1] <= first[0] << 64
    assert high * second[0] >= first[1] << 64
    assert (low + 1) * second[1] > first[0] << 64
    assert (high - 1) * second[0] < first[1] << 64


@pytest.mark.parametrize("bits", [8, 16, 64, 100])
def test_bounds_hold_where_the_truth_is_next_to_a_whole_number(bits):
    """By less than any digit that is computed: there only the rounding outwards, at each step, keeps the bounds."""
    for whole in (1, 3, 2 ** (bits - 1) - 1, 2 ** (bits - 1) + 1, 2**bits - 1):
        for beside in (-1, 1):
            with mpmath.workdps(200):
                near = mpmath.mpf(whole) * (1 + beside * mpmath.mpf(10) ** -90)
                x = Fraction(int(mpmath.log(mpmath.mpf(2) ** bits / near) * 10**150), 10**150)
                truth = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * 2**bits
                assert 0 < (truth - whole) * beside < mpmath.mpf(10) ** -50
                low, high = exp_interval(x, bits)
                assert low <= truth <= high
                assert high - low <= 2
