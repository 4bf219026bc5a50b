"""Claims that are Rényi curves: read on the safe side, converted by the better conversion."""

import math
from fractions import Fraction

import pytest

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    Renyi,
    ZeroConcentrated,
)

INF = math.inf


def converted(rdp, delta):
    """THEORY 3.2 on a fine grid of orders."""
    orders = [1 + math.exp(u / 200) for u in range(-2000, 2400)]
    return min(rdp(a) + math.log((a - 1) / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in orders)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-30])
@pytest.mark.parametrize(("rho", "xi"), [(0.5, 0.0), (1e-4, 0.0), (30.0, 0.0), (0.1, 0.7)])
def test_zcdp_is_converted_at_the_best_order(rho, xi, delta):
    bound = max(converted(lambda a: xi + rho * a, delta), 0.0)
    assert float(ZeroConcentrated(rho, xi).epsilon(delta)) == pytest.approx(bound, rel=1e-4)


def test_the_conversions_of_theory():
    assert float(Concentrated(0.5, 1.0).epsilon(1e-6)) == pytest.approx(5.22, abs=5e-3)
    assert float((Renyi(formula=PoissonSampled(Gaussian(1.1), 256 / 60000)) * 14062).epsilon(1e-5)) == pytest.approx(
        2.5965, abs=1e-4
    )


def test_a_claim_and_the_mechanism_that_meets_it_bracket_the_worst():
    found, least = ZeroConcentrated(0.5).epsilon(1e-6), Gaussian(1.0).epsilon(1e-6)
    assert found.lower == pytest.approx(least.lower, rel=1e-9)
    assert found.upper > least.upper


def test_claims_are_summed_before_they_are_converted():
    both = ZeroConcentrated(0.2) + ZeroConcentrated(0.3)
    assert both.epsilon(1e-6).upper == pytest.approx(ZeroConcentrated(0.5).epsilon(1e-6).upper, rel=1e-6)


def test_a_concentrated_mean_is_at_most_half_the_square_of_the_standard():
    assert Concentrated(9.0, 1.0).rdp(1) == pytest.approx(0.5)
    assert Concentrated(0.1, 1.0).rdp([1, 3]).tolist() == pytest.approx([0.1, 1.1])


def test_a_table_is_read_by_its_chords():
    table = Renyi([(2, 0.1), (4, 0.3)])
    assert table.rdp(2) == pytest.approx(0.1)
    assert table.rdp(3) == pytest.approx((0.1 + 0.9) / 2 / 2)
    assert table.rdp(1.5) == pytest.approx(0.1)
    assert table.rdp(1) == pytest.approx(0.1)
    assert table.rdp([5, INF]).tolist() == [INF, INF]


def test_the_order_of_the_rows_does_not_matter():
    assert (
        Renyi([(4, 0.3), (2, 0.1)]).rdp([1, 2, 3, 4]).tolist() == Renyi([(2, 0.1), (4, 0.3)]).rdp([1, 2, 3, 4]).tolist()
    )


def test_an_entry_at_infinity_bounds_all_orders():
    table = Renyi([(2, 0.1), (INF, 0.2)])
    assert table.rdp([2, 50, INF]).tolist() == pytest.approx([0.1, 0.2, 0.2])
    assert table.pure() == pytest.approx(0.2)
    assert float(table.epsilon(0)) == pytest.approx(0.2)


def test_several_entries_at_one_order_are_all_true():
    assert Renyi([(2, 0.5), (2, 0.1), (2, 0.3)]).rdp(2) == pytest.approx(0.1)


def test_an_entry_at_one_bounds_the_mean():
    assert Renyi([(1, 0.05), (2, 0.2)]).expected_loss() == pytest.approx(0.05)


def test_the_delta_of_a_claim_is_added():
    plain, approximate = Renyi([(8, 0.1)]), Renyi([(8, 0.1)], delta=1e-7)
    assert approximate.infinite_mass == 1e-7
    assert float(approximate.epsilon(1e-6)) == pytest.approx(float(plain.epsilon(9e-7)), rel=1e-4)
    assert approximate.epsilon(1e-8).upper == INF


def test_a_formula_keeps_the_renyi_curve_and_nothing_else():
    event = Laplace(2.0)
    assert Renyi(formula=event).rdp([1, 1.5, 2, INF]).tolist() == pytest.approx(event.rdp([1, 1.5, 2, INF]).tolist())
    assert Renyi(formula=event).epsilon(1e-6).upper >= event.epsilon(1e-6).upper


def test_a_formula_whose_mass_was_computed_does_not_state_it():
    sampled = PoissonSampled(ApproximateDP(6.5, 1e-8), 0.0012)
    found = Renyi(formula=sampled).delta(6.9)
    assert Fraction(found.lower) < Fraction(0.0012) * Fraction(1e-8) < Fraction(found.upper)
    stated = Renyi(formula=ApproximateDP(6.5, 1e-8)).delta(6.9)
    assert (stated.lower, stated.upper) == (1e-8, 1e-8)


def test_a_claim_composes_with_a_known_mechanism():
    found = (ZeroConcentrated(0.5) + Laplace(2.0) * 3).epsilon(1e-6)
    assert found.upper >= (Gaussian(1.0) + Laplace(2.0) * 3).epsilon(1e-6).lower
    assert found.upper <= (ZeroConcentrated(0.5) + (Laplace(2.0) * 3).zcdp()).epsilon(1e-6).upper * (1 + 1e-6)


def test_proposition_10_at_the_best_order():
    event, p = PureDP(0.1) * 50, 1e-4
    orders = [1 + math.exp(u / 100) for u in range(-800, 1000)]
    best = min((math.exp(event.rdp(a)) * p) ** ((a - 1) / a) for a in orders)
    assert float(event.bad_outcome(p, method="renyi")) == pytest.approx(best, rel=1e-4)
