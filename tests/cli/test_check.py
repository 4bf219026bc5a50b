"""`sitr check`: counts for the owner alone, who is asked first; the book notes them once there is one."""

import pytest

from sitr.cli import payment
from sitr.tables.source import Source
from tests.cli.clinics import make_clinic
from tests.cli.helpers import run, run_json

DECLARATION = """\
sitr = 1
name = "clinic"
analysts = ["amina"]

[privacy]
unit = "patient"

[ledger]
url = "book.db"

[budgets.clinic]
epsilon = 1.0

[tables.visits]
source = "visits.csv"
unit = "patient_id"
max_rows_per_unit = 1
[tables.visits.columns]
patient_id = { type = "integer" }
region = { type = "string", categories = ["north", "south"] }
day = { type = "date", bounds = [2025-01-01, 2025-12-31] }
cost = { type = "float", bounds = [0, 1000] }
"""
VISITS = """\
patient_id,region,day,cost
1,north,2025-03-01,12.5
1,nroth,15/08/2025,€4711
,south,2025-03-01,n/a
2,south,2024-03-01,"a note that begins here
and ends here"
"""
SECRETS = ("nroth", "15/08", "4711", "12.5", "note that begins")


@pytest.fixture
def clinic(tmp_path):
    (tmp_path / "visits.csv").write_text(VISITS, encoding="utf-8")
    path = tmp_path / "clinic.toml"
    path.write_text(DECLARATION, encoding="utf-8")
    return str(path)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(payment, "on_terminal", lambda: True)


def outside(clinic):
    return run_json("budget", "show", "clinic", "--ledger", clinic)["outside"]


def test_counts_and_no_value(clinic):
    result = run("check", clinic, "--yes", env={"COLUMNS": "100"})
    assert result.exit_code == 0
    assert result.stdout.startswith("NOT PRIVATE: exact counts without noise")
    assert "What you copy from here into the declaration becomes public." in result.stdout
    assert 'db.table("visits").profile("cost")' in result.stdout
    assert "visits: 3 rows of 1 patient\n" in result.stdout
    assert "1 patient has more than 1 row: 1 row beyond that" in result.stdout
    assert "1 row with no patient\n" in result.stdout
    assert "2 lines left out: 2 with an open quote, 0 too long, 0 like the first line" in result.stdout
    counted = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()}
    assert counted["region"] == ["0", "0", "1"]
    assert counted["day"] == ["1", "1", "0"]
    assert counted["cost"] == ["2", "2", "0"]
    assert "nothing is noted" in result.stderr
    assert not any(secret in result.output for secret in SECRETS)


def test_without_a_terminal_it_needs_yes(clinic, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    result = run("check", clinic, input="y\n")
    assert result.exit_code == 2
    assert "add --yes to count without being asked" in result.stderr


@pytest.mark.usefixtures("terminal")
def test_it_asks_before_it_notes_or_reads_anything(clinic):
    run("budget", "begin", clinic)
    refused = run("check", clinic, input="\n")
    assert refused.exit_code == 1
    assert "Every row of visits is read and counted exactly. The counts are NOT PRIVATE. The book notes it" in (
        refused.stderr
    )
    assert "Nothing was read." in refused.stderr
    assert refused.stdout == ""
    assert outside(clinic) == []
    assert "visits: 3 rows" in run("check", clinic, input="y\n").stdout


def test_once_the_book_is_begun_it_notes_each_check(clinic):
    run("budget", "begin", clinic)
    result = run("check", clinic, "--yes", "--reason", "dates of last year")
    assert result.exit_code == 0
    assert result.stdout.startswith("NOT PRIVATE")
    assert "Noted in the book, as outside the promise of clinic." in result.stderr
    (noted,) = outside(clinic)
    assert (noted["what"], noted["reason"]) == (
        "counts of what does not fit the declaration clinic",
        "dates of last year",
    )
    assert "OUTSIDE" in run("budget", "show", "clinic", "--ledger", clinic).stdout
    assert run("ledger", "verify", clinic).exit_code == 0


def test_a_declaration_that_is_not_the_one_of_the_book_is_refused(clinic, monkeypatch, tmp_path):
    run("budget", "begin", clinic)
    text = (tmp_path / "clinic.toml").read_text(encoding="utf-8")
    rows = text.replace('unit = "patient_id"\nmax_rows_per_unit = 1', 'unit = "row"')
    (tmp_path / "clinic.toml").write_text(rows, encoding="utf-8")
    result = run("check", clinic, "--yes")
    assert "DeclarationChanged" in result.stderr
    assert result.stdout == ""


def test_json(clinic):
    record = run_json("check", clinic, "--yes")
    assert (record["private"], record["noted"]) == (False, [])
    visits = record["tables"]["visits"]
    assert visits["units"] == {"units": 1, "nameless": 1, "over": 1, "rows_over": 1, "limit": 1}
    assert visits["lines_left_out"] == {"too_long": 0, "heads": 0, "quotes": 2}
    assert visits["columns"]["day"] == {"missing": 1, "unparsed": 1, "outside_bounds": 0, "outside_categories": None}


def test_a_database_of_duckdb(tmp_path):
    path = make_clinic(tmp_path)
    result = run("check", path, "--yes")
    assert result.exit_code == 0
    assert "visits: 900 rows of 300 patients" in result.stdout
    assert "codes: 0 rows, public" in result.stdout
    assert "malaria" not in result.output
