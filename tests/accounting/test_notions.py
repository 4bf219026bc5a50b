"""CDP, zCDP and GDP of one event, by the theorem that gives them."""

import math

import pytest
from scipy.stats import norm

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    ZeroConcentrated,
)

RHOS = [
    (Gaussian(4.0), 1 / 32),
    (DiscreteGaussian(4.0, 2), 1 / 8),
    (Exponential(0.8), 0.08),
    (PureDP(0.8), 0.32),
    (Laplace(2.0), 0.125),
    (DiscreteLaplace(2.0, 3), 1.125),
    (RandomizedResponse(0.75), math.log(3) ** 2 / 2),
    (PoissonSampled(Gaussian(4.0), 0.1), 1 / 32),
    (Gaussian(10.0) * 100 + PureDP(0.2), 0.52),
    (ZeroConcentrated(0.3, 0.2) * 3, 0.9),
    (Concentrated(0.5, 1.0), 0.5),
]


@pytest.mark.parametrize(("event", "rho"), RHOS, ids=repr)
def test_rho_of_each_part_adds(event, rho):
    assert event.zcdp().rho == pytest.approx(rho, rel=1e-12)


def test_xi_adds():
    both = (ZeroConcentrated(0.3, 0.2) * 3 + Gaussian(1.0)).zcdp()
    assert (both.rho, both.xi) == pytest.approx((1.4, 0.6))


CONCENTRATED = [
    (Gaussian(4.0), 1 / 32, 1 / 4),
    (Gaussian(10.0) * 100, 0.5, 1.0),
    (DiscreteGaussian(4.0, 2), 1 / 8, 1 / 2),
    (PureDP(0.8), 0.8 * math.tanh(0.4), 0.8),
    (RandomizedResponse(0.75), math.log(3) / 2, math.log(3)),
    (Laplace(2.0), 0.5 + math.expm1(-0.5), 0.5),
    (Concentrated(0.1, 0.5) * 4, 0.4, 1.0),
]


@pytest.mark.parametrize(("event", "mu", "tau"), CONCENTRATED, ids=repr)
def test_means_add_and_standards_add_in_squares(event, mu, tau):
    assert event.cdp().mu == pytest.approx(mu, rel=1e-12)
    assert event.cdp().tau == pytest.approx(tau, rel=1e-12)


def gaussian_of(variation):
    return -2 * norm.ppf((1 - variation) / 2)


MUS = [
    (Gaussian(4.0), 0.25),
    (Gaussian(5.0) * 100, 2.0),
    (Gaussian(3.0) + Gaussian(4.0), 5 / 12),
    (PureDP(0.8), gaussian_of(math.tanh(0.4))),
    (RandomizedResponse(0.75), gaussian_of(0.5)),
    (Laplace(2.0), gaussian_of(-math.expm1(-0.25))),
    (Exponential(0.8), gaussian_of(math.tanh(0.2))),
    (PureDP(0.0), 0.0),
]


@pytest.mark.parametrize(("event", "mu"), MUS, ids=repr)
def test_mu_of_gaussian_dp(event, mu):
    assert event.gdp() == pytest.approx(mu, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("event", [PureDP(0.8), Laplace(2.0), Exponential(0.8), RandomizedResponse(0.9, 4)], ids=repr)
def test_no_tradeoff_lies_under_its_gaussian(event):
    mu = event.gdp()
    for x in (1e-6, 0.01, 0.2, 0.5, 0.8, 0.99):
        assert event.tradeoff(x).upper >= norm.cdf(norm.isf(x) - mu) - 1e-9


def test_the_approximate_forms_carry_the_infinite_mass():
    event = ApproximateDP(0.5, 1e-6) * 2
    assert event.zcdp(delta_part=True).parameters()["delta"] == pytest.approx(2e-6 - 1e-12, rel=1e-9)
    assert event.pure(delta_part=True) == pytest.approx(1.0)
    assert event.rdp(2, delta_part=True) == pytest.approx((PureDP(0.5) * 2).rdp(2), rel=1e-12)
    assert event.gdp(delta_part=True) == pytest.approx((PureDP(0.5) * 2).gdp(), rel=1e-12)


def test_the_approximate_form_costs_no_less_than_the_event():
    event = LossDistribution([0.5, -0.3], [0.6, 0.3], 0.1)
    assert event.zcdp(delta_part=True).epsilon(0.3).upper >= event.epsilon(0.3).lower
