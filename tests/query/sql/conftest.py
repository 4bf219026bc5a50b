"""The clinic, opened once for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sitr.session.database import Database
from tests.query.sql.clinic import opened


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with opened() as database:
        yield database
