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


def summed(loss, c, t):
    """E e^{(c+it)L}, over all integers that matter."""
    reach = math.ceil(13 * loss.scale) + math.ceil((2 + c) * loss.sensitivity)
    x = np.arange(-reach, reach + 1, dtype=float)
    normal = np.exp(-(x**2) / (2 * loss.scale**2))
    moved = (2 * loss.sensitivity * x - loss.sensitivity**2) / (2 * loss.scale**2)
    log_ratio = np.logaddexp(math.log1p(-loss.q), math.log(loss.q) + moved)
    power = 1 + c + 1j * t if loss.removes else -c - 1j * t
    return np.sum(normal / np.sum(normal) * np.exp(power * log_ratio))


@pytest.mark.parametrize(
    ("scale", "sensitivity", "q"), [(1000.0, 1, 0.01), (1000.0, 1000, 0.3), (1500.0, 700, 1e-3), (2000.0, 4000, 0.9)]
)
def test_a_fine_grid_has_the_transform_of_the_continuous_noise_as_far_as_it_says(scale, sensitivity, q):
    pair = SampledDiscreteLoss.pair(scale, sensitivity, q)
    for loss in (pair.forward, pair.backward):
        assert loss.is_fine
        for c in (0.01, 1.0, 5.0):
            values, error = loss.ratios(c, loss.reach / 5, 5)
            unit = summed(loss, c, 0.0)
            assert float(loss.log_mgf(np.float64(c))) == pytest.approx(math.log(unit.real), rel=1e-9, abs=1e-13)
            bounds = np.exp(loss.log_decay(c, loss.reach / 5 * np.arange(6)))
            for k in range(6):
                truth = summed(loss, c, k * loss.reach / 5) / unit
                assert abs(values[k] - truth) <= error + 1e-12
                assert abs(truth) <= bounds[k] + 1e-12


def test_a_grid_is_fine_beside_the_noise_and_beside_what_one_person_moves():
    fine = [(1000.0, 1), (1000.0, 1000), (1e4, 10**5)]
    coarse = [(999.0, 1), (1000.0, 1001), (1e4, 10**5 + 1)]
    for scale, sensitivity in fine + coarse:
        loss = SampledDiscreteLoss(scale, sensitivity, 0.1, False)
        assert loss.is_fine is ((scale, sensitivity) in fine)
        assert math.isinf(loss.reach) is not loss.is_fine


def test_a_steep_tilt_of_a_fine_grid_is_bounded_by_the_largest_loss():
    loss = SampledDiscreteLoss(1000.0, 1000, 0.3, False)
    assert float(loss.log_mgf(np.float64(1e6))) == 1e6 * loss.largest
    assert SampledDiscreteLoss(1000.0, 1000, 0.3, True).tilt_limit == math.inf


@pytest.mark.parametrize(("scale", "sensitivity", "q"), [(3.1, 4, 1.8e-4), (0.8, 3, 4.6e-6), (60.0, 7, 0.3)])
def test_one_sampled_event_is_known_by_what_is_sampled(scale, sensitivity, q):
    """Its δ is that of what is inside, at another ε (THEORY 2.7): nothing is smoothed."""
    event = PoissonSampled(DiscreteGaussian(scale, sensitivity), q)
    mixture, alone = outcomes(scale, sensitivity, q)
    for epsilon in (0.0, 0.1, 2.0):
        truth = math.fsum(np.maximum(mixture - math.exp(epsilon) * alone, 0))
        found = event.delta(epsilon)
        assert found.lower * (1 - 1e-9) - 1e-15 <= truth <= found.upper * (1 + 1e-9) + 1e-15
        assert found.upper - found.lower <= 1e-8 * found.upper
    found = event.epsilon(q / 100)
    assert found.upper - found.lower <= 1e-8 * found.upper


def test_its_loss_is_unbounded():
    with pytest.raises(NoSuchGuarantee):
        PoissonSampled(DiscreteGaussian(2.0), 0.1).pure()
