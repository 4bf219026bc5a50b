"""A check: noted in the book before a row is read, charged to nothing, stamped, and without a value of the data."""

import xml.etree.ElementTree
from dataclasses import replace

import pyarrow
import pytest

from sitr.errors import DeclarationChanged, InvalidArgument
from sitr.ledger import Budget, Ledger
from sitr.session.database import Database
from sitr.session.misfits import NOT_KEPT, NOTION, PUBLISHED, STAMP, check
from sitr.tables.source import Source
from tests.tables import engines

DECLARED = {
    "privacy": {"unit": "patient"},
    "tables": {
        "visits": {
            "unit": "who",
            "max_rows_per_unit": 2,
            "columns": {
                "who": {"type": "integer"},
                "region": {"type": "string", "categories": ["north", "south"]},
                "age": {"type": "integer", "bounds": [0, 120]},
            },
        },
        "answers": {"unit": "row", "dataset": "answers", "columns": {"region": {"type": "string"}}},
        "offices": {"public": True, "key": "region", "columns": {"region": {"type": "string"}}},
    },
}
SECRET = "atlantis"
ROWS = {
    "visits": pyarrow.table({"who": [1, 1, 1, 2], "region": ["north", SECRET, "south", None], "age": [5, 999, 7, 8]}),
    "answers": pyarrow.table({"region": ["north", "east"]}),
    "offices": pyarrow.table({"region": ["north", "north", "south"]}),
}


@pytest.fixture
def database():
    with engines.asked("duckdb", ROWS, DECLARED) as opened:
        yield opened


def test_a_check_is_stamped_and_shows_counts_alone(database):
    found = database.check(unsafe_exact_counts=True)
    assert not found.private
    told = str(found)
    assert told.startswith(f"{STAMP}\n{PUBLISHED}\n")
    for line in (
        "visits: 4 rows of 2 patients",
        "  1 patient has more than 2 rows: 1 row beyond that",
        "  0 rows with no patient",
        "  1 row whose key (region) is in no row of offices",
        "  region: 1 missing, 1 outside categories",
        "  age: 0 missing, 1 outside bounds",
        "answers: 2 rows, each of them a unit of its own",
        "offices: 3 rows, public",
        "  1 row with a key that another row has",
    ):
        assert line in told.splitlines()
    assert 'db.table("visits").profile("cost")' in told
    for shown in (told, repr(found.to_dict())):
        assert SECRET not in shown
        assert "999" not in shown


def test_it_is_noted_for_each_dataset_and_charges_nothing(database):
    before = database.ledger.spent("test").value
    assert database.check(unsafe_exact_counts=True, reason="typing errors").noted == ("answers", "test")
    for dataset in ("test", "answers"):
        (noted,) = database.ledger.statement(dataset).outside
        assert noted.what == "counts of what does not fit the declaration test"
        assert (noted.notion, noted.reason, noted.analyst) == (NOTION, "typing errors", "amina")
    assert database.ledger.spent("test").value == before


@pytest.mark.parametrize("said", [False, 1, "yes", None])
def test_nobody_gets_it_without_saying_so(database, said, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    with pytest.raises(InvalidArgument, match="not differentially private"):
        database.check(unsafe_exact_counts=said)
    assert not database.ledger.statement("test").outside


def test_it_is_noted_before_a_row_is_read(database, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("rows were read"))

    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr(Ledger, "note_outside", refused)
    with pytest.raises(PermissionError):
        database.check(unsafe_exact_counts=True)


def test_nothing_is_read_or_noted_under_a_promise_that_was_changed_since(database, monkeypatch):
    def changed(self):
        raise DeclarationChanged("the promise was changed.")

    monkeypatch.setattr(Database, "hold_to_terms", changed)
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(DeclarationChanged):
        database.check(unsafe_exact_counts=True)
    assert not database.ledger.statement("test").outside


def test_the_record_has_all_that_is_shown(database):
    record = database.check(unsafe_exact_counts=True).to_dict()
    assert (record["private"], record["stamp"], record["unit"]) == (False, STAMP, "patient")
    visits = record["tables"]["visits"]
    assert visits["units"] == {"units": 2, "nameless": 0, "over": 1, "rows_over": 1, "limit": 2}
    assert visits["lost_keys"] == [{"table": "offices", "on": {"region": "region"}, "rows": 1}]
    assert visits["columns"]["age"] == {
        "missing": 0,
        "unparsed": None,
        "outside_bounds": 1,
        "outside_categories": None,
    }
    assert (record["tables"]["offices"]["repeated_keys"], visits["lines_left_out"]) == (1, None)


def test_it_is_stamped_where_a_prompt_or_a_notebook_shows_it(database):
    found = database.check(unsafe_exact_counts=True)
    assert repr(found) == f"{STAMP} Check(3 tables)"
    root = xml.etree.ElementTree.fromstring(found._repr_html_())
    shown = ["".join(one.itertext()).strip() for one in root.iter() if one.tag in ("p", "td")]
    assert shown[:2] == [STAMP, PUBLISHED]
    for said in ("visits: 4 rows of 2 patients", "1 patient has more than 2 rows: 1 row beyond that", "region"):
        assert said in shown
    visits = found.tables[0]
    for counts in (visits, visits.units, *visits.lost_keys, *visits.columns.values()):
        assert repr(counts).startswith("NOT PRIVATE: exact counts:")
    hostile = replace(found, unit="</p><script>")
    assert "<script>" not in hostile._repr_html_()
    assert SECRET not in found._repr_html_()


def test_a_note_in_memory_is_said_to_be_lost(database):
    found = database.check(unsafe_exact_counts=True)
    assert found.noted == ("answers", "test")
    assert str(found).splitlines()[2] == NOT_KEPT
    assert NOT_KEPT in found._repr_html_()
    assert found.to_dict()["lasting"] is False


def test_a_note_in_a_book_is_not_said_to_be_lost(tmp_path):
    with Ledger.open(tmp_path / "book.db") as book:
        for dataset in ("test", "answers"):
            book.create_budget(dataset, Budget(epsilon=1.0, unit="patient"))
        with engines.asked("duckdb", ROWS, DECLARED) as opened:
            found = check(opened.source, book, analyst="amina", reason="typing errors")
        assert found.noted == ("answers", "test")
        assert NOT_KEPT not in str(found)
        assert found.to_dict()["lasting"] is True
