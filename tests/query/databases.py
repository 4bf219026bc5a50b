"""Small databases for tests of whole queries, on every engine of one list."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pyarrow

from sitr.query.answer import Answer
from sitr.query.execution import Execution
from sitr.query.planner import Plan
from sitr.session.database import Database
from sitr.session.database import open as open_database
from sitr.session.question import Question
from sitr.tables import Declaration
from tests.tables import engines

KEY = 7
OPENED: list[Database] = []  # on a server or on Spark, that are closed when the test ends


def asked(
    engine: str, tables: Mapping[str, pyarrow.Table], declaration: Mapping[str, Any], analyst: str = "amina"
) -> Database:
    """Return an opened database, with a ledger in memory, whose declared tables hold these rows.

    What a declaration leaves out: its format, its name, and a large budget for each dataset.
    """
    if engine != "duckdb":
        OPENED.append(engines.asked(engine, tables, declaration, analyst))
        return OPENED[-1]
    return open_database(declared(declaration), analyst=analyst, ledger="memory://", frames=dict(tables))


def declared(declaration: Mapping[str, Any], folder: str = ".") -> Declaration:
    """Return a declaration with what it leaves out."""
    content = copy.deepcopy(dict(declaration))
    content.setdefault("sitr", 1)
    content.setdefault("name", "test")
    datasets = {one.get("dataset", content["name"]) for one in content["tables"].values() if not one.get("public")}
    content.setdefault("budgets", {name: {"epsilon": 1e4, "delta": 1e-3} for name in datasets})
    return Declaration.of(content, folder)


def plan_of(question: Question, epsilon: float = 1.0, delta: float | None = None) -> Plan:
    """Return the plan of a question."""
    return question._planned(epsilon, delta, None)[0]


def exact(question: Question, epsilon: float = 1.0, delta: float | None = None) -> Answer:
    """Return the bounded answer without noise; rows are chosen by a fixed key where they have an id."""
    plan = plan_of(question, epsilon, delta)
    return Execution(plan, question.database.source, unsafe_without_noise=True, unsafe_key=KEY).answer()


def column(type: str, **settings: Any) -> dict[str, Any]:
    """Return a declared column."""
    return {"type": type, **settings}


def people(rows: int = 3, **columns: Any) -> dict[str, Any]:
    """Return the declaration of one table, `visits`, of people who are named in `person` and have so many rows."""
    table = {"unit": "person", "max_rows_per_unit": rows, "columns": {"person": column("integer"), **columns}}
    return {"privacy": {"delta": 1e-6}, "tables": {"visits": table}}


def visits(engine: str, frame: Mapping[str, Any], rows: int = 3, **columns: Any) -> Any:
    """Return the table `visits` of such a database."""
    made = pyarrow.table(dict(frame))
    return asked(engine, {"visits": made}, people(rows, **columns)).table("visits")


def replaced(database: Database, tables: Mapping[str, pyarrow.Table]) -> None:
    """Put other rows behind the declared tables of an opened database; DuckDB only."""
    from sitr.tables.duckdb import DuckDB

    source = database.source
    assert isinstance(source, DuckDB)
    source._frames = dict(tables)
    source._tables.clear()
    for table in database.declared.tables.values():  # a view is named by its place among those that were opened
        source.table(table)


X = column("integer", bounds=[0, 10])
G = column("string", categories=["a", "b"])


def spent(database: Database, dataset: str = "test") -> float:
    """Return what a budget was charged."""
    return database.ledger.spent(dataset).value


def paid(engine: str, frame: Mapping[str, Any], **columns: Any) -> Any:
    """Return the table of a database whose budget is in ε alone, so that what is spent is the sum of what was asked."""
    content = people(**columns) | {"privacy": {}, "budgets": {"test": {"epsilon": 100.0}}}
    return asked(engine, {"visits": pyarrow.table(dict(frame))}, content).table("visits")
