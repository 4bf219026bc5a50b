"""Columns of numbers on a grid, and the grid points between two public bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms.columns import Span, checked_bounds, column


@pytest.mark.parametrize("values", [[], (), np.array([])])
def test_a_column_may_be_empty(values):
    assert column("scores", values, None, 10).tolist() == []


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=9))
def test_whole_numbers_stay_what_they_are(values):
    assert column("scores", values, None, 10).tolist() == values
    assert column("scores", np.array(values), -3, 10).tolist() == [8 * value for value in values]


@pytest.mark.parametrize(
    "values", ["secret", b"secret", 31337, None, ["31337"], [31337.5], [math.nan], [[31337]], {31337}, [None]]
)
def test_what_is_no_column_of_whole_numbers_is_refused_and_not_shown(values):
    with pytest.raises(InvalidArgument, match="scores is not a sequence of whole numbers") as refused:
        column("scores", values, None, 10)
    assert "31337" not in str(refused.value)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_no_more_numbers_than_are_allowed():
    assert len(column("scores", range(10), None, 10)) == 10
    with pytest.raises(InvalidArgument, match="scores has more than 10 numbers"):
        column("scores", range(11), None, 10)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e9))
def test_the_points_of_a_span_lie_inside_the_bounds_and_close_to_them(low, width):
    high = low + width
    assume(low < high)
    span = Span.of((low, high), integers=False)
    first, last = span.lower * span.step, span.upper * span.step
    assert Fraction(low) <= first < Fraction(low) + span.step
    assert Fraction(high) - span.step < last <= Fraction(high)
    assert (Fraction(high) - Fraction(low)) / span.step > 2**20 - 1  # the width is rounded to a double first
    assert span.value(span.lower) == first


def test_whole_bounds_are_points_themselves():
    span = Span.of((-3, 7), integers=True)
    assert (span.lower, span.upper, span.step, span.value(7)) == (-3, 7, 1, 7)
    finer = Span.of((0.0, 1.0), integers=False, finest=Fraction(1, 1000))
    assert finer.step < Span.of((0.0, 1.0), integers=False).step


def test_bounds_that_are_too_far_from_nothing_for_their_distance():
    with pytest.raises(InvalidArgument, match="times their distance from 0") as refused:
        Span.of((1e14, 1e14 + 1), integers=False)
    assert "Subtract a public constant" in refused.value.do


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (0,), (0, 1, 2), 3, None, "ab", (0, math.nan), (0, math.inf), (0, True)]
)
@pytest.mark.parametrize("integers", [True, False])
def test_what_is_no_pair_of_bounds(bounds, integers):
    with pytest.raises(InvalidArgument, match="bounds"):
        checked_bounds(bounds, integers)
