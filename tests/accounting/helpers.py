"""Truths computed another way, and strategies that draw events; imported by the tests that need them."""

import math
from itertools import pairwise

import mpmath
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from mpmath import mp, mpf

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
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
    ZeroConcentrated,
)

DIGITS = 60


def law(examples):
    """Settings of a property test: the same examples in every run."""
    return settings(max_examples=examples, derandomize=True, deadline=None)


# --- Truths ---------------------------------------------------------------------------------------------------------


def gaussian_delta(m, epsilon):
    """THEORY 2.3 in mpmath."""
    with mp.workdps(DIGITS):
        m, epsilon = mpf(m), mpf(epsilon)
        return mpmath.ncdf(m / 2 - epsilon / m) - mpmath.exp(epsilon) * mpmath.ncdf(-m / 2 - epsilon / m)


def laplace_delta(e0, epsilon):
    """THEORY 2.2 in mpmath."""
    with mp.workdps(DIGITS):
        return max(-mpmath.expm1((mpf(epsilon) - mpf(e0)) / 2), mpf(0))


def discrete_gaussian_delta(scale, shift, epsilon):
    """THEORY 2.4 by direct sums: Σ_x (P(x) - e^ε Q(x))_+ with P = Q moved by `shift`."""
    with mp.workdps(DIGITS):
        reach = int(20 * scale) + 20 + abs(shift)
        weight = {x: mpmath.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2)) for x in range(-reach, reach + 1)}
        total = mpmath.fsum(weight.values())
        factor = mpmath.exp(mpf(epsilon))
        gains = (weight.get(x - shift, mpf(0)) - factor * w for x, w in weight.items())
        return mpmath.fsum(g for g in gains if g > 0) / total


def composed_outcomes(p, q, times=1):
    """Return the outcome probabilities of `times` independent runs under P and under Q."""
    p_all, q_all = np.ones(1), np.ones(1)
    for _ in range(times):
        p_all, q_all = np.outer(p_all, p).ravel(), np.outer(q_all, q).ravel()
    return p_all, q_all


def brute_delta(p, q, epsilon):
    """Σ (P - e^ε Q)_+ over all outcomes, the larger of both orders."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    factor = math.exp(epsilon)
    return max(math.fsum(np.maximum(p - factor * q, 0)), math.fsum(np.maximum(q - factor * p, 0)))


def exact_delta(p, q, epsilon):
    """The same at many digits, for outcomes that are mpmath numbers."""
    with mp.workdps(DIGITS):
        factor = mpmath.exp(mpf(epsilon))
        gains = [mpmath.fsum(max(a - factor * b, 0) for a, b in zip(*both, strict=True)) for both in ((p, q), (q, p))]
        return max(gains)


def hull_outcomes(points):
    """P and Q, at many digits, of the worst mechanism that several (ε,δ) allow (THEORY 2.6), slope by slope."""
    with mp.workdps(DIGITS):
        corners = [(mpf(0), mpf(1))]
        for e, d in ((mpf(e), mpf(d)) for e, d in points):
            corners += [(mpmath.exp(e), d), (mpmath.exp(-e), 1 - mpmath.exp(-e) * (1 - d))]
        chain = [corners[0]]
        while True:  # the steepest way down from each corner
            y, d = chain[-1]
            ways = [((b - d) / (a - y), -a) for a, b in corners if a > y and b < d]
            if not ways:
                break
            slope, minus = min(ways)
            chain.append((-minus, d + slope * (-minus - y)))
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(chain)] + [mpf(0)]
        if len(chain) == 1:
            return np.array([mpf(1), mpf(0)]), np.array([mpf(0), mpf(1)])
        q = [1 + slopes[0], *(after - before for before, after in pairwise(slopes)), mpf(0)]
        p = [y * mass for (y, _), mass in zip(chain, q, strict=False)] + [chain[-1][1]]
        return np.array(p), np.array(q)


def sampled(p, q, rate):
    """The pair of outcome laws after Poisson sampling at `rate` (THEORY 2.7)."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    return (1 - rate) * q + rate * p, q


def discrete_laplace_outcomes(scale, shift):
    """P and Q of discrete Laplace noise; what lies far out has the ratio of its neighbours."""
    reach = math.ceil(45 * scale) + shift
    x = np.arange(-reach, reach + shift + 1)
    norm = math.tanh(0.5 / scale)
    return norm * np.exp(-np.abs(x - shift) / scale), norm * np.exp(-np.abs(x) / scale)


def response_outcomes(p, k):
    """P and Q of k-ary randomized response."""
    rest = (1 - p) / (k - 1)
    return np.array([p, rest, *[rest] * (k - 2)]), np.array([rest, p, *[rest] * (k - 2)])


def black_box_outcomes(epsilon, delta):
    """P and Q of the Kairouz–Oh–Viswanath pair (THEORY 2.6)."""
    high = (1 - delta) / (1 + math.exp(-epsilon))
    p = np.array([delta, high, 1 - delta - high, 0.0])
    return p, p[::-1]


# --- What a bracket must satisfy ------------------------------------------------------------------------------------


def holds_epsilon(bracket, delta, profile):
    """Whether the least ε with profile(ε) ≤ delta lies in the bracket."""
    above = profile(bracket.upper) <= delta
    below = bracket.lower == 0 or profile(bracket.lower) >= delta
    return above and below


def holds(bracket, truth, slack=0.0):
    """Whether `truth`, itself known to a relative error `slack`, lies in the bracket."""
    return bracket.lower <= truth * (1 + slack) + 1e-300 and truth * (1 - slack) <= bracket.upper


def narrow(bracket, relative=1e-6, absolute=1e-9):
    """Whether the bracket is as narrow as it should be."""
    return bracket.upper - bracket.lower <= max(relative * bracket.upper, absolute)


def overlap(first, second):
    """Whether two brackets may hold the same number."""
    return max(first.lower, second.lower) <= min(first.upper, second.upper)


# --- Events ---------------------------------------------------------------------------------------------------------


def logs(low, high):
    """Floats that are uniform in their logarithm."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


noises = logs(0.3, 100)
rates = logs(1e-3, 0.9)
epsilons = logs(1e-2, 3)
probabilities = st.floats(0.05, 0.95)
small_deltas = logs(1e-12, 1e-2)

exact_events = st.one_of(
    st.builds(Gaussian, noises),
    st.builds(Laplace, noises),
    st.builds(DiscreteGaussian, logs(0.5, 30), st.integers(1, 3)),
    st.builds(DiscreteLaplace, logs(0.5, 30), st.integers(1, 4)),
    st.builds(RandomizedResponse, probabilities, st.integers(2, 6)),
    st.builds(Exponential, epsilons),
)
sampled_events = st.one_of(
    st.builds(PoissonSampled, st.builds(Gaussian, logs(0.5, 10)), rates),
    st.builds(PoissonSampled, st.builds(RandomizedResponse, probabilities), rates),
)
claims = st.one_of(
    st.builds(PureDP, epsilons),
    st.builds(ApproximateDP, epsilons, logs(1e-9, 1e-3)),
    st.builds(Guarantees, st.lists(st.tuples(epsilons, logs(1e-9, 1e-2)), min_size=1, max_size=4)),
    st.builds(ZeroConcentrated, logs(1e-3, 1), logs(1e-3, 1)),
    st.builds(Concentrated, logs(1e-3, 1), logs(1e-2, 1)),
    st.builds(Renyi, st.lists(st.tuples(st.floats(1.5, 60), epsilons), min_size=1, max_size=4)),
    st.builds(PrivacyProfile, st.lists(st.tuples(epsilons, logs(1e-9, 1e-2)), min_size=1, max_size=4)),
    st.builds(lambda e: LossDistribution([-e, e], [1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))]), epsilons),
)
events = st.one_of(exact_events, sampled_events, claims)


def _batch(event, n, share):
    return SampledWithoutReplacement(event, n, max(1, int(share * n)))


crowds = st.one_of(
    st.builds(_batch, exact_events, st.integers(1, 10**6), logs(1e-3, 1)),
    st.builds(_batch, st.lists(exact_events, min_size=2, max_size=2).map(lambda e: e[0] + e[1]), st.just(100), rates),
    st.builds(ShuffledEpochs, exact_events, st.integers(1, 30)),
    st.builds(ShuffledReports, st.builds(PureDP, epsilons), st.integers(1, 10**5)),
    st.builds(ShuffledReports, st.builds(RandomizedResponse, probabilities, st.integers(2, 6)), st.integers(1, 1000)),
)  # under replace_one, which does not compose with Poisson samples


def _composed(children):
    rows = st.lists(st.tuples(children, st.integers(1, 30)), min_size=1, max_size=4)
    return st.one_of(
        rows.map(lambda several: Composed(tuple(several))),
        st.builds(PoissonSampled, children, rates),
        st.builds(lambda event: Renyi(formula=event), children),
    )


nested_events = st.recursive(events, _composed, max_leaves=6)
few_together = st.lists(st.tuples(events, st.integers(1, 100)), min_size=2, max_size=3)
mixed_events = st.one_of(
    events,
    few_together.map(lambda several: Composed(tuple(several))),
    st.builds(lambda event: Renyi(formula=event), events),
)


# --- What a loss must satisfy ---------------------------------------------------------------------------------------


def obeys_the_rules_of_a_law(loss, backward=None):
    """Check a loss against itself: total mass, the other order's mass, mean, transform and profile."""
    backward = loss if backward is None else backward
    mean = loss.mean()
    small = 1e-5 / max(math.sqrt(2 * mean), 1e-3)
    assert abs(float(loss.log_mgf(np.float64(0.0)))) < 1e-13
    both = (float(loss.log_mgf(np.float64(small))) - float(loss.log_mgf(np.float64(-small)))) / (2 * small)
    assert abs(both - mean) <= 1e-6 * max(mean, 1e-6) + 1e-9
    # E_P e^{-L} is Q's mass where P has some; and M_P(x) = M_Q(-1-x) between both orders (THEORY 1.3).
    finite = math.log1p(-loss.infinite_mass), math.log1p(-backward.infinite_mass)
    for x in (-1.0, -0.4, 0.7):
        there = float(loss.log_mgf(np.float64(x))) + finite[0]
        back = float(backward.log_mgf(np.float64(-1 - x))) + finite[1]
        assert abs(there - back) <= 1e-11 * max(1, abs(there))


def transform_matches(loss, c, step, count=40, digits=1e-11):
    """Check `ratios` against the integral over the profile: M(z) = 1 + z(z+1) ∫ δ(ε) e^{zε} dε, for a bounded loss."""
    values, error = loss.ratios(c, step, count)
    assert error < 1e-9
    assert abs(values[0] - 1) <= error + 1e-15
    assert np.all(np.abs(values) <= 1 + error)
    falls = np.exp(loss.log_decay(c, step * np.arange(1, count + 1)))
    assert np.all(np.abs(values[1:]) <= falls * (1 + digits) + error)
