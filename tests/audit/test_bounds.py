"""What counts certify: against exact binomial sums, and in the limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sitr.audit.bounds import ROUNDING, delta_lower, epsilon_lower, probability_lower, probability_upper

ERRORS = st.floats(1e-12, 0.5)


@given(st.integers(1, 10**5), st.data(), ERRORS)
def test_the_bounds_are_where_the_binomial_tail_is_the_error(total, data, error):
    count = data.draw(st.integers(0, total))
    low, high = float(probability_lower(count, total, error)), float(probability_upper(count, total, error))
    assert 0 <= low <= count / total <= high <= 1
    if count > 0:
        assert binom.sf(count - 1, total, low) <= error * (1 + 1e-9)
        assert binom.sf(count - 1, total, low * (1 + 3 * ROUNDING)) >= error * (1 - 1e-9)
    if count < total:
        assert binom.cdf(count, total, high) <= error * (1 + 1e-9)
        assert binom.cdf(count, total, high * (1 - 3 * ROUNDING)) >= error * (1 - 1e-9)


@pytest.mark.parametrize("error", [0.05, 0.3])
def test_the_bounds_hold_as_often_as_they_say(error):
    """Exactly, by summing over all counts, at every probability tried."""
    total = 60
    counts = np.arange(total + 1)
    lower, upper = probability_lower(counts, total, error), probability_upper(counts, total, error)
    for p in np.linspace(0, 1, 201):
        mass = binom.pmf(counts, total, p)
        assert mass[lower > p].sum() <= error + 1e-12
        assert mass[upper < p].sum() <= error + 1e-12


def test_the_two_sides_mirror_each_other():
    counts = np.arange(11)
    mirrored = 1 - probability_upper(10 - counts, 10, 0.01)
    assert probability_lower(counts, 10, 0.01) == pytest.approx(mirrored, abs=1e-9)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5))
def test_epsilon_and_delta_are_two_readings_of_one_line(p, q, delta):
    epsilon = epsilon_lower(p, q, delta)
    assert epsilon >= 0
    if 0 < epsilon < 30:
        assert delta_lower(p, q, epsilon) == pytest.approx(delta, abs=1e-6)
    assert delta_lower(p, q, 0.0) == pytest.approx(max(p - q, 0.0), abs=1e-12)


def test_nothing_is_certified_by_nothing():
    assert epsilon_lower(0.0, 1.0, 0.0) == 0
    assert epsilon_lower(1.0, 0.0, 0.0) == math.inf
    assert delta_lower(0.0, 1.0, 1e9) == 0
