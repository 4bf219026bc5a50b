"""Drafts of declarations: from a schema, without a value, refused until the owner has filled them in."""

import gzip
import re
import tomllib

import duckdb
import ibis
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import EngineFailed, InvalidArgument, InvalidDeclaration
from sitr.tables import Declaration, draft
from sitr.tables.declaration import TYPES
from sitr.tables.draft import Draft, Found, declared_type, draft_of, header, without_password
from tests.ledger import cluster

WIDE = [kind for kind in TYPES if not kind.startswith("decimal")] + ["decimal(12, 2)", "decimal(38, 0)"]
columns = st.dictionaries(st.text(min_size=1), st.sampled_from(WIDE), min_size=1, max_size=5)


def filled_in(text, table):
    """What an owner does."""
    return text.replace("epsilon = 0 ", "epsilon = 1.0 ").replace('unit = "" ', 'unit = "row" ', table)


@given(columns, st.text(min_size=1), st.text())
def test_whatever_things_are_called_the_draft_is_toml_that_names_them(found, name, address):
    unread = {f"{one}!": "struct" for one in found}
    drafted = Draft("clinic", (Found("visits", found, name, unread), Found(f"{name}'s", found)), "duckdb", address)
    content = tomllib.loads(drafted.text)
    assert content["connection"]["address"] == address
    assert content["tables"]["visits"]["source"] == name
    for table in ("visits", f"{name}'s"):
        assert content["tables"][table]["columns"] == {column: {"type": kind} for column, kind in found.items()}


@pytest.mark.parametrize("drafted", [draft.example("clinic"), Draft("clinic", (Found("visits", {"who": "integer"}),))])
def test_every_place_is_refused_until_it_is_filled_in(drafted):
    table, column = drafted.tables[0].name, next(iter(drafted.tables[0].columns))
    steps = [
        (r"tables\.\w+: unit is not declared", ('unit = "" ', f'unit = "{column}" ')),
        (r"tables\.\w+: max_rows_per_unit is not declared", ("# max_rows_per_unit = 10", "max_rows_per_unit = 10")),
        (r"budgets\.clinic: epsilon=0 is no limit", ("epsilon = 0 ", "epsilon = 1.0 ")),
    ]
    text = drafted.text
    for message, change in steps:
        with pytest.raises(InvalidDeclaration, match=message):
            Declaration.of(tomllib.loads(text))
        text = text.replace(*change)
    assert Declaration.of(tomllib.loads(text)).tables[table].unit == column


def test_every_example_in_a_comment_holds():
    """An owner who only takes the signs of comments away has a declaration that can be read."""
    kinds = {f"c{at}": kind for at, kind in enumerate(WIDE)}
    text = Draft("clinic", (Found("visits", kinds),)).text.replace('unit = "" ', 'unit = "c1" ')
    text = text.replace("epsilon = 0 ", "epsilon = 1.0 ")
    settings = ("analysts", "time_zone", "delta", "max_rows_per_unit", "expected_units", "expected_rows")
    for setting in settings:
        text = text.replace(f"\n# {setting}", f"\n{setting}")
    text = re.sub(r"= \{.*\}  # or \{", "= {", text)
    declared = Declaration.of(tomllib.loads(text))
    visits = declared.tables["visits"]
    assert declared.analysts == ("amina", "badr")
    assert (visits.max_rows_per_unit, visits.expected_units, visits.expected_rows) == (10, 10_000, 30_000)
    assert all(column.domain.bounded for column in visits.columns.values() if column.domain.ordered)


def test_a_database_of_duckdb(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TYPE mood AS ENUM ('secret')")
        database.execute(
            "CREATE TABLE visits (a INTEGER, b HUGEINT, c UTINYINT, d DECIMAL(9, 3), e FLOAT, f mood, g UUID, "
            "h TIMESTAMPTZ, i BLOB, j INTEGER[], k DATE, l BOOLEAN, m JSON, n TIME)"
        )
        database.execute("CREATE VIEW few AS SELECT a FROM visits")
        database.execute('CREATE TABLE "odd/name" (a INTEGER)')
    drafted = draft_of("clinic", str(path), tmp_path)
    tables = {table.name: table for table in drafted.tables}
    assert list(tables) == ["few", "odd_name", "visits"]
    assert tables["odd_name"].source == "odd/name"
    assert list(tables["visits"].columns.values()) == [
        "integer",
        "decimal(38, 0)",
        "uint8",
        "decimal(9, 3)",
        "float",
        "string",
        "string",
        "timestamp",
        "date",
        "boolean",
    ]
    assert set(tables["visits"].unreadable) == {"i", "j", "m", "n"}
    assert "secret" not in drafted.text
    from sitr.tables.duckdb import DuckDB

    declared = Declaration.of(tomllib.loads(filled_in(drafted.text, -1)), tmp_path)
    source = DuckDB(declared)
    source.check()  # what was drafted fits the database
    source.close()


def filled_in_and_checked(drafted, folder, engine):
    """What was drafted is what can be opened."""
    source = engine(Declaration.of(tomllib.loads(filled_in(drafted.text, -1)), folder))
    try:
        source.check()
    finally:
        source.close()


def test_what_would_not_be_opened_is_left_out_of_a_draft_of_duckdb(tmp_path, monkeypatch):
    """Views that compute, of which some read files that are not there; computed columns; names that mean files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "held.csv").write_text("who,x\nsecret,1\n")
    with duckdb.connect("c.db") as database:
        for statement in (
            "CREATE TABLE t (who INTEGER, x INTEGER)",
            "CREATE VIEW picked AS SELECT x FROM t",
            "CREATE VIEW counted AS SELECT who, count(*) AS n FROM t GROUP BY who",
            "CREATE VIEW renamed AS SELECT who AS person FROM t",
            "CREATE VIEW noted AS SELECT * FROM read_csv('held.csv')",
            "CREATE VIEW lost AS SELECT * FROM 'held.csv'",
            "CREATE TABLE computing (x INTEGER, y INTEGER GENERATED ALWAYS AS (1 // x) VIRTUAL)",
            'CREATE TABLE "notes.csv" (who INTEGER)',
            'CREATE VIEW "odd\nname" AS SELECT 1 AS x',
        ):
            database.execute(statement)
    (tmp_path / "held.csv").unlink()
    drafted = draft_of("clinic", str(tmp_path / "c.db"), tmp_path)
    assert [table.name for table in drafted.tables] == ["picked", "t"]
    assert list(drafted.refused) == ["computing", "counted", "lost", "noted", "notes.csv", "odd\nname", "renamed"]
    for name, reason in (
        ("counted", "counted is a view that computes something, or calls a column by another name. Do: declare the"),
        ("computing", "computing has a column that is computed from others. Do: keep what it computes"),
        ("notes.csv", "notes.csv is called like a file"),
        ("odd\nname", r"source='odd\nname' is no name of a table"),
    ):
        assert drafted.refused[name].startswith(reason)
    assert "secret" not in drafted.text
    comment = drafted.text[drafted.text.index("# Left out, since sitr would not open them:") :]
    assert all(line.startswith("# ") and len(line) <= 120 for line in comment.splitlines())
    assert all(f'# "{name}": ' in comment for name in ("counted", "notes.csv", r"odd\nname"))
    from sitr.tables.duckdb import DuckDB

    filled_in_and_checked(drafted, tmp_path, DuckDB)


def test_where_nothing_can_be_opened_it_is_said_why(tmp_path):
    with duckdb.connect(str(tmp_path / "c.db")) as database:
        database.execute("CREATE VIEW numbers AS SELECT 1 AS x")
    with pytest.raises(InvalidArgument, match="no tables with columns") as caught:
        draft_of("clinic", str(tmp_path / "c.db"), tmp_path)
    assert "numbers is a view that computes something" in caught.value.why


def test_what_would_not_be_opened_is_left_out_of_a_draft_of_postgresql(tmp_path):
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    for statement in (
        "CREATE TABLE visits (patient bigint, cost int)",
        "CREATE VIEW few AS SELECT patient FROM visits",
        "CREATE VIEW counted AS SELECT patient, count(*) AS n FROM visits GROUP BY patient",
        "CREATE VIEW renamed AS SELECT patient AS person FROM visits",
        "CREATE TABLE hiding (patient bigint); ALTER TABLE hiding ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    ):
        cluster.shared().sql(statement, cluster.database_of(url), "owner")
    drafted = draft_of("clinic", url.replace("owner@", "owner:pass@"), tmp_path)
    assert [table.name for table in drafted.tables] == ["few", "visits"]
    assert list(drafted.refused) == ["counted", "hiding", "renamed"]
    assert "hiding has row security" in drafted.refused["hiding"]
    assert "pass" not in drafted.text.replace("password", "")
    from sitr.tables.postgresql import PostgreSQL

    filled_in_and_checked(drafted, tmp_path, PostgreSQL)


def test_a_parquet_file(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    table = pyarrow.table({"patient": [1, 2], "name": ["Aisha", "Badr"], "cost": [1.5, 2.5]})
    pyarrow.parquet.write_table(table, folder / "visits.parquet")
    drafted = draft_of("clinic", str(folder / "visits.parquet"), tmp_path)
    assert drafted.tables == (
        Found("visits", {"patient": "integer", "name": "string", "cost": "float"}, "data/visits.parquet"),
    )
    assert "Aisha" not in drafted.text
    (folder / "broken.parquet").write_text("Aisha", encoding="utf-8")
    with pytest.raises(EngineFailed, match="cannot be read as a Parquet file"):
        draft_of("clinic", str(folder / "broken.parquet"), tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.csv", "patient,the cost\r\nAisha,47\r\n"),
        ("v.csv", '\ufeffpatient;"the cost"\nAisha;47\n'),
        ("v.tsv", "patient\tthe cost\nAisha\t47\n"),
        ("v.csv.gz", "patient|the cost"),
    ],
)
def test_the_header_of_a_text_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert header(path) == ["patient", "the cost"]
    types = {"patient": "string", "the cost": "int32"}
    assert draft_of("clinic", str(path), tmp_path, types).tables == (Found("v", types, name),)


@pytest.mark.parametrize(
    "text", ["Aisha,47\n", "Aisha,2026-01-31\n", "Aisha,\n", "a,a\n", "", "\n", "Aisha,-1.5e3\n", "Aisha,12:30\n"]
)
def test_a_row_of_data_in_the_place_of_a_header_is_refused_and_not_shown(tmp_path, text):
    path = tmp_path / "visits.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="no list of names") as caught:
        header(path)
    assert "Aisha" not in str(caught.value)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (None, "no type for patient, cost"),
        ({"patient": "string"}, "no type for cost"),
        ({"patient": "string", "cost": "float", "name": "string"}, "no column name"),
        ({"patient": "string", "cost": "money"}, "cost: 'money' is no type"),
    ],
)
def test_types_are_for_each_column(tmp_path, types, message):
    (tmp_path / "visits.csv").write_text("patient,cost\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=message):
        draft_of("clinic", str(tmp_path / "visits.csv"), tmp_path, types)


def test_what_has_types_is_given_none(tmp_path):
    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    with pytest.raises(InvalidArgument, match="types are for text files"):
        draft_of("clinic", str(tmp_path / "empty.duckdb"), tmp_path, {"a": "string"})
    with pytest.raises(InvalidArgument, match="no tables"):
        draft_of("clinic", str(tmp_path / "empty.duckdb"), tmp_path)
    with pytest.raises(InvalidArgument, match="there is no file"):
        draft_of("clinic", str(tmp_path / "none.duckdb"), tmp_path)


def test_names_that_become_one_stay_two():
    found = (Found("a_b", {"c": "date"}, "a/b"), Found("a_b", {"c": "date"}), Found("no", {}))
    tables, _ = draft._some(found, {}, "it")
    assert [(table.name, table.source) for table in tables] == [("a_b", "a/b"), ("a_b_2", "a_b")]


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        ("int16", "int16"),
        ("uint16", "uint16"),
        ("int32", "integer"),
        ("uint64", "integer"),
        ("decimal", "float"),
        ("decimal(10, 2)", "decimal(10, 2)"),
        ("timestamp('UTC')", "timestamp"),
        ("interval('s')", None),
        ("map<string, int8>", None),
    ],
)
def test_types(kind, declared):
    assert declared_type(ibis.dtype(kind)) == declared


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://owner:se@cret@host:5432/clinic", "postgresql://owner@host:5432/clinic"),
        ("postgresql://host/clinic?user=owner&password=secret", "postgresql://host/clinic?user=owner"),
        ("postgresql:///clinic?host=%2Ftmp&sslpassword=x", "postgresql:///clinic?host=%2Ftmp"),
    ],
)
def test_a_password_is_not_written_down(url, shown):
    assert without_password(url) == shown


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(EngineFailed, match="cannot be reached") as caught:
        draft_of("clinic", "postgresql://owner:secret@127.0.0.1:9/clinic?connect_timeout=2", tmp_path)
    assert "secret" not in str(caught.value)


def test_a_database_of_postgresql(tmp_path):
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    database = cluster.database_of(url)
    for statement in (
        "CREATE TYPE mood AS ENUM ('secret')",
        "CREATE TABLE visits (patient bigint, ward smallint, region varchar(9), cost numeric(8, 2), paid numeric, "
        "weight real, at timestamptz, day date, old boolean, notes json, felt mood, tags text[])",
        "CREATE VIEW few AS SELECT patient FROM visits",
        "CREATE SCHEMA other CREATE TABLE hidden (a int)",
    ):
        cluster.shared().sql(statement, database, "owner")
    drafted = draft_of("clinic", url.replace("owner@", "owner:pass@"), tmp_path)
    few, visits = drafted.tables
    assert few == Found("few", {"patient": "integer"})
    assert visits.columns == {
        "patient": "integer",
        "ward": "int16",
        "region": "string",
        "cost": "decimal(8, 2)",
        "paid": "float",
        "weight": "float",
        "at": "timestamp",
        "day": "date",
        "old": "boolean",
    }
    assert list(visits.unreadable) == ["notes", "felt", "tags"]
    assert (drafted.engine, drafted.address.count("owner@")) == ("postgresql", 1)
    assert "secret" not in drafted.text
    assert "pass" not in drafted.text
