"""The engines that tests of tables and queries run on."""

import pytest

from tests.tables import engines


@pytest.fixture(params=engines.ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn; `engines.asked(engine, tables, declaration)` makes a database on it."""
    if reason := engines.missing(request.param):
        pytest.skip(reason)
    return request.param
