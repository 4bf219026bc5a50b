"""Argument checks: whatever is passed, the answer is a number in the range or one clear error."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr import _validate
from sitr.errors import InvalidArgument
from tests.accounting.helpers import law

NOT_NUMBERS = [True, False, np.True_, "1", None, 1j, [], [1.0], {}, object, b"1", np.array([1.0])]
OUTSIDE = [
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -1e-300,
    1.0000001,
    1e300,
    10**400,
    -(10**400),
    10**5000,
    np.float64("nan"),
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidArgument, match=r"rate=.* is not a number in \[0, 1\]"):
        _validate.real("rate", value, 0, 1)


@pytest.mark.parametrize("value", OUTSIDE, ids=lambda v: f"{type(v).__name__}-{OUTSIDE.index(v) if v == v else 'nan'}")
def test_what_is_outside_is_refused_by_name_and_range(value):
    with pytest.raises(InvalidArgument, match=r"rate=.* is not in \[0, 1\]"):
        _validate.real("rate", value, 0, 1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1), Fraction(1, 3)], ids=repr)
def test_every_real_number_inside_becomes_a_float(value):
    number = _validate.real("rate", value, 0, 1)
    assert type(number) is float
    assert number == float(value)


def test_an_integer_past_the_largest_double_keeps_its_sign():
    assert _validate.real("order", 10**400, 1, math.inf) == math.inf
    with pytest.raises(InvalidArgument, match=r"order=-1000.* is not in \[1, ∞\]"):
        _validate.real("order", -(10**400), 1, math.inf)


def test_a_range_without_end_says_so():
    with pytest.raises(InvalidArgument, match=r"x=nan is not in \(-∞, ∞\)"):
        _validate.real("x", math.nan, -math.inf, math.inf, open_low=True, open_high=True)


def test_open_ends_are_outside():
    with pytest.raises(InvalidArgument, match=r"p=0 is not in \(0, 1\)"):
        _validate.real("p", 0, 0, 1, open_low=True, open_high=True)
    with pytest.raises(InvalidArgument, match=r"p=1 is not in \(0, 1\)"):
        _validate.real("p", 1, 0, 1, open_low=True, open_high=True)


@law(200)
@given(st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none(), st.complex_numbers(), st.fractions()))
def test_nothing_but_one_error_escapes(value):
    try:
        number = _validate.real("rate", value, 0, 1)
    except InvalidArgument as error:
        assert error.what.startswith("rate=")  # noqa: PT017
    else:
        assert 0 <= number <= 1


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.0, 1.5, math.nan, math.inf], ids=repr)
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InvalidArgument, match=r"count=.* is not a whole number in \[1, 10\]"):
        _validate.integer("count", value, 1, 10)


@pytest.mark.parametrize("value", [0, -1, 11, 10**400, 10**5000], ids=["0", "-1", "11", "1e400", "1e5000"])
def test_a_whole_number_outside_is_refused(value):
    with pytest.raises(InvalidArgument, match=r"count=.* is not in \[1, 10\]"):
        _validate.integer("count", value, 1, 10)


def test_a_numpy_integer_is_a_whole_number():
    assert _validate.integer("count", np.int32(3), 1, 10) == 3


@pytest.mark.parametrize("values", [0.5, [0.5], [[0.1, 0.2], [0.3, 0.4]], np.zeros((2, 3)), []])
def test_arrays_keep_their_shape(values):
    assert _validate.reals("x", values, 0, 1).shape == np.shape(values)


@pytest.mark.parametrize(
    "values", [[0.5, 2], [True], np.array([True]), ["1"], [[1], [1, 2]], None, {}, [None]], ids=repr
)
def test_one_bad_entry_refuses_the_array(values):
    with pytest.raises(InvalidArgument, match="x="):
        _validate.reals("x", values, 0, 1)


@pytest.mark.parametrize("value", ["c", None, 1, [], math.nan], ids=repr)
def test_a_choice_names_what_is_allowed(value):
    with pytest.raises(InvalidArgument, match=r"side=.* is not one of 'a', 'b'"):
        _validate.choice("side", value, ("a", "b"))


def test_long_values_are_cut_in_the_message():
    with pytest.raises(InvalidArgument) as caught:
        _validate.choice("side", "x" * 1000, ("a", "b"))
    assert len(str(caught.value)) < 200


def test_a_close_name_is_suggested_and_a_far_one_is_not():
    assert _validate.meant("max_row_per_unit", ["unit", "max_rows_per_unit"]) == "Did you mean 'max_rows_per_unit'? "
    assert _validate.meant("zzz", ["unit", "max_rows_per_unit"]) == ""
