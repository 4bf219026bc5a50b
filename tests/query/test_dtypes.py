"""Columns in pandas: of the dtype of what they hold, and with the same cells."""

from datetime import date, datetime

import pandas
import pytest

import sitr
from sitr.query.dtypes import pandas_dtype
from tests.session import clinic


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        ([3, 0, None], "Int64"),
        ([2**63 - 1, -(2**63)], "Int64"),
        ([2**63], None),
        ([-(2**63) - 1], None),
        ([True, False, None], "boolean"),
        ([True, 1], None),
        ([1, 2.5, None], None),
        ([date(2025, 7, 1), None], "datetime64[us]"),
        ([date(1, 1, 1), date(9999, 12, 31)], "datetime64[us]"),
        ([datetime(2025, 7, 1, 12, 30, 0, 5)], "datetime64[us]"),
        ([date(2025, 7, 1), datetime(2025, 7, 1, 12)], "datetime64[us]"),
        (["north", None], None),
        ([None, None], None),
        ([], None),
    ],
    ids=str,
)
def test_a_column_has_the_dtype_of_its_cells(cells, dtype):
    assert pandas_dtype(cells) == dtype
    series = pandas.Series(cells, dtype=pandas_dtype(cells))
    assert series.isna().tolist() == [cell is None for cell in cells]
    for held, cell in zip(series, cells, strict=True):
        if cell is None:
            continue
        if isinstance(cell, date) and not isinstance(cell, datetime):
            cell = datetime(cell.year, cell.month, cell.day)
        assert held == cell


def test_months_and_conditions_of_a_whole_answer():
    with clinic.opened() as database:
        visits = database.table("visits")
        keys = {"month": visits["day"].truncate("month"), "late": visits["day"] >= "2025-07-01"}
        asked = visits.group_by("urgent", values={"urgent": [True, False]}, **keys)
        frame = (
            asked.aggregate(n=sitr.count(), cost=sitr.mean("cost", bounds=(0, 100))).release(epsilon=1.0).to_pandas()
        )
    assert dict(frame.dtypes.astype(str)) == {
        "urgent": "boolean", "month": "datetime64[us]", "late": "boolean",
        "n": "Int64", "n_low": "float64", "n_high": "float64",
        "cost": "float64", "cost_low": "float64", "cost_high": "float64",
    }  # fmt: skip
    assert frame["month"].dt.month.min() == 1
    assert frame["n"].sum() > 0
