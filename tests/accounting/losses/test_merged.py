"""Merged outcomes lie under the composition, closely: profiles against closed forms, integrals and sums."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sitr.accounting import Gaussian, Laplace, PoissonSampled, PureDP, RandomizedResponse
from sitr.accounting.losses import pairs
from sitr.accounting.losses.merged import merged_pair
from tests.accounting.helpers import (
    black_box_outcomes,
    composed_outcomes,
    gaussian_delta,
    laplace_delta,
    response_outcomes,
)

EPSILONS = [0.0, 0.05, 0.4, 1.0, 2.5]


def whole(loss, epsilon):
    return loss.infinite_mass + (1 - loss.infinite_mass) * float(loss.profile(np.float64(epsilon)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("m", "count"), [(0.1, 1), (0.3, 7), (1.0, 2), (2.0, 3)])
def test_gaussians_merge_to_nearly_one_gaussian(m, count, epsilon):
    pair = merged_pair([(pairs.gaussian_pair(m), count)])
    truth = float(gaussian_delta(math.sqrt(count) * m, epsilon))
    for order in (pair.forward, pair.backward):
        assert truth * (1 - 1e-2) - 1e-9 <= whole(order, epsilon) <= truth * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_noise_merges_closely(epsilon):
    pair, truth = merged_pair([(pairs.laplace_pair(1.3), 1)]), float(laplace_delta(1.3, epsilon))
    assert truth * (1 - 1e-4) <= whole(pair.forward, epsilon) <= truth * (1 + 1e-12)
    # Two of them lie under the bracket of the composition, by little.
    twice, found = merged_pair([(pairs.laplace_pair(1.0), 2)]), (Laplace(1.0) * 2).delta(epsilon)
    for order in (twice.forward, twice.backward):
        assert found.lower * (1 - 1e-3) <= whole(order, epsilon) <= found.upper


def test_finite_laws_lie_under_the_sums_over_their_outcomes_in_both_orders():
    table = pairs.table_pair((-1.0, 0.2), (0.1, 0.85), 0.05)
    own = np.array([0.1, 0.85, 0.05, 0.0]), np.array([0.1 * math.e, 0.85 * math.exp(-0.2), 0.0, 0.0])
    own[1][3] = 1 - own[1].sum()
    rows = [
        (pairs.k_ary_pair(0.7, 3), 3, response_outcomes(0.7, 3)),
        (pairs.two_point_pair(0.6, 0.01), 2, black_box_outcomes(0.6, 0.01)),
        (table, 4, own),
    ]
    for pair, count, laws in rows:
        p, q = composed_outcomes(*laws, count)
        merged = merged_pair([(pair, count)])
        for epsilon in EPSILONS:
            for order, over, under in ((merged.forward, p, q), (merged.backward, q, p)):
                truth = math.fsum(np.maximum(over - math.exp(epsilon) * under, 0))
                assert truth * (1 - 1e-3) - 1e-15 <= whole(order, epsilon) <= truth * (1 + 1e-12) + 1e-15


def test_what_has_no_cells_is_forgotten():
    unknown = pairs.discrete_gaussian_pair(3.0, 1), pairs.gaussian_pair(50.0)
    assert merged_pair([(unknown[0], 1), (unknown[1], 2)]) is None
    alone = merged_pair([(pairs.laplace_pair(1.0), 1)])
    both = merged_pair([(unknown[0], 1), (pairs.laplace_pair(1.0), 1), (unknown[1], 1)])
    assert np.array_equal(alone.forward.losses, both.forward.losses)
    tiny = pairs.two_point_pair(500.0, 0.0)
    assert merged_pair([(pairs.laplace_pair(1.0), 1), (tiny, 2)]).forward.largest == pytest.approx(1.0)


@pytest.mark.parametrize("rate", [1e-4, 1e-10, 2e-14])
@pytest.mark.parametrize("outer", [0.5, 2.7e-11])
def test_losses_far_under_a_unit_of_rounding_stay_under_the_truth(rate, outer):
    """Of responses so rarely sampled, masses under P and Q agree to the last digits; three on one sample, exactly."""
    with mp.workdps(60):
        inner, e = mpf(rate), mpmath.exp(mpf(1))
        q = [1 / (1 + e), e / (1 + e)]
        p = [(1 - inner) * q[0] + inner * q[1], (1 - inner) * q[1] + inner * q[0]]
        whole_p, whole_q = [mpf(1)], [mpf(1)]
        for _ in range(3):
            whole_p, whole_q = ([a * b for a in left for b in right] for left, right in ((whole_p, p), (whole_q, q)))
        truth = mpf(outer) * sum(max(a - b, 0) for a, b in zip(whole_p, whole_q, strict=True))
    found = PoissonSampled(PoissonSampled(PureDP(1.0), rate) * 3, outer).delta(0.0)
    assert truth * (1 - mpf(10) ** -3) <= found.lower <= truth * (1 + mpf(10) ** -15)
    assert truth <= found.upper


@pytest.mark.parametrize(
    "inside", [Laplace(1.0) * 2, Laplace(2.0) + Gaussian(3.0), RandomizedResponse(0.7) * 2 + Laplace(2.0)]
)
def test_sampled_mixes_that_are_composed_have_narrow_brackets(inside):
    found = (PoissonSampled(inside, 0.1) * 10).epsilon(1e-6)
    assert found.upper * (1 - 1e-3) <= found.lower <= found.upper
