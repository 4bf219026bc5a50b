"""`sitr demo`: the story holds together, its numbers are the library's, and the figures are left behind."""

import pytest

from sitr import report
from sitr.accounting import Event
from tests.cli.helpers import run, run_json


@pytest.fixture(autouse=True)
def _one_figure(monkeypatch):
    """Draw only the first figure; tests/report draws them all."""
    for name in list(report.FIGURES)[1:]:
        monkeypatch.delitem(report.FIGURES, name)


def test_the_story_is_told_and_says_where_the_figures_are(tmp_path):
    result = run("demo", "--output", str(tmp_path / "figures"))
    assert result.exit_code == 0
    assert "A hundred releases" in result.stdout
    assert "DP-SGD" in result.stdout
    assert f"files are in {tmp_path / 'figures'}" in result.stdout
    assert list((tmp_path / "figures").glob("*.svg"))
    assert "\x1b" not in result.stdout  # no terminal, no colour
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) < 90


def test_every_number_of_the_story(tmp_path):
    record = run_json("demo", "--output", str(tmp_path))
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
