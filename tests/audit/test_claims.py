"""Claims: the sketch never lies under the curve, factors mean what they say, and what escapes is computed honestly."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from sitr.accounting import ApproximateDP, DiscreteGaussian, Exponential, Gaussian, Laplace, PureDP, RandomizedResponse
from sitr.audit.bounds import probability_lower, probability_upper
from sitr.audit.claims import FOUND, MOST_FACTOR, claim_of, smallest_factor, smallest_failure
from sitr.errors import NoSuchGuarantee

EVENTS = [
    PureDP(epsilon=1.0),
    ApproximateDP(epsilon=0.5, delta=1e-3),
    Laplace(noise_multiplier=2.0),
    Gaussian(noise_multiplier=1.0),
    DiscreteGaussian(scale=2.0, sensitivity=3),
    Exponential(epsilon=2.0),
    RandomizedResponse(p=0.75, k=4),
    Laplace(noise_multiplier=3.0) * 5 + Gaussian(noise_multiplier=2.0),
    PureDP(epsilon=0.0),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_the_sketch_lies_on_the_curve_or_a_little_above(event):
    claim = claim_of(event, None)
    q = np.array([0.0, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.99, 1.0])
    exact = np.array([claim.power(x) for x in q])
    assert np.all(claim.sketch(q) >= exact - 1e-9)
    assert claim.sketch(q) == pytest.approx(exact, rel=0.05, abs=1e-4)


def test_a_pair_claims_its_own_line():
    claim = claim_of((1.0, 1e-3), None)
    assert claim.power(0.1) == pytest.approx(1e-3 + 0.1 * math.e, rel=1e-9)
    assert (claim.epsilon, claim.delta) == (1.0, 1e-3)


def test_epsilon_is_reported_where_it_means_most():
    assert claim_of(PureDP(epsilon=2.0), None).delta == 0
    assert claim_of(ApproximateDP(epsilon=2.0, delta=1e-3), None).delta == pytest.approx(1e-3)
    assert claim_of(ApproximateDP(epsilon=2.0, delta=1e-3), None).epsilon == pytest.approx(2.0)
    assert claim_of(Gaussian(noise_multiplier=1.0), None).delta == 1e-5
    mixed = ApproximateDP(epsilon=0.1, delta=1e-3) + Gaussian(noise_multiplier=5.0)
    assert claim_of(mixed, None).delta == pytest.approx(2e-3)
    with pytest.raises(NoSuchGuarantee, match=r"no ε at delta=0\.0001"):
        claim_of(mixed, 1e-4)


def test_the_factor_of_gaussian_noise_is_that_on_the_noise():
    claim = claim_of(Gaussian(noise_multiplier=1.0), None)
    q = np.array([0.01, 0.2, 0.5, 0.9])
    for factor in (0.5, 1.0, 1.5):
        p = ndtr(factor + ndtri(q))
        assert claim.factors(p, q) == pytest.approx(factor, rel=0.02)


def test_factors_in_the_limits():
    claim = claim_of((1.0, 0.0), None)
    assert claim.factors([0.0, 1.0, 0.3], [1.0, 1.0, 0.3]).tolist() == [0.0, 0.0, 0.0]
    nothing = claim_of((0.0, 0.0), None)
    assert nothing.factors([0.4, 0.2], [0.3, 0.3]).tolist() == [MOST_FACTOR, 0.0]


def failure(claim, total):
    return smallest_failure(claim, total, 0.025, chosen=total // 2, learned=total // 2)


@pytest.mark.parametrize("total", [2_000, 50_000])
def test_what_is_said_not_to_escape_is_certified_as_often_as_is_said(total):
    """By the binomial law itself: of the best event of Gaussian noise that is too small, and of a failure."""
    claim, error, counts = claim_of(Gaussian(noise_multiplier=1.0), None), 0.0125, np.arange(total + 1)
    factor, found = smallest_factor(claim, total, error), []
    for q in (0.05, 0.1, 0.2, 0.3, 0.4):
        chance = binom.pmf(counts, total, q)
        likely = counts[chance > 1e-12]
        allowed = claim.sketch(probability_upper(likely, total, error))
        least = np.searchsorted(probability_lower(counts, total, error), allowed, side="right")
        found.append(float(np.sum(chance[likely] * binom.sf(least - 1, total, ndtr(ndtri(q) + factor)))))
    assert FOUND <= max(found) < 1
    rate = failure(claim, total)
    needed = np.argmax(probability_lower(counts, total, 0.025) > claim.sketch(probability_upper(0, total, 0.025)))
    assert FOUND <= binom.sf(needed - 1, total, rate) < 1


@pytest.mark.parametrize("event", EVENTS[:-1], ids=repr)
def test_more_samples_see_smaller_bugs(event):
    claim = claim_of(event, None)
    totals = (10**3, 10**4, 10**5, 10**6)
    factors = [smallest_factor(claim, total, 0.025) for total in totals]
    failures = [failure(claim, total) for total in totals]
    assert factors == sorted(factors, reverse=True)
    assert failures == sorted(failures, reverse=True)
    assert 1 < factors[-1] < 1.05
    assert factors[1] - 1 == pytest.approx(math.sqrt(100) * (factors[3] - 1), rel=0.6)


def test_where_nothing_would_be_certified_everything_escapes():
    assert smallest_factor(claim_of((0.0, 0.0), None), 10**4, 0.025) == math.inf
    assert smallest_factor(claim_of((50.0, 0.0), None), 100, 0.025) == math.inf
    assert failure(claim_of((50.0, 0.0), None), 100) == 1
