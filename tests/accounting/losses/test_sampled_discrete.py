"""Sampled discrete Gaussian noise against plain sums over the integers."""

import math

import mpmath
import numpy as np
import pytest

from sitr.accounting import DiscreteGaussian, Gaussian, PoissonSampled
from sitr.accounting.losses.sampled_discrete import SampledDiscreteLoss
from sitr.errors import NoSuchGuarantee
from tests.accounting.helpers import obeys_the_rules_of_a_law, sampled

CASES = [(0.5, 1, 0.3), (2.0, 1, 0.1), (4.0, 3, 0.01), (1.0, 5, 0.7)]


def outcomes(scale, sensitivity, q):
    """The mixture and the noise alone, on all integers that matter."""
    x = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + sensitivity + 1)
    alone, moved = (np.exp(-(y**2) / (2 * scale**2)) for y in (x, x - sensitivity))
    return sampled(moved / math.fsum(moved), alone / math.fsum(alone), q)


@pytest.mark.parametrize(("scale", "sensitivity", "q"), CASES)
def test_both_orders_sum_to_one_under_both_laws(scale, sensitivity, q):
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    for loss in (pair.forward, pair.backward):
        assert loss._tilted(0.0)[2] == pytest.approx(0.0, abs=1e-13)
        assert float(loss.log_mgf(np.float64(-1.0))) == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize(("scale", "sensitivity", "q"), CASES)
def test_both_orders_are_laws(scale, sensitivity, q):
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    obeys_the_rules_of_a_law(pair.forward, pair.backward)
    obeys_the_rules_of_a_law(pair.backward, pair.forward)


@pytest.mark.parametrize("epsilon", [-0.2, 0.0, 0.05, 1.0, 3.0])
@pytest.mark.parametrize(("scale", "sensitivity", "q"), CASES)
def test_the_profile_is_the_sum_over_outcomes(scale, sensitivity, q, epsilon):
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    mixture, alone = outcomes(scale, sensitivity, q)
    for loss, p, other in ((pair.forward, mixture, alone), (pair.backward, alone, mixture)):
        truth = math.fsum(np.maximum(p - math.exp(epsilon) * other, 0))
        assert float(loss.profile(np.float64(epsilon))) == pytest.approx(truth, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("scale", "q"), [(2.0, 0.1), (2.5, 0.01)])
def test_high_orders_are_those_of_the_continuous_noise(scale, q):
    discrete = PoissonSampled(DiscreteGaussian(scale), q)
    assert isinstance(discrete.parts[0][0].forward, SampledDiscreteLoss)
    assert discrete.rdp(200) == pytest.approx(PoissonSampled(Gaussian(scale), q).rdp(200), rel=0.01)


def log_moment(loss, c, scale, sensitivity, q, *, digits, reach):
    """ln E e^{cL}, summed over the integers within reach; what is linear in the shift has a mean of 0."""
    with mpmath.workdps(digits):
        power = 1 + mpmath.mpf(c) if loss.removes else -mpmath.mpf(c)
        s2, rate = 2 * mpmath.mpf(scale) ** 2, mpmath.mpf(q)
        weights = {x: mpmath.exp(-mpmath.mpf(x * x) / s2) for x in range(-reach, reach + 1)}
        shift = {x: rate * mpmath.expm1((2 * sensitivity * x - sensitivity**2) / s2) for x in weights}
        gain = mpmath.fsum(
            w * (mpmath.expm1(power * mpmath.log1p(shift[x])) - power * shift[x]) for x, w in weights.items()
        )
        return float(mpmath.log1p(gain / mpmath.fsum(weights.values())))


@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(1.0, 1), (1.6, 1), (4.4, 1), (4.7, 1), (20.0, 1), (9.0, 20), (60.0, 7)]
)
@pytest.mark.parametrize("q", [1e-5, 0.1, 0.9])
def test_moments_are_sums_over_the_integers_on_any_grid(scale, sensitivity, q):
    """Fine grids take the integral of the continuous noise instead: the sum at 30 digits says the same."""
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    for loss in (pair.forward, pair.backward):
        for c in (1e-3, 0.8, 6.5):
            truth = log_moment(loss, c, scale, sensitivity, q, digits=30, reach=math.ceil(13 * scale) + 8 * sensitivity)
            assert float(loss.log_mgf(np.float64(c))) == pytest.approx(truth, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.3, 5), (0.5, 1), (2.0, 1), (9.0, 20)])
@pytest.mark.parametrize("q", [1e-12, 1e-9, 1e-7, 1e-4])
def test_tiny_moments_keep_their_digits(scale, sensitivity, q):
    """A divergence of 1e-15 is no rounding error; and a moved normal far from the other is not forgotten."""
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    for loss in (pair.forward, pair.backward):
        for c in (1e-7, 0.5, 1.0, 7.0):
            truth = log_moment(loss, c, scale, sensitivity, q, digits=60, reach=math.ceil(20 * scale) + 9 * sensitivity)
            assert float(loss.log_mgf(np.float64(c))) == pytest.approx(truth, rel=1e-8, abs=1e-30)


def test_its_loss_is_unbounded():
    with pytest.raises(NoSuchGuarantee):
        PoissonSampled(DiscreteGaussian(2.0), 0.1).pure()
