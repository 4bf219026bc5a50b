"""`sitr demo`: clinic and story hold together, the numbers are the library's, and files and figures are left behind."""

import pyarrow.parquet
import pytest

from sitr import report
from sitr.accounting import Event
from sitr.cli import clinic, digits
from tests.cli.clinics import read_sql
from tests.cli.helpers import run, run_json


@pytest.fixture(autouse=True)
def _one_figure(monkeypatch):
    """Draw only the first figure; tests/report draws them all."""
    read_sql(monkeypatch)
    monkeypatch.setattr(digits, "learn", lambda: None)  # tests/cli/test_digits.py learns
    for name in list(report.FIGURES)[1:]:
        monkeypatch.delitem(report.FIGURES, name)


def test_the_clinic_answers_refuses_and_keeps_its_book(tmp_path):
    result = run("demo", "--output", str(tmp_path), env={"COLUMNS": "120"})
    assert result.exit_code == 0
    told, _, story = result.stdout.partition("How privacy loss adds up")
    assert "SELECT region, COUNT(*) AS n FROM visits GROUP BY region" in told
    assert "BudgetExceeded [SITR-B01]: budget 'clinic'" in told
    assert "Why: its promise" in told
    assert "Do: what is left pays for ε = " in told
    assert "rare disease" not in told
    assert "verified    valid: 15 entries" in told
    assert "10,000 rows are in clinic.synthetic.parquet" in told
    assert len(told.splitlines()) < 105
    assert "A hundred releases" in story
    assert "\x1b" not in result.stdout
    assert result.stderr == ""
    assert f"sitr query {tmp_path / 'clinic.toml'}" in story


def test_what_the_clinic_released(tmp_path):
    record = run_json("demo", "--output", str(tmp_path))["clinic"]
    counts, mean, diagnoses, refused = record["steps"]
    assert counts["columns"]["region"] == ["north", "south", "east", "west"]
    assert len(mean["columns"]["cost"]) == 1
    assert set(diagnoses["columns"]["diagnosis"]) <= {*clinic.COMMON, *clinic.RARE}
    assert refused["columns"] is None
    rows = pyarrow.parquet.read_table(record["published"]["file"])
    assert rows.column_names == record["published"]["columns"] == ["region", "age", "cost"]
    assert rows.num_rows == 10_000
    assert "short by" in refused["refusal"]
    assert record["verified"] == "valid: 15 entries"
    assert record["statement"]["operations"] == "4 committed"


def test_what_is_left_can_be_asked_and_is_made_anew(tmp_path):
    first = run_json("demo", "--output", str(tmp_path))["clinic"]
    path = str(tmp_path / "clinic.toml")
    asked = ("query", path, clinic.COUNTS, "--epsilon", "0.1", "--yes", "--analyst", "amina")
    assert run(*asked).exit_code == 0
    again = run_json("demo", "--output", str(tmp_path))["clinic"]
    assert again["statement"]["spent"] == first["statement"]["spent"]
    assert again["statement"]["head"] != first["statement"]["head"]
    assert 'url = "clinic.ledger.db"' in (tmp_path / "clinic.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["clinic.toml", "clinic.ledger.db"])
def test_what_no_demo_made_is_not_touched(tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    result = run("demo", "--output", str(tmp_path))
    assert result.exit_code == 1
    assert "no demo made it" in result.stderr
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = run("demo", "--output", str(tmp_path / "file" / "deeper"))
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


def test_the_story_is_told_and_says_where_the_figures_are(tmp_path):
    result = run("demo", "--story", "--output", str(tmp_path / "figures"))
    assert result.exit_code == 0
    assert not (tmp_path / "figures" / "clinic.toml").exists()
    assert "A hundred releases" in result.stdout
    assert "DP-SGD" in result.stdout
    assert f"files are in {tmp_path / 'figures'}" in result.stdout
    assert list((tmp_path / "figures").glob("*.svg"))
    assert "\x1b" not in result.stdout  # no terminal, no colour
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) < 90


def test_every_number_of_the_story(tmp_path):
    record = run_json("demo", "--story", "--output", str(tmp_path))
    overlooked, hundred, training, several, counts = (
        {row["rule"]: row["number"] for row in scene["rows"]} for scene in record["scenes"]
    )
    assert overlooked["without any data"] > overlooked["with one count"] > overlooked["with a hundred"] > 0.7
    assert list(hundred.values()) == sorted(hundred.values(), reverse=True)
    assert hundred["basic"] == pytest.approx(10)
    assert hundred["optimal for ε = 0.1"] == pytest.approx(4.7746, abs=1e-4)
    assert list(training.values()) == sorted(training.values(), reverse=True)
    assert training["exact"] == pytest.approx(2.381597, abs=1e-6)
    assert several["(0.5, 1e-3) alone"] is None
    assert several["both"] < several["(1, 1e-6) alone"]
    assert list(counts.values()) == sorted(counts.values())
    assert counts["basic filter"] == 100


def test_the_rule_that_says_nothing_says_nothing(tmp_path):
    """In the scene of several guarantees the first alone allows no ε at that δ."""
    alone = {"schema_version": 1, "type": "approximate_dp", "epsilon": 0.5, "delta": 1e-3}
    assert (Event.from_dict(alone) * 10).infinite_mass > 1e-4


def test_a_narrow_terminal_and_no_colour(tmp_path):
    result = run("demo", "--output", str(tmp_path), env={"COLUMNS": "60", "NO_COLOR": "1"})
    assert result.exit_code == 0
    told = result.stdout.partition("files are in")[0]
    assert max(len(line) for line in told.splitlines()) <= 60
