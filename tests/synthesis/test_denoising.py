"""Denoising: the laws of the medians by integrals, and how near they are to the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from sitr.synthesis import denoising
from sitr.synthesis.denoising import Spread, denoised

spreads = st.builds(Spread, st.sampled_from(["laplace", "gaussian"]), st.floats(0.5, 60))


def fine_steps(noise, expected, spread, distance):
    """Points in which a normal number and its noise are both seen, and the logarithm of how likely each is."""
    ends = (min(expected, expected + distance) - 12 * spread, max(expected, expected + distance) + 12 * spread)
    steps = np.linspace(*ends, 200_001)
    return steps, norm.logpdf(steps, expected, spread) + noise.log_density(expected + distance - steps)


@given(spreads, st.floats(1, 400), st.floats(-100, 100))
@settings(max_examples=60)
def test_a_count_with_noise_has_the_density_of_their_sum(noise, expected, distance):
    spread = np.sqrt(expected)
    steps, logs = fine_steps(noise, expected, spread, distance)
    true = logsumexp(logs) + np.log(steps[1] - steps[0])
    found = denoising._log_mixed(np.array([distance]), np.array([spread]), noise)[0]
    assert found == pytest.approx(true, abs=1e-3)


@given(spreads, st.floats(1, 400), st.floats(-120, 120))
@settings(max_examples=60)
def test_half_of_what_a_count_may_be_is_above_its_median(noise, expected, distance):
    spread, noisy = np.sqrt(expected), expected + distance
    middle = denoising._medians(np.array([noisy]), np.array([expected]), np.array([spread]), noise)[0]
    steps, logs = fine_steps(noise, expected, spread, distance)
    steps, logs = steps[steps >= 0], logs[steps >= 0]
    weights = np.exp(logs - logs.max())
    step = steps[1] - steps[0]
    shares = [weights[steps > bound].sum() / weights.sum() for bound in (middle - 2 * step, middle + 2 * step)]
    assert shares[1] - 1e-6 <= 0.5 <= shares[0] + 1e-6


@given(st.lists(st.integers(-50, 500), min_size=1, max_size=80), spreads, st.booleans())
def test_counts_are_never_negative_and_as_many_as_before(noisy, noise, ordered):
    found = denoised(np.array(noisy), noise, ordered=ordered)
    assert found.counts.shape == (len(noisy),)
    assert (found.counts >= 0).all()


@given(st.permutations(range(40)), spreads)
@settings(max_examples=20)
def test_cells_in_no_order_may_be_in_any(order, noise):
    noisy = np.arange(40.0) ** 2 - 30
    one, other = (denoised(cells, noise, ordered=False).counts for cells in (noisy, noisy[list(order)]))
    assert one[list(order)] == pytest.approx(other, abs=1e-6)


def test_little_noise_leaves_counts_as_they_are():
    counts = np.random.default_rng(5).poisson(300, 200)
    for kind in ("laplace", "gaussian"):
        found = denoised(counts, Spread(kind, 0.05), ordered=True)
        assert found.counts == pytest.approx(counts, abs=1)


def test_many_cells_are_described_by_few_counts():
    noisy = np.random.default_rng(6).poisson(3, 10**5) + np.rint(np.random.default_rng(7).laplace(0, 5, 10**5))
    found = denoised(noisy, Spread("laplace", 5), ordered=True)
    assert np.abs(found.counts - 3).mean() < 2
