"""Values: numbers of different kinds are compared, and constants have 64 bits."""

from decimal import Decimal

import pyarrow
import pytest

import sitr
from tests.tables.exact import database, exact


def test_decimals_of_two_scales_and_whole_numbers_are_compared():
    table = pyarrow.table(
        {
            "a": [10**15, 1, -(2**63)],
            "b": pyarrow.array([Decimal("1.5"), Decimal("1"), None], pyarrow.decimal128(38, 30)),
            "c": pyarrow.array([Decimal(10) ** 37, Decimal(1), Decimal(-1)], pyarrow.decimal128(38, 0)),
        }
    )
    columns = {"a": {"type": "integer"}, "b": {"type": "decimal(38,30)"}, "c": {"type": "decimal(38,0)"}}
    with database(columns, table) as one:
        rows = one.table("t")
        for left, right, number in [("a", "b", 1.0), ("b", "a", 2.0), ("a", "c", 3.0), ("b", "c", 2.0)]:
            assert exact(rows.filter(rows[left] <= rows[right]).aggregate(x=sitr.count())) == [number], (left, right)
        assert exact(rows.filter(rows["b"] < 10**11).aggregate(x=sitr.count())) == [2.0]


def test_a_constant_in_place_of_a_missing_value_has_64_bits():
    """On a grid of 2^20 steps 3000 is 3·10^9 steps: as 32 bits it would overflow, and only where a value is missing."""
    table = pyarrow.table({"x": [0.5, None], "f": [True, False]})
    with database({"x": {"type": "float", "bounds": [0, 1]}, "f": {"type": "boolean"}}, table) as one:
        rows = one.table("t")
        filled = rows.derive(y=rows["x"].fill_null(3000))
        assert exact(filled.aggregate(x=sitr.sum("y"))) == [pytest.approx(3000.5, rel=1e-3)]
        assert filled.aggregate(x=sitr.sum("y")).release(epsilon=1.0).private
