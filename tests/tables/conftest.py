"""The engines that tests of tables and queries run on."""

from collections.abc import Iterator

import pytest

from tests.tables import engines

# Spark takes long to start and much memory: under xdist one process has it (`--dist loadgroup`).
PARAMS = [pytest.param(one, marks=pytest.mark.xdist_group(one)) if one == "spark" else one for one in engines.ENGINES]


@pytest.fixture(params=PARAMS)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn; `engines.asked(engine, tables, declaration)` makes a database on it."""
    if reason := engines.missing(request.param):
        pytest.skip(reason)
    return request.param


@pytest.fixture(scope="module")
def conforming() -> Iterator[None]:
    """Engines are held against what we need of one elsewhere; here they are opened a hundred times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sitr.tables.conformance.require", lambda source: None)
        yield
