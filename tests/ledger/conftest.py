"""A new book in every store."""

import pytest

from sitr.accounting import PureDP
from sitr.ledger import Budget, Ledger
from tests.ledger import stores
from tests.ledger.old_books import restored


@pytest.fixture(params=stores.ALL)
def fresh(request, tmp_path):
    """Makes addresses of new books in one of the stores."""
    return stores.fresh(request.param, tmp_path)


@pytest.fixture(params=stores.DURABLE)
def fresh_durable(request, tmp_path):
    """Makes addresses of new books in one of the stores that can be opened twice."""
    return stores.fresh(request.param, tmp_path)


@pytest.fixture
def ledger(fresh, tmp_path):
    """An empty book."""
    with Ledger.open(fresh(), answers=tmp_path / "answers") as opened:
        yield opened


@pytest.fixture
def clinic(ledger):
    """A book with a budget of ε = 8."""
    ledger.create_budget("clinic", Budget(epsilon=8))
    return ledger


@pytest.fixture
def url(fresh_durable, tmp_path):
    """A book with two budgets, blocks, three answers, one operation reserved and one started."""
    made = fresh_durable()
    with Ledger.open(made, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=16, disjoint_by="ward"))
        ledger.create_budget("clinic", Budget(epsilon=8, disjoint_by="ward"), analyst="amina")
        for number in range(3):
            with ledger.reserve(
                "clinic",
                PureDP(epsilon=1),
                analyst="amina",
                operation=f"q{number}",
                blocks=[f"w{number}"][: number % 2],
            ) as grant:
                grant.commit(f"answer {number}")
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", operation="reserved")
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", operation="started").start()
        assert ledger.verify().valid
    return made


@pytest.fixture
def second(fresh_durable):
    """The address of a book in the second form."""
    return restored(fresh_durable(), 2)
