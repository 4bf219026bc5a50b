"""`sitr init`: a draft by the schema alone, which cannot be opened before it is filled in."""

import duckdb
import pytest

from sitr.cli import init
from sitr.errors import InvalidDeclaration
from sitr.tables import Declaration
from tests.cli.clinics import SECRETS, make_clinic
from tests.cli.helpers import run, run_json


@pytest.fixture
def database(tmp_path):
    make_clinic(tmp_path)
    return str(tmp_path / "clinic.duckdb")


def test_a_draft_of_a_database(tmp_path, database):
    path = tmp_path / "draft.toml"
    result = run("init", str(path), "--from", database, "--name", "clinic")
    assert result.exit_code == 0
    assert "to fill in  tables.visits.unit\n" in result.stdout
    assert "to fill in  tables.visits.max_rows_per_unit, unless each row is a unit\n" in result.stdout
    text = path.read_text(encoding="utf-8")
    assert 'name = "clinic"' in text
    assert 'address = "clinic.duckdb"' in text
    assert 'cost = { type = "decimal(8, 2)" }' in text
    assert not any(secret in text + result.output for secret in SECRETS)
    with pytest.raises(InvalidDeclaration, match=r"tables\.codes: unit is not declared"):
        Declaration.read(path)


def test_what_is_there_is_not_overwritten(tmp_path, database):
    path = tmp_path / "clinic.toml"
    before = path.read_text(encoding="utf-8")
    refused = run("init", str(path), "--from", database)
    assert refused.exit_code == 2
    assert "--force overwrites it" in refused.stderr
    assert path.read_text(encoding="utf-8") == before
    assert run("init", str(path), "--from", database, "--force").exit_code == 0
    assert path.read_text(encoding="utf-8") != before


def test_a_declaration_in_use_is_never_overwritten(tmp_path, database):
    path = tmp_path / "clinic.toml"
    run("budget", "begin", str(path))
    before = path.read_text(encoding="utf-8")
    refused = run("init", str(path), "--from", database, "--force")
    assert refused.exit_code == 2
    assert "would forget what was spent" in refused.stderr
    assert path.read_text(encoding="utf-8") == before


def test_what_cannot_be_drafted_leaves_what_was_there(tmp_path):
    path = tmp_path / "clinic.toml"
    path.write_text("mine", encoding="utf-8")
    result = run("init", str(path), "--from", str(tmp_path / "none.duckdb"), "--force")
    assert result.exit_code == 2
    assert "there is no file" in result.stderr
    assert path.read_text(encoding="utf-8") == "mine"


def test_json(tmp_path, database):
    record = run_json("init", str(tmp_path / "draft.toml"), "--from", database)
    assert record["tables"]["codes"] == {"code": "string", "chapter": "int8"}
    assert "budgets.draft.epsilon" in record["to_fill_in"]


def test_what_is_left_out_is_named(tmp_path):
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (patient INTEGER)")
        connection.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM visits")
    result = run("init", str(tmp_path / "a.toml"), "--from", str(tmp_path / "c.duckdb"))
    assert result.exit_code == 0
    assert "left out    counted: the draft says why" in result.stdout
    record = run_json("init", str(tmp_path / "b.toml"), "--from", str(tmp_path / "c.duckdb"))
    assert list(record["tables"]) == ["visits"]
    assert record["left_out"]["counted"].startswith("counted is a view that computes something")


def test_an_example_where_nothing_is_named(tmp_path):
    record = run_json("init", str(tmp_path / "clinic.toml"))
    assert list(record["tables"]) == ["example"]
    assert run("init", str(tmp_path / "other.toml"), "--types", "a=string").exit_code == 2


def test_a_text_file_needs_types(tmp_path):
    (tmp_path / "visits.csv").write_text("patient,cost\nAisha,47\n", encoding="utf-8")
    without = run("init", str(tmp_path / "a.toml"), "--from", str(tmp_path / "visits.csv"))
    assert without.exit_code == 2
    assert "no type for patient, cost" in without.stderr
    assert "Do: --types 'patient=?,cost=?', with a type for each ?; the types are boolean" in without.stderr
    half = run("init", str(tmp_path / "a.toml"), "--from", str(tmp_path / "visits.csv"), "--types", "patient=string")
    assert "--types 'patient=string,cost=?', with" in half.stderr
    types = "patient=string, cost=decimal(12, 2)"
    record = run_json("init", str(tmp_path / "a.toml"), "--from", str(tmp_path / "visits.csv"), "--types", types)
    assert record["tables"] == {"visits": {"patient": "string", "cost": "decimal(12, 2)"}}
    text = (tmp_path / "a.toml").read_text(encoding="utf-8")
    assert 'source = "visits.csv"' in text
    assert "Aisha" not in without.output + text


def test_types_are_asked_for_in_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(init, "on_terminal", lambda: True)
    (tmp_path / "visits.csv").write_text("patient,cost\nAisha,47\n", encoding="utf-8")
    where = ("--from", str(tmp_path / "visits.csv"))
    result = run("init", str(tmp_path / "a.toml"), *where, input="int\nmoney\nfloat\n")
    assert result.exit_code == 0
    assert "cost: 'money' is no type" in result.stderr
    text = (tmp_path / "a.toml").read_text(encoding="utf-8")
    assert 'patient = { type = "integer" }' in text
    assert 'cost = { type = "float" }' in text
    assert "Aisha" not in result.output


@pytest.mark.parametrize("types", ["patient", "=string", "a=string,a=string", ""])
def test_types_are_pairs(tmp_path, types):
    result = run("init", str(tmp_path / "a.toml"), "--from", "visits.csv", "--types", types)
    assert result.exit_code == 2
    assert "--types are pairs" in result.stderr


def test_a_backend_that_fails_has_its_exit_code(tmp_path):
    (tmp_path / "secret.duckdb").write_text("Aisha,47", encoding="utf-8")
    result = run("init", str(tmp_path / "a.toml"), "--from", str(tmp_path / "secret.duckdb"))
    assert result.exit_code == 5
    assert "Aisha" not in result.output
