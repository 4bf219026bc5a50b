"""What keeps a budget: its record, and how a raise counts what was spent."""

import dataclasses
import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import choose_filter
from sitr.accounting.filters import WHOLE
from sitr.errors import LedgerDamaged
from sitr.ledger import Budget
from sitr.ledger.keeper import Keeper
from tests.ledger.test_budget import BUDGETS


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_keeper_survives_its_record(budget):
    keeper = Keeper.of(budget)
    read = Keeper.from_json(keeper.to_json())
    assert read == keeper
    assert read.filter.adjacency == budget.adjacency  # by which it refuses events of other neighbours
    assert keeper.budget.promise in str(budget)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epsilon":1}', '{"epsilon":1,"filter":{"type":"magic"}}', "null"])
def test_records_that_are_no_budget(text):
    with pytest.raises(LedgerDamaged, match="a stored budget cannot be read"):
        Keeper.from_json(text)


@given(st.integers(0, WHOLE), st.floats(0.01, 50), st.floats(1, 20))
def test_a_raise_forgets_nothing(used, epsilon, factor):
    old, new = Keeper.of(Budget(epsilon=epsilon)), Keeper.of(Budget(epsilon=epsilon * factor))
    after = old.rescaled((used, 0), new)[0]
    before, limit = used * Fraction(old.filter.limits[0]), Fraction(new.filter.limits[0])
    assert before <= after * limit < before + limit


def alone(epsilon=1.0, delta=1e-6):
    """An (ε,δ) budget of an older book, which one Rényi order keeps."""
    return Keeper.of(Budget(epsilon=epsilon, delta=delta), choose_filter(epsilon, delta))


def test_a_filter_that_joins_takes_no_part_of_delta_and_stays():
    joined = alone().joined()
    assert joined.filter.limits == (1.0, *alone().filter.limits)
    assert {member.delta for member in joined.filter.members} == {alone().filter.delta}
    assert Keeper.from_json(joined.to_json()) == joined
    higher = joined.raised(Budget(epsilon=2.0, delta=1e-6))
    assert [order.alpha for order in higher.filter.orders] == [alone().filter.alpha]
    assert alone(5000.0).alone
    assert not alone(5001.0).alone  # more than pure ε is counted up to


@pytest.mark.parametrize("factor", [1.001, 2.0])
@pytest.mark.parametrize("name", ["epsilon", "parts", "whole", "mu", "delta_1", "divergence_1"])
def test_filters_that_allow_more_than_is_promised_are_refused(name, factor):
    keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
    limits = tuple((other, value * factor if other == name else value) for other, value in keeper.limits)
    record = json.loads(keeper.to_json())
    record["filter"] |= dict(limits)
    try:
        kept = Keeper.from_json(json.dumps(record)).keeps_promise()
    except LedgerDamaged:
        kept = False
    assert not kept


def test_filters_of_another_kind_keep_no_promise():
    for two in (alone(), alone().joined(), Keeper.of(Budget(epsilon=1.0, delta=1e-6))):
        for budget in (Budget(epsilon=1.0), Budget(rho=1.0), Budget(rho=1.0, delta=1e-6)):
            assert not dataclasses.replace(two, budget=budget).keeps_promise()
    pure, zcdp = Keeper.of(Budget(epsilon=1.0)), Keeper.of(Budget(rho=1.0))
    assert not dataclasses.replace(pure, budget=zcdp.budget).keeps_promise()
    assert not dataclasses.replace(zcdp, budget=pure.budget).keeps_promise()


@pytest.mark.parametrize(
    "change",
    [
        ("[[0,2],[1,2]]", "[[0,2],[1]]"),
        (',"ways":[[0,2],[1,2]]', ""),
        ('"type":"union"', '"type":"rdp"'),
        ('"type":"union"', '"type":"magic"'),
        ('"parts":', '"part":'),
    ],
)
def test_filters_hold_together_in_their_own_ways_alone(change):
    text = alone().joined().to_json()
    assert change[0] in text
    with pytest.raises(LedgerDamaged, match="a stored budget cannot be read"):
        Keeper.from_json(text.replace(*change))


@pytest.mark.parametrize("name", ["alpha_1", "delta_1", "divergence_2", "whole", "mu", "parts"])
def test_a_raise_that_changes_a_share_or_an_order_is_not_followed(name):
    due = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).raised(Budget(epsilon=2.0, delta=1e-6))
    other = tuple((each, value * (0.9 if each == name else 1 + 2.0**-45)) for each, value in due.limits)
    assert not dataclasses.replace(due, limits=other).follows(due)
    near = tuple((each, value * (1 + 2.0**-45)) for each, value in due.limits)
    assert dataclasses.replace(due, limits=near).follows(due)


def test_a_raise_that_is_of_another_promise_kind_or_length_is_not_followed():
    due = Keeper.of(Budget(epsilon=1.0)).raised(Budget(epsilon=2.0))
    others = [
        dataclasses.replace(due, budget=Budget(epsilon=2.0, adjacency="replace_one")),
        dataclasses.replace(due, budget=Budget(epsilon=3.0)),
        dataclasses.replace(due, kind="zcdp"),
        dataclasses.replace(due, limits=due.limits[:1]),
        dataclasses.replace(due, limits=(*due.limits, ("rho", 1.0))),
    ]
    assert due.follows(due)
    assert [other.follows(due) for other in others] == [False] * 5


def test_the_records_of_older_budgets_stay_as_they_were():
    """A book compares them word for word."""
    older = [Keeper.of(budget) for budget in BUDGETS if budget.rho or not budget.delta] + [alone()]
    assert all("ways" not in keeper.to_json() for keeper in older)


@given(st.integers(0, 10**30), st.floats(1, 50))
def test_what_is_dead_stays_dead_and_what_was_charged_is_given_back_rounded_down(used, factor):
    old = alone()
    new = old.raised(Budget(epsilon=1.0 + factor, delta=1e-6)).joined()
    up, down = old.rescaled((used, None), new), old.rescaled((used, None), new, up=False)
    assert (up[0], up[2]) == (down[0], down[2]) == (0, None)  # of the filter that joined since, nothing
    exact = used * Fraction(old.filter.limits[0]) / Fraction(new.filter.limits[1])
    assert (down[1], up[1]) == (math.floor(exact), math.ceil(exact))
