"""What all laws share: sums of waves, and logs of sums."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.accounting.losses.gaussian import GaussianLoss
from sitr.accounting.losses.law import LaterPair, Pair, before_sampling, log_sum_exp, waves, waves_error
from sitr.accounting.losses.pairs import gaussian_pair, sampled_gaussian_pair
from tests.accounting.helpers import law, logs

MP = mpmath.mp.clone()


@law(300)
@given(logs(1e-300, 3000), logs(1e-323, 1.0))
@example(690.0, 1e-10)  # (e^ε - 1)/q is no number, and δ was said to be 0
@example(1e-3, 1e-310)
def test_the_loss_before_sampling_is_what_the_sample_made_it_of(epsilon, q):
    with MP.workdps(1500):
        truth = MP.log1p(MP.expm1(MP.mpf(epsilon)) / MP.mpf(q))
        assert before_sampling(epsilon, q) == pytest.approx(float(truth), rel=1e-9, abs=0)


@law(100)
@given(logs(1e-15, 0.9), st.floats(0, 0.999))
def test_it_is_below_0_where_the_sample_gains(q, share):
    epsilon = math.log1p(-share * q)
    truth = MP.log1p(MP.expm1(MP.mpf(epsilon)) / MP.mpf(q))
    assert before_sampling(epsilon, q) == pytest.approx(float(truth), rel=1e-9)
    assert before_sampling(math.log1p(-q) - 1e-9, q) == -math.inf


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


def test_a_later_pair_is_made_once_and_only_when_asked():
    made = []

    def make():
        made.append(Pair(GaussianLoss(1.0), GaussianLoss(2.0), beneath=gaussian_pair(0.5)))
        return made[-1]

    later = LaterPair(gaussian_pair(3.0), make)
    assert later.renyi is gaussian_pair(3.0)
    assert {later: 1}[later] == 1
    assert later != gaussian_pair(3.0)
    assert not made
    assert later.forward is made[0].forward
    assert (later.backward, later.beneath, later.alone) == (made[0].backward, gaussian_pair(0.5), None)
    assert len(made) == 1
