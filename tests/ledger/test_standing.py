"""How a budget stands: rounded to the safe side, by the filter that has the most left."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import Gaussian, PureDP
from sitr.accounting.filters import WHOLE
from sitr.ledger import Budget, Standing
from sitr.ledger.keeper import Keeper
from sitr.ledger.standing import rounded_share
from tests.ledger.test_keeper import alone

PURE = Keeper.of(Budget(epsilon=3.0))
TWO = alone().joined()


@given(st.integers(0, WHOLE), st.integers(0, WHOLE))
def test_spent_rounds_up_and_left_rounds_down(cost, parts):
    keeper = Keeper.of(Budget(rho=3.0, delta=1e-6))
    spent, left = Standing(keeper, (cost, parts)).spent, Standing(keeper, (cost, parts)).remaining
    assert Fraction(spent.value) >= Fraction(3 * cost, WHOLE)
    assert Fraction(left.value) <= Fraction(3 * (WHOLE - cost), WHOLE)
    assert Fraction(spent.share) >= Fraction(cost, WHOLE)
    assert Fraction(left.share) <= 1 - Fraction(cost, WHOLE)
    assert Fraction(spent.delta_share) >= Fraction(parts, WHOLE)
    assert Fraction(left.delta_share) <= 1 - Fraction(parts, WHOLE)
    assert (spent.measure, spent.order) == ("rho", None)


@given(st.integers(0, 2**60))
def test_a_share_is_rounded_to_the_side_that_was_asked_for(units):
    down, up = rounded_share(units, -math.inf), rounded_share(units, math.inf)
    assert Fraction(down) <= Fraction(units, WHOLE) <= Fraction(up)
    assert up <= math.nextafter(down, math.inf)


def test_of_two_filters_the_one_tells_that_has_the_most_left():
    assert Standing(TWO, (WHOLE // 4, WHOLE, 0)).remaining.measure == "epsilon"
    assert Standing(TWO, (WHOLE // 4, WHOLE, 0)).remaining.value == 0.75
    told = Standing(TWO, (None, WHOLE // 4, 0)).spent
    assert (told.measure, told.order, told.share) == ("rdp", alone().filter.alpha, 0.25)
    assert Standing(TWO, (None, None, 0)).remaining.share == 0
    assert Standing(TWO, (None, None, 0)).spent.share == 1


def test_after_an_event_every_place_has_its_cost():
    standing = Standing(TWO, TWO.nothing).after(PureDP(epsilon=0.5)).after(Gaussian(noise_multiplier=50))
    assert standing.used[0] is None
    assert standing.remaining.measure == "rdp"
    assert standing.used[1] == sum(
        TWO.units(event)[1] for event in (PureDP(epsilon=0.5), Gaussian(noise_multiplier=50))
    )


def test_ten_tenths_fit_and_no_more():
    standing = Standing(PURE, PURE.nothing)
    for _ in range(10):
        assert standing.admits(PureDP(epsilon=0.3))
        standing = standing.after(PureDP(epsilon=0.3))
    assert standing.remaining.value == pytest.approx(0.0, abs=1e-15)
    assert not standing.admits(PureDP(epsilon=1e-6))
