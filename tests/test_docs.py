"""What the guides show runs: queries and SQL on a clinic that is made up here, the README on that of the demo."""

import os
import random
import re
import shlex
from datetime import date, timedelta
from pathlib import Path

import click
import pytest

import sitr
from sitr.accounting import Laplace
from sitr.cli import clinic as demo
from sitr.cli import main
from sitr.ledger import Budget, Ledger
from sitr.ledger.keeper import Keeper

ROOT = Path(__file__).resolve().parents[1]
GUIDE, SQL, LEDGER = (ROOT / "docs" / f"{name}.md" for name in ("queries", "sql", "ledger"))
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
VALUE = r"(?:[\d.]+|True|False)"
REGIONS = ("north", "south", "west", "")
REASONS = ("fever", "check-up", "injury")


def blocks(language: str, guide: Path = GUIDE) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)


STATEMENTS = [one for block in blocks("sql", SQL) for one in block.split("\n\n")]


def write_clinic(folder: Path) -> None:
    """2,000 patients with 1 to 5 visits and as many tests; one reason is that of a single patient."""
    chance = random.Random(0)
    visits, tests = ["id,patient_id,day,age,cost,region,reason,urgent"], ["visit_id,value"]
    for patient in range(2000):
        age, region = chance.randrange(100), chance.choice(REGIONS)
        for _ in range(chance.randrange(1, 6)):
            day = date(2025, 1, 1) + timedelta(days=chance.randrange(365))
            reason = chance.choice(REASONS) if patient else "a rare one"
            cost, urgent = round(chance.uniform(1, 900), 2), chance.random() < 0.2
            visits.append(f"{len(visits)},{patient},{day},{age},{cost},{region},{reason},{urgent}")
            tests.append(f"{len(visits) - 1},{round(chance.uniform(0, 300), 2)}")
    offices = ["region,coast", "north,true", "south,false", "west,true"]
    for name, lines in (("visits", visits), ("tests", tests), ("offices", offices)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "clinic.toml").write_text(blocks("toml")[0], encoding="utf-8")


def test_the_guide_to_queries_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_clinic(tmp_path)
    names: dict[str, object] = {"__name__": "guide"}
    try:
        for number, text in enumerate(blocks("python")):
            exec(compile(text, f"{GUIDE.name}, block {number + 1}", "exec"), names)
    finally:
        if "clinic" in names:
            names["clinic"].close()
    told = capsys.readouterr().out
    assert "['clinic', 'clinic/analyst/amina']" in told
    assert "True True" in told
    assert "a rare one" not in told
    assert "reason is text, not a number" in told
    assert os.path.exists("book.db")
    assert len(names["answer"]) == 4  # three regions, and none


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    write_clinic(folder)
    return folder / "clinic.toml"


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_statements_of_the_guide_to_sql_are_answered(clinic, text):
    with sitr.open(clinic, analyst="amina", ledger="memory://") as db:
        answer = db.sql(text).release(**({} if "OPTIONS" in text else {"epsilon": 1.0}))
    assert len(answer) > 0
    assert all(cell is not None for name in answer.raw for cell in answer.value[name])


def test_the_program_of_the_guide_to_sql_is_answered(clinic, monkeypatch):
    opened = sitr.open
    monkeypatch.setattr(sitr, "open", lambda path, analyst: opened(clinic, analyst=analyst, ledger="memory://"))
    names: dict[str, object] = {}
    try:
        exec(compile(blocks("python", SQL)[0], SQL.name, "exec"), names)
    finally:
        names["db"].close()
    assert 0 < len(names["answer"]) <= 4


def test_the_programs_of_the_readme_run_on_what_the_demo_leaves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo.visit(tmp_path / "demo-output")
    names: dict[str, object] = {}
    try:
        for text in blocks("python", ROOT / "README.md")[:2]:
            exec(compile(text, "README.md", "exec"), names)
    finally:
        names["db"].close()
    assert names["r"].value["region"] == ["north", "south", "east", "west"]
    assert names["table"].sample(10).num_rows == 10


@pytest.mark.parametrize("name", ["accounting", "mechanisms", "synthesis"])
def test_the_programs_of_a_guide_print_what_it_says(name, tmp_path, monkeypatch, capsys):
    """A comment behind `print` that begins with a number or a truth value is what is printed."""
    monkeypatch.chdir(tmp_path)
    texts = blocks("python", ROOT / "docs" / f"{name}.md")
    if any("demo-output" in text for text in texts):
        demo.visit(tmp_path / "demo-output")
    names: dict[str, object] = {}
    for text in texts:
        exec(compile(text, f"{name}.md", "exec"), names)
        told = capsys.readouterr().out
        for said in re.findall(
            r"^print\(.*\)  # ((?:[\d.]+|True|False)(?: (?:[\d.]+|True|False))*)", text, re.MULTILINE
        ):
            assert said.rstrip(".") in told


def test_the_other_programs_of_the_readme_print_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    programs = blocks("python", ROOT / "README.md")[2:]
    assert len(programs) == 4
    for text in programs:
        exec(compile(text, "README.md", "exec"), {})
        told = capsys.readouterr().out
        for said in re.findall(rf"^print\(.*\)  # ({VALUE}(?: {VALUE})*)", text, re.MULTILINE):
            assert said.rstrip(".") in told
    assert told == "violation certified True\n"


def test_the_guide_to_the_ledger_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Ledger.open("book.db") as book:
        book.create_budget("clinic", Budget(epsilon=1.0, delta=1e-6, unit="patient"))
    names: dict[str, object] = {}
    for text in blocks("python", LEDGER):
        exec(compile(text, "ledger.md", "exec"), names)
    assert all(re.fullmatch(r"-?\d+", line) for line in capsys.readouterr().out.splitlines())
    names["ledger"].close()
    assert main(["ledger", "verify", "--ledger", "book.db"], standalone_mode=False) is None


def test_the_guide_to_the_ledger_says_how_many_releases_budgets_admit():
    rows = re.findall(r"^\| ([\d.]+) \| (\d+) \| (\d+) \|$", LEDGER.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 5
    for epsilon, *admitted in rows:
        for budget, count in zip((Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6)), admitted, strict=True):
            release = Laplace(noise_multiplier=1 / float(epsilon))
            assert Keeper.of(budget).filter.releases(release) == int(count)


COMMANDS = [
    line for guide in GUIDES for block in blocks("sh", guide) for line in block.splitlines() if line[:5] == "sitr "
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_guides_and_their_options_exist(line):
    _, *words = shlex.split(line, comments=True)
    command: click.Command = main
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("guide", GUIDES, ids=lambda one: one.name)
def test_links_of_guides_lead_somewhere(guide):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", guide.read_text(encoding="utf-8")):
        assert (guide.parent / target).exists(), target


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200
