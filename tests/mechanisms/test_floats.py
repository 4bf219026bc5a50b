"""Floating-point noise: normal, keyed anew for every call."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from sitr.mechanisms.floats import device_key, float_normals
from sitr.mechanisms.randomness import SYSTEM, Seeded

FALSE_ALARM = 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("double", [False, True])
def test_draws_are_normal_and_those_of_two_calls_independent(double):
    """Σx² is χ², the mean product of two calls normal with deviation 1/√n, the law Kolmogorov's: 1e-9 in all."""
    one, other = (float_normals(100_000, SYSTEM, double=double).astype(np.float64) for _ in range(2))
    assert chi2.ppf(FALSE_ALARM / 6, one.size) < (one**2).sum() < chi2.isf(FALSE_ALARM / 6, one.size)
    assert abs((one * other).mean()) * np.sqrt(one.size) < norm.isf(FALSE_ALARM / 6)
    assert kstest(one, "norm").pvalue > FALSE_ALARM / 3


def test_keys_are_new_for_every_call():
    assert len({device_key(SYSTEM) for _ in range(1000)}) == 1000
    assert not np.array_equal(float_normals(10, SYSTEM), float_normals(10, SYSTEM))


def test_seeded_streams_are_repeatable():
    assert np.array_equal(float_normals(10, Seeded(1)), float_normals(10, Seeded(1)))
    assert float_normals(3, SYSTEM, double=True).dtype == np.float64
