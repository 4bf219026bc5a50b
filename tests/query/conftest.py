"""Databases that a test opened are closed when it ends."""

from collections.abc import Iterator

import pytest

from tests.query import databases


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while databases.OPENED:
        databases.OPENED.pop().close()
