"""Rare steps: where one of them makes the loss, how low a composition falls, and the measure of what is rare."""

import math

import numpy as np
import pytest

from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.rare import LOWEST, Rare, lowest, rare_laws, single_jump
from sitr.accounting.losses import pairs
from sitr.accounting.losses.cuts import Gate
from sitr.accounting.losses.sampled import SampledGaussianLoss

PAIR, OTHER = SampledGaussianLoss.pair(1.0, 1e-4), SampledGaussianLoss.pair(2.0, 1e-3)
LAPLACE = pairs.laplace_pair(0.3).forward


def test_only_the_order_with_the_person_has_rare_steps():
    mix = Mix.of([(PAIR.forward, 3), (OTHER.backward, 2), (LAPLACE, 4)])
    assert rare_laws(mix) == [(PAIR.forward, 3)]


@pytest.mark.parametrize("delta", [1e-7, 1e-12])
def test_a_single_jump_solves_its_equation(delta):
    mix = Mix.of([(PAIR.forward, 10), (OTHER.forward, 3)])
    found = single_jump(mix, delta, 50.0)
    assert 0 < found < 50
    total = sum(n * float(loss.profile(np.float64(found))) for loss, n in ((PAIR.forward, 10), (OTHER.forward, 3)))
    assert total == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    "mix",
    [
        Mix.of([(PAIR.backward, 50)]),
        Mix.of([(LAPLACE, 1000)]),
        Mix.of([(LAPLACE, 10), (pairs.gaussian_pair(0.5).forward, 3)]),
    ],
    ids=["sampled", "laplace", "with a gaussian"],
)
def test_compositions_hardly_ever_fall_lower(mix):
    k = lowest(mix)
    tilts = np.geomspace(1e-2, 1e2, 41) / math.sqrt(2 * mix.mean)
    tilts = tilts[tilts <= mix.tilt_limit]
    chernoff = float(np.min(mix.log_mgf(-tilts) - tilts * k))  # ln P(L < -k) is no more
    assert chernoff <= -LOWEST + 1e-9


def test_no_composition_falls_under_its_smallest_loss():
    mix = Mix.of([(PAIR.forward, 5)])
    assert lowest(mix) == pytest.approx(-5 * math.log1p(-1e-4), rel=1e-12)


def test_the_rare_measure_and_the_body_make_up_the_whole():
    mix, gate = Mix.of([(PAIR.forward, 20)]), Gate.soft(PAIR.forward, 1.0)
    for c in (0.5, 2.0, 5.0):
        body = 20 * gate.log_passed(c)
        rare = float(Rare(mix, [gate], 1.0).log_mgf(c))
        assert np.logaddexp(body, rare) == pytest.approx(float(mix.log_mgf(c)), rel=1e-9, abs=1e-12)
