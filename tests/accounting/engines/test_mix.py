"""The composed law: Gaussians merge, logs add, and Chernoff's bound is above the truth."""

import math

import numpy as np
import pytest

from sitr.accounting.engines.mix import Mix, best_tilt, chernoff_delta, chernoff_epsilon, log_kappa, minimise
from sitr.accounting.losses import pairs
from tests.accounting.helpers import gaussian_delta

GAUSSIAN, LAPLACE = pairs.gaussian_pair(0.5).forward, pairs.laplace_pair(0.3).forward
RESPONSE = pairs.k_ary_pair(0.7, 2).forward
BOX = pairs.two_point_pair(0.7, 0.01).forward


def test_gaussians_become_one():
    mix = Mix.of([(GAUSSIAN, 3), (pairs.gaussian_pair(2.0).forward, 1)])
    assert mix.parts == ()
    assert mix.m2 == pytest.approx(4.75)


def test_logs_means_and_largest_losses_add():
    mix = Mix.of([(LAPLACE, 3), (RESPONSE, 2)])
    for x in (-1.5, 0.4, 3.0):
        assert float(mix.log_mgf(x)) == pytest.approx(3 * float(LAPLACE.log_mgf(x)) + 2 * float(RESPONSE.log_mgf(x)))
    assert mix.mean == pytest.approx(3 * LAPLACE.mean() + 2 * RESPONSE.mean())
    assert mix.largest == pytest.approx(0.9 + 2 * math.log(7 / 3))
    assert Mix.of([(LAPLACE, 1), (GAUSSIAN, 1)]).largest == math.inf


def test_infinite_masses_compose():
    assert Mix.of([(BOX, 2)]).infinite_mass == pytest.approx(1 - 0.99**2, rel=1e-12)
    assert Mix.of([(LAPLACE, 2)]).infinite_mass == 0


def test_the_constant_of_chernoff_is_the_largest_value():
    for c in (1e-3, 0.5, 1.0, 7.0):
        x = np.linspace(1e-6, 60 / (1 + c) + 30, 400_000)
        assert float(log_kappa(c)) == pytest.approx(float(np.max(np.log(-np.expm1(-x)) - c * x)), abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_chernoff_is_above_the_gaussian_truth(epsilon):
    mix = Mix.of([(pairs.gaussian_pair(1.0).forward, 1)])
    truth = float(gaussian_delta(1, epsilon))
    assert chernoff_delta(mix, epsilon) >= math.log(truth)
    assert chernoff_epsilon(mix, best_tilt(mix, math.log(truth)), math.log(truth)) >= epsilon


@pytest.mark.parametrize("where", [1e-8, 0.01, 1.0, 300.0, 1e9])
@pytest.mark.parametrize("start", [1e-6, 1.0, 1e6])
def test_the_minimum_is_found_from_anywhere(where, start):
    found = minimise(lambda c: math.log(c / where) ** 2, start, 1e-4)
    assert found == pytest.approx(where, rel=1e-3)


def test_a_minimum_is_looked_for_while_somebody_pays():
    """The best point seen stands; and one is seen in any case, however far from where numbers end."""
    asked = {}

    def height(c):
        asked[c] = math.log(c / 300) ** 2 if c < 1e6 else math.inf
        return asked[c]

    for most in (3, 10):
        asked.clear()
        found = minimise(height, 1.0, 1e-9, pays=lambda _, most=most: len(asked) < most)
        assert len(asked) == most
        assert found == pytest.approx(min(asked, key=asked.get))
    asked.clear()
    assert minimise(height, 1e9, pays=lambda _: False) < 1e6
    assert [c < 1e6 for c in asked][-2:] == [False, True]


def test_a_minimum_is_not_looked_for_below_what_is_enough():
    asked = []

    def height(c):
        asked.append(c)
        return math.log(c / 300) ** 2

    for enough, most in ((100.0, 1), (0.3, 14), (-math.inf, 60)):
        asked.clear()
        found = minimise(height, 1.0, 1e-9, enough)
        assert len(asked) <= most
        assert height(found) <= max(enough, 1e-12)
    assert len(asked) > 14
