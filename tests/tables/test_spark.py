"""Spark: which tables of a catalogue are read, of which cluster, and whether they still are those that were opened."""

from contextlib import nullcontext
from types import SimpleNamespace

import pyarrow.parquet
import pytest

import sitr
from sitr.errors import InvalidDeclaration
from sitr.tables.spark import _check_master, _found_in_catalogue
from tests.tables import engines
from tests.tables.sources import JSON, NO_LONGER, ROWS, database, refused, same

pytestmark = pytest.mark.usefixtures("conforming")


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
