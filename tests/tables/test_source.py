"""Sources: what an engine says never leaves, and Ctrl-C stops it."""

import gc
import os
import signal
import threading
import time
import traceback
import warnings

import duckdb
import pyarrow
import pyarrow.parquet
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
from tests.tables.engines import asked

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
    source.fetch = lambda statement: fetched.append(fetch(statement)) or fetched[-1]
    source.rehearse(COUNTED)
    assert fetched[0].column("sum0").to_pylist() == [0]
    assert source.run(COUNTED).column("sum0").to_pylist() == [300]
    assert "LIMIT" not in source.explain(COUNTED)


def test_a_tally_is_written_once(monkeypatch):
    source, written, plain = clinic.source(), [], Emitter.tally
    monkeypatch.setattr(Emitter, "tally", lambda self, tally: written.append(tally) or plain(self, tally))
    for _ in range(3):
        source.explain(COUNTED)
        source.rehearse(COUNTED)
        source.run(COUNTED)
    assert len(written) == 1
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


# Forks


SLOW = {
    "duckdb": lambda source: source._connection.con.sql("SELECT SUM(hash(i)) FROM range(200000000) t(i)").fetchone(),
    "postgresql": lambda source: source._connection.con.execute("SELECT pg_sleep(2)").fetchone(),
}


def in_child(work, seconds=60):
    """What a forked process makes of it; it is killed if it hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            found = str(work())
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(writer, found.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        found = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung"
    return found


def fork_warned():
    """Newer versions of Python warn of a fork in a process with threads: that is what is tested."""
    return warnings.catch_warnings(action="ignore", category=DeprecationWarning)


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_a_fork_in_the_middle_of_a_query_asks_on_a_connection_of_its_own(engine):
    labs = {"visits": clinic.visits(), "labs": clinic.labs(), "wards": clinic.wards()}
    with asked(engine, labs, clinic.CONTENT) as database:
        source = database.source
        source.run(COUNTED)
        slow, got = threading.Event(), []

        def work():
            slow.set()
            return SLOW[engine](source)

        thread = threading.Thread(target=lambda: got.append(source.guarded(work)))
        thread.start()
        slow.wait(30)
        time.sleep(0.05)
        own = source._connection
        with fork_warned():
            count = lambda: (source.run(COUNTED).column("sum0").to_pylist(), source._connection is own)  # noqa: E731
            assert in_child(count) == "([300], False)"
            assert in_child(lambda: (source.close(), "closed")[1]) == "closed"
            told = in_child(lambda: database.sql("SELECT COUNT(*) AS n FROM labs").explain(epsilon=1))
        assert "labs" in told or "n" in told
        assert got == []  # the parent's query still runs
        thread.join(60)
        assert len(got) == 1
        assert source.run(COUNTED).column("sum0").to_pylist() == [300]


def test_a_child_refuses_a_file_that_its_parent_replaced(tmp_path):
    table = {"source": "t.parquet", "unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"t": table}}, tmp_path)
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    source, tally = DuckDB(declared), Tally(Scan("t"), (), None, {})
    source.rehearse(tally)
    with fork_warned():
        assert in_child(lambda: source.rehearse(tally)) == "None"
        pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2, 3, 4]}), tmp_path / "t.parquet")
        assert "another file than it was" in in_child(lambda: (source.explain(tally), source.rehearse(tally)))


def test_a_child_is_refused_a_database_file_of_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS x")
    table = {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    content = {"sitr": 1, "name": "d", "connection": {"address": "d.duckdb"}, "tables": {"t": table}}
    source, tally = DuckDB(Declaration.of(content, tmp_path)), Tally(Scan("t"), (), None, {})
    assert source.run(tally).column("sum0").to_pylist() == [1]
    with fork_warned():
        assert "NotAllowed" in in_child(lambda: source.run(tally))
        assert "before this process was forked" in in_child(lambda: DuckDB(Declaration.of(content, tmp_path)))
    assert source.run(tally).column("sum0").to_pylist() == [1]


def test_a_child_does_not_collect_what_its_parent_left():
    """DuckDB would wait for threads that a child has not, and crash."""

    def left():
        connection = duckdb.connect()
        connection.execute("SET threads = 2")
        assert connection.execute("SELECT sum(i) FROM range(3000000) AS t(i)").fetchall() == [(4499998500000,)]
        itself = [connection]
        itself.append(itself)

    gc.disable()
    try:
        for _ in range(3):
            left()
        with fork_warned():
            assert in_child(lambda: (gc.collect(), "alive")[1]) == "alive"
    finally:
        gc.enable()


@pytest.mark.xdist_group("spark")
def test_a_child_is_refused_the_context_of_spark():
    from sitr.tables.spark import Spark

    labs = {"visits": clinic.visits(), "labs": clinic.labs(), "wards": clinic.wards()}
    with asked("spark", labs, clinic.CONTENT) as database, fork_warned():
        source = database.source
        assert "NotAllowed" in in_child(lambda: source.run(COUNTED))
        assert "before this process was forked" in in_child(lambda: Spark(database.declared))
        assert in_child(lambda: (source.close(), "closed")[1]) == "closed"
        assert source.run(COUNTED).column("sum0").to_pylist() == [300]
