"""From parameters to pairs: both orders against brute force, and cells that hold what they cut."""

from fractions import Fraction

import numpy as np
import pytest

from sitr.accounting.losses import pairs
from sitr.accounting.losses.atoms import Atoms
from sitr.accounting.losses.law import Pair
from sitr.accounting.losses.sampled import SampledGaussianLoss
from tests.accounting.helpers import (
    brute_delta,
    discrete_laplace_outcomes,
    obeys_the_rules_of_a_law,
    response_outcomes,
    sampled,
)


def whole(loss, epsilon):
    return loss.infinite_mass + (1 - loss.infinite_mass) * float(loss.profile(np.float64(epsilon)))


def worst(pair, epsilon):
    return max(whole(pair.forward, epsilon), whole(pair.backward, epsilon))


PAIRS = {
    "discrete laplace": pairs.discrete_laplace_pair(1.7, 3),
    "response": pairs.k_ary_pair(0.7, 5),
    "response under chance": pairs.k_ary_pair(0.1, 5),
    "response at chance": pairs.k_ary_pair(0.2, 5),
    "black box": pairs.two_point_pair(0.7, 0.01),
    "guarantees": pairs.guarantees_pair(((0.5, 1e-2), (1.0, 1e-5))),
    "table": pairs.table_pair((1.0, -0.7, 0.0), (0.5, 0.2, 0.3), 0.0),
    "sampled gaussian": pairs.sampled_gaussian_pair(1.1, 0.05),
    "sampled group": pairs.sampled_gaussian_pair(1.1, 0.05, 3),
    "sampled response": pairs.sampled_pair(pairs.k_ary_pair(0.7, 5), 0.2),
    "sampled laplace": pairs.sampled_pair(pairs.laplace_pair(0.8), 0.2),
    "sampled black box": pairs.sampled_pair(pairs.two_point_pair(0.7, 0.01), 0.2),
    "sampled discrete gaussian": pairs.sampled_pair(pairs.discrete_gaussian_pair(2.0, 1), 0.2),
    "sampled fine discrete gaussian": pairs.sampled_pair(pairs.discrete_gaussian_pair(200.0, 100), 0.2),
    "long discrete laplace": pairs.discrete_laplace_pair(5000.0, 6000),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_a_pair_obeys_the_rules_in_both_orders(pair):
    obeys_the_rules_of_a_law(pair.forward, pair.backward)
    obeys_the_rules_of_a_law(pair.backward, pair.forward)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_finite_pairs_are_their_outcomes(epsilon):
    for pair, (p, q) in (
        (pairs.discrete_laplace_pair(1.7, 3), discrete_laplace_outcomes(1.7, 3)),
        (pairs.k_ary_pair(0.7, 5), response_outcomes(0.7, 5)),
        (pairs.k_ary_pair(0.1, 5), response_outcomes(0.1, 5)),
        (pairs.sampled_pair(pairs.k_ary_pair(0.7, 5), 0.2), sampled(*response_outcomes(0.7, 5), 0.2)),
    ):
        assert worst(pair, epsilon) == pytest.approx(brute_delta(p, q, epsilon), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3, 1.0])
def test_cells_hold_what_they_cut(epsilon):
    p, q = discrete_laplace_outcomes(2000.0, 5000)
    coarse = pairs.discrete_laplace_pair(2000.0, 5000)
    truth = brute_delta(p, q, epsilon)
    assert whole(coarse.beneath.forward, epsilon) <= truth * (1 + 1e-9)
    assert whole(coarse.forward, epsilon) >= truth * (1 - 1e-9)
    assert whole(coarse.forward, epsilon) == pytest.approx(truth, rel=1e-5, abs=1e-6)


def test_what_only_dominates_is_no_lower_end():
    """Where most of Q's mass is lost, only the largest loss is known: an upper end, and nothing beneath."""
    lost = pairs.sampled_pair(Pair.symmetric(Atoms(np.array([1.0]), np.zeros(1))), 0.5)
    assert whole(lost.forward, 0.0) > 0.1
    assert lost.beneath is not None
    assert worst(lost.beneath, 0.0) == 0


@pytest.mark.parametrize(
    "pair", [pairs.two_point_pair(9.0, 0.0), pairs.laplace_pair(9.0), pairs.gaussian_pair(1.0)], ids=str
)
def test_a_sample_of_a_sample_is_not_rarer_than_it_is(pair):
    """0.2 · 0.3 is a little more than the double nearest to it, 0.06."""
    twice = pairs.sampled_pair(pairs.sampled_pair(pair, 0.3), 0.2)
    law = twice.renyi.forward if twice.renyi else twice.forward
    rate = law.sampling_prob if isinstance(law, SampledGaussianLoss) else law.q
    assert rate > 0.06
    assert Fraction(0.2) * Fraction(0.3) <= Fraction(rate)


def test_a_sample_of_what_may_fail_may_fail():
    tiny = pairs.sampled_pair(pairs.two_point_pair(1.0, 1e-300), 1e-30)
    assert tiny.forward.infinite_mass > 0
    assert tiny.renyi.forward.infinite_mass > 0


def test_equal_parameters_give_the_same_pair():
    assert pairs.gaussian_pair(0.5) is pairs.gaussian_pair(0.5)
    assert pairs.k_ary_pair(0.7, 5) is pairs.k_ary_pair(0.7, 5)
