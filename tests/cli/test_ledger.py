"""`sitr ledger`: the book is shown, verified, exported and anchored, and what was tampered with is named."""

import csv
import json
import re
import stat
from pathlib import Path

import pytest

from sitr import errors
from sitr.accounting import Laplace
from sitr.cli import ledger as commands
from sitr.ledger import Budget, Ledger
from sitr.ledger.asked import Asked
from tests.cli.books import make_book, tamper
from tests.cli.clinics import COUNT, SECRETS, make_clinic
from tests.cli.helpers import run, run_json
from tests.ledger import cluster, stores
from tests.ledger.old_books import restored


@pytest.fixture
def book(tmp_path):
    return make_book(tmp_path)


def opened(path):
    return Ledger.open(f"sqlite:///{path}", create=False)


def test_the_ledger_is_named_by_a_path_an_address_or_the_environment(book):
    by_path = run_json("ledger", "show", "--ledger", book)
    assert run_json("ledger", "show", "--ledger", f"sqlite:///{book}") == by_path
    assert run_json("ledger", "show", env={"SITR_LEDGER": book}) == by_path
    assert run_json("ledger", "show", book, env={"SITR_LEDGER": "another.db"}) == by_path
    twice = run("ledger", "show", book, "--ledger", book)
    assert (twice.exit_code, "Name the book once" in twice.stderr) == (2, True)


BY_NAME = {
    "show": ("ledger", "show"),
    "verify": ("ledger", "verify"),
    "export": ("ledger", "export"),
    "list": ("budget", "list"),
    "budget": ("budget", "show", "clinic"),
    "create": ("budget", "create", "lab", "--epsilon", "1"),
    "raise": ("budget", "raise", "clinic", "--epsilon", "2", "--reason", "more"),
    "refund": ("ledger", "refund", "q-1", "--reason", "never ran"),
    "note": ("ledger", "note", "clinic", "a list", "--notion", "none", "--reason", "a study"),
    "anchor": ("ledger", "anchor", "{folder}/new.anchor"),
    "backup": ("ledger", "backup", "{folder}/copy.db"),
}


@pytest.mark.parametrize("form", ["toml", "path", "address"])
def test_every_command_takes_a_declaration_a_path_or_an_address(tmp_path, form):
    declaration = make_clinic(tmp_path)
    assert run("budget", "begin", declaration).exit_code == 0
    with opened(tmp_path / "book.db") as book:
        book.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina", operation="q-1")
    path = tmp_path / "book.db"
    name = {"toml": declaration, "path": str(path), "address": f"sqlite:///{path}"}[form]
    for command, parts in BY_NAME.items():
        arguments = [part.format(folder=tmp_path) for part in parts]
        told = run(*arguments, "--ledger", name)
        assert told.exit_code == 0, told.stderr
        if command in ("show", "verify", "export", "list"):
            assert run(*arguments, name).stdout == told.stdout


def test_a_declaration_brings_the_id_and_the_anchor_of_its_book(tmp_path):
    declaration = make_clinic(tmp_path)
    path = tmp_path / "clinic.toml"
    path.write_text(path.read_text().replace('url = "book.db"', 'url = "book.db"\nanchor = "book.anchor"'))
    assert run("budget", "begin", declaration).exit_code == 0
    assert "anchored up to entry" in run("ledger", "verify", declaration).stdout
    marks = (tmp_path / "book.anchor").read_text()
    assert run("budget", "raise", "clinic", "--epsilon", "2", "--reason", "x", "--ledger", declaration).exit_code == 0
    assert len((tmp_path / "book.anchor").read_text()) > len(marks)
    path.write_text(re.sub('id = "[0-9a-f]*"', f'id = "{"0" * 32}"', path.read_text()))
    assert "was asked for" in run("ledger", "show", declaration).stderr


WRONG = {
    "no such.db": "there is no ledger",
    "bok.db": "did you mean {folder}/book.db?",
    "clinic.duckdb": "that is a DuckDB database, not a book",
    "bare.toml": "bare.toml is a declaration without a ledger",
    "clinic.toml": "the ledger of {folder}/clinic.toml is not begun",
    "text.csv": "that is a text file, not a book",
    "missing.toml": "missing.toml cannot be read",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_get_advice_that_fits(tmp_path, name):
    make_clinic(tmp_path)
    make_book(tmp_path)
    text = (tmp_path / "clinic.toml").read_text(encoding="utf-8")
    bare = text.replace('[ledger]\nurl = "book.db"  # beside this file\n', "")
    (tmp_path / "bare.toml").write_text(bare, encoding="utf-8")
    (tmp_path / "text.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for command in (("ledger", "verify"), ("budget", "list")):
        result = run(*command, str(tmp_path / name))
        assert result.exit_code in (1, 2)
        assert WRONG[name].format(folder=tmp_path) in result.stderr
        assert "chmod" not in result.stderr


def test_a_book_or_a_database_is_no_declaration(tmp_path):
    declaration = make_clinic(tmp_path)
    book = make_book(tmp_path)
    assert "as books are, not a declaration" in run("tables", book).stderr
    assert "is a DuckDB database, not a declaration" in run("budget", "begin", str(tmp_path / "clinic.duckdb")).stderr
    assert f"Did you mean {declaration}?" in run("tables", str(tmp_path / "clinc.toml")).stderr
    shown = run("budget", "show", declaration)
    assert shown.exit_code == 2
    assert "That is no budget. Budgets of this declaration: clinic. Name the book by --ledger" in shown.stderr


def test_a_copy_is_made_and_put_back(tmp_path):
    declaration = make_clinic(tmp_path)
    assert run("budget", "begin", declaration).exit_code == 0
    copy = str(tmp_path / "copy.db")
    made = run("ledger", "backup", copy, "--ledger", declaration)
    assert made.exit_code == 0
    assert "are not in it: before anyone goes on with a copy" in made.stdout
    assert run("ledger", "backup", copy, "--ledger", declaration).exit_code == 2
    refused = run("ledger", "restore", copy, "--ledger", declaration)
    assert (refused.exit_code, "there is a book at" in refused.stderr) == (2, True)
    (tmp_path / "book.db").rename(tmp_path / "old.db")
    record = run_json("ledger", "restore", copy, "--ledger", declaration)
    assert record["head"] == run_json("ledger", "show", declaration)["head"]
    assert run("ledger", "verify", declaration).exit_code == 0
    (tmp_path / "book.db").unlink()
    assert "No anchor was given" in run("ledger", "restore", copy, "--ledger", declaration).stderr


def test_an_analyst_of_a_server_sees_tables_and_releases_of_her_own(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    role = f"tables_{cluster.database_of(url)}"
    declaration = Path(make_clinic(tmp_path))
    text = declaration.read_text(encoding="utf-8").replace('"book.db"', f'"{url}"').replace('"amina"', f'"{role}"')
    declaration.write_text(text, encoding="utf-8")
    assert run("budget", "begin", str(declaration)).exit_code == 0
    cluster.shared().sql(f"CREATE ROLE {role} LOGIN", cluster.database_of(url))
    assert run("ledger", "allow", role, "--ledger", str(declaration)).exit_code == 0
    hers = cluster.shared().url(cluster.database_of(url), role)
    declaration.write_text(declaration.read_text(encoding="utf-8").replace(url, hers), encoding="utf-8")
    told = run("tables", str(declaration), env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.stderr
    assert "100 %" in told.stdout
    assert "not in the book, or not yours to see" in told.stdout  # badr's share
    assert run("query", str(declaration), COUNT, "--epsilon", "0.1", "--analyst", role, "--yes").exit_code == 0
    (record,) = run_json("ledger", "show", "--ledger", str(declaration))["releases"]
    assert (record["question"], record["left"]) == (COUNT, {"clinic": "90.0 %"})
    place = run_json("ledger", "show", "--ledger", str(declaration))["place"]
    assert place.startswith(f"postgresql://{role}@")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say which ledger: --ledger book.db"),
        (["--ledger", "memory://"], "gone when the command ends"),
        (["--ledger", "mysql://localhost"], "this is not the address of a ledger"),
        (["--ledger", "no such file.db"], "there is no ledger"),
    ],
)
def test_a_ledger_has_to_be_named(arguments, message):
    result = run("ledger", "show", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_show_says_what_was_asked(tmp_path):
    declaration = make_clinic(tmp_path)
    assert run("budget", "begin", declaration).exit_code == 0
    ask = ("--epsilon", "0.1", "--analyst", "amina", "--purpose", "audit", "--yes")
    assert run("query", declaration, COUNT, *ask, "--max-rows-per-unit", "2").exit_code == 0
    grouped = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
    refused = run("query", declaration, grouped, "--epsilon", "0.1", "--analyst", "badr", "--yes")
    assert refused.exit_code != 0  # of a pure budget
    where = ("--ledger", str(tmp_path / "book.db"))
    shown = run("ledger", "show", *where, env={"COLUMNS": "300"}).stdout
    (line,) = [line for line in shown.splitlines() if "amina" in line]
    asked = f"{COUNT} (max_rows_per_unit = 2)"
    for word in ("audit", asked, "ε = 0.1", "clinic: 90.0 %; clinic/purpose/audit: 86.6 %"):
        assert word in line
    (record,) = run_json("ledger", "show", *where)["releases"]
    assert (record["tables"], record["declaration"]) == (["visits"], "clinic, version 1")
    assert (record["epsilon"], record["delta"], record["purpose"]) == (0.1, 0.0, "audit")
    exported = run_json("ledger", "export", "--releases", *where)
    assert exported["releases"] == [record]
    rows = list(csv.DictReader(run("ledger", "export", "--releases", "--format", "csv", *where).stdout.splitlines()))
    assert [(row["analyst"], row["question"], row["epsilon"]) for row in rows] == [("amina", asked, "0.1")]
    assert rows[0]["left"] == "clinic: 90.0 %; clinic/purpose/audit: 86.6 %"
    told = run("budget", "show", "clinic", *where).stdout
    assert f"by amina for audit: {asked}; ε = 0.1; 90.0 % left" in told
    for text in (shown, told, run("ledger", "export", *where).stdout):
        assert not any(secret in text for secret in SECRETS)


def test_releases_are_readable_at_80_columns_and_whole_without_a_terminal(tmp_path):
    declaration = make_clinic(tmp_path)
    assert run("budget", "begin", declaration).exit_code == 0
    long = f"{COUNT} HAVING n > 10 ORDER BY n DESC LIMIT 2"
    for question, purpose in ((COUNT, "audit"), (long, "audit")):
        ask = ("--epsilon", "0.1", "--analyst", "amina", "--purpose", purpose, "--yes")
        assert run("query", declaration, question, *ask).exit_code == 0
    (first, second) = run_json("ledger", "show", declaration)["releases"]
    narrow = run("ledger", "show", declaration, env={"COLUMNS": "80"}).stdout.partition("head")[2].splitlines()
    assert max(map(len, narrow)) <= 80
    begun = [line for line in narrow if line.strip().startswith("20")]
    assert [line.split()[0] for line in begun] == [first["at"][:16], second["at"][:16]]
    assert all("SELECT" in line and "…" in line for line in begun)
    for environment in ({"COLUMNS": None}, {"COLUMNS": "250"}):
        shown = run("ledger", "show", declaration, env=environment).stdout
        (line,) = [line for line in shown.splitlines() if long in line]
        for word in (second["at"][:16], "amina", "audit", "ε = 0.1", "clinic: 80.0 %; clinic/purpose/audit: 73.3 %"):
            assert word in line
    entries = run("ledger", "show", "--entries", declaration, env={"COLUMNS": "80"}).stdout
    assert f" {first['at'][:16]} " in entries
    assert max(map(len, entries.partition("head")[2].splitlines())) <= 80


@pytest.mark.parametrize("form", [(), ("--entries",)])
def test_a_release_that_several_budgets_paid_for_takes_a_few_lines_at_80_columns(tmp_path, form):
    """A line for the release, two at most, and one for what each budget has left; or one for what an entry says."""
    path = str(tmp_path / "book.db")
    with Ledger.open(path) as ledger:
        for dataset in ("clinic", "laboratory"):
            ledger.create_budget(dataset, Budget(epsilon=4, delta=1e-6))
        ledger.create_budget("clinic", Budget(epsilon=2, delta=1e-6), analyst="amina@hospital")
        ledger.create_budget("clinic", Budget(epsilon=1), purpose="quality report")
        about = {
            "analyst": "amina@hospital",
            "purpose": "quality report",
            "asked": Asked(COUNT, epsilon=0.1, delta=1e-8),
        }
        ledger.reserve(["clinic", "laboratory"], Laplace(noise_multiplier=10), operation="q", **about)
    told = run("ledger", "show", *form, "--last", "1", "--ledger", path, env={"COLUMNS": "80"}).stdout
    lines = told.partition("─\n")[2].rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= (2 + 2 if form else 2 + 4)
    if form:
        assert "clinic, clinic/analyst/amina@hospital, clinic/purpose/quality report," in told
    else:
        assert "     left of clinic/analyst/amina@hospital: ε part 95.1 %, δ part 100 %" in told
        assert "     left of laboratory: ε part 98.4 %, δ part 100 %" in told
    (wide,) = [
        line
        for line in run(
            "ledger", "show", *form, "--last", "1", "--ledger", path, env={"COLUMNS": "400"}
        ).stdout.splitlines()
        if "amina@hospital" in line
    ]
    assert "quality report" in wide


def test_nobody_said_what_for(book):
    shown = run("ledger", "show", "--ledger", book).stdout
    assert ("what for" in shown, "question" in shown) == (False, True)
    with opened(book) as ledger:
        ledger.reserve("clinic", Laplace(noise_multiplier=40), analyst="badr", purpose="teaching")
    assert "what for" in run("ledger", "show", "--ledger", book).stdout
    assert "what for" in run("ledger", "show", "--last", "0", "--ledger", book).stdout


def test_show_only_the_last_releases(book):
    assert [one["operation"] for one in run_json("ledger", "show", "--ledger", book)["releases"]] == ["q-1", "q-2"]
    (last,) = run_json("ledger", "show", "--last", "1", "--ledger", book)["releases"]
    assert (last["operation"], last["question"], last["epsilon"]) == ("q-2", "laplace(10)", None)
    assert run_json("ledger", "show", "--last", "0", "--ledger", book)["releases"] == []


def test_a_book_of_an_older_form_says_what_became_of_it(tmp_path):
    url = restored(f"sqlite:///{tmp_path}/old.db", 2)
    last = run("ledger", "show", "--entries", "--last", "1", "--ledger", url, env={"COLUMNS": "200"}).stdout
    assert "from form 2 to 3; a filter on pure ε joins those of " in last
    assert run_json("ledger", "verify", "--ledger", url)["spent"]["idle"] == {"share": 0.0, "delta_share": 0.0}
    shown = run("budget", "show", "swaps", "--ledger", url).stdout
    assert "ε part: 37.5 % (ε 0.375); δ part: 0 % (0)" in shown
    assert "ε part: 62.5 % (ε 0.625); δ part: 100 % (1e-07)" in shown


def test_show_entries(book):
    result = run("ledger", "show", "--entries", "--ledger", book, env={"COLUMNS": "160"})
    with opened(book) as ledger:
        assert f"ledger   {ledger.id}\n" in result.stdout
        assert f"head     {ledger.head}\n" in result.stdout
        assert ledger.head.hash not in result.stdout
    assert f"place    {book}\n" in result.stdout
    assert "entries  7\n" in result.stdout
    lines = [line for line in result.stdout.splitlines() if line[:3].strip().isdigit()]
    assert "clinic: ε = 1 for one person added or removed" in lines[1]
    assert "clinic, clinic/analyst/amina: laplace(4)" in lines[3]
    assert "2 bytes of application/json" in lines[5]
    assert lines[6].split()[2:5] == ["reserve", "q-2", "badr"]


def test_show_only_the_last_entries(book):
    record = run_json("ledger", "show", "--entries", "--last", "2", "--ledger", book)
    assert [entry["seq"] for entry in record["last"]] == [6, 7]
    assert record["entries"] == record["head"]["seq"] == 7
    assert record["last"][-1]["hash"] == record["head"]["hash"]
    assert run_json("ledger", "show", "--entries", "--last", "0", "--ledger", book)["last"] == []


def test_what_was_tampered_with_is_shown_and_does_nothing_to_the_terminal(book):
    tamper(book, "UPDATE entry SET body = '{}' WHERE seq = 7")
    tamper(book, "UPDATE entry SET analyst = 'am' || char(27) || '[31mina[/]:smile:' WHERE seq = 6")
    result = run("ledger", "show", "--entries", "--ledger", book, env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert "cannot be read: sitr ledger verify" in result.stdout
    assert "am?[31mina[/]:smile:" in result.stdout
    assert "\x1b" not in result.stdout
    tamper(book, "UPDATE entry SET analyst = 'am' || char(27) || '[31mina[/]:smile:' WHERE seq = 7")
    lines = run("ledger", "show", "--ledger", book, env={"COLUMNS": "160"})
    assert lines.exit_code == 0
    assert "cannot be read: sitr ledger verify (reserved)" in lines.stdout
    assert "am?[31mina[/]:smile:" in lines.stdout
    assert "\x1b" not in lines.stdout


def test_a_long_entry_is_cut(book):
    with opened(book) as ledger:
        ledger.reserve("clinic", Laplace(noise_multiplier=40), analyst="badr", operation="q-3", purpose="p" * 150)
        ledger.refund("q-3", reason="r" * 190)
    for form in ((), ("--entries",)):
        assert "r" * 118 not in run("ledger", "show", *form, "--ledger", book, env={"COLUMNS": "250"}).stdout


def test_a_whole_book_is_valid_and_not_anchored(book):
    result = run("ledger", "verify", "--ledger", book)
    assert result.exit_code == 0
    assert "verdict  valid: 7 entries\n" in result.stdout
    assert "anchor   not anchored: missing entries at the end cannot be detected\n" in result.stdout
    assert "spent    clinic: 35.0 % of the budget\n" in result.stdout
    assert "spent    clinic/analyst/amina: 33.4 % of the budget\n" in result.stdout
    assert result.stderr == ""
    record = run_json("ledger", "verify", "--ledger", book)
    assert record["valid"] is True
    assert record["bad_entry"] is None
    assert record["spent"]["clinic"]["share"] == pytest.approx(0.35)
    assert record["head"]["seq"] == 7


def test_the_first_bad_entry_is_named(book):
    tamper(book, "UPDATE entry SET analyst = 'nobody' WHERE seq IN (4, 6)")
    result = run("ledger", "verify", "--ledger", book)
    assert result.exit_code == 1
    assert "verdict    NOT VALID: entry 4 was changed, or does not follow entry 3 of this ledger\n" in result.stdout
    assert "bad entry  4\n" in result.stdout
    assert "clinic: 0 % of the budget, by the entries that hold" in result.stdout
    failed = run("ledger", "verify", "--json", "--ledger", book)
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["bad_entry"] == 4


def test_a_changed_total_is_found(book):
    tamper(book, "UPDATE budget SET whole = '[0,0]' WHERE name = 'clinic'")
    result = run("ledger", "verify", "--ledger", book)
    assert result.exit_code == 1
    assert "the running total of the budget 'clinic' is not what its entries add up to" in result.stdout


def test_an_anchor_says_what_it_proves_and_finds_a_lost_end(book, tmp_path):
    anchor = tmp_path / "anchor"
    made = run("ledger", "anchor", str(anchor), "--ledger", book)
    assert made.exit_code == 0
    assert "an owner who can write both can forge both" in made.stdout
    whole = run("ledger", "verify", "--anchor", str(anchor), "--ledger", book)
    assert whole.exit_code == 0
    assert "anchor   anchored up to entry 7" in whole.stdout
    assert "can forge both" in whole.stdout
    due = "SELECT json_extract(body, '$.budgets.clinic.units[0]') FROM entry WHERE seq = 7"
    before = f"json_array(json_extract(whole, '$[0]') - ({due}), 0)"
    tamper(book, f"UPDATE budget SET whole = {before} WHERE name = 'clinic'")
    tamper(book, "DELETE FROM entry WHERE seq = 7")
    assert run("ledger", "verify", "--ledger", book).exit_code == 0  # the chain alone cannot show it
    cut = run("ledger", "verify", "--anchor", str(anchor), "--ledger", book)
    assert cut.exit_code == 1
    assert "the anchor knows entry 7, and the book ends at 6: its end was lost" in cut.stdout


def test_an_anchor_is_not_added_to_for_a_book_that_it_contradicts(book, tmp_path):
    anchor = tmp_path / "anchor"
    run_json("ledger", "anchor", str(anchor), "--ledger", book)
    record = run_json("ledger", "anchor", str(anchor), "--ledger", book)
    assert record["head"]["seq"] == 7
    before = anchor.read_bytes()
    assert before.count(b'"seq":7') == 2
    tamper(book, "DELETE FROM entry WHERE seq = 7")
    result = run("ledger", "anchor", str(anchor), "--ledger", book)
    assert result.exit_code == 1
    assert "is behind its anchor" in result.stderr
    (tmp_path / "other").mkdir()
    other = run("ledger", "anchor", str(anchor), "--ledger", make_book(tmp_path / "other"))
    assert other.exit_code == 2
    assert "WrongLedger" in other.stderr
    assert anchor.read_bytes() == before


def test_a_file_of_something_else_is_no_anchor(book, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("milk, bread\n")
    for arguments in (["anchor", str(notes)], ["verify", "--anchor", str(notes)]):
        result = run("ledger", *arguments, "--ledger", book)
        assert result.exit_code == 1
        assert "is no anchor of a ledger" in result.stderr
    assert notes.read_text() == "milk, bread\n"
    assert run("ledger", "show", "--anchor", str(tmp_path / "none"), "--ledger", book).exit_code == 2


def test_progress_goes_to_a_terminal_and_never_to_standard_output(book):
    result = run("ledger", "verify", "--json", "--ledger", book, env={"FORCE_COLOR": "1"})
    assert "entries" in result.stderr
    assert "\x1b" not in result.stdout
    assert json.loads(result.stdout)["valid"] is True


def test_export_as_json(book, tmp_path):
    document = run_json("ledger", "export", "--ledger", book)
    with opened(book) as ledger:
        assert document["ledger"] == ledger.id
        assert document["head"] == {"seq": 7, "hash": ledger.head.hash}
        assert document["entries"] == [entry.to_dict() for entry in ledger.entries()]
    output = tmp_path / "book.json"
    summary = run_json("ledger", "export", "--output", str(output), "--ledger", book)
    assert summary == {"ledger": document["ledger"], "head": document["head"], "file": str(output), "entries": 7}
    assert json.loads(output.read_text(encoding="utf-8")) == document
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_export_as_csv(book, tmp_path):
    output = tmp_path / "book.csv"
    result = run("ledger", "export", "--format", "csv", "--output", str(output), "--ledger", book)
    assert result.stdout == f"{output}\n"
    rows = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))
    document = run_json("ledger", "export", "--ledger", book)
    assert [int(row["seq"]) for row in rows] == list(range(1, 8))
    assert json.loads(rows[3]["body"]) == document["entries"][3]["body"]
    assert rows[-1]["hash"] == document["head"]["hash"]
    to_screen = run("ledger", "export", "--format", "csv", "--ledger", book)
    assert to_screen.stdout_bytes == output.read_bytes()


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_a_spreadsheet_runs_nothing(book, sign):
    with opened(book) as ledger:
        ledger.reserve("clinic", Laplace(noise_multiplier=40), analyst=f"{sign}cmd()", operation=f"{sign}1+1")
    text = run("ledger", "export", "--format", "csv", "--ledger", book).stdout
    last = list(csv.DictReader(text.splitlines()))[-1]
    assert (last["operation"], last["analyst"]) == (f"'{sign}1+1", f"'{sign}cmd()")
    text = run("ledger", "export", "--releases", "--format", "csv", "--ledger", book).stdout
    last = list(csv.DictReader(text.splitlines()))[-1]
    assert (last["operation"], last["analyst"]) == (f"'{sign}1+1", f"'{sign}cmd()")


@pytest.mark.parametrize(("cell", "shown"), [("\tx", "'\tx"), ("\rx", "'\rx"), ("x=1", "x=1"), ("", "")])
def test_harmless_cells(cell, shown):
    assert commands._harmless(cell) == shown


def test_an_export_overwrites_nothing(book, tmp_path):
    output = tmp_path / "book.json"
    output.write_text("mine")
    result = run("ledger", "export", "--output", str(output), "--ledger", book)
    assert result.exit_code == 1
    assert "nothing was overwritten" in result.stderr
    assert output.read_text() == "mine"
    nowhere = run("ledger", "export", "--output", str(tmp_path / "no" / "book.json"), "--ledger", book)
    assert nowhere.exit_code == 1
    assert "cannot write" in nowhere.stderr
    assert run("ledger", "export", "--format", "csv", "--json", "--ledger", book).exit_code == 2


def test_what_left_outside_the_promise_is_noted(book):
    noted = ("ledger", "note", "clinic", "a histogram", "--notion", "random DP with γ = 0.04", "--ledger", book)
    assert run(*noted).exit_code == 2  # why?
    result = run(*noted, "--reason", "for a study", "--analyst", "amina")
    assert result.exit_code == 0
    assert "outside  clinic: a histogram" in result.stdout
    with opened(book) as ledger:
        assert ledger.spent("clinic").value == pytest.approx(0.35)
        assert [one.what for one in ledger.statement("clinic").outside] == ["a histogram"]
        assert ledger.verify().valid
    assert "OUTSIDE" in run("budget", "show", "clinic", "--ledger", book, env={"COLUMNS": "160"}).stdout
    record = run_json(*noted, "--reason", "again")
    assert (record["dataset"], record["outside"], record["head"]["seq"]) == ("clinic", "a histogram", 9)
    unknown = run("ledger", "note", "lab", "a list", "--notion", "none", "--reason", "r", "--ledger", book)
    assert unknown.exit_code == 2
    assert "lab" in unknown.stderr


def test_refund_gives_back_what_never_started(book):
    result = run("ledger", "refund", "q-2", "--reason", "the machine was lost", "--ledger", book)
    assert result.exit_code == 0
    assert "refunded  q-2\n" in result.stdout
    with opened(book) as ledger:
        assert ledger.spent("clinic").value == 0.25
        assert ledger.verify().valid
    assert "the machine was lost" in run("ledger", "show", "--ledger", book, env={"COLUMNS": "160"}).stdout


@pytest.mark.parametrize(("operation", "message"), [("q-1", "was started"), ("q-9", "there is no operation 'q-9'")])
def test_nothing_else_is_refunded(book, operation, message):
    result = run("ledger", "refund", operation, "--reason", "more", "--ledger", book)
    assert result.exit_code == 2
    assert message in result.stderr
    with opened(book) as ledger:
        assert ledger.head.seq == 7


def test_a_refund_as_json(book):
    record = run_json("ledger", "refund", "q-2", "--reason", "lost", "--ledger", book)
    assert (record["operation"], record["reason"], record["head"]["seq"]) == ("q-2", "lost", 8)
    assert run("ledger", "refund", "q-2", "--ledger", book).exit_code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BudgetExceeded, 3),
        (errors.LedgerUnavailable, 6),
        (errors.LedgerDamaged, 1),
        (errors.WrongLedger, 2),
        (errors.NotPermitted, 2),
        (errors.UnknownName, 2),
    ],
)
def test_errors_inside_a_nested_command_have_their_exit_codes(monkeypatch, book, error, code):
    def refuse(*_, **__):
        raise error("what.", why="why.", do="do.")

    monkeypatch.setattr(Ledger, "open", refuse)
    result = run("ledger", "show", "--ledger", book)
    assert result.exit_code == code
    assert result.stderr == f"{error.__name__} [{error.code}]: what.\nWhy: why.\nDo: do.\n"
    assert result.stdout == ""


def test_a_file_that_is_no_book(tmp_path):
    path = tmp_path / "book.db"
    path.write_bytes(b"something else" * 100)
    path.chmod(0o600)
    result = run("ledger", "show", "--ledger", str(path))
    assert result.exit_code == 1
    assert "LedgerDamaged" in result.stderr
    path.chmod(0o644)
    assert "chmod" not in run("ledger", "show", "--ledger", str(path)).stderr  # it would not make it a book
    path.unlink()
    book = make_book(tmp_path)
    Path(book).chmod(0o644)
    result = run("ledger", "show", "--ledger", book)
    assert (result.exit_code, "chmod 600" in result.stderr) == (2, True)


def test_allow_needs_a_store_that_tells_analysts_from_owners(book):
    result = run("ledger", "allow", "amina", "--ledger", book)
    assert result.exit_code == 2
    assert "cannot keep analysts and owners apart" in result.stderr


def test_the_commands_work_on_postgresql(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    assert run("budget", "create", "clinic", "--epsilon", "1", "--ledger", url).exit_code == 0
    cluster.shared().sql("CREATE ROLE layla LOGIN")
    assert run_json("ledger", "allow", "layla", "--ledger", url)["allowed"] == "layla"
    analyst = url.replace("owner@", "layla@")
    with Ledger.open(analyst, create=False) as ledger:
        ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="layla", operation="q-1")
    assert run_json("budget", "show", "clinic", "--ledger", url)["spent"]["value"] == 0.25
    assert run_json("ledger", "verify", "--ledger", url)["valid"]
    assert run("ledger", "refund", "q-1", "--reason", "lost", "--ledger", analyst).exit_code == 2
    assert run("ledger", "refund", "q-1", "--reason", "lost", "--ledger", url).exit_code == 0
    assert len(run_json("ledger", "export", "--ledger", url)["entries"]) == 4
