"""Tails of the loss: the pair's own by chords of its profile, and bounds for all that it dominates (THEORY 1.6)."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import binom, norm

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    theorems,
)
from sitr.errors import InvalidArgument, NoSuchGuarantee
from tests.accounting.helpers import (
    brute_delta,
    composed_outcomes,
    discrete_laplace_outcomes,
    holds,
    law,
    logs,
    mixed_events,
    probabilities,
    rates,
    response_outcomes,
    sampled,
)

SGD = PoissonSampled(Gaussian(1.1), 256 / 60000) * 14062
ORDERS = ("forward", "backward")


def tail(p, q, x):
    """P[ln P/Q > x], from the outcomes; a ratio within rounding of e^x is counted in neither of the tests' truths."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    return math.fsum(p[p > math.exp(x) * q])


# --- The pair's own tail ----------------------------------------------------------------------------------------------


@law(60)
@given(m=logs(1e-3, 30), t=st.floats(-3, 12))
def test_the_tail_of_gaussian_noise_is_that_of_a_normal_law(m, t):
    x = m * m / 2 + t * m
    if x < 0:
        return
    with mp.workdps(40):
        truth = float(mpmath.ncdf(-(mpf(x) - mpf(m) ** 2 / 2) / mpf(m)))
    bracket = Gaussian(1 / m).loss_tail(x)
    assert holds(bracket, truth, 1e-11)
    assert bracket.upper - bracket.lower <= 1e-5 * bracket.upper + 1e-299


@law(40)
@given(e0=logs(1e-3, 20), share=st.floats(0, 0.999))
def test_the_tail_of_laplace_noise_is_in_closed_form(e0, share):
    bracket, x = Laplace(1 / e0).loss_tail(share * e0), share * e0
    assert holds(bracket, 1 - math.exp((x - e0) / 2) / 2, 1e-12)
    assert bracket.upper - bracket.lower <= 1e-5 * bracket.upper


@law(40)
@given(p=st.floats(0.51, 0.95), count=st.integers(1, 300), share=st.floats(0, 1))
def test_the_tail_of_many_responses_is_binomial(p, count, share):
    step = math.log(p / (1 - p))
    x = (math.floor(share * count) + 0.5) * step  # between two losses, which are two steps apart
    least = (x / step + count) / 2
    truth = binom.sf(math.floor(least), count, p)
    if abs(least - round(least)) < 1e-6:
        return
    for order in ORDERS:
        bracket = (RandomizedResponse(p) * count).loss_tail(x, order=order)
        assert holds(bracket, truth, 1e-9)
        assert bracket.upper - bracket.lower <= 1e-6 * bracket.upper + 1e-299


def test_on_a_loss_itself_the_bracket_holds_what_is_above_and_what_is_at_it():
    """Whether a rounded x lies on the loss cannot be told: so the bracket is [P[L > x], P[L ≥ x]]."""
    p, count = 0.6, 50
    bracket = (RandomizedResponse(p) * count).loss_tail(10 * math.log(p / (1 - p)), order="forward")
    assert math.isclose(bracket.lower, binom.sf(30, count, p), rel_tol=1e-9)
    assert math.isclose(bracket.upper, binom.sf(29, count, p), rel_tol=1e-9)


@law(40)
@given(
    weights=st.lists(st.tuples(logs(0.01, 1), logs(0.01, 1)), min_size=2, max_size=5),
    lost=st.tuples(st.sampled_from([0.0, 0.01, 0.1]), st.sampled_from([0.0, 0.02])),
    times=st.integers(1, 3),
    x=st.floats(0, 3),
)
def test_both_orders_of_any_table_are_summed_right(weights, lost, times, x):
    """Outcomes of P alone have an infinite loss in one order, outcomes of Q alone in the other."""
    p, q = (np.array(side) for side in zip(*weights, strict=True))
    p, q = p / p.sum() * (1 - lost[0]), q / q.sum() * (1 - lost[1])
    event = LossDistribution(np.log(p / q).tolist(), p.tolist(), lost[0]) * times
    p, q = composed_outcomes([*p, lost[0], 0.0], [*q, 0.0, lost[1]], times)
    for order, (one, other) in zip(ORDERS, ((p, q), (q, p)), strict=True):
        bracket = event.loss_tail(x, order=order)
        near = np.abs(np.log(np.maximum(one, 1e-300) / np.maximum(other, 1e-300)) - x) < 1e-9
        if not near.any():  # masses that add up to one but for their last digit are all that is told
            assert bracket.lower - 1e-13 <= tail(one, other, x) <= bracket.upper + 1e-13


@law(15)
@given(p=probabilities, rate=rates, times=st.integers(1, 6), x=st.floats(0.01, 1))
def test_both_orders_of_sampled_responses_are_those_of_their_outcomes(p, rate, times, x):
    event = PoissonSampled(RandomizedResponse(p), rate) * times
    first, second = composed_outcomes(*sampled(*response_outcomes(p, 2), rate), times)
    with np.errstate(divide="ignore"):
        ratios = np.log(first / second)
    if np.min(np.abs(np.abs(ratios) - x)) < 1e-9:
        return
    assert holds(event.loss_tail(x, order="forward"), tail(first, second, x), 1e-9)
    assert holds(event.loss_tail(x, order="backward"), tail(second, first, x), 1e-9)


def test_the_tail_of_training_is_that_of_another_route():
    """Three steps, outcome by outcome: sums over two of them, and a normal tail for the third."""
    sigma, q, count, x = 1.0, 0.05, 3, 0.1
    event = PoissonSampled(Gaussian(sigma), q) * count
    grid = np.linspace(-12, 14, 1301)
    weights = np.full(grid.size, grid[1] - grid[0])

    def loss(o):
        return np.log1p(q * np.expm1((2 * o - 1) / (2 * sigma**2)))

    def truth(order):
        masses = ((1 - q) * norm.pdf(grid) + q * norm.pdf(grid, 1) if order == "forward" else norm.pdf(grid)) * weights
        sign = 1 if order == "forward" else -1
        pairs = sign * loss(grid)[:, None] + sign * loss(grid)
        left = sign * (x - pairs)  # the third loss is above (or below) this, and it grows with the outcome
        with np.errstate(invalid="ignore", divide="ignore"):
            edge = 0.5 + sigma**2 * np.log(np.expm1(left) / q + 1)
        edge = np.where(np.isnan(edge), -np.inf, edge)
        if order == "forward":
            third = (1 - q) * norm.sf(edge) + q * norm.sf(edge, 1)
        else:
            third = norm.cdf(edge)
        return float(masses @ third @ masses)

    for order in ORDERS:
        bracket = event.loss_tail(x, order=order)
        assert holds(bracket, truth(order), 1e-7)
        assert bracket.upper - bracket.lower < 2e-3 * bracket.upper


# --- For every pair of neighbours -------------------------------------------------------------------------------------


@law(30)
@given(scale=logs(0.3, 5), shift=st.integers(1, 5), share=st.floats(0, 0.99))
def test_no_split_of_an_integer_shift_has_a_larger_tail_than_one_coordinate(scale, shift, share):
    """The vectors of DiscreteLaplace: every way to move up to three coordinates by `sensitivity` in all."""
    event, x = DiscreteLaplace(scale, shift), share * shift / scale
    bracket = event.loss_tail(x)
    for moves in itertools.combinations_with_replacement(range(shift + 1), 3):
        if sum(moves) > shift:
            continue
        p, q = np.ones(1), np.ones(1)
        for move in moves:
            outcomes = discrete_laplace_outcomes(scale, move)
            merged = [
                np.bincount(
                    np.unique(np.round(np.log(outcomes[0] / outcomes[1]) * scale), return_inverse=True)[1], side
                )
                for side in outcomes
            ]
            p, q = np.outer(p, merged[0]).ravel(), np.outer(q, merged[1]).ravel()
        assert tail(p, q, x + 1e-9) <= bracket.upper * (1 + 1e-9)


@law(30)
@given(scale=logs(0.3, 5), shift=st.integers(1, 6), x=st.floats(0, 5))
def test_discrete_gaussian_noise_on_closer_numbers_has_a_smaller_tail(scale, shift, x):
    found = [DiscreteGaussian(scale, moved).loss_tail(x) for moved in range(1, shift + 1)]
    assert all(one.lower <= other.upper for one, other in itertools.pairwise(found))


@law(20)
@given(spread=st.lists(logs(0.05, 1), min_size=3, max_size=6), share=st.floats(0, 0.95))
def test_no_vector_with_laplace_noise_has_a_larger_tail_than_one_coordinate(spread, share):
    """P[Σ min(o⁺, s) < u], u = (Σs - x)/2, from below: every term is rounded down to a step, and u by as many."""
    moves, u, step = np.array(spread) / sum(spread), (1 - share) / 2, 1e-3
    sums = np.ones(1)
    for move in moves:
        edges = np.arange(int(move / step) + 1) * step
        masses = np.append(np.exp(-edges[:-1]) - np.exp(-edges[1:]), math.exp(-edges[-1])) / 2
        masses[0] += 0.5
        sums = np.convolve(sums, masses)
    least = math.fsum(sums[: max(math.ceil(u / step) - len(spread) - 1, 0)])
    assert least <= Laplace(1.0).loss_tail(share).upper


def stopped(p, steps, x):
    """The largest P[L > x] of an analyst who may leave the data of two neighbours equal at any step."""
    step, value = math.log(p / (1 - p)), {}

    def best(left, place):
        if left == 0:
            return float(place * step > x)
        if (left, place) not in value:
            go = p * best(left - 1, place + 1) + (1 - p) * best(left - 1, place - 1)
            value[left, place] = max(go, best(left - 1, place))
        return value[left, place]

    return best(steps, 0)


@law(30)
@given(p=st.floats(0.52, 0.9), steps=st.integers(1, 25), share=st.floats(0.01, 0.99))
def test_who_stops_at_a_large_loss_has_no_larger_tail(p, steps, share):
    x = share * steps * math.log(p / (1 - p))
    assert stopped(p, steps, x) <= (RandomizedResponse(p) * steps).loss_tail(x).upper * (1 + 1e-12)


def test_stopping_gains_something_over_the_pair():
    event = RandomizedResponse(0.75) * 2
    assert stopped(0.75, 2, 0.5) == 0.75
    assert math.isclose(event.loss_tail(0.5, order="forward").upper, 0.5625)
    assert event.loss_tail(0.5).lower <= 0.5625 < 0.75 <= event.loss_tail(0.5).upper


@law(20)
@given(m=logs(0.1, 5), t=st.floats(0, 10))
def test_many_gaussian_steps_may_be_stopped(m, t):
    """A Brownian motion that is stopped at x: by reflection 2 P[L > x] - δ(x)."""
    x = m * m / 2 + t * m
    event = Gaussian(100 / m) * 10_000
    own, delta = event.loss_tail(x, order="forward"), event.delta(x)
    assert 2 * own.lower - delta.upper <= event.loss_tail(x).upper


@law(40)
@given(
    rows=st.lists(st.tuples(logs(0.01, 1), logs(0.01, 1)), min_size=3, max_size=6),
    merged=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    x=st.floats(0, 2),
)
def test_what_was_merged_is_within_the_bound(rows, merged, x):
    """Post-processing is dominated; its tail may be larger than that of the pair, and stays under the upper end."""
    p, q = (np.array(side) / sum(side) for side in zip(*rows, strict=True))
    event = LossDistribution(np.log(p / q).tolist(), (p / p.sum()).tolist())
    places = np.array(merged[: p.size])
    few = [np.bincount(places, side, minlength=3) for side in (p, q)]
    upper = event.loss_tail(x).upper * (1 + 1e-9)
    assert tail(*few, x) <= upper
    assert tail(*few[::-1], x) <= upper


@law(30)
@given(epsilon=logs(0.1, 5), delta=st.sampled_from([0.0, 1e-6, 1e-2]), share=st.floats(0.01, 0.95))
def test_a_black_box_attains_the_upper_end(epsilon, delta, share):
    """The pair with profile max(1 - y, m(1 - y e^{-x})): it satisfies the claim, and its tail is m."""
    x = share * epsilon
    m = ApproximateDP(epsilon, delta).loss_tail(x).upper
    if m == 1:
        return
    low = (m - 1) / (m * math.exp(-x) - 1)  # where both lines meet: the other loss is ln of it
    p, q = np.array([1 - m, m]), np.array([(1 - m) / low, m * math.exp(-x)])
    assert math.isclose(q.sum(), 1, rel_tol=1e-9)
    for e in np.linspace(0, 1.2 * epsilon, 25):
        assert brute_delta(p, q, e) <= ApproximateDP(epsilon, delta).delta(e).upper * (1 + 1e-4) + 1e-12


def test_an_excluded_event_may_overlap_with_outcomes_that_are_harmless():
    """(0, δ)-DP: P has δ more on [0, a], so that ln P/Q is just above x there: more than δ."""
    delta, x = 1e-3, 0.5
    a = delta / (math.exp(x) - 1 + delta) * (1 - 1e-9)
    p, q = np.array([delta + (1 - delta) * a, (1 - delta) * (1 - a)]), np.array([a, 1 - a])
    assert brute_delta(p, q, 0.0) <= delta
    assert tail(p, q, x) > 1.5 * delta
    for event in (ApproximateDP(0.0, delta), ZeroConcentrated(0.0, 0.0, delta), Renyi([(2, 0.0)], delta=delta)):
        assert tail(p, q, x) <= event.loss_tail(x).upper * (1 + 1e-9)


# --- Beside other bounds ----------------------------------------------------------------------------------------------


@law(60)
@given(event=mixed_events, x=logs(1e-3, 10))
def test_a_tail_lies_between_delta_and_every_bound(event, x):
    bracket = event.loss_tail(x)
    assert 0 <= bracket.lower <= bracket.upper <= 1
    assert event.delta(x).lower <= bracket.upper
    if event.infinite_mass == 0:
        at_the_largest = abs(event.rdp(math.inf) - x) < 1e-6 * x  # there nothing but rounding is compared
        assert at_the_largest or bracket.upper <= theorems.loss_tail_renyi(event, x) * (1 + 1e-3) + 1e-299
    else:
        assert bracket.lower >= event.infinite_mass * (1 - 1e-9) or bracket.method == "Rényi conversion"


@pytest.mark.parametrize("event", [Gaussian(10) * 100, Laplace(10) * 100, RandomizedResponse(0.55) * 100])
@pytest.mark.parametrize("t", [0.5, 1, 2, 4, 6])
def test_the_bound_of_seed_000_is_above_the_tail(event, t):
    claim = event.cdp()
    x = claim.mu + t * claim.tau
    seed = theorems.loss_tail_concentrated(event, x)
    assert math.isclose(seed, math.exp(-t * t / 2), rel_tol=1e-9)
    assert event.loss_tail(x).upper <= theorems.loss_tail_renyi(event, x) * (1 + 1e-6) <= seed * (1 + 2e-6)


def test_the_bound_of_seed_000_is_one_up_to_the_mean():
    assert theorems.loss_tail_concentrated(Gaussian(1), 0.5) == 1.0
    assert theorems.loss_tail_concentrated(Gaussian(1), 0.4) == 1.0
    assert theorems.loss_tail_concentrated(Concentrated(0.5, 0.0), 0.6) == 0.0


def test_infinite_losses_are_in_every_tail_and_have_no_bound_of_seed_000():
    event = ApproximateDP(0.1, 1e-4) * 10
    assert event.loss_tail(100.0).lower >= event.infinite_mass * (1 - 1e-12)
    assert event.loss_tail(100.0).upper <= event.infinite_mass * (1 + 1e-12)
    for theorem in (theorems.loss_tail_concentrated, theorems.loss_tail_renyi):
        with pytest.raises(NoSuchGuarantee):
            theorem(event, 1.0)


@law(25)
@given(event=mixed_events, xs=st.tuples(logs(1e-2, 5), logs(1e-2, 5)).map(sorted))
def test_a_tail_falls_with_x(event, xs):
    bracket = event.loss_tail(xs)
    assert bracket.lower[1] <= bracket.upper[0] * (1 + 1e-12)


@pytest.mark.parametrize("event", [PureDP(1.0), Laplace(1.0), RandomizedResponse(0.75), LossDistribution([0.0], [1.0])])
def test_nothing_is_above_the_largest_loss(event):
    x = event.pure()
    assert event.loss_tail(x).upper == event.loss_tail(x, order="forward").upper == event.loss_tail(2 * x).upper == 0


def test_a_tail_too_small_for_numbers_is_not_said_to_be_nothing():
    for event in (Gaussian(1), Gaussian(10) * 100, ZeroConcentrated(0.5), SGD):
        assert 0 < event.loss_tail(1000.0).upper <= 1e-290


# --- What is asked ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        ZeroConcentrated(0.5),
        Exponential(1.0),
        PoissonSampled(Laplace(1.0), 0.1),
        Gaussian(1.0) + Concentrated(0.5, 1.0),
    ],
)
def test_where_no_pair_is_known_no_order_is_told(event):
    assert event.loss_tail(2.0).upper < 1
    with pytest.raises(NoSuchGuarantee, match="no pair is known"):
        event.loss_tail(0.5, order="forward")


@pytest.mark.parametrize("x", [-1e-9, math.nan, math.inf, "1", None])
def test_a_bad_x_is_refused(x):
    for ask in (Gaussian(1).loss_tail, lambda x: theorems.loss_tail_renyi(Gaussian(1), x)):
        with pytest.raises(InvalidArgument):
            ask(x)


def test_a_bad_order_is_refused():
    with pytest.raises(InvalidArgument):
        Gaussian(1).loss_tail(1.0, order="both")


def test_groups_and_arrays_are_answered():
    bracket = Laplace(2.0).group(3).loss_tail([[0.5], [1.0]])
    assert bracket.upper.shape == (2, 1)
    assert holds(Laplace(2.0).group(3).loss_tail(1.0), 1 - math.exp((1.0 - 1.5) / 2) / 2, 1e-9)
    assert Guarantees([(0.5, 1e-3), (1.0, 1e-6)]).loss_tail(0.7).upper < 1.4e-2
    assert float(PureDP(math.log(3)).loss_tail(0.5)) > 0.75
