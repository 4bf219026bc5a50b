"""A clinic for the tests of `sitr tables`, `explain` and `query`: a database of DuckDB and its declaration."""

import re
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import duckdb

REGIONS = ("north", "south", "=cmd()")
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
PATIENTS = 300
DECLARATION = """\
sitr = 1
name = "clinic"
analysts = ["amina", "badr"]

[connection]
address = "clinic.duckdb"

[privacy]
unit = "patient"
delta = 1e-8

# The book.
[ledger]
url = "book.db"  # beside this file

[budgets.clinic]
epsilon = 1.0  # in all
analysts.badr = { epsilon = 0.25 }
purposes.audit = { epsilon = 0.75 }

[tables.visits]
unit = "patient"
max_rows_per_unit = 4
expected_units = 300
expected_rows = 900
[tables.visits.columns]
patient = { type = "integer" }
region = { type = "string", categories = ["north", "south", "=cmd()"] }
diagnosis = { type = "string" }
cost = { type = "decimal(8, 2)", bounds = [0, 500.5] }
day = { type = "date", bounds = [2026-01-01, 2026-12-31], nulls = "group" }

[tables.codes]
public = true
key = "code"
[tables.codes.columns]
code = { type = "string" }
chapter = { type = "int8" }
"""
SECRETS = ("malaria", "123.45")  # values of the data that no command may print


def make_clinic(folder: Path) -> str:
    """Make the database and its declaration, and return where the declaration is; its book is not begun."""
    with duckdb.connect(str(folder / "clinic.duckdb")) as database:
        database.execute(
            "CREATE TABLE visits (patient INTEGER, region VARCHAR, diagnosis VARCHAR, cost DECIMAL(8, 2), day DATE)"
        )
        chosen = ", ".join(f"'{one}'" for one in REGIONS)
        row = f"i % {PATIENTS}, [{chosen}][1 + i % 3], 'malaria', 123.45, '2026-03-01'"
        database.execute(f"INSERT INTO visits SELECT {row} FROM range({3 * PATIENTS}) visit(i)")
        database.execute("CREATE TABLE codes (code VARCHAR, chapter TINYINT)")
    path = folder / "clinic.toml"
    path.write_text(DECLARATION, encoding="utf-8")
    return str(path)


def read_sql(monkeypatch) -> None:
    """Let a few simple statements be read where the reader of SQL is not there."""
    if find_spec("sitr.query.sql") is None:
        stub = types.ModuleType("sitr.query.sql")
        stub.parsed = _parsed
        monkeypatch.setitem(sys.modules, "sitr.query.sql", stub)


def _parsed(text, declared):
    from sitr import count
    from sitr.errors import NotAllowed
    from sitr.query.query import Grouping, Query
    from sitr.tables.expressions import Column
    from sitr.tables.relations import Scan

    simple = r"\s*SELECT (?:(\w+), )?COUNT\(\*\) AS (\w+) FROM (\w+)(?: GROUP BY (\w+))?\s*"
    found = re.fullmatch(simple, text)
    if found is None:
        raise NotAllowed("this is not a question that sitr reads.", do="SELECT COUNT(*) AS n FROM visits.")
    key, name, table, _ = found.groups()
    return Query(Scan(table), (Grouping(key, Column(key)),) if key else (), {name: count()})
