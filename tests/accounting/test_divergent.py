"""Maximally divergent pairs: what they are, and that any pair is a post-processing of the one it is reduced to."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LossDistribution,
    MaximallyDivergent,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
)
from sitr.errors import InvalidArgument, NoSuchGuarantee
from tests.accounting.helpers import brute_delta, epsilons, law, logs

SHARES = st.floats(0, 1)
LOW = -math.expm1(-0.25) / (math.exp(0.5) - math.exp(-0.25))  # so that both laws have a mass of one
FACTORS = (lambda e: math.exp(-e), lambda e: 1.0, math.exp)  # of Q's masses at losses of ε, 0 and -ε


def outcomes(pair):
    p = np.array(pair.probabilities)
    return p, p * [factor(pair.epsilon) for factor in FACTORS]


@law(50)
@given(epsilon=logs(1e-6, 500), share=SHARES)
def test_both_laws_are_laws_at_the_distance_and_mean_that_are_said(epsilon, share):
    pair = MaximallyDivergent(epsilon, share * math.tanh(epsilon / 2))
    p, q = outcomes(pair)
    assert math.isclose(p.sum(), 1, rel_tol=1e-12)
    assert math.isclose(q.sum(), 1, rel_tol=1e-9)
    assert math.isclose(np.abs(p - q).sum() / 2, pair.total_variation, rel_tol=1e-9, abs_tol=1e-15)
    assert math.isclose(epsilon * (p[0] - p[2]), pair.expected_loss, rel_tol=1e-9, abs_tol=1e-300)


@law(50)
@given(epsilon=epsilons, share=SHARES, asked=st.floats(0, 3))
def test_the_event_is_the_pair(epsilon, share, asked):
    pair = MaximallyDivergent(epsilon, share * math.tanh(epsilon / 2))
    bracket = pair.event.delta(asked)
    truth = brute_delta(*outcomes(pair), asked)
    assert bracket.lower - 1e-14 <= truth <= bracket.upper + 1e-14
    assert math.isclose(pair.event.expected_loss(), pair.expected_loss, rel_tol=1e-6, abs_tol=1e-12)


@law(60)
@given(rows=st.lists(st.tuples(logs(1e-3, 1), logs(1e-3, 1)), min_size=1, max_size=8), more=st.floats(1, 2))
def test_the_pieces_put_together_are_the_outcomes(rows, more):
    """The reduction, also at a larger ε: rows add up to p and q, and columns to the pair."""
    p, q = (np.array(side) / sum(side) for side in zip(*rows, strict=True))
    pair = MaximallyDivergent.of_outcomes(p, q)
    wider = MaximallyDivergent(pair.epsilon * more, pair.total_variation)
    for one in (pair, wider):
        pieces = one.split(p, q)
        assert np.all(pieces >= -1e-15)
        assert np.allclose(pieces.sum(axis=1), p, rtol=1e-12)
        assert np.allclose(pieces @ [factor(one.epsilon) for factor in FACTORS], q, rtol=1e-9, atol=1e-15)
        assert np.allclose(pieces.sum(axis=0), one.probabilities, rtol=1e-9, atol=1e-12)


@law(60)
@given(rows=st.lists(st.tuples(logs(1e-2, 1), logs(1e-2, 1)), min_size=2, max_size=8), asked=st.floats(0, 4))
def test_no_divergence_falls_and_the_largest_loss_stays(rows, asked):
    p, q = (np.array(side) / sum(side) for side in zip(*rows, strict=True))
    pair = MaximallyDivergent.of_outcomes(p, q)
    losses = np.log(p / q)
    assert math.isclose(pair.epsilon, np.abs(losses).max(), rel_tol=1e-12, abs_tol=1e-300)
    assert brute_delta(p, q, asked) <= pair.event.delta(asked).upper + 1e-14
    for mean in (p @ losses, -q @ losses):
        assert mean <= pair.expected_loss * (1 + 1e-12) + 1e-15
        assert pair.expected_loss <= MaximallyDivergent.antipodal(pair.epsilon).expected_loss * (1 + 1e-12)


@pytest.mark.parametrize(
    "event",
    [
        Laplace(0.7),
        Laplace(10.0) * 30,
        DiscreteLaplace(2.0, 3),
        RandomizedResponse(0.6, 5) * 3,
        Exponential(1.5),
        PoissonSampled(Laplace(1.0), 0.2),
        LossDistribution([-0.5, 0.25], [LOW, 1 - LOW]) * 4,
    ],
)
def test_an_event_costs_no_more_than_what_it_is_reduced_to(event):
    pair = MaximallyDivergent.of_event(event)
    assert pair.epsilon >= event.pure() * (1 - 1e-12)
    for epsilon in np.linspace(0, 1.1 * pair.epsilon, 12):
        assert event.delta(epsilon).lower <= pair.event.delta(epsilon).upper + 1e-14
    for alpha in (1.0, 1.5, 4.0, 50.0, math.inf):
        assert event.rdp(alpha) <= pair.event.rdp(alpha) * (1 + 1e-9)
    assert event.expected_loss() <= pair.expected_loss * (1 + 1e-9)


@law(20)
@given(epsilon=epsilons)
def test_the_worst_of_all_is_randomized_response(epsilon):
    pair = MaximallyDivergent.antipodal(epsilon)
    assert math.isclose(pair.expected_loss, epsilon * math.tanh(epsilon / 2))
    assert pair.probabilities[1] <= 1e-15
    reduced = MaximallyDivergent.of_event(PureDP(epsilon))
    assert reduced.epsilon == epsilon
    assert math.isclose(reduced.total_variation, pair.total_variation, rel_tol=1e-12)


def test_the_bound_of_seed_000_is_above_and_tight_to_leading_order():
    for epsilon in (1e-3, 0.1, 1.0, 5.0):
        mean = MaximallyDivergent.antipodal(epsilon).expected_loss
        assert mean <= epsilon * math.expm1(epsilon) / 2
    assert math.isclose(MaximallyDivergent.antipodal(1e-4).expected_loss, 1e-4 * math.expm1(1e-4) / 2, rel_tol=1e-4)


def test_an_adjacency_is_kept():
    pair = MaximallyDivergent.of_event(PoissonSampled(RandomizedResponse(0.7), 0.1))
    assert pair.adjacency == pair.event.adjacency == "add_remove"


def test_nothing_is_lost_in_a_pair_that_tells_nothing():
    pair = MaximallyDivergent.of_outcomes([0.25, 0.75], [0.25, 0.75])
    assert (pair.epsilon, pair.expected_loss, pair.probabilities) == (0.0, 0.0, (0.0, 1.0, 0.0))
    assert pair.split([0.25, 0.75], [0.25, 0.75]).tolist() == [[0, 0.25, 0], [0, 0.75, 0]]
    assert pair.event.delta(0.0).upper == 0
    zero = MaximallyDivergent.of_outcomes([0.0, 1.0], [0.0, 1.0])
    assert zero.split([0.0, 1.0], [0.0, 1.0]).tolist() == [[0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("event", [Gaussian(1.0), ApproximateDP(1.0, 1e-6)])
def test_an_unbounded_loss_has_no_such_pair(event):
    with pytest.raises(NoSuchGuarantee):
        MaximallyDivergent.of_event(event)


BAD = {
    "too far apart": lambda: MaximallyDivergent(1.0, 0.47),
    "negative distance": lambda: MaximallyDivergent(1.0, -0.1),
    "too large": lambda: MaximallyDivergent(601.0, 0.1),
    "no event": lambda: MaximallyDivergent.of_event(3),
    "not one": lambda: MaximallyDivergent.of_outcomes([0.5, 0.4], [0.5, 0.5]),
    "no list": lambda: MaximallyDivergent.of_outcomes([[0.5, 0.5]], [[0.5, 0.5]]),
    "one outcome less": lambda: MaximallyDivergent.of_outcomes([0.5, 0.5], [0.2, 0.3, 0.5]),
    "losses above the pair's": lambda: MaximallyDivergent(0.1, 0.01).split([0.9, 0.1], [0.5, 0.5]),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_what_is_no_pair_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_an_outcome_of_one_side_alone_is_refused():
    with pytest.raises(NoSuchGuarantee, match="0 on one side"):
        MaximallyDivergent.of_outcomes([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])
