"""Trade-off curves of compositions, against closed forms and binomial tests."""

import pytest
from scipy.stats import binom, laplace, norm

from sitr.accounting import Gaussian, Laplace, PoissonSampled, RandomizedResponse


@pytest.mark.parametrize("x", [1e-6, 0.02, 0.3, 0.5, 0.9, 0.999])
def test_many_gaussians_are_one(x):
    found = (Gaussian(10.0) * 50 + Gaussian(20.0) * 200).tradeoff(x)
    truth = float(norm.cdf(norm.isf(x) - 1))
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
    assert found.upper - found.lower <= 1e-6


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("x", [1e-3, 0.1, 0.5, 0.9])
def test_responses_are_told_apart_by_counting(count, x):
    """The best test rejects where at least j of the answers are as P has them, randomizing at j."""
    p = 0.6
    j = int(binom.isf(x, count, 1 - p))
    above = binom.sf(j, count, 1 - p)
    share = (x - above) / binom.pmf(j, count, 1 - p)
    truth = 1 - binom.sf(j, count, p) - share * binom.pmf(j, count, p)
    found = (RandomizedResponse(p) * count).tradeoff(x)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-4


@pytest.mark.parametrize("x", [0.01, 0.3, 0.8])
def test_the_laplace_tradeoff_is_its_closed_form(x):
    """Laplace against Laplace moved by one: the best test cuts at a point."""
    truth = float(laplace.cdf(laplace.isf(x, scale=2.0), loc=1.0, scale=2.0))
    found = Laplace(2.0).tradeoff(x)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-6


def test_the_curve_of_a_sampled_gaussian_is_the_lesser_of_both_orders():
    event, q = PoissonSampled(Gaussian(1.0), 0.2), 0.2
    for x in (0.05, 0.4, 0.9):
        cut = norm.isf(x)
        forward = (1 - q) * norm.cdf(cut) + q * norm.cdf(cut - 1)
        low, high = -20.0, 20.0  # the other order: reject the mixture below a point that it lies under with chance x
        for _ in range(200):
            middle = (low + high) / 2
            below = (1 - q) * norm.cdf(middle) + q * norm.cdf(middle - 1)
            low, high = (middle, high) if below < x else (low, middle)
        backward = norm.sf(low)
        found = event.tradeoff(x)
        assert found.lower - 1e-9 <= min(forward, backward) <= found.upper + 1e-9
        assert found.upper - found.lower <= 1e-6
