"""Lattices and enumeration against exact binomial sums."""

import math

import mpmath
import pytest

from sitr.accounting import LossDistribution, RandomizedResponse
from sitr.accounting.engines.lattice import AtomSum, enumerated
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
