"""`sitr audit`: the table, the JSON, the progress bar, and that it notices a broken mechanism."""

import json

import pytest

from sitr import mechanisms
from sitr.accounting import DiscreteLaplace
from sitr.cli import audit
from sitr.mechanisms import laplace
from tests.cli.helpers import run

FEW = ("--samples", "400")


@pytest.fixture
def _one_mechanism(monkeypatch):
    """Audit only the first mechanism of the catalogue."""
    first = audit.catalogue()[:1]
    monkeypatch.setattr(audit, "catalogue", lambda: first)


@pytest.fixture
def _broken(monkeypatch):
    """Half the noise that the event states: at 2,000 samples it is tens of deviations beyond the claim."""
    mechanism = laplace(scale=0.25, sensitivity=1, integers=True)
    mechanism.event = DiscreteLaplace(scale=1.0)
    monkeypatch.setattr(audit, "catalogue", lambda: [audit.Case("broken", mechanism, 0, 1)])


@pytest.mark.statistical
def test_every_mechanism_is_audited(monkeypatch):
    """The error is such that a false accusation has probability under 1e-9."""
    monkeypatch.setattr(audit, "ERROR", 1e-9)
    result = run("audit", *FEW, "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["samples"] == 400
    assert record["violations"] == 0
    assert [one["mechanism"] for one in record["audits"]] == [case.name for case in audit.catalogue()]
    for one in record["audits"]:
        assert one["verdict"].startswith("no violation found with 400 samples")
        assert one["epsilon_lower"] <= one["claimed_epsilon"]
        assert one["witness"]["words"]
        assert one["claimed"]["schema_version"] == 1


def test_the_catalogue_has_every_kind_of_mechanism():
    names = " ".join(case.name for case in audit.catalogue())
    makers = {name for name in mechanisms.__all__ if name.islower()}
    assert makers
    assert {name for name in makers if name not in names} == set()


@pytest.mark.statistical
@pytest.mark.usefixtures("_broken")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_broken_mechanism_sets_the_exit_code(form):
    result = run("audit", "--samples", "2000", *form)
    assert result.exit_code == 1
    assert "certified" in result.stdout
    if form:
        assert json.loads(result.stdout)["violations"] == 1


@pytest.mark.usefixtures("_one_mechanism")
def test_the_table_says_what_was_certified_and_what_would_escape(monkeypatch):
    monkeypatch.setattr(audit, "ERROR", 1e-9)
    result = run("audit", *FEW, env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("mechanism", "claimed", "certified", "event", "verdict", "laplace, integers", "no violation found"):
        assert word in result.stdout
    assert "400 samples of each of two inputs" in result.stdout
    assert "escape" in result.stdout
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


@pytest.mark.usefixtures("_one_mechanism")
def test_progress_goes_to_a_terminal_and_never_to_standard_output(monkeypatch):
    monkeypatch.setattr(audit, "ERROR", 1e-9)
    result = run("audit", *FEW, "--json", env={"FORCE_COLOR": "1"})
    assert "laplace" in result.stderr
    assert json.loads(result.stdout)["samples"] == 400


@pytest.mark.parametrize("samples", ["99", "0", "many"])
def test_a_bad_number_of_samples_is_a_usage_error(samples):
    result = run("audit", "--samples", samples)
    assert result.exit_code == 2
    assert "--samples" in result.stderr
