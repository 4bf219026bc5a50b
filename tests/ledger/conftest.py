"""A new book in every store."""

import pytest

from sitr.ledger import Budget, Ledger
from tests.ledger import stores


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
