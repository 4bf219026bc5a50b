"""A made-up clinic: 1,000 patients with one visit each, 1,000 with two and 500 with eight."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow

import sitr
from sitr.session.database import Database
from sitr.tables.declaration import Declaration

SIZES = {1: 1000, 2: 1000, 8: 500}
ROWS = sum(size * units for size, units in SIZES.items())

DECLARED: dict[str, Any] = {
    "sitr": 1,
    "name": "clinic",
    "budgets": {"clinic": {"epsilon": 1000.0}},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows_per_unit": 20,
            "columns": {
                "patient": {"type": "integer"},
                "cost": {"type": "float"},
                "day": {"type": "date", "bounds": [date(2025, 1, 1), date(2025, 12, 31)]},
                "urgent": {"type": "boolean"},
                "region": {"type": "string", "categories": ["north", "south"]},
            },
        }
    },
}


def visits() -> pyarrow.Table:
    """Costs of 1 to 99; every fourth visit is urgent; patients of even number live in the north."""
    patients = [size * 10_000 + unit for size, units in SIZES.items() for unit in range(units) for _ in range(size)]
    places = range(len(patients))
    return pyarrow.table(
        {
            "patient": patients,
            "cost": [1.0 + place % 99 for place in places],
            "day": [date(2025, 1, 1) + timedelta(days=place % 365) for place in places],
            "urgent": [place % 4 == 0 for place in places],
            "region": [("north", "south")[patient % 2] for patient in patients],
        }
    )


def opened() -> Database:
    """The clinic with a ledger in memory."""
    return sitr.open(Declaration.of(DECLARED), analyst="amina", ledger="memory://", frames={"visits": visits()})
