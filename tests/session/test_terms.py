"""The declaration is part of the promise: what a book was begun under holds until its owner gives a reason."""

import os
import re
import shutil

import duckdb
import psycopg
import pytest

import sitr
from sitr.errors import DeclarationChanged, InvalidDeclaration, NotPermitted, UnknownName
from sitr.ledger import Budget, Ledger
from sitr.ledger.terms import Recorded
from sitr.session.beginning import begin, redeclare
from sitr.session.database import declared_book
from sitr.session.terms import UNTOLD, declared_terms, hold_to_terms
from sitr.tables.declaration import Declaration
from tests.ledger import cluster, stores

DECLARATION = """\
sitr = 1
name = "hospital"
version = 1
[privacy]
unit = "patient"
[ledger]
url = "{url}"
[budgets.hospital]
epsilon = 10.0
[budgets.lab]
epsilon = 5.0

[tables.stays]
source = "stays.csv"
unit = "patient_id"
max_rows_per_unit = 3
columns.patient_id = {{ type = "integer" }}
columns.id = {{ type = "integer" }}
columns.age = {{ type = "integer", bounds = [0, 120] }}
columns.region = {{ type = "string", categories = ["north", "south"] }}

[tables.bills]
source = "bills.csv"
unit = {{ through = "stays", on = {{ stay_id = "id" }} }}
max_rows_per_unit = 3
columns.stay_id = {{ type = "integer" }}

[tables.tests]
source = "tests.csv"
dataset = "lab"
unit = "patient_id"
max_rows_per_unit = 3
columns.patient_id = {{ type = "integer" }}

[tables.codes]
source = "codes.csv"
public = true
key = "code"
columns.code = {{ type = "integer" }}
"""
FILES = {
    "stays.csv": "patient_id,id,age,region\n1,10,33,north\n1,11,33,north\n2,12,60,south\n",
    "other.csv": "patient_id,id,age,region\n5,10,33,north\n",
    "bills.csv": "stay_id\n10\n11\n",
    "tests.csv": "patient_id\n1\n2\n",
    "codes.csv": "code\n1\n",
    "more.csv": "code\n2\n",
}
COUNT = "SELECT COUNT(*) AS n FROM stays"


@pytest.fixture(autouse=True, scope="module")
def _conforming():
    """Engines are held against what we need of one elsewhere, and texts that they are sent against what is meant."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sitr.tables.conformance.require", lambda source: None)
        patch.setattr("sitr.tables.statement.check", lambda *asked: None)
        yield


@pytest.fixture(params=stores.DURABLE)
def path(request, tmp_path):
    """A declaration whose book is not begun, in either store."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    url = "book.db" if request.param == "sqlite" else stores.fresh("postgresql", tmp_path)()
    path = tmp_path / "hospital.toml"
    path.write_text(DECLARATION.format(url=url), encoding="utf-8")
    return path


def edited(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def asked(path, **how):
    with sitr.open(path, analyst=how.pop("analyst", "owner"), **how) as database:
        return database.sql(COUNT).release(epsilon=0.1)


def test_a_row_does_not_become_a_patient_under_a_running_book(path):
    """The statement promises ε to one patient; if a row were the unit, one with 100 rows would bear 100 times it."""
    with begin(path) as book:
        book.create_budget("hospital", Budget(epsilon=1.0, unit="patient"), analyst="amina")
    assert len(asked(path)) == 1
    edited(path, 'unit = "patient_id"\nmax_rows_per_unit = 3\n', 'unit = "row"\n')
    edited(path, "[tables.bills]", "[tables.old_bills]")
    edited(path, '{ through = "stays", on = { stay_id = "id" } }\nmax_rows_per_unit = 3', '"row"')
    with pytest.raises(DeclarationChanged) as refused:
        sitr.open(path, analyst="owner")
    assert "tables.stays.unit: each row is one, was named by patient_id, a number" in refused.value.what
    with pytest.raises(DeclarationChanged, match="each row is one"):
        begin(path)
    book, changes = redeclare(path, reason="the board decided so")
    with book:
        assert any("tables.stays.unit: each row is one" in change for change in changes)
        for share in ({}, {"analyst": "amina"}):
            told = book.statement("hospital", **share)
            assert "tables.stays.unit: each row is one, was named by patient_id, a number" in str(told)
            assert "): the board decided so" in str(told)
            limit = "10" if not share else "1"
            lead = f"ε = {limit} for one row, taken for one patient, added or removed"
            assert told.rows()[1][1] == lead
            assert f"ε = {limit} for one patient added or removed (bills: found through stays" in str(told)
            assert ("unit", "old_bills: each row is one; stays: each row is one") in told.rows()
            assert [point.kind for point in told.points][-1] == "declare"
        assert "redeclared" not in str(book.statement("lab"))
        assert book.verify()
    assert len(asked(path)) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('unit = "patient_id"\nmax_rows_per_unit = 3\ncolumns.patient_id = { type = "integer" }\ncolumns.id',
         'unit = "id"\nmax_rows_per_unit = 3\ncolumns.patient_id = { type = "integer" }\ncolumns.id',
         "tables.stays.unit: named by id, a number, was named by patient_id, a number"),
        ('columns.patient_id = { type = "integer" }', 'columns.patient_id = { type = "string" }',
         "tables.stays.unit: named by patient_id, a text, was named by patient_id, a number"),
        ('on = { stay_id = "id" }', 'on = { stay_id = "patient_id" }', "tables.bills.unit: found through stays"),
        ('dataset = "lab"\nunit = "patient_id"\nmax_rows_per_unit = 3', "public = true",
         "tables.tests.unit: nobody, it is public"),
        ('dataset = "lab"\n', "", "tables.tests.source: tests.csv, new"),
        ('source = "stays.csv"', 'source = "other.csv"', "tables.stays.source: other.csv, was stays.csv"),
        ('public = true\nkey = "code"', "public = true", "tables.codes.key: not declared any more, was code"),
        ('source = "codes.csv"', 'source = "more.csv"', "tables.codes.source: more.csv, was codes.csv"),
        ('[tables.codes]', '[tables.more]\nsource = "other.csv"\npublic = true\ncolumns.id = { type = "integer" }\n'
         "[tables.codes]", "tables.more.unit: nobody, it is public, new"),
        ('unit = "patient"\n', 'unit = "visit"\n', "unit: visit, was patient"),
        ('name = "hospital"', 'name = "clinic"', "it is declared by 'clinic' as well, and not only by 'hospital'"),
    ],
)  # fmt: skip
def test_what_the_promise_depends_on_does_not_change_unseen(path, old, new, words):
    begin(path).close()
    if old.startswith("name"):  # its datasets are named after it
        edited(path, "[tables.stays]\n", '[tables.stays]\ndataset = "hospital"\n')
        edited(path, "[tables.bills]\n", '[tables.bills]\ndataset = "hospital"\n')
    edited(path, old, new)
    with pytest.raises(DeclarationChanged) as refused:
        sitr.open(path, analyst="owner")
    assert words in refused.value.what
    assert "sitr budget redeclare" in refused.value.do
    redeclare(path, reason="we moved")[0].close()
    sitr.open(path, analyst="owner").close()


def test_a_private_table_that_is_the_only_one_does_not_become_public(path):
    text = path.read_text(encoding="utf-8")
    tests = text[text.index("[tables.tests]") : text.index("[tables.codes]")]
    path.write_text(text[: text.index("[tables.stays]")] + tests, encoding="utf-8")
    begin(path).close()
    edited(path, 'dataset = "lab"\nunit = "patient_id"\nmax_rows_per_unit = 3', "public = true")
    with pytest.raises(DeclarationChanged, match=r"tables.tests.unit: nobody, it is public, was named by patient_id"):
        sitr.open(path, analyst="owner")


def test_neighbours_are_those_of_the_budget_for_ever(path):
    begin(path).close()
    edited(path, 'unit = "patient"\n', 'unit = "patient"\nadjacency = "replace_one"\n')
    for use in (lambda: sitr.open(path, analyst="owner"), lambda: redeclare(path, reason="other neighbours")):
        with pytest.raises(DeclarationChanged, match="added or removed, and the declaration says replaced"):
            use()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_rows_per_unit = 3", "max_rows_per_unit = 2", "tables.stays.max_rows_per_unit: 2, was 3"),
        ("bounds = [0, 120]", "bounds = [0, 99]", "tables.stays.columns.age: integer; 0 to 99, was integer; 0 to 120"),
        ('["north", "south"]', '["north"]', "tables.stays.columns.region: string; north, was string; north, south"),
        ("max_rows_per_unit = 3", "max_rows_per_unit = 3\nexpected_units = 9", "tables.stays.expected_units: 9, new"),
    ],
)
def test_what_may_change_with_a_version_is_written_down(path, old, new, words):
    begin(path).close()
    edited(path, old, new)
    edited(path, "version = 1", "version = 2")
    assert len(asked(path)) == 1
    with begin(path) as book:
        declared = [entry.record for entry in book.entries() if entry.kind == "declare"]
        *_, last = [record for record in declared if record["name"] == "hospital"]
        assert (last["changes"], last["version"]) == ([words], 2)
        assert "reason" not in last
        assert "redeclared" not in str(book.statement("hospital"))
        assert "declared   in hospital, version 2" in str(book.statement("hospital"))
        ends = book.head
    with begin(path) as book:
        assert book.head == ends


def test_names_of_one_source_are_one_source(path):
    begin(path).close()
    (path.parent / "folder").mkdir()
    edited(path, 'source = "stays.csv"', 'source = "./folder/../stays.csv"')
    assert len(asked(path)) == 1
    shutil.copytree(path.parent, path.parent.with_name(f"{path.parent.name} moved"))  # both may move together
    moved = path.parent.with_name(f"{path.parent.name} moved") / path.name
    text = moved.read_text(encoding="utf-8").replace('url = "book.db"', f'url = "{path.parent / "book.db"}"')
    moved.write_text(text, encoding="utf-8")
    assert len(asked(moved)) == 1


def test_a_link_that_leads_elsewhere_is_seen(path):
    os.rename(path.parent / "stays.csv", path.parent / "2025.csv")
    os.symlink("2025.csv", path.parent / "stays.csv")
    begin(path).close()
    assert len(asked(path)) == 1
    (path.parent / "stays.csv").unlink()
    os.symlink("other.csv", path.parent / "stays.csv")
    with pytest.raises(DeclarationChanged, match=r"tables.stays: found as other.csv, was 2025.csv"):
        sitr.open(path, analyst="owner")


def test_growth_is_no_change(path):
    begin(path).close()
    beside = path.parent / "new.csv"
    beside.write_text(FILES["stays.csv"] + "3,13,20,north\n", encoding="utf-8")
    os.replace(beside, path.parent / "stays.csv")
    assert len(asked(path)) == 1


def test_a_view_that_leads_elsewhere_is_seen(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        for table in ("stays", "others"):
            database.execute(f"CREATE TABLE {table} AS SELECT 1 AS patient_id")
        database.execute("CREATE VIEW v AS SELECT patient_id FROM stays")
    path = tmp_path / "d.toml"
    path.write_text(
        'sitr = 1\nname = "d"\n[connection]\naddress = "d.duckdb"\n[ledger]\nurl = "book.db"\n[budgets.d]\n'
        'epsilon = 1.0\n[tables.stays]\nsource = "v"\nunit = "patient_id"\nmax_rows_per_unit = 1\n'
        'columns.patient_id.type = "integer"\n',
        encoding="utf-8",
    )
    begin(path).close()
    assert len(asked(path)) == 1
    edited(path, 'source = "v"', 'source = "MAIN.V"')  # DuckDB's names have no case
    assert len(asked(path)) == 1
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE OR REPLACE VIEW v AS SELECT patient_id FROM others")
    with pytest.raises(DeclarationChanged, match=r"tables.stays: found as main.others, was main.stays"):
        sitr.open(path, analyst="owner")


def test_a_table_of_another_cluster_is_another_source():
    def terms(address):
        table = {"unit": "who", "max_rows_per_unit": 1, "columns": {"who": {"type": "integer"}}}
        content = {"sitr": 1, "name": "d", "tables": {"visits": table}}
        declared = Declaration.of(content | {"connection": {"engine": "spark", "address": address}})
        return declared_terms(declared, "d", Budget(epsilon=1.0), {})

    begun = Recorded(terms("spark://one:7077").record)
    assert begun.changes(terms("spark://One:7077")) == []
    told = "tables.visits.source: default.visits of spark://two:7077, was default.visits of spark://one:7077"
    assert begun.changes(terms("spark://two:7077")) == [told]


def test_tables_of_a_server_are_known_by_their_names(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    with psycopg.connect(url, autocommit=True) as server:
        for table in ("stays", "others"):
            server.execute(f"CREATE TABLE {table} AS SELECT 1 AS patient_id")
        server.execute("CREATE VIEW v AS SELECT patient_id FROM stays")
    path = tmp_path / "d.toml"
    path.write_text(
        f'sitr = 1\nname = "d"\n[connection]\nengine = "postgresql"\naddress = "{url}"\n[ledger]\nurl = "book.db"\n'
        '[budgets.d]\nepsilon = 1.0\n[tables.stays]\nsource = "v"\nunit = "patient_id"\nmax_rows_per_unit = 1\n'
        'columns.patient_id.type = "integer"\n',
        encoding="utf-8",
    )
    begin(path).close()
    edited(path, 'source = "v"', 'source = "public.v"')
    assert len(asked(path)) == 1
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("CREATE OR REPLACE VIEW v AS SELECT patient_id FROM others")
    with pytest.raises(DeclarationChanged, match=r"tables.stays: found as public.others, was public.stays"):
        sitr.open(path, analyst="owner")
    with Ledger.open(tmp_path / "book.db") as book:
        (declared,) = [entry.record for entry in book.entries() if entry.kind == "declare"]
    assert re.fullmatch(r"public\.v of postgresql://.*", declared["promise"]["tables.stays.source"])
    assert "owner@" not in str(declared)


def test_a_book_that_was_begun_before_says_so_in_every_bill_until_its_owner_begins_again(path):
    url = Declaration.read(path).ledger
    with Ledger.open(path.parent / url if url == "book.db" else url) as old:
        old.create_budget("hospital", Budget(epsilon=10.0, unit="patient"))
        old.create_budget("lab", Budget(epsilon=5.0, unit="patient"))
        edited(path, "[ledger]", f'[ledger]\nid = "{old.id}"')
    with sitr.open(path, analyst="owner") as database:
        question = database.sql(COUNT)
        assert UNTOLD in str(question.explain(epsilon=0.1))
        assert UNTOLD in question.release(epsilon=0.1).notes
        begin(path).close()
        assert UNTOLD not in str(question.explain(epsilon=0.1))
        assert UNTOLD not in question.release(epsilon=0.1).notes


def test_a_database_that_stays_open_notices_that_the_promise_was_changed(path):
    begin(path).close()
    with sitr.open(path, analyst="owner") as database:
        question = database.sql(COUNT)
        question.release(epsilon=0.1)
        edited(path, 'source = "codes.csv"', 'source = "more.csv"')
        redeclare(path, reason="new codes")[0].close()
        spent = database.ledger.spent("hospital")
        with pytest.raises(DeclarationChanged):
            question.release(epsilon=0.1)
        with pytest.raises(DeclarationChanged):
            question.explain(epsilon=0.1)
        assert database.ledger.spent("hospital") == spent


def test_books_in_memory_need_no_terms(path):
    with sitr.open(path, analyst="owner", ledger="memory://") as database:
        assert UNTOLD not in str(database.sql(COUNT).explain(epsilon=0.1))


def test_two_declarations_on_one_book(path):
    """Other datasets are their own affair; a dataset of another declaration takes a reason, and is declared alike."""
    with begin(path) as book:
        id = book.id
    text = path.read_text(encoding="utf-8")
    second = path.parent / "second.toml"

    def written(tables):
        head = text[: text.index("[tables.stays]")].replace('name = "hospital"', 'name = "second"')
        second.write_text(head.replace("[budgets.lab]", "[budgets.second]") + tables, encoding="utf-8")

    columns = 'columns.patient_id = { type = "integer" }\n'
    written(f'[tables.a]\nsource = "other.csv"\nunit = "patient_id"\nmax_rows_per_unit = 1\n{columns}')
    with begin(second) as book:
        assert book.id == id
        assert {entry.record["name"] for entry in book.entries() if entry.kind == "declare"} == {
            "hospital", "lab", "second"
        }  # fmt: skip
    sitr.open(second, analyst="owner").close()
    sitr.open(path, analyst="owner").close()
    more = f'[tables.b]\nsource = "stays.csv"\ndataset = "hospital"\nmax_rows_per_unit = 1\n{columns}'
    edited(second, "[tables.a]", more.replace("[tables.b]\n", '[tables.b]\nunit = "patient_id"\n') + "[tables.a]")
    with pytest.raises(DeclarationChanged, match="it is declared by 'second' as well"):
        sitr.open(second, analyst="owner")
    redeclare(second, reason="research has its own declaration")[0].close()
    sitr.open(second, analyst="owner").close()
    sitr.open(path, analyst="owner").close()
    for old, new in (('dataset = "hospital"', 'dataset = "second"'), ('[tables.b]\nunit = "patient_id"', None)):
        before = second.read_text(encoding="utf-8")
        if new is None:
            start = before.index("[tables.b]")
            end = before.index("[tables.a]")
            second.write_text(
                before[:start] + f'[tables.b]\nsource = "stays.csv"\npublic = true\n{columns}' + before[end:],
                encoding="utf-8",
            )
        else:
            edited(second, old, new)
        with pytest.raises(InvalidDeclaration, match=r"stays.csv is tables.stays of the declaration 'hospital'"):
            redeclare(second, reason="again")
        second.write_text(before, encoding="utf-8")


def test_the_order_of_columns_in_a_key_is_no_change(path):
    (path.parent / "codes.csv").write_text("code,region\n1,1\n", encoding="utf-8")
    (path.parent / "bills.csv").write_text("stay_id,age\n10,33\n", encoding="utf-8")
    columns = 'columns.code = { type = "integer" }\n'
    edited(path, columns, f'{columns}columns.region = {{ type = "integer" }}\n')
    edited(path, 'key = "code"', 'key = ["code", "region"]')
    on = '{ stay_id = "id", age = "age" }'
    edited(path, '{ stay_id = "id" }', on)
    edited(path, "columns.stay_id", 'columns.age = { type = "integer" }\ncolumns.stay_id')
    begin(path).close()
    edited(path, 'key = ["code", "region"]', 'key = ["region", "code"]')
    edited(path, on, '{ age = "age", stay_id = "id" }')
    begin(path).close()


@pytest.mark.parametrize("by_hand", [False, True])
def test_another_declaration_does_not_spend_the_same_rows_from_a_budget_without_terms(path, by_hand):
    """Neither from one that its refused beginning left behind, nor from one that was made by hand."""
    with begin(path) as book:
        second = path.parent / "second.toml"
        head = path.read_text(encoding="utf-8").replace('name = "hospital"', 'name = "second"')
        head = head[: head.index("[tables.stays]")].replace("[budgets.hospital]", "[budgets.second]")
        columns = 'columns.patient_id = { type = "integer" }\n'
        second.write_text(f'{head}[tables.stays]\nunit = "row"\nsource = "stays.csv"\n{columns}', encoding="utf-8")
        with pytest.raises(InvalidDeclaration, match=r"stays.csv is tables.stays of the declaration 'hospital'"):
            begin(second)
        with pytest.raises(InvalidDeclaration, match=r"stays.csv is tables.stays of the declaration 'hospital'"):
            redeclare(second, reason="again")
        assert "second" not in book.budgets()
        if by_hand:
            book.create_budget("second", Budget(epsilon=10.0, unit="patient"))
            with pytest.raises(InvalidDeclaration, match=r"stays.csv is tables.stays of the declaration 'hospital'"):
                sitr.open(second, analyst="owner")


def apart(folder, path, *tables, name="second"):
    """A second declaration on the book of another one, in a folder of its own, with a dataset of its own name."""
    folder.mkdir(exist_ok=True)
    head = path.read_text(encoding="utf-8").replace('name = "hospital"', f'name = "{name}"')
    head = head[: head.index("[budgets.hospital]")].replace('url = "book.db"', f'url = "{path.parent / "book.db"}"')
    text = f"{head}[budgets.{name}]\nepsilon = 1.0\n" + "".join(
        f'[tables.{table}]\nsource = "{source}"\nunit = "patient_id"\nmax_rows_per_unit = 1\n'
        'columns.patient_id = { type = "integer" }\n'
        for table, source in tables
    )
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / f"{name}.toml"


def held(path):
    """What `sitr.open` asks of the book, without an engine."""
    declared = Declaration.read(path)
    with declared_book(declared) as book:
        return hold_to_terms(declared, book, {})


def test_a_budget_that_was_made_by_hand_is_not_asked_in_a_book_that_has_terms(path):
    with begin(path) as book:
        book.create_budget("second", Budget(epsilon=1.0, unit="patient"))
    second = apart(path.parent / "second", path, ("other", "other.csv"))
    shutil.copy(path.parent / "other.csv", second.parent)
    with pytest.raises(DeclarationChanged, match="does not say what the promise of budget 'second' depends on") as told:
        sitr.open(second, analyst="owner")
    assert "sitr budget begin" in told.value.do
    begin(second).close()
    sitr.open(second, analyst="owner").close()


def test_files_of_one_name_in_two_folders_are_two_sources(path):
    begin(path).close()
    second = apart(path.parent / "second", path, ("stays", "stays.csv"))
    (second.parent / "stays.csv").write_text(FILES["stays.csv"], encoding="utf-8")
    begin(second).close()
    assert held(path) == held(second) == ()


@pytest.mark.parametrize("source", ["../stays.csv", "{folder}/stays.csv", "link.csv", "../STAYS.csv"])
def test_one_file_under_two_paths_is_one_source(path, source):
    begin(path).close()
    second = apart(path.parent / "second", path, ("a", source.format(folder=path.parent)))
    os.symlink(path.parent / "stays.csv", second.parent / "link.csv")
    with pytest.raises(InvalidDeclaration, match=r"is tables.stays of the declaration 'hospital'"):
        begin(second)
    with declared_book(Declaration.read(path)) as book:
        assert "second" not in book.budgets()


@pytest.mark.parametrize("source", ["main.v", "main.stays", "MAIN.Stays"])
def test_one_database_in_two_folders_is_one_source(tmp_path, source):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE TABLE stays AS SELECT 1 AS patient_id")
        database.execute("CREATE VIEW v AS SELECT patient_id FROM stays")
    path = tmp_path / "hospital.toml"
    text = DECLARATION[: DECLARATION.index("[budgets.lab]")].format(url="book.db")
    table = '[tables.stays]\nsource = "v"\nunit = "patient_id"\nmax_rows_per_unit = 1\ncolumns.patient_id'
    path.write_text(f'{text}[connection]\naddress = "d.duckdb"\n{table}.type = "integer"\n', encoding="utf-8")
    begin(path).close()
    second = apart(tmp_path / "second", path, ("a", source))
    edited(second, "[budgets", '[connection]\naddress = "../d.duckdb"\n[budgets')
    with pytest.raises(InvalidDeclaration, match=r"is tables.stays of the declaration 'hospital'"):
        begin(second)
    edited(second, "../d.duckdb", "e.duckdb")
    shutil.copy(tmp_path / "d.duckdb", second.parent / "e.duckdb")
    begin(second).close()


def test_frames_are_where_their_declaration_is(path):
    first = apart(path.parent / "first", path, ("visits", "visits"), name="first")
    begin(first).close()
    with pytest.raises(InvalidDeclaration, match=r"is tables.visits of the declaration 'first'"):
        begin(apart(first.parent, path, ("visits", "visits")))
    begin(apart(path.parent / "second", path, ("visits", "visits"))).close()


def test_a_declaration_that_moves_to_the_rows_of_another_is_refused(path):
    """Both may move together, so that the book knows a place that is not the one any more."""
    begin(path).close()
    second = apart(path.parent / "second", path, ("stays", "stays.csv"))
    (second.parent / "stays.csv").write_text(FILES["stays.csv"], encoding="utf-8")
    begin(second).close()
    moved = path.parent / "moved"
    moved.mkdir()
    second.rename(moved / "second.toml")
    assert held(moved / "second.toml") == ()
    back = path.parent / "second.toml"
    (moved / "second.toml").rename(back)
    for use in (held, begin):
        with pytest.raises(InvalidDeclaration, match=r"stays.csv is tables.stays of the declaration 'hospital'"):
            use(back)


def test_a_book_that_knows_no_places_goes_on_and_is_taken_to_mean_any(path, monkeypatch):
    """As the first books with terms: names of files from a folder that nobody wrote down."""
    with monkeypatch.context() as earlier:
        earlier.setattr("sitr.session.terms._places", lambda *of: {})
        begin(path).close()
    assert held(path) == ()
    second = apart(path.parent / "second", path, ("stays", "stays.csv"))
    (second.parent / "stays.csv").write_text(FILES["stays.csv"], encoding="utf-8")
    third = apart(path.parent / "third", path, ("a", "../stays.csv"), name="third")
    for other in (second, third):
        with pytest.raises(InvalidDeclaration, match=r"is tables.stays of the declaration 'hospital'") as told:
            begin(other)
        assert "sitr budget begin" in told.value.do
    with begin(path) as book:
        (*_, entry) = [
            entry for entry in book.entries() if entry.kind == "declare" and entry.record["name"] == "hospital"
        ]
        assert f"tables.stays.place: {os.path.realpath(path.parent / 'stays.csv')}, new" in entry.record["changes"]
        assert "redeclared" not in str(book.statement("hospital"))
        assert book.verify()
    begin(second).close()
    with pytest.raises(InvalidDeclaration, match=r"is tables.stays of the declaration 'hospital'") as told:
        begin(third)
    assert "sitr budget begin" not in told.value.do


def test_a_declaration_with_another_name_takes_the_place_of_the_first(path):
    begin(path).close()
    old = path.read_text(encoding="utf-8")
    for table in ("stays", "bills"):
        edited(path, f"[tables.{table}]\n", f'[tables.{table}]\ndataset = "hospital"\n')
    edited(path, 'name = "hospital"', 'name = "clinic"')
    edited(path, 'unit = "patient_id"\nmax_rows_per_unit = 3\n', 'unit = "id"\nmax_rows_per_unit = 3\n')
    with pytest.raises(InvalidDeclaration, match=r"is tables.stays of the declaration 'hospital'") as told:
        redeclare(path, reason="a new name")
    assert "--instead-of hospital" in told.value.do
    for name in ("clinic", "school"):
        with pytest.raises(UnknownName, match=f"no other declaration '{name}'"):
            redeclare(path, reason="a new name", instead_of=name)
    book, _ = redeclare(path, reason="a new name", instead_of="hospital")
    with book:
        said = str(book.statement("hospital"))
        assert (
            "unit       bills: found through stays, where stay_id (a number) is id; stays: named by id, a number"
            in said
        )
        assert "stays: named by patient_id, a number), until 20" in said
        assert book.verify()
    assert held(path) == ()
    path.write_text(old, encoding="utf-8")
    with pytest.raises(DeclarationChanged, match=r"tables.stays.unit: named by patient_id, a number, new"):
        held(path)


def test_rows_that_another_budget_paid_for_are_told(path):
    """A dataset of another name has a budget of its own; those in the data bear both."""
    begin(path).close()
    edited(path, "[tables.stays]\n", '[budgets.wards]\nepsilon = 1.0\n[tables.stays]\ndataset = "wards"\n')
    edited(path, "[tables.bills]\n", '[tables.bills]\ndataset = "wards"\n')
    with pytest.raises(DeclarationChanged):
        held(path)
    book, _ = redeclare(path, reason="wards pay for themselves")
    with book:
        told = str(book.statement("wards"))
        assert "stays.csv was paid from 'hospital' until 20" in told
        assert "before     ε = 10 for one patient added or removed (bills: found through stays" in str(
            book.statement("hospital")
        )


def test_an_analyst_of_a_server_reads_digests_and_changes_nothing(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = tmp_path / "hospital.toml"
    path.write_text(DECLARATION.format(url=url), encoding="utf-8")
    with begin(path) as book:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("DROP ROLE IF EXISTS samira")
            server.execute("CREATE ROLE samira LOGIN")
        book.allow("samira")
        mine = tmp_path / "mine.toml"
        hers = cluster.shared().url(cluster.database_of(url), "samira")
        mine.write_text(path.read_text(encoding="utf-8").replace(url, hers), encoding="utf-8")
        assert len(asked(mine, analyst="samira")) == 1
        with Ledger.open(hers, create=False) as ledger:
            (recorded, _) = ledger.terms("hospital", ["hospital"]).values()
            assert recorded.record.keys() == {"name", "declaration", "version", "digests"}
            assert ledger.store.declared(None, ()) == []
            assert ledger.terms("other", ["other"]) == {}
        book.create_budget("second", Budget(epsilon=10.0, unit="patient"))
        by_hand = apart(tmp_path, mine, ("stays", "stays.csv"))
        with pytest.raises(DeclarationChanged, match="does not say what the promise of budget 'second' depends on"):
            sitr.open(by_hand, analyst="samira")
        edited(mine, 'source = "stays.csv"', 'source = "other.csv"')
        with pytest.raises(DeclarationChanged, match="only the owner of the book can look up"):
            sitr.open(mine, analyst="samira")
        for use in (lambda: begin(mine), lambda: redeclare(mine, reason="mine")):
            with pytest.raises((NotPermitted, DeclarationChanged)):
                use()
        assert book.verify()
