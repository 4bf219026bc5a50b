"""A new book in every store."""

import pytest

from sitr.ledger import Ledger
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
