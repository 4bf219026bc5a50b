"""Sources: what an engine says never leaves, and Ctrl-C stops it."""

import traceback

import pytest

from sitr.errors import EngineFailed
from sitr.tables.relations import Scan
from sitr.tables.tally import Tally
from tests.tables import clinic

COUNTED = Tally(Scan("labs"), (), None, {})


def test_an_engine_that_fails_tells_nothing(monkeypatch):
    source = clinic.source()

    def failing(query):
        raise ValueError("could not convert 'Amina, 34' to INT")

    monkeypatch.setattr(source, "fetch", failing)
    with pytest.raises(EngineFailed) as caught:
        source.run(COUNTED)
    assert "Amina" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_rehearsing_reads_no_row():
    source = clinic.source()
    fetched = []
    fetch = source.fetch
    source.fetch = lambda query: fetched.append(fetch(query)) or fetched[-1]
    source.rehearse(COUNTED)
    assert fetched[0].column("sum0").to_pylist() == [0]
    assert source.run(COUNTED).column("sum0").to_pylist() == [300]
    assert "LIMIT" not in source.explain(COUNTED)
