"""Trade-off curves of compositions, against closed forms and binomial tests."""

import math

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm

from sitr.accounting import (
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
)
from sitr.accounting.engines.line import Line, choose_grid
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.ways import Purse
from sitr.accounting.losses import pairs


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


@pytest.mark.parametrize("count", [1, 40, 2**26])
def test_a_loss_that_is_always_the_same_is_told_by_what_only_the_other_can_produce(count):
    """Under Q the outcome that P always has comes with probability e^-l: beyond it every test has full power."""
    event, x = LossDistribution([0.125], [1.0]) * count, 0.05
    found, certain = event.tradeoff(x), math.exp(-0.125 * count)
    truth = min(max(1 - x / certain, 0.0) if certain else 0.0, certain * (1 - x))  # both orders
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9


def test_questions_of_a_long_line_are_paid_for():
    mix = Mix.of([(pairs.laplace_pair(1.0).forward, 3)])
    line, purse = Line(mix, choose_grid(mix, 2.0, 1.0, -5.0)), Purse(1e4)
    assert line.asked >= line.grid.count
    assert not purse.asks(line)


@pytest.mark.parametrize("p", [1e-15, 1e-20, 1e-30, 1e-300])
@pytest.mark.parametrize(
    "event", [PureDP(1.0), PureDP(1.0) * 3, Laplace(2.0), PoissonSampled(PureDP(1.0), 0.1)], ids=str
)
def test_the_power_at_a_tiny_error_is_the_largest_ratio_times_it(event, p):
    """Beyond the largest loss nothing of δ is left, however it was rounded."""
    found = event.bad_outcome(p)
    truth = p * math.exp(event.pure())
    assert found.lower <= truth * (1 + 1e-14)
    assert truth * (1 - 1e-14) <= found.upper <= truth * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 20, 200])
@pytest.mark.parametrize("x", [1e-6, 0.05, 0.7])
def test_the_curve_of_a_sampled_group_is_the_lesser_of_both_orders(size, x):
    """The best tests of either order cut at a point."""
    sigma, q = 1.0, 0.02
    sampled = np.arange(size + 1)
    weights = binom.pmf(sampled, size, q)

    def below(point):
        return float(weights @ norm.cdf((point - sampled) / sigma))

    low, high = -20.0, size + 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < x else (low, middle)
    truth = min(below(sigma * norm.isf(x)), norm.sf(low / sigma))
    found = PoissonSampled(Gaussian(sigma), q).group(size).tradeoff(x)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.upper - found.lower <= 1e-6


def test_a_law_with_many_atoms_is_asked_more_than_once():
    found = (PoissonSampled(Laplace(1.0), 0.1) * 5).bad_outcome(0.5)
    assert found.upper - found.lower < 1e-6
