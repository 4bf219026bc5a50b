"""Lattices and enumeration against exact binomial sums."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest

from sitr.accounting import LossDistribution, RandomizedResponse
from sitr.accounting.engines.lattice import AtomSum, _decaying_sums, enumerated
from sitr.accounting.engines.mix import Mix
from sitr.accounting.losses import pairs
from tests.accounting.helpers import holds_epsilon, narrow


def binomial_delta(p, count, epsilon):
    """δ of `count` binary responses by the sum over the number of truths, at 60 digits."""
    with mpmath.workdps(60):
        p, total = mpmath.mpf(p), mpmath.mpf(0)
        step, factor = mpmath.log(p / (1 - p)), mpmath.exp(mpmath.mpf(epsilon))
        for j in range(count, -1, -1):
            if (2 * j - count) * step <= epsilon:
                break
            ways = mpmath.binomial(count, j)
            total += ways * (p**j * (1 - p) ** (count - j) - factor * (1 - p) ** j * p ** (count - j))
        return total


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-30])
@pytest.mark.parametrize(("p", "count"), [(0.52, 500), (0.6, 37), (0.9, 3), (0.75, 1), (0.87, 1500), (0.501, 3000)])
def test_responses_hold_the_binomial_sum(p, count, delta):
    found = (RandomizedResponse(p) * count).epsilon(delta)
    assert holds_epsilon(found, delta, lambda e: binomial_delta(p, count, e))
    assert narrow(found, relative=1e-4)


def test_enumeration_keeps_all_the_mass():
    mix = Mix.of([(pairs.k_ary_pair(0.6, 3).forward, 4), (pairs.two_point_pair(0.31, 0.0).forward, 3)])
    atoms, error = enumerated(mix)
    assert math.fsum(map(math.exp, atoms.logs)) == pytest.approx(1, rel=1e-12)
    assert error < 1e-12
    assert AtomSum(atoms, error).upper(mix.largest) >= 0


def test_a_loss_that_is_listed_twice_counts_twice():
    high, low = 0.7310585786300049, 0.2689414213699951
    twice = LossDistribution([1.0, 1.0, -1.0], [high / 2, high / 2, low]) * 2
    once = LossDistribution([1.0, -1.0], [high, low]) * 2
    for epsilon in (0.0, 0.5, 1.5):
        assert float(twice.delta(epsilon)) == pytest.approx(float(once.delta(epsilon)), rel=1e-9)


def test_a_sum_that_decays_is_right_however_long_and_steep_it_is():
    masses = np.array([0.5, 0.25, 0.125, 0.125])
    for rate in (1e-9, 0.1, 5.0, 400.0, 1e4):
        found = _decaying_sums(masses, rate)
        truth = [math.fsum(m * math.exp(-rate * k) for k, m in enumerate(masses[j:])) for j in range(4)]
        assert found == pytest.approx(truth, rel=1e-13)
    long = _decaying_sums(np.ones(100_000), 0.01)
    assert long[0] == pytest.approx(1 / -math.expm1(-0.01), rel=1e-12)


def test_far_below_the_tilted_mode_delta_is_still_the_sum():
    """Losses that spread over thousands: the mode of the tilted law lies farther from ε than e^x has numbers for."""
    event, delta = RandomizedResponse(p=0.6649939858595911, k=5) * 1921754, 1.7949971236016687e-08
    found = event.epsilon(delta)
    assert event.delta(found.upper).lower <= delta <= event.delta(found.lower).upper


def test_one_loss_many_times_is_that_many_times_the_loss():
    """Nothing is as long as the count: there is one way to have one loss so often."""
    mix = Mix.of([(pairs.table_pair((0.25,), (1.0,), 0.0).forward, 2**22)])
    event = LossDistribution([0.25], [1.0]) * 2**22
    tracemalloc.start()
    assert enumerated(mix)[0].losses.tolist() == [2.0**20]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**20
    assert event.delta(11.7).upper == 1.0 == pytest.approx(event.delta(11.7).lower)
    assert (LossDistribution([0.25], [1.0]) * 4).delta(0.5).upper == pytest.approx(-math.expm1(-1.0), rel=1e-12)
