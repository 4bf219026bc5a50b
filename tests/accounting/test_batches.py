"""Batches, shuffled passes and shuffled reports beside the truth of a few people, and under the bounds in print."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import gammaln

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
    PrivacyProfile,
    PureDP,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
    ZeroConcentrated,
    parse_event,
)
from sitr.errors import IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from tests.accounting.crowds import (
    blanket,
    clones,
    divergence,
    mixture,
    neighbours,
    on_a_batch,
    product,
    profile,
    random_mechanism,
    random_randomizer,
    response,
    shuffled,
    shuffled_pairs,
    worst,
)
from tests.accounting.events.parameters import bad_parameters, is_refused
from tests.accounting.helpers import (
    DIGITS,
    crowds,
    exact_events,
    gaussian_delta,
    holds,
    law,
    logs,
    narrow,
    small_deltas,
)

TIMES = [Fraction(10, 10), Fraction(11, 10), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(3)]  # e^ε
ROUNDING = 1 - 1e-12


def response_event(growth, k=2):
    return RandomizedResponse(float(growth / (growth + k - 1)), k)


# --- A batch without replacement ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "batch"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_no_mechanism_on_a_batch_is_above_the_theorem_or_the_bracket(n, batch, seed):
    mechanism, rate = random_mechanism(3, batch, 3, seed), Fraction(batch, n)
    points = [(math.log(y), float(profile(mechanism, 3, batch, y))) for y in (Fraction(i, 20) for i in range(20, 400))]
    event = SampledWithoutReplacement(Guarantees(points), n, batch)
    pairs = [tuple(on_a_batch(mechanism, people, batch) for people in both) for both in neighbours(3, n)]
    for y in TIMES:
        truth = worst(pairs, y)
        assert truth <= rate * profile(mechanism, 3, batch, 1 + (y - 1) / rate)
        assert truth * ROUNDING <= event.delta(math.log(y)).upper


@pytest.mark.parametrize("seed", range(3))
def test_two_batches_one_after_the_other_stay_under_two_events(seed):
    n, batch, values = 3, 2, 2
    mechanisms = [
        random_mechanism(values, batch, 2, (seed, i)) for i in range(3)
    ]  # the second step depends on the first

    def both(people):
        first = on_a_batch(mechanisms[0], people, batch)
        return product(first, lambda seen: on_a_batch(mechanisms[1 + seen], people, batch))

    grid = [Fraction(i, 20) for i in range(20, 400)]
    points = [(math.log(y), float(max(profile(m, values, batch, y) for m in mechanisms))) for y in grid]
    event = SampledWithoutReplacement(Guarantees(points), n, batch) * 2
    pairs = [(both(a), both(b)) for a, b in neighbours(values, n)]
    for y in TIMES:
        assert worst(pairs, y) * ROUNDING <= event.delta(math.log(y)).upper


def differs(growth):
    """Randomized response to the question whether anyone in the batch holds the value 0."""
    laws = response(growth, 2)
    return lambda people: laws[0] if 0 in people else laws[1]


@pytest.mark.parametrize(("n", "batch"), [(2, 1), (4, 2), (5, 2), (10, 7)])
@pytest.mark.parametrize("growth", [Fraction(3, 2), Fraction(4), Fraction(30)])
def test_one_batch_attains_the_theorem(n, batch, growth):
    alike = [on_a_batch(differs(growth), (first, *[1] * (n - 1)), batch) for first in (0, 1)]
    event = SampledWithoutReplacement(response_event(growth), n, batch)
    for y in TIMES:
        truth, found = float(worst([alike], y)), event.delta(math.log(y))
        assert holds(found, truth, 1e-12)
        assert narrow(found, 1e-10, 1e-15)


@pytest.mark.parametrize("more", [(), (Fraction(11, 10),)])
def test_steps_may_alternate_between_the_orders_which_costs_more_than_either(more):
    """So the two orders must not be composed apart (THEORY 2.8); also where two questions are put to one batch."""
    n, batch, growth, y = 10, 7, Fraction(30), Fraction(71, 10)

    def asked(people):
        law = differs(growth)(people)
        return product(law, differs(more[0])(people)) if more else law

    others = [1] * (n - 1)
    alike, different = (on_a_batch(asked, (first, *others), batch) for first in (1, 0))
    inside = response_event(growth) + response_event(more[0]) if more else response_event(growth)
    alternating = divergence(product(different, alike), product(alike, different), y)
    apart = worst([(product(different, different), product(alike, alike))], y)
    assert apart < alternating * Fraction(9, 10)
    found = (SampledWithoutReplacement(inside, n, batch) * 2).delta(math.log(y))
    assert found.lower * ROUNDING <= apart
    assert alternating * ROUNDING <= found.upper


@law(20)
@given(logs(0.4, 20), st.integers(1, 10**6), logs(1e-3, 1), st.floats(0, 4))
def test_gaussian_noise_on_a_batch_is_the_formula(noise, n, share, epsilon):
    batch = max(1, int(share * n))
    with mp.workdps(DIGITS):
        rate = mpf(batch) / n
        truth = rate * gaussian_delta(1 / mpf(noise), mpmath.log1p(mpmath.expm1(mpf(epsilon)) / rate))
    assume(truth > 1e-250)
    found = SampledWithoutReplacement(Gaussian(noise), n, batch).delta(epsilon)
    assert holds(found, truth, mpf(10) ** -30)
    assert narrow(found, 1e-6, 0)


def wang_balle_kasiviswanathan(sigma, rate, alpha):
    """The Rényi bound of 2019 for batches without replacement, their Theorem 9, for Gaussian noise and whole orders."""

    def moment(j):
        return math.exp(j * (j - 1) / (2 * sigma**2))

    second = rate**2 * math.comb(alpha, 2) * min(4 * (moment(2) - 1), 2 * moment(2))
    rest = math.fsum(rate**j * math.comb(alpha, j) * 2 * moment(j) for j in range(3, alpha + 1))
    return math.log1p(second + rest) / (alpha - 1)


@pytest.mark.parametrize("alpha", [2, 3, 8, 32])
@pytest.mark.parametrize(("sigma", "n", "batch"), [(1.0, 1000, 10), (2.0, 100, 10), (0.9, 10_000, 3), (5.0, 10, 9)])
def test_a_batch_lies_under_the_renyi_bound_in_print(sigma, n, batch, alpha):
    found = SampledWithoutReplacement(Gaussian(sigma), n, batch).rdp(alpha)
    assert found <= wang_balle_kasiviswanathan(sigma, batch / n, alpha) * (1 + 1e-12)
    assert found >= PoissonSampled(Gaussian(sigma), batch / n).rdp(alpha) * (1 - 1e-9)


INSIDE = [
    RandomizedResponse(0.75),
    Gaussian(1.0),
    Laplace(1.0),
    DiscreteGaussian(1.5),
    DiscreteLaplace(1.0, 2),
    Exponential(1.0),
    Gaussian(2.0) + Laplace(3.0) * 2,
    ZeroConcentrated(0.1) + PureDP(0.3),
    ApproximateDP(0.5, 1e-3),
    LossDistribution([-0.5, 0.25], [0.125, 0.75], 0.125),
]


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
def test_several_batches_lie_between_one_order_throughout_and_what_is_run_on_everyone(inside):
    batches = SampledWithoutReplacement(inside, 100, 10) * 5
    found, least = batches.epsilon(0.02), (PoissonSampled(inside, 0.1) * 5).epsilon(0.02)
    assert least.lower <= found.upper
    assert found.lower <= least.upper * (1 + 1e-9)
    assert found.lower <= found.upper <= (inside * 5).epsilon(0.02).upper * (1 + 1e-9)


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
def test_a_batch_of_everyone_is_everyone(inside):
    whole = SampledWithoutReplacement(inside, 7, 7)
    assert whole.parts == inside.parts
    assert whole.epsilon(1e-2) == inside.epsilon(1e-2)


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
def test_a_batch_of_a_batch_is_a_batch(inside):
    twice = SampledWithoutReplacement(SampledWithoutReplacement(inside, 100, 20), 1000, 100)
    once = SampledWithoutReplacement(inside, 1000, 20)
    for epsilon in (0.0, 0.02):
        assert twice.delta(epsilon).upper == pytest.approx(once.delta(epsilon).upper, rel=1e-9)
        assert (twice * 3).delta(epsilon).upper == pytest.approx((once * 3).delta(epsilon).upper, rel=1e-3)


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
def test_the_rényi_curve_of_a_batch_bounds_its_profile(inside):
    """By THEORY 3.2 every order gives a true (ε,δ), so none may be under what one batch attains."""
    event = SampledWithoutReplacement(inside, 50, 5)
    outside = event.infinite_mass
    for alpha in (1.5, 3.0, 20.0):
        divergence_there = event.rdp(alpha, delta_part=True)
        for epsilon in (0.01, 0.1, 0.5):
            log = (alpha - 1) * (divergence_there - epsilon) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
            assert event.delta(epsilon).lower <= outside + (1 - outside) * math.exp(min(log, 0.0)) * (1 + 1e-9)


def test_notions_of_a_batch():
    noise = SampledWithoutReplacement(Gaussian(2.0) + Laplace(4.0), 100, 10)
    assert noise.zcdp() == ZeroConcentrated(0.125 + 0.03125, adjacency="replace_one")
    assert noise.gdp() == pytest.approx((Gaussian(2.0) + Laplace(4.0)).gdp(), rel=1e-12)
    with pytest.raises(NoSuchGuarantee, match="CDP"):
        noise.cdp()
    pure = SampledWithoutReplacement(PureDP(1.0), 100, 10)
    end = math.log1p(0.1 * math.expm1(1.0))
    assert pure.pure() == pytest.approx(end, rel=1e-14)
    assert pure.zcdp().rho == pytest.approx(end**2 / 2, rel=1e-12)
    assert pure.cdp().tau == pytest.approx(end, rel=1e-12)
    assert pure.gdp() == pytest.approx(PureDP(end).gdp(), rel=1e-12)
    fails = SampledWithoutReplacement(ApproximateDP(1.0, 1e-3), 100, 10)
    assert fails.infinite_mass == pytest.approx(1e-4, rel=1e-12)
    assert fails.zcdp(delta_part=True).rho == pytest.approx(end**2 / 2, rel=1e-12)
    for notion in ("zcdp", "gdp"):
        with pytest.raises(NoSuchGuarantee, match="no loss is infinite"):
            getattr(SampledWithoutReplacement(ApproximateDP(1.0, 1e-3) + Gaussian(1.0), 10, 1), notion)(delta_part=True)


@pytest.mark.parametrize("inside", INSIDE, ids=repr)
def test_a_group_in_a_batch_costs_more_than_one_and_less_than_by_basic_group_privacy(inside):
    event, epsilon = SampledWithoutReplacement(inside, 100, 10), 0.05
    one, group = event.delta(epsilon / 2).upper, event.group(2).delta(epsilon)
    assert event.delta(epsilon).lower <= group.upper <= one * (1 + math.exp(epsilon / 2)) * (1 + 1e-3)


@law(30)
@given(exact_events, st.integers(2, 1000), st.floats(0.05, 0.5), small_deltas)
def test_a_larger_batch_costs_no_less(event, n, share, delta):
    small = max(1, int(share * n))
    fewer, more = (SampledWithoutReplacement(event, n, size).epsilon(delta) for size in (small, 2 * small))
    assert fewer.lower <= more.upper
    assert fewer.upper <= event.epsilon(delta).upper * (1 + 1e-9)


# --- Shuffled passes ------------------------------------------------------------------------------------------------


def test_a_shuffled_pass_costs_one_batch_whatever_the_order_and_the_analyst():
    """Two batches of two people, in every order: the second question depends on the first answer."""
    growth = Fraction(4)
    truth = response(growth, 2)

    def transcript(people):
        first = truth[max(people[:2])]
        return product(first, lambda seen: truth[(people[2] + seen * people[3]) % 2])

    def hidden(people):
        return mixture(transcript(order) for order in itertools.permutations(people))

    event = ShuffledEpochs(response_event(growth), 1)
    for a, b in neighbours(2, 4):
        in_place = [(transcript(x), transcript(y)) for x, y in zip(*map(itertools.permutations, (a, b)), strict=True)]
        for y in TIMES:
            assert worst([*in_place, (hidden(a), hidden(b))], y) * ROUNDING <= event.delta(math.log(y)).upper


def test_without_one_person_every_later_batch_changes():
    """Why `add_remove` is refused: batches of one person, answered by randomized response."""
    truth, people = response(Fraction(4), 2), (0, 1, 0, 1)
    reports = [shuffled([truth[x]]) for x in people]
    with_person, without = (product(product(a, b), c) for a, b, c in (reports[:3], reports[1:]))
    single = divergence(reports[0], reports[1], Fraction(3, 2))
    assert divergence(with_person, without, Fraction(3, 2)) > single * Fraction(7, 5)
    with pytest.raises(IncompatibleAdjacency):
        ShuffledEpochs(response_event(Fraction(4)), 1, adjacency="add_remove")


def test_passes_compose():
    inside = Gaussian(4.0) * 2 + Laplace(10.0)
    passes = ShuffledEpochs(inside, 10)
    assert passes.parts == (inside * 10).parts
    assert passes.epsilon(1e-6) == (inside * 10).epsilon(1e-6)
    assert (passes * 3).epsilon(1e-6) == ShuffledEpochs(passes, 3).epsilon(1e-6) == (inside * 30).epsilon(1e-6)


# --- Shuffled reports -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n"), [(2, 1), (2, 2), (2, 3), (2, 5), (2, 8), (3, 2), (3, 3), (3, 4), (4, 2), (4, 3), (5, 3)]
)
@pytest.mark.parametrize("growth", [Fraction(3, 2), Fraction(4), Fraction(20)])
def test_randomized_response_of_a_few_people_is_in_the_bracket(k, n, growth):
    event, pairs = ShuffledReports(response_event(growth, k), n), list(shuffled_pairs(response(growth, k), n))
    for y in (*TIMES, growth * Fraction(9, 10)):
        found, truth = event.delta(math.log(y)), worst(pairs, y)
        assert found.lower * ROUNDING <= truth
        assert truth * ROUNDING <= found.upper
        assert found.upper == pytest.approx(float(divergence(*blanket(growth, k, n), y)), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize(("p", "k"), [(Fraction(1, 10), 2), (Fraction(1, 10), 3), (Fraction(1, 5), 4)])
def test_randomized_response_that_seldom_tells_the_truth_is_in_the_bracket(p, k):
    rest = (1 - p) / (k - 1)
    randomizer = [{y: p if y == x else rest for y in range(k)} for x in range(k)]
    event, pairs = ShuffledReports(RandomizedResponse(float(p), k), 3), list(shuffled_pairs(randomizer, 3))
    for y in (*TIMES, rest / p * Fraction(9, 10)):
        found, truth = event.delta(math.log(y)), worst(pairs, y)
        assert found.lower * ROUNDING <= truth <= found.upper / ROUNDING


@pytest.mark.parametrize("seed", range(25))
def test_reports_of_any_kind_are_under_the_bound_for_pure_ones(seed):
    growth, n = [(Fraction(2), 2), (Fraction(3), 3), (Fraction(10), 2), (Fraction(3, 2), 4), (Fraction(5), 3)][seed % 5]
    randomizer = random_randomizer(growth, 3, 2 + seed % 3, seed)
    event, pairs = ShuffledReports(PureDP(math.log(growth)), n), list(shuffled_pairs(randomizer, n))
    for y in (*TIMES, growth * Fraction(9, 10)):
        assert worst(pairs, y) * ROUNDING <= event.delta(math.log(y)).upper


@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(15, 16), Fraction(5, 64)])
def test_reports_whose_two_values_are_not_alike_are_in_the_bracket(chance):
    """One value reports 1 with a chance, the other with four fifths of it."""
    randomizer = [{0: 1 - p, 1: p} for p in (chance, chance * Fraction(4, 5))]
    losses = [math.log(randomizer[0][y] / randomizer[1][y]) for y in (0, 1)]
    event = ShuffledReports(LossDistribution(losses, [float(randomizer[0][y]) for y in (0, 1)]), 4)
    pairs = list(shuffled_pairs(randomizer, 4))
    for y in TIMES:
        found, truth = event.delta(math.log(y)), worst(pairs, y)
        assert found.lower * ROUNDING <= truth <= found.upper / ROUNDING


def test_rounds_of_shuffled_reports_compose():
    growth, n = Fraction(4), 3
    randomizer, other = response(growth, 3), response(Fraction(2), 3)
    pairs = []
    for (a, b), (c, d) in itertools.product(neighbours(3, n), repeat=2):
        if c[0] == a[0] and d[0] == b[0] and a[1:] == c[1:]:
            first, second = (shuffled(randomizer[x] for x in people) for people in (a, b))
            pairs.append(
                (product(first, shuffled(other[x] for x in c)), product(second, shuffled(other[x] for x in d)))
            )
    event = ShuffledReports(response_event(growth, 3), n) + ShuffledReports(response_event(Fraction(2), 3), n)
    for y in TIMES:
        assert worst(pairs, y) * ROUNDING <= event.delta(math.log(y)).upper


def test_the_pair_that_leaves_out_what_looks_like_neither_is_under_the_truth():
    """As it was printed before its errata: a lower side, and no bound (THEORY 2.9)."""
    growth, k, n, y = Fraction(4), 3, 2, Fraction(3)
    label = 1 / (growth + k - 1)
    printed = divergence(*clones(label, growth, n, 1 - (growth + 1) * label), y)
    truth = worst(shuffled_pairs(response(growth, k), n), y)
    assert printed * Fraction(5, 4) < truth
    found = ShuffledReports(response_event(growth, k), n).delta(math.log(y))
    assert found.lower <= float(truth) <= found.upper * (1 + 1e-12)


@pytest.mark.parametrize("n", [2, 5, 20, 60])
@pytest.mark.parametrize("growth", [Fraction(3, 2), Fraction(3), Fraction(20)])
def test_pure_reports_have_the_pair_of_2022_and_lie_under_that_of_2021(n, growth):
    event = ShuffledReports(PureDP(math.log(growth)), n)
    stronger, first = clones(1 / (growth + 1), growth, n), clones(1 / (2 * growth), growth, n)
    for y in TIMES:
        found = event.delta(math.log(y)).upper
        assert found == pytest.approx(float(divergence(*stronger, y)), rel=1e-11, abs=1e-15)
        assert found <= float(divergence(*first, y)) * (1 + 1e-11) + 1e-15


CROWDS = [(0.4, 10_000, 1e-6), (1.0, 100_000, 1e-6), (2.0, 10**6, 1e-8), (4.0, 10**6, 1e-6)]


@pytest.mark.parametrize(("epsilon", "n", "delta"), CROWDS)
def test_pure_reports_lie_under_the_closed_forms_in_print(epsilon, n, delta):
    found = ShuffledReports(PureDP(epsilon), n).epsilon(delta).upper
    # Feldman, McMillan and Talwar 2021, Theorem 3.1, for ε0 ≤ ln(n / (16 ln(2/δ)))
    assert epsilon <= math.log(n / (16 * math.log(2 / delta)))
    growth = math.exp(epsilon)
    half = 8 * math.sqrt(growth * math.log(4 / delta) / n) + 8 * growth / n
    assert found <= math.log1p((growth - 1) / (growth + 1) * half)
    if epsilon < 0.5:  # Erlingsson et al. 2019, for n ≥ 1000 and δ < 1/100
        assert found <= 12 * epsilon * math.sqrt(math.log(1 / delta) / n)


@pytest.mark.parametrize("k", [3, 10, 1000])
@pytest.mark.parametrize("n", [150, 1000, 30_000, 10**7])
def test_reports_of_more_than_two_values_are_known_within_a_hundredth(k, n):
    event = ShuffledReports(RandomizedResponse(1.5 / (1.5 + k - 1) * 1.2, k), n)
    assert narrow(event.epsilon(1e-6), 0.02)
    assert narrow((event * 10).epsilon(1e-6), 0.02)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [1000, 30_000])
def test_pure_reports_may_be_responses_of_three_values(n, epsilon):
    """So they are not said to cost less than these."""
    responses = RandomizedResponse(math.exp(epsilon) / (math.exp(epsilon) + 2), 3)
    truth = ShuffledReports(responses, n).epsilon(1e-6)
    found = ShuffledReports(PureDP(epsilon), n).epsilon(1e-6)
    assert truth.lower * (1 - 1e-9) <= found.lower <= truth.upper


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_crowd_whose_numbers_are_taken_together_is_above_one_that_is_counted(k):
    """Beyond 200 reports numbers are spread; the bound is near the pair itself, which is summed here in doubles."""
    growth, n = 25.0, 300
    p = 1 / (growth + k - 1)
    counted = np.meshgrid(np.arange(60), np.arange(60), np.arange(120 if k > 2 else 1))
    first, second, neither = (numbers.ravel().astype(float) for numbers in counted)
    own = n - first - second - neither
    logs_of = gammaln(n + 1) - sum(gammaln(numbers + 1) for numbers in (first, second, neither, own))
    logs_of += (first + second) * math.log(p) + neither * math.log(max(k - 2, 1) * p) + own * math.log1p(-k * p)
    ratios = (growth * first + second + neither) / n, (first + growth * second + neither) / n
    masses = [np.exp(logs_of) * ratio for ratio in ratios]
    assert math.fsum(masses[0]) == pytest.approx(1, abs=1e-9)
    event = ShuffledReports(RandomizedResponse(growth / (growth + k - 1), k), n)
    for epsilon in (0.0, 0.3, 1.0):
        truth = float(np.maximum(masses[0] - math.exp(epsilon) * masses[1], 0).sum())
        assert truth * (1 - 1e-8) <= event.delta(epsilon).upper <= truth * 1.03


def test_the_more_reports_the_less_each_loses():
    ends = [ShuffledReports(PureDP(2.0), n).epsilon(1e-6) for n in (1, 10, 150, 201, 1000, 10**4, 10**6, 10**9)]
    assert all(more.upper <= fewer.upper * (1 + 1e-12) for fewer, more in itertools.pairwise(ends))
    assert all(more.lower <= fewer.lower * (1 + 1e-12) for fewer, more in itertools.pairwise(ends))


@pytest.mark.parametrize("local", [PureDP(0.0), PureDP(60.0), RandomizedResponse(0.5), PureDP(1e-12)], ids=repr)
def test_a_report_that_nobody_hides_is_itself(local):
    assert ShuffledReports(local, 1000).parts == local.parts


def test_of_a_claimed_report_nothing_is_said_beneath():
    found = ShuffledReports(Renyi(formula=PureDP(1.0)), 100).epsilon(1e-6)
    assert (found.lower, found.upper) == (0.0, ShuffledReports(PureDP(1.0), 100).epsilon(1e-6).upper)


@pytest.mark.parametrize("epsilon", [1e-9, 50.0])
def test_a_report_is_hidden_up_to_both_ends_and_not_beyond(epsilon):
    beyond = math.nextafter(epsilon, 0.0 if epsilon < 1 else math.inf)
    assert ShuffledReports(PureDP(epsilon), 10).parts != PureDP(epsilon).parts
    assert ShuffledReports(PureDP(beyond), 10).parts == PureDP(beyond).parts


def test_notions_of_shuffled_reports():
    event = ShuffledReports(PureDP(2.0), 10_000)
    assert event.pure() == pytest.approx(2.0, rel=1e-14)
    assert event.infinite_mass == 0
    assert float(event.epsilon(0)) == pytest.approx(2.0, rel=1e-12)
    assert event.rdp(math.inf) == pytest.approx(2.0, rel=1e-14)
    assert event.zcdp().rho == pytest.approx(2.0, rel=1e-12)
    assert event.gdp() == pytest.approx(PureDP(2.0).gdp(), rel=1e-9)
    assert event.cdp().tau == pytest.approx(2.0, rel=1e-12)
    assert event.group(3).rdp(2) > event.rdp(2) * 3
    assert event.group(3).epsilon(1e-6).upper < 4 * event.epsilon(1e-6).upper
    # One coin of bias (E-1)/(E+1) among 2n/(E+1): the loss has the variance 2 (E-1)²/(E+1)n, and D_2 is about that.
    assert event.rdp(2) == pytest.approx(2 * math.expm1(2.0) ** 2 / (math.exp(2.0) + 1) / 10_000, rel=0.02)
    assert event.rdp(60) == pytest.approx(30 * event.rdp(2), rel=0.2)


def test_a_batch_of_shuffled_reports():
    reports = ShuffledReports(PureDP(1.0), 100)
    event = SampledWithoutReplacement(reports, 1000, 100)
    assert event.delta(0.01).upper == pytest.approx(
        0.1 * reports.delta(math.log1p(10 * math.expm1(0.01))).upper, rel=1e-9
    )
    assert event.infinite_mass == 0
    assert SampledWithoutReplacement(reports + Laplace(1.0), 1000, 100).rdp(2) < reports.rdp(2) + Laplace(1.0).rdp(2)


# --- Laws that hold of every event ----------------------------------------------------------------------------------


@law(25)
@given(crowds, small_deltas, st.floats(0, 3), st.integers(1, 20))
def test_epsilon_and_delta_of_crowds_fall_and_undo_each_other(event, delta, epsilon, count):
    cost, chance = event.epsilon(delta), event.delta(epsilon)
    assert 0 <= cost.lower <= cost.upper
    assert 0 <= chance.lower <= chance.upper <= 1
    assert event.epsilon(min(10 * delta, 0.5)).lower <= cost.upper
    assert event.delta(epsilon + 0.1).lower <= chance.upper
    assert event.delta(cost.upper).lower <= delta * (1 + 1e-12)
    assert cost.lower == 0 or event.delta(cost.lower).upper >= delta * (1 - 1e-12)
    assert cost.lower <= (event * count).epsilon(delta).upper * (1 + 1e-12)


@law(25)
@given(crowds, small_deltas, logs(1.01, 100))
def test_no_notion_of_a_crowd_is_cheaper_than_it_is(event, delta, alpha):
    assert event.rdp(alpha) <= event.zcdp().rho * alpha * (1 + 1e-9) + event.zcdp().xi
    exact = event.epsilon(delta).lower
    assert event.zcdp().epsilon(delta).upper >= exact
    assert Renyi([(alpha, event.rdp(alpha))]).epsilon(delta).upper >= exact
    for convert in (lambda: event.cdp(), lambda: Gaussian(1 / event.gdp()), lambda: PureDP(event.pure())):
        try:
            weaker = convert()
        except (NoSuchGuarantee, InvalidArgument, ZeroDivisionError):
            continue
        assert weaker.epsilon(delta).upper >= exact


@law(20)
@given(crowds)
def test_divergences_of_a_crowd_never_fall_with_the_order(event):
    values = event.rdp([1, 1 + 1e-9, 1.0001, 1.01, 1.3, 2, 2.5, 7, 40, 300, math.inf])
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))


@law(10)
@given(crowds, st.integers(2, 3), logs(1e-6, 1e-2))
def test_a_larger_group_in_a_crowd_costs_more(event, size, delta):
    assert event.group(1).epsilon(delta) == event.epsilon(delta)
    assert event.group(size).epsilon(delta).upper >= event.epsilon(delta).lower * (1 - 1e-12)


# --- What is refused ------------------------------------------------------------------------------------------------


ADD_REMOVE = Gaussian(1.0, adjacency="add_remove")
REFUSED = {
    "batch of add_remove": lambda: SampledWithoutReplacement(ADD_REMOVE, 10, 1),
    "batch of a Poisson sample": lambda: SampledWithoutReplacement(PoissonSampled(Gaussian(1.0), 0.1), 10, 1),
    "Poisson sample of a batch": lambda: PoissonSampled(SampledWithoutReplacement(Gaussian(1.0), 10, 1), 0.1),
    "batch said to be add_remove": lambda: SampledWithoutReplacement(Gaussian(1.0), 10, 1, adjacency="add_remove"),
    "passes of add_remove": lambda: ShuffledEpochs(ADD_REMOVE, 3),
    "passes of a Poisson sample": lambda: ShuffledEpochs(PoissonSampled(Gaussian(1.0), 0.1), 3),
    "reports of add_remove": lambda: ShuffledReports(PureDP(1.0, adjacency="add_remove"), 10),
    "a batch beside a Poisson sample": lambda: (
        SampledWithoutReplacement(Gaussian(1.0), 10, 1) + PoissonSampled(Gaussian(1.0), 0.1)
    ),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_other_neighbours_are_refused(make):
    with pytest.raises(IncompatibleAdjacency):
        make()


@pytest.mark.parametrize("local", [Gaussian(1.0), ApproximateDP(1.0, 1e-9), ZeroConcentrated(0.1), Renyi([(2, 0.1)])])
def test_reports_that_are_not_pure_are_refused(local):
    with pytest.raises(InvalidArgument, match="unbounded, or infinite"):
        ShuffledReports(local, 100)


@pytest.mark.parametrize(
    "inside",
    [
        SampledWithoutReplacement(Gaussian(1.0), 1000, 10),
        ShuffledReports(PureDP(1.0), 99),
        Gaussian(1.0) + ShuffledReports(PureDP(1.0), 101) * 2,
        Renyi(formula=ShuffledReports(PureDP(1.0), 101)),
        ShuffledEpochs(ShuffledReports(PureDP(1.0), 101), 2),
    ],
    ids=repr,
)
def test_a_batch_of_another_size_than_what_is_run_on_it_says_is_refused(inside):
    with pytest.raises(InvalidArgument, match="and the batch has 100"):
        SampledWithoutReplacement(inside, 1000, 100)


@pytest.mark.parametrize("make", [lambda e: SampledWithoutReplacement(e, 9, 3), lambda e: ShuffledEpochs(e, 3)])
@pytest.mark.parametrize("event", [PrivacyProfile([(1.0, 1e-6)]), LossDistribution([0.0], [1.0])], ids=repr)
def test_claims_stay_claims(make, event):
    assert make(event).claimed
    assert not make(Gaussian(1.0)).claimed
    assert ShuffledReports(LossDistribution([0.0], [1.0]), 9).claimed


def test_the_text_of_crowds():
    text = "sampled_without_replacement(gaussian(1), 1000, 10) * 3 + shuffled_reports(randomized_response(0.75), 1000)"
    event = SampledWithoutReplacement(Gaussian(1.0), 1000, 10) * 3 + ShuffledReports(RandomizedResponse(0.75), 1000)
    assert parse_event(text) == event
    assert parse_event("shuffled_epochs(laplace(2) + gaussian(3), epochs=5)") == ShuffledEpochs(
        Laplace(2.0) + Gaussian(3.0), 5
    )
    assert type(ShuffledEpochs(Gaussian(1.0), np.int64(3)).epochs) is int


@pytest.mark.parametrize(
    "inside",
    [
        ShuffledReports(PureDP(1.0), 10),
        ShuffledReports(PureDP(1.0), 10) * 2 + Gaussian(1.0),
        Renyi(formula=ShuffledReports(PureDP(1.0), 10)),
    ],
    ids=repr,
)
def test_batches_of_a_pass_over_a_batch_may_be_smaller_than_it(inside):
    inner = ShuffledEpochs(inside, 2)
    assert SampledWithoutReplacement(inner, 1000, 100).event == inner


@pytest.mark.parametrize(
    "local",
    [
        SampledWithoutReplacement(PureDP(1.0), 100, 1),
        ShuffledReports(PureDP(1.0), 10),
        PureDP(1.0) + ShuffledEpochs(SampledWithoutReplacement(PureDP(1.0), 100, 1), 2),
    ],
)
def test_no_crowd_makes_a_report(local):
    with pytest.raises(InvalidArgument, match="made from one person's value"):
        ShuffledReports(local, 50)
    assert ShuffledReports(ShuffledReports(PureDP(1.0), 1), 50).n == 50


# What is refused.

# Every parameter: its name, how to pass it, and what else is outside its range.
PARAMETERS = [
    ("n", lambda v: SampledWithoutReplacement(Gaussian(1.0), v, 1), [0, 1.0, 1.5, math.inf, 10**15 + 1]),
    ("batch", lambda v: SampledWithoutReplacement(Gaussian(1.0), 10, v), [0, 1.0, 1.5, math.inf, 11]),
    ("epochs", lambda v: ShuffledEpochs(Gaussian(1.0), v), [0, 1.0, 1.5, math.inf, 10**9 + 1]),
    ("n", lambda v: ShuffledReports(PureDP(1.0), v), [0, 1.0, 1.5, math.inf, 10**9 + 1]),
]


@pytest.mark.parametrize(("name", "make", "value"), list(bad_parameters(PARAMETERS)))
def test_a_bad_parameter_is_refused_by_name_and_range(name, make, value):
    assert is_refused(name, make, value)


TABLES = {
    "batch of a number": lambda: SampledWithoutReplacement(3, 10, 1),
    "batch of None": lambda: SampledWithoutReplacement(None, 10, 1),
    "passes of a number": lambda: ShuffledEpochs(3, 10),
    "reports of a number": lambda: ShuffledReports(0.75, 10),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_a_bad_table_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()
