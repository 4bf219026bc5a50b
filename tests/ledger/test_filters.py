"""The filters that keep one budget together: what events cost in each place, and which of them speaks."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Gaussian,
    Laplace,
    PureDP,
    PureFilter,
    RDPFilter,
    Renyi,
    choose_filter,
)
from sitr.accounting.filters import MOST, WHOLE
from sitr.errors import IncompatibleAdjacency, NoSuchGuarantee
from sitr.ledger.filters import TOLERANCE, Filters, covers

BOTH = Filters([choose_filter(1.0, 1e-6), PureFilter(1.0, choose_filter(1.0, 1e-6).delta)])
LIMIT = BOTH.limits[0]


def at(*used):
    return BOTH.at(used)


@given(st.floats(1e-9, 1e3), st.floats(1e-3, 1e3))
def test_a_cost_is_exact_rounded_up_and_never_clamped(epsilon, limit):
    cost, parts = Filters([PureFilter(limit)]).units(PureDP(epsilon))
    exact = Fraction(epsilon) / Fraction(limit) * WHOLE
    assert exact <= cost < exact + 1
    assert parts == 0


def test_a_step_of_518_times_the_limit_is_that():
    """By a filter's own units it would be one more than may be used: 0.35 of the limit after a raise."""
    filter = PureFilter(0.01)
    assert filter.units(PureDP(5.18)) == (MOST + 1, 0)
    (cost, _) = Filters([filter]).units(PureDP(5.18))
    assert cost == -(-Fraction(5.18) / Fraction(0.01) * WHOLE // 1)
    assert round(cost / WHOLE) == 518


def test_each_place_is_that_of_its_filter_and_parts_stand_once():
    event = ApproximateDP(0.25, 1e-9)
    order, pure = BOTH.members
    assert BOTH.units(event) == (*order.units(event), pure.units(event)[0])
    assert order.units(event)[1] == pure.units(event)[1]
    assert BOTH.limits == (order.limit, order.delta, 1.0)


def test_what_has_no_guarantee_in_one_notion_is_dead_there_and_in_none_is_refused():
    assert BOTH.units(Gaussian(noise_multiplier=30))[2] is None
    turned = Filters([PureFilter(1.0), RDPFilter(alpha=20, epsilon=1.0)])
    cost, parts, order = turned.units(Gaussian(noise_multiplier=30))
    assert (cost, parts) == (None, 0)
    assert order > 0
    for filters, event in ((BOTH, Renyi(points=[(2.0, 0.1)])), (Filters([PureFilter(1.0)]), Gaussian(30))):
        with pytest.raises(NoSuchGuarantee):
            filters.units(event)
    with pytest.raises(IncompatibleAdjacency):
        Filters([PureFilter(1.0, adjacency="replace_one")]).units(Laplace(2, adjacency="add_remove"))


@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_what_covers_a_charge(paid, due):
    assert covers(paid, due) == (paid >= due * (1 - Fraction(TOLERANCE)))
    assert covers(None, due)
    assert covers(None, None)
    assert not covers(paid, None)


def test_a_record_of_other_places_is_not_accepted():
    event = PureDP(0.25)
    due = BOTH.units(event)
    assert BOTH.accepts(event, due)
    assert BOTH.accepts(event, (None, None, None))
    assert not BOTH.accepts(event, due[:2])
    assert not BOTH.accepts(event, (*due, 0))
    for place in range(3):
        less = tuple(units // 2 if place == one else units for one, units in enumerate(due))
        assert BOTH.accepts(event, less) == (due[place] == 0)


def test_an_event_is_admitted_while_one_way_holds():
    half, gauss = PureDP(0.5), Gaussian(noise_multiplier=30)
    assert at(0, 0, WHOLE // 2).admits(half)
    assert at(MOST, 0, WHOLE // 2).admits(half)  # by pure ε
    assert not at(MOST, 0, WHOLE // 2).admits(gauss)
    assert at(0, 0, MOST).admits(half)  # by the order
    assert at(0, 0, None).admits(half)
    assert not at(MOST, 0, None).admits(half)
    assert not at(0, MOST + 1, 0).admits(half)  # δ-parts are a condition of both
    assert not at(0, None, 0).admits(half)


def test_the_one_speaks_that_admits_the_most_and_its_numbers_are_its_own():
    dear, small = PureDP(0.5), PureDP(0.01)
    assert isinstance(at(0, 0, 0).serving(dear), PureFilter)
    assert isinstance(at(0, 0, 0).serving(small), RDPFilter)
    assert at(0, 0, 0).releases(dear) == 2
    assert at(0, 0, 0).releases(small) > 400
    assert at(WHOLE // 2, 0, WHOLE // 4).serving().remaining()["epsilon"] == 0.75
    assert at(WHOLE // 4, 0, WHOLE // 2).serving().remaining()["epsilon"] == pytest.approx(0.75 * LIMIT)
    assert isinstance(at(WHOLE, 0, None).serving(), RDPFilter)
    assert at(None, 0, None).serving().remaining() == {"epsilon": 0.0, "delta": BOTH.limits[1]}
    assert at(10**400, 0, 10**500).serving().spent()["epsilon"] == LIMIT
    assert at(10**400, 0, 10**500).releases(small) == 0


def test_nothing_of_an_unused_filter_changes():
    at(5, 5, 5).serving()
    assert [member.used for member in BOTH.members] == [(0, 0), (0, 0)]
    assert BOTH.used == (0, 0, 0)


def test_a_full_budget_is_decided_as_a_single_filter_decides_it():
    tenth = PureDP(0.1)
    filters = at(0, 0, 0)
    assert filters.releases(tenth) == 10
    assert PureFilter(1.0).units(tenth)[0] * 10 <= MOST
