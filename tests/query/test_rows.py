"""Rows of an answer: sorted with missing values last, and taken with their intervals."""

import itertools
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.query.rows import in_order, taken
from tests.query.test_answer import made


@given(st.lists(st.one_of(st.none(), st.integers(-3, 3))), st.booleans(), st.booleans())
def test_rows_are_sorted_with_missing_values_at_one_end(values, descending, nulls_first):
    rows = in_order(range(len(values)), values, descending=descending, nulls_first=nulls_first)
    assert sorted(rows) == list(range(len(values)))
    found = [values[at] for at in rows]
    there = [one for one in found if one is not None]
    assert there == sorted(there, reverse=descending)
    missing = [None] * (len(values) - len(there))
    assert found == (missing + there if nulls_first else there + missing)
    for one, other in itertools.pairwise(rows):  # those that are equal stay as they stood
        assert values[one] != values[other] or one < other


@pytest.mark.parametrize("values", [["a", 1, "b"], [date(2025, 1, 1), datetime(2024, 1, 1)]])
def test_what_has_no_order_is_sorted_by_its_text(values):
    assert [values[at] for at in in_order(range(len(values)), values)] == sorted(values, key=str)


def test_rows_are_taken_with_all_that_belongs_to_them():
    found = taken(made(), [2, 0])
    assert found.value["region"] == ["=HYPERLINK(1)", "north"]
    assert (found.value["n"], found.raw["n"]) == ([7, 10], [7.0, 10.0])
    assert (found.low["n"], found.high["n"], found.error95["n"]) == ([1.0, 4.0], [13.0, 16.0], [6.0, 6.0])
    assert (found.event, found.entry, found.notes) == (made().event, made().entry, made().notes)
