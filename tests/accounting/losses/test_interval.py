"""Laplace and exponential laws against integrals of their density."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad

from sitr.accounting import Exponential, Gaussian
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.solve import epsilon_of
from sitr.accounting.losses.interval import BoundedRange, IntervalLoss
from sitr.accounting.losses.law import UNIT
from tests.accounting.helpers import law, logs, obeys_the_rules_of_a_law, transform_matches

LAWS = [make(e0) for make in (IntervalLoss.laplace, IntervalLoss.exponential) for e0 in (1e-3, 0.3, 1.0, 6.0)]


@pytest.mark.parametrize("loss", LAWS, ids=repr)
def test_an_interval_law_obeys_the_rules(loss):
    obeys_the_rules_of_a_law(loss)
    transform_matches(loss, 1.3, 0.2 / loss.e0)


def expectation(loss, function):
    inside = quad(
        lambda v: loss.edge * math.exp((v - loss.e0) / 2) * function(v), -loss.e0, loss.e0, epsabs=0, epsrel=1e-12
    )[0]
    return inside + loss.top * function(loss.e0) + loss.bottom * function(-loss.e0)


@pytest.mark.parametrize("loss", LAWS, ids=repr)
def test_moments_are_integrals_of_the_density(loss):
    assert expectation(loss, lambda v: 1.0) == pytest.approx(1, rel=1e-12)
    assert loss.mean() == pytest.approx(expectation(loss, lambda v: v + math.expm1(-v)), rel=1e-9)
    for x in (-2.5, 0.5, 3.0):
        truth = math.log(expectation(loss, lambda v, x=x: math.exp(x * v)))
        assert float(loss.log_mgf(np.float64(x))) == pytest.approx(truth, rel=1e-9, abs=1e-13)


@given(
    st.sampled_from([IntervalLoss.laplace, IntervalLoss.exponential]),
    st.floats(-3, 4).map(lambda digits: 10.0**digits),
    st.floats(-18, 3).map(lambda digits: 10.0**digits),
)
def test_moments_of_wide_laws_at_flat_tilts_keep_the_model_of_rounding(make, e0, x):
    """Chernoff's bound near δ = 1 divides K(x) by a tiny x, so that every unit of its rounding counts."""
    loss = make(e0)
    found = float(loss.log_mgf(np.float64(x)))
    with mpmath.workdps(60):
        width, tilt = mpmath.mpf(e0), mpmath.mpf(x)
        edge = mpmath.mpf(1) / 4 if loss.top else 1 / (2 * -mpmath.expm1(-width))
        dense = edge * mpmath.exp(-width / 2) * 2 * mpmath.sinh((tilt + 0.5) * width) / (tilt + 0.5)
        ends = (mpmath.exp(tilt * width) + mpmath.exp(-(1 + tilt) * width)) / 2 if loss.top else 0
        assert abs(found - mpmath.log(dense + ends)) <= UNIT * (8 + 4 * abs(found))


@pytest.mark.parametrize("loss", LAWS, ids=repr)
@pytest.mark.parametrize("share", [-1.5, -0.5, 0.0, 0.4, 0.99, 1.0, 2.0])
def test_the_profile_is_an_integral_of_the_density(loss, share):
    epsilon = share * loss.e0
    truth = quad(
        lambda v: loss.edge * math.exp((v - loss.e0) / 2) * -math.expm1(epsilon - v),
        max(min(epsilon, loss.e0), -loss.e0),
        loss.e0,
        epsabs=0,
        epsrel=1e-12,
    )[0]
    truth += loss.top * max(-math.expm1(epsilon - loss.e0), 0) + loss.bottom * max(-math.expm1(epsilon + loss.e0), 0)
    assert float(loss.profile(np.float64(epsilon))) == pytest.approx(truth, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize("digits", [2, 3, 4, 5, 6])
def test_very_many_faint_selections_are_nearly_gaussian(digits):
    """n laws of variance ε²/3 each, nε² = 1: near the Gaussian of m² = 1/3 by ε², if that pair is what is composed."""
    loss = IntervalLoss.exponential(10.0**-digits)
    found = epsilon_of(Mix.of([(loss, 10 ** (2 * digits))]), 1e-6)
    limit = Gaussian(math.sqrt(3)).epsilon(1e-6).upper
    near = 20 * 10.0 ** (-2 * digits)
    assert found.lower <= limit * (1 + near)
    assert found.upper >= limit * (1 - near)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_the_exponential_mechanism_is_within_its_zcdp(epsilon):
    """Bounded range ε is ε²/8-zCDP (THEORY 2.5): nothing that is said of it may cost more for certain."""
    for count in (1, 10, 1000):
        event = Exponential(epsilon) * count
        assert event.epsilon(1e-6).lower <= event.zcdp().epsilon(1e-6).upper
        assert event.rdp(2) <= 2 * event.zcdp().rho * (1 + 1e-12)
        assert event.expected_loss() <= event.zcdp().rho * (1 + 1e-12)


def worst_moment(e0, x):
    """ln E e^{xL} of the worst pair of bounded range, by its best t (THEORY 2.5), at 60 digits."""
    with mpmath.workdps(60):
        e0, x = mpmath.mpf(e0), mpmath.mpf(x)
        best = mpmath.log(x * (mpmath.exp(e0) - mpmath.exp(-x * e0)) / ((x + 1) * -mpmath.expm1(-x * e0)))
        mass = (mpmath.exp(e0) - mpmath.exp(best)) / mpmath.expm1(e0)
        return mpmath.log(mass * mpmath.exp(x * best) + (1 - mass) * mpmath.exp(x * (best - e0)))


@law(300)
@given(logs(1e-7, 60), logs(1e-9, 1e7))
@example(0.0013115993, 59.0)  # was under the truth by more than a filter gives away
@example(9e-4, 1e6)  # was charged more than its own ε
def test_a_moment_of_bounded_range_is_never_under_the_worst(e0, x):
    found, truth = float(BoundedRange(e0).log_mgf(np.float64(x))), worst_moment(e0, x)
    assert found >= truth * (1 - mpmath.mpf(2) ** -50)
    assert found <= min(truth * 1.001 + 1e-12 * x, x * e0)
