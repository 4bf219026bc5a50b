"""DuckDB: files, database files and frames, and what cannot be opened."""

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

import sitr
from sitr.errors import InvalidArgument, InvalidDeclaration
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from tests.tables import clinic
from tests.tables.exact import exact

COLUMNS = {"ward": {"type": "string"}, "level": {"type": "float", "bounds": [-1, 1]}}


def rows_of(tmp_path, source, frames=None, **connection):
    table = {"unit": "row", "source": source, "columns": COLUMNS}
    content = {"sitr": 1, "name": "d", "connection": connection, "tables": {"labs": table},
               "budgets": {"d": {"epsilon": 100.0}}}  # fmt: skip
    with opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="a", frames=frames) as one:
        return one.table("labs").aggregate(n=sitr.count("level")).release(epsilon=20.0).value["n"][0]


def test_a_parquet_file(tmp_path):
    pyarrow.parquet.write_table(clinic.labs(), tmp_path / "labs.parquet")
    assert abs(rows_of(tmp_path, "labs.parquet") - 300) < 5


@pytest.mark.parametrize("source", ["labs.parquet", "labs.parquet/part-*.parquet"])
def test_parquet_files_of_one_schema(tmp_path, source):
    folder = tmp_path / "labs.parquet"
    folder.mkdir()
    for part in range(3):
        pyarrow.parquet.write_table(clinic.labs(), folder / f"part-{part}.parquet")
    assert abs(rows_of(tmp_path, source) - 900) < 5
    other = clinic.labs().set_column(0, "ward", pyarrow.array([1] * 300))
    pyarrow.parquet.write_table(other, folder / "part-3.parquet")
    with pytest.raises(InvalidDeclaration, match=r"tables.labs: the files of .* have different columns"):
        rows_of(tmp_path, source)
    with pytest.raises(InvalidDeclaration, match="cannot be opened"):
        rows_of(tmp_path, "labs.parquet/none-*.parquet")


def test_rows_in_folders_of_a_folder_are_not_lost_silently(tmp_path):
    (tmp_path / "labs.parquet" / "year=2026").mkdir(parents=True)
    pyarrow.parquet.write_table(clinic.labs(), tmp_path / "labs.parquet" / "a.parquet")
    with pytest.raises(InvalidDeclaration, match="has folders in it"):
        rows_of(tmp_path, "labs.parquet")
    assert abs(rows_of(tmp_path, "labs.parquet/*.parquet") - 300) < 5


def test_a_text_file_whose_cells_do_not_all_fit(tmp_path):
    lines = ["ward,level", "a,much", "a,", "a", '"a', *["a,0.5"] * 100]
    (tmp_path / "labs.csv").write_text("\n".join(lines), encoding="utf-8")
    assert abs(rows_of(tmp_path, "labs.csv") - 100) < 4


def test_a_database_file(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.db")) as connection:
        connection.execute("create table labs as select 'a' as ward, 0.5::double as level from range(300)")
    assert abs(rows_of(tmp_path, "labs", address="clinic.db") - 300) < 5


def test_frames_of_three_kinds(tmp_path):
    for frame in (clinic.labs(), clinic.labs().to_pandas()):
        assert abs(rows_of(tmp_path, "labs", {"labs": frame}) - 300) < 5


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(InvalidDeclaration, match=r"tables.labs: 'nowhere.parquet' cannot be opened"):
        rows_of(tmp_path, "nowhere.parquet")
    with pytest.raises(InvalidDeclaration, match=r"connection.address: there is no database"):
        rows_of(tmp_path, "labs", address="nowhere.db")
    (tmp_path / "headless.csv").write_text("a,0.5\nb,0.5\n", encoding="utf-8")
    with pytest.raises(InvalidDeclaration, match=r"columns.ward: the table has no such column"):
        rows_of(tmp_path, "headless.csv")
    (tmp_path / "text.db").write_text("no database", encoding="utf-8")
    with pytest.raises(InvalidDeclaration, match="cannot be opened as a database"):
        rows_of(tmp_path, "labs", address="text.db")
    with pytest.raises(InvalidArgument, match=r"frames\['labs'\] is no table"):
        rows_of(tmp_path, "labs", {"labs": [1, 2, 3]})


def units_of(tmp_path, sources, kind="integer", **connection):
    """A database with a table for each source, whose people are named in `who`."""
    tables = {
        name: {"unit": "who", "max_rows_per_unit": 2, "source": source, "columns": {"who": {"type": kind}}}
        for name, source in sources.items()
    }
    content = {"sitr": 1, "name": "d", "connection": connection, "tables": tables, "budgets": {"d": {"epsilon": 1000}}}
    return opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="a")


@pytest.mark.parametrize("kind", ["DECIMAL(38, 0)", "DECIMAL(4, 0)", "BIGINT"])
def test_no_unit_is_too_large_to_be_joined(tmp_path, kind):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT unnest([1, 2, 170141183460469231731687303715884105727]) AS who")
        connection.execute(f"CREATE TABLE two AS SELECT unnest([2, 3])::{kind} AS who")
    with units_of(tmp_path, {"one": "one", "two": "two"}, address="d.duckdb") as db:
        for first, second in (("one", "two"), ("two", "one")):
            joined = db.table(first).join(db.table(second), on=[])
            assert abs(joined.aggregate(n=sitr.count()).release(epsilon=100.0).value["n"][0] - 1) < 1


def test_a_text_file_does_not_make_one_unit_of_two_by_rounding(tmp_path):
    """33.6 and 34.4 are not 34: one of these people would move what is kept of the others."""
    (tmp_path / "t.csv").write_text("who\n34\n34.0\n33.6\n34.4\n34.5\n35\n")
    with units_of(tmp_path, {"t": "t.csv"}, "decimal(9, 0)") as db:
        found = db.table("t").aggregate(n=sitr.count(), units=sitr.count_units()).release(epsilon=200.0).value
    assert [round(found[name][0]) for name in ("n", "units")] == [3, 2]


TEXTS = {"who": {"type": "string"}, "x": {"type": "integer", "bounds": [0, 10]}}


def of_one(tmp_path, name="c.db"):
    """Fifty rows of one unit, of whom one row is read, in a database file."""
    table = {"unit": "who", "max_rows_per_unit": 1, "columns": TEXTS}
    content = {"sitr": 1, "name": "d", "connection": {"address": name}, "tables": {"t": table},
               "budgets": {"d": {"epsilon": 100.0}}}  # fmt: skip
    return opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="a")


MACROS = [
    "encode(x) AS system.main.encode(x || system.main.random()::VARCHAR)",
    "decode(x) AS system.main.decode(x) || system.main.random()::VARCHAR",
    "sum(x) AS system.main.sum(x) * 1000",
    "row_number() AS 1",
    "random() AS 0.5",
]


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_of_a_database_file_is_no_function_of_the_engine(tmp_path, macro):
    with duckdb.connect(str(tmp_path / "c.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'one' AS who, 7 AS x FROM range(50)")
        connection.execute(f"CREATE MACRO {macro}")
    with of_one(tmp_path) as one:
        question = one.table("t").aggregate(x=sitr.sum("x"))
        assert exact(question) == [7.0]


@pytest.mark.parametrize("name", ["memory.db", "Memory.db", 'it\'s "odd".db'])
def test_a_database_file_may_have_any_name(tmp_path, name):
    with duckdb.connect(str(tmp_path / name)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'one' AS who, 7 AS x FROM range(50)")
    with of_one(tmp_path, name) as one:
        assert exact(one.table("t").aggregate(x=sitr.sum("x"))) == [7.0]


def test_threads_share_a_database(tmp_path):
    """One releases, the other explains questions with lists of texts, which become tables of the engine."""
    with duckdb.connect(str(tmp_path / "c.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'one' AS who, 7 AS x FROM range(50)")
    with of_one(tmp_path) as one, ThreadPoolExecutor(2) as pool:
        table = one.table("t")

        def explained(number):
            wanted = [f"{number} {place}" for place in range(40)]
            return bool(str(table.filter(table["who"].isin(wanted)).aggregate(n=sitr.count()).explain(epsilon=1.0)))

        def released(number):
            return table.aggregate(n=sitr.count()).release(epsilon=1.0 + number).value["n"]

        found = list(pool.map(lambda ask: ask[0](ask[1]), [(f, n) for n in range(8) for f in (explained, released)]))
    assert all(found)
