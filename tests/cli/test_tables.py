"""`sitr tables`: what is declared and what is left, and not one value of the data."""

import pytest

from tests.cli.clinics import SECRETS, make_clinic
from tests.cli.helpers import run, run_json


@pytest.fixture
def clinic(tmp_path):
    return make_clinic(tmp_path)


def test_tables_columns_and_budgets(clinic):
    result = run("tables", clinic, env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert "visits: about units named by patient, 4 rows of each at most; about 300 units" in result.stdout
    assert "0 to 500.5" in result.stdout
    assert "2026-01-01 to 2026-12-31" in result.stdout
    assert "north, south, =cmd()" in result.stdout
    assert "codes: public" in result.stdout
    assert "-128 to 127" in result.stdout
    assert "not begun: sitr budget begin" in result.stdout
    assert not any(secret in result.output for secret in SECRETS)


def test_a_narrow_terminal_breaks_no_name_and_no_date(clinic):
    shown = run("tables", clinic, env={"COLUMNS": "80"}).stdout
    table = shown.partition("visits: ")[2].partition("\n")[2].partition("codes: ")[0]
    assert max(map(len, table.splitlines())) <= 80
    for word in ("column", "categories", "diagnosis", "decimal(8, 2)", "2026-12-31", "=cmd()"):
        assert word in table
    whole = run("tables", clinic, env={"COLUMNS": None}).stdout
    assert "ε = 1 for one patient added or removed" in whole


def test_what_is_left(clinic):
    run("budget", "begin", clinic)
    result = run("tables", clinic, env={"COLUMNS": "160"})
    assert "not begun" not in result.stdout
    assert "100 %" in result.stdout


def test_json(clinic):
    record = run_json("tables", clinic)
    visits = record["tables"]["visits"]
    assert visits["unit"] == "patient"
    assert visits["columns"]["cost"] == {
        "type": "decimal(8, 2)",
        "bounds": [0, 500.5],
        "categories": None,
        "nulls": "skip",
    }
    assert visits["columns"]["day"]["bounds"] == ["2026-01-01", "2026-12-31"]
    assert visits["columns"]["region"]["categories"] == ["north", "south", "=cmd()"]
    assert record["tables"]["codes"]["public"] is True
    assert [budget["remaining"] for budget in record["budgets"]] == [None, None, None]
    run("budget", "begin", clinic)
    assert run_json("tables", clinic)["budgets"][0]["remaining"]["value"] == 1.0


def test_paths_rows_and_many_categories(tmp_path):
    path = tmp_path / "paths.toml"
    listed = ", ".join(map(str, range(30)))
    path.write_text(
        f"""sitr = 1
name = "paths"
[tables.stays]
unit = "who"
max_rows_per_unit = 3
[tables.stays.columns]
who = {{ type = "integer" }}
id = {{ type = "integer" }}
[tables.events]
unit = {{ through = "stays", on = {{ stay = "id" }} }}
max_rows_per_unit = 9
[tables.events.columns]
stay = {{ type = "integer" }}
code = {{ type = "integer", categories = [{listed}], nulls = "drop" }}
at = {{ type = "timestamp", bounds = [2026-01-01T00:00:00, 2026-12-31T00:00:00] }}
[tables.answers]
unit = "row"
dataset = "answers"
[tables.answers.columns]
yes = {{ type = "boolean" }}
""",
        encoding="utf-8",
    )
    result = run("tables", str(path), env={"COLUMNS": "160"})
    assert "events: about units that are found through stays, 9 rows of each at most" in result.stdout
    assert "answers: each row is a unit of its own" in result.stdout
    assert "… 22 more" in result.stdout
    assert "2026-01-01 00:00:00 to 2026-12-31 00:00:00" in result.stdout
    assert "missing is dropped" in result.stdout
    record = run_json("tables", str(path))
    assert record["tables"]["events"]["unit"] == {"through": "stays", "on": {"stay": "id"}}
    assert record["tables"]["answers"]["unit"] == "row"


def test_a_draft_is_refused_with_its_place(tmp_path):
    path = tmp_path / "draft.toml"
    run("init", str(path))
    result = run("tables", str(path))
    assert result.exit_code == 2
    assert "InvalidDeclaration [SITR-D01]" in result.stderr
