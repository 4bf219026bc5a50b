"""What sampling and groups make of the parts of an event."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mp, mpf

from sitr.accounting import (
    ApproximateDP,
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
)
from sitr.accounting.engines.mix import Mix
from sitr.accounting.losses import pairs
from sitr.accounting.parts import _block_above, _profile_pair, _ratio
from sitr.errors import NoSuchGuarantee
from tests.accounting.helpers import (
    DIGITS,
    brute_delta,
    composed_outcomes,
    exact_delta,
    holds,
    hull_outcomes,
    law,
    logs,
    rates,
    response_outcomes,
    sampled,
)


def test_sampling_every_one_changes_nothing():
    for event in (Gaussian(2.0), Laplace(2.0), RandomizedResponse(0.7), ApproximateDP(1.0, 1e-5)):
        assert PoissonSampled(event, 1.0).epsilon(1e-6) == event.epsilon(1e-6)


def test_gaussians_on_one_sample_are_one_gaussian():
    once = PoissonSampled(Gaussian(3.0) * 9, 0.1).epsilon(1e-6)
    assert once.upper == pytest.approx(PoissonSampled(Gaussian(1.0), 0.1).epsilon(1e-6).upper, rel=1e-9)


def test_a_sample_of_a_sample_is_one_sample():
    inside = Laplace(2.0) * 3 + Gaussian(2.0)
    twice, once = PoissonSampled(PoissonSampled(inside, 0.5), 0.25), PoissonSampled(inside, 0.125)
    assert twice.parts == once.parts or twice.epsilon(1e-6) == once.epsilon(1e-6)
    assert twice.delta(0.1) == once.delta(0.1)


def test_the_profile_of_bounded_losses_ends_at_the_largest():
    pair = _profile_pair(((pairs.laplace_pair(0.7), 3),))
    assert pair.forward.infinite_mass == 0
    assert pair.forward.largest == pytest.approx(2.1, rel=1e-12)


def test_the_profile_of_a_loss_that_only_one_order_bounds_has_no_end():
    """Far out δ is less than any double: there it is not said to be 0."""
    part = pairs.sampled_gaussian_pair(50.0, 0.5)
    assert part.backward.largest < part.forward.largest == math.inf
    pair = _profile_pair(((part, 1000),))
    assert pair.forward.infinite_mass > 0
    assert pair.backward.infinite_mass > 0


def test_a_profile_is_smoothed_by_no_more_than_is_aimed_at():
    event = Laplace(2.0) * 3
    pair = _profile_pair(event.parts)
    for share in (0.1, 0.5, 1.0, 3.0):
        epsilon = share * event.expected_loss()
        assert pair.forward.profile(np.float64(epsilon)) <= event.delta(epsilon).upper * (1 + 1e-5)


@pytest.mark.parametrize("event", [Laplace(1.0) * 5 + Gaussian(2.0), Gaussian(0.3) + RandomizedResponse(0.6) * 3])
def test_the_hull_of_a_profile_costs_hardly_more_than_it(event):
    pair = _profile_pair(event.parts)
    for share in (0.1, 0.3, 0.5, 1.0):
        epsilon = share * event.expected_loss()
        truth = event.delta(epsilon)
        found = pair.forward.profile(np.float64(epsilon))
        assert truth.lower <= found <= truth.upper * (1 + 1e-4)


def test_where_no_line_can_be_paid_for_chernoff_bounds_a_profile():
    mix = Mix.of([(pairs.laplace_pair(0.5).forward, 7)])
    epsilons = np.linspace(0.5, 3.0, 5)
    poor, rich = (_block_above(mix, epsilons, 0.1, share) for share in (1.0, 1e7))
    assert (rich <= poor).all()
    assert (rich < 0.9 * poor).any()


def test_a_group_of_several_guarantees_keeps_them_all():
    both = Guarantees([(0.5, 1e-3), (1.0, 1e-6)]).group(2)
    for epsilon, delta in ((0.5, 1e-3), (1.0, 1e-6)):
        grown = delta * math.expm1(2 * epsilon) / math.expm1(epsilon)
        assert both.delta(2 * epsilon).upper == pytest.approx(grown, rel=1e-9)


def test_two_responses_on_one_sample_are_held():
    p, q = sampled(*composed_outcomes(*response_outcomes(0.7, 2), 2), 0.2)
    event = PoissonSampled(RandomizedResponse(0.7) * 2, 0.2)
    for epsilon in (0.0, 0.1, 0.3):
        found, truth = event.delta(epsilon), brute_delta(p, q, epsilon)
        assert holds(found, truth, 1e-12)
        assert found.upper <= truth * 1.05 + 1e-6


@pytest.mark.parametrize("times", [1, 3])
def test_samples_of_a_single_event_are_its_own_law_and_no_hull(times):
    p, q = composed_outcomes(*sampled(*response_outcomes(0.7, 2), 0.2), times)
    event = PoissonSampled(RandomizedResponse(0.7), 0.2) * times
    for epsilon in (0.0, 0.05, 0.1):
        found, truth = event.delta(epsilon), brute_delta(p, q, epsilon)
        assert holds(found, truth, 1e-12)
        assert found.upper <= truth * (1 + 1e-9)
        assert found.lower >= truth * (1 - 1e-9)


@pytest.mark.parametrize(
    ("event", "leads"),
    [
        (ZeroConcentrated(0.5), False),
        (Renyi([(2, 0.1), (8, 0.5)]) + Laplace(2.0), False),
        (PoissonSampled(RandomizedResponse(0.9), 0.1) * 2, False),
        (ApproximateDP(0.5, 1e-6) * 2, False),
        (DiscreteLaplace(1.0) * 2, True),
    ],
    ids=repr,
)
def test_one_order_stands_for_both_only_where_that_is_proved(event, leads):
    """A claim says nothing of the orders of what satisfies it; then both are charged, and the larger is the answer."""
    sample = PoissonSampled(event, 0.1)
    ((part, _),) = sample.curve.parts
    curves = part.renyi
    assert curves.leads == leads
    if not leads:
        orders = [float(order.log_mgf(1.0)) for order in (curves.forward, curves.backward)]
        assert sample.rdp(2, delta_part=True) >= max(orders)


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_a_sampled_composition_costs_less_than_without_sampling(rate):
    inside = Gaussian(2.0) + Laplace(3.0) * 2
    assert PoissonSampled(inside, rate).epsilon(1e-4).lower <= inside.epsilon(1e-4).upper
    assert PoissonSampled(inside, rate).epsilon(1e-4).upper >= PoissonSampled(Gaussian(2.0), rate).epsilon(1e-4).lower


@pytest.mark.parametrize("first", [Gaussian(5.0), Laplace(5.0), RandomizedResponse(0.55), ZeroConcentrated(0.02)])
@pytest.mark.parametrize("other", [Gaussian(1.0), Laplace(1.0), RandomizedResponse(0.8)])
def test_all_that_is_released_of_a_sample_is_charged(first, other):
    both, alone = PoissonSampled(first + other, 0.1), PoissonSampled(other, 0.1)
    for epsilon in (0.0, 0.05):
        assert both.delta(epsilon).upper >= alone.delta(epsilon).lower
    assert both.rdp(2) >= alone.rdp(2) * (1 - 1e-9)


@pytest.mark.parametrize("rho", [0.5, 2.0])
def test_a_sampled_claim_costs_hardly_more_than_its_profile_sampled(rho):
    """δ(ln(1 + q(e^ε - 1))) of the sample is q δ(ε) (THEORY 2.7), and that of the claim is known beside."""
    claim, epsilon = ZeroConcentrated(rho), 4 * rho
    found = PoissonSampled(claim, 0.1).delta(math.log1p(0.1 * math.expm1(epsilon)))
    assert found.upper <= 0.1 * claim.delta(epsilon).upper * 1.02


def test_a_sampled_claim_costs_at_least_the_mechanism_that_meets_it():
    for claim in (ZeroConcentrated(0.5), Renyi(formula=Gaussian(1.0)), Gaussian(1.0).cdp()):
        found = PoissonSampled(claim, 0.1).epsilon(1e-5)
        assert found.upper >= PoissonSampled(Gaussian(1.0), 0.1).epsilon(1e-5).lower


def test_a_sampled_claim_of_nothing_costs_nothing():
    assert PoissonSampled(ZeroConcentrated(0), 0.1).epsilon(1e-6).upper <= 1e-6
    assert PoissonSampled(PureDP(0) * 2, 0.1).epsilon(1e-6).upper == 0


FAILS = [  # each loses nothing, or everything with probability 0.01
    ApproximateDP(0.0, 0.01),
    Guarantees([(0.0, 0.01)]),
    LossDistribution([0.0], [0.99], 0.01),
    Renyi([(2.0, 0.0)], delta=0.01),
    ZeroConcentrated(0.0, 0.0, 0.01),
]


@pytest.mark.parametrize("claim", FAILS, ids=repr)
def test_a_sampled_composition_without_finite_loss_keeps_its_infinite_mass(claim):
    fails = 1 - (1 - 0.1 * (1 - 0.99**10)) ** 10
    event = PoissonSampled(claim * 10, 0.1) * 10
    for epsilon in (0.0, 1.0, 30.0):
        assert holds(event.delta(epsilon), fails, 1e-13)
    assert event.epsilon(fails * 0.999).upper == math.inf
    assert event.tradeoff(0.0).upper <= 1 - fails + 1e-12


def test_of_two_orders_that_hardly_meet_the_larger_infinite_mass_is_kept():
    """Of five tables one fails: with the person but for a chance of 1e-20, without in two cases of three."""
    table = LossDistribution([-9.0], [1e-4], 1 - 1e-4)
    assert Mix.of([(table.parts[0][0].backward, 5)]).infinite_mass < 0.66
    assert PoissonSampled(table * 5, 0.5).delta(0.0).upper >= 0.5


@pytest.mark.parametrize("claim", FAILS, ids=repr)
@pytest.mark.parametrize("other", [PureDP(0.5), ApproximateDP(0.0, 0.02), ZeroConcentrated(0.3)], ids=repr)
def test_infinite_mass_survives_beside_other_losses(claim, other):
    rest = 0.98 if isinstance(other, ApproximateDP) else 1.0
    least = 0.1 * (1 - rest * 0.99**3)
    event = PoissonSampled(claim * 3 + other, 0.1)
    assert event.delta(0.2).upper >= least * (1 - 1e-13)
    assert event.epsilon(least * 0.999).upper == math.inf


@pytest.mark.parametrize("claim", [Renyi([(1.0, 0.01)]), ZeroConcentrated(700.0), Renyi([(1.0, 0.01)]) + Laplace(1.0)])
def test_a_sampled_claim_too_weak_to_promise_anything_may_fail_whenever_it_is_sampled(claim):
    event = PoissonSampled(claim, 0.5)
    assert event.delta(1.0).upper == pytest.approx(0.5, rel=1e-9)
    assert event.epsilon(1e-6).upper > 800
    assert event.epsilon(0.6).upper == 0
    assert (event * 2).delta(1.0).upper == pytest.approx(0.75, rel=1e-9)


@pytest.mark.parametrize("rho", [12.0, 30.0, 100.0, 620.0])
def test_a_weak_sampled_claim_costs_what_it_says(rho):
    event = PoissonSampled(ZeroConcentrated(rho), 0.5)
    attained = PoissonSampled(Gaussian(math.sqrt(0.5 / rho)), 0.5)
    unsampled = ZeroConcentrated(rho).epsilon(1e-6)
    found = event.epsilon(1e-6)
    assert attained.epsilon(1e-6).lower <= found.upper <= unsampled.upper
    assert holds(event.delta(1.0), attained.delta(1.0).lower, 1e-9) or event.delta(1.0).upper <= 0.5 * (1 + 1e-9)


@law(15)
@given(
    st.lists(st.tuples(st.floats(0, 40), logs(1e-12, 0.99)), min_size=1, max_size=3),
    rates,
    st.integers(1, 2),
    st.floats(0, 3),
)
def test_sampled_guarantees_are_held_by_their_hull(points, rate, times, epsilon):
    with mp.workdps(DIGITS):
        p, q = composed_outcomes(*hull_outcomes(points), times)
        truth = exact_delta((1 - mpf(rate)) * q + mpf(rate) * p, q, epsilon)
    assert holds(PoissonSampled(Guarantees(points) * times, rate).delta(epsilon), truth)


@pytest.mark.parametrize(
    ("event", "delta"),
    [(PoissonSampled(Laplace(1.0) * 50, 0.01) * 100, 1e-6), (PoissonSampled(PureDP(15.0) * 2, 0.6) * 2, 1e-6)],
)
def test_large_losses_on_one_sample_are_answered(event, delta):
    found = event.epsilon(delta)
    assert 0 < found.lower <= found.upper < 1.01 * found.lower


def test_a_pure_group_has_the_multiple():
    for event in (PureDP(0.5), Laplace(2.0), DiscreteLaplace(2.0), RandomizedResponse(0.7)):
        assert event.group(3).pure() == pytest.approx(3 * event.pure(), rel=1e-12)


def test_a_group_whose_loss_is_too_large_for_a_hull_keeps_it():
    for loss in (200.0, 299.0, 301.0, 400.0):
        assert LossDistribution([-loss, loss], [math.exp(-loss), 1.0]).group(2).pure() == pytest.approx(
            2 * loss, rel=1e-12
        )


def test_the_growth_of_a_group_is_continuous_at_0():
    near, at = _ratio(np.array([1e-12, 0.0]))
    assert near == pytest.approx(at, rel=1e-11)


@pytest.mark.parametrize("event", [RandomizedResponse(0.7), ApproximateDP(1.0, 1e-5), LossDistribution([0.5], [1.0])])
def test_a_group_is_not_said_to_cost_more_than_a_mechanism_may_that_one_person_alone_moves(event):
    """The hull of a group is a bound that the mechanism need not attain; one member of it moves what is released."""
    for size in (2, 5):
        found = event.group(size).delta(0.3)
        assert found.lower <= event.delta(0.3).upper * (1 + 1e-9)
        assert found.upper >= event.delta(0.3).lower


def test_the_group_of_a_zcdp_claim_follows_its_theorem():
    assert ZeroConcentrated(0.1).group(4).rdp(3) == pytest.approx(1.6 * 3)
    assert ZeroConcentrated(0.1, 0.3).group(2).rdp(3) == pytest.approx(0.4 * 3 + 2 * 1.5 * 0.3)


def test_the_group_of_a_table_of_orders_halves_the_orders():
    pair = Renyi([(8, 0.1)]).group(2)
    assert pair.rdp(4) == pytest.approx(0.3)


def test_the_group_of_a_table_holds_the_mechanism():
    event = Gaussian(5.0)
    table = Renyi([(a, event.rdp(a)) for a in (4, 8, 16, 64, 256)])
    for size in (2, 3, 4):
        assert table.group(size).epsilon(1e-5).upper >= event.group(size).epsilon(1e-5).lower


def test_a_sampled_group_grows_with_its_size():
    event = PoissonSampled(Gaussian(1.0), 0.05) * 10
    costs = [event.group(size).epsilon(1e-5) for size in (1, 2, 4)]
    assert costs[0].upper < costs[1].lower < costs[1].upper < costs[2].lower


@pytest.mark.parametrize(
    "event", [ZeroConcentrated(0.1, delta=1e-6), Renyi([(2, 0.1)], delta=1e-6), Renyi(formula=Gaussian(1.0))], ids=repr
)
def test_a_group_that_is_not_proved_is_refused(event):
    with pytest.raises(NoSuchGuarantee):
        event.group(2)


def test_a_very_large_sampled_group_is_refused():
    with pytest.raises(NoSuchGuarantee):
        PoissonSampled(Gaussian(1.0), 0.1).group(10**6)


# Attacks that once succeeded: sampled groups whose ratio lost its middle terms, and what lies near them.

GROUPS = [
    (0.11572157775836274, 0.01817697033945243, 20, 0.18417332436632675),
    (0.15, 0.5, 6, 780.5),
    (0.2, 0.05, 10, 900.0),
    (1.0, 0.5, 50, 300.0),
    (1.0, 1e-4, 100, 0.5),
    (30.0, 0.01, 5, 0.01),
]


def group_delta(sigma, q, size, epsilon):
    """δ of a sampled group by its crossing point and normal distribution functions, at 60 digits."""
    with mpmath.workdps(60):
        sigma, q = mpmath.mpf(sigma), mpmath.mpf(q)
        weights = [mpmath.binomial(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]

        def log_ratio(x):
            shifts = ((j * x - mpmath.mpf(j) ** 2 / 2) / sigma**2 for j in range(size + 1))
            return mpmath.log(mpmath.fsum(w * mpmath.exp(u) for w, u in zip(weights, shifts, strict=True)))

        low, high = mpmath.mpf(-2000), mpmath.mpf(2000)
        for _ in range(230):
            middle = (low + high) / 2
            low, high = (middle, high) if log_ratio(middle) < epsilon else (low, middle)
        mixture = mpmath.fsum(w * mpmath.ncdf((j - low) / sigma) for j, w in enumerate(weights))
        return mixture - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-low / sigma)


@pytest.mark.parametrize(("sigma", "q", "size", "epsilon"), GROUPS)
def test_a_sampled_group_has_the_profile_of_its_mixture(sigma, q, size, epsilon):
    bracket = PoissonSampled(Gaussian(sigma), q).group(size).delta(epsilon)
    truth = group_delta(sigma, q, size, epsilon)
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.width <= 1e-8 * float(truth)


def test_the_divergence_of_a_sampled_group_by_quadrature():
    sigma, q, size = 2.0, 0.9, 100
    with mpmath.workdps(30):
        weights = [mpmath.binomial(size, j) * mpmath.mpf(q) ** j * mpmath.mpf(1 - q) ** (size - j) for j in range(101)]

        def terms(x):
            shifts = [(j * x - mpmath.mpf(j) ** 2 / 2) / sigma**2 for j in range(101)]
            ratio = mpmath.fsum(w * mpmath.exp(u) for w, u in zip(weights, shifts, strict=True))
            return mpmath.npdf(x, 0, sigma) * ratio * mpmath.log(ratio)

        h = mpmath.mpf("0.25")
        mean = h * mpmath.fsum(terms(h * k) for k in range(-100, 600))
    assert PoissonSampled(Gaussian(sigma), q).group(size).expected_loss() == pytest.approx(float(mean), rel=1e-9)


def test_a_group_of_groups_is_one_group():
    once = PoissonSampled(Gaussian(1.0), 1e-15).group(4).delta(0.5)
    assert PoissonSampled(Gaussian(1.0), 1e-15).group(2).group(2).delta(0.5) == once


# Samples of large losses, and samples of samples, that hardly anyone is in.

BIG = mpmath.mp.clone()
BIG.dps = 800  # e^-1000, and differences from one


def profile_of_noise(m, epsilon):
    return BIG.ncdf(m / 2 - epsilon / m) - BIG.exp(epsilon) * BIG.ncdf(-m / 2 - epsilon / m)


def profile_of_pure(e0, epsilon):
    p = 1 / (1 + BIG.exp(-e0))
    return max(p - BIG.exp(epsilon) * (1 - p), 0) + max(1 - p - BIG.exp(epsilon) * p, 0)


def profile_of_selection(e0, epsilon):
    if abs(epsilon) > e0:
        return max(-BIG.expm1(epsilon), BIG.mpf(0))
    return (BIG.exp(e0 / 2) - BIG.exp(epsilon / 2)) ** 2 / BIG.expm1(e0)


FAR = {
    Gaussian: (profile_of_noise, 0.3, 100),
    PureDP: (profile_of_pure, 0.1, 1e3),
    Exponential: (profile_of_selection, 0.1, 1e3),
}


def truth_of_sample(profile, rate, epsilon):
    """The larger of both orders: q δ(ln(1 + (e^ε - 1)/q)), and its dual (THEORY 1.3, 2.7)."""

    def removed(e):
        return -BIG.expm1(e) if BIG.exp(e) <= 1 - rate else rate * profile(BIG.log1p(BIG.expm1(e) / rate))

    e = BIG.mpf(epsilon)
    return max(removed(e), 1 - BIG.exp(e) + BIG.exp(e) * removed(-e), BIG.mpf(0))


@law(150)
@given(
    st.sampled_from(list(FAR)),
    st.floats(0, 1),
    st.lists(st.one_of(logs(1e-15, 0.99), logs(1e-12, 0.1).map(lambda gap: 1 - gap)), min_size=1, max_size=3),
    st.one_of(logs(1e-3, 1e3), st.floats(500, 900)),
)
@example(Gaussian, 1.0, [1e-10], 690.0)  # was said to be 0
@example(PureDP, 1.0, [1e-15] * 21, 1e-3)
def test_samples_of_large_losses_are_held_by_their_brackets(kind, share, rates, epsilon):
    profile, low, high = FAR[kind]
    size = low * (high / low) ** share
    event = kind(1 / size) if kind is Gaussian else kind(size)
    size = 1 / BIG.mpf(1 / size) if kind is Gaussian else BIG.mpf(size)
    rate = BIG.mpf(1)
    for q in rates:
        event, rate = PoissonSampled(event, q), rate * BIG.mpf(q)
    nothing = BIG.mpf(10) ** -700
    found, truth = event.delta(epsilon), truth_of_sample(lambda e: profile(size, e), rate, epsilon)
    assert found.lower <= truth + nothing
    assert truth <= found.upper + nothing
    if 1e-250 < truth < 0.9:
        least = event.epsilon(float(truth) * 1.000001)
        assert truth_of_sample(lambda e: profile(size, e), rate, least.upper) <= float(truth) * 1.000001 + nothing


def test_what_a_chain_of_samples_hardly_costs_takes_nothing_from_other_costs():
    """Its largest loss was said to be negative, and was subtracted from the others."""
    event = Laplace(1 / 720)
    for _ in range(21):
        event = PoissonSampled(event, 1e-15)
    assert event.pure() >= 0.0049
    assert (event + PureDP(6.0)).pure() >= 6.0049
    assert event.epsilon(1e-320).upper >= 0


@pytest.mark.parametrize(("scale", "sensitivity"), [(1000.0, 10**7), (1e5, 10**9), (300.0, 10**6), (1e6, 10**10)])
def test_noise_that_is_moved_far_is_sampled_without_going_through_its_points(scale, sensitivity):
    event = PoissonSampled(DiscreteGaussian(scale, sensitivity), 0.1)
    rho = (sensitivity / scale) ** 2 / 2
    assert event.rdp(2) <= 2 * rho
    assert 0 < event.expected_loss() <= 1.01 * rho
    assert 0 <= event.delta(1.0).lower <= event.delta(1.0).upper <= 0.1
    assert (event * 3 + Gaussian(5.0)).epsilon(0.5).upper >= 0
    assert event.zcdp().rho == pytest.approx(rho)
