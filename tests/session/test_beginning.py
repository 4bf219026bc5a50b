"""How a book is begun: its id is written into the declaration, and nothing else in the file changes."""

import os
import re
import stat
import tomllib

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidDeclaration, LedgerError, WrongLedger
from sitr.ledger import Ledger
from sitr.session import beginning
from sitr.session.beginning import begin, with_ledger_id
from sitr.tables import Declaration

TABLES = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 4
columns.patient.type = "integer"
"""
BUDGET = "[budgets.clinic]\nepsilon = 1.0\n"
LEDGERS = [
    '[ledger]\nurl = "book.db"  # beside this file\n',
    '[ledger]\r\nurl = "book.db"\r\n',
    '[ ledger ]  # the book\nid = ""  # comes here\nurl = "book.db"\n',
    '[ledger]\n# id = ""\n# url = "old.db"\nurl = "book.db"',
    "[ledger]\nurl = '''\nbook.db'''\n",
]
FIRST = [
    'ledger.url = "book.db"\n',
    'ledger = { url = "book.db" }  # { the book }\n',
    'ledger.id = ""\nledger.url = "book.db"\n',
]
HEAD = 'sitr = 1\nname = "clinic"\n'
TRAP = '[privacy]\nunit = """\n[ledger]\nurl = "trap.db"\nid = ""\n"""\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.toml"


@pytest.mark.parametrize("text", [HEAD + TRAP + TABLES + one for one in LEDGERS] + [HEAD + one + TRAP for one in FIRST])
def test_one_line_is_written_and_all_else_stays(text):
    changed = with_ledger_id(text, "7f")
    wanted = tomllib.loads(text)
    wanted["ledger"]["id"] = "7f"
    assert tomllib.loads(changed) == wanted
    before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    assert len([line for line in after if line not in before]) <= 2  # a last line gets its end
    assert changed.count("#") == text.count("#")
    assert ("\r\n" in changed) == ("\r\n" in text)


@given(st.text(alphabet='[]ledgruid=".#\n ', max_size=60))
def test_whatever_stands_there_the_result_is_right_or_it_refuses(noise):
    text = f"{HEAD}{noise}\n[ledger]\nurl = 'book.db'\n"
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    try:
        changed = with_ledger_id(text, "7f")
    except InvalidDeclaration:
        return
    before["ledger"]["id"] = "7f"
    assert tomllib.loads(changed) == before


def test_a_book_is_begun_once(path):
    path.write_text(HEAD + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")
    os.chmod(path, 0o640)
    with begin(path) as ledger:
        id = ledger.id
    assert Declaration.read(path).ledger_id == id
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    text = path.read_bytes()
    with begin(path) as ledger:
        assert ledger.id == id
        assert ledger.head.seq == 3  # opened, promised, declared: and nothing the second time
    assert path.read_bytes() == text
    assert [one.name for one in path.parent.iterdir() if one.name.startswith(".")] == []


def test_what_was_added_is_promised(path):
    path.write_text(HEAD + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")
    begin(path).close()
    share = BUDGET + "analysts.amina = { epsilon = 0.5 }\npurposes.audit = { epsilon = 0.1 }\n"
    path.write_text(path.read_text(encoding="utf-8").replace(BUDGET, share), encoding="utf-8")
    with begin(path) as ledger:
        assert set(ledger.budgets()) == {"clinic", "clinic/analyst/amina", "clinic/purpose/audit"}
        assert beginning.differences(Declaration.read(path), ledger) == []


def test_a_book_that_is_there_is_taken(path):
    path.write_text(HEAD + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")
    with Ledger.open(str(path.parent / "book.db")) as there, begin(path) as ledger:
        assert ledger.id == there.id


def test_another_book_or_none_is_refused(path):
    path.write_text(HEAD + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")
    Ledger.open(str(path.parent / "other.db")).close()
    begin(path).close()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"book.db"', '"other.db"'), encoding="utf-8")
    with pytest.raises(WrongLedger):
        begin(path)
    path.write_text(text.replace('"book.db"', '"gone.db"'), encoding="utf-8")
    with pytest.raises(LedgerError, match="no ledger"):
        begin(path)
    assert not (path.parent / "gone.db").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + BUDGET + TABLES, "names no ledger"),
        (HEAD + LEDGERS[0] + TABLES, "no budget is declared for its dataset 'clinic'"),
        (HEAD + LEDGERS[0] + "[budgets.clinic]\ndelta = 1e-6\n" + TABLES, r"budgets\.clinic: a budget has one limit"),
        (HEAD + LEDGERS[0] + BUDGET + "analysts.a = { rho = 1e99 }\n" + TABLES, r"budgets\.clinic\.analysts\.a: rho"),
        (HEAD + '"ledger" = { "url" = "book.db" }\n' + BUDGET + TABLES, "the place for the id"),
    ],
)
def test_what_cannot_be_begun_begins_no_book(path, text, message):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidDeclaration, match=message):
        begin(path)
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text(encoding="utf-8") == text


def test_a_declaration_that_cannot_be_written_says_so(path, monkeypatch):
    path.write_text(HEAD + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(beginning.os, "replace", refuse)
        with pytest.raises(InvalidDeclaration, match="Permission denied"):
            begin(path)
    with begin(path) as ledger:  # the book that was made is taken
        assert Declaration.read(path).ledger_id == ledger.id


def with_tables(path, kind):
    with duckdb.connect(str(path.parent / "clinic.duckdb")) as database:
        database.execute(f"CREATE TABLE visits (patient {kind})")
    address = '[connection]\naddress = "clinic.duckdb"\n'
    path.write_text(HEAD + address + LEDGERS[0] + BUDGET + TABLES, encoding="utf-8")


def test_a_declaration_that_does_not_fit_its_tables_gets_no_book(path):
    with_tables(path, "DOUBLE")
    before = path.read_text(encoding="utf-8")
    with pytest.raises(InvalidDeclaration, match=r"tables.visits.columns.patient: declared as integer"):
        begin(path)
    assert not (path.parent / "book.db").exists()
    assert path.read_text(encoding="utf-8") == before


def test_tables_that_fit_or_cannot_be_opened_get_a_book(path):
    told = []
    with_tables(path, "BIGINT")
    begin(path, tell=told.append).close()
    assert told == []
    path.write_text(HEAD + LEDGERS[0].replace("book", "other") + BUDGET + TABLES, encoding="utf-8")
    begin(path, tell=told.append).close()  # no such table
    begin(path, tell=told.append).close()  # a book that is there is not asked about
    assert told == [beginning.UNSEEN]
    address = '[connection]\naddress = "nowhere.duckdb"\n'
    path.write_text(HEAD + address + LEDGERS[0].replace("book", "third") + BUDGET + TABLES, encoding="utf-8")
    begin(path, tell=told.append).close()
    assert len(told) == 2


def delta(path, release, budget, units):
    head = f"{HEAD}[privacy]\ndelta = {release}\n{LEDGERS[0]}[budgets.clinic]\nepsilon = 3.0\ndelta = {budget}\n"
    path.write_text(head + TABLES.replace("max_rows", f"expected_units = {units}\nmax_rows"), encoding="utf-8")
    told = []
    begin(path, tell=told.append).close()
    return [remark for remark in told if remark != beginning.UNSEEN]


@pytest.mark.parametrize(
    ("release", "budget", "units", "remarks"),
    [
        (1e-9, 1e-6, 1000, []),
        (2e-7, 1e-6, 1000, ["δ = 2.5e-07 is kept for .* is 2e-07: that pays for one question. .* delta = [23]e-09 in"]),
        (1e-6, 1e-6, 1000, ["δ = 2.5e-07 is kept for .* is 1e-06: that pays for no question."]),
        (0.0, 1e-6, 1000, []),
        (1e-9, 1e-3, 1000, ["δ = 1e-03 is not well below 1/1,000: .* everything about some person. .* under 1e-04"]),
        (1e-9, 1e-4, 1000, ["δ = 1e-04 is not well below 1/1,000"]),
        (1e-9, 9e-5, 1000, []),
        (1e-5, 1e-2, 100_000, ["δ = 0.01 is not well below 1/100,000", "δ = 1e-05 is not well below 1/100,000"]),
    ],
)
def test_a_delta_that_is_too_large_is_remarked_on(path, release, budget, units, remarks):
    told = delta(path, release, budget, units)
    assert len(told) == len(remarks)
    for remark, words in zip(told, remarks, strict=True):
        assert re.search(words, remark)
