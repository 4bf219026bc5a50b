"""The budgets of a book as they stand now: read once, and again when one was changed or created."""

import pytest

from sitr.accounting import PureDP
from sitr.errors import UnknownName
from sitr.ledger import Budget, Ledger, budgets
from sitr.ledger.budgets import Budgets
from sitr.ledger.request import Request

TENTH = PureDP(epsilon=0.1)


def request(datasets="clinic", analyst="amina", purpose=None):
    return Request(datasets, TENTH, analyst, None, purpose, (), None)


@pytest.fixture
def book():
    """A book with two datasets, shares of an analyst and of a purpose, and something spent."""
    ledger = Ledger.open("memory://")
    for name in ("clinic", "school"):
        ledger.create_budget(name, Budget(epsilon=1.0))
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
    ledger.create_budget("school", Budget(epsilon=0.25), purpose="audit")
    ledger.reserve("clinic", TENTH, analyst="amina")
    return ledger


def test_a_request_falls_under_its_datasets_and_the_shares_of_who_asks_and_what_for(book):
    found = Budgets(book.store)
    assert list(found.keepers(request())) == ["clinic", "clinic/analyst/amina"]
    assert list(found.keepers(request(analyst="badr"))) == ["clinic"]
    asked = request(["school", "clinic"], "badr", "audit")
    assert list(found.keepers(asked)) == ["clinic", "school", "school/purpose/audit"]
    with pytest.raises(UnknownName, match="no budget 'lab'"):
        found.keepers(request(["clinic", "lab"]))


def test_budgets_are_read_once_until_they_are_to_be_forgotten(book, monkeypatch):
    found, asked, read = Budgets(book.store), [], book.store.totals
    monkeypatch.setattr(book.store, "totals", lambda names: asked.append(tuple(names)) or read(names))
    assert found.keepers(request()) is found.keepers(request())
    assert len(asked) == 1
    found.forget()
    assert found.keepers(request())["clinic"][0] == 1
    assert len(asked) == 2


def test_no_more_requests_are_remembered_than_there_is_room_for(book, monkeypatch):
    monkeypatch.setattr(budgets, "REMEMBERED", 3)
    found = Budgets(book.store)
    for number in range(10):
        found.keepers(request(analyst=f"analyst {number}"))
    assert 0 < len(found._defined) <= 3


def test_a_budget_that_another_changed_is_charged_as_it_is_now(tmp_path):
    """What was read of it before is too old, which the store says."""
    with Ledger.open(tmp_path / "book.db") as one, Ledger.open(tmp_path / "book.db") as two:
        one.create_budget("clinic", Budget(epsilon=1.0))
        two.reserve("clinic", TENTH, analyst="amina")
        one.raise_budget("clinic", Budget(epsilon=2.0), reason="more")
        one.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
        two.reserve("clinic", TENTH, analyst="amina")
        assert one.spent("clinic").share == pytest.approx(0.1)
        assert one.spent("clinic", analyst="amina").share == pytest.approx(0.2)
        assert one.verify()


def test_how_a_budget_stands_is_what_its_total_says(book):
    found = Budgets(book.store)
    left = found.left_for(["clinic", "school"], "amina", "audit")
    assert {name: standing.remaining.value for name, standing in left.items()} == pytest.approx(
        {"clinic": 0.9, "clinic/analyst/amina": 0.4, "school": 1.0, "school/purpose/audit": 0.25}
    )
    assert found.standing("clinic").spent.value == pytest.approx(0.1)
    assert sorted(found.all()) == ["clinic", "clinic/analyst/amina", "school", "school/purpose/audit"]
    assert found.paying((), ["lab", "school"]).keys() == {"school"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("clinik", "did you mean 'clinic'"), ("amina", "did you mean 'clinic/analyst/amina'"), ("warehouse", "")],
)
def test_a_name_that_is_close_is_offered(book, name, meant):
    with pytest.raises(UnknownName, match=f"no budget '{name}'") as refused:
        Budgets(book.store).total(name)
    assert meant in refused.value.do
    assert ("did you mean" in refused.value.do) == bool(meant)
