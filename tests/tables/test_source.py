"""Sources: what an engine says never leaves, and Ctrl-C stops it."""

import traceback

import pyarrow
import pytest

from sitr.errors import EngineFailed
from sitr.tables import Declaration
from sitr.tables.duckdb import DuckDB
from sitr.tables.emitter import Emitter
from sitr.tables.expressions import Column
from sitr.tables.relations import Filter, Scan
from sitr.tables.source import KEPT
from sitr.tables.tally import Bound, Measure, Tally
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


def test_a_tally_is_written_once_for_rows_and_once_for_none(monkeypatch):
    source, written, plain = clinic.source(), [], Emitter.tally
    monkeypatch.setattr(Emitter, "tally", lambda self, tally: written.append(tally) or plain(self, tally))
    for _ in range(3):
        source.explain(COUNTED)
        source.rehearse(COUNTED)
        source.run(COUNTED)
    assert len(written) == 2
    for _ in range(2 * KEPT):  # what is kept is bounded, and never mistaken for another
        other = Tally(Filter(Scan("labs"), Column("level") > 2), (), None, {})
        assert source.run(other).column("sum0").to_pylist() == [0]
    assert len(source._queries) <= KEPT


def test_rows_with_an_id_are_chosen_by_another_key_each_time():
    columns = {"who": {"type": "integer"}, "id": {"type": "integer"}, "x": {"type": "integer", "bounds": [0, 99]}}
    table = {"unit": "who", "max_rows_per_unit": 1, "row_id": "id", "columns": columns}
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"t": table}})
    numbers = list(range(100))
    source = DuckDB(declared, {"t": pyarrow.table({"who": [1] * 100, "id": numbers, "x": numbers})})
    measure = {"x": Measure(Column("x"), declared.tables["t"].schema["x"])}
    tally = Tally(Scan("t"), (), Bound(rows=1), measure, ((("x", 1),),))
    assert len({int(source.run(tally).column("sum0")[0].as_py()) for _ in range(20)}) > 5
