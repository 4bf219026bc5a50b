"""Tallies: what a bound on a unit means for counts, and how wide a measure is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.domains import Domain
from sitr.tables.expressions import Column
from sitr.tables.tally import Bound, Measure


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 8), st.integers(1, 8))
def test_a_unit_moves_counts_no_further_than_its_bound_says(rows, groups, most):
    """Rows of a unit in each group, cut by the bound: brute force against `l1` and `l2`."""
    bound = Bound(groups=groups, rows_per_group=most)
    kept = [min(one, most) for one in rows][:groups]
    assert sum(kept) <= bound.l1
    assert math.hypot(*kept) <= bound.l2 + 1e-12
    assert (len(kept) <= bound.most_groups, max(kept) <= bound.most_in_group) == (True, True)
    assert (bound.l1, bound.l2) == (groups * most, math.sqrt(groups) * most)


@given(st.integers(1, 100))
def test_a_bound_on_rows_lets_all_of_them_be_in_one_group(rows):
    bound = Bound(rows=rows)
    assert (bound.l1, bound.l2, bound.most_groups, bound.most_in_group) == (rows, rows, rows, rows)


@pytest.mark.parametrize(
    "wrong", [{}, {"groups": 1}, {"rows_per_group": 1}, {"rows": 1, "groups": 1}, {"rows": 1, "rows_per_group": 2},
              {"rows": 1, "groups": 1, "rows_per_group": 1}]
)  # fmt: skip
def test_a_bound_is_on_rows_or_on_groups(wrong):
    with pytest.raises(InvalidArgument, match="a bound is on rows"):
        Bound(**wrong)


def test_the_width_of_a_measure():
    assert Measure(Column("age"), Domain("number", lower=-5, upper=120)).width == 125
