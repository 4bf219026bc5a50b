"""What leaves outside the promise: written down for nothing, shown by every report, and never charged."""

import json

import psycopg
import pytest

from sitr.accounting import PureDP
from sitr.errors import InvalidArgument, NotPermitted, UnknownName
from sitr.ledger import Budget, Ledger
from sitr.ledger.backup import back_up, restore
from sitr.ledger.entry import Entry, canonical
from sitr.ledger.journal import journal
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Fault, Replay
from sitr.synthesis import random_dp_histogram
from tests.cli.helpers import run, run_json
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared
from tests.ledger.test_migration import restored

EVENT = PureDP(epsilon=0.25)
ABOUT = {"notion": "random DP with α = 1, γ = 0.0368", "reason": "asked for by the board"}
WHAT = "a histogram of diagnoses"


@pytest.fixture
def noted(ledger):
    """A dataset with a share, another dataset, a release of each, and one outside the promise of the first."""
    fill(ledger)
    return ledger


def fill(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
    ledger.create_budget("school", Budget(epsilon=1.0))
    ledger.reserve("clinic", EVENT, analyst="amina", operation="a")
    ledger.note_outside("clinic", WHAT, analyst="badr", **ABOUT)
    ledger.reserve("school", EVENT, analyst="amina", operation="b")


def test_nothing_is_charged_and_everything_shows_it(noted):
    assert noted.spent("clinic").value == noted.spent("clinic", analyst="amina").value == 0.25
    for holder in ({}, {"analyst": "amina"}):
        statement = noted.statement("clinic", **holder)
        (one,) = statement.outside
        assert (one.what, one.notion, one.reason, one.analyst) == (WHAT, *ABOUT.values(), "badr")
        told = dict(statement.rows())["OUTSIDE"]
        assert told.startswith(f"the promise, and paid for by nothing: {WHAT}, noted on ")
        assert told.endswith("by badr: random DP with α = 1, γ = 0.0368; asked for by the board")
        assert statement.operations == {"reserved": 1}
        assert statement.exact.upper == pytest.approx(0.25)
    assert noted.statement("school").outside == ()
    assert "OUTSIDE" not in str(noted.statement("school"))


def test_it_is_a_line_among_releases(noted):
    first, outside, last = noted.releases()
    assert [line.operation for line in (first, outside, last)] == ["a", "", "b"]
    assert (outside.state, outside.analyst, outside.datasets, outside.price) == ("outside", "badr", ("clinic",), "")
    assert outside.short == f"OUTSIDE THE PROMISE: {WHAT} (random DP with α = 1, γ = 0.0368; asked for by the board)"
    assert outside.to_dict()["state"] == "outside"
    assert first.left == {"clinic": "75.0 %", "clinic/analyst/amina": "50.0 %"}


def test_it_is_remarked_on_before_all_else(tmp_path):
    with Ledger.open(tmp_path / "book.db", answers=tmp_path / "answers") as ledger:
        fill(ledger)
        with ledger.reserve("clinic", EVENT, analyst="amina", operation="large") as grant:
            grant.commit(bytes(2**20 + 7))
        for file in (tmp_path / "answers").iterdir():
            file.unlink()
        first, second = ledger.verify().remarks
    assert first == "1 release is outside every promise"
    assert "1 large answers are in files that are not here" in second


def test_the_book_holds_and_verification_remarks_on_it(noted):
    found = noted.verify()
    assert found.valid
    assert found.remarks == ("1 release is outside every promise",)
    noted.note_outside("clinic", WHAT, **ABOUT)
    assert noted.verify().remarks == ("2 releases are outside every promise",)
    assert noted.releases()[-1].analyst == ""
    noted.raise_budget("clinic", Budget(epsilon=2.0), reason="more")
    noted.refund("a", reason="never ran")
    assert noted.verify()
    assert len(noted.statement("clinic").outside) == 2


def test_a_release_under_random_dp_is_noted_by_its_own_words(clinic):
    released = random_dp_histogram(50, 1000, alpha=1.0).release({"flu": 1000}, unsafe_random_dp=True)
    clinic.note_outside("clinic", WHAT, notion=released.notion, reason="a study")
    assert clinic.statement("clinic").outside[0].notion == "random DP with α = 1, γ = 0.0368"
    assert clinic.remaining("clinic").value == 8


def test_it_is_kept_copied_and_put_back(fresh_durable, tmp_path):
    url, elsewhere = fresh_durable(), fresh_durable()
    with Ledger.open(url) as ledger:
        fill(ledger)
        back_up(ledger, tmp_path / "copy")
        entries = list(ledger.entries())
    restore(tmp_path / "copy", elsewhere)
    for place in (url, elsewhere):
        with Ledger.open(place, create=False) as again:
            assert list(again.entries()) == entries
            assert again.verify()
            assert len(again.statement("clinic").outside) == 1


@pytest.mark.parametrize("form", [1, 2])
def test_an_older_book_goes_on_with_it(fresh_durable, form):
    with Ledger.open(restored(fresh_durable(), form)) as ledger:
        spent = ledger.spent("clinic")
        assert ledger.verify()
        ledger.note_outside("clinic", WHAT, **ABOUT)
        assert ledger.verify()
        assert (ledger.spent("clinic"), len(ledger.statement("clinic").outside)) == (spent, 1)


def test_the_anchor_knows_of_it(fresh_durable, tmp_path):
    with Ledger.open(fresh_durable(), anchor=tmp_path / "anchor") as ledger:
        fill(ledger)
        ledger.note_outside("clinic", WHAT, **ABOUT)
        assert f"anchored up to entry {ledger.head.seq}" in ledger.verify().anchored


@pytest.mark.parametrize(
    "changed", [{"notion": ""}, {"reason": " "}, {"notion": "two\nlines"}, {"reason": "x" * 501}, {"analyst": "a/b\n"}]
)
def test_what_no_report_can_show_is_refused(clinic, changed):
    with pytest.raises(InvalidArgument):
        clinic.note_outside("clinic", WHAT, **ABOUT | changed)
    with pytest.raises(InvalidArgument, match="what left is a line"):
        clinic.note_outside("clinic", "", **ABOUT)
    assert [entry.kind for entry in clinic.entries()] == ["open", "budget"]


def test_only_a_dataset_with_a_budget_has_a_promise(clinic):
    with pytest.raises(UnknownName):
        clinic.note_outside("school", WHAT, **ABOUT)
    with pytest.raises(InvalidArgument):
        clinic.note_outside("clinic/analyst/amina", WHAT, **ABOUT)


def test_an_analyst_of_postgresql_cannot_write_it_and_sees_her_own(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    with Ledger.open(url) as owner:
        owner.create_budget("clinic", Budget(epsilon=1.0))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE outsider LOGIN")
        owner.allow("outsider")
        owner.note_outside("clinic", WHAT, analyst="outsider", **ABOUT)
        owner.note_outside("clinic", "something else", **ABOUT)
        with Ledger.open(shared().url(database_of(url), "outsider")) as analyst:
            with pytest.raises(NotPermitted):
                analyst.note_outside("clinic", WHAT, **ABOUT)
            assert [line.state for line in analyst.releases()] == ["outside"]
        assert owner.verify()


def entry(kind, seq, operation=None, **record):
    return Entry(seq, "2026-01-01T00:00:00.000000+00:00", kind, operation, None, canonical(record), "")


GOOD = {"name": "clinic", "what": WHAT, **ABOUT}


def begun():
    replay = Replay()
    replay.apply(entry("budget", 2, name="clinic", definition=Keeper.of(Budget(epsilon=4.0)).to_json()))
    return replay


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"name": "school"}, "no dataset"),
        ({"name": "clinic/analyst/amina"}, "no dataset"),
        ({"what": ""}, "does not say what left"),
        ({"notion": 7}, "does not say what left"),
        ({"reason": " "}, "does not say what left"),
        ({"name": ["clinic"]}, "lacks something"),
    ],
)
def test_an_entry_that_breaks_the_rules_is_found_and_still_shown(changed, fault):
    begun().apply(entry("outside", 3, **GOOD))
    replay = begun()
    with pytest.raises(Fault, match=fault):
        replay.apply(entry("outside", 3, **GOOD | changed))
    assert len(replay.outside) == 1
    with pytest.raises(Fault, match="belongs to an operation"):
        begun().apply(entry("outside", 3, "q", **GOOD))
    (line,) = journal([entry("outside", 3, **GOOD | changed)])
    assert line.state == "outside"
    (line,) = journal([Entry(3, "2026", "outside", None, None, "[]", "")])
    assert "cannot be read" in line.short


def test_the_commands_show_it(tmp_path):
    book = str(tmp_path / "book.db")
    with Ledger.open(book) as ledger:
        fill(ledger)
    shown = run_json("ledger", "show", "--ledger", book)["releases"]
    assert [line["state"] for line in shown] == ["reserved", "outside", "reserved"]
    assert "OUTSIDE THE PROMISE" in " ".join(run("ledger", "show", "--ledger", book).stdout.split())
    assert WHAT in " ".join(run("ledger", "show", "--entries", "--ledger", book).stdout.split())
    assert "1 release is outside every promise" in run("ledger", "verify", book).stdout
    exported = json.loads(run("ledger", "export", "--releases", "--ledger", book).stdout)
    assert [line["state"] for line in exported["releases"]] == ["reserved", "outside", "reserved"]
    assert ",outside," in run("ledger", "export", "--releases", "--format", "csv", "--ledger", book).stdout
    whole = json.loads(run("ledger", "export", "--ledger", book).stdout)
    assert [one["body"]["notion"] for one in whole["entries"] if one["kind"] == "outside"] == [ABOUT["notion"]]
    statement = run_json("budget", "show", "clinic", "--ledger", book)
    assert [one["what"] for one in statement["outside"]] == [WHAT]
    records = {one["name"]: one for one in run_json("budget", "list", "--ledger", book)["budgets"]}
    assert {name: len(one["outside"]) for name, one in records.items()} == {
        "clinic": 1,
        "clinic/analyst/amina": 1,
        "school": 0,
    }
    assert "outside 20" in run("budget", "list", "--ledger", book, env={"COLUMNS": "200"}).stdout
