"""What keeps a budget: its record, and how a raise counts what was spent."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting.filters import WHOLE
from sitr.errors import LedgerDamaged
from sitr.ledger import Budget
from sitr.ledger.keeper import Keeper
from tests.ledger.test_budget import BUDGETS


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_keeper_survives_its_record(budget):
    keeper = Keeper.of(budget)
    assert Keeper.from_json(keeper.to_json()) == keeper
    assert keeper.budget.promise in str(budget)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epsilon":1}', '{"epsilon":1,"filter":{"type":"magic"}}', "null"])
def test_records_that_are_no_budget(text):
    with pytest.raises(LedgerDamaged, match="a stored budget cannot be read"):
        Keeper.from_json(text)


@given(st.integers(0, WHOLE), st.floats(0.01, 50), st.floats(1, 20))
def test_a_raise_forgets_nothing(used, epsilon, factor):
    old, new = Keeper.of(Budget(epsilon=epsilon)), Keeper.of(Budget(epsilon=epsilon * factor))
    after = old.rescaled((used, 0), new)[0]
    before, limit = used * Fraction(old.filters.limits[0]), Fraction(new.filters.limits[0])
    assert before <= after * limit < before + limit


def test_a_filter_that_joins_takes_no_part_of_delta_and_stays():
    alone = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
    joined = alone.joined()
    assert joined.limits == (*alone.limits, ("pure", 1.0))
    assert joined.filters.limits == (*alone.filters.limits, 1.0)
    assert joined.filters.members[1].delta == alone.filters.members[0].delta
    assert Keeper.from_json(joined.to_json()) == joined
    assert joined.raised(Budget(epsilon=2.0, delta=1e-6)).kind == "rdp+pure"
    assert joined.order == alone.order == joined.raised(Budget(epsilon=2.0, delta=1e-6)).order
    assert Keeper.of(Budget(epsilon=9000.0, delta=1e-6)).joined().filters.limits[2] == 5000.0


@pytest.mark.parametrize(("limit", "kept"), [(1.0, True), (0.9, True), (1.001, False), (2.0, False)])
def test_a_filter_that_joined_allows_no_more_than_is_promised(limit, kept):
    joined = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).joined()
    changed = dataclasses.replace(joined, limits=(*joined.limits[:3], ("pure", limit)))
    assert changed.keeps_promise() == kept


def test_filters_of_another_kind_keep_no_promise():
    two = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).joined()
    for budget in (Budget(epsilon=1.0), Budget(rho=1.0), Budget(rho=1.0, delta=1e-6)):
        assert not dataclasses.replace(two, budget=budget).keeps_promise()


@pytest.mark.parametrize(
    "change",
    [
        ("[[0,1],[2,1]]", "[[0,1],[2]]"),
        (',"ways":[[0,1],[2,1]]', ""),
        ('"type":"rdp+pure"', '"type":"rdp"'),
        ('"type":"rdp+pure"', '"type":"pure+rdp"'),
        (',"pure":1.0', ""),
    ],
)
def test_filters_hold_together_in_their_own_ways_alone(change):
    text = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).joined().to_json()
    assert change[0] in text
    with pytest.raises(LedgerDamaged, match="a stored budget cannot be read"):
        Keeper.from_json(text.replace(*change))


def test_the_records_of_older_budgets_stay_as_they_were():
    """A book compares them word for word."""
    assert all("ways" not in Keeper.of(budget).to_json() for budget in BUDGETS)


@given(st.integers(0, 10**30), st.floats(1, 50))
def test_what_is_dead_stays_dead_and_what_was_charged_is_given_back_rounded_down(used, factor):
    old = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
    new = old.raised(Budget(epsilon=1.0 + factor, delta=1e-6)).joined()
    up, down = old.rescaled((used, None), new), old.rescaled((used, None), new, up=False)
    assert up[1:] == down[1:] == (None, 0)  # of the filter that joined since, nothing
    exact = used * Fraction(old.filters.limits[0]) / Fraction(new.filters.limits[0])
    assert down[0] <= exact <= up[0] <= down[0] + 1
