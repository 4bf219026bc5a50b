"""A table of visits of every type, with what is declared of it; smokers are old and have the flu."""

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow

PEOPLE, DAY = 3000, date(2020, 1, 1)
DECLARED = {
    "privacy": {"delta": 1e-8, "unit": "patient"},
    "budgets": {"test": {"epsilon": 20.0, "delta": 1e-6}},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows_per_unit": 4,
            "expected_units": PEOPLE,
            "expected_rows": 2 * PEOPLE,
            "columns": {
                "patient": {"type": "integer"},
                "age": {"type": "integer", "bounds": [0, 99], "nulls": "drop"},
                "cost": {"type": "float", "bounds": [0, 1000]},
                "price": {"type": "decimal(8, 2)", "bounds": [0, 20]},
                "smokes": {"type": "boolean", "nulls": "drop"},
                "region": {"type": "string", "categories": ["north", "south"]},
                "diagnosis": {"type": "string"},
                "day": {"type": "date", "bounds": [DAY, DAY + timedelta(days=365)]},
                "at": {"type": "timestamp", "bounds": [datetime(2020, 1, 1), datetime(2021, 1, 1)]},
            },
        }
    },
}


def visits():
    """Smokers are old and have the flu; every tenth cost is missing."""
    rng = np.random.default_rng(1)
    rows = 2 * PEOPLE
    smokes = rng.random(rows) < 0.4
    cost = np.where(rng.random(rows) < 0.1, np.nan, rng.gamma(2, 100, rows))
    diagnosis = np.where(smokes, "flu", np.where(rng.random(rows) < 0.5, "cold", "cough"))
    days = rng.integers(0, 366, rows)
    return pyarrow.table(
        {
            "patient": np.arange(rows) % PEOPLE,
            "age": np.clip(rng.normal(np.where(smokes, 70, 30), 8).round(), 0, 99).astype(int),
            "cost": cost,
            "price": pyarrow.array((rng.integers(0, 2000, rows) / 100).round(2)).cast(pyarrow.decimal128(8, 2)),
            "smokes": smokes,
            "region": np.where(rng.random(rows) < 0.3, "north", "south"),
            "diagnosis": pyarrow.array(["rare disease of one person", *diagnosis[1:].tolist()]),
            "day": [DAY + timedelta(days=int(one)) for one in days],
            "at": [datetime(2020, 1, 1) + timedelta(days=int(one), seconds=7) for one in days],
        }
    )
