"""`sitr doctor`: what it finds, and that it notices a sick accountant."""

import json

import psycopg
import pytest

import sitr
from sitr.accounting import Bracket, Event
from sitr.cli import doctor
from sitr.tables import conformance
from tests.cli.helpers import run, run_json
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared


def test_a_healthy_installation():
    result = run("doctor")
    assert result.exit_code == 0
    assert f"sitr        {sitr.__version__}" in result.stdout
    assert "numpy" in result.stdout
    assert "sqlalchemy" in result.stdout
    assert "Accountant self-test passed." in result.stdout
    assert "WRONG" not in result.stdout


def test_json():
    record = run_json("doctor")
    assert record["healthy"] is True
    assert record["versions"]["sitr"] == sitr.__version__
    assert {"matplotlib", "psycopg", "duckdb", "pyspark", "torch"} == set(record["optional"])
    assert len(record["self_test"]) == len(doctor.CASES)
    assert record["engines"]["duckdb"]["status"] == "passed"
    assert record["engines"]["duckdb"]["failed"] == []
    assert {name: one["status"] for name, one in record["engines"].items() if name != "duckdb"} == {
        "postgresql": "not tested",
        "spark": "not tested",
    }


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("bracket", [(1.0, 1.0), (0.0, 100.0)], ids=["wrong", "wide"])
def test_a_wrong_or_wide_answer_is_found(monkeypatch, bracket, form):
    monkeypatch.setattr(Event, "epsilon", lambda self, delta: Bracket(*bracket, "made up"))
    result = run("doctor", *form)
    assert result.exit_code == 1
    if form:
        assert json.loads(result.stdout)["healthy"] is False
    else:
        assert "WRONG" in result.stdout
        assert "do not trust" in result.stdout


def test_an_accountant_that_falls_over_is_found(monkeypatch):
    def fall(self, delta):
        raise ZeroDivisionError

    monkeypatch.setattr(Event, "epsilon", fall)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["self_test"][0]["error"] == "ZeroDivisionError"


def test_an_engine_that_fails_is_found(monkeypatch):
    wrong = conformance.Report("duckdb", "0.1", {"sums": "passed", "NaN is missing": "wrong"})
    monkeypatch.setattr(conformance, "report", lambda source: wrong)
    result = run("doctor")
    assert result.exit_code == 1
    assert "duckdb 0.1: failed" in result.stdout
    assert "WRONG NaN is missing" in result.stdout
    assert "Accountant self-test passed." in result.stdout


def test_a_server_that_cannot_be_reached_is_found():
    result = run("doctor", "--json", "--postgresql", "postgresql://nobody@/none?host=/nowhere")
    assert result.exit_code == 1
    found = json.loads(result.stdout)["engines"]["postgresql"]
    assert found == {"version": None, "status": "does not run", "failed": ["InvalidDeclaration"]}


def test_a_server_is_tested(tmp_path):
    """By a role that may read nothing there and make nothing that stays."""
    owner = stores.fresh("postgresql", tmp_path)()
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("CREATE ROLE who_looks LOGIN")
    found = run_json("doctor", "--postgresql", shared().url(database_of(owner), "who_looks"))["engines"]["postgresql"]
    assert (found["status"], found["failed"]) == ("passed", [])


def test_an_absent_engine_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "DRIVERS", doctor.DRIVERS | {"spark": "no_such_package"})
    assert "spark: absent" in run("doctor").stdout


def test_what_is_absent_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no_such_package": "for this test"})
    assert "absent (for this test)" in run("doctor").stdout


@pytest.mark.parametrize(
    ("lower", "upper", "holds"),
    [(2.3815969, 2.381597, True), (2.3815965, 2.3815966, True), (2.381598, 2.381599, False), (2.38159, 2.38160, False)],
)
def test_a_bracket_has_to_be_narrow_and_to_hold_the_known_digits(lower, upper, holds):
    assert doctor._holds(Bracket(lower, upper, ""), "2.381597") is holds
