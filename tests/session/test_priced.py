"""What is explained for nothing and released for a price: charged once, before a row is read, and kept."""

import pytest

from sitr.errors import BudgetExceeded, EngineFailed
from sitr.tables.source import Source
from tests.synthesis.visits import DECLARED, visits
from tests.tables import engines


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


@pytest.fixture(scope="module")
def made(clinic):
    return clinic.table("visits").synthesize(["age", "smokes"]).release(epsilon=4, operation="synthetic visits")


def test_what_is_charged_is_what_the_bill_says_and_once(clinic, made):
    table = clinic.table("visits").synthesize(["age", "smokes"])
    assert made.event == table.explain(epsilon=4).plan.event
    before = clinic.ledger.head
    again = table.release(epsilon=4, operation="synthetic visits")
    assert again.kept
    assert "nothing was charged" in str(again)
    assert again.sample(100, seed=3).equals(made.sample(100, seed=3))
    assert clinic.ledger.head == before
    assert table.asked_before(epsilon=4) == "synthetic visits"
    (line,) = [one for one in str(clinic.ledger.statement("test")).splitlines() if "synthesize" in one]
    assert "of visits" in line


def test_what_does_not_fit_is_refused_before_anything_is_read(clinic, monkeypatch):
    table = clinic.table("visits").synthesize(["age"])
    assert "This does not fit" in str(table.explain(epsilon=50))
    monkeypatch.setattr(Source, "count", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(BudgetExceeded, match="short by"):
        table.release(epsilon=50)


def test_an_engine_that_fails_on_rows_leaves_the_charge_and_says_nothing(clinic, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("malaria")

    monkeypatch.setattr(Source, "count", fails)
    with pytest.raises(EngineFailed) as refused:
        clinic.table("visits").synthesize(["age"]).release(epsilon=0.01)
    assert "malaria" not in str(refused.value)
