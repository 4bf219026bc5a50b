"""Sources: a name is what the catalogue calls a table, and one table has one budget, whatever it is called."""

import os
import sqlite3
from contextlib import nullcontext
from types import SimpleNamespace

import duckdb
import pandas
import psycopg
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

import sitr
from sitr.errors import InvalidDeclaration
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.origins import named_source
from sitr.tables.relations import Scan
from sitr.tables.spark import _check_master, _found_in_catalogue
from sitr.tables.tally import Bound, Tally
from tests.ledger import cluster
from tests.tables import engines

COLUMNS = {"who": {"type": "integer"}, "x": {"type": "integer"}}
ROWS = pyarrow.table({"who": [1, 2], "x": [3, 4]})
ANOTHER_BUDGET, ANOTHER_UNIT = {"dataset": "other"}, {"unit": "x"}
BUDGETS = "read one source and have different budgets"
UNITS = "read one source and have different units"


@pytest.fixture(autouse=True, scope="module")
def _conforming():
    """Engines are held against what we need of one elsewhere; here they are opened a hundred times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sitr.tables.conformance.require", lambda source: None)
        yield


def database(folder, *sources, frames=None, second=None, **connection):
    """A database with a table for each source; the second may have settings of its own."""
    plain = {"unit": "who", "max_rows_per_unit": 2, "columns": COLUMNS}
    tables = {f"t{place}": plain | {"source": source} for place, source in enumerate(sources)}
    if second:
        tables["t1"] = tables["t1"] | second
    content = {"sitr": 1, "name": "d", "connection": connection, "tables": tables}
    content["budgets"] = {"d": {"epsilon": 10.0}, "other": {"epsilon": 10.0}}
    return opened(Declaration.of(content, folder), ledger="memory://", analyst="amina", frames=frames)


def same(folder, first, others, **connection):
    """Whether each of other names is of the same table as the first; all of them are opened together."""
    with database(folder, first, *others, **connection) as one:
        found = [one.source.seen(table).origins for table in one.declared.tables.values()]
    return [bool(found[0] & origins) for origins in found[1:]]


def refused(folder, one, other, **connection):
    """Two names of one table do not get two budgets, nor two units."""
    for settings, refusal in ((ANOTHER_BUDGET, BUDGETS), (ANOTHER_UNIT, UNITS)):
        with pytest.raises(InvalidDeclaration, match=refusal):
            database(folder, one, other, second=settings, **connection)
    return True


def test_the_unit_of_one_source_has_one_type(tmp_path):
    """As a number 7 and 07 are one person, and as texts two, who have twice the rows."""
    (tmp_path / "t.csv").write_text("who,x\n7,1\n07,1\n")
    os.link(tmp_path / "t.csv", tmp_path / "linked.csv")
    texts = {"columns": {"who": {"type": "string"}, "x": {"type": "integer"}}}
    for other in ("t.csv", "linked.csv"):
        with pytest.raises(InvalidDeclaration, match="with 'who' of different types"):
            database(tmp_path, "t.csv", other, second=texts)


# DuckDB


JSON = '{"who": 1, "x": 3}\n'


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


# PostgreSQL


CLINIC = [
    "CREATE TABLE visits (who int, x int)",
    'CREATE TABLE "Visits" (who int, x int)',
    "CREATE SCHEMA s CREATE TABLE visits (who int, x int)",
    "CREATE VIEW picked AS SELECT x, who FROM visits",
    "CREATE VIEW s.again AS SELECT x, who AS who FROM public.picked",
    "CREATE VIEW swapped AS SELECT who AS x, x AS who FROM public.picked",
    "CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits",
    "CREATE TABLE parted (who int, x int) PARTITION BY RANGE (x)",
    "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (x)",
    "CREATE TABLE part_of_part PARTITION OF part FOR VALUES FROM (0) TO (5)",
    "CREATE TABLE other_part PARTITION OF parted FOR VALUES FROM (9) TO (20)",
    "CREATE TABLE heir () INHERITS (visits)",
    "CREATE VIEW computing AS SELECT who, 1 / x AS x FROM visits",
    "CREATE VIEW crossed AS SELECT v.who, v.x FROM visits AS v, visits AS w",
    "CREATE VIEW inner_one AS SELECT who, x FROM (SELECT who, x FROM visits) AS v",
    "CREATE VIEW settings AS SELECT * FROM pg_catalog.pg_class",
    "CREATE VIEW stats AS SELECT tablename, n_distinct FROM pg_catalog.pg_stats",
    "CREATE MATERIALIZED VIEW counted AS SELECT count(*)::int AS who, 1 AS x FROM visits",
    "CREATE FUNCTION reading() RETURNS TABLE (who int, x int) LANGUAGE sql AS 'SELECT * FROM visits'",
    "CREATE VIEW called AS SELECT * FROM reading()",
    "CREATE TABLE hiding (who int, x int)",
    "ALTER TABLE hiding ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "CREATE VIEW of_hiding AS SELECT who, x FROM hiding",
    "CREATE SEQUENCE numbers",
]


@pytest.fixture(scope="module")
def server():
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in CLINIC:
            connection.execute(statement)
    name = cluster.database_of(url)
    cluster.shared().sql("CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw", name)
    far = "CREATE FOREIGN TABLE {} SERVER f OPTIONS (filename '/dev/null')"
    cluster.shared().sql(far.format("far (who int, x int)"), name)
    cluster.shared().sql("CREATE TABLE mixed (who int, x int) PARTITION BY RANGE (x)", name)
    cluster.shared().sql(far.format("far_part PARTITION OF mixed FOR VALUES FROM (0) TO (9)"), name)
    cluster.shared().sql("GRANT SELECT ON far, mixed TO owner", name)
    return {"engine": "postgresql", "address": url}


def test_one_table_of_postgresql_has_one_name(tmp_path, server):
    others = ["public.visits", "picked", "s.again", "public.picked", "kept", "heir"]
    assert all(same(tmp_path, "visits", others, **server))
    assert same(tmp_path, "heir", ["visits", "picked", "kept", "parted"], **server) == [True, True, True, False]
    assert same(tmp_path, "parted", ["part", "part_of_part", "other_part", "visits"], **server) == [True] * 3 + [False]
    assert same(tmp_path, "part", ["part_of_part", "other_part"], **server) == [True, False]
    assert not any(same(tmp_path, "visits", ["Visits", "s.visits", "parted"], **server))
    for one, other in (("visits", "public.visits"), ("picked", "kept"), ("part_of_part", "parted")):
        assert refused(tmp_path, one, other, **server)
    database(tmp_path, "visits", "s.visits", second=ANOTHER_BUDGET, **server).close()


def test_what_is_no_table_of_postgresql_is_refused(tmp_path, server):
    for name, says in (
        ("computing", "computing is a view that computes something"),
        ("crossed", "crossed is a view that computes"),
        ("inner_one", "is a view that computes"),
        ("called", "is a view that computes"),
        ("swapped", "calls a column by another name"),
        ("counted", "is a view that computes"),
        ("far", "no table of this server"),
        ("mixed", "no table of this server"),
        ("numbers", "no table of this server"),
        ("hiding", "has row security"),
        ("of_hiding", "has row security"),
        ("pg_catalog.pg_class", "of the server itself"),
        ("settings", "of the server itself"),
        ("stats", "of the server itself"),
        ("pg_class", "cannot be opened"),
        ("nothing", "cannot be opened"),
        ("reading()", "cannot be opened"),
        ('"visits"', "cannot be opened"),
        ("VISITS", "cannot be opened"),
        ("postgres.public.visits", "cannot be opened"),
    ):
        with pytest.raises(InvalidDeclaration, match=f"tables.t0: .*{says}"):
            database(tmp_path, name, **server)


NO_LONGER = "the source of t0 is no longer what was opened"


@pytest.fixture
def asked(tmp_path):
    """Tables and views of a server, how to change them, and whether a question is then refused before its charge."""
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as server:
        for statement in CLINIC[:4]:
            server.execute(statement)
        server.execute("CREATE TABLE other (who int, x int, y int)")
        server.execute("CREATE TABLE parted (who int, x int) PARTITION BY RANGE (x)")

        def changed(source, *statements, says=None, second=None, put_back=()):
            sources = [source, "other"] if second else [source]
            with database(tmp_path, *sources, second=second, engine="postgresql", address=url) as one:
                question = one.table("t0").aggregate(n=sitr.count())
                question.release(epsilon=0.1)
                for statement in statements:
                    server.execute(statement)
                spent = one.ledger.spent("d").value
                for _ in range(2 if says else 0):  # nor does it pass when it is asked again
                    with pytest.raises(InvalidDeclaration, match=says):
                        question.release(epsilon=0.1)
                assert one.ledger.spent("d").value == spent
                for statement in put_back:
                    server.execute(statement)
                if put_back or not says:
                    question.release(epsilon=0.1)

        yield changed
    cluster.shared().drop(url)


def test_a_view_that_is_made_anew_over_another_table_is_refused(asked):
    again = "CREATE OR REPLACE VIEW picked AS SELECT x, who FROM {}".format
    asked("picked", again("other"), says=NO_LONGER, put_back=[again("visits")])
    asked("picked", "CREATE OR REPLACE VIEW picked AS SELECT x + 1 AS x, who FROM visits", says=NO_LONGER)


def test_a_table_in_the_place_of_another_is_refused(asked):
    swapped = ["ALTER TABLE visits RENAME TO old", "ALTER TABLE other RENAME TO visits"]
    back = ["ALTER TABLE visits RENAME TO other", "ALTER TABLE old RENAME TO visits"]
    asked("visits", *swapped, says=NO_LONGER, put_back=back)
    hiding = [f"ALTER TABLE visits {word} ROW LEVEL SECURITY" for word in ("ENABLE", "FORCE")]
    asked("visits", *hiding, says=NO_LONGER, put_back=["ALTER TABLE visits DISABLE ROW LEVEL SECURITY"])
    asked("s.visits", "DROP TABLE s.visits", says=NO_LONGER)


def test_a_column_that_has_another_type_is_refused_and_a_new_one_is_not(asked):
    asked("visits", "ALTER TABLE visits ADD COLUMN more text", "INSERT INTO visits VALUES (1, 2, 'a')")
    asked("s.visits", "ALTER TABLE s.visits ALTER COLUMN x TYPE float8", says=NO_LONGER)


def test_a_partition_may_be_attached_unless_it_is_a_table_of_another_budget(asked):
    new = "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9)"
    asked("parted", new, second=ANOTHER_BUDGET)
    attached = ["ALTER TABLE other DROP COLUMN y", "ALTER TABLE parted ATTACH PARTITION other DEFAULT"]
    asked(
        "parted", *attached, says=BUDGETS, second=ANOTHER_BUDGET, put_back=["ALTER TABLE parted DETACH PARTITION other"]
    )


# Spark


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    """Tables of a catalogue, in another session of the context that sources use."""
    if reason := engines.missing("spark"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("spark")
    pyarrow.parquet.write_table(ROWS, folder / "plain.parquet")
    (folder / "kept").mkdir()
    database(folder, "plain.parquet", engine="spark").close()
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    for statement in (
        f"CREATE TABLE visits USING parquet LOCATION '{folder / 'kept'}' AS SELECT 1L AS who, 2L AS x",
        f"CREATE TABLE same_place (who BIGINT, x BIGINT) USING parquet LOCATION '{folder / 'kept'}'",
        f"CREATE TABLE empty (who BIGINT, x BIGINT) USING parquet LOCATION '{folder / 'empty'}'",
        f"CREATE TABLE also_empty (who BIGINT, x BIGINT) USING parquet LOCATION '{folder / 'empty'}'",
        f"CREATE TABLE moving (who BIGINT, x BIGINT) USING parquet LOCATION '{folder / 'moving'}'",
        f"CREATE TABLE texts (who BIGINT, x BIGINT) USING csv LOCATION '{folder / 'texts'}'",
        "CREATE VIEW seen AS SELECT who, x FROM visits",
        "CREATE GLOBAL TEMPORARY VIEW everywhere AS SELECT who, x FROM visits",
    ):
        session.sql(statement)
    (folder / "file.parquet").hardlink_to(next((folder / "kept").glob("part-*.parquet")))
    yield folder
    for kind, name in (("TABLE", "visits"), ("TABLE", "same_place"), ("TABLE", "empty"), ("TABLE", "also_empty"),
                       ("TABLE", "texts"), ("TABLE", "moving"), ("VIEW", "seen"),
                       ("VIEW", "global_temp.everywhere")):  # fmt: skip
        session.sql(f"DROP {kind} {name}")


@pytest.mark.xdist_group("spark")
def test_one_table_of_spark_has_one_name(catalogue):
    others = ["default.visits", "spark_catalog.default.visits", "same_place", "file.parquet", "kept/*.parquet",
              f"file://{catalogue}/file.parquet"]  # fmt: skip
    found = same(catalogue, "visits", [*others, "plain.parquet", "empty"], engine="spark")
    assert found == [True] * len(others) + [False] * 2
    assert same(catalogue, "empty", ["also_empty"], engine="spark") == [True]
    assert refused(catalogue, "visits", "file.parquet", engine="spark")


@pytest.mark.xdist_group("spark")
def test_a_table_of_spark_in_the_place_of_another_is_refused_and_one_that_grows_is_not(catalogue):
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    with database(catalogue, "moving", engine="spark") as one:
        question = one.table("t0").aggregate(n=sitr.count())
        session.sql("INSERT INTO moving VALUES (7, 8)")
        question.release(epsilon=0.1)
        session.sql("INSERT OVERWRITE moving VALUES (7, 8)")
        question.release(epsilon=0.1)
        spent = one.ledger.spent("d").value
        session.sql(f"ALTER TABLE moving SET LOCATION '{catalogue / 'kept'}'")
        with pytest.raises(InvalidDeclaration, match=NO_LONGER):
            question.release(epsilon=0.1)
        assert one.ledger.spent("d").value == spent


@pytest.mark.xdist_group("spark")
def test_what_is_no_table_of_spark_is_refused(catalogue, monkeypatch):
    monkeypatch.chdir(catalogue)
    (catalogue / "t.json").write_text(JSON)
    for name, says in (
        ("seen", "is a view that computes"),
        ("texts", "is not kept as parquet"),
        ("everywhere", "cannot be opened"),
        ("global_temp.everywhere", "cannot be opened|is not kept as"),
        (f"parquet.`{catalogue}/plain.parquet/`", "cannot be opened"),
        (f"parquet.`{catalogue}/plain.parquet`", "cannot be opened"),
        ("json.`t.json`", "cannot be opened"),
        ("json.t", "cannot be opened"),
        ("t.json", "cannot be opened"),
        ("range(5)", "cannot be opened"),
        ("visits WHERE 1/0 = 1", "cannot be opened"),
        ("a.b.c.d", "cannot be opened"),
    ):
        with pytest.raises(InvalidDeclaration, match=says):
            database(catalogue, name, engine="spark")


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


def test_the_place_of_a_table_of_a_cluster_is_told_without_a_password():
    names = ("spark_catalog", "default", "visits")
    for place, told in (
        ("s3a://key:secret@bucket/visits", "s3a://bucket/visits"),
        ("abfss://box@account.example/visits", "abfss://box@account.example/visits"),
        ("dbfs:/visits", "dbfs:/visits"),
    ):
        assert _found_in_catalogue(names, place) == f"spark_catalog.default.visits at {told}"


@pytest.mark.parametrize(("address", "running", "fits"), [
    ("", "spark://one:7077", True), ("local[4]", "local[2]", True), ("spark://One:7077", "spark://one:7077", True),
    ("spark://two:7077", "spark://one:7077", False), ("local[2]", "yarn", False), ("yarn", "local[2]", False),
])  # fmt: skip
def test_a_spark_that_runs_elsewhere_than_is_declared_is_not_used(address, running, fits):
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=running))
    with nullcontext() if fits else pytest.raises(InvalidDeclaration, match="this process has a Spark that runs at"):
        _check_master(session, address)


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
