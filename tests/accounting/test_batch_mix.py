"""The Rényi curve of a batch: above the moments of its pair, and not by much."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    RandomizedResponse,
    SampledWithoutReplacement,
)
from sitr.accounting.batch_mix import BatchMix
from sitr.accounting.engines.mix import Mix
from sitr.accounting.losses.pairs import batch_pair
from sitr.accounting.parts import batch_part
from tests.accounting.helpers import law, logs, probabilities, rates

ORDERS = np.array([1e-3, 0.1, 0.5, 1.0, 3.0, 20.0, 300.0])


def curve_of(event, q):
    """The curve of an event on a batch, though the law of atoms is at hand."""
    removed = [PoissonSampled(event, q).parts[0][0]]
    if not event.parts[0][0].is_symmetric:
        backward = LossDistribution(*mirrored(event))
        removed.append(PoissonSampled(backward, q).parts[0][0])
    whole = tuple(Mix.of([(order, 1)]) for order in (event.parts[0][0].forward, event.parts[0][0].backward))
    return BatchMix(event.parts, q, tuple((pair.renyi or pair).forward for pair in removed), whole)


def mirrored(event):
    """The other order of a user's table."""
    rows = [(-loss, p * math.exp(-loss)) for loss, p in zip(event.losses, event.probabilities, strict=True)]
    return [loss for loss, _ in rows], [p for _, p in rows], 1 - math.fsum(p for _, p in rows)


@law(40)
@given(probabilities, st.integers(2, 5), rates)
def test_the_curve_is_above_the_moments_of_the_pair(p, k, q):
    event = RandomizedResponse(p, k)
    curve, truth = curve_of(event, q), batch_pair(event.parts[0][0], q).forward
    found, least = curve.log_mgf(ORDERS), truth.log_mgf(ORDERS)
    removed = curve.removed[0].log_mgf(ORDERS)
    assert np.all(found >= least * (1 - 1e-9) - 1e-15)
    assert np.all(found <= np.minimum(removed + np.log(2 - np.exp(-removed)), np.logaddexp(removed, 0)) + 1e-9)
    assert curve.mean() >= truth.mean() * (1 - 1e-9) - 1e-15
    assert curve.largest == pytest.approx(truth.largest, rel=1e-12)


@law(20)
@given(logs(0.05, 3), logs(1e-6, 0.3), rates)
def test_with_infinite_loss_the_rest_is_what_counts(epsilon, delta, q):
    event = ApproximateDP(epsilon, delta)
    curve, truth = curve_of(event, q), batch_pair(event.parts[0][0], q).forward
    assert curve.infinite_mass == pytest.approx(truth.infinite_mass, rel=1e-12)
    assert np.all(curve.log_mgf(ORDERS) >= truth.log_mgf(ORDERS) * (1 - 1e-9) - 1e-15)


@law(20)
@given(logs(0.05, 3), logs(1e-6, 0.9), rates, st.sampled_from(ORDERS[:-1]))
def test_infinite_loss_adds_nothing_to_the_integral_but_its_part_of_the_mean(epsilon, delta, q, c):
    """Both bounds on the integral, by sums over the finite losses of the remove order."""
    removed = PoissonSampled(ApproximateDP(epsilon, delta), q).parts[0][0].forward
    p, losses = (1 - removed.infinite_mass) * np.exp(removed.logs), removed.losses
    larger, twice = p @ np.exp(c * losses), 2 * (p @ (np.exp(c * losses) - 1 + c * np.expm1(-losses)))
    assert BatchMix._excess(removed, c) == pytest.approx(min(larger, twice), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("q", [0.02, 0.3, 0.8])
def test_a_table_with_different_orders_counts_both(q):
    event = LossDistribution([-0.5, 0.25, 1.0], [0.3, 0.5, 0.15], 0.05)
    pair = batch_part(event.parts, q)
    assert len(pair.renyi.forward.removed) == 2
    found, truth = pair.renyi.forward.log_mgf(ORDERS), pair.forward.log_mgf(ORDERS)
    assert np.all(found >= truth * (1 - 1e-9) - 1e-15)
    assert pair.renyi.forward.infinite_mass == pytest.approx(q * max(0.05, mirrored(event)[2]), rel=1e-9)


def test_moments_beyond_doubles_are_kept_in_logarithms():
    curve = batch_part(Gaussian(0.1).parts, 0.01).renyi.forward
    large, unbounded = curve.log_mgf(np.array([40.0, 200.0])), 200 * 201 / 2 * 100
    assert math.isfinite(large[1])
    assert unbounded + 201 * math.log(0.01) <= large[1] <= unbounded + 1
    assert large[0] < large[1]


@pytest.mark.parametrize("alpha", [1.5, 2, 10, 100])
def test_a_batch_of_nearly_everyone_has_no_larger_divergence_than_everyone(alpha):
    inside = Gaussian(1.0) + Laplace(2.0)
    nearly = SampledWithoutReplacement(inside, 100, 99).rdp(alpha)
    assert nearly <= inside.rdp(alpha) * (1 + 1e-12)
    assert nearly >= 0.9 * inside.rdp(alpha)


def test_a_curve_is_no_law():
    curve = batch_part((Gaussian(1.0) + Laplace(1.0)).parts, 0.1).renyi.forward
    for ask in (lambda: curve.ratios(1.0, 0.1, 3), lambda: curve.profile(0.0)):
        with pytest.raises(TypeError, match="Rényi curve"):
            ask()


@pytest.mark.parametrize("c", [50.0, 300.0])
@pytest.mark.parametrize("delta", [0.0, 0.2])
def test_moments_that_are_too_large_for_numbers_are_bounded_by_their_logs(c, delta):
    event = ApproximateDP(20.0, delta)
    removed = PoissonSampled(event, 0.5).parts[0][0].forward
    truth = float(Mix.of([(removed, 1)]).log_mgf(np.float64(c)))
    assert truth > 700
    assert truth * (1 - 1e-12) <= float(curve_of(event, 0.5).log_mgf(np.array(c))) <= truth + 1
