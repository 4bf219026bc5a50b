"""A small clinic: what the tests of SQL declare and ask."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow

import sitr
from sitr.query.aggregates import Aggregate
from sitr.session.database import Database
from sitr.tables.declaration import Declaration

REGIONS = ["north", "south", "east"]
DECLARED = Declaration.of(
    {
        "sitr": 1,
        "name": "clinic",
        "privacy": {"delta": 1e-6},
        "budgets": {name: {"epsilon": 1e4, "delta": 1e-2} for name in ("clinic", "answers")},
        "tables": {
            "visits": {
                "unit": "patient",
                "max_rows_per_unit": 5,
                "expected_units": 400,
                "expected_rows": 1000,
                "columns": {
                    "patient": {"type": "integer"},
                    "region": {"type": "string", "categories": REGIONS},
                    "cost": {"type": "float", "bounds": [0, 1000]},
                    "age": {"type": "integer", "bounds": [0, 120]},
                    "day": {"type": "date", "bounds": [datetime.date(2026, 1, 1), datetime.date(2026, 12, 31)]},
                    "seen": {"type": "timestamp"},
                    "urgent": {"type": "boolean"},
                    "drug": {"type": "string"},
                    "Ward": {"type": "string", "categories": ["a", "b"]},
                    "مدينة": {"type": "string", "categories": ["الرياض", "جدة"]},
                    "free": {"type": "float"},
                },
            },
            "patients": {
                "unit": "id",
                "max_rows_per_unit": 1,
                "columns": {
                    "id": {"type": "integer"},
                    "sex": {"type": "string", "categories": ["f", "m"]},
                    "region": {"type": "string", "categories": REGIONS},
                },
            },
            "stays": {
                "unit": "patient",
                "max_rows_per_unit": 3,
                "columns": {"stay": {"type": "integer"}, "patient": {"type": "integer"}},
            },
            "labs": {
                "unit": {"through": "stays", "on": {"stay_id": "stay"}},
                "max_rows_per_unit": 9,
                "columns": {"stay_id": {"type": "integer"}, "level": {"type": "float", "bounds": [0, 10]}},
            },
            "areas": {
                "public": True,
                "key": "region",
                "columns": {
                    "region": {"type": "string"},
                    "zone": {"type": "string", "categories": ["inner", "outer"]},
                },
            },
            "answers": {
                "unit": "row",
                "dataset": "answers",
                "columns": {"score": {"type": "integer", "bounds": [0, 10]}, "done": {"type": "boolean"}},
            },
        },
    }
)


def frames(people: int = 400) -> dict[str, Any]:
    """People with one to three visits each; all numbers can be worked out by hand."""
    visits = [(person, visit) for person in range(people) for visit in range(1 + person % 3)]
    region = [REGIONS[person % 2] for person, _ in visits]  # nobody is in the east
    count = len(visits)
    return {
        "visits": pyarrow.table(
            {
                "patient": [person for person, _ in visits],
                "region": region,
                "cost": [float(100 * (visit + 1)) for _, visit in visits],
                "age": pyarrow.array([20 + person % 50 for person, _ in visits], pyarrow.int64()),
                "day": [datetime.date(2026, 1 + visit, 15) for _, visit in visits],
                "seen": [datetime.datetime(2026, 1 + visit, 15, 12) for _, visit in visits],
                "urgent": [visit == 0 for _, visit in visits],
                "drug": ["x" if visit else "y" for _, visit in visits],
                "Ward": ["a"] * count,
                "مدينة": ["جدة"] * count,
                "free": [1.0] * count,
            }
        ),
        "patients": pyarrow.table(
            {
                "id": list(range(people)),
                "sex": ["f" if person % 4 == 0 else "m" for person in range(people)],
                "region": [REGIONS[person % 2] for person in range(people)],
            }
        ),
        "stays": pyarrow.table({"stay": list(range(people)), "patient": list(range(people))}),
        "labs": pyarrow.table({"stay_id": list(range(people)) * 2, "level": [2.0] * people + [4.0] * people}),
        "areas": pyarrow.table({"region": ["north", "west"], "zone": ["inner", "outer"]}),
        "answers": pyarrow.table({"score": list(range(11)) * 10, "done": [True] * 110}),
    }


def count_within(most: int, least: int = 0) -> Aggregate:
    """A count with bounds, as SQL gives it from the declared rows of a unit."""
    return Aggregate("count", bounds=(least, most))


def opened() -> Database:
    """The clinic, with a budget in memory that is never used up."""
    return sitr.open(DECLARED, analyst="amina", ledger="memory://", frames=frames())
