"""Closed forms: they hold the truth to 50 digits, are hardly wider than rounding, and stand where they apply alone."""

import math

import pytest
from mpmath import mp, mpf

from sitr.accounting import DiscreteGaussian, Exponential, Gaussian, Laplace, PoissonSampled, RandomizedResponse
from sitr.accounting.engines.closed import closed_form
from sitr.accounting.engines.mix import Mix
from sitr.accounting.losses.sampled import SampledGaussianLoss


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


@pytest.mark.parametrize(
    ("noise", "epsilon"), [(2.2e-4, 10_493_760.0), (2.19e-4, 10_584_041.0), (4.44e-4, 2_598_482.0), (50.0, 0.7)]
)
def test_both_ends_hold_the_truth_far_out_where_the_rounding_of_epsilon_is_magnified(noise, epsilon):
    found = form(Gaussian(noise))
    with mp.workdps(500):
        exact = gaussian_delta(1 / mp.sqrt(mpf(found.mix.m2)), epsilon)
        assert found.lower(epsilon) <= exact <= found.upper(epsilon)


def crossing(holds, low, high):
    """The first number from which on something holds, by bisection."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@pytest.mark.parametrize("event", [Gaussian(0.7), Gaussian(30.0), Laplace(0.7), PoissonSampled(Gaussian(1.0), 0.01)])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_both_ends_of_epsilon_are_nearly_as_narrow_as_the_bounds_on_delta_allow(event, delta):
    bounds = form(event)
    found = bounds.epsilon(delta)
    least = crossing(lambda epsilon: bounds.upper(epsilon) <= delta, 0.0, 100.0)
    most = crossing(lambda epsilon: bounds.lower(epsilon) < delta, 0.0, 100.0)
    assert bounds.lower(found.lower) >= delta >= bounds.upper(found.upper)
    assert found.upper - found.lower <= 1.1 * (least - most) + 1e-13 * least


@pytest.mark.parametrize("share", [10 ** (power / 4) for power in range(-46, -30)])
def test_epsilon_is_found_where_delta_hardly_falls(share):
    """Close to 0 neighbouring values of δ are the same number, and say nothing of a slope."""
    bounds = form(Gaussian(1.0))
    delta = math.exp(bounds.log_delta(0.0)) * (1 - share)
    found = bounds.epsilon(delta)
    with mp.workdps(50):
        assert gaussian_delta(1.0, found.upper) <= delta <= gaussian_delta(1.0, found.lower)
    assert found.upper <= 2 * share


def test_the_law_of_a_group_is_held_as_far_as_its_epsilon_is_blurred():
    bounds = form(PoissonSampled(Gaussian(5.0), 1e-4).group(100))
    ((loss, _),) = bounds.mix.parts
    for epsilon in (0.5, 2.0):
        assert bounds.upper(epsilon) >= loss.profile(epsilon - loss.blur(epsilon))
        assert bounds.lower(epsilon) <= loss.profile(epsilon + loss.blur(epsilon))


def sampled_delta(loss, epsilon):
    """δ of a sampled group in one order: two probabilities at the place where the loss is ε, which is bisected for."""
    sigma, q, sign = mpf(loss.sigma), mpf(loss.sampling_prob), 1 if loss.removes else -1
    weights = [mp.binomial(loss.steps, j) * q**j * (1 - q) ** (loss.steps - j) for j in range(loss.steps + 1)]

    def log_ratio(place):  # in units of the variance, from the middle of the first two normals
        moves = (mp.exp(j * place - mpf(j * (j - 1)) / (2 * sigma**2)) for j in range(loss.steps + 1))
        return mp.log(mp.fsum(w * move for w, move in zip(weights, moves, strict=True)))

    low, high = mpf(-1000), mpf(1000)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if log_ratio(middle) < sign * mpf(epsilon) else (low, middle)
    x = low * sigma**2 + mpf(1) / 2
    plain = mp.ncdf(-sign * x / sigma)
    mixed = mp.fsum(w * mp.ncdf(sign * (j - x) / sigma) for j, w in enumerate(weights))
    return mixed - mp.exp(epsilon) * plain if loss.removes else plain - mp.exp(epsilon) * mixed


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.01), (0.01, 0.3), (1e-4, 1e-3), (40.0, 0.97), (3.0, 1e-7)])
@pytest.mark.parametrize("size", [1, 2, 20])
@pytest.mark.parametrize("share", [1e-6, 0.4, 0.999])
def test_both_orders_of_a_sampled_group_are_closed_forms(sigma, q, size, share):
    for removes in (True, False):
        loss = SampledGaussianLoss(sigma, q, removes, size)
        epsilon, found = share * min(loss.largest, 20.0), closed_form(Mix.of([(loss, 1)]))
        with mp.workdps(60):
            exact = sampled_delta(loss, epsilon)
            assert found.lower(epsilon) <= exact <= max(found.upper(epsilon), 1e-300)  # less is not looked at
        if exact > 1e-300:
            assert found.upper(epsilon) - found.lower(epsilon) <= 1e-6 * exact


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
        (DiscreteGaussian(400.0), False),
        (DiscreteGaussian(400.0, 20) * 9 + Gaussian(3.0), False),
    ],
    ids=repr,
)
def test_gaussians_and_single_events_have_one(event, closed):
    """A discrete Gaussian, however fine, has another curve than a continuous one."""
    assert (form(event) is not None) == closed
