"""Cutting off the largest steps: never under the truth, and close to it where many steps make the loss."""

import math

import numpy as np
import pytest

from sitr.accounting.engines.cut import LEAST, cut_at, rough_log_delta, truncated_epsilon
from sitr.accounting.engines.mix import Mix, best_tilt, chernoff_epsilon
from sitr.accounting.engines.solve import epsilon_of
from sitr.accounting.losses.atoms import two_point
from sitr.accounting.losses.interval import IntervalLoss
from sitr.accounting.losses.sampled import SampledGaussianLoss


def mix_of(sigma, q, count, *others):
    return Mix.of([(SampledGaussianLoss.pair(sigma, q).forward, count), *others])


PLAIN = [(3.0, 1e-2, 1000, 1e-6), (2.0, 5e-3, 20000, 1e-10), (1.0, 1e-2, 3000, 1e-8)]


@pytest.mark.parametrize(("sigma", "q", "count", "delta"), PLAIN)
def test_a_cut_line_contains_what_the_plain_line_finds(sigma, q, count, delta):
    mix = mix_of(sigma, q, count)
    plain = epsilon_of(mix, delta)
    bounds = cut_at(mix, plain.upper, math.log(delta))
    assert bounds.lower(plain.upper) <= delta <= bounds.upper(plain.lower)
    assert bounds.upper(plain.upper) <= delta * (1 + 1e-4)
    assert bounds.lower(plain.lower) >= delta * (1 - 1e-4)


@pytest.mark.parametrize(("sigma", "q", "count", "delta"), PLAIN)
def test_a_cut_line_holds_far_from_where_it_was_tuned(sigma, q, count, delta):
    mix = mix_of(sigma, q, count)
    bounds = cut_at(mix, epsilon_of(mix, delta).upper, math.log(delta))
    for other in (1e-2, 1e-4, delta / 100):
        there = epsilon_of(mix, other)
        assert bounds.lower(there.upper) <= other <= bounds.upper(there.lower)


@pytest.mark.parametrize(("sigma", "q", "count", "delta"), [*PLAIN, (4.3, 1e-5, 1000, 1e-23), (1.0, 1e-5, 10, 1e-20)])
def test_truncation_bounds_epsilon_better_than_chernoff_alone(sigma, q, count, delta):
    mix = mix_of(sigma, q, count)
    bound = truncated_epsilon(mix, delta)
    assert epsilon_of(mix, delta).lower <= bound
    plain = chernoff_epsilon(mix, best_tilt(mix, math.log(delta)), math.log(delta))
    assert bound <= 1.1 * plain


def test_a_rough_delta_is_found_if_it_is_small():
    mix, epsilon = mix_of(1.0, 1e-5, 10), 3.0
    rough = rough_log_delta(mix, epsilon, -1e-3)
    assert truncated_epsilon(mix, math.exp(rough + 0.5)) <= epsilon < truncated_epsilon(mix, math.exp(rough))
    assert rough_log_delta(mix, epsilon, rough + 3.0) == pytest.approx(rough, abs=0.5)
    assert rough_log_delta(mix, epsilon, rough - 1.0) is None
    assert rough_log_delta(mix, epsilon, LEAST) is None


@pytest.mark.parametrize("others", [(two_point(0.25, 0.0).forward, 1), (IntervalLoss.laplace(44.0), 1), None])
def test_rare_steps_among_other_events_have_narrow_brackets(others):
    found = epsilon_of(mix_of(4.0, 1e-5, 1000, *([others] if others else [])), 1e-20)
    assert found.upper - found.lower <= 1e-4 * found.upper


@pytest.mark.parametrize(("sigma", "q", "loss", "delta"), [(0.9, 4e-6, 0.2, 2e-9), (2.0, 1e-4, 1.5, 1e-20)])
def test_one_step_and_one_response_are_known_in_closed_form(sigma, q, loss, delta):
    """δ(ε) is the mean, over the response's two losses, of the step's own profile at what is left of ε."""
    step, response = SampledGaussianLoss.pair(sigma, q).forward, two_point(loss, 0.0).forward
    found = epsilon_of(Mix.of([(step, 1), (response, 1)]), delta)
    assert found.method == "cut line"

    def profile(epsilon):
        return float(np.sum(np.exp(response.logs) * step.profile(epsilon - response.losses)))

    assert profile(found.upper) <= delta * (1 + 1e-9)
    assert profile(found.lower) >= delta * (1 - 1e-9)
