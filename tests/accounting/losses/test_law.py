"""What all laws share: sums of waves, and logs of sums."""

import numpy as np
import pytest

from sitr.accounting.losses.law import Pair, log_sum_exp, waves, waves_error
from sitr.accounting.losses.pairs import gaussian_pair, sampled_gaussian_pair


def test_waves_are_the_plain_sums():
    generator = np.random.default_rng(0)
    losses, weights = generator.normal(size=50), generator.random(50)
    plain = np.array([np.sum(weights * np.exp(1j * k * 0.37 * losses)) for k in range(301)])
    found = waves(losses, weights, 0.37, 300)
    assert found.shape == (301,)
    assert np.max(np.abs(found - plain)) <= waves_error(losses, weights, 0.37 * 300)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 100])
def test_waves_have_one_value_for_each_step(count):
    assert waves(np.array([1.0]), np.ones(1), 0.1, count)[-1] == pytest.approx(np.exp(0.1j * count))


def test_logs_of_sums_do_not_overflow():
    assert log_sum_exp(np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    assert log_sum_exp(np.array([-1000.0, -np.inf])) == pytest.approx(-1000)
    assert log_sum_exp(np.full(3, -np.inf)) == -np.inf


def test_a_pair_knows_whether_it_is_symmetric():
    assert gaussian_pair(1.0).is_symmetric
    assert not sampled_gaussian_pair(1.0, 0.1).is_symmetric
    assert Pair.symmetric(gaussian_pair(1.0).forward).is_symmetric
