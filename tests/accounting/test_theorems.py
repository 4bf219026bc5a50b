"""Every theorem against a second route: brute force, high precision, and the exact curve under it."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    compose,
    theorems,
)
from sitr.accounting.theorems import Guarantee
from sitr.errors import InvalidArgument, NoSuchGuarantee
from tests.accounting.helpers import law

AT_DELTA = (
    theorems.advanced,
    theorems.advanced_halved,
    theorems.advanced_tanh,
    theorems.kairouz_oh_viswanath,
    theorems.murtagh_vadhan,
    theorems.murtagh_vadhan_exact,
    theorems.generic_rdp,
    theorems.moments_accountant,
    theorems.tightest,
)
BAD_OUTCOME = (theorems.bad_outcome_basic, theorems.bad_outcome_advanced, theorems.bad_outcome_generic_rdp)

epsilons = st.floats(0.01, 3.0)
deltas = st.floats(-12, -0.5).map(lambda power: 10**power)


def summed_profile(steps, epsilon):
    """δ(ε) of (ε_i,δ_i) steps by the sum over all subsets, in 50 digits (THEORY 4.4)."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(steps)):
            loss = mpmath.fsum(sign * mpmath.mpf(e) for sign, (e, _) in zip(signs, steps, strict=True))
            if loss > epsilon:
                mass = mpmath.fprod(
                    1 / (1 + mpmath.exp(-sign * mpmath.mpf(e))) for sign, (e, _) in zip(signs, steps, strict=True)
                )
                total += mass * (1 - mpmath.exp(mpmath.mpf(epsilon) - loss))
        return float(1 - mpmath.fprod(1 - mpmath.mpf(d) for _, d in steps) * (1 - total))


def kairouz_oh_viswanath_delta(epsilon, delta, k, i):
    """The i-th δ of the theorem, word for word, in 60 digits (THEORY 4.3)."""
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        terms = (mpmath.binomial(k, j) * (mpmath.exp((k - j) * e) - mpmath.exp((k - 2 * i + j) * e)) for j in range(i))
        finite = mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** k
        return 1 - (1 - mpmath.mpf(delta)) ** k * (1 - finite)


class TestBasic:
    def test_adds(self):
        found = theorems.basic(PureDP(epsilon=0.5) * 3 + ApproximateDP(epsilon=0.25, delta=0.01) * 2)
        assert found == pytest.approx((2.0, 0.02))

    def test_delta_is_a_probability(self):
        assert theorems.basic(ApproximateDP(epsilon=0.1, delta=0.3) * 10).delta == 1.0

    def test_reads_any_bounded_mechanism(self):
        assert theorems.basic(Laplace(noise_multiplier=20) * 30).epsilon == pytest.approx(1.5)


class TestAdvanced:
    def test_formula(self):
        event = PureDP(epsilon=0.3) * 50
        expected = 0.3 * math.sqrt(2 * 50 * math.log(1e6)) + 50 * 0.3 * math.expm1(0.3)
        assert theorems.advanced(event, 1e-6) == pytest.approx((expected, 1e-6), rel=1e-14)

    @given(epsilon=epsilons, count=st.integers(1, 300), delta=deltas)
    def test_halves_the_mean(self, epsilon, count, delta):
        event = PureDP(epsilon=epsilon) * count
        spread = epsilon * math.sqrt(-2 * count * math.log(delta))
        whole = theorems.advanced(event, delta).epsilon - spread
        assert theorems.advanced_halved(event, delta).epsilon - spread == pytest.approx(whole / 2, rel=1e-9, abs=1e-12)
        mean = theorems.advanced_tanh(event, delta).epsilon - spread
        assert mean == pytest.approx(event.expected_loss(), rel=1e-9, abs=1e-12)

    def test_steps_take_their_share_of_delta(self):
        mixed = ApproximateDP(epsilon=0.1, delta=1e-8) * 50
        pure = PureDP(epsilon=0.1) * 50
        assert theorems.advanced(mixed, 1e-6).epsilon == pytest.approx(theorems.advanced(pure, 5e-7).epsilon)

    def test_unequal_steps(self):
        event = PureDP(epsilon=0.3) * 4 + PureDP(epsilon=0.4) * 9
        expected = math.sqrt(2 * math.log(1e3) * (4 * 0.09 + 9 * 0.16)) + 1.2 * math.tanh(0.15) + 3.6 * math.tanh(0.2)
        assert theorems.advanced_tanh(event, 1e-3).epsilon == pytest.approx(expected, rel=1e-14)

    def test_large_epsilon_is_infinite_not_an_error(self):
        assert theorems.advanced(Laplace(noise_multiplier=0.001) * 2, 1e-6).epsilon == math.inf
        assert theorems.bad_outcome_advanced(Laplace(noise_multiplier=0.001) * 2, 1e-6) == 1.0


class TestKairouzOhViswanath:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "k"), [(0.1, 0.0, 100), (0.5, 1e-5, 9), (2.0, 1e-3, 30), (1.0, 0.0, 1)]
    )
    def test_points_are_the_theorem(self, epsilon, delta, k):
        points = theorems.kairouz_oh_viswanath_points(ApproximateDP(epsilon, delta) * k)
        assert len(points) == k // 2 + 1
        for i, point in enumerate(points):
            assert point.epsilon == pytest.approx((k - 2 * i) * epsilon)
            assert point.delta == pytest.approx(float(kairouz_oh_viswanath_delta(epsilon, delta, k, i)), rel=1e-11)

    @settings(max_examples=60)
    @given(epsilon=epsilons, delta=st.floats(0, 1e-3), count=st.integers(1, 60))
    def test_points_are_the_convolution(self, epsilon, delta, count):
        event = ApproximateDP(epsilon, delta) * count
        points = theorems.kairouz_oh_viswanath_points(event)
        exact = event.delta([point.epsilon for point in points])
        rounded = 2.0**-49 * count * epsilon  # what the largest loss of all may be rounded by
        assert [point.delta for point in points] == pytest.approx(exact.upper, rel=1e-6, abs=1e-15 + rounded)

    @settings(max_examples=60)
    @given(epsilon=epsilons, share=st.floats(0, 0.9), count=st.integers(1, 2000), delta=deltas)
    def test_equals_the_convolution(self, epsilon, share, count, delta):
        event = ApproximateDP(epsilon, share * delta / count) * count
        exact = event.epsilon(delta)
        found = theorems.kairouz_oh_viswanath(event, delta).epsilon
        assert exact.lower * (1 - 1e-9) <= found <= exact.upper * (1 + 1e-6) + 1e-9

    def test_many_steps_and_deep_delta(self):
        event = PureDP(epsilon=0.01) * 100_000
        for delta in (1e-2, 1e-30, 1e-200):
            exact = event.epsilon(delta)
            found = theorems.kairouz_oh_viswanath(event, delta).epsilon
            assert exact.lower * (1 - 1e-9) <= found <= exact.upper * (1 + 1e-6)

    def test_limits(self):
        assert theorems.kairouz_oh_viswanath(PureDP(epsilon=0) * 5, 1e-6).epsilon == 0
        assert theorems.kairouz_oh_viswanath(PureDP(epsilon=0.1) * 3, 0.9).epsilon == 0
        assert theorems.kairouz_oh_viswanath(PureDP(epsilon=2) * 1000, 1e-200).epsilon == pytest.approx(2000)
        assert theorems.kairouz_oh_viswanath(ApproximateDP(0.5, 0.25), 0.25).epsilon == pytest.approx(0.5)

    def test_refuses_unequal_steps(self):
        with pytest.raises(NoSuchGuarantee, match="2 different"):
            theorems.kairouz_oh_viswanath(PureDP(epsilon=0.1) + PureDP(epsilon=0.2), 1e-6)

    def test_refuses_too_many_steps(self):
        with pytest.raises(InvalidArgument, match="the number of steps"):
            theorems.kairouz_oh_viswanath_points(PureDP(epsilon=0.1) * 10**7)


class TestMurtaghVadhan:
    @settings(max_examples=40)
    @given(
        steps=st.lists(st.tuples(epsilons, st.floats(0, 0.02)), min_size=1, max_size=7),
        delta=st.floats(0.2, 0.6),
    )
    def test_equals_brute_force(self, steps, delta):
        event = compose(*(ApproximateDP(e, d) for e, d in steps))
        found = theorems.murtagh_vadhan_exact(event, delta).epsilon
        assert summed_profile(steps, found) <= delta * (1 + 1e-12)
        if found > 0:
            assert summed_profile(steps, found - 1e-9) > delta * (1 - 1e-12)
        assert theorems.murtagh_vadhan(event, delta).epsilon == pytest.approx(found, rel=1e-6, abs=1e-9)

    @settings(max_examples=15)
    @given(steps=st.lists(st.tuples(epsilons, st.floats(0, 1e-9)), min_size=8, max_size=14), delta=deltas)
    def test_two_ways_agree(self, steps, delta):
        event = compose(*(ApproximateDP(e, d * delta) for e, d in steps))
        found = theorems.murtagh_vadhan_exact(event, delta).epsilon
        upper = theorems.murtagh_vadhan(event, delta).epsilon
        assert found * (1 - 1e-12) <= upper <= found * (1 + 1e-4) + 1e-9

    def test_is_kairouz_oh_viswanath_where_steps_are_equal(self):
        event = ApproximateDP(epsilon=0.3, delta=1e-7) * 18
        expected = theorems.kairouz_oh_viswanath(event, 1e-4).epsilon
        assert theorems.murtagh_vadhan_exact(event, 1e-4).epsilon == pytest.approx(expected, rel=1e-12)

    def test_refuses_many_subsets(self):
        with pytest.raises(InvalidArgument, match=r"21 is not in \[1, 20\]"):
            theorems.murtagh_vadhan_exact(PureDP(epsilon=0.1) * 21, 1e-6)


class TestGenericRdp:
    def test_solves_its_equation(self):
        # At the p where Proposition 4 gives exactly δ, the two sides meet: δ = e^ε p.
        event = PureDP(epsilon=0.1) * 100
        epsilon, delta = theorems.generic_rdp(event, 1e-6)
        p = delta * math.exp(-epsilon)
        assert theorems.bad_outcome_generic_rdp(event, p) == pytest.approx(delta, rel=1e-12)

    @given(epsilon=epsilons, count=st.integers(1, 300), p=deltas)
    def test_root_two_holds_as_well(self, epsilon, count, p):
        # The zCDP curve ρα of pure steps, ρ = Σε²/2, at its best order gives √2 and a little more (THEORY 3.1, 3.4).
        root_two = min(p * math.exp(min(epsilon * math.sqrt(-2 * count * math.log(p)), 700)), 1.0)
        renyi = Renyi(formula=ZeroConcentrated(rho=count * epsilon**2 / 2)).bad_outcome(p, method="renyi").upper
        stated = theorems.bad_outcome_generic_rdp(PureDP(epsilon=epsilon) * count, p)
        assert renyi <= root_two * (1 + 1e-6)
        assert root_two <= stated * (1 + 1e-12)

    def test_refuses_delta(self):
        with pytest.raises(NoSuchGuarantee, match="δ > 0"):
            theorems.generic_rdp(ApproximateDP(epsilon=0.1, delta=1e-9) * 10, 1e-6)


class TestMomentsAccountant:
    def test_is_the_best_of_64_moments(self):
        event = Gaussian(noise_multiplier=4.0) * 10
        rho = 10 / (2 * 4.0**2)
        expected = min(rho * (moment + 1) + math.log(1e5) / moment for moment in range(1, 65))
        assert theorems.moments_accountant(event, 1e-5) == pytest.approx((expected, 1e-5), rel=1e-12)

    def test_seed_formula_of_the_sampled_gaussian(self):
        # E over the pair (THEORY 2.7), integer orders only: what seed 004's accountant tracks.
        q, sigma, steps, moment = 0.01, 4.0, 1000, 32
        alpha = moment + 1
        terms = (
            math.comb(alpha, k) * (1 - q) ** (alpha - k) * q**k * math.exp(k * (k - 1) / (2 * sigma**2))
            for k in range(alpha + 1)
        )
        event = PoissonSampled(Gaussian(noise_multiplier=sigma), sampling_prob=q) * steps
        bound = (steps * math.log(math.fsum(terms)) + math.log(1e5)) / moment
        assert theorems.moments_accountant(event, 1e-5).epsilon <= bound * (1 + 1e-12)

    def test_refuses_infinite_losses(self):
        with pytest.raises(NoSuchGuarantee, match="infinite"):
            theorems.moments_accountant(ApproximateDP(epsilon=0.1, delta=1e-9), 1e-6)


class TestExactLiesUnderAll:
    @settings(max_examples=60)
    @given(epsilon=epsilons, count=st.integers(1, 400), delta=deltas)
    def test_equal_steps(self, epsilon, count, delta):
        event = PureDP(epsilon=epsilon) * count
        exact = event.epsilon(delta).lower
        few = () if count <= 12 else (theorems.murtagh_vadhan_exact,)
        for theorem in set(AT_DELTA) - set(few):
            assert theorem(event, delta).epsilon >= exact * (1 - 1e-9), theorem.__name__
        assert theorems.basic(event).epsilon >= exact * (1 - 1e-9)

    @settings(max_examples=40)
    @given(
        steps=st.lists(st.tuples(epsilons, st.floats(0, 0.2), st.integers(1, 30)), min_size=1, max_size=4),
        delta=deltas,
    )
    def test_unequal_steps_with_delta(self, steps, delta):
        event = compose(*(ApproximateDP(e, share * delta / (4 * n)) * n for e, share, n in steps))
        exact = event.epsilon(delta).lower
        for theorem in (theorems.advanced, theorems.advanced_halved, theorems.advanced_tanh, theorems.murtagh_vadhan):
            assert theorem(event, delta).epsilon >= exact * (1 - 1e-9), theorem.__name__

    @settings(max_examples=60)
    @given(epsilon=st.floats(0.02, 1.0), count=st.integers(1, 250), p=deltas)
    def test_bad_outcomes_of_randomized_response(self, epsilon, count, p):
        event = RandomizedResponse(p=1 / (1 + math.exp(-epsilon))) * count
        attained = attained_power(epsilon, count, p)
        for bound in BAD_OUTCOME:
            assert bound(event, p) >= attained * (1 - 1e-9), bound.__name__
        assert event.bad_outcome(p, method="renyi").upper >= attained * (1 - 1e-9)

    @pytest.mark.parametrize("count", [1, 30, 250])
    def test_bad_outcomes_of_laplace_noise(self, count):
        event = Laplace(noise_multiplier=20) * count
        for p in (1e-3, 0.1):
            exact = event.bad_outcome(p).lower
            for bound in BAD_OUTCOME:
                assert bound(event, p) >= exact * (1 - 1e-9), bound.__name__


def attained_power(epsilon, count, p):
    """The power of the best test of level p on `count` randomized responses (Neyman–Pearson)."""
    truth = 1 / (1 + math.exp(-epsilon))
    logs = np.array(
        [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(count + 1)]
    )
    k = np.arange(count + 1)
    under_p = np.exp(logs + k * math.log(truth) + (count - k) * math.log1p(-truth))
    under_q = under_p[::-1]
    level = power = 0.0
    for alternative, null in zip(under_p[::-1], under_q[::-1], strict=True):
        part = min(1.0, (p - level) / null)
        level, power = level + part * null, power + part * alternative
        if part < 1:
            break
    return power


class TestBadOutcome:
    def test_basic(self):
        assert theorems.bad_outcome_basic(PureDP(epsilon=0.5) * 4, 0.01) == pytest.approx(0.01 * math.exp(2))
        assert theorems.bad_outcome_basic(ApproximateDP(0.5, 0.001) * 4, 0.01) == pytest.approx(
            0.01 * math.exp(2) + 0.004
        )

    @given(epsilon=st.floats(0.01, 1.0), count=st.integers(1, 250), p=deltas)
    def test_advanced_takes_the_best_delta(self, epsilon, count, p):
        event = PureDP(epsilon=epsilon) * count
        grid = np.logspace(-20, -1e-6, 400)
        spread, mean = epsilon * math.sqrt(count), count * epsilon * math.expm1(epsilon)
        with np.errstate(over="ignore"):
            best = min(float(np.min(p * np.exp(spread * np.sqrt(-2 * np.log(grid)) + mean) + grid)), 1.0)
        found = theorems.bad_outcome_advanced(event, p)
        assert best * (1 - 0.02) <= found <= best * (1 + 1e-9)

    def test_generic_rdp_direction(self):
        # p is the known probability, on whichever data set; the bound is for the other (THEORY 4.6).
        found = theorems.bad_outcome_generic_rdp(PureDP(epsilon=0.1) * 25, 1e-4)
        assert found == pytest.approx(1e-4 * math.exp(2 * 0.1 * math.sqrt(25 * math.log(1e4))))

    @pytest.mark.parametrize("bound", BAD_OUTCOME)
    def test_limits(self, bound):
        event = PureDP(epsilon=0.3) * 10
        assert bound(event, 0) == 0
        assert bound(event, 1) == 1
        assert bound(event, 1e-300) <= 1e-250
        assert bound(PureDP(epsilon=0) * 10, 0.25) == pytest.approx(0.25)


class TestBadInput:
    @pytest.mark.parametrize("theorem", AT_DELTA)
    @pytest.mark.parametrize("delta", [0, 1, -1e-9, math.nan, math.inf, True, "1e-6", None])
    def test_delta(self, theorem, delta):
        with pytest.raises(InvalidArgument, match="delta="):
            theorem(PureDP(epsilon=0.1) * 3, delta)

    @pytest.mark.parametrize("bound", BAD_OUTCOME)
    @pytest.mark.parametrize("p", [-1e-9, 1.1, math.nan, True])
    def test_probability(self, bound, p):
        with pytest.raises(InvalidArgument, match="p="):
            bound(PureDP(epsilon=0.1) * 3, p)

    @pytest.mark.parametrize("theorem", AT_DELTA)
    def test_event(self, theorem):
        with pytest.raises(InvalidArgument, match="is not an event"):
            theorem(0.1, 1e-6)

    @pytest.mark.parametrize(
        "theorem", [t for t in AT_DELTA if t not in (theorems.moments_accountant, theorems.tightest)]
    )
    def test_unbounded_loss(self, theorem):
        with pytest.raises(NoSuchGuarantee, match="unbounded"):
            theorem(Gaussian(noise_multiplier=2.0) * 3, 1e-6)

    @pytest.mark.parametrize(
        "theorem",
        [theorems.advanced, theorems.kairouz_oh_viswanath, theorems.murtagh_vadhan, theorems.murtagh_vadhan_exact],
    )
    def test_delta_already_spent(self, theorem):
        with pytest.raises(NoSuchGuarantee, match="own δ"):
            theorem(ApproximateDP(epsilon=0.1, delta=1e-6) * 10, 5e-6)


def test_guarantee_is_a_pair():
    epsilon, delta = Guarantee(epsilon=1.0, delta=1e-6)
    assert (epsilon, delta) == (1.0, 1e-6)


@law(40)
@given(st.floats(0.01, 3.0), st.sampled_from([0.0, 1e-9, 1e-5]), st.integers(1, 9), st.floats(-9, -1))
def test_optimal_compositions_never_state_an_epsilon_that_is_too_small(epsilon, delta, count, power):
    steps = [(epsilon, delta)] * count
    total = count * delta * 1.0000001 + 10**power
    for theorem in (theorems.kairouz_oh_viswanath, theorems.murtagh_vadhan_exact):
        stated = theorem(ApproximateDP(epsilon, delta) * count, total).epsilon
        assert exact_profile(steps, stated) <= total
        assert stated == 0 or exact_profile(steps, stated * (1 - 1e-9)) >= total * (1 - 1e-6)
    for point in theorems.kairouz_oh_viswanath_points(ApproximateDP(epsilon, delta) * count)[1:]:
        assert exact_profile(steps, point.epsilon) <= point.delta


def exact_profile(steps, epsilon):
    """δ(ε) of equal steps by the binomial sum, in 50 digits and not rounded to a double."""
    (step, fails), count = steps[0], len(steps)
    with mpmath.workdps(50):
        step, factor, total = mpmath.mpf(step), mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
        for k in range(count + 1):
            loss = (count - 2 * k) * step
            if loss > epsilon:
                mass = mpmath.binomial(count, k) * mpmath.exp((count - k) * step) / (1 + mpmath.exp(step)) ** count
                total += mass * (1 - factor * mpmath.exp(-loss))
        return 1 - (1 - mpmath.mpf(fails)) ** count * (1 - total)
