"""What a line asks of a measure, of every kind there is: transforms within their bounds, masses that are no less."""

import math

import numpy as np
import pytest

from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.near import Near
from sitr.accounting.engines.rare import Rare
from sitr.accounting.losses import pairs
from sitr.accounting.losses.cuts import Gate

RARE = pairs.sampled_gaussian_pair(1.2, 1e-3, 1).forward
MIX = Mix.of([(RARE, 50), (pairs.laplace_pair(0.05).forward, 3), (pairs.gaussian_pair(1 / 30).forward, 2)])
GATES = [Gate.soft(RARE, 0.05)]
MEASURES = {"a mix": MIX, "its rare part": Rare(MIX, GATES, 0.02), "its body": Near(MIX, GATES, 0.02)}
STEP, COUNT = 0.5, 60


@pytest.fixture(params=MEASURES)
def measure(request):
    return MEASURES[request.param]


@pytest.mark.parametrize("c", [0.5, 2.0, 6.0])
def test_the_transform_is_one_at_its_tilt_and_decays_as_it_says(measure, c):
    values, error = measure.ratios(c, STEP, COUNT, 0.0)
    assert len(values) == COUNT + 1
    assert abs(values[0] - 1) <= error + 1e-12
    t = STEP * np.arange(1, COUNT + 1)
    bound = np.exp(measure.log_decay(c, t))
    assert np.all(np.abs(values[1:]) <= bound * (1 + 1e-9) + error)


def test_the_mass_is_no_less_than_what_the_moments_say(measure):
    assert math.exp(float(measure.log_mgf(0.0))) <= measure.mass * (1 + 1e-9)


@pytest.mark.parametrize("c", [0.5, 2.0, 6.0])
def test_logs_of_moments_are_convex_and_known_to_their_error(measure, c):
    below, here, above = (float(one) for one in measure.log_mgf(np.array([0.9 * c, c, 1.1 * c])))
    assert here <= (below + above) / 2 + measure.log_mgf_error(c)
    assert here == float(measure.log_mgf(c))


@pytest.mark.parametrize("c", [0.5, 2.0])
def test_what_is_rare_and_what_is_not_make_up_the_whole(c):
    """Of the transforms, on the line as on the real axis."""
    whole, rare, body = MEASURES.values()
    weights = [math.exp(float(one.log_mgf(c)) - float(whole.log_mgf(c))) for one in (rare, body)]
    assert sum(weights) == pytest.approx(1, rel=1e-9)
    parts = [one.ratios(c, STEP, COUNT, 0.0) for one in (rare, body)]
    total, error = whole.ratios(c, STEP, COUNT, 0.0)
    made = sum(weight * values for weight, (values, _) in zip(weights, parts, strict=True))
    assert np.abs(made - total).max() <= error + sum(w * e for w, (_, e) in zip(weights, parts, strict=True)) + 1e-9
