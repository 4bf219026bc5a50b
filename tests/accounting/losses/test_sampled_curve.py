"""Rényi curves of sampled laws against binomial sums, integrals and the laws themselves."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.accounting.losses import pairs
from sitr.accounting.losses.interval import IntervalLoss
from sitr.accounting.losses.law import Pair
from sitr.accounting.losses.rounding import sampled_above
from sitr.accounting.losses.sampled_curve import SampledCurve, log_ratio, log_ratio_error, panels
from tests.accounting.helpers import discrete_laplace_outcomes, law, logs, response_outcomes

LAPLACE, EXPONENTIAL = IntervalLoss.laplace, IntervalLoss.exponential


@law(300)
@given(logs(1e-300, 3000.0), logs(1e-307, 1.0).filter(lambda q: q < 1))
@example(720.0, 1e-300)  # two large numbers whose difference is small: an end was off by 18 units
@example(707.0, 1.1e-307)
def test_what_a_sample_makes_of_a_loss_is_within_its_error(loss, q):
    with mpmath.workdps(1500):
        truth = mpmath.log1p(mpmath.mpf(q) * mpmath.expm1(mpmath.mpf(loss)))
        assert abs(mpmath.mpf(log_ratio(loss, q)) - truth) <= log_ratio_error(loss, q) + mpmath.mpf(2) ** -1074


def parameters(loss):
    """The density at e0 and the masses at -e0 and e0, all under Q, at the precision in force."""
    e0 = mpmath.mpf(loss.e0)
    if loss.top:
        return e0, mpmath.mpf(1) / 4, mpmath.mpf(1) / 2, mpmath.exp(-e0) / 2
    return e0, -1 / (2 * mpmath.expm1(-e0)), mpmath.mpf(0), mpmath.mpf(0)


def whole_moment(loss, q, alpha):
    """ln E r^α for a whole α, by the binomial sum over the closed moments of the loss (THEORY 2.2, 2.5, 2.7)."""
    e0, edge, top, bottom = parameters(loss)

    def inner(k):
        y = mpmath.mpf(k) - mpmath.mpf(1) / 2
        return (
            edge * mpmath.exp(-e0 / 2) * 2 * mpmath.sinh(y * e0) / y
            + top * mpmath.exp(-k * e0)
            + bottom * mpmath.exp(k * e0)
        )

    q = mpmath.mpf(q)
    terms = (mpmath.binomial(alpha, k) * (1 - q) ** (alpha - k) * q**k * inner(k) for k in range(alpha + 1))
    return mpmath.log(mpmath.fsum(terms))


def moment(loss, q, power):
    """ln E r^power, as the integral of what it exceeds its tangent by."""
    e0, edge, top, bottom = parameters(loss)
    q, power = mpmath.mpf(q), mpmath.mpf(power)

    def excess(x):
        return mpmath.expm1(power * mpmath.log1p(q * mpmath.expm1(x))) - power * q * mpmath.expm1(x)

    edges = [-e0 + 2 * e0 * k / 8 for k in range(9)]
    inside = mpmath.quad(lambda x: edge * mpmath.exp(-(x + e0) / 2) * excess(x), edges)
    return mpmath.log1p(top * excess(-e0) + bottom * excess(e0) + inside)


@pytest.mark.parametrize("make", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("alpha", [2, 3, 22, 150])
@pytest.mark.parametrize("q", [1e-9, 1e-3, 0.3, 0.99])
@pytest.mark.parametrize("e0", [1e-3, 0.1, 1.0, 6.0, 40.0])
def test_whole_orders_are_binomial_sums(make, e0, q, alpha):
    loss = make(e0)
    found = float(SampledCurve(Pair.symmetric(loss), q, True).log_mgf(np.float64(alpha - 1)))
    with mpmath.workdps(50):
        truth = float(whole_moment(loss, q, alpha))
    if panels(loss, q, alpha):
        assert found == pytest.approx(truth, rel=1e-10, abs=4e-15)
    else:  # cells, spread to their ends
        assert truth * (1 - 1e-14) <= found <= truth * 1.01


@pytest.mark.parametrize("make", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize(("e0", "q"), [(1e-2, 0.5), (1.0, 1e-4), (3.0, 0.7), (12.0, 0.01)])
@pytest.mark.parametrize("c", [1e-6, 0.37, 4.5, 30.25])
def test_both_orders_are_integrals(make, e0, q, c):
    loss = make(e0)
    remove, add = (SampledCurve(Pair.symmetric(loss), q, removes) for removes in (True, False))
    with mpmath.workdps(25):
        truths = [float(moment(loss, q, power)) for power in (1 + mpmath.mpf(c), -mpmath.mpf(c))]
    assert float(remove.log_mgf(np.float64(c))) == pytest.approx(truths[0], rel=1e-9, abs=4e-15)
    assert float(add.log_mgf(np.float64(c))) == pytest.approx(truths[1], rel=1e-9, abs=4e-15)


@pytest.mark.parametrize("make", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize(("e0", "q"), [(1e-3, 1e-6), (1.0, 0.1), (20.0, 0.9)])
def test_the_mean_is_the_limit_of_the_moments(make, e0, q):
    for removes in (True, False):
        curve = SampledCurve(Pair.symmetric(make(e0)), q, removes)
        assert float(curve.log_mgf(np.float64(1e-6))) / 1e-6 == pytest.approx(curve.mean(), rel=1e-4)


def test_too_steep_a_moment_is_bounded_from_above():
    loss, q, alpha = EXPONENTIAL(12.0), 0.2, 400
    assert panels(loss, q, alpha) == 0
    with mpmath.workdps(60):
        truth = float(whole_moment(loss, q, alpha))
    assert truth < float(SampledCurve(Pair.symmetric(loss), q, True).log_mgf(np.float64(alpha - 1))) < truth * 1.001


ATOMS = {
    "response": pairs.k_ary_pair(0.7, 5),
    "rare response": pairs.k_ary_pair(0.1, 5),
    "discrete laplace": pairs.discrete_laplace_pair(1.7, 3),
    "black box": pairs.two_point_pair(0.7, 0.01),
    "huge": pairs.two_point_pair(680.0, 0.0),
    "table": pairs.table_pair((-1.0, 0.2), (0.1, 0.85), 0.05),
}


@pytest.mark.parametrize("pair", ATOMS.values(), ids=ATOMS.keys())
@pytest.mark.parametrize("q", [1e-6, 0.2, 0.9])
def test_the_curves_are_those_of_the_laws(pair, q):
    sampled = pairs.sampled_pair(pair, q)
    for curve, order in ((sampled.renyi.forward, sampled.forward), (sampled.renyi.backward, sampled.backward)):
        assert curve.largest == pytest.approx(order.largest, rel=1e-14)
        assert curve.smallest == pytest.approx(order.smallest, rel=1e-14)
        assert curve.infinite_mass == order.infinite_mass
        assert curve.mean() == pytest.approx(order.mean(), rel=1e-6, abs=1e-15)
        for c in (1e-3, 0.7, 12.0):
            expected = float(order.log_mgf(np.float64(c)))
            assert float(curve.log_mgf(np.float64(c))) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_losses_past_the_largest_number_are_moved_by_the_log_of_the_rate():
    sampled = pairs.sampled_pair(pairs.two_point_pair(900.0, 0.0), 0.2)
    assert sampled.forward.largest == 900 + math.log(0.2)
    assert sampled.renyi.forward.largest == sampled_above(900.0, 0.2) == pytest.approx(900 + math.log(0.2), rel=1e-15)
    # Nearly all of E r^α is at the top: 2 α ln r - 900 for the last mass of Q.
    assert float(sampled.renyi.forward.log_mgf(np.float64(1.0))) == pytest.approx(2 * (900 + math.log(0.2)) - 900)


def test_the_curves_of_cells_lie_over_those_of_the_interval():
    sampled = pairs.sampled_pair(pairs.laplace_pair(1.0), 0.1)
    for curve, order in ((sampled.renyi.forward, sampled.forward), (sampled.renyi.backward, sampled.backward)):
        for c in (0.5, 3.0, 50.0):
            exact, cut = float(curve.log_mgf(np.float64(c))), float(order.log_mgf(np.float64(c)))
            assert exact <= cut * (1 + 1e-13) <= exact * (1 + 1e-6)


# THEORY 2.7: where P and Q trade places under some relabelling, the remove order leads.


@law(200)
@given(logs(1e-6, 1), logs(1e-4, 200), logs(1e-6, 1e3))
def test_the_remove_order_leads_at_every_outcome(q, c, loss):
    """r^α + w s^α ≥ r^{1-α} + w s^{1-α}, r and s the ratios at losses l and -l, w = e^l."""
    with mpmath.workdps(60):
        q, a, w = mpmath.mpf(q), 1 + mpmath.mpf(c), mpmath.exp(mpmath.mpf(loss))
        r, s = 1 - q + q * w, 1 - q + q / w
        assert r**a + w * s**a >= (r ** (1 - a) + w * s ** (1 - a)) * (1 - mpmath.mpf(10) ** -50)


@law(100)
@given(
    st.one_of(
        st.builds(response_outcomes, st.floats(0.02, 0.98), st.integers(2, 6)),
        st.builds(discrete_laplace_outcomes, st.floats(0.5, 5), st.integers(1, 4)),
    ),
    st.floats(0.01, 0.99),
    logs(0.01, 20),
)
def test_the_remove_order_leads_in_sums_over_outcomes(outcomes, q, c):
    p, alone = outcomes
    ratio = 1 - q + q * p / alone
    remove, add = math.fsum(alone * ratio ** (1 + c)), math.fsum(alone * ratio**-c)
    assert remove >= add * (1 - 1e-12)


def test_the_remove_order_need_not_lead_where_the_orders_differ():
    sampled = pairs.sampled_pair(ATOMS["table"], 0.5)
    assert not sampled.renyi.leads
    assert pairs.sampled_pair(ATOMS["response"], 0.5).renyi.leads
    assert not pairs.sampled_pair(ATOMS["black box"], 0.5).renyi.leads
