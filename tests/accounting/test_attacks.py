"""Cases in which a bracket once missed the truth, each with the truth by another route."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    RandomizedResponse,
    RDPFilter,
    Renyi,
    SampledWithoutReplacement,
    ZeroConcentrated,
    calibrate_noise,
    compose,
)
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.solve import delta_of
from sitr.accounting.losses.cuts import Gate
from sitr.accounting.losses.sampled import SampledGaussianLoss
from tests.accounting.helpers import exact_delta, hull_outcomes


def holds(bracket, truth):
    return bracket.lower <= truth <= bracket.upper


def sampled_profile(sigma, q, epsilon):
    """δ of one sampled Gaussian in the remove order (THEORY 2.7), for any real ε."""
    if epsilon <= mpmath.log(1 - mpmath.mpf(q)):
        return 1 - mpmath.exp(epsilon)
    m, inner = 1 / mpmath.mpf(sigma), mpmath.log(1 + (mpmath.exp(epsilon) - 1) / mpmath.mpf(q))
    return q * (mpmath.ncdf(m / 2 - inner / m) - mpmath.exp(inner) * mpmath.ncdf(-m / 2 - inner / m))


def other_profile(sigma, q, epsilon):
    """The same in the add order, by duality (THEORY 1.3)."""
    return 1 - mpmath.exp(epsilon) + mpmath.exp(epsilon) * sampled_profile(sigma, q, -epsilon)


@pytest.mark.parametrize(
    ("scale", "sensitivity", "sigma", "q", "epsilon"),
    [
        (301, 300, 0.7, 0.01, 5.482555380183442),
        (301, 300, 0.7, 0.01, 5.48089976931822),
        (301, 30, 0.8, 1e-3, 0.403886270570965),
    ],
)
def test_fine_discrete_noise_beside_rare_steps_stays_discrete(scale, sensitivity, sigma, q, epsilon):
    with mpmath.workdps(40):
        points = range(-15 * scale, 15 * scale + 1)
        weights = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * scale**2)) for x in points]
        losses = ((mpmath.mpf(sensitivity) ** 2 + 2 * x * sensitivity) / (2 * mpmath.mpf(scale) ** 2) for x in points)
        terms = (w * sampled_profile(sigma, q, epsilon - loss) for w, loss in zip(weights, losses, strict=True))
        truth = mpmath.fsum(terms) / mpmath.fsum(weights)
    event = DiscreteGaussian(scale, sensitivity) + PoissonSampled(Gaussian(sigma), q)
    assert holds(event.delta(epsilon), truth)


def response_delta(p, k, count, epsilon):
    """δ of repeated k-ary response at 60 digits: the losses +l, 0 and -l, convolved."""
    with mpmath.workdps(60):
        p, r = mpmath.mpf(p), (1 - mpmath.mpf(p)) / (k - 1)
        loss, law = mpmath.log(p / r), {0: mpmath.mpf(1)}
        for _ in range(count):
            following: dict = {}
            for at, mass in law.items():
                for move, chance in ((1, p), (-1, r), (0, (k - 2) * r)):
                    following[at + move] = following.get(at + move, mpmath.mpf(0)) + mass * chance
            law = following
        gains = (mass * (1 - mpmath.exp(epsilon - at * loss)) for at, mass in law.items() if at * loss > epsilon)
        return mpmath.fsum(gains)


@pytest.mark.parametrize(("p", "k", "count"), [(0.99, 2, 5), (0.9, 2, 20), (0.75, 2, 1), (0.8, 4, 7)])
@pytest.mark.parametrize("gap", [1e-14, 1e-13, 1e-12, 1e-9, 1e-6])
def test_delta_close_to_the_largest_loss(p, k, count, gap):
    event = RandomizedResponse(p, k) * count
    epsilon = event.pure() * (1 - gap)
    assert holds(event.delta(epsilon), response_delta(p, k, count, epsilon))


@pytest.mark.parametrize("gap", [1e-13, 1e-10, 1e-6])
def test_delta_of_laplace_close_to_the_largest_loss(gap):
    epsilon = 20 * (1 - gap)
    with mpmath.workdps(40):
        truth = 1 - mpmath.exp((mpmath.mpf(epsilon) - 1 / mpmath.mpf(0.05)) / 2)
    assert holds(Laplace(0.05).delta(epsilon), truth)


def test_delta_at_a_largest_loss_that_is_rounded_down():
    event = RandomizedResponse(p=0.55)
    assert holds(event.delta(event.pure()), response_delta(0.55, 2, 1, event.pure()))


@pytest.mark.parametrize(("sigma", "p"), [(1.0, 1e-30), (3.0, 1e-20), (30.0, 1e-20), (0.5, 1e-12)])
def test_bad_outcomes_of_tiny_probability(sigma, p):
    with mpmath.workdps(40):
        quantile = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - mpmath.log(mpmath.mpf(p)), -7)
        truth = mpmath.ncdf(quantile + 1 / mpmath.mpf(sigma))
    bracket = Gaussian(sigma).bad_outcome(p)
    assert holds(bracket, truth)
    assert bracket.width <= 1e-6 * bracket.upper


@pytest.mark.parametrize("mass", [0.1, 0.001])
def test_far_steps_beside_outcomes_that_only_one_side_has(mass):
    """The other law loses ln .9 wherever its loss is finite: then δ is the steps' own, at what is left of ε."""
    other = LossDistribution([math.log(1 - mass)], [1 - mass], infinite_mass=mass)
    event = PoissonSampled(Gaussian(0.5), 1e-4) + other
    with mpmath.workdps(40):
        left = sampled_profile(0.5, 1e-4, mpmath.mpf(0.1) - mpmath.log(1 - mpmath.mpf(mass)))
        truth = mass + (1 - mpmath.mpf(mass)) * left
    assert holds(event.delta(0.1), truth)


def test_a_coarse_discrete_laplace_whose_masses_underflow():
    with mpmath.workdps(40):
        r, size = mpmath.exp(-1), 10000
        atoms = [(size, 1 / (1 + r))] + [(size - 2 * j, (1 - r) * r**j / (1 + r)) for j in range(1, 60)]
        truth = mpmath.fsum(mass * (1 - mpmath.exp(9997 - loss)) for loss, mass in atoms if loss > 9997)
    assert holds(DiscreteLaplace(1, 10000).delta(9997), truth)


def test_a_composed_mass_at_infinity_is_not_taken_for_exact():
    event = ApproximateDP(1.0, 0.001) * 2
    with mpmath.workdps(40):
        mass = 1 - (1 - mpmath.mpf(0.001)) ** 2
    assert event.infinite_mass < mass  # rounded down: at this δ no ε holds
    assert math.isinf(event.epsilon(event.infinite_mass).upper)
    assert float(ApproximateDP(1.0, 0.001).epsilon(0.001)) == 1.0


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(RandomizedResponse(0.9) * 100, 0.1),
        PoissonSampled(PureDP(2.0) * 300, 0.1),
        PoissonSampled(Laplace(0.1) * 50, 0.1),
        PoissonSampled(PureDP(650.0) + PureDP(1.0), 0.1),
        PoissonSampled(Guarantees([(1.0, 1.0)]), 0.5),
    ],
    ids=str,
)
def test_samples_of_heavy_losses_answer(event):
    bracket = event.epsilon(0.6)
    assert 0 <= bracket.lower <= bracket.upper


def test_the_mean_of_added_people_counts_the_moved_normal():
    """The order in which a person is added has mean loss near q where the two normals hardly meet."""
    added = SampledGaussianLoss(0.06, 0.3, False)
    assert added.mean() == pytest.approx(-math.log(0.7), rel=1e-6)
    assert delta_of(Mix.of([(added, 1)]), 0.1).lower > 0


def test_cdp_of_a_sampled_composite_covers_its_whole_range():
    """The law made of points of the profile ends early; the range that τ rests on must not."""
    rare = PrivacyProfile([(0, 1e-20), (50, 0)])
    sampled = PoissonSampled(rare + rare, sampling_prob=0.5)
    claim = sampled.cdp()
    assert claim.tau >= sampled.pure() / 2
    for alpha in (1.5, 3.0, 20.0):
        assert sampled.rdp(alpha) <= claim.rdp(alpha) * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [2.0, 100.0, 1e4])
def test_a_filter_charges_tiny_sampled_failures(alpha):
    """The order that adds has E e^-L = 1 - qδ, and ln M(x) is at least x q δ: small, and not nothing."""
    event = PoissonSampled(ApproximateDP(0.01, 5e-6), sampling_prob=1e-9)
    assert RDPFilter(alpha, 1.0, 1e-3).cost(event) >= 5e-15 * (1 - 1e-6)


@pytest.mark.parametrize(
    ("sigma", "q", "level", "c"), [(0.05, 1e-3, 2.0, 300.0), (0.3, 1e-4, 1.0, 300.0), (1.0, 1e-4, 0.5, 1000.0)]
)
def test_gates_hold_at_steep_tilts_or_say_nothing(sigma, q, level, c):
    gate = Gate.steep(SampledGaussianLoss(sigma, q, True), level)
    x = np.linspace(gate.edge - 20 * sigma, gate.edge + 10 * gate.width, 400_001)
    logs = -(x**2) / (2 * sigma**2) + (1 + c) * np.log1p(q * np.expm1((x - 0.5) / sigma**2))
    logs -= np.exp((x - gate.edge) / gate.width) + math.log(sigma * math.sqrt(2 * math.pi) / (x[1] - x[0]))
    truth = float(np.max(logs)) + math.log(float(np.sum(np.exp(logs - np.max(logs)))))
    assert gate.log_passed(c) == pytest.approx(truth, abs=1e-9)
    try:
        _, line = gate.passed(c)
    except OverflowError:
        return
    shift = float(np.max(np.real(line)))
    assert shift + np.log(np.sum(np.exp(line - shift))) == pytest.approx(truth, abs=1e-8)


# What the accountant said where numbers end: each is a class of answers that were false, bare exceptions, or too slow.

WITHOUT_WIDTH = [
    ApproximateDP(1.0, 0.999),
    ApproximateDP(0.1, 0.01) * 3 + ApproximateDP(0.0, 0.0035731599124893413) * 3,
    PoissonSampled(ApproximateDP(3.0, 1e-6), 0.7637009951314895),
    PoissonSampled(PoissonSampled(ApproximateDP(1e-9, 1e-12) * 3, 0.01), 0.5),
]


@pytest.mark.parametrize("event", WITHOUT_WIDTH, ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 3.5])
def test_a_delta_that_is_nearly_all_infinite_mass_is_held_to_the_last_digit(event, epsilon):
    with mpmath.workdps(60):
        truth = exact_delta(*exact_outcomes(event), epsilon)
    assert holds(event.delta(epsilon), truth)


def exact_outcomes(event):
    """P and Q of a tree of (ε,δ) claims, at many digits."""
    if isinstance(event, PoissonSampled):
        p, q = exact_outcomes(event.event)
        rate = mpmath.mpf(event.sampling_prob)
        return (1 - rate) * q + rate * p, q
    if isinstance(event, ApproximateDP):
        return hull_outcomes([(event.at_epsilon, event.at_delta)])
    p, q = np.array([mpmath.mpf(1)]), np.array([mpmath.mpf(1)])
    for part, times in event.events:
        both = exact_outcomes(part)
        for _ in range(times):
            p, q = np.outer(p, both[0]).ravel(), np.outer(q, both[1]).ravel()
    return p, q


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (Gaussian(27.0) + ZeroConcentrated(0.0016895279621461682), 3.2),
        (Renyi([(1e6, 0.27)]), 0.3),
        (PoissonSampled(ZeroConcentrated(0.03), 0.002), 6.69),
    ],
    ids=str,
)
def test_a_delta_too_small_for_a_number_is_not_said_to_be_none(event, epsilon):
    assert event.delta(epsilon).upper > 0


def test_a_largest_loss_that_is_a_quotient_is_rounded_outwards():
    noise = 2.0482995094998557
    with mpmath.workdps(40):
        assert Laplace(noise).epsilon(0.0).upper >= 1 / mpmath.mpf(noise) >= Laplace(noise).epsilon(0.0).lower
    assert PureDP(0.3).epsilon(0.0).lower == PureDP(0.3).epsilon(0.0).upper == 0.3


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(Guarantees([(0.198, 0.098), (0.355, 1.43e-4)]) * 5291105, 1 - 2**-53),
        PoissonSampled(ZeroConcentrated(0.0, 0.0, 7.4e-6) * 7478466, 0.5),
        PoissonSampled(ApproximateDP(0.12, 1 - 1e-12) * 4 + PureDP(1.0), 0.3),
        PoissonSampled(ApproximateDP(1e4, 0.5) + Guarantees([(9.26, 2.17e-4), (9.7, 1e-300)]), 1 - 2**-53),
        PoissonSampled(Guarantees([(5e-324, 0.3)]) * 2, 0.3),
        PoissonSampled(LossDistribution([-0.5, 0.1], [0.3, 0.2], 0.5) * 3, 0.1),
        PoissonSampled(ZeroConcentrated(rho=0.0, xi=1.1), 0.5),
        Renyi([(3.0, 0.1)]).group(4),
        LossDistribution([0.0936], [1.0]) + PoissonSampled(PureDP(1e4), 0.5) + Renyi(formula=Gaussian(1.0)),
    ],
)
@pytest.mark.parametrize("ask", ["delta", "epsilon", "tradeoff"])
def test_masses_and_losses_at_the_end_of_numbers_are_answered(event, ask):
    found = getattr(event, ask)(0.3)
    assert 0 <= found.lower <= found.upper
    assert ask == "epsilon" or found.upper <= 1


def test_a_table_of_tiny_losses_keeps_the_infinite_mass_of_its_other_order():
    for loss in (1e-9, 1e-12, 1e-15):
        with mpmath.workdps(40):
            truth = -mpmath.expm1(-mpmath.mpf(loss))
        assert holds(LossDistribution([loss], [1.0]).delta(0.0), truth)
        assert holds(LossDistribution([loss], [1.0]).delta(1.0), truth)


@pytest.mark.parametrize(
    ("sigma", "q", "epsilon", "mass", "delta"),
    [
        (1.0, 1e-5, 1.0, 1e-3, 2.5e-3),
        (0.7, 1e-4, 2.0, 1e-5, 2.5e-5),
        (2.0, 1e-4, 0.3, 1e-3, 2.2e-3),
        (3, 1e-3, 0.5, 1e-6, 2e-6),
    ],
)
def test_a_rare_step_beside_a_claim_has_its_mass_taken_off_once(sigma, q, epsilon, mass, delta):
    """δ is the mean of the step's own profile over the claim's two losses, beside its infinite mass."""
    found = (PoissonSampled(Gaussian(sigma), q) + ApproximateDP(epsilon, mass)).epsilon(delta)
    with mpmath.workdps(40):
        high = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))

        def total(at, removes):
            profile = sampled_profile if removes else other_profile
            both = high * profile(sigma, q, at - epsilon) + (1 - high) * profile(sigma, q, at + epsilon)
            return mass + (1 - mpmath.mpf(mass)) * both

        for end, sign in ((found.upper, -1), (found.lower, 1)):
            at = mpmath.mpf(end)
            assert sign * (max(total(at, True), total(at, False)) - delta) >= -delta * mpmath.mpf(10) ** -13


def test_two_steps_of_a_sampled_law_without_a_lattice_are_summed_atom_by_atom():
    found = (PoissonSampled(ApproximateDP(1.0, 1e-3), 0.1) * 3).delta(0.05)
    assert found.upper - found.lower <= 1e-12 * found.upper


# What a third attack found


def test_the_group_of_a_claim_costs_no_less_than_what_is_known_to_attain_it():
    """A mean loss of 0 is that of equal laws; and by Hölder no table of one order says more than this."""
    assert Concentrated(0.0, 1.0).group(2).epsilon(1e-6).lower == 0
    assert Renyi(points=[(1, 0.0), (64, 0.1)]).group(2).epsilon(1e-6).lower == 0
    assert Renyi(points=[(64, 0.1)]).group(2).epsilon(1e-6).lower <= 0.5019
    assert Concentrated(0.5, 1.0).group(2).epsilon(1e-6).lower == pytest.approx(
        Gaussian(0.5).epsilon(1e-6).lower, rel=1e-6
    )


@given(st.lists(st.tuples(st.floats(-3, 3), st.integers(1, 2**20)), min_size=2, max_size=6))
def test_what_q_has_beyond_p_is_known_to_its_last_digit(rows):
    """Of probabilities that add up to one exactly: E e^{-L} falls short of one by the mass of an infinite loss."""
    total = sum(weight for _, weight in rows)
    whole = 2 ** (total.bit_length())
    losses = [loss for loss, _ in rows]
    masses = [weight / whole for _, weight in rows]
    masses[0] += (whole - total) / whole
    with mpmath.workdps(60):
        missing = 1 - mpmath.fsum(
            mpmath.mpf(p) * mpmath.exp(-mpmath.mpf(loss)) for p, loss in zip(masses, losses, strict=True)
        )
        if missing < 1e-13:  # as much as the numbers of a table may be off, or more than there is
            return
        found = LossDistribution(losses, masses).delta(600.0)
        assert found.lower * (1 - 1e-14) <= missing <= found.upper * (1 + 1e-14)
        assert found.upper - found.lower <= 1e-13 * found.upper


def test_no_end_of_a_tradeoff_is_rounded_the_wrong_way():
    with mpmath.workdps(60):
        for x in (1e-17, 1e-9, 0.3):
            truth = 1 - mpmath.e * mpmath.mpf(x)
            found = PureDP(1.0).tradeoff(x)
            assert (
                mpmath.mpf(found.lower) <= max(truth, mpmath.exp(-1) * (1 - mpmath.mpf(x))) <= mpmath.mpf(found.upper)
            )


@pytest.mark.parametrize("scale", [3.0, 7.0, 11.0, 0.3, 1e-3, 12345.678])
def test_a_pure_epsilon_is_never_rounded_down(scale):
    for event in (DiscreteLaplace(scale), Laplace(scale), DiscreteLaplace(scale, 3) * 7):
        steps = 21 if isinstance(event, Composed) else 1
        assert Fraction(event.epsilon(0.0).upper) >= steps / Fraction(scale)
    assert RandomizedResponse(0.5, 3).epsilon(0.0).upper >= mpmath.log(2)
    assert Renyi(formula=RandomizedResponse(0.5, 3)).epsilon(0.0).upper >= mpmath.log(2)


@pytest.mark.parametrize(
    "claim",
    [ZeroConcentrated(1e-310), Renyi(points=[(2, 1e-310)]), Concentrated(1e-300, 1e-155), ZeroConcentrated(0.0)],
)
def test_a_sample_of_next_to_nothing_is_answered(claim):
    sample = PoissonSampled(claim, 0.1)
    known = not isinstance(claim, Renyi)  # by one low order: that says little, however small it is
    assert sample.epsilon(1e-6).upper <= (1e-6 if known else 10.0)
    assert sample.delta(0.1).upper <= (1e-6 if known else 0.1)
    assert sample.tradeoff(0.5).lower >= (0.49 if known else 0.0)


def test_bounds_that_lie_far_apart_are_walked():
    found = calibrate_noise(lambda noise: PureDP(0.1), epsilon=1.0, delta=0.0, bounds=(5e-324, 1.0))
    assert found.value <= 1.0


def test_many_different_samples_are_answered_in_time():
    """The laws of each would take a tenth of a second: their curves alone say less, and say it at once."""
    many = compose(*(PoissonSampled(Laplace(1 + place / 7) * 2 + Gaussian(3.0), 0.01) for place in range(30)))
    found = many.epsilon(1e-6)
    assert 0 <= found.lower <= found.upper < 2.0
    assert many.delta(found.upper).upper <= 1e-6 * (1 + 1e-5)


def test_more_rare_steps_than_a_double_counts_end_in_no_bare_overflow():
    steps = PoissonSampled(Gaussian(0.7174353664003587), 1 / 3) * 10**9 + Gaussian(1 / 0.39) * 10**9
    found = steps.delta(12.0)
    assert 0.99 < found.lower <= found.upper == 1.0


@given(st.floats(1e-300, 0.3), st.integers(2, 9))
def test_what_several_claims_give_away_is_rounded_upwards_beside_other_events(delta, count):
    event = ZeroConcentrated(0.0, 0.0, delta) * count + DiscreteLaplace(1.0)
    with mpmath.workdps(700):
        truth = 1 - (1 - mpmath.mpf(delta)) ** count
        found = event.delta(5.6)
        assert found.lower <= truth <= found.upper <= truth * (1 + 1e-13) + 1e-322


def _nearly_all(rates, losses, probabilities, infinite_mass):
    """Both pairs of a table on a sample of a sample …, at 60 digits: everyone, but for next to nothing."""
    with mpmath.workdps(60):
        p = [mpmath.mpf(one) for one in probabilities]
        q = [one * mpmath.exp(-mpmath.mpf(loss)) for one, loss in zip(p, losses, strict=True)]
        p, q = [*p, mpmath.mpf(infinite_mass), mpmath.mpf(0)], [*q, mpmath.mpf(0), 1 - mpmath.fsum(q)]
        seen = mpmath.fprod(mpmath.mpf(rate) for rate in rates)
        return [seen * a + (1 - seen) * b for a, b in zip(p, q, strict=True)], q


@pytest.mark.parametrize("depth", [2, 3, 6])
@pytest.mark.parametrize("rate", [1 - 1e-12, 1 - 3e-15, 0.99999, 0.95])
@pytest.mark.parametrize("delta", [0.25000143622307713, 0.28, 0.3])
def test_samples_of_samples_of_nearly_everyone(depth, rate, delta):
    """How likely a person is left out is the distance of the rates' product from 1, which no float holds."""
    losses, probabilities = (0.11470900685231121, 0.10708536587583375), (0.6189174652099609, 0.13108253479003906)
    event = LossDistribution(losses=losses, probabilities=probabilities, infinite_mass=0.25)
    for _ in range(depth):
        event = PoissonSampled(event, rate)
    found = event.epsilon(delta)
    p, q = _nearly_all([rate] * depth, losses, probabilities, 0.25)
    with mpmath.workdps(60):

        def true(epsilon):
            y = mpmath.exp(mpmath.mpf(epsilon))
            return max(mpmath.fsum(max(a - y * b, 0) for a, b in zip(*pair, strict=True)) for pair in ((p, q), (q, p)))

        if found.lower > 0:
            assert true(found.lower * (1 - 1e-15)) >= delta * (1 - mpmath.mpf(10) ** -15)
        if math.isfinite(found.upper):
            assert true(found.upper) <= delta
    assert found.upper - found.lower <= 0.05 * found.upper or math.isinf(found.upper)


@pytest.mark.parametrize("n", [10**9, 10**12, 10**15])
def test_batches_of_all_but_one(n):
    """The one who is left out is by 1/n, of which a float near 1 holds few digits."""
    batch = SampledWithoutReplacement(PureDP(3.0, adjacency="replace_one"), batch=n - 1, n=n)
    found, inside = batch.epsilon(0), 3.0
    with mpmath.workdps(60):
        rate = mpmath.mpf(n - 1) / n
        true = mpmath.log(1 + rate * mpmath.expm1(inside))
        assert found.lower <= true <= found.upper


@pytest.mark.parametrize("count", [1, 4, 1000])
@pytest.mark.parametrize(("delta", "rate"), [(1e-300, 1e-15), (1e-308, 0.3), (3e-310, 1e-13), (1e-323, 0.1)])
def test_masses_of_few_digits_are_never_under_the_truth(count, delta, rate):
    event = PoissonSampled(PrivacyProfile(points=((4.0, delta),)), rate) * count
    with mpmath.workdps(60):
        true = -mpmath.expm1(count * mpmath.log1p(-mpmath.mpf(delta) * mpmath.mpf(rate)))
        assert event.infinite_mass >= true * (1 - mpmath.mpf(10) ** -12)
        found = event.delta(5000.0)  # beyond all finite losses
        assert found.lower <= true <= found.upper


@pytest.mark.parametrize("width", [700.0, 3000.0, 1e4])
def test_a_wide_selection_beside_a_failure_at_a_delta_of_nearly_one(width):
    """A selection of width w alone has δ(ε) ≥ (1 - e^{-(w - ε)/2})² ≥ 1 - 2 e^{-(w - ε)/2}."""
    delta, mass = 1 - 2.0**-53, 0.5
    left = 1 - (delta - mass) / (1 - mass)
    assert (Exponential(width) + ApproximateDP(1.0, mass)).epsilon(delta).upper >= width + 2 * math.log(left / 2)
