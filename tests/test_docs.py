"""What the guides show runs: queries and SQL on a clinic that is made up here, the README on that of the demo."""

import os
import random
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

import sitr
from sitr.cli import clinic as demo

ROOT = Path(__file__).resolve().parents[1]
GUIDE, SQL = ROOT / "docs" / "queries.md", ROOT / "docs" / "sql.md"
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
    assert "reason is a string, and no number" in told
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


def test_the_program_of_the_readme_runs_on_what_the_demo_leaves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo.visit(tmp_path / "demo-output")
    names: dict[str, object] = {}
    try:
        exec(compile(blocks("python", ROOT / "README.md")[0], "README.md", "exec"), names)
    finally:
        names["db"].close()
    assert names["r"].value["region"] == ["north", "south", "east", "west"]


@pytest.mark.parametrize("name", ["accounting", "mechanisms"])
def test_the_programs_of_a_guide_print_what_it_says(name, capsys):
    """A comment behind `print` that begins with a number or a truth value is what is printed."""
    for text in blocks("python", ROOT / "docs" / f"{name}.md"):
        exec(compile(text, f"{name}.md", "exec"), {})
        told = capsys.readouterr().out
        for said in re.findall(
            r"^print\(.*\)  # ((?:[\d.]+|True|False)(?: (?:[\d.]+|True|False))*)", text, re.MULTILINE
        ):
            assert said.rstrip(".") in told


@pytest.mark.parametrize("guide", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda one: one.name)
def test_links_of_guides_lead_somewhere(guide):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", guide.read_text(encoding="utf-8")):
        assert (guide.parent / target).exists(), target


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200
