"""One budget, read from the entries of its book: what it has to bear, and what it went through."""

import math

import pytest

from sitr.accounting import Gaussian, PureDP
from sitr.errors import UnknownName
from sitr.ledger import Budget, Ledger
from sitr.ledger.history import History, exact_of


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


def test_a_history_is_of_its_own_budget_alone():
    ledger = Ledger.open("memory://")
    for name in ("clinic", "school"):
        ledger.create_budget(name, Budget(epsilon=8))
    ledger.create_budget("clinic", Budget(epsilon=4), analyst="amina")
    for datasets, analyst in (
        ("clinic", "amina"),
        ("school", "amina"),
        ("clinic", "badr"),
        (["clinic", "school"], "badr"),
    ):
        ledger.reserve(datasets, PureDP(epsilon=1), analyst=analyst)
    ledger.raise_budget("school", Budget(epsilon=16), reason="more")
    points = {
        name: [(point.kind, point.left) for point in History.of(ledger.entries(), name).points]
        for name in ("clinic", "school", "clinic/analyst/amina")
    }
    assert points["clinic"] == [("budget", 1.0), *[("reserve", left / 8) for left in (7, 6, 5)]]
    assert points["school"] == [("budget", 1.0), ("reserve", 7 / 8), ("reserve", 6 / 8), ("raise", 14 / 16)]
    assert points["clinic/analyst/amina"] == [("budget", 1.0), ("reserve", 3 / 4)]
    assert History.of(ledger.entries(), "lab").promises == []


def test_what_was_refunded_is_borne_by_nobody():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=8))
    for name in ("kept", "back"):
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", operation=name)
    ledger.refund("back", reason="never ran")
    told = ledger.statement("clinic")
    assert told.exact.upper == pytest.approx(1)
    assert [point.left for point in told.points] == [1.0, 7 / 8, 6 / 8, 7 / 8]
    assert [line.state for line in told.releases] == ["reserved", "refunded"]
