"""CDP, zCDP and GDP of one event, by the theorem that gives them."""

import math

import mpmath
import pytest
from hypothesis import example, given
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
from sitr.accounting.notions import SMOOTHING, composed_gdp, discrete_gdp
from sitr.errors import NoSuchGuarantee
from tests.accounting.helpers import discrete_gaussian_delta, gaussian_delta, law, logs

MP = mpmath.mp.clone()
MP.dps = 60

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


@law(200)
@given(logs(1e-6, 1e4))
@example(38.0)  # was under the truth by nearly a hundredth
@example(1e4)  # was infinite
def test_mu_keeps_its_digits_however_little_both_laws_have_in_common(epsilon):
    """1 - TV = 2Φ(-μ/2), and ln Φ has slope φ/Φ: a step of Newton's says how far off μ is."""
    e = MP.mpf(epsilon)
    halves = {
        PureDP(epsilon): 1 / (1 + MP.exp(e)),
        Laplace(1 / epsilon): MP.exp(-1 / MP.mpf(1 / epsilon) / 2) / 2,
        Exponential(epsilon): 1 / (1 + MP.exp(e / 2)),
    }
    for event, half in halves.items():
        x = MP.mpf(event.gdp()) / 2
        tail = MP.erfc(x / MP.sqrt(2)) / 2
        step = (MP.log(tail) - MP.log(half)) * tail / (MP.exp(-(x**2) / 2) / MP.sqrt(2 * MP.pi))
        assert abs(step) < 1e-12 * x


def test_a_guarantee_that_says_nothing_is_refused_in_our_words():
    event = PureDP(1e4) * 10**9
    for _ in range(2):
        event = PoissonSampled(event, 0.5) * 10**9
    for ask in (event.zcdp, event.cdp):
        with pytest.raises(NoSuchGuarantee, match="would be over 1e"):
            ask()


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


# Discrete Gaussian noise: Gaussian DP outside a mass.


def smoothed(z, scale):
    """The law of Y ~ N(0, σ²-s²), then a discrete Gaussian of variance s² around Y, at z; 40 digits.

    The trapezoid rule on a Gaussian that is six steps wide is exact to more digits than that.
    """
    with mpmath.workdps(40):
        s2, sigma2 = mpmath.mpf(SMOOTHING), mpmath.mpf(scale) ** 2
        rest = sigma2 - s2
        middle, step = z * rest / sigma2, mpmath.sqrt(s2 * rest / sigma2) / 6

        def density(y):
            whole = int(mpmath.nint(y))
            around = mpmath.fsum(mpmath.exp(-((k - y) ** 2) / (2 * s2)) for k in range(whole - 18, whole + 19))
            return mpmath.exp(-(y**2) / (2 * rest) - (z - y) ** 2 / (2 * s2)) / around

        summed = mpmath.fsum(density(middle + k * step) for k in range(-90, 91))
        return summed * step / mpmath.sqrt(2 * mpmath.pi * rest)


def drawn(z, scale):
    with mpmath.workdps(40):
        sigma = mpmath.mpf(scale)
        reach = int(30 * scale) + 5
        total = mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1))
        return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * sigma**2)) / total


@pytest.mark.parametrize("scale", [1.7321, 2.0, 3.7, 20.0])
def test_discrete_noise_is_a_post_processing_of_gaussian_noise_but_for_a_mass(scale):
    """At every point it has at least 1 - η of that law; and hardly less of it would be a lie for the smallest noise."""
    _, outside = discrete_gdp(scale, 1)
    with mpmath.workdps(40):
        missing = [1 - drawn(z, scale) / smoothed(z, scale) for z in (0, 1, 2, int(9 * scale))]
    assert max(missing) <= outside
    assert max(missing) >= outside / 1000
    assert outside < 1e-18


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.7321, 1), (2.0, 1), (2.5, 4), (6.0, 1), (30.0, 7)])
def test_the_profile_of_discrete_noise_lies_under_that_of_its_gaussian(scale, sensitivity):
    mu, outside = discrete_gdp(scale, sensitivity)
    for epsilon in (0.0, 0.1 * mu, 0.5 * mu, mu, 2 * mu, 5 * mu, 8 * mu):
        truth = discrete_gaussian_delta(scale, sensitivity, epsilon)
        assert truth <= gaussian_delta(mu, epsilon) + outside
    # Without what is given up it would be no bound: the continuous curve under-reports the discrete one.
    assert any(
        discrete_gaussian_delta(scale, sensitivity, e * mu) > gaussian_delta(sensitivity / scale, e * mu)
        for e in (0.0, 0.5, 1.0, 2.0)
    )


@pytest.mark.parametrize("count", [2, 9])
def test_several_coordinates_that_move_are_gaussian_together(count):
    mu, outside = discrete_gdp(2.0, 1)
    for epsilon in (0.2, 1.0, 3.0):
        moved = DiscreteGaussian(2.0) * count
        assert moved.delta(epsilon).lower <= gaussian_delta(mu * math.sqrt(count), epsilon) + count * outside


def test_what_is_given_up_of_discrete_noise_is_little():
    assert discrete_gdp(20.0, 1)[0] == pytest.approx(1 / math.sqrt(400 - 1.5), rel=1e-12)
    assert discrete_gdp(2.0**20, 3)[0] == pytest.approx(3 / 2.0**20, rel=1e-11)
    assert discrete_gdp(1e12, 1)[1] <= 2e-25
    assert composed_gdp((DiscreteGaussian(20.0, 2) * 9).parts)[0] == pytest.approx(6 / math.sqrt(398.5), rel=1e-12)
    assert composed_gdp((DiscreteGaussian(20.0, 2) * 9).parts)[1] == pytest.approx(9 * discrete_gdp(20.0, 2)[1])
    with pytest.raises(NoSuchGuarantee, match="no Gaussian DP guarantee is known"):
        discrete_gdp(1.7, 1)


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(DiscreteGaussian(20.0, 2), 0.1),
        PoissonSampled(DiscreteGaussian(20.0, 2) + PureDP(0.0), 0.1),
    ],
    ids=repr,
)
def test_sampling_keeps_what_discrete_noise_has(event):
    assert composed_gdp(event.parts) == pytest.approx(discrete_gdp(20.0, 2), rel=1e-12)


def test_discrete_noise_has_no_gaussian_dp_without_a_mass_outside():
    for ask in (DiscreteGaussian(20.0).gdp, lambda: DiscreteGaussian(20.0).gdp(delta_part=True)):
        with pytest.raises(NoSuchGuarantee, match="lies under the continuous one at its atoms"):
            ask()
