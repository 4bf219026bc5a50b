"""`sitr budget`: promises are made, shown, listed and raised, rounded to the safe side."""

import xml.etree.ElementTree
from pathlib import Path

import pytest

from sitr.accounting import Laplace
from sitr.ledger import Budget, Ledger
from tests.cli.books import make_book, tamper
from tests.cli.clinics import COUNT, make_clinic
from tests.cli.helpers import run, run_json


@pytest.fixture
def book(tmp_path):
    return make_book(tmp_path)


def opened(path):
    return Ledger.open(f"sqlite:///{path}", create=False)


def test_create_begins_a_book(tmp_path):
    path = tmp_path / "new.db"
    options = ("--adjacency", "replace_one", "--unit", "patient", "--per", "month")
    result = run("budget", "create", "clinic", "--epsilon", "1", "--delta", "1e-6", *options, "--ledger", str(path))
    assert result.exit_code == 0
    assert "promise     ε = 1 at δ = 1e-06 for one patient within one month, replaced" in result.stdout
    assert "left        ε part: 100 % (ε 1.00); δ part: 100 % (1e-07)" in result.stdout
    assert "head        2:" in result.stdout
    assert result.stderr == ""
    with opened(path) as ledger:
        promised = Budget(epsilon=1, delta=1e-6, adjacency="replace_one", unit="patient", per="month")
        assert ledger.budget("clinic") == promised


def test_a_share_is_for_those_whom_the_dataset_names(tmp_path):
    where = ("--ledger", str(tmp_path / "new.db"))
    run("budget", "create", "clinic", "--rho", "1", "--unit", "patient", "--disjoint-by", "hospital", *where)
    record = run_json("budget", "create", "clinic", "--analyst", "amina", "--rho", "0.25", *where)
    assert record["name"] == "clinic/analyst/amina"
    assert record["budget"]["unit"] == "patient"
    assert record["budget"]["disjoint_by"] == "hospital"
    assert run_json("budget", "show", "clinic/analyst/amina", *where) == record
    refused = run("budget", "create", "clinic", "--purpose", "audit", "--rho", "1", "--unit", "visit", *where)
    assert refused.exit_code == 2
    assert "a share differs from the budget of its dataset in unit" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clinic"], "a budget has one limit"),
        (["clinic", "--epsilon", "0"], "--epsilon 0.0 is not in"),
        (["clinic", "--epsilon", "1", "--rho", "1"], "a budget has one limit"),
        (["clinic", "--epsilon", "1", "--per", "month", "--disjoint-by", "hospital"], "not both"),
        (["clinic/2026", "--epsilon", "1"], "it contains '/'"),
        (["clinic", "--epsilon", "1", "--adjacency", "near"], "is not one of"),
        (["clinic", "--epsilon", "1", "--analyst", "amina"], "there is no ledger"),
        (["clinic", "--epsilon", "1", "--analyst", "amina", "--purpose", "audit"], "not both"),
    ],
)
def test_what_cannot_be_promised_begins_no_book(tmp_path, arguments, message):
    result = run("budget", "create", *arguments, "--ledger", str(tmp_path / "new.db"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_created_once(book):
    result = run("budget", "create", "clinic", "--epsilon", "1", "--ledger", book)
    assert result.exit_code == 2
    assert "there is a budget 'clinic' already" in result.stderr


def test_a_weak_promise_is_warned_of(tmp_path):
    strong = run("budget", "create", "a", "--epsilon", "5", "--ledger", str(tmp_path / "a.db"))
    weak = run("budget", "create", "b", "--epsilon", "6", "--delta", "1e-6", "--ledger", str(tmp_path / "a.db"))
    rho = run("budget", "create", "c", "--rho", "2", "--ledger", str(tmp_path / "a.db"))
    assert strong.stderr == ""
    assert "PrivacyWarning: ε = 6.00 at δ = 1e-06 is above 5" in weak.stderr
    assert "PrivacyWarning: ε = 11.7 at δ = 1e-06 is above 5" in rho.stderr


def test_show_rounds_spent_up_and_left_down(tmp_path):
    path = str(tmp_path / "book.db")
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        ledger.reserve("clinic", Laplace(noise_multiplier=3), analyst="amina")
    result = run("budget", "show", "clinic", "--ledger", path)
    assert "spent       33.4 % of the budget (ε 0.334)" in result.stdout
    assert "left        66.6 % of the budget (ε 0.666)" in result.stdout
    assert "exact       ε = 0.334 at δ = 0 for a fixed list of questions (for information only)" in result.stdout
    record = run_json("budget", "show", "clinic", "--ledger", path)
    assert record["spent"]["value"] == pytest.approx(1 / 3, rel=1e-15)
    assert record["exact"]["epsilon"]["lower"] <= 1 / 3 <= record["exact"]["epsilon"]["upper"]


def test_show_as_json_has_everything(book):
    record = run_json("budget", "show", "clinic", "--ledger", book)
    assert record["spent"] == {
        "value": pytest.approx(0.35),
        "delta": 0.0,
        "share": pytest.approx(0.35),
        "delta_share": None,
        "measure": "epsilon",
        "order": None,
    }
    assert record["operations"] == {"committed": 1, "reserved": 1}
    assert record["budget"]["adjacency"] == "add_remove"
    assert [promise["promise"] for promise in record["promises"]] == ["ε = 1"]
    with opened(book) as ledger:
        assert (record["ledger"], record["head"]["hash"]) == (ledger.id, ledger.head.hash)


def test_a_share_may_be_named_as_lists_print_it(book):
    by_option = run_json("budget", "show", "clinic", "--analyst", "amina", "--ledger", book)
    assert run_json("budget", "show", "clinic/analyst/amina", "--ledger", book) == by_option
    assert by_option["spent"]["value"] == pytest.approx(0.25)


def test_list(book):
    result = run("budget", "list", "--ledger", book)
    lines = [line.split() for line in result.stdout.splitlines() if " clinic" in line]
    assert lines[0][:4] == ["clinic", "ε", "=", "1"]
    assert "35.0 %" in result.stdout
    assert "33.4 %" in result.stdout  # a third of 0.75, rounded up
    assert "66.6 %" in result.stdout
    with opened(book) as ledger:
        assert f"head {ledger.head} of ledger {ledger.id}" in result.stdout
    record = run_json("budget", "list", "--ledger", book)
    assert [budget["name"] for budget in record["budgets"]] == ["clinic", "clinic/analyst/amina"]
    assert record["budgets"][0]["remaining"]["value"] == pytest.approx(0.65)


def test_names_of_budgets_are_whole_at_80_columns(book):
    with Ledger.open(f"sqlite:///{book}", create=False) as opened:
        opened.create_budget("clinic", Budget(epsilon=0.5), purpose="the report")
    for width in ("80", "100"):
        listed = run("budget", "list", "--ledger", book, env={"COLUMNS": width}).stdout
        for name in ("clinic/analyst/amina", "clinic/purpose/the report"):
            assert f"  {name}  " in listed
        assert all(len(line) <= int(width) for line in listed.splitlines() if not line.startswith("head"))


def test_a_raise_is_a_dated_change_of_promise_in_every_report(book):
    result = run("budget", "raise", "clinic", "--epsilon", "2", "--reason", "second wave", "--ledger", book)
    assert result.exit_code == 0
    with opened(book) as ledger:
        (date, _, _) = ledger.statement("clinic").promises[1]
    for shown in (result, run("budget", "show", "clinic", "--ledger", book)):
        assert f"raised      on {date[:10]} to ε = 2: second wave" in shown.stdout
    assert date[:10] in run("budget", "list", "--ledger", book).stdout
    assert run_json("budget", "list", "--ledger", book)["budgets"][0]["raised"] == [
        {"at": date, "reason": "second wave"}
    ]
    assert run_json("budget", "show", "clinic", "--ledger", book)["promises"][1]["reason"] == "second wave"


def test_a_raise_keeps_what_is_not_said(tmp_path):
    where = ("--ledger", str(tmp_path / "book.db"))
    made = ("--epsilon", "1", "--delta", "1e-6", "--unit", "patient", "--disjoint-by", "hospital")
    run("budget", "create", "clinic", *made, *where)
    record = run_json("budget", "raise", "clinic", "--epsilon", "2", "--reason", "more", *where)
    assert record["budget"] == {
        **{"epsilon": 2.0, "delta": 1e-6, "rho": None, "adjacency": "add_remove"},
        **{"unit": "patient", "disjoint_by": "hospital", "per": None},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clinic", "--epsilon", "2"], "Missing option '--reason'"),
        (["clinic", "--reason", "more"], "Say the new limit"),
        (["clinic", "--epsilon", "0.5", "--reason", "more"], "does not raise"),
        (["clinic", "--epsilon", "2", "--rho", "2", "--reason", "more"], "a budget has one limit"),
        (["clinic", "--delta", "1e-6", "--reason", "more"], "a budget keeps its kind"),
        (["clinic", "--rho", "2", "--reason", "more"], "a budget keeps its kind"),
        (["amina", "--epsilon", "2", "--reason", "more"], "did you mean 'clinic/analyst/amina'?"),
        (["school", "--epsilon", "2", "--reason", "more"], "there is no budget 'school'"),
    ],
)
def test_what_is_no_raise(book, arguments, message):
    before = Path(book).read_bytes()
    result = run("budget", "raise", *arguments, "--ledger", book)
    assert result.exit_code == 2
    assert message in result.stderr
    assert Path(book).read_bytes() == before


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_picture(book, tmp_path, form):
    picture = tmp_path / f"clinic.{form}"
    result = run("budget", "show", "clinic", "--picture", str(picture), "--ledger", book)
    assert result.exit_code == 0
    assert f"picture     {picture}" in result.stdout
    assert picture.stat().st_size > 1000
    if form == "svg":
        assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert run_json("budget", "show", "clinic", "--picture", str(picture), "--ledger", book)["picture"] == str(picture)


def test_a_picture_that_cannot_be_drawn(book, tmp_path, monkeypatch):
    where = ("--ledger", book)
    assert run("budget", "show", "clinic", "--picture", str(tmp_path / "clinic.gif"), *where).exit_code == 2
    nowhere = run("budget", "show", "clinic", "--picture", str(tmp_path / "no" / "clinic.svg"), *where)
    assert nowhere.exit_code == 1
    assert "cannot write" in nowhere.stderr
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    absent = run("budget", "show", "clinic", "--picture", str(tmp_path / "clinic.svg"), *where)
    assert absent.exit_code == 5
    assert absent.stdout == ""


@pytest.mark.parametrize(
    "command", [["show", "clinic"], ["list"], ["raise", "clinic", "--epsilon", "2", "--reason", "more"]]
)
def test_only_create_begins_a_book(tmp_path, command):
    result = run("budget", *command, "--ledger", str(tmp_path / "new.db"))
    assert result.exit_code == 2
    assert "there is no ledger" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_anchor_gets_a_line_for_what_is_written_and_is_compared_first(book, tmp_path):
    anchor = tmp_path / "anchor"
    run("ledger", "anchor", str(anchor), "--ledger", book)
    before = anchor.read_text()
    options = ("--anchor", str(anchor), "--ledger", book)
    assert run("budget", "raise", "clinic", "--epsilon", "2", "--reason", "more", *options).exit_code == 0
    assert len(anchor.read_text().split()) == len(before.split()) + 1
    tamper(book, "DELETE FROM entry WHERE kind = 'raise'")
    result = run("budget", "show", "clinic", *options)
    assert result.exit_code == 1
    assert "is behind its anchor" in result.stderr
    assert result.stdout == ""


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path)


def test_begin_makes_the_book_that_a_declaration_names(clinic, tmp_path):
    before = Path(clinic).read_text(encoding="utf-8")
    result = run("budget", "begin", clinic)
    assert result.exit_code == 0
    assert "clinic/analyst/badr" in result.stdout
    with opened(tmp_path / "book.db") as ledger:
        assert set(ledger.budgets()) == {"clinic", "clinic/analyst/badr", "clinic/purpose/audit"}
        assert ledger.budget("clinic") == Budget(epsilon=1.0, unit="patient")
        line = f'id = "{ledger.id}"\n'
    after = Path(clinic).read_text(encoding="utf-8")
    assert line in after
    assert after.replace(line, "") == before


def test_begin_twice_changes_nothing(clinic):
    first = run_json("budget", "begin", clinic)
    text = Path(clinic).read_text(encoding="utf-8")
    assert run_json("budget", "begin", clinic) == first
    assert Path(clinic).read_text(encoding="utf-8") == text


def test_begin_says_where_the_book_promises_something_else(clinic):
    run("budget", "begin", clinic)
    text = Path(clinic).read_text(encoding="utf-8")
    Path(clinic).write_text(text.replace("epsilon = 1.0", "epsilon = 2.0"), encoding="utf-8")
    result = run("budget", "begin", clinic)
    assert result.exit_code == 0
    assert "the declaration says ε = 2, and the book promises ε = 1" in result.stderr


def test_begin_refuses_another_book(clinic, tmp_path):
    run("budget", "begin", clinic)
    (tmp_path / "book.db").unlink()
    gone = run("budget", "begin", clinic)
    assert gone.exit_code != 0
    assert not (tmp_path / "book.db").exists()
    Ledger.open(f"sqlite:///{tmp_path / 'other.db'}").close()
    text = Path(clinic).read_text(encoding="utf-8")
    Path(clinic).write_text(text.replace("book.db", "other.db"), encoding="utf-8")
    other = run("budget", "begin", clinic)
    assert other.exit_code == 2
    assert "WrongLedger" in other.stderr


def test_the_list_of_a_declaration(tmp_path):
    path = make_clinic(tmp_path)
    assert f"sitr budget begin {path} makes it." in run("budget", "list", path).stderr
    run("budget", "begin", path)
    book = str(tmp_path / "book.db")
    assert run_json("budget", "list", path) == run_json("budget", "list", "--ledger", book)
    assert run_json("budget", "list", path, env={"SITR_LEDGER": "another.db"})["budgets"][0]["name"] == "clinic"
    both = run("budget", "list", path, "--ledger", book)
    assert both.exit_code == 2
    assert "Name the book once" in both.stderr


def test_a_declaration_that_changed_is_refused_until_it_is_redeclared(tmp_path):
    declaration = make_clinic(tmp_path)
    assert run("budget", "begin", declaration).exit_code == 0
    assert run_json("tables", declaration)["remarks"] == []
    path = Path(declaration)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('public = true\nkey = "code"', "public = true"), encoding="utf-8")
    for command in (("explain", declaration, COUNT, "--epsilon", "0.1"), ("budget", "begin", declaration)):
        refused = run(*command, *(("--analyst", "amina") if command[0] == "explain" else ()))
        assert refused.exit_code == 2
        assert "DeclarationChanged [SITR-D02]" in refused.stderr
        assert "tables.codes.key: not declared any more, was code" in refused.stderr
    assert "was promised under another declaration" in run("tables", declaration).stderr
    assert run("budget", "redeclare", declaration).exit_code == 2  # it takes a reason
    told = run_json("budget", "redeclare", declaration, "--reason", "codes repeat")
    assert told["changes"] == ["budget 'clinic': tables.codes.key: not declared any more, was code"]
    assert "changed      nothing" in run("budget", "redeclare", declaration, "--reason", "again").stdout
    for shown in (
        ("budget", "show", "clinic"),
        ("budget", "show", "clinic", "--analyst", "badr"),
        ("ledger", "show", "--entries"),
    ):
        assert "codes repeat" in run(*shown, "--ledger", str(tmp_path / "book.db"), env={"COLUMNS": "200"}).stdout
    (record, *_) = run_json("budget", "list", declaration)["budgets"]
    assert [change["reason"] for change in record["redeclared"]] == ["codes repeat"]
    unknown = run("budget", "redeclare", declaration, "--reason", "a new name", "--instead-of", "school")
    assert "no other declaration 'school'" in unknown.stderr
    listed = run("budget", "list", declaration, env={"COLUMNS": "200"}).stdout
    assert f"redeclared {record['redeclared'][0]['at'][:10]}" in listed


def test_a_share_has_the_delta_of_its_dataset_and_is_replaced(tmp_path):
    where = ("--ledger", str(tmp_path / "book.db"))
    assert run("budget", "create", "clinic", "--epsilon", "4", "--delta", "1e-5", *where).exit_code == 0
    made = run("budget", "create", "clinic", "--analyst", "amina", "--epsilon", "1", *where)
    assert "limit       ε = 1 at δ = 1e-05 for one person added or removed" in made.stdout
    assert "within      the promise of clinic: it is no promise of its own" in made.stdout
    pure = run_json("budget", "create", "clinic", "--purpose", "audit", "--epsilon", "1", "--delta", "0", *where)
    assert pure["budget"]["delta"] is None
    with opened(tmp_path / "book.db") as book:
        book.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina", operation="q-1", purpose="audit")
    replaced = ("budget", "replace", "clinic/purpose/audit", "--epsilon", "0.5")
    assert run(*replaced, *where).exit_code == 2  # it takes a reason
    told = run(*replaced, "--reason", "groups are found", *where)
    assert told.exit_code == 0, told.stderr
    assert "limit       ε = 0.5 at δ = 1e-05" in told.stdout
    assert "by ε = 0.5 at δ = 1e-05: groups are found" in told.stdout
    record = run_json("budget", "show", "clinic", "--purpose", "audit", *where)
    assert record["spent"]["share"] > 0.25
    assert [change["kind"] for change in record["changes"]] == ["replace"]
    listed = {one["name"]: one["replaced"] for one in run_json("budget", "list", *where)["budgets"]}
    assert [len(changes) for changes in listed.values()] == [0, 0, 1]
    refused = run("budget", "replace", "clinic", "--epsilon", "9", "--reason", "more", *where)
    assert (refused.exit_code, "is the budget of a dataset" in refused.stderr) == (2, True)
    assert run("ledger", "verify", *where).exit_code == 0
