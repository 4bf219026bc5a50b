"""`sitr figures`: what is written, what is said where."""

import pytest

from sitr import report
from tests.cli.helpers import run, run_json


@pytest.fixture
def two_figures(monkeypatch):
    """Draw only the first two figures; tests/report draws them all."""
    for name in list(report.FIGURES)[2:]:
        monkeypatch.delitem(report.FIGURES, name)


@pytest.mark.usefixtures("two_figures")
def test_figures_are_written_and_listed_on_standard_output(tmp_path):
    folder = tmp_path / "new" / "folder"
    result = run("figures", "--output", str(folder))
    assert result.exit_code == 0
    assert sorted(result.stdout.splitlines()) == sorted(str(path) for path in folder.iterdir())
    assert {path.suffix for path in folder.iterdir()} >= {".svg", ".png", ".csv"}
    assert result.stderr == ""


@pytest.mark.usefixtures("two_figures")
def test_json_and_one_format(tmp_path):
    record = run_json("figures", "--output", str(tmp_path), "--format", "svg")
    assert record["folder"] == str(tmp_path)
    assert sorted(record["files"]) == sorted(path.name for path in tmp_path.iterdir())
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.usefixtures("two_figures")
def test_progress_goes_to_a_terminal_and_never_to_standard_output(tmp_path):
    quiet = run_json("figures", "--output", str(tmp_path), "--format", "svg")
    result = run("figures", "--output", str(tmp_path), "--format", "svg", "--json", env={"FORCE_COLOR": "1"})
    assert next(iter(report.FIGURES)) in result.stderr
    assert "\x1b" not in result.stdout
    assert quiet["files"]


def test_a_folder_is_needed():
    result = run("figures")
    assert result.exit_code == 2
    assert "--output" in result.stderr


def test_an_unknown_format_is_a_usage_error(tmp_path):
    assert run("figures", "--output", str(tmp_path), "--format", "gif").exit_code == 2


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("figures", "--output", str(tmp_path / "file" / "folder"))
    assert result.exit_code == 1
    assert "cannot write to" in result.stderr
    assert "Traceback" not in result.stderr


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = run("figures", "--output", str(tmp_path))
    assert result.exit_code == 5
    assert "pip install 'sitr[plot]'" in result.stderr
