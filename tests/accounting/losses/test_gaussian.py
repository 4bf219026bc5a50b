"""The Gaussian's profile at 60 digits, and the discrete Gaussian's sums."""

import mpmath
import numpy as np
import pytest

from sitr.accounting.losses.gaussian import DiscreteGaussianLoss, GaussianLoss, log_profile
from tests.accounting.helpers import (
    discrete_gaussian_delta,
    gaussian_delta,
    obeys_the_rules_of_a_law,
    transform_matches,
)


@pytest.mark.parametrize("m", [1e-12, 1e-6, 1e-3, 0.1, 0.7, 3.0, 40.0, 1e4])
def test_the_log_profile_is_accurate_everywhere(m):
    for deviations in (0.0, 0.1, 1.0, 3.0, 6.0, 11.0, 30.0):
        epsilon = m * deviations + (m**2 / 2 if deviations > 1 else 0.0)
        truth = gaussian_delta(m, epsilon)
        found = float(log_profile(m, np.float64(epsilon)))
        assert abs(mpmath.expm1(found - mpmath.log(truth))) < 4e-13 * (4 + 1e-3 * (epsilon / m) ** 2)


@pytest.mark.parametrize("m", [0.01, 1.0, 5.0])
def test_the_gaussian_obeys_the_rules(m):
    obeys_the_rules_of_a_law(GaussianLoss(m))
    transform_matches(GaussianLoss(m), 1.3, 0.2)


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (1.0, 1), (3.0, 2), (20.0, 1), (70.0, 3)])
def test_the_discrete_gaussian_obeys_the_rules(scale, shift):
    obeys_the_rules_of_a_law(DiscreteGaussianLoss(scale, shift))
    transform_matches(DiscreteGaussianLoss(scale, shift), 1.3, 0.2)


@pytest.mark.parametrize("x", [-3.3, -0.5, 0.1, 1.0, 7.7])
@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (0.5, 3), (1.0, 2), (20.0, 3)])
def test_the_discrete_moments_are_direct_sums(scale, shift, x):
    with mpmath.workdps(50):
        s, reach = mpmath.mpf(scale), int(40 * scale + 40 + 12 * shift)
        weights = [mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * s**2)) for n in range(-reach, reach + 1)]
        losses = [(shift**2 - 2 * shift * n) / (2 * s**2) for n in range(-reach, reach + 1)]
        total = mpmath.fsum(w * mpmath.exp(mpmath.mpf(x) * v) for w, v in zip(weights, losses, strict=True))
        truth = float(mpmath.log(total / mpmath.fsum(weights)))
    assert float(DiscreteGaussianLoss(scale, shift).log_mgf(np.float64(x))) == pytest.approx(
        truth, rel=1e-12, abs=1e-13
    )


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (0.5, 3), (1.0, 1), (9.3, 1), (200.0, 40)])
@pytest.mark.parametrize("x", [1e-12, 1e-7, 1e-4, 3e-3])
def test_discrete_moments_near_zero_keep_their_digits(scale, shift, x):
    """Near order 1 a divergence is such a moment over x."""
    with mpmath.workdps(60):
        s, move, reach = mpmath.mpf(scale), mpmath.mpf(x) * shift, int(20 * scale + 20)
        sums = [
            mpmath.fsum(mpmath.exp(-((n + by) ** 2) / (2 * s**2)) for n in range(-reach, reach + 1)) for by in (0, move)
        ]
        truth = float(shift**2 / s**2 * x * (mpmath.mpf(x) + 1) / 2 + mpmath.log(sums[1] / sums[0]))
    found = float(DiscreteGaussianLoss(scale, shift).log_mgf(np.float64(x)))
    assert found == pytest.approx(truth, rel=1e-11, abs=0)


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (1.0, 2), (20.0, 3)])
def test_the_discrete_profile_is_a_direct_sum(scale, shift):
    for epsilon in (0.0, 0.3, 2.0):
        truth = float(discrete_gaussian_delta(scale, shift, epsilon))
        assert float(DiscreteGaussianLoss(scale, shift).profile(np.float64(epsilon))) == pytest.approx(truth, rel=1e-10)
