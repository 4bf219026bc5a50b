"""The profile of one order: on the whole real line, tuned no more often than is paid for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sitr.accounting import Concentrated, Gaussian, PoissonSampled
from sitr.accounting.engines import profile
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.ways import Purse
from sitr.accounting.losses import pairs
from sitr.accounting.orders import WHOLE
from tests.accounting.helpers import law


def test_a_mix_of_groups_is_tuned_no_more_often_than_is_paid_for(monkeypatch):
    """Both orders share what was tuned for one, and where nothing more is paid for the wider bracket stands."""
    tuned, steps = [], (PoissonSampled(Gaussian(0.37), 0.3) + PoissonSampled(Gaussian(0.12), 1e-3)).group(2)
    original = profile.candidates
    monkeypatch.setattr(profile, "candidates", lambda mix, *rest: tuned.append(mix.tuning) or original(mix, *rest))
    found = steps.tradeoff(0.02)
    assert 0 < found.lower < found.upper < 1
    assert 0 < sum(tuned) < WHOLE


def test_bounds_of_another_epsilon_stand_where_no_more_are_paid_for():
    order = profile.Order(Mix.of([(pairs.sampled_gaussian_pair(1.0, 0.1, 3).forward, 5)]))
    assert order.tune(1.0, Purse())
    purse = Purse(order.mix.tuning)
    assert not order.tune(2.0, purse)
    assert purse.left == 0
    assert order.finite(2.0, purse).upper < 1
    assert list(order.tuned) == [1.0]


def test_tunings_that_end_with_nothing_are_counted_too(monkeypatch):
    """They take as long as those that help: 119 of them took 15 seconds."""
    tried = []
    asked = profile.candidates
    monkeypatch.setattr(profile, "candidates", lambda *of: tried.append(of[0]) or asked(*of))
    event = PoissonSampled(Gaussian(1.2), 2.046e-5) * 3 + Concentrated(mu=0.0107, tau=0.013) * 2
    found = event.tradeoff(1e-9)
    assert found.upper - found.lower <= 1e-11
    assert max(tried.count(mix) for mix in tried) <= profile.MOST_TUNINGS


def profile_of(forward, backward, count):
    """The profile of a pair that is composed with itself."""
    orders = (profile.Order(Mix.of([(loss, count)])) for loss in (forward, backward))
    return profile.Profile(*orders, Purse())


@law(30)
@given(st.floats(-3.0, 3.0), st.integers(1, 40))
def test_below_nothing_the_profile_is_that_of_the_gaussian_as_well(epsilon, count):
    """δ(ε) = Φ(m/2 - ε/m) - e^ε Φ(-m/2 - ε/m) on the whole line, m = √count / σ."""
    m = math.sqrt(count) / 8
    truth = norm.cdf(m / 2 - epsilon / m) - math.exp(epsilon) * norm.cdf(-m / 2 - epsilon / m)
    pair = pairs.gaussian_pair(1 / 8)
    found = profile_of(pair.forward, pair.backward, count).delta(epsilon)
    assert found.lower <= truth * (1 + 1e-9) + 1e-15
    assert truth <= found.upper * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_both_orders_are_dual(epsilon):
    """δ_PQ(-ε) = 1 - e^-ε + e^-ε δ_QP(ε) (THEORY 1.3), also where the orders differ."""
    pair = pairs.sampled_gaussian_pair(1.0, 0.2, 1)
    below = profile_of(pair.forward, pair.backward, 5).delta(-epsilon)
    above = profile_of(pair.backward, pair.forward, 5).delta(epsilon)
    low, high = (-math.expm1(-epsilon) + math.exp(-epsilon) * end for end in (above.lower, above.upper))
    assert low <= below.upper * (1 + 1e-12)
    assert below.lower <= high * (1 + 1e-12)


def test_where_nothing_is_paid_for_chernoffs_bound_stands():
    order = profile.Order(Mix.of([(pairs.laplace_pair(0.5).forward, 30)]))
    broke = Purse(0.0)
    assert order.tune(1.0, broke)
    found = order.finite(1.0, broke)
    assert found.method == "Chernoff"
    assert found.lower <= 1e-9  # the largest loss alone
    exact = profile.Order(order.mix).finite(1.0, Purse())
    assert exact.lower <= found.upper
    assert not order.tune(2.0, broke)


def test_at_the_largest_loss_nothing_is_left_but_rounding():
    order = profile.Order(Mix.of([(pairs.laplace_pair(0.5).forward, 4)]))
    assert order.finite(2.0, Purse()).upper <= 1e-14
    assert order.finite(2.5, Purse()) == profile.Found(0.0, 0.0, "largest loss")
