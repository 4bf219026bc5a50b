"""Laws: each step of a distribution function lies between its bounds, however few bits they have."""

import math
from fractions import Fraction
from itertools import accumulate, islice

import mpmath
import numpy as np
import pytest

from sitr.mechanisms.samplers.laws import Coin, Digit, Normal, TwoSided
from tests.mechanisms.samplers.test_table import LAWS, probabilities


@pytest.mark.parametrize("bits", [48, 64, 96])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_every_step_lies_between_its_bounds(law, bits):
    """A floor that both bounds agree on is the right one only if the truth is never outside of them."""
    steps = list(islice(law.steps(bits), 150))
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for (low, high), p in zip(steps, probabilities(law, len(steps)), strict=True):
            total += p
            assert low <= total * 2**bits <= high


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_first_steps_lie_between_bounds_of_any_number_of_bits(law):
    """A bound that is one unit too near shows at some of them only: rounding hides it at the others."""
    with mpmath.workdps(60):
        steps = list(accumulate(probabilities(law, 8)))[: None if not isinstance(law, Coin) else 1]
        for bits in range(40, 161):
            for (low, high), step in zip(law.steps(bits), steps, strict=False):
                assert low <= step * 2**bits <= high


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bounds_narrow_as_bits_are_added(law):
    """They are apart by units that do not grow with the bits: so more bits decide where fewer did not."""
    apart = [
        max(Fraction(high - low, 2**bits) for low, high in islice(law.steps(bits), 150)) for bits in (64, 128, 192)
    ]
    assert apart[0] < Fraction(1, 2**25)
    assert apart[1] < apart[0] / 2**50
    assert apart[2] < apart[1] / 2**50


@pytest.mark.parametrize("bits", [48, 64, 96])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_is_surely_passed_at_a_step_is_passed_at_the_next(law, bits):
    """Also where terms are less than what a unit can tell."""
    lows = [low for low, _ in islice(law.steps(bits), 600)]
    assert lows == sorted(lows)


def test_outcomes_are_in_the_order_that_steps_are_in():
    assert Coin(Fraction(1)).values(2).tolist() == [0, 1]
    assert Digit(Fraction(1), 4).values(4).tolist() == [0, 1, 2, 3]
    assert TwoSided(Fraction(1)).values(6).tolist() == [0, -1, 1, -2, 2, -3]
    assert Normal(Fraction(1)).values(6).tolist() == [0, 1, -1, 2, -2, 3]
    assert Normal(Fraction(1), one_sided=True).values(4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1), Fraction(50), Fraction(10**4)])
@pytest.mark.parametrize("one_sided", [False, True])
def test_the_steps_of_a_normal_go_on_to_the_last_unit(variance, one_sided):
    """What is left out lies beyond the last bit: a table that ended before would never draw its tail."""
    for bits in (32, 64):
        low, high = list(Normal(variance, one_sided).steps(bits))[-1]
        assert low >= 2**bits - 2**14
        assert high >= 2**bits - 1


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(2), Fraction(10**4, 7), Fraction(1400**2)])
@pytest.mark.parametrize("bits", [32, 64, 96])
def test_what_a_normal_leaves_out_is_bounded(variance, bits):
    weights, rest = Normal(variance)._weights(bits)
    beyond = np.arange(len(weights), 2 * len(weights) + 50, dtype=float)
    assert np.sum(np.exp(bits * math.log(2) - beyond**2 / (2 * float(variance)))) <= rest
    assert rest <= 2 + weights[-1][1] * (1 + math.isqrt(math.ceil(variance)))
