"""The clinic of `sitr demo`: made-up patients in a database of DuckDB, asked, refused, and accounted for."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import rounded_up, scientific
from ..errors import SitrError
from .output import cost_text

if TYPE_CHECKING:
    from rich.console import Console

    from ..query.answer import Answer
    from ..query.explanation import Explanation
    from ..session.database import Database
    from ..session.question import Question
    from ..synthesis.explanation import SynthesisExplanation
    from ..synthesis.table import SyntheticTable

MARK = "# Made by `sitr demo`, which makes it anew each time."
ANALYST = "demo"
SHOWN = 20  # rows of an answer,
DRAWN = 4  # and of the synthetic table,
PUBLISHED = 10_000  # of which the file has so many
PATIENTS, MOST_VISITS = 2000, 40
REGIONS = {"north": 0.45, "south": 0.30, "east": 0.20, "west": 0.05}
COMMON = ("anaemia", "asthma", "diabetes", "fracture", "hypertension", "influenza", "migraine", "pneumonia")
RARE = tuple(f"rare disease {number}" for number in range(1, 41))
COUNTS = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
DECLARATION = f"""\
{MARK}
# The owner of the database says here what may be asked of it. `sitr init` drafts such a file from a schema.

sitr = 1
name = "clinic"

[connection]
engine = "duckdb"
address = "clinic.duckdb"

[privacy]
unit = "patient"
delta = 1e-8  # of a release that needs one

[ledger]
url = "clinic.ledger.db"  # `sitr budget begin` makes it, and writes its id below

# What may be learned about one patient from everything that is ever released.
[budgets.clinic]
epsilon = 4.0
delta = 1e-6

[tables.visits]
unit = "patient"
max_rows_per_unit = 10  # some come often: of whom has more visits, only so many count
expected_units = 2_000
expected_rows = 5_000

[tables.visits.columns]
patient = {{ type = "integer" }}
region = {{ type = "string", categories = ["north", "south", "east", "west"] }}
age = {{ type = "integer", bounds = [0, 110] }}
cost = {{ type = "decimal(8, 2)", bounds = [0, 1000] }}
diagnosis = {{ type = "string" }}  # no categories: which there are, is found privately
"""


@dataclass(frozen=True)
class Step:
    """A question: what was asked and how, the bill, and the answer or the refusal."""

    title: str
    text: str
    code: str
    bill: Explanation | None = None
    answer: Answer | None = None
    refusal: SitrError | None = None


@dataclass(frozen=True)
class Published:
    """A synthetic table: what it is of, how it was asked for, the bill, and the file of its rows."""

    text: str
    code: str
    bill: SynthesisExplanation
    table: SyntheticTable
    file: Path


@dataclass(frozen=True)
class Visit:
    """All that happened at the clinic."""

    declaration: Path
    steps: list[Step]
    published: Published
    statement: list[tuple[str, str]]
    verified: str
    files: list[Path] = field(default_factory=list)


def visit(folder: Path) -> Visit:
    """Make the clinic in a folder, ask it three questions and one too many, publish a table, and read its book."""
    from ..session.beginning import begin
    from ..session.database import open

    declaration = _made(folder)
    begin(declaration).close()
    with open(declaration, analyst=ANALYST) as database:
        steps = [_counts(database), _mean(database), _diagnoses(database), _too_much(database)]
        published = _published(database, folder / "clinic.synthetic.parquet")
        rows = [row for row in database.ledger.statement("clinic").rows() if row[0] not in ("budget", "promised")]
        found = database.ledger.verify()
    verdict = f"valid: {found.head.seq} entries" if found.valid else f"NOT VALID: {found.problem}"
    files = [declaration, folder / "clinic.duckdb", folder / "clinic.ledger.db", published.file]
    return Visit(declaration, steps, published, rows, verdict, files)


def _counts(database: Database) -> Step:
    return _asked(
        "Counts, in SQL",
        "How many visits are there in each region? The regions are declared, so each is listed, even an empty one.",
        f'db.sql("{COUNTS}")',
        database.sql(COUNTS),
        epsilon=0.3,
    )


def _mean(database: Database) -> Step:
    from ..query.aggregates import mean

    visits = database.table("visits")
    return _asked(
        "A mean, in Python",
        "What does a visit cost of people from 65 on? Each number comes with an interval that holds 95 times in 100, "
        "about the visits that were kept.",
        'visits.filter(visits["age"] >= 65).aggregate(cost=sitr.mean("cost"))',
        visits.filter(visits["age"] >= 65).aggregate(cost=mean("cost")),
        epsilon=0.3,
    )


def _diagnoses(database: Database) -> Step:
    from ..query.aggregates import count_units

    question = database.table("visits").group_by("diagnosis").aggregate(patients=count_units())
    return _asked(
        "Which diagnoses are there?",
        f"Nobody listed them. Those of many patients are found; the {len(RARE)} that one or two patients have would "
        "give them away, and stay hidden.",
        'visits.group_by("diagnosis").aggregate(patients=sitr.count_units()).bounded(max_groups_per_unit=2)',
        question.bounded(max_groups_per_unit=2),
        epsilon=0.5,
    )


def _too_much(database: Database) -> Step:
    asked = _asked(
        "One too many",
        "The same counts once more, with hardly any noise. It would break the promise, so it is refused, and costs "
        "nothing.",
        f'db.sql("{COUNTS}")',
        database.sql(COUNTS),
        epsilon=4.0,
    )
    assert asked.refusal is not None
    return asked


def _published(database: Database, file: Path) -> Published:
    wanted = database.table("visits").synthesize(["region", "age", "cost"])
    bill, table = wanted.explain(epsilon=1), wanted.release(epsilon=1)
    table.to_parquet(file, PUBLISHED)
    return Published(
        "Whoever is to ask freely gets rows of patients who do not exist, like those who do. They are paid for once; "
        "any number of them may be drawn, and anything be asked of them.",
        'visits.synthesize(["region", "age", "cost"]).release(epsilon=1).to_parquet(...)',
        bill,
        table,
        file,
    )


def _asked(title: str, text: str, code: str, question: Question, epsilon: float) -> Step:
    bill = question.explain(epsilon=epsilon)
    try:
        return Step(title, text, f"{code}.release(epsilon={epsilon:g})", bill, question.release(epsilon=epsilon))
    except SitrError as error:
        return Step(title, text, f"{code}.release(epsilon={epsilon:g})", bill, refusal=error)


# The files


def _made(folder: Path) -> Path:
    """Make the database and its declaration; what an earlier demo left is replaced, and nothing else is."""
    import duckdb
    import pyarrow

    declaration, data = folder / "clinic.toml", folder / "clinic.duckdb"
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder, declaration)
    visits = pyarrow.table(_visits())
    with duckdb.connect(str(data)) as database:
        database.register("made", visits)
        database.execute("CREATE TABLE visits AS SELECT * REPLACE (cost::DECIMAL(8, 2) AS cost) FROM made")
    declaration.write_text(DECLARATION, encoding="utf-8")
    return declaration


def _clear(folder: Path, declaration: Path) -> None:
    there = sorted(folder.glob("clinic.*"))
    if there and not (declaration.is_file() and declaration.read_text(encoding="utf-8").startswith(MARK)):
        raise click.ClickException(f"{there[0]} is there already, and no demo made it: name another folder.")
    for path in there:
        if path.name.startswith(("clinic.toml", "clinic.duckdb", "clinic.ledger.db", "clinic.synthetic.parquet")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _visits() -> dict[str, Any]:
    """A few thousand visits: most patients come once or twice, a few come very often."""
    import numpy as np

    random = np.random.default_rng(2026)  # the data are made up, and the same each time; noise never is
    often = np.minimum(random.zipf(2.0, PATIENTS), MOST_VISITS)
    patient = np.repeat(np.arange(PATIENTS), often)
    region = random.choice(list(REGIONS), PATIENTS, p=list(REGIONS.values()))
    age = random.integers(0, 96, PATIENTS)
    weights = np.arange(len(COMMON), 0, -1) / np.arange(len(COMMON), 0, -1).sum()
    diagnosis = random.choice(COMMON, len(patient), p=weights).astype(object)
    for number, name in enumerate(RARE):
        diagnosis[(number * 97) % len(patient)] = name
    cost = np.clip(random.lognormal(4 + age[patient] / 60, 0.6), 5, 1500).round(2)
    columns = {"patient": patient, "region": region[patient], "age": age[patient], "cost": cost}
    return columns | {"diagnosis": diagnosis.tolist()}


# The telling


def tell(console: Console, told: Visit) -> None:
    """Print what happened."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text("A clinic: ask a database, and keep a promise", style="bold underline"))
    console.print(
        Text(
            f"\nA database of {PATIENTS:,} made-up patients, most of whom come once and a few very often. Its owner "
            f"says in {told.declaration.name} what may be asked, and promises every patient: from everything that is "
            "ever released, nobody learns more about you than ε = 4 allows (δ = 1e-06). A ledger keeps the promise.\n"
        )
    )
    for number, step in enumerate(told.steps, 1):
        _tell_step(console, number, step)
    _tell_published(console, len(told.steps) + 1, told.published)
    console.print(Text(f"{len(told.steps) + 2}. The book", style="bold"))
    console.print(Text("Every charge was written down before a row was read."))
    width = max(len(name) for name, _ in told.statement)
    for name, text in [*told.statement, ("verified", told.verified)]:
        console.print(Padding(Text(f"{name:<{width}}  {text}"), (0, 0, 0, 2), expand=False))
    console.print(Text("\n"))


def _tell_step(console: Console, number: int, step: Step) -> None:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from ..query.cells import cells

    console.print(Text(f"{number}. {step.title}", style="bold"))
    console.print(Text(step.text))
    console.print(Padding(Text(step.code, style="dim"), (0, 0, 0, 2), expand=False))
    if step.answer is not None:
        head, rows = cells(step.answer, SHOWN)
        table = Table(*head, box=box.SIMPLE_HEAD)
        for place in range(len(step.answer.keys), len(head)):
            table.columns[place].justify = "right"
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        assert step.bill is not None
        console.print(Padding(Text(_bill_text(step.bill)), (0, 0, 1, 2), expand=False))
    else:
        console.print(Padding(Text(str(step.refusal), style="red"), (1, 0, 1, 2), expand=False))


def _tell_published(console: Console, number: int, published: Published) -> None:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from ..query.cells import key_text

    console.print(Text(f"{number}. A table for everybody", style="bold"))
    console.print(Text(published.text))
    console.print(Padding(Text(published.code, style="dim"), (0, 0, 0, 2), expand=False))
    drawn = published.table.sample(DRAWN)
    table = Table(*drawn.column_names, box=box.SIMPLE_HEAD)
    for row in zip(*(column.to_pylist() for column in drawn.columns), strict=True):
        table.add_row(*(Text(key_text(cell)) for cell in row))
    console.print(table)
    cost = f"ε = {rounded_up(published.bill.epsilon.upper)} at δ = {scientific(published.bill.delta)}"
    said = f"{PUBLISHED:,} rows are in {published.file.name}. {_left_text(cost, published.bill.remaining)}"
    console.print(Padding(Text(said), (0, 0, 1, 2), expand=False))


def _bill_text(bill: Explanation) -> str:
    return _left_text(cost_text(bill), bill.remaining)


def _left_text(cost: str, remaining: Mapping[str, tuple[str, str]]) -> str:
    _, after = remaining["clinic"]
    return f"It cost {cost}; {after} of the budget is left."


def record(told: Visit) -> dict[str, Any]:
    """Return what happened as JSON holds it."""
    return {
        "declaration": str(told.declaration),
        "steps": [
            {
                "title": step.title,
                "code": step.code,
                "columns": None if step.answer is None else step.answer.columns,
                "entry": None if step.answer is None else step.answer.entry,
                "refusal": None if step.refusal is None else step.refusal.what,
            }
            for step in told.steps
        ],
        "published": {
            "code": told.published.code,
            "columns": list(told.published.table.columns),
            "entry": told.published.table.entry,
            "file": str(told.published.file),
        },
        "statement": dict(told.statement),
        "verified": told.verified,
        "files": [str(path) for path in told.files],
    }
