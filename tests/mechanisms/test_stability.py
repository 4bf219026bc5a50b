"""The gate: its δ exactly, the least threshold, and the one black box that has its profile."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.stability import Gate
from tests.accounting.helpers import brute_delta
from tests.mechanisms.statistics import fits
from tests.mechanisms.truths import laplace_mass, laplace_tail

RATES = [Fraction(1), Fraction(0.1), Fraction(1, 3), Fraction(7), Fraction(1e-6)]
DELTAS = [1e-300, 1e-12, 1e-6, 0.01, 0.3, 0.9]


def chance(rate, threshold):
    """r^T/(1 + r)."""
    exponent = -mpf(rate.numerator) / rate.denominator
    return mpmath.exp(exponent * threshold) / (1 + mpmath.exp(exponent))


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_threshold_is_the_least_that_keeps_delta(rate, delta):
    gate = Gate.of(rate, delta)
    with mp.workdps(40):
        assert chance(rate, gate.threshold) <= gate.delta <= delta
        assert gate.delta <= chance(rate, gate.threshold) * (1 + 1e-15)
        assert gate.threshold == 0 or chance(rate, gate.threshold - 1) > delta


@pytest.mark.parametrize("rate", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.2, 0.6])
def test_the_event_is_the_larger_of_noise_and_delta_and_nothing_more(rate, delta):
    """max(δ_noise(ε), δ), at every ε: the black box has exactly this profile (THEORY 2.5, 2.6)."""
    gate = Gate.of(Fraction(rate), delta)
    event = gate.event(None)
    assert event.at_epsilon <= rate
    truth = 1 / (1 + math.exp(-rate))
    for epsilon in [0.0, rate / 3, rate / 2, 0.9 * rate, rate, 2 * rate]:
        noise = brute_delta([truth, 1 - truth], [1 - truth, truth], epsilon)
        found = event.delta(epsilon=epsilon)
        assert max(noise, gate.delta) <= found.upper * (1 + 1e-12)
        assert found.upper <= max(noise, gate.delta) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("threshold", range(4))
def test_the_chance_is_that_of_the_noise(threshold):
    assert math.isclose(Gate(Fraction(1, 2), threshold).delta, laplace_tail(2.0, threshold), rel_tol=1e-12)


@pytest.mark.statistical
def test_a_distance_leaves_with_discrete_laplace_noise():
    noisy = Gate(Fraction(1, 2), 3).noisy(np.full(1_000_000, 7), SYSTEM)
    assert fits(noisy, -20, [laplace_mass(2.0, x - 7) for x in range(-20, 40)])
