"""Stores that outlive a process, and a warm process that makes workers."""

import pytest

from tests.faults import harness
from tests.ledger import stores


@pytest.fixture(params=stores.DURABLE)
def fresh(request, tmp_path):
    """Makes addresses of new books in one of the stores that can be opened twice."""
    return stores.fresh(request.param, tmp_path)


@pytest.fixture(scope="session")
def nursery():
    """Where workers are forked; one for each process of the tests."""
    with harness.Nursery() as opened:
        yield opened
