"""Statements: rounded to the safe side, exact beside them, and what would fit."""

import math

import pytest

from sitr.accounting import (
    ApproximateDP,
    Gaussian,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
    ZCDPFilter,
)
from sitr.errors import BudgetExceeded, UnknownName
from sitr.ledger import Budget, Ledger
from sitr.ledger.history import exact_of
from sitr.ledger.statement import noise_factor


def test_a_statement_says_it_all(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6, unit="patient"))
    for number in range(3):
        with ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation=f"q{number}") as grant:
            grant.commit(1)
    ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation="open")
    ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation="back")
    ledger.refund("back", reason="not run")
    ledger.raise_budget("clinic", Budget(epsilon=2, delta=1e-6, unit="patient"), reason="ethics board 12")
    told = ledger.statement("clinic")
    assert told.operations == {"committed": 3, "refunded": 1, "reserved": 1}
    assert told.event == Gaussian(noise_multiplier=20) * 4
    assert told.spent == ledger.spent("clinic")
    assert told.exact.upper < 1
    assert told.head == ledger.head
    text = str(told)
    for words in ("patient", "ethics board 12", "if this sequence had been fixed in advance", "3 committed"):
        assert words in text
    points = told.points
    assert [point.kind for point in points] == ["budget", *["reserve"] * 5, "refund", "raise"]
    assert points[0].left == 1.0
    assert points[-1].left > points[-2].left


def test_a_statement_of_blocks_is_of_the_one_that_spent_most(ledger):
    ledger.create_budget("clinic", Budget(epsilon=8, disjoint_by="ward"))
    for blocks in (["a"], ["b"], ["b"], []):
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", blocks=blocks)
    told = ledger.statement("clinic")
    assert (told.block, told.spent.value) == ("b", 3)
    assert told.exact.upper == pytest.approx(3, rel=1e-6)


def test_nothing_was_asked(ledger):
    ledger.create_budget("clinic", Budget(epsilon=8))
    told = ledger.statement("clinic")
    assert (told.spent.value, told.exact.upper, told.operations) == (0, 0, {})
    assert "none" in str(told)
    with pytest.raises(UnknownName):
        ledger.statement("school")


def test_a_refusal_says_what_would_fit(ledger):
    ledger.create_budget("clinic", Budget(rho=0.5, delta=1e-9))
    with pytest.raises(BudgetExceeded, match=r"what fits into this budget: the same with 2.00 times the noise"):
        ledger.reserve("clinic", Gaussian(noise_multiplier=0.5), analyst="amina")
    with pytest.raises(BudgetExceeded, match="δ-parts"):
        ledger.reserve("clinic", ApproximateDP(epsilon=0.01, delta=1e-6), analyst="amina")


INSIDE = {
    "itself": lambda noise: noise,
    "sampled": lambda noise: PoissonSampled(noise, 1.0),
    "batch": lambda noise: SampledWithoutReplacement(noise, 10, 10),
    "passes": lambda noise: ShuffledEpochs(noise, 1) + noise * 3,
}


@pytest.mark.parametrize("wrap", INSIDE.values(), ids=INSIDE.keys())
def test_more_noise_is_that_of_what_is_inside(wrap):
    limit = ZCDPFilter(rho=wrap(Gaussian(noise_multiplier=1)).zcdp().rho)
    assert noise_factor(limit, wrap(Gaussian(noise_multiplier=0.5))) == "2.00"
    assert noise_factor(limit, ShuffledReports(RandomizedResponse(p=0.999999), n=2)) == ""


def test_a_refusal_speaks_of_parts_where_the_measure_is_no_price(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("clinic", PureDP(epsilon=4), analyst="amina")
    assert "% of it requested, 100 % left, short by" in refused.value.what
    assert "divergence" not in refused.value.what


def test_a_statement_is_made_of_whatever_was_charged():
    """More of one event than can be composed, and an event by hand that has no ε of the budget's kind."""
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    for _ in range(2):
        ledger.reserve("clinic", PureDP(1e-12) * 10**9, analyst="amina")
    told = ledger.statement("clinic")
    assert (told.unreadable, told.spent.value) == (2, pytest.approx(0.002, rel=1e-9))
    delta, exact = exact_of(Budget(epsilon=1.0), Gaussian(2.0))
    assert (delta, exact.lower, exact.upper) == (0.0, 0.0, math.inf)
