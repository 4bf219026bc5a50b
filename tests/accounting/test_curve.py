"""Curves: closed forms at 60 digits, brute force over all outcomes, and what does not exist."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

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
)
from sitr.errors import IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from tests.accounting.helpers import (
    black_box_outcomes,
    brute_delta,
    composed_outcomes,
    discrete_gaussian_delta,
    discrete_laplace_outcomes,
    gaussian_delta,
    holds,
    holds_epsilon,
    laplace_delta,
    narrow,
    response_outcomes,
    sampled,
)

NAN, INF = math.nan, math.inf
DELTAS = [1e-2, 1e-6, 1e-12, 1e-20, 1e-30]
EPSILONS = [0.0, 1e-6, 0.1, 0.5, 1.0, 2.5]

# Closed forms.


@pytest.mark.parametrize("count", [1, 30, 10**6])
@pytest.mark.parametrize("sigma", [1e-2, 0.1, 0.7, 3.0, 50.0, 1e3])
def test_gaussians_hold_the_truth(sigma, count):
    m = mpmath.mpf(1) / mpmath.mpf(sigma) * mpmath.sqrt(count)
    for delta in DELTAS:
        found = (Gaussian(sigma) * count).epsilon(delta)
        assert holds_epsilon(found, delta, lambda e: gaussian_delta(m, e))
        assert narrow(found, relative=1e-9)


@pytest.mark.parametrize("sigma", [1e-2, 0.5, 3.0, 1e3])
def test_gaussian_deltas_hold_the_truth(sigma):
    for epsilon in [0.0, 1e-9, 1e-3, 0.5, 3.0, 40.0]:
        found, truth = Gaussian(sigma).delta(epsilon), gaussian_delta(1 / mpmath.mpf(sigma), epsilon)
        if truth > 1e-290:
            assert found.lower <= truth <= found.upper
            assert narrow(found, relative=1e-9, absolute=0)


def test_gaussians_of_different_noise_compose_to_one():
    m = mpmath.sqrt(sum(n / mpmath.mpf(s) ** 2 for s, n in ((2.0, 3), (7.0, 40), (90.0, 1000))))
    event = Gaussian(2.0) * 3 + Gaussian(7.0) * 40 + Gaussian(90.0) * 1000
    for delta in DELTAS:
        assert holds_epsilon(event.epsilon(delta), delta, lambda e: gaussian_delta(m, e))


@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 20.0, 1e4])
def test_one_laplace_holds_the_truth(scale):
    for delta in DELTAS:
        found = Laplace(scale).epsilon(delta)
        assert holds_epsilon(found, delta, lambda e: laplace_delta(1 / mpmath.mpf(scale), e))
        assert narrow(found)
    for epsilon in [0.0, 0.3 / scale, 0.999 / scale, 1.001 / scale]:
        found, truth = Laplace(scale).delta(epsilon), laplace_delta(1 / mpmath.mpf(scale), epsilon)
        assert found.lower <= truth <= found.upper


@pytest.mark.parametrize(
    ("delta", "epsilon"), [(1e-6, 8.20444034), (1e-12, 11.819534), (1e-20, 15.2930059), (1e-30, 18.6715197)]
)
def test_a_thousand_laplaces(delta, epsilon):
    found = (Laplace(20.0) * 1000).epsilon(delta)
    assert found.lower <= epsilon * (1 + 1e-8)
    assert found.upper >= epsilon * (1 - 1e-8)
    assert narrow(found)


GOLDEN = [
    (PoissonSampled(Gaussian(1.1), 256 / 60000) * 14062, 1e-5, 2.38159692),
    (PoissonSampled(Gaussian(1.1), 256 / 60000) * 14062, 1e-12, 4.1744687),
    (PoissonSampled(Gaussian(1.1), 256 / 60000) * 14062, 1e-30, 7.79646818),
    (PoissonSampled(Gaussian(0.6), 1e-3) * 10**5, 1e-6, 6.96084388),
    (PoissonSampled(Gaussian(0.8), 1e-2) * 10**6, 1e-6, 268.397637),
    (PoissonSampled(Gaussian(0.8), 1e-2) * 10**6, 1e-30, 401.829782),
    (RandomizedResponse(0.52) * 500, 1e-6, 9.569370),
    (Gaussian(50.0) * 1000, 1e-6, 2.921601),
    (PoissonSampled(Gaussian(1.0), 1e-4) * 10**6, 1e-30, 3.0976284),
]


@pytest.mark.parametrize(("event", "delta", "epsilon"), GOLDEN, ids=repr)
def test_numbers_that_were_found_another_way(event, delta, epsilon):
    found = event.epsilon(delta)
    assert found.upper == pytest.approx(epsilon, rel=2e-7)
    assert narrow(found, relative=1e-4 if isinstance(event.events[0][0], RandomizedResponse) else 1e-6)


@pytest.mark.parametrize("e0", [0.01, 1.0, 5.0])
def test_the_exponential_mechanism_follows_its_profile(e0):
    for epsilon in [0.0, 0.3 * e0, 0.9 * e0, e0, 2 * e0]:
        inside = max(math.exp(e0 / 2) - math.exp(epsilon / 2), 0.0)
        assert holds(Exponential(e0).delta(epsilon), inside**2 / math.expm1(e0), 1e-12)


# Brute force over all outcomes.

FINITE = [
    (RandomizedResponse(0.75), response_outcomes(0.75, 2)),
    (RandomizedResponse(0.2), response_outcomes(0.2, 2)),
    (RandomizedResponse(0.5, 4), response_outcomes(0.5, 4)),
    (RandomizedResponse(0.1, 3), response_outcomes(0.1, 3)),
    (PureDP(0.7), black_box_outcomes(0.7, 0.0)),
    (PureDP(0.0), ([0.5, 0.5], [0.5, 0.5])),
    (ApproximateDP(0.7, 0.01), black_box_outcomes(0.7, 0.01)),
    (ApproximateDP(0.0, 0.2), black_box_outcomes(0.0, 0.2)),
    (Guarantees([(0.7, 0.01)]), black_box_outcomes(0.7, 0.01)),
    (DiscreteLaplace(1.0), discrete_laplace_outcomes(1.0, 1)),
    (DiscreteLaplace(2.5), discrete_laplace_outcomes(2.5, 1)),
    (DiscreteLaplace(1.7, 3), discrete_laplace_outcomes(1.7, 3)),
    (
        LossDistribution([math.log(2), math.log(0.5), 0.0], [0.4, 0.2, 0.3], 0.1),
        ([0.4, 0.2, 0.3, 0.1, 0], [0.2, 0.4, 0.3, 0, 0.1]),
    ),
    (LossDistribution([math.log(3), -math.log(2)], [0.6, 0.4]), ([0.6, 0.4, 0.0], [0.2, 0.8, 0.0])),
    (LossDistribution([math.log(3), 0.0], [0.6, 0.4]), ([0.6, 0.4, 0.0], [0.2, 0.4, 0.4])),
]


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(("event", "outcomes"), FINITE, ids=lambda value: repr(value)[:60])
def test_finite_mechanisms_equal_the_sum_over_all_outcomes(event, outcomes, times):
    if len(outcomes[0]) > 100 and times == 3:
        times = 2
    p, q = composed_outcomes(*outcomes, times)
    for epsilon in EPSILONS:
        found, truth = (event * times).delta(epsilon), brute_delta(p, q, epsilon)
        assert found.lower <= truth * (1 + 1e-11) + 1e-16
        assert found.upper >= truth * (1 - 1e-11) - 1e-16
        assert narrow(found, relative=1e-6, absolute=1e-15)


@pytest.mark.parametrize("rate", [0.01, 0.4, 0.99])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("event", "outcomes"), [row for row in FINITE if len(row[1][0]) < 100], ids=lambda value: repr(value)[:60]
)
def test_sampled_finite_mechanisms_equal_the_sum_over_all_outcomes(event, outcomes, rate, times):
    p, q = composed_outcomes(*sampled(*outcomes, rate), times)
    for epsilon in EPSILONS:
        found, truth = (PoissonSampled(event, rate) * times).delta(epsilon), brute_delta(p, q, epsilon)
        assert found.lower <= truth * (1 + 1e-11) + 1e-15
        assert found.upper >= truth * (1 - 1e-11) - 1e-15
        assert narrow(found, relative=1e-4, absolute=1e-14)


@pytest.mark.parametrize(("event", "outcomes"), FINITE, ids=lambda value: repr(value)[:60])
def test_finite_divergences_equal_the_sum_over_all_outcomes(event, outcomes):
    p, q = map(np.asarray, outcomes)
    if event.infinite_mass > 0:
        with pytest.raises(NoSuchGuarantee):
            event.rdp(2)
        return
    kept = (p > 0) & (q > 0)
    p, q = p[kept], q[kept]
    for alpha in (1.01, 2, 7.5):
        sums = [math.fsum(a**alpha * b ** (1 - alpha)) for a, b in ((p, q), (q, p))]
        assert event.rdp(alpha) == pytest.approx(max(map(math.log, sums)) / (alpha - 1), rel=1e-9, abs=1e-12)
    kl = max(math.fsum(a * np.log(a / b)) for a, b in ((p, q), (q, p)))
    assert event.expected_loss() == pytest.approx(kl, rel=1e-9, abs=1e-12)


def test_a_mixed_composition_equals_the_sum_over_all_outcomes():
    rows = [
        (RandomizedResponse(0.7), response_outcomes(0.7, 2)),
        (ApproximateDP(0.3, 0.02), black_box_outcomes(0.3, 0.02)),
    ]
    rows += [(DiscreteLaplace(2.0, 2), discrete_laplace_outcomes(2.0, 2))]
    p, q, event = np.ones(1), np.ones(1), None
    for one, (a, b) in rows:
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
        event = one if event is None else event + one
    for epsilon in EPSILONS:
        assert holds(event.delta(epsilon), brute_delta(p, q, epsilon), 1e-11)


@pytest.mark.parametrize(
    ("scale", "epsilon", "shown"), [(1.0, 1.0, 0.1414), (1.0, 0.0, 0.3989)], ids=["THEORY 2.4", "the mass at zero"]
)
def test_the_discrete_gaussian_of_theory(scale, epsilon, shown):
    assert float(DiscreteGaussian(scale).delta(epsilon)) == pytest.approx(shown, abs=5e-5)


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (1.0, 1), (1.0, 3), (4.0, 1), (30.0, 2), (60.0, 1), (200.0, 7)])
def test_one_discrete_gaussian_equals_its_direct_sum(scale, shift):
    for epsilon in [0.0, 0.5 * shift / scale, 3.0 * shift / scale]:
        found, truth = DiscreteGaussian(scale, shift).delta(epsilon), discrete_gaussian_delta(scale, shift, epsilon)
        assert found.lower <= truth * (1 + mpmath.mpf(10) ** -12)
        assert truth * (1 - mpmath.mpf(10) ** -12) <= found.upper
        assert narrow(found, relative=1e-4, absolute=1e-30)


def test_two_discrete_gaussians_equal_the_sum_over_all_outcomes():
    x = np.arange(-40, 44)
    p, q = np.exp(-((x - 2) ** 2) / 8.0), np.exp(-(x**2) / 8.0)
    p, q = composed_outcomes(p / p.sum(), q / q.sum(), 2)
    for epsilon in EPSILONS:
        assert holds((DiscreteGaussian(2.0, 2) * 2).delta(epsilon), brute_delta(p, q, epsilon), 1e-11)


def test_discrete_noise_costs_what_theory_says_against_continuous():
    assert float(DiscreteLaplace(1.0).delta(0)) == pytest.approx(0.4621, abs=5e-5)
    assert float(Laplace(1.0).delta(0)) == pytest.approx(0.3935, abs=5e-5)
    assert float(Gaussian(1.0).delta(1)) == pytest.approx(0.1269, abs=5e-5)


def test_the_exponential_mechanism_is_no_worse_than_its_curve():
    generator = np.random.default_rng(0)
    event, closest = Exponential(1.5), 0.0
    for _ in range(300):
        size = generator.integers(2, 6)
        here = generator.uniform(0, 3, size)
        there = here + generator.choice([-0.5, 0.0, 0.5], size)
        p, q = (np.exp(1.5 * u) / np.sum(np.exp(1.5 * u)) for u in (here, there))
        for epsilon in (0.0, 0.4, 1.0):
            upper = event.delta(epsilon).upper
            closest = max(closest, brute_delta(p, q, epsilon) / upper)
            assert brute_delta(p, q, epsilon) <= upper * (1 + 1e-12)
    assert closest > 0.8


@pytest.mark.parametrize("times", [1, 4])
def test_several_guarantees_cost_no_more_than_each(times):
    points = [(0.0, 0.1), (0.5, 1e-2), (1.0, 1e-5), (2.0, 0.0)]
    several = Guarantees(points) * times
    for epsilon in [0.0, 0.3, 0.5, 0.8, 1.0, 1.9, 3.0]:
        for point in points:
            assert several.delta(epsilon).lower <= (ApproximateDP(*point) * times).delta(epsilon).upper * (1 + 1e-12)


def test_several_guarantees_hold_each_point():
    points = [(0.0, 0.1), (0.5, 1e-2), (1.0, 1e-5)]
    for epsilon, delta in points:
        assert float(Guarantees(points).delta(epsilon)) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("rate", [1e-3, 0.3])
@pytest.mark.parametrize("event", [Laplace(0.7), Laplace(5.0), ApproximateDP(0.8, 1e-3), Exponential(1.2)], ids=repr)
def test_one_sampled_step_follows_theory(event, rate):
    """THEORY 2.7: the remove order by its formula; the add order by duality from the symmetric pair."""
    for epsilon in [0.0, 0.001, 0.05, 0.4, 1.0]:
        remove = rate * float(event.delta(math.log1p(math.expm1(epsilon) / rate)))
        inner = math.expm1(-epsilon) / rate
        if inner > -1:
            level = -math.log1p(inner)  # ≥ 0: the unsampled profile below 0, by its own duality
            below = -math.expm1(-level) + math.exp(-level) * float(event.delta(level))
            dual = rate * below
        else:
            dual = -math.expm1(-epsilon)
        add = -math.expm1(epsilon) + math.exp(epsilon) * dual
        found, truth = PoissonSampled(event, rate).delta(epsilon), max(remove, add, 0.0)
        assert found.lower <= truth * (1 + 1e-9) + 1e-15
        assert found.upper >= truth * (1 - 1e-9) - 1e-15
        assert found.upper - found.lower <= 1e-4 * found.upper + 1e-12


# Groups.


def mixture_delta(sigma, rate, size, epsilon):
    """δ of Σ_j Bin(size, rate)(j) N(j, σ²) against N(0, σ²) by quadrature, the larger of both orders."""
    weights = [math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]

    def gain(x, forward):
        mixture = sum(w * norm.pdf(x, j, sigma) for j, w in enumerate(weights))
        plain = norm.pdf(x, 0, sigma)
        return max(mixture - math.exp(epsilon) * plain if forward else plain - math.exp(epsilon) * mixture, 0.0)

    ends = (-10 * sigma, size + 10 * sigma)
    return max(quad(gain, *ends, args=(f,), limit=400, epsabs=1e-12)[0] for f in (True, False))


@pytest.mark.parametrize(("sigma", "rate", "size"), [(1.0, 0.1, 2), (0.8, 0.4, 2), (2.0, 0.05, 5)])
def test_a_sampled_group_is_the_binomial_mixture(sigma, rate, size):
    curve = PoissonSampled(Gaussian(sigma), rate).group(size)
    for epsilon in [0.0, 0.2, 1.0]:
        found, truth = curve.delta(epsilon), mixture_delta(sigma, rate, size, epsilon)
        assert found.lower <= truth + 1e-8
        assert found.upper >= truth - 1e-8
        assert narrow(found, relative=1e-4, absolute=1e-8)


GROUPS = [
    (Gaussian(6.0), Gaussian(2.0)),
    (Gaussian(6.0) * 20, Gaussian(2.0) * 20),
    (Laplace(6.0), Laplace(2.0)),
    (Laplace(6.0) * 7, Laplace(2.0) * 7),
    (DiscreteGaussian(6.0), DiscreteGaussian(6.0, 3)),
    (DiscreteLaplace(6.0), DiscreteLaplace(6.0, 3)),
    (DiscreteLaplace(6.0, 2) * 5, DiscreteLaplace(6.0, 6) * 5),
    (Exponential(0.2), Exponential(0.6)),
    (PureDP(0.2), PureDP(0.6)),
    (ZeroConcentrated(0.1), ZeroConcentrated(0.9)),
]


@pytest.mark.parametrize(("event", "grown"), GROUPS, ids=repr)
def test_a_group_of_three_is_noise_moved_three_times_as_far(event, grown):
    for delta in (1e-2, 1e-6):
        found, truth = event.group(3).epsilon(delta), grown.epsilon(delta)
        assert found.upper >= truth.lower
        assert found.upper == pytest.approx(truth.upper, rel=1e-4)


def test_a_group_of_black_boxes_follows_theory():
    found = ApproximateDP(0.5, 1e-4).group(3)
    assert float(found.delta(1.5)) == pytest.approx(1e-4 * math.expm1(1.5) / math.expm1(0.5), rel=1e-9)


# Trade-offs and bad outcomes.


@pytest.mark.parametrize("m", [0.05, 0.5, 1.0, 3.0, 5.0])
def test_the_gaussian_tradeoff_is_its_closed_form(m):
    for x in [1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999]:
        found, truth = Gaussian(1 / m).tradeoff(x), float(norm.cdf(norm.isf(x) - m))
        assert found.lower <= truth * (1 + 1e-9) + 1e-15
        assert found.upper >= truth * (1 - 1e-9) - 1e-15
        assert narrow(found, relative=1e-6, absolute=1e-8)


def test_the_tradeoff_of_theory():
    assert float(Gaussian(1.0).tradeoff(0.5)) == pytest.approx(0.1587, abs=5e-5)


def neyman_pearson(p, q, x):
    """The least type-II error at type-I error x, over randomized tests of Q against P, the lesser of both orders."""
    best = 1.0
    for a, b in ((np.asarray(p), np.asarray(q)), (np.asarray(q), np.asarray(p))):
        order = np.argsort(-np.where(b > 0, a / np.where(b > 0, b, 1), np.inf), kind="stable")
        error, power = np.append(0.0, np.cumsum(b[order])), np.append(0.0, np.cumsum(a[order]))
        # Among points of equal error keep the largest power.
        best = min(best, 1 - max(float(np.interp(x, error, power)), float(np.max(power[error <= x]))))
    return best


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("event", "outcomes"), [row for row in FINITE if len(row[1][0]) < 100], ids=lambda value: repr(value)[:60]
)
def test_the_tradeoff_of_finite_mechanisms_is_neyman_pearson(event, outcomes, times):
    p, q = composed_outcomes(*outcomes, times)
    for x in [0.01, 0.1, 0.3, 0.5, 0.77, 0.95]:
        found, truth = (event * times).tradeoff(x), neyman_pearson(p, q, x)
        assert found.lower <= truth + 1e-9
        assert found.upper >= truth - 1e-9
        assert found.upper - found.lower <= 1e-4


def test_a_bad_outcome_is_one_less_the_tradeoff():
    event = RandomizedResponse(0.7) * 5
    tests = event.tradeoff(0.1)
    assert (event.bad_outcome(0.1).lower, event.bad_outcome(0.1).upper) == (1 - tests.upper, 1 - tests.lower)


def test_nothing_happens_where_nothing_can():
    assert Gaussian(1.0).bad_outcome(0).upper == 0
    assert ApproximateDP(1.0, 0.01).bad_outcome(0).upper == pytest.approx(0.01)
    assert Gaussian(1.0).tradeoff([0, 1]).lower.tolist() == [1, 0]


# Rényi divergences.


@pytest.mark.parametrize("alpha", [1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.001, 1.5, 2, 10, 1e3, 1e6])
@pytest.mark.parametrize(("p", "k"), [(0.52, 2), (0.75, 2), (0.4, 5)])
def test_the_divergence_of_randomized_response_at_any_order(p, k, alpha):
    with mpmath.workdps(60):
        a, truth_p = mpmath.mpf(alpha), mpmath.mpf(p)
        r = (1 - truth_p) / (k - 1)
        total = truth_p**a * r ** (1 - a) + r**a * truth_p ** (1 - a) + (k - 2) * r
        assert RandomizedResponse(p, k).rdp(alpha) == pytest.approx(float(mpmath.log(total) / (a - 1)), rel=1e-7)


@pytest.mark.parametrize("alpha", [1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.001, 1.5, 2, 10, 1e3, 1e6])
@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_the_divergence_of_laplace_at_any_order(scale, alpha):
    with mpmath.workdps(60):
        a, e = mpmath.mpf(alpha), 1 / mpmath.mpf(scale)
        total = a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
        assert Laplace(scale).rdp(alpha) == pytest.approx(float(mpmath.log(total) / (a - 1)), rel=1e-7)


@pytest.mark.parametrize("alpha", [2, 3, 8, 32])
@pytest.mark.parametrize(("sigma", "rate"), [(1.1, 256 / 60000), (0.7, 0.1), (4.0, 0.5)])
def test_the_divergence_of_a_sampled_gaussian_at_whole_orders(sigma, rate, alpha):
    with mpmath.workdps(60):
        s, q = mpmath.mpf(sigma), mpmath.mpf(rate)
        terms = [
            mpmath.binomial(alpha, k) * (1 - q) ** (alpha - k) * q**k * mpmath.exp(k * (k - 1) / (2 * s**2))
            for k in range(alpha + 1)
        ]
        truth = float(mpmath.log(mpmath.fsum(terms)) / (alpha - 1))
    assert PoissonSampled(Gaussian(sigma), rate).rdp(alpha) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("alpha", [1, 1 + 1e-12, 1.5, 2, 1e6, 1e12, 1e300])
@pytest.mark.parametrize("sigma", [1e-4, 1.0, 1e6])
def test_the_divergence_of_a_gaussian_at_any_order(sigma, alpha):
    assert Gaussian(sigma).rdp(alpha) == pytest.approx(alpha / (2 * sigma**2), rel=1e-9)


# What does not exist.

ABSENT = {
    "Gaussian is not pure": lambda: Gaussian(1.0).pure(),
    "a Gaussian at delta 0": lambda: Gaussian(1.0).epsilon(0),
    "a sampled Gaussian is not pure": lambda: PoissonSampled(Gaussian(1.0), 0.1).pure(),
    "a discrete Gaussian is not pure": lambda: DiscreteGaussian(1.0).pure(),
    "zCDP is not pure": lambda: ZeroConcentrated(1.0).pure(),
    "a mix with a Gaussian is not pure": lambda: (Laplace(1.0) + Gaussian(1.0)).pure(),
    "approximate is not zCDP": lambda: ApproximateDP(1.0, 1e-6).zcdp(),
    "approximate is not CDP": lambda: ApproximateDP(1.0, 1e-6).cdp(),
    "approximate is not GDP": lambda: ApproximateDP(1.0, 1e-6).gdp(),
    "approximate has no Rényi curve": lambda: ApproximateDP(1.0, 1e-6).rdp(2),
    "approximate is not pure": lambda: ApproximateDP(1.0, 1e-6).pure(),
    "approximate at delta 0": lambda: ApproximateDP(1.0, 1e-6).epsilon(0),
    "approximate by Proposition 10": lambda: ApproximateDP(1.0, 1e-6).bad_outcome(0.1, method="renyi"),
    "sampled approximate": lambda: PoissonSampled(ApproximateDP(1.0, 1e-6), 0.1).rdp(2),
    "one approximate part": lambda: (Gaussian(1.0) + ApproximateDP(1.0, 1e-6)).zcdp(),
    "guarantees with a floor": lambda: Guarantees([(1.0, 1e-6)]).rdp(2),
    "approximate zCDP": lambda: ZeroConcentrated(1.0, delta=1e-6).rdp(2),
    "a group of approximate zCDP": lambda: ZeroConcentrated(1.0, delta=1e-6).group(2),
    "a table with infinite mass": lambda: LossDistribution([0.0], [0.9], 0.1).gdp(),
    "a table whose other order has infinite mass": lambda: LossDistribution([0.1], [1.0]).zcdp(),
    "the discrete Gaussian is not GDP": lambda: DiscreteGaussian(1.0).gdp(),
    "zCDP is not GDP": lambda: ZeroConcentrated(1.0).gdp(),
    "CDP is not GDP": lambda: Concentrated(0.5, 1.0).gdp(),
    "zCDP is not CDP": lambda: ZeroConcentrated(1.0).cdp(),
    "a table of orders is not zCDP": lambda: Renyi([(2, 0.1)]).zcdp(),
    "a formula with infinite mass": lambda: Renyi(formula=ApproximateDP(1.0, 1e-20)).rdp(2),
}


@pytest.mark.parametrize("ask", ABSENT.values(), ids=ABSENT.keys())
def test_what_does_not_exist_says_why(ask):
    with pytest.raises(NoSuchGuarantee) as caught:
        ask()
    assert caught.value.why
    assert caught.value.do


def test_the_expected_loss_is_infinite_where_some_loss_is():
    assert ApproximateDP(1.0, 1e-6).expected_loss() == INF
    assert LossDistribution([0.1], [1.0]).expected_loss() == INF


@pytest.mark.parametrize("delta", [1e-12, 1e-17, 1e-20, 1e-300])
def test_a_small_infinite_mass_is_never_lost(delta):
    for event in (
        ApproximateDP(1.0, delta),
        Renyi(formula=ApproximateDP(1.0, delta)),
        Renyi([(2, 0.1)], delta=delta),
        ZeroConcentrated(0.1, delta=delta),
        ZeroConcentrated(0.1, delta=delta) + Laplace(1.0),
        Renyi(formula=ApproximateDP(1.0, delta)) + Laplace(1.0),
        PoissonSampled(ApproximateDP(1.0, 2 * delta), 0.5),
        PoissonSampled(ApproximateDP(1.0, 2 * delta) + Laplace(1.0), 0.5),
        PoissonSampled(ZeroConcentrated(0.1, delta=2 * delta), 0.5),
        ApproximateDP(1.0, delta).group(2),
        LossDistribution([0.0], [1.0 - delta], delta),
    ):
        assert event.infinite_mass >= delta * (1 - 1e-9)
        assert event.epsilon(delta / 2).upper == INF


# Bad questions.

QUESTIONS = [
    ("delta", Gaussian(1.0).epsilon, [1, 1.0, 1.5, INF]),
    ("epsilon", Gaussian(1.0).delta, [INF, 1.1e15]),
    ("alpha", Laplace(1.0).rdp, [0, 0.5, 1 - 1e-12]),
    ("x", Gaussian(1.0).tradeoff, [1 + 1e-9, INF]),
    ("p", Gaussian(1.0).bad_outcome, [1 + 1e-9, INF]),
    ("size", Gaussian(1.0).group, [0, 1.0, 1.5, 10**6 + 1, INF]),
]
NEVER = [NAN, -INF, -1, -1e-300, True, np.True_, "1", None, 1j, {}, 10**400, 1e300, -(10**400)]


def bad_questions():
    for name, ask, more in QUESTIONS:
        for value in [*NEVER, *more]:
            if name == "alpha" and type(value) in (int, float) and value in (1e300, 10**400):
                continue  # an order, if a large one
            huge = isinstance(value, int) and abs(value) > 10**300
            yield pytest.param(name, ask, value, id=f"{name}-{'huge' if huge else value!r}")


@pytest.mark.parametrize(("name", "ask", "value"), list(bad_questions()))
def test_a_bad_question_is_refused_by_name_and_range(name, ask, value):
    with pytest.raises(InvalidArgument) as caught:
        ask(value)
    assert caught.value.what.startswith(f"{name}=")
    assert " in [" in caught.value.what or " in (" in caught.value.what


@pytest.mark.parametrize(
    ("name", "ask", "more"), QUESTIONS[:-1], ids=lambda value: value if isinstance(value, str) else ""
)
def test_one_bad_entry_refuses_the_array(name, ask, more):
    with pytest.raises(InvalidArgument, match=f"{name}="):
        ask([1, NAN] if name == "alpha" else [0.5, NAN])


def test_a_method_is_one_of_two():
    with pytest.raises(InvalidArgument, match="method='best' is not one of"):
        Gaussian(1.0).bad_outcome(0.1, method="best")


def test_arrays_in_arrays_out():
    event = Laplace(1.0)
    assert event.epsilon(np.full((2, 3), 1e-3)).upper.shape == (2, 3)
    assert event.delta([0.1, 0.2]).lower.shape == (2,)
    assert event.rdp([[1, 2], [3, INF]]).shape == (2, 2)
    assert event.tradeoff(np.linspace(0, 1, 5)).value.shape == (5,)
    assert event.bad_outcome([0.1]).upper.shape == (1,)
    assert isinstance(event.rdp(2), float)
    assert event.rdp(np.float64(2)) == event.rdp(2)


def test_a_guarantee_speaks_of_the_neighbours_of_its_event():
    event = Gaussian(noise_multiplier=2.0, adjacency="replace_one") * 3
    for answer in (event.zcdp(), event.cdp(), event.curve, event.curve.group(2), event.curve.zcdp()):
        assert answer.adjacency == "replace_one"
    with pytest.raises(IncompatibleAdjacency):
        event.zcdp() + PoissonSampled(Gaussian(noise_multiplier=1.0), sampling_prob=0.1)
