"""Gated lines agree with the plain line where both are good, and with splits where it is not."""

import math

import pytest

from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.near import gated_at
from sitr.accounting.engines.solve import epsilon_of
from sitr.accounting.engines.split import split_at
from sitr.accounting.losses.gaussian import GaussianLoss
from sitr.accounting.losses.interval import IntervalLoss
from sitr.accounting.losses.sampled import SampledGaussianLoss


def mix_of(sigma, q, count):
    return Mix.of([(SampledGaussianLoss.pair(sigma, q).forward, count)])


@pytest.mark.parametrize(("sigma", "q", "count", "delta"), [(3.0, 1e-2, 1000, 1e-6), (2.0, 5e-3, 20000, 1e-10)])
def test_a_gated_line_contains_what_the_plain_line_finds(sigma, q, count, delta):
    mix = mix_of(sigma, q, count)
    plain = epsilon_of(mix, delta)
    bounds = gated_at(mix, plain.upper, math.log(delta))
    assert bounds.lower(plain.lower * (1 - 1e-6)) <= 1.001 * delta
    assert bounds.upper(plain.upper) >= delta * (1 - 1e-6)
    assert bounds.lower(plain.upper) <= delta <= bounds.upper(plain.lower)


def test_no_gate_where_the_others_can_pull_the_loss_back():
    mix = Mix.of([(SampledGaussianLoss.pair(2.0, 1e-4).forward, 10), (GaussianLoss(0.1), 1)])
    assert gated_at(mix, 0.5, math.log(1e-8)) is None


def test_bounds_hold_far_from_where_the_gates_were_made():
    """A gate made for a small ε says nothing false of a large one, where stopped steps no longer decide."""
    mix = Mix.of([(SampledGaussianLoss.pair(0.5, 1e-3).forward, 50), (IntervalLoss.laplace(20.0), 10)])
    bounds = gated_at(mix, 0.5, math.log(1e-6))
    truth = epsilon_of(mix, 1e-3)
    assert bounds is None or bounds.upper(truth.lower) >= 1e-3 * (1 - 1e-6)
    split = split_at(mix, 0.5, math.log(1e-6))
    assert split is None or split.upper(truth.lower) >= 1e-3 * (1 - 1e-6)
