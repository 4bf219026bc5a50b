"""Noise: what it costs is what was asked for, its scale follows the reach, and neighbours double it where they must."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.accounting import ZeroConcentrated
from sitr.errors import InvalidArgument
from sitr.query.noise import LARGEST, Noise, Reach, deviation, ratio, rho_of

reaches = st.builds(
    lambda groups, rows: Reach(groups * rows, math.sqrt(groups) * rows), st.integers(1, 50), st.integers(1, 50)
)
costs = st.floats(1e-3, 10)
units = st.sampled_from([1, 7, 1000, 2**14])


@given(costs, reaches, units, st.sampled_from(["add_remove", "replace_one"]))
@settings(max_examples=40)
def test_laplace_noise_costs_its_epsilon(cost, reach, unit, adjacency):
    noise = Noise("laplace", cost, reach, unit, adjacency)
    assert noise.event.epsilon(delta=0.0).upper <= cost * (1 + 1e-9)
    assert noise.scale >= reach.l1 / cost * (1 - 1e-12)
    assert noise.scale == pytest.approx(reach.l1 / cost, rel=0.01, abs=1 / unit)
    assert noise.event.adjacency == adjacency


@given(costs, reaches, units)
@settings(max_examples=40)
def test_gaussian_noise_costs_its_rho(cost, reach, unit):
    noise = Noise("gaussian", cost, reach, unit, "add_remove")
    for delta in (1e-9, 1e-4):
        assert noise.event.epsilon(delta=delta).upper <= ZeroConcentrated(cost).epsilon(delta=delta).upper * (1 + 1e-9)
    assert noise.scale >= reach.l2 / math.sqrt(2 * cost) * (1 - 1e-12)
    assert noise.scale == pytest.approx(reach.l2 / math.sqrt(2 * cost), rel=0.01, abs=1 / unit)


@given(st.integers(1, 50), st.integers(1, 50), costs, units, st.integers(1, 5))
@settings(max_examples=40)
def test_gaussian_noise_is_charged_for_the_whole_reach_to_the_last_digit(groups, rows, cost, unit, length):
    """By exact fractions: √groups is no float, and what it is rounded by must not come out of the privacy."""
    mechanism = Noise("gaussian", cost, Reach(groups * rows, math.sqrt(groups) * rows), unit, "add_remove").mechanism(
        length
    )
    exact = Fraction(groups * (rows * unit) ** 2) / (2 * Fraction(mechanism.scale) ** 2)
    assert exact <= Fraction(mechanism.event.rho) <= Fraction(cost) * (1 + Fraction(1, 10**12))


def test_a_reach_that_is_no_float_is_rounded_up(monkeypatch):
    """By exact fractions, before the mechanism adds what it loses itself: √groups, and its products, are rounded."""
    passed = []
    monkeypatch.setattr("sitr.query.noise.gaussian", lambda **about: passed.append(about["sensitivity"]))
    for groups, rows, unit in itertools.product(range(2, 200), (1, 3, 7, 29), (1, 7, 1000, 123_457)):
        Noise("gaussian", 0.1, Reach(groups * rows, math.sqrt(groups) * rows), unit, "add_remove").mechanism(1)
        exact = groups * (rows * unit) ** 2
        assert exact <= Fraction(passed.pop()) ** 2 <= exact * (1 + Fraction(1, 2**45))


def test_noise_is_as_much_as_a_sampler_draws_and_no_more():
    """The planner chooses its units so that the noise is no larger than `LARGEST`, in steps; here it is as the unit."""
    for kind, cost in (("laplace", 1.0), ("gaussian", 0.5)):
        half, twice = (Noise(kind, cost, Reach(1, 1.0), int(LARGEST[kind] * times), "add_remove") for times in (0.5, 2))
        assert half.scale == pytest.approx(1.0)
        with pytest.raises(InvalidArgument, match="grid steps"):
            twice.mechanism(1)


def test_the_reach_is_doubled_where_a_unit_is_replaced():
    assert Reach(3, 2.0).doubled("add_remove") == Reach(3, 2.0)
    assert Reach(3, 2.0).doubled("replace_one") == Reach(6, 4.0)


def test_a_longer_vector_costs_the_same():
    noise = Noise("laplace", 0.5, Reach(5, 5.0), 100, "add_remove")
    assert noise.mechanism(1).event == noise.mechanism(1000).event == noise.event
    assert noise.mechanism(1).scale == noise.mechanism(1000).scale


@given(costs, reaches)
def test_deviations(cost, reach):
    assert deviation("laplace", cost, reach) == pytest.approx(math.sqrt(2) * ratio("laplace", cost) * reach.l1)
    assert deviation("gaussian", cost, reach) == pytest.approx(ratio("gaussian", cost) * reach.l2)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_the_rho_of_a_price_is_the_largest(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert ZeroConcentrated(rho).epsilon(delta=delta).upper <= epsilon
    assert ZeroConcentrated(rho * 1.01).epsilon(delta=delta).upper > epsilon


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_every_number_of_a_vector_gets_noise_of_its_own(kind):
    mechanism = Noise(kind, 0.5, Reach(1, 1.0), 10**6, "replace_one").mechanism(5)
    assert mechanism.event.adjacency == "replace_one"
    assert len(set(mechanism.release([0] * 5).value)) == 5
    with pytest.raises(InvalidArgument):
        mechanism.release([0] * 4)
