"""Sources: a name is what the catalogue calls a table, and one table has one budget, whatever it is called."""

import os
import sqlite3

import duckdb
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from sitr.errors import InvalidDeclaration
from sitr.tables.declaration import Declaration
from sitr.tables.origins import named_source
from sitr.tables.relations import Scan
from sitr.tables.tally import Bound, Tally
from tests.tables import engines
from tests.tables.sources import ANOTHER_BUDGET, BUDGETS, COLUMNS, JSON, ROWS, database, refused, same

pytestmark = pytest.mark.usefixtures("conforming")


def test_the_unit_of_one_source_has_one_type(tmp_path):
    """As a number 7 and 07 are one person, and as texts two, who have twice the rows."""
    (tmp_path / "t.csv").write_text("who,x\n7,1\n07,1\n")
    os.link(tmp_path / "t.csv", tmp_path / "linked.csv")
    texts = {"columns": {"who": {"type": "string"}, "x": {"type": "integer"}}}
    for other in ("t.csv", "linked.csv"):
        with pytest.raises(InvalidDeclaration, match="with 'who' of different types"):
            database(tmp_path, "t.csv", other, second=texts)


# DuckDB


NO_TABLES = [
    "t.json", "t.JSON", "t.jsonl", "t.parquet?", "t.csv?", "t.*", "*", "t.csv.zst", "'t.json'", '"t.json"', "HERE",
    "read_csv('t.csv')", "read_json('t.json')", "(SELECT 1 AS who, 2 AS x)", "range(5)", "duckdb_tables()",
    "information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "memory.main.t", "sitr_0", "sitr_0_given",
]  # fmt: skip


@pytest.mark.parametrize("address", ["", "t.db"])
def test_a_name_is_no_file_no_variable_and_no_function_to_duckdb(tmp_path, monkeypatch, address):
    """An engine's own readers guess types from rows, and fail on one that does not fit: here nothing reaches them."""
    HERE = pandas.DataFrame({"who": [1], "x": [2]})
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x INTEGER)")
    (tmp_path / "t.csv").write_text("who,x\n1,3\n")
    monkeypatch.chdir(tmp_path)
    for source in NO_TABLES:
        refusals = set()
        for rows in (JSON, JSON + "}") if "json" in source else (JSON,):
            for name in ("t.json", "t.JSON", "t.jsonl", "t.csv.zst"):
                (tmp_path / name).write_text(rows)
            with pytest.raises(InvalidDeclaration) as caught:
                database(tmp_path, "t.csv", source, address=address)
            refusals.add(str(caught.value))
        assert len(refusals) == 1, source
        assert "a file that ends in .parquet, .csv, .csv.gz, .tsv, a table of the database" in refusals.pop()
    assert len(HERE) == 1


@pytest.fixture
def made(tmp_path):
    """A database of DuckDB with a schema, views and a table that is called like a file."""
    with duckdb.connect(str(tmp_path / "c.db")) as connection:
        connection.execute('CREATE TABLE "Visits" (who INTEGER, x INTEGER)')
        for statement in (
            "CREATE SCHEMA s",
            "CREATE TABLE s.labs (who INTEGER, x INTEGER)",
            'CREATE TABLE "t.json" (who INTEGER, x INTEGER)',
            'CREATE TABLE "s.two" (who INTEGER, x INTEGER)',
            "CREATE TABLE s.two (who INTEGER, x INTEGER)",
            "CREATE VIEW picked AS SELECT x, who FROM Visits",
            "CREATE VIEW aliased AS SELECT v.x, v.who AS who FROM c.main.Visits AS v",
            "CREATE VIEW again AS SELECT * FROM picked",
            "CREATE VIEW s.far AS SELECT * FROM s.labs",
        ):
            connection.execute(statement)
    return tmp_path


def test_one_table_of_duckdb_has_one_name(made):
    others = ["visits", "main.visits", "MAIN.Visits", "picked", "aliased", "again", "main.again"]
    assert all(same(made, "Visits", others, address="c.db"))
    assert refused(made, "main.visits", "again", address="c.db")
    assert same(made, "s.labs", ["s.far", "visits", "t.json", "picked"], address="c.db") == [True, False, False, False]
    database(made, "visits", "s.labs", second=ANOTHER_BUDGET, address="c.db").close()
    with pytest.raises(InvalidDeclaration, match="may be two tables"):
        database(made, "s.two", address="c.db")


COMPUTING = [
    "SELECT who, 1 // x AS x FROM t", "SELECT who, x FROM t WHERE x::VARCHAR::INTEGER = 1", "SELECT t.* FROM t, u",
    "SELECT DISTINCT who, x FROM t", "SELECT who, x FROM t LIMIT 1", "SELECT * REPLACE (1 AS x) FROM t",
    "SELECT who, x FROM t UNION ALL SELECT * FROM u", "WITH v AS (FROM t) SELECT who, x FROM v", "FROM 't.json'",
    "SELECT who, max(x) AS x FROM t GROUP BY who", "SELECT * FROM read_csv('t.csv')", "SELECT 1 AS who, 2 AS x",
    "SELECT who, x FROM (SELECT * FROM t)", "SELECT who, row_number() OVER () AS x FROM t",
    "SELECT x AS who, who AS x FROM t", "SELECT rowid AS x, who FROM t", "SELECT rowid, who FROM t",
    "SELECT who, x FROM t TABLESAMPLE 10%", "SELECT t.who, t.x FROM t JOIN u USING (who)",
]  # fmt: skip


def test_a_view_that_computes_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.json").write_text(JSON)
    (tmp_path / "t.csv").write_text("who,x\n1,3\n")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("c.db") as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x INTEGER)")
        connection.execute("CREATE TABLE u AS FROM t")
        for place, query in enumerate(COMPUTING):
            connection.execute(f"CREATE VIEW v{place} AS {query}")
    for place, query in enumerate(COMPUTING):
        with pytest.raises(InvalidDeclaration, match=rf"tables.t0: v{place} is a view that computes") as caught:
            database(tmp_path, f"v{place}", address="c.db")
        assert caught.value, query


@pytest.mark.parametrize("view", ["v (x, who)", "v (a, who)"])
def test_a_view_that_calls_columns_by_other_names_is_refused(tmp_path, view):
    with duckdb.connect(str(tmp_path / "c.db")) as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x INTEGER)")
        connection.execute(f"CREATE VIEW {view} AS SELECT who, x FROM t")
    with pytest.raises(InvalidDeclaration, match="calls a column by another name"):
        database(tmp_path, "v", address="c.db")


def test_a_table_that_computes_a_column_is_refused(tmp_path):
    """DuckDB checks such a column when a row is added, and not when one is changed."""
    with duckdb.connect(str(tmp_path / "c.db")) as connection:
        connection.execute(
            "CREATE TABLE t (who INTEGER, s VARCHAR, x INTEGER GENERATED ALWAYS AS (s::INTEGER) VIRTUAL)"
        )
        connection.execute("CREATE TABLE u (who INTEGER, x INTEGER, \"GENERATED\" VARCHAR DEFAULT 'generated')")
        connection.execute("CREATE VIEW v AS SELECT who, x FROM t")
    for name in ("t", "v"):
        with pytest.raises(InvalidDeclaration, match="t has a column that is computed"):
            database(tmp_path, name, address="c.db")
    database(tmp_path, "u", address="c.db").close()


def test_a_database_of_another_kind_is_not_opened_by_duckdb(tmp_path):
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x INTEGER)")
    with pytest.raises(InvalidDeclaration, match="cannot be opened as a database of DuckDB"):
        database(tmp_path, "t", address="c.db")


def test_one_frame_has_one_budget(tmp_path):
    frames = {"t0": ROWS, "t1": ROWS}
    database(tmp_path, "a", "b", frames=frames).close()
    with pytest.raises(InvalidDeclaration, match=BUDGETS):
        database(tmp_path, "a", "b", frames=frames, second=ANOTHER_BUDGET)
    database(tmp_path, "a", "b", frames=frames | {"t1": ROWS.slice(0, 1)}, second=ANOTHER_BUDGET).close()


def test_a_database_file_that_was_replaced_is_read_on_as_it_was_opened(made):
    """DuckDB has the file open: a link, a view or a file that leads elsewhere is seen when it is opened again."""
    with duckdb.connect(str(made / "new.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS who, 2 AS x")
        connection.execute("CREATE VIEW picked AS SELECT x, who FROM t")
    (made / "linked.db").symlink_to(made / "c.db")
    with database(made, "picked", address="linked.db") as one:
        tally = Tally(Scan("t0"), (), Bound(rows=2), {})
        (made / "linked.db").unlink()
        (made / "linked.db").symlink_to(made / "new.db")
        one.source.rehearse(tally)
        assert one.source.run(tally).column("sum0").to_pylist() == [0]
    with database(made, "picked", address="linked.db") as again:
        assert again.source.run(tally).column("sum0").to_pylist() == [1]


# Files, on both engines that read them


def linked(folder, kind):
    (folder / "far").mkdir()
    for name in ("a", "b"):
        pyarrow.parquet.write_table(ROWS, folder / f"{name}.parquet")
        (folder / f"{name}.csv").write_text("who,x\n1,3\n")
    for name in (f"a.{kind}", f"b.{kind}"):
        os.link(folder / name, folder / f"hard-{name}")
        os.link(folder / name, folder / "far" / name)
        (folder / f"soft-{name}").symlink_to(folder / name)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
def test_a_link_to_a_file_is_the_file(tmp_path, engine, kind):
    if reason := engines.missing(engine):
        pytest.skip(reason)
    linked(tmp_path, kind)
    others = [f"hard-a.{kind}", f"soft-a.{kind}", f"far/../a.{kind}"] + ["far/*.parquet"] * (kind == "parquet")
    found = same(tmp_path, f"a.{kind}", [*others, f"b.{kind}"], engine=engine)
    assert found == [True] * len(others) + [False]
    if kind == "csv":
        assert refused(tmp_path, f"a.{kind}", f"hard-a.{kind}", engine=engine)


# Names in the book


def named_on_spark(address, source="Visits"):
    table = {"source": source, "unit": "who", "max_rows_per_unit": 1, "columns": COLUMNS}
    content = {"sitr": 1, "name": "d", "connection": {"engine": "spark", "address": address}, "tables": {"t": table}}
    declared = Declaration.of(content)
    return named_source(declared, declared.tables["t"])


def test_a_table_of_another_cluster_has_another_name():
    for here in ("", "local", "local[2]", "local[*]"):  # as books have named it from the first
        assert named_on_spark(here) == "default.visits"
    assert named_on_spark("spark://One:7077") == "default.visits of spark://one:7077"
    assert named_on_spark("spark://one:7077") == named_on_spark("spark://One:7077", "default.visits")
    assert len({named_on_spark(address) for address in ("", "spark://one:7077", "spark://two:7077", "yarn")}) == 4
    assert named_on_spark("spark://one:7077", "visits.parquet") == "visits.parquet"


HOSTS = ("", "data", "Data", "other", "%2Fsockets", "%2FSockets", "[::1]", "data,other")
AFTER = ("host=other", "host=", "hostaddr=10.0.0.7", "port=5433", "dbname=archive", "user=omar", "service=night")


@st.composite
def addresses(draw):
    login = draw(st.sampled_from(("", "amina@", "omar@", "amina:secret@")))
    host = draw(st.sampled_from(HOSTS))
    port = draw(st.sampled_from(("", ":5432", ":5433"))) if host else ""
    path = draw(st.sampled_from(("", "/", "/clinic", "/archive", "/clinic#archive", "/clin%69c")))
    after = draw(st.lists(st.sampled_from(AFTER), max_size=2, unique_by=lambda one: one.split("=")[0]))
    return f"postgresql://{login}{host}{port}{path}{'?' if after else ''}{'&'.join(after)}"


def connected(address):
    """Which database of which server libpq connects to."""
    said = conninfo_to_dict(address)
    host, port = said.get("host", ""), said.get("port", "")
    host = host if host.startswith("/") else host.lower()
    database = said.get("dbname") or said.get("user", "")
    return host, port if port.strip(",") else "5432", database, said.get("hostaddr"), said.get("service")


@given(addresses(), addresses())
def test_two_addresses_have_one_name_if_they_lead_to_one_database(one, other):
    table = {"unit": "who", "max_rows_per_unit": 1, "columns": COLUMNS}

    def named(address):
        content = {"sitr": 1, "name": "d", "connection": {"engine": "postgresql", "address": address}}
        declared = Declaration.of(content | {"tables": {"t": table}})
        return named_source(declared, declared.tables["t"])

    assert (named(one) == named(other)) == (connected(one) == connected(other))
    assert "secret" not in named(one)
