"""`sitr explain`: the bill before it is paid, and no row is read for it."""

import pytest

from sitr.tables.source import Source
from tests.cli.clinics import COUNT, SECRETS, make_clinic, read_sql
from tests.cli.helpers import run, run_json

AMINA = ("--analyst", "amina")


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a row was read")

    read_sql(monkeypatch)
    monkeypatch.setattr(Source, "run", refuse)
    return make_clinic(tmp_path)


def test_the_bill(clinic):
    result = run("explain", clinic, COUNT, "--epsilon", "0.5", *AMINA)
    assert result.exit_code == 0
    assert "This would cost ε = 0.500" in result.stdout
    assert "n = count()  ± 24" in result.stdout
    assert "budget clinic: 100 % of ε = 1 left, 50.0 % after this." in result.stdout
    assert "SELECT" not in result.stdout
    assert "The ledger is not begun" in result.stderr
    assert not any(secret in result.output for secret in SECRETS)


def test_by_the_book_and_the_share_of_the_analyst(clinic):
    run("budget", "begin", clinic)
    result = run("explain", clinic, COUNT, "--epsilon", "0.5", "--analyst", "badr")
    assert result.stderr == ""
    assert "budget clinic/analyst/badr: 100 % of ε = 0.25 left: this does not fit." in result.stdout
    assert "This does not fit: what is left pays for ε = 0.25 of this question." in result.stdout


def test_what_the_engine_would_be_asked(clinic):
    result = run("explain", clinic, COUNT, "--epsilon", "0.5", "--sql", *AMINA)
    assert "ROW_NUMBER()" in result.stdout
    assert not any(secret in result.output for secret in SECRETS)


def test_what_may_not_be_meant(clinic):
    asked = "SELECT COUNT(*) AS n FROM visits WHERE region = 'nroth'"
    said = "'nroth' is no declared category of region. Did you mean 'north'?"
    assert said in run("explain", clinic, asked, "--epsilon", "0.5", *AMINA).stdout
    mean = "SELECT COUNT(*) AS n, AVG(cost) AS m FROM visits"
    assert 'nulls = "drop"' in run("explain", clinic, mean, "--epsilon", "0.5", *AMINA).stdout


def test_the_help_says_of_which_tables_no_row_is_read(clinic):
    for arguments in (("--help",), ("explain", "--help")):
        told = " ".join(run(*arguments).stdout.split())
        assert "no private row" in told
        assert "nothing is read" not in told
        assert "reads no row" not in told


def test_without_a_price_there_is_a_table_to_choose_from(clinic):
    result = run("explain", clinic, COUNT, *AMINA)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["ε", "n", "left", "after", "fits"]
    assert "choose one, as in --epsilon 0.1." in result.stdout
    record = run_json("explain", clinic, COUNT, *AMINA)
    assert [one["epsilon"] for one in record["prices"]] == [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    assert [one["times"] for one in record["prices"]] == [100, 33, 10, 3, 1, 0]
    assert not any(secret in result.output for secret in SECRETS)


def test_an_error_in_rows_and_in_per_cent(clinic):
    rows = run_json("explain", clinic, COUNT, "--error", "15", *AMINA)
    share = run_json("explain", clinic, COUNT, "--error", "5%", *AMINA)
    assert rows["errors"]["n"] <= 15
    assert share["epsilon"] == rows["epsilon"]  # 300 rows are expected in each of three groups
    assert "300 for n" in share["notes"][0]
    assert run("explain", clinic, COUNT, "--error", "many", *AMINA).exit_code == 2
    assert run("explain", clinic, COUNT, "--error", "200%", *AMINA).exit_code == 2


def test_bounds_in_any_order(clinic):
    options = ("--max-rows-per-group", "1", "--epsilon", "0.5", "--max-groups-per-unit", "2")
    record = run_json("explain", clinic, COUNT, *options, *AMINA)
    assert record["bound"] == {"groups": 2, "rows_per_group": 1}
    fewer = run_json("explain", clinic, COUNT, "--epsilon", "0.5", "--max-rows-per-unit", "2", *AMINA)
    assert fewer["bound"]["rows"] == 2


def test_sql_from_a_file_and_from_standard_input(clinic, tmp_path):
    (tmp_path / "question.sql").write_text(f"{COUNT}\n", encoding="utf-8")
    price = ("--epsilon", "0.5", *AMINA)
    record = run_json("explain", clinic, COUNT, *price)
    assert run_json("explain", clinic, "--file", str(tmp_path / "question.sql"), *price) == record
    assert run_json("explain", clinic, "-", *price, input=COUNT) == record


@pytest.mark.parametrize(
    "arguments", [(), ("SELECT 1", "--file", "other.sql"), ("--file", "none.sql"), ("  ",)], ids=str
)
def test_one_question(clinic, arguments):
    result = run("explain", clinic, *arguments, "--epsilon", "0.5", *AMINA)
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((COUNT, "--epsilon", "1", "--rho", "1", *AMINA), 2, "Say one of --epsilon"),
        ((COUNT, "--epsilon", "1", "--error", "5", *AMINA), 2, "Say one of --epsilon"),
        ((COUNT, "--epsilon", "1", "--analyst", "eve"), 2, "Do: say who asks: --analyst NAME; the owner"),
        (("SELECT diagnosis FROM visits", "--epsilon", "1", *AMINA), 4, "NotAllowed"),
    ],
)
def test_what_is_refused(clinic, arguments, code, message):
    result = run("explain", clinic, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
