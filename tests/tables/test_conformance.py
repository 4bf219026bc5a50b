"""The tests of an engine: those that we have pass them, and one that computes otherwise is not opened."""

import pyarrow
import pytest

from sitr.errors import EngineFailed
from sitr.tables import conformance
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from tests.tables import engines

TABLES = {"rows": pyarrow.table({"x": [1, 2]})}
CONTENT = {"tables": {"rows": {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}}}


def test_every_engine_conforms(engine):
    with engines.asked(engine, TABLES, CONTENT) as database:
        report = conformance.report(database.source)
    assert report.passed, report.failed
    assert len(report.checks) == sum(len(group.names) for group in conformance.CHECKS)
    assert report.engine == engine


class Wrapping(DuckDB):
    """An engine whose sums have 64 bits."""

    version = "wrapping"

    def total(self, number):
        return number.sum() % 2**31


class Broken(DuckDB):
    """An engine that cannot say what time it is."""

    version = "broken"

    def local(self, moment, zone):
        raise RuntimeError("s3cret")


@pytest.mark.parametrize(("made", "check"), [(Wrapping, "sums are exact"), (Broken, "time zones")])
def test_an_engine_that_fails_a_check_is_not_opened(made, check):
    source = made(Declaration.of({**CONTENT, "sitr": 1, "name": "test"}), TABLES)
    with pytest.raises(EngineFailed, match=check) as caught:
        source.check()
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None
    source.close()
