"""Both orders of an event: what is merged, which side is known, and which question goes where."""

import math

import pytest

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    Exponential,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    ZeroConcentrated,
)
from sitr.accounting.engines import solve
from sitr.accounting.engines.delta import Total
from sitr.accounting.engines.ways import Purse
from sitr.accounting.losses.sampled import MOMENT, SampledGaussianLoss
from sitr.accounting.orders import MADE, WHOLE, Orders
from sitr.errors import NoSuchGuarantee

SAMPLED = PoissonSampled(RandomizedResponse(0.8), 0.1)


def orders(event):
    return Orders(event.parts)


def test_equal_parts_are_counted_together():
    part = Laplace(2.0).parts[0][0]
    assert Orders(((part, 2), (part, 3))).pairs == [(part, 5)]


def test_one_mix_where_both_orders_are_the_same():
    assert len(orders(Gaussian(1.0) + Laplace(2.0)).above) == 1
    assert len(orders(SAMPLED + Laplace(2.0)).above) == 2


def test_one_curve_is_enough_where_the_forward_order_has_the_larger_moments():
    asymmetric = LossDistribution([-1.0, 0.2], [0.1, 0.85], 0.05)
    assert len(orders(SAMPLED + Laplace(2.0)).all) == 1
    assert len(orders(SAMPLED + asymmetric).all) == 2
    assert len(orders(PoissonSampled(ApproximateDP(1.0, 1e-3), 0.1)).all) == 2


def test_mechanisms_are_exact_and_claims_are_not():
    assert orders(SAMPLED * 3 + Gaussian(1.0)).exact
    claimed = orders(Gaussian(1.0) + ZeroConcentrated(0.1))
    assert not claimed.exact
    assert [count for _, count in claimed.claims] == [1]


def test_what_a_claim_leaves_open_lies_between_two_sides():
    claimed = orders(ZeroConcentrated(0.125))
    gaussian = orders(Gaussian(2.0)).epsilon(1e-6)
    found = claimed.epsilon(1e-6)
    assert found.lower == pytest.approx(gaussian.lower, rel=1e-6)
    assert found.upper > gaussian.upper


def test_the_larger_of_both_orders_counts():
    # With the person ln(1 + 0.1 (4 - 1)), and without them -ln(1 - 0.1 (1 - 1/4)).
    both = orders(SAMPLED)
    assert both.largest == pytest.approx(math.log(1.3), rel=1e-12)
    assert [mix.largest for mix in both.above] == pytest.approx([math.log(1.3), -math.log(0.925)], rel=1e-12)
    one_sided = orders(PoissonSampled(ApproximateDP(1.0, 1e-3), 0.1))
    assert one_sided.infinite_mass == pytest.approx(1e-4, rel=1e-12)


def test_divergences_go_from_the_mean_to_the_largest_loss():
    both = orders(SAMPLED * 4)
    assert both.rdp(1) == max(mix.mean for mix in both.all)
    assert both.rdp(math.inf) == pytest.approx(4 * math.log(1.3), rel=1e-12)
    assert both.rdp(1) < both.rdp(2) < both.rdp(math.inf)


def test_at_delta_zero_only_bounded_losses_answer():
    assert orders(PureDP(0.5) * 3).epsilon(0).upper == pytest.approx(1.5, rel=1e-12)
    for unbounded in (Gaussian(1.0), ApproximateDP(0.1, 1e-9)):
        with pytest.raises(NoSuchGuarantee):
            orders(unbounded).epsilon(0)


def test_a_type_two_error_is_what_the_power_leaves():
    both = orders(SAMPLED * 2)
    power, error = both.power(0.2), both.tradeoff(0.2)
    assert (error.lower, error.upper) == pytest.approx((1 - power.upper, 1 - power.lower))
    assert 0.2 <= power.upper <= both.bad_outcome_by_renyi(0.2).upper


def selection_delta(e0, share, count, epsilon):
    """δ of `count` selections from two whose losses are t = share · e0 and t - e0, by the binomial sum."""
    t = share * e0
    p = math.expm1(e0 - t) * math.exp(t) / math.expm1(e0)
    total = 0.0
    for k in range(count + 1):
        loss = k * t + (count - k) * (t - e0)
        mass = math.comb(count, k) * p**k * (1 - p) ** (count - k)
        total += mass * max(-math.expm1(epsilon - loss), 0.0)
    return total


@pytest.mark.parametrize(("e0", "count", "delta"), [(1.0, 5, 1e-6), (0.1, 100, 1e-6), (3.0, 2, 0.05)])
def test_the_lower_end_of_selections_is_attained_by_one_of_them(e0, count, delta):
    found = (Exponential(e0) * count).epsilon(delta)
    shares = [i / 1000 for i in range(1, 1000)]
    best = max(selection_delta(e0, share, count, found.lower) for share in shares)
    assert best >= delta * (1 - 1e-9)
    assert found.lower > 0.9 * found.upper


def test_sampled_selections_have_a_close_lower_end():
    event = PoissonSampled(Exponential(1.0), 0.3) * 5
    found = event.epsilon(1e-6)
    assert 0.9 * found.upper < found.lower
    there = event.delta(found.lower)
    assert there.upper >= 1e-6


@pytest.mark.parametrize("e0", [1e-9, 1e-3, 20.0, 1e4])
def test_selections_of_any_range_are_bracketed(e0):
    found = (Exponential(e0) * 3).delta(e0)
    assert 0 <= found.lower <= found.upper <= 1


def test_the_laws_of_a_sample_are_paid_for_once_and_so_are_those_of_samples_in_it():
    inner = PoissonSampled(Gaussian(1.0) + Laplace(2.0), 0.1)
    outer = PoissonSampled(inner + Laplace(3.0), 0.2)
    purse = Purse(10 * MADE)
    for _ in range(2):
        orders(outer + Laplace(1.0))._buy_laws(purse)
        assert purse.left == 7 * MADE  # one order inside, as both are equal there, and two outside
    orders(inner + Laplace(1.0))._buy_laws(purse)
    assert purse.left == 7 * MADE


def test_a_delta_costs_no_more_than_one_answer_may(monkeypatch):
    """Chernoff's bound, of each order and of each pair of a family, asked for moments as steep as nobody paid for."""
    nodes, grid = [], SampledGaussianLoss._grid

    def counted(loss, c, h, most):
        places = grid(loss, c, h, most)
        nodes.append(0 if places is None else places.size)
        return places

    monkeypatch.setattr(SampledGaussianLoss, "_grid", counted)
    for kept in (SampledGaussianLoss._log_moment, SampledGaussianLoss._moment_grid):
        kept.cache_clear()
    steps = PoissonSampled(Gaussian(0.43), 9e-4) + PoissonSampled(Gaussian(0.81), 8e-3) * 4
    others = Exponential(0.06) + Laplace(0.5) * 9 + Concentrated(mu=0.05, tau=0.013) * 2
    found = (steps + others).group(2).delta(100.0)
    assert 0.9 * found.upper < found.lower
    assert MOMENT * sum(nodes) < WHOLE


@pytest.mark.parametrize("event", [Gaussian(1.0) + ZeroConcentrated(0.1), PoissonSampled(Laplace(1.0) * 2, 0.3)])
def test_what_a_delta_is_found_from_is_paid_from_one_purse(monkeypatch, event):
    purses, found = [], solve.candidates
    monkeypatch.setattr(solve, "candidates", lambda *of: purses.append(of[2]) or found(*of))
    orders(event).delta(0.7)
    assert len(purses) > 1
    for purse in purses:
        while purse.whole is not None:
            purse = purse.whole
        assert purse._bought is purses[0]._bought
        assert purse.left <= WHOLE


ASYMMETRIC = LossDistribution([-1.0, 0.2], [0.1, 0.85], 0.05)
ASKED = [
    PoissonSampled(Gaussian(1.1), 1e-3) * 100,
    PoissonSampled(Gaussian(0.8), 5e-4) * 15,
    PoissonSampled(Gaussian(2.0), 0.01) * 50 + Laplace(30.0),
    LossDistribution([-2.0, 0.2], [0.02, 0.98]) * 20,  # the added order costs more
    ASYMMETRIC + Gaussian(3.0),
    Gaussian(5.0) * 3,
    SAMPLED * 4,
    ZeroConcentrated(0.01),
]


@pytest.mark.parametrize("event", ASKED, ids=repr)
@pytest.mark.parametrize("delta", [0.06, 1e-4, 1e-8])
def test_what_a_search_asks_for_is_never_under_what_costs_most(event, delta):
    """Of the orders that a search leaves out, none costs more than the one it tells of."""
    if delta <= event.infinite_mass:
        return
    known = orders(event)
    truth, found = known.epsilon(Total(delta)), known.searched_epsilon(Total(delta), Purse(WHOLE))
    assert truth.lower <= found.upper
    if truth.upper <= truth.lower * (1 + 1e-3):
        assert found.upper <= truth.upper * (1 + 1e-3)


@pytest.mark.parametrize("event", ASKED, ids=repr)
@pytest.mark.parametrize("delta", [0.06, 1e-4, 1e-8])
def test_a_rough_bound_holds_and_is_no_higher_than_that_of_the_curves(event, delta):
    known = orders(event)
    rough = known.rough_epsilon(Total(delta))
    assert known.epsilon(Total(delta)).lower <= rough <= known.renyi_epsilon(Total(delta))


def test_where_steps_are_rare_a_rough_bound_is_near():
    """Where the Rényi curves give ten times the truth."""
    known = orders(PoissonSampled(Gaussian(2.0), 1e-3) * 100)
    truth = known.epsilon(Total(1e-7)).upper
    assert known.rough_epsilon(Total(1e-7)) < 1.3 * truth < known.renyi_epsilon(Total(1e-7)) / 5
