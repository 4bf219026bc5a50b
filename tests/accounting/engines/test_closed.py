"""Closed forms: they hold the truth to 50 digits, are hardly wider than rounding, and stand where they apply alone."""

import math

import pytest
from mpmath import mp, mpf

from sitr.accounting import Exponential, Gaussian, Laplace, RandomizedResponse
from sitr.accounting.engines.closed import closed_form
from sitr.accounting.engines.mix import Mix


def form(event):
    return closed_form(Mix.of((pair.forward, count) for pair, count in event.curve.parts))


def gaussian_delta(sigma, epsilon):
    m, e = 1 / mpf(sigma), mpf(epsilon)
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def laplace_delta(scale, epsilon):
    return max(-mp.expm1((mpf(epsilon) - 1 / mpf(scale)) / 2), mpf(0))


@pytest.mark.parametrize(("make", "truth"), [(Gaussian, gaussian_delta), (Laplace, laplace_delta)])
@pytest.mark.parametrize("noise", [0.05, 0.7, 3.0, 1000.0])
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 0.999999])
def test_both_ends_hold_the_truth_and_nothing_but_rounding_is_between(make, truth, noise, share):
    event, epsilon = make(noise), share / noise
    with mp.workdps(50):
        exact, found = truth(noise, epsilon), form(event)
        assert found.lower(epsilon) <= exact <= found.upper(epsilon)
        # Near its largest loss a law falls to nothing, and the rounding of ε is all there is.
        assert found.upper(epsilon) - found.lower(epsilon) <= exact * 1e-11 + 64 * 2.0**-52 / noise
    assert event.delta(epsilon).method == "closed form"


@pytest.mark.parametrize(("make", "truth"), [(Gaussian, gaussian_delta), (Laplace, laplace_delta)])
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.1])
def test_epsilon_is_where_the_truth_is_delta(make, truth, delta):
    found = form(make(0.7)).epsilon(delta)
    with mp.workdps(50):
        assert truth(0.7, found.upper) <= delta <= truth(0.7, found.lower)
    assert found.upper - found.lower <= 1e-9 * found.upper


def test_nothing_costs_nothing():
    nothing = closed_form(Mix(()))
    assert (nothing.lower(0.0), nothing.upper(0.0)) == (0.0, 0.0)


def test_a_delta_that_is_never_passed_costs_nothing():
    found = form(Gaussian(2.0)).epsilon(0.5)
    assert (found.lower, found.upper) == (0.0, 0.0)
    assert form(Laplace(2.0)).epsilon(-math.expm1(-0.25) * (1 + 1e-11)).upper == 0


@pytest.mark.parametrize(
    ("event", "closed"),
    [
        (Gaussian(2.0), True),
        (Gaussian(2.0) * 9 + Gaussian(3.0), True),
        (Laplace(2.0), True),
        (Exponential(1.0), True),
        (Laplace(2.0) * 2, False),
        (Laplace(2.0) + Exponential(1.0), False),
        (Laplace(2.0) + Gaussian(1.0), False),
        (RandomizedResponse(0.7) * 2, False),
    ],
    ids=repr,
)
def test_gaussians_and_single_events_have_one(event, closed):
    assert (form(event) is not None) == closed
