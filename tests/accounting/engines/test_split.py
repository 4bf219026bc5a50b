"""Splits, gates and the plain line bracket the same number, and none excludes another's."""

import math

import numpy as np
import pytest

from sitr.accounting.engines.certify import certify
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.near import gated_at
from sitr.accounting.engines.rare import single_jump
from sitr.accounting.engines.solve import epsilon_of
from sitr.accounting.engines.split import split_at
from sitr.accounting.losses.sampled import SampledGaussianLoss

CASES = [
    (1.0, 1e-5, 2, 1e-12),
    (0.8, 1e-4, 30, 1e-15),
    (1.5, 2e-5, 100, 1e-14),
    (2.5, 1e-4, 5, 1e-10),
    (0.5, 1e-3, 4, 1e-9),
]


def mix_of(sigma, q, count):
    return Mix.of([(SampledGaussianLoss.pair(sigma, q).forward, count)])


@pytest.mark.parametrize(("sigma", "q", "count", "delta"), CASES)
def test_the_ways_overlap(sigma, q, count, delta):
    mix = mix_of(sigma, q, count)
    found = epsilon_of(mix, delta)
    assert found.method != "disagreement"
    start = single_jump(mix, delta, found.upper * 2)
    for way in (split_at, gated_at):
        bounds = way(mix, start, math.log(delta))
        if bounds is None:
            continue
        lower, upper = certify(bounds, delta, found.upper, 1 / found.upper)
        assert lower <= found.upper * (1 + 1e-9)
        assert upper >= found.lower * (1 - 1e-9)


def test_two_steps_equal_the_positive_integral_over_the_first():
    sigma, q, delta = 1.0, 1e-5, 1e-12
    loss = SampledGaussianLoss.pair(sigma, q).forward
    found = epsilon_of(mix_of(sigma, q, 2), delta)
    x = np.arange(-12.0, 14.0, 1e-3)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * np.exp(loss.log_ratio(x))

    def two_steps(epsilon):
        return float(np.sum(density * loss.profile(epsilon - loss.log_ratio(x)))) * 1e-3

    assert two_steps(found.upper) <= delta * (1 + 1e-7)
    assert two_steps(found.lower) >= delta * (1 - 1e-7)
