"""Several events on one sample: Rényi curves and brackets against double integrals and sums over outcomes."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
)
from sitr.accounting.sampled_mix import SampledMix
from sitr.errors import NoSuchGuarantee
from tests.accounting.helpers import (
    black_box_outcomes,
    brute_delta,
    composed_outcomes,
    discrete_laplace_outcomes,
    holds,
    law,
    narrow,
    response_outcomes,
    sampled,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def laplace_under_q(scale):
    """Losses ln P/Q of Laplace noise and their masses under Q: both atoms, and a rule for the density (THEORY 2.2)."""
    e0 = 1 / scale
    dense = WEIGHTS * e0 * np.exp(-(e0 * NODES + e0) / 2) / 4
    return np.concatenate([[-e0], e0 * NODES, [e0]]), np.concatenate([[0.5], dense, [math.exp(-e0) / 2]])


def gaussian_under_q(sigma):
    """The same of Gaussian noise, by a trapezoid sum."""
    x = np.arange(-400, 401) * 0.05
    return x / sigma - 0.5 / sigma**2, 0.05 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def moments(first, second, q, alpha):
    """E_Q r^α and E_Q r^{1-α} of two parts on one sample, by a double sum."""
    losses, masses = np.add.outer(first[0], second[0]), np.multiply.outer(first[1], second[1])
    ratio = 1 + q * np.expm1(losses)
    return float(np.sum(masses * ratio**alpha)), float(np.sum(masses * ratio ** (1 - alpha)))


TWO = {
    "laplace twice": (Laplace(1.0) * 2, laplace_under_q(1.0), laplace_under_q(1.0)),
    "laplace and gaussian": (Laplace(2.0) + Gaussian(3.0), laplace_under_q(2.0), gaussian_under_q(3.0)),
}


@pytest.mark.parametrize(("event", "first", "second"), TWO.values(), ids=TWO.keys())
@pytest.mark.parametrize("q", [1e-3, 0.1, 0.8])
@pytest.mark.parametrize("alpha", [1.001, 1.5, 2, 2.4, 3, 8, 13.7])
def test_divergences_of_two_parts_are_those_of_a_double_integral(event, first, second, q, alpha):
    truth = max(math.log(moment) for moment in moments(first, second, q, alpha)) / (alpha - 1)
    found = PoissonSampled(event, q).rdp(alpha)
    rounding = 1e-13 / (alpha - 1)
    assert found >= truth - rounding
    if alpha == int(alpha):
        assert found <= truth * (1 + 1e-8) + rounding
    assert found <= truth * 1.8 + rounding  # the chord is worst between 1 and 2


@pytest.mark.parametrize(("event", "first", "second"), TWO.values(), ids=TWO.keys())
@pytest.mark.parametrize("q", [1e-3, 0.1, 0.8])
def test_the_add_order_is_bounded_by_itself(event, first, second, q):
    """The remove order leads here; where it does not, this bound has to hold alone."""
    curves = PoissonSampled(event, q)._part.renyi
    assert curves.leads
    for c in (1e-3, 0.5, 3.0, 30.0):
        truth = math.log(moments(first, second, q, 1 + c)[1])
        assert truth - 1e-14 <= float(curves.backward.log_mgf(c)) <= c * -math.log1p(-q)


def test_no_infinite_loss_is_made_up():
    for event in (Gaussian(2.0) + Laplace(3.0), Gaussian(2.0) + ZeroConcentrated(0.1)):
        one = PoissonSampled(event, 0.1)
        assert one.infinite_mass == 0
        assert 0 < one.expected_loss() <= 0.1 * event.expected_loss()
        assert one.rdp(4.5) < event.rdp(4.5)
        assert one.zcdp().rho == pytest.approx(event.zcdp().rho)
        with pytest.raises(NoSuchGuarantee):
            one.pure()
        with pytest.raises(NoSuchGuarantee):
            one.cdp()
    assert PoissonSampled(Gaussian(2.0) + Laplace(3.0), 0.1).gdp() == pytest.approx(
        (Gaussian(2.0) + Laplace(3.0)).gdp()
    )
    leaky = PoissonSampled(Gaussian(2.0) + ApproximateDP(0.1, 1e-6) * 2, 0.1)
    assert leaky.infinite_mass == pytest.approx(0.1 * (1 - (1 - 1e-6) ** 2), rel=1e-9)
    assert leaky.zcdp(delta_part=True).xi == pytest.approx(-math.log(0.9))
    with pytest.raises(NoSuchGuarantee):
        leaky.zcdp()


outcomes = st.one_of(
    st.tuples(st.floats(0.05, 0.95), st.integers(2, 4)).map(
        lambda row: (RandomizedResponse(*row), response_outcomes(*row))
    ),
    st.tuples(st.floats(0.01, 2), st.floats(1e-6, 0.2)).map(
        lambda row: (ApproximateDP(*row), black_box_outcomes(*row))
    ),
    st.floats(0.1, 0.9).map(
        lambda p: (
            LossDistribution([math.log(p / 0.5), math.log((1 - p) / 0.5)], [p, 1 - p]),
            (np.array([p, 1 - p]), np.array([0.5, 0.5])),
        )
    ),
)


@law(150)
@given(outcomes, outcomes, st.floats(0.01, 0.99), st.floats(1.01, 12))
def test_moments_of_both_orders_hold_for_any_two_parts(first, second, q, alpha):
    """Given a finite loss, as for every law; also with infinite losses and with orders that differ."""
    p, alone = (np.outer(a, b).ravel() for a, b in zip(first[1], second[1], strict=True))
    mixed, alone = sampled(p, alone, q)
    curves = PoissonSampled(first[0] + second[0], q)._part.renyi
    c = alpha - 1
    for curve, over, under in ((curves.forward, mixed, alone), (curves.backward, alone, mixed)):
        if not isinstance(curve, SampledMix):  # two equal responses are one law
            continue
        finite = (over > 0) & (under > 0)
        mass = math.fsum(over[finite])
        moment = math.fsum(over[finite] / mass * (over[finite] / under[finite]) ** c)
        assert curve.infinite_mass == pytest.approx(1 - mass, abs=1e-12)
        assert curve.largest >= np.max(np.log(over[finite] / under[finite])) - 1e-9
        assert float(curve.log_mgf(c)) >= math.log(moment) - 1e-12
        assert curve.mean() >= math.fsum(over[finite] / mass * np.log(over[finite] / under[finite])) - 1e-12


@pytest.mark.parametrize("q", [0.01, 0.3])
def test_zcdp_holds_at_every_order(q):
    event = PoissonSampled(Gaussian(1.5) + Laplace(2.0), q)
    rho = event.zcdp().rho
    for alpha in (1.2, 3.0, 20.0):
        truth = max(math.log(m) for m in moments(gaussian_under_q(1.5), laplace_under_q(2.0), q, alpha)) / (alpha - 1)
        assert truth <= rho * alpha


def two_laplace_delta(e0, epsilon):
    """δ of Laplace noise twice: the profile of one at what the other leaves (THEORY 2.2), integrated."""
    with mpmath.workdps(30):
        e0, epsilon = mpmath.mpf(e0), mpmath.mpf(epsilon)

        def profile(x):
            return mpmath.mpf(0) if x >= e0 else -mpmath.expm1(x) if x < -e0 else -mpmath.expm1((x - e0) / 2)

        edges = sorted({-e0, e0, *(x for x in (epsilon - e0, epsilon + e0) if -e0 < x < e0)})
        inside = mpmath.quad(lambda x: mpmath.exp((x - e0) / 2) / 4 * profile(epsilon - x), edges)
        return profile(epsilon - e0) / 2 + mpmath.exp(-e0) / 2 * profile(epsilon + e0) + inside


@pytest.mark.parametrize("q", [1e-3, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 1.5])
def test_the_bracket_of_laplace_noise_twice_is_narrow_and_holds(q, epsilon):
    found = PoissonSampled(Laplace(1.0) * 2, q).delta(epsilon)
    with mpmath.workdps(30):
        truth = q * two_laplace_delta(1, mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / mpmath.mpf(q)))
    assert holds(found, float(truth), 1e-13)
    assert narrow(found, relative=3e-5)
    if truth > 0 and epsilon:
        back = PoissonSampled(Laplace(1.0) * 2, q).epsilon(float(truth))
        assert holds(back, epsilon, 1e-9)
        assert narrow(back, relative=3e-5)


FINITE = {
    "responses": (RandomizedResponse(0.7) * 3, composed_outcomes(*response_outcomes(0.7, 2), 3)),
    "discrete laplace": (DiscreteLaplace(1.5, 2) * 2, composed_outcomes(*discrete_laplace_outcomes(1.5, 2), 2)),
}


@pytest.mark.parametrize(("event", "laws"), FINITE.values(), ids=FINITE.keys())
@pytest.mark.parametrize("q", [1e-3, 0.2, 0.95])
def test_brackets_of_finite_laws_are_sums_over_outcomes_in_both_orders(event, laws, q):
    p, alone = sampled(*laws, q)
    for epsilon in (0.0, 1e-3, 0.1, 1.0):
        found = PoissonSampled(event, q).delta(epsilon)
        assert holds(found, brute_delta(p, alone, epsilon), 1e-9)
        assert narrow(found)


def test_at_most_the_rate_is_ever_at_stake():
    event = PoissonSampled(Laplace(1.0) * 2, 0.1)
    assert event.epsilon(0.1).upper == 0
    assert event.epsilon(0.0999).upper <= 0.01
    assert event.delta(800.0).upper == 0


def test_a_sample_of_a_sample_is_a_smaller_sample():
    inside = Gaussian(2.0) + Laplace(3.0)
    twice, once = PoissonSampled(PoissonSampled(inside, 0.5), 0.2), PoissonSampled(inside, 0.1)
    assert twice.rdp(3.3) == pytest.approx(once.rdp(3.3), rel=1e-12)
    assert twice.epsilon(1e-6).upper == pytest.approx(once.epsilon(1e-6).upper, rel=1e-9)
    twice, once = PoissonSampled(PoissonSampled(Laplace(1.0), 0.5), 0.2), PoissonSampled(Laplace(1.0), 0.1)
    assert twice.rdp(3.3) == pytest.approx(once.rdp(3.3), rel=1e-12)


def test_everyone_sampled_is_the_event_itself():
    inside = Gaussian(2.0) + Laplace(3.0) * 2
    assert PoissonSampled(inside, 1.0).epsilon(1e-6) == inside.epsilon(1e-6)
    assert PoissonSampled(inside, 1.0).rdp(7.5) == inside.rdp(7.5)


def test_claims_inside_are_bounded_by_their_curves():
    claimed = PoissonSampled(Gaussian(2.0) + ZeroConcentrated(0.05), 0.1)
    meets = PoissonSampled(Gaussian(2.0) + Gaussian(math.sqrt(10)), 0.1)
    for alpha in (1.5, 2, 8, 40.5):
        assert claimed.rdp(alpha) >= meets.rdp(alpha) * (1 - 1e-9)
    table = PoissonSampled(Gaussian(2.0) + Renyi(points=[(4, 0.2)]), 0.1)
    assert math.isfinite(table.rdp(3.5))
    assert table.rdp(5) == math.inf
    with pytest.raises(NoSuchGuarantee):
        table.zcdp()
    ranged = PoissonSampled(Exponential(0.5) * 4, 0.1)
    assert ranged.epsilon(1e-6).lower <= ranged.epsilon(1e-6).upper <= ranged.pure() * (1 + 1e-12)


@pytest.mark.parametrize("q", [1e-3, 0.3])
def test_the_law_that_is_composed_dominates_closely(q):
    """Composed with others, the sampled mix stands as a law: its profile lies over the truth in both orders.

    The composition has atoms at 0 and at the end, where smoothing shows most.
    """
    part = PoissonSampled(Laplace(1.0) * 2, q)._part
    with mpmath.workdps(30):
        rate = mpmath.mpf(q)
        for epsilon in np.linspace(0.0, 0.999 * part.renyi.forward.largest, 12):
            truth = float(rate * two_laplace_delta(1, mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / rate)))
            assert truth <= float(part.forward.profile(np.float64(epsilon))) <= truth * (1 + 3e-4) + 2e-6 * q
        for epsilon in np.linspace(0.0, 0.999 * part.renyi.backward.largest, 12):
            e = mpmath.exp(mpmath.mpf(epsilon))
            inner = -mpmath.log(1 - (1 - 1 / e) / rate)
            truth = float((1 - (1 - rate) * e) * two_laplace_delta(1, inner))
            assert truth <= float(part.backward.profile(np.float64(epsilon))) <= truth * (1 + 3e-4) + 2e-6 * q


def test_composed_sampled_mixes_cost_more_than_one_and_no_more_than_by_divergences():
    one = PoissonSampled(Laplace(1.0) * 2, 0.1)
    ten = (one * 10).epsilon(1e-6)
    assert one.epsilon(1e-6).upper < ten.upper <= (Renyi(formula=one) * 10).epsilon(1e-6).upper
    assert ten.lower <= ten.upper


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.5])
@pytest.mark.parametrize(("kept", "count", "rate"), [(0.7, 2, 0.5), (0.9, 3, 0.2), (0.5, 4, 0.9)])
def test_curves_of_finite_losses_are_conditioned_on_them(kept, count, rate, alpha):
    """Where P fails at a rate and is otherwise under Q, losses given that they are finite are negative, as is ln M."""
    fails = PoissonSampled(LossDistribution([math.log(kept)], [kept], 1 - kept) * count, rate)
    rest = math.log((1 - 0.02 * math.exp(-3)) / 0.98)
    other = LossDistribution([3.0, -rest], [0.02, 0.98]) * 20
    c, finite = alpha - 1, 1 - rate + rate * kept**count  # all of Q is finite, and this much of the sampled P
    moment = c * math.log(finite) + 20 * math.log(0.02 * math.exp(3 * c) + 0.98 * math.exp(-c * rest))
    assert (fails + other).rdp(alpha, delta_part=True) >= moment / c * (1 - 1e-12)


def test_samples_of_nearly_everyone_have_curves():
    rare = PoissonSampled(PrivacyProfile([(0.0372, 0.00104), (6.6e-9, 0.0)]) * 2, 0.401) * 7
    found = PoissonSampled(rare, 1 - 2**-53).delta(0.88)
    assert 0 <= found.lower <= found.upper <= 1


def test_all_rates_share_what_is_known_before_sampling():
    """A calibration of the rate computes the moments of what is sampled once."""
    both = Gaussian(2.0) + Laplace(3.0)
    first, second = (PoissonSampled(both, q).parts[0][0].renyi for q in (0.1, 0.2))
    assert first.forward.forward is second.forward.forward
    assert first.backward.backward is second.forward.backward
