"""What is left, for people: ε and δ are told apart, and a number of releases like the last is one that is taken."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import ApproximateDP, Gaussian, PureDP
from sitr.accounting.filters import WHOLE
from sitr.errors import BudgetExceeded
from sitr.ledger import Budget
from sitr.ledger.asked import Asked
from sitr.ledger.keeper import Keeper
from sitr.ledger.left import NO_GROUPS, lacks_delta, more_text, shares_text
from sitr.ledger.standing import Standing

BOTH = Budget(epsilon=3.0, delta=1e-6)
GROUPS = ApproximateDP(epsilon=0.1, delta=2.4825e-7)  # of what any filter keeps for δ-parts, nearly all
COUNT = PureDP(epsilon=0.1)


@given(st.integers(0, WHOLE), st.integers(0, WHOLE))
def test_the_one_part_says_nothing_of_the_other(cost, parts):
    """What is left for δ-parts does not move what is said of ε, and the other way round."""
    keeper = Keeper.of(Budget(rho=1.0, delta=1e-6))
    told = Standing(keeper, (cost, parts)).remaining
    assert told.share == Standing(keeper, (cost, 0)).remaining.share
    assert told.delta_share == Standing(keeper, (0, parts)).remaining.delta_share
    assert shares_text(told, spent=False).startswith("ρ part ")
    assert Standing(Keeper.of(Budget(rho=1.0)), (cost, 0)).remaining.delta_share is None


def test_one_question_whose_groups_are_found_takes_the_delta_and_not_the_budget(ledger):
    """As an owner saw it: 99.3 % of the budget was said to be spent, and four more questions ran."""
    ledger.create_budget("stays", BOTH)
    count = Asked("SELECT COUNT(*) FROM stays", epsilon=0.1)
    ledger.reserve("stays", GROUPS, analyst="amina", asked=Asked("top 10", epsilon=0.1, delta=2.4825e-7))
    ledger.reserve("stays", COUNT, analyst="amina", asked=count)
    told = ledger.statement("stays")
    rows = dict(told.rows())
    assert told.remaining.share > 0.9
    assert told.remaining.delta_share < 0.01
    assert told.no_groups
    assert rows["left"].startswith("ε part: 9")
    assert re.search(rf"; δ part: 0\.(699|7)\d* % \(1\.7\d*e-09\): {NO_GROUPS}$", rows["left"])
    assert rows["fits"].startswith("about ")
    assert rows["fits"].endswith(" more like the last, at ε = 0.1")
    with pytest.raises(BudgetExceeded, match="δ-parts"):
        ledger.reserve("stays", GROUPS, analyst="amina")
    for _ in range(4):
        ledger.reserve("stays", COUNT, analyst="amina", asked=count)
    assert [point.delta_left < 0.01 for point in told.points] == [False, True, True]
    assert all(point.left > 0.9 for point in told.points)


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), BOTH, Budget(rho=0.1), Budget(rho=0.1, delta=1e-6)])
@pytest.mark.parametrize("event", [PureDP(epsilon=0.3), PureDP(epsilon=0.11) * 2])
def test_as_many_more_as_are_said_to_fit_are_taken_and_none_more(ledger, budget, event):
    ledger.create_budget("clinic", budget)
    ledger.reserve("clinic", event, analyst="amina", asked=Asked("q", epsilon=0.3))
    found = ledger.statement("clinic").more
    more = int(found.removeprefix("about ").split(" ")[0].replace(",", "")) if found.startswith("about") else 0
    for _ in range(more):
        ledger.reserve("clinic", event, analyst="amina")
    assert ledger.statement("clinic").more == "none like the last any more"
    with pytest.raises(BudgetExceeded):
        ledger.reserve("clinic", event, analyst="amina")


def test_of_several_filters_the_one_that_admits_most_like_the_last_speaks():
    """A budget of ε at δ may be kept by a Rényi order and by pure ε: of small events the first admits more."""
    keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
    standing = Standing(keeper, keeper.nothing)
    for event in (PureDP(epsilon=0.5), PureDP(epsilon=0.01), Gaussian(noise_multiplier=40)):
        most = standing.filter.releases(event)
        assert more_text(standing, event, "", like="this") == f"about {most:,} more like this"
    assert more_text(standing, ApproximateDP(epsilon=0.1, delta=1e-3), "", like="this") == NO_GROUPS
    assert lacks_delta(Standing(Keeper.of(Budget(epsilon=1.0)), (0, 0)), GROUPS)


def test_what_fits_before_anything_was_asked_is_a_noise(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    assert dict(ledger.statement("clinic").rows())["fits"] == "one Laplace(noise_multiplier=1.00)"
    ledger.create_budget("full", Budget(epsilon=1.0))
    ledger.reserve("full", PureDP(epsilon=1.0), analyst="amina")
    assert dict(ledger.statement("full").rows())["fits"] == "none like the last any more"
