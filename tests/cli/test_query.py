"""`sitr query`: nothing is spent before someone says so, and what is spent is in the book."""

import csv
import io
import itertools
import json
import re
import resource
import sys
import xml.etree.ElementTree

import click
import pytest

from sitr.cli import payment
from sitr.errors import Cancelled, EngineFailed, LedgerUnavailable
from sitr.ledger import Ledger
from sitr.session.database import ledger_url
from sitr.tables import Declaration
from sitr.tables.source import Source
from tests.cli.clinics import COUNT, make_clinic, read_sql
from tests.cli.helpers import run, run_json

AMINA = ("--analyst", "amina")


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    read_sql(monkeypatch)
    path = make_clinic(tmp_path)
    assert run("budget", "begin", path).exit_code == 0
    return path


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(payment, "on_terminal", lambda: True)


def left(clinic):
    url = ledger_url(Declaration.read(clinic))
    return run_json("budget", "show", "clinic", "--ledger", url)["remaining"]["value"]


def test_an_answer(clinic):
    result = run("query", clinic, COUNT, "--epsilon", "0.5", "--yes", *AMINA)
    assert result.exit_code == 0
    assert "95 % interval" in result.stdout
    assert "north" in result.stdout
    assert (
        "It cost ε = 0.500; 50.0 % of the budget clinic is left: about 1 more like this, at ε = 0.5; charged in entry"
        in result.stderr
    )
    assert "charged" not in result.stdout
    assert left(clinic) == pytest.approx(0.5)


def test_without_a_price_it_shows_some_and_spends_nothing(clinic):
    result = run("query", clinic, COUNT, "--yes", *AMINA)
    assert result.exit_code == 2
    assert "Say how much to spend: --epsilon, --rho or --error." in result.stderr
    assert "left after" in result.stderr
    assert left(clinic) == 1.0


def test_it_spends_what_an_error_takes(clinic):
    record = run_json("query", clinic, COUNT, "--error", "50", "--yes", *AMINA)
    assert left(clinic) == pytest.approx(1 - record["epsilon"])
    assert record["epsilon"] == run_json("explain", clinic, COUNT, "--error", "50", *AMINA)["target"]["epsilon"]


def test_what_is_known_to_be_useless_is_not_paid_for_by_mistake(clinic):
    misspelt = "SELECT COUNT(*) AS n FROM visits WHERE region = 'nroth'"
    result = run("query", clinic, misspelt, "--epsilon", "0.1", "--yes", *AMINA)
    assert result.exit_code != 0
    assert "Did you mean 'north'?" in result.stderr
    assert "add --anyway to spend all the same" in result.stderr
    assert left(clinic) == 1.0
    result = run("query", clinic, misspelt, "--epsilon", "0.1", "--yes", "--anyway", *AMINA)
    assert result.exit_code == 0
    assert "Did you mean 'north'?" in result.stderr
    assert left(clinic) == pytest.approx(0.9)


def test_what_may_be_useless_is_a_remark(clinic):
    some = "SELECT COUNT(*) AS n FROM visits WHERE region IN ('nroth', 'south')"
    result = run("query", clinic, some, "--epsilon", "0.1", "--yes", *AMINA)
    assert result.exit_code == 0
    assert result.stderr.count("Did you mean 'north'?") == 1


def test_without_a_terminal_it_needs_yes(clinic):
    result = run("query", clinic, COUNT, "--epsilon", "0.5", *AMINA, input="y\n")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert left(clinic) == 1.0


@pytest.mark.usefixtures("terminal")
def test_the_bill_is_shown_and_nothing_is_spent_before_yes(clinic):
    result = run("query", clinic, COUNT, "--epsilon", "0.5", *AMINA, input="\n")
    assert result.exit_code == 1
    assert "This would cost ε = 0.500" in result.stderr
    assert "Spend ε = 0.5? 1.00 of ε = 1 (clinic) left [y/N]:" in result.stderr
    assert "Nothing was spent." in result.stderr
    assert result.stdout == ""
    assert left(clinic) == 1.0
    result = run("query", clinic, COUNT, "--epsilon", "0.5", *AMINA, input="y\n")
    assert result.exit_code == 0
    assert "south" in result.stdout
    assert left(clinic) == pytest.approx(0.5)


@pytest.mark.usefixtures("terminal")
def test_the_bill_says_that_the_same_was_answered_before(clinic):
    first = run("query", clinic, COUNT, "--epsilon", "0.1", *AMINA, input="y\n")
    assert "answered before" not in first.stderr
    again = run("query", clinic, COUNT, "--epsilon", "0.1", *AMINA, input="n\n")
    operation = re.search(r"The same was answered before: --operation (\S+) returns that answer", again.stderr)[1]
    kept = run("query", clinic, COUNT, "--epsilon", "0.1", *AMINA, "--operation", operation)
    assert "nothing was charged" in kept.stderr


@pytest.mark.usefixtures("terminal")
def test_the_bill_names_the_share_and_what_is_priced_otherwise(clinic):
    result = run("query", clinic, COUNT, "--epsilon", "0.1", "--analyst", "badr", input="n\n")
    assert "1.00 of ε = 1 (clinic); 0.250 of ε = 0.25 (clinic/analyst/badr) left" in result.stderr
    result = run("query", clinic, COUNT, "--epsilon", "0.9", "--analyst", "badr", input="y\n")
    assert result.exit_code == 3
    assert "does not fit into what is left, 100 % of ε = 0.25" in result.stderr
    assert "Do: what is left pays for ε = 0.25 of this question." in result.stderr
    assert left(clinic) == 1.0


@pytest.mark.usefixtures("terminal")
def test_a_price_in_rho(clinic, tmp_path):
    text = (tmp_path / "clinic.toml").read_text(encoding="utf-8")
    text = text.replace("epsilon = 1.0", "rho = 0.5").replace("{ epsilon = ", "{ rho = ")
    lines = [line for line in text.splitlines() if not line.startswith("id =")]
    (tmp_path / "rho.toml").write_text("\n".join(lines).replace("book.db", "rho.db"), encoding="utf-8")
    run("budget", "begin", str(tmp_path / "rho.toml"))
    result = run("query", str(tmp_path / "rho.toml"), COUNT, "--rho", "0.1", *AMINA, input="y\n")
    assert result.exit_code == 0
    assert "Spend ρ = 0.1? 0.500 of ρ = 0.5 (clinic) left" in result.stderr
    record = run_json("query", str(tmp_path / "rho.toml"), COUNT, "--rho", "0.1", *AMINA, "--yes")
    kept = run_json("ledger", "show", str(tmp_path / "rho.toml"))["releases"]
    for told in (record, *kept):  # a ρ has no δ of its own, whatever is declared
        assert (told["epsilon"], told["delta"], told["rho"]) == (None, 0.0, 0.1)
    assert "; ρ = 0.1; " in run("budget", "show", "clinic", "--ledger", str(tmp_path / "rho.toml")).stdout


@pytest.mark.usefixtures("terminal")
def test_an_operation_is_charged_once_and_asked_about_once(clinic):
    asked = ("query", clinic, COUNT, "--epsilon", "0.5", "--operation", "q-1", *AMINA)
    first = run(*asked, input="y\n")
    again = run(*asked)
    assert again.exit_code == 0
    assert again.stdout == first.stdout
    assert "Spend" not in again.stderr
    assert "nothing was charged; operation q-1" in again.stderr
    assert "the kept answer" not in first.stderr
    assert left(clinic) == pytest.approx(0.5)
    other = run("query", clinic, COUNT, "--epsilon", "0.1", "--operation", "q-1", *AMINA)
    assert other.exit_code == 2
    assert "OperationTaken" in other.stderr


def test_json(clinic):
    record = run_json("query", clinic, COUNT, "--epsilon", "0.5", "--yes", "--operation", "q-1", *AMINA)
    assert record["columns"]["region"] == ["north", "south", "=cmd()"]
    assert set(record["columns"]) == {"region", "n", "n_low", "n_high"}
    assert record["operation"] == "q-1"
    assert record["kept"] is False
    assert record["event"]["type"] == "discrete_laplace"


def test_a_picture_is_drawn_into_a_new_file(clinic, tmp_path):
    options = ("--epsilon", "0.5", "--yes", "--operation", "q-1", *AMINA)
    path = tmp_path / "answer.svg"
    result = run("query", clinic, COUNT, *options, "--picture", str(path))
    assert "95 % interval" in result.stdout
    assert result.stdout.endswith(f"{path}\n")
    assert xml.etree.ElementTree.parse(path).getroot().tag.endswith("svg")
    other = tmp_path / "answer.png"
    record = run_json("query", clinic, COUNT, *options, "--picture", str(other))
    assert record["picture"] == str(other)
    assert other.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_made_is_refused_before_anything_is_spent(clinic, tmp_path, monkeypatch):
    options = ("--epsilon", "0.5", "--yes", *AMINA)
    taken = tmp_path / "taken.svg"
    taken.write_text("as it was")
    for name, said in (("x.gif", "format='gif'"), ("none/x.svg", "Nothing was spent"), ("taken.svg", "there already")):
        result = run("query", clinic, COUNT, *options, "--picture", str(tmp_path / name))
        assert result.exit_code != 0
        assert said in result.stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "sitr[plot]" in run("query", clinic, COUNT, *options, "--picture", str(tmp_path / "x.svg")).stderr
    assert taken.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["taken.svg"]
    assert left(clinic) == 1.0


FARTHEST = "SELECT DATE_TRUNC('year', day) AS year, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('year', day)"


def test_an_answer_that_cannot_be_drawn_is_told_all_the_same(tmp_path):
    """Of years to 9999 matplotlib makes no axis: what was paid for is in the table, and in the file."""
    path = make_clinic(tmp_path)
    declaration = tmp_path / "clinic.toml"
    text = declaration.read_text(encoding="utf-8").replace("2026-01-01, 2026-12-31", "9900-01-01, 9999-12-31")
    declaration.write_text(text, encoding="utf-8")
    run("budget", "begin", path)
    files = ("--csv", str(tmp_path / "answer.csv"), "--picture", str(tmp_path / "answer.svg"))
    result = run("query", path, FARTHEST, "--epsilon", "0.5", "--yes", "--operation", "q-1", *files, *AMINA)
    assert result.exit_code == 0
    assert "No picture was made: it cannot be drawn (" in result.stderr
    assert "charged in entry" in result.stderr
    assert "operation q-1" in result.stderr
    assert "9999-01-01" in (tmp_path / "answer.csv").read_text(encoding="utf-8")
    assert not (tmp_path / "answer.svg").exists()


@pytest.mark.parametrize("place", ["sitr.query.answer.Answer.plot", "sitr.pictures.Drawing.write"])
def test_whatever_fails_while_drawing_costs_no_answer(clinic, tmp_path, monkeypatch, place):
    def fail(*_, **__):
        raise RuntimeError("a sign without a glyph")

    monkeypatch.setattr(place, fail)
    files = ("--csv", str(tmp_path / "answer.csv"), "--picture", str(tmp_path / "answer.png"))
    asked = ("query", clinic, COUNT, "--epsilon", "0.5", "--yes", "--operation", "q-1", *AMINA)
    result = run(*asked, *files)
    assert result.exit_code == 0
    assert "No picture was made: it cannot be drawn (RuntimeError)." in result.stderr
    assert result.stdout == f"{tmp_path / 'answer.csv'}\n"
    assert "north" in (tmp_path / "answer.csv").read_text(encoding="utf-8")
    assert "operation q-1" in result.stderr
    assert not (tmp_path / "answer.png").exists()
    assert "picture" not in run_json(*asked, "--picture", str(tmp_path / "again.png"))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_picture_that_cannot_be_written_takes_no_table_with_it(clinic, tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("sitr.pictures.Drawing.write", fail)
    files = ("--csv", str(tmp_path / "answer.csv"), "--picture", str(tmp_path / "answer.png"))
    result = run("query", clinic, COUNT, "--epsilon", "0.5", "--yes", "--operation", "q-1", *files, *AMINA)
    assert result.exit_code != 0
    assert "north" in (tmp_path / "answer.csv").read_text(encoding="utf-8")
    assert not (tmp_path / "answer.png").exists()
    if isinstance(error, OSError):
        assert "No space left on device" in result.stderr
        assert "--operation q-1" in result.stderr


@pytest.mark.parametrize(("mode", "content"), [("x", "n" * 5000), ("xb", b"n" * 5000)])
def test_a_full_disk_does_not_hide_where_the_answer_is(tmp_path, mode, content):
    """What could not be written is written again when the file is closed, and fails again."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with (
            pytest.raises(click.ClickException, match="ask again for nothing, with --operation q-1"),
            payment.new_file(tmp_path / "answer", mode) as file,
            payment.writing(file, "q-1"),
        ):
            file.write(content)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "answer").exists()


def test_one_price_is_said(clinic):
    for price in ("--epsilon 1 --error 5", "--rho 1 --error 5%", "--epsilon 1 --rho 1"):
        result = run("query", clinic, COUNT, *price.split(), "--yes", *AMINA)
        assert result.exit_code == 2
        assert "Say one of --epsilon, --rho and --error." in result.stderr
    assert left(clinic) == 1.0


def test_an_answer_without_a_row_is_told_without_a_picture(clinic, tmp_path):
    text = f"{COUNT} HAVING n > 1000000"
    path = tmp_path / "answer.svg"
    result = run("query", clinic, text, "--epsilon", "0.5", "--yes", "--picture", str(path), *AMINA)
    assert result.exit_code == 0
    assert "No picture was made: there is no row to draw." in result.stderr
    assert "charged in entry" in result.stderr
    assert not path.exists()


def test_csv_to_a_file_and_to_standard_output(clinic, tmp_path):
    options = ("--epsilon", "0.5", "--yes", "--operation", "q-1", *AMINA)
    path = tmp_path / "answer.csv"
    result = run("query", clinic, COUNT, *options, "--csv", str(path))
    assert result.stdout == f"{path}\n"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert [row["region"] for row in rows] == ["north", "south", "'=cmd()"]
    assert run("query", clinic, COUNT, *options, "--csv", "-").stdout == path.read_text(encoding="utf-8")
    record = json.loads(run("query", clinic, COUNT, *options, "--csv", str(tmp_path / "b.csv"), "--json").stdout)
    assert record["file"] == str(tmp_path / "b.csv")
    assert run("query", clinic, COUNT, *options, "--csv", "-", "--json").exit_code == 2


def test_a_file_that_cannot_be_written_costs_nothing(clinic, tmp_path):
    path = tmp_path / "answer.csv"
    path.write_text("mine", encoding="utf-8")
    for where in (path, tmp_path / "none" / "answer.csv"):
        result = run("query", clinic, COUNT, "--epsilon", "0.5", "--yes", "--csv", str(where), *AMINA)
        assert result.exit_code == 1
        assert "nothing" in result.stderr.lower()
    assert path.read_text(encoding="utf-8") == "mine"
    assert left(clinic) == 1.0


@pytest.mark.parametrize(("error", "code"), [(EngineFailed("no."), 5), (Cancelled("stopped."), 130)])
def test_an_engine_that_fails_leaves_no_file_and_stays_charged(clinic, tmp_path, monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Source, "run", fail)
    path = tmp_path / "answer.csv"
    result = run("query", clinic, COUNT, "--epsilon", "0.5", "--yes", "--csv", str(path), *AMINA)
    assert result.exit_code == code
    assert not path.exists()
    assert left(clinic) == pytest.approx(0.5)


def test_a_budget_refuses(clinic):
    result = run("query", clinic, COUNT, "--epsilon", "1.5", "--yes", *AMINA)
    assert result.exit_code == 3
    assert "ε: 1.50 requested, 1.00 left, short by 0.500." in result.stderr
    assert "Do: what is left pays for ε = 1 of this question." in result.stderr
    assert result.stdout == ""


def test_what_is_not_allowed(clinic):
    result = run("query", clinic, "SELECT diagnosis FROM visits", "--epsilon", "0.5", "--yes", *AMINA)
    assert result.exit_code == 4
    assert "NotAllowed" in result.stderr
    assert left(clinic) == 1.0


def test_a_book_that_is_not_begun(tmp_path, monkeypatch):
    read_sql(monkeypatch)
    path = make_clinic(tmp_path)
    result = run("query", path, COUNT, "--epsilon", "0.5", "--yes", *AMINA)
    assert result.exit_code == 2
    assert f"Do: sitr budget begin {path} makes it." in result.stderr
    assert "memory://" not in result.stderr


def test_what_was_spent_and_is_left_is_in_the_record(clinic):
    asked = ("query", clinic, COUNT, "--epsilon", "0.1", "--yes", "--operation", "a", "--analyst", "badr")
    record = run_json(*asked)
    assert (record["epsilon"], record["delta"], record["rho"]) == (0.1, 0.0, None)
    left = {name: (part["share"], part["delta_share"]) for name, part in record["remaining"].items()}
    assert left == {"clinic": (pytest.approx(0.9), None), "clinic/analyst/badr": (pytest.approx(0.6), None)}
    again = run_json(*asked)
    assert (again["epsilon"], again["remaining"]) == (0.0, record["remaining"])
    told = run(*asked).stderr
    assert "It cost" not in told
    assert "60.0 % of the budget clinic/analyst/badr is left; the kept answer" in told


def test_an_answer_is_told_where_the_ledger_is_lost_after_it(clinic, monkeypatch):
    before, calls = Ledger.left_for, itertools.count()

    def once(self, *datasets, **holder):
        if next(calls):
            raise LedgerUnavailable("gone.")
        return before(self, *datasets, **holder)

    monkeypatch.setattr(Ledger, "left_for", once)
    result = run("query", clinic, COUNT, "--epsilon", "0.5", "--yes", *AMINA)
    assert result.exit_code == 0
    assert "north" in result.stdout
    assert "is left" not in result.stderr


def test_a_purpose_without_a_budget_is_told(clinic):
    asked = ("query", clinic, COUNT, "--epsilon", "0.1", "--yes", *AMINA)
    told = run(*asked, "--purpose", "adit")
    assert told.exit_code == 0
    assert "No budget is declared for the purpose 'adit'. Did you mean 'audit'?" in told.stderr
    assert "for the purpose 'teaching'. Purposes: audit." in run(*asked, "--purpose", "teaching").stderr
    assert "for the purpose" not in run(*asked, "--purpose", "audit").stderr


def test_any_purpose_will_do_where_none_has_a_budget(tmp_path):
    path = make_clinic(tmp_path)
    declaration = tmp_path / "clinic.toml"
    declaration.write_text(declaration.read_text().replace("purposes.audit = { epsilon = 0.75 }\n", ""))
    run("budget", "begin", path)
    result = run("query", path, COUNT, "--epsilon", "0.1", "--yes", "--purpose", "audit", *AMINA)
    assert "for the purpose" not in result.stderr


def test_a_purpose_has_its_share(clinic, monkeypatch):
    asked = ("query", clinic, "-", "--epsilon", "0.5", "--yes", "--purpose", "audit", *AMINA)
    assert run(*asked, input=COUNT).exit_code == 0
    assert run(*asked, input=COUNT).exit_code == 3
    monkeypatch.setattr(payment, "on_terminal", lambda: True)
    result = run("query", clinic, COUNT, "--epsilon", "0.1", "--purpose", "audit", *AMINA, input="n\n")
    assert "0.500 of ε = 1 (clinic); 0.250 of ε = 0.75 (clinic/purpose/audit) left" in result.stderr


def test_a_book_that_was_rolled_back_is_refused(clinic, tmp_path):
    book, anchor = tmp_path / "book.db", str(tmp_path / "anchor")
    run("ledger", "anchor", anchor, "--ledger", str(book))
    old = book.read_bytes()
    paid = ("query", clinic, COUNT, "--epsilon", "0.25", "--yes", "--anchor", anchor, *AMINA)
    result = run(*paid)
    assert result.exit_code == 0, result.stderr
    book.write_bytes(old)
    for extra in tmp_path.glob("book.db-*"):
        extra.unlink()
    for command in (paid, ("explain", *paid[1:5], *paid[6:]), ("tables", clinic, "--anchor", anchor)):
        result = run(*command)
        assert result.exit_code != 0
        assert "is behind its anchor" in result.stderr
