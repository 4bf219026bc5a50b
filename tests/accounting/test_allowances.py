"""What each of several queries may have: named theorems turned around, and the exact answer."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import PureDP, allowance, classical_allowance, theorems
from sitr.errors import CannotCalibrate, InvalidArgument
from tests.accounting.helpers import law, logs

NAMED = [
    theorems.advanced,
    theorems.advanced_halved,
    theorems.advanced_tanh,
    theorems.generic_rdp,
    theorems.kairouz_oh_viswanath,
    theorems.moments_accountant,
    theorems.tightest,
]


@pytest.mark.parametrize("theorem", NAMED)
@law(12)
@given(count=st.integers(1, 500), epsilon=logs(0.05, 20), delta=logs(1e-12, 1e-2))
def test_the_theorem_allows_it_and_nothing_larger(theorem, count, epsilon, delta):
    if theorem is theorems.moments_accountant and epsilon < -math.log(delta) / 60:
        return  # it proves no ε so small
    share = allowance(count, epsilon=epsilon, delta=delta, theorem=theorem)
    assert theorem(PureDP(share) * count, delta).epsilon <= epsilon
    assert share == epsilon or theorem(PureDP(share * (1 + 1e-6)) * count, delta).epsilon > epsilon


@law(30)
@given(count=st.integers(1, 10**6), epsilon=logs(0.01, 100))
def test_basic_composition_divides(count, epsilon):
    share = allowance(count, epsilon=epsilon, delta=1e-6, theorem=theorems.basic)
    assert math.isclose(share, epsilon / count, rel_tol=1e-8)
    assert theorems.basic(PureDP(share) * count).epsilon <= epsilon


@law(15)
@given(count=st.integers(1, 300), epsilon=logs(0.05, 20), delta=logs(1e-10, 1e-2))
def test_no_theorem_allows_more_than_the_exact_answer(count, epsilon, delta):
    exact = allowance(count, epsilon=epsilon, delta=delta)
    optimal = allowance(count, epsilon=epsilon, delta=delta, theorem=theorems.kairouz_oh_viswanath)
    assert math.isclose(exact, optimal, rel_tol=1e-6)
    for theorem in (theorems.basic, theorems.advanced, theorems.advanced_tanh, theorems.generic_rdp):
        assert allowance(count, epsilon=epsilon, delta=delta, theorem=theorem) <= exact * (1 + 1e-6)


def test_the_rule_of_thumb_leaves_out_the_mean_loss():
    share = classical_allowance(100, epsilon=2.0, delta=1e-6)
    spread = theorems.advanced(PureDP(share) * 100, 1e-6).epsilon - 100 * share * math.expm1(share)
    assert math.isclose(spread, 2.0)


def test_the_rule_of_thumb_is_too_careful_for_small_epsilons_and_false_for_large_ones():
    for epsilon, holds in ((1.0, True), (20.0, False)):
        share = classical_allowance(100, epsilon=epsilon, delta=1e-6)
        assert (share <= allowance(100, epsilon=epsilon, delta=1e-6)) is holds
        assert ((PureDP(share) * 100).epsilon(1e-6).upper <= epsilon) is holds


def test_a_theorem_that_proves_nothing_so_small_is_named():
    with pytest.raises(CannotCalibrate, match="no ε is small enough"):
        allowance(10, epsilon=0.05, delta=1e-12, theorem=theorems.moments_accountant)


def test_a_single_query_has_everything():
    assert allowance(1, epsilon=0.7, delta=1e-6) == 0.7
    assert allowance(1, epsilon=0.7, delta=1e-6, theorem=theorems.basic) == 0.7


BAD = [
    {"count": 0, "epsilon": 1.0, "delta": 1e-6},
    {"count": 1.5, "epsilon": 1.0, "delta": 1e-6},
    {"count": 10, "epsilon": 0.0, "delta": 1e-6},
    {"count": 10, "epsilon": math.inf, "delta": 1e-6},
    {"count": 10, "epsilon": 1.0, "delta": 0.0},
    {"count": 10, "epsilon": 1.0, "delta": 1.0},
]


@pytest.mark.parametrize("rule", [allowance, classical_allowance])
@pytest.mark.parametrize("arguments", BAD)
def test_what_is_no_budget_is_refused(rule, arguments):
    with pytest.raises(InvalidArgument):
        rule(**arguments)
