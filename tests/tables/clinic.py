"""A small clinic for tests: its declaration, its rows, and the database that holds both."""

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow

from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB

REGIONS = ["east", "north", "south", "west"]
VISITS = {
    "unit": "patient",
    "max_rows_per_unit": 4,
    "columns": {
        "patient": {"type": "integer"},
        "region": {"type": "string", "categories": REGIONS},
        "ward": {"type": "string"},
        "age": {"type": "integer", "bounds": [0, 120], "nulls": "drop"},
        "cost": {"type": "float", "bounds": [0, 1000]},
        "change": {"type": "float", "bounds": [-50, 100]},
        "paid": {"type": "decimal(10,2)", "bounds": [0, 500]},
        "urgent": {"type": "boolean"},
        "day": {"type": "date", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
        "at": {"type": "timestamp"},
    },
}
LABS = {
    "unit": "row",
    "dataset": "labs",  # of its own: a budget promises to protect one kind of unit
    "columns": {"ward": {"type": "string"}, "level": {"type": "float", "bounds": [-1, 1]}},
}
WARDS = {"public": True, "key": "ward", "columns": {"ward": {"type": "string"}, "beds": {"type": "int16"}}}
CONTENT = {
    "sitr": 1,
    "name": "clinic",
    "privacy": {"delta": 1e-6},
    "tables": {"visits": VISITS, "labs": LABS, "wards": WARDS},
    "budgets": {name: {"epsilon": 1000.0, "delta": 1e-3} for name in ("clinic", "labs")},
}


def declared(**changes):
    return Declaration.of(CONTENT | changes)


def visits(patients=200, rows=3, seed=1):
    random = np.random.default_rng(seed)
    size = patients * rows
    days = [date(2024, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 366, size)]
    return pyarrow.table(
        {
            "patient": np.repeat(np.arange(patients), rows),
            "region": random.choice(REGIONS, size),
            "ward": random.choice(["a", "b", "c"], size, p=[0.5, 0.4, 0.1]),
            "age": random.integers(0, 121, size),
            "cost": np.where(random.random(size) < 0.1, np.nan, random.gamma(2, 100, size)),
            "change": random.normal(10, 30, size),
            "paid": pyarrow.array(np.round(random.uniform(0, 500, size), 2)),
            "urgent": random.random(size) < 0.3,
            "day": days,
            "at": pyarrow.array([datetime(one.year, one.month, one.day, 9) for one in days]),
        }
    )


def labs(size=300, seed=2):
    random = np.random.default_rng(seed)
    return pyarrow.table({"ward": random.choice(["a", "b"], size), "level": random.uniform(-1, 1, size)})


def wards():
    return pyarrow.table({"ward": ["a", "b", "d"], "beds": pyarrow.array([10, 20, 5], "int16")})


def frames(**changes):
    return {"visits": visits(), "labs": labs(), "wards": wards()} | changes


def source(**changes):
    return DuckDB(declared(), frames(**changes))


def database(content=None, **changes):
    declaration = declared() if content is None else Declaration.of(content)
    return opened(declaration, ledger="memory://", analyst="amina", frames=frames(**changes))
