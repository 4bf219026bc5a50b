"""Rows on a grid: what each becomes, whatever it holds, and sums that no order and no size can change."""

import math
import random
import warnings
from collections import deque
from contextlib import nullcontext, suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms.rows import CHUNK, FARTHEST, Rows, read

BOUNDS = [(0.0, 1.0), (-3.3, 120.1), (1e6, 1e6 + 0.1), (-1e15, 1e15), (-1e-9, 0.0)]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("finest", [1, 7, 1000, 2**40])
@pytest.mark.parametrize("reach", ["width", "size"])
def test_the_grid_is_the_finest_that_is_allowed(bounds, finest, reach):
    low, high = map(Fraction, bounds)
    size = max(-low, high)
    apart = high - low if reach == "width" else size
    coarse = finest < 1000 or (reach == "size" and size > finest * (high - low))
    with suppress(InvalidArgument) if coarse else nullcontext():  # no two grid points lie between the bounds
        rows = Rows.of(bounds, None, finest=finest, reach=reach)
        step = rows.span.step
        assert apart <= finest * step
        assert size <= FARTHEST * step
        assert apart > finest * step / 2 or size > FARTHEST * step / 2
        assert low <= rows.span.lower * step < rows.span.upper * step <= high
        assert rows.width == rows.span.upper - rows.span.lower


@given(st.lists(st.floats(-200, 200) | st.just(math.nan) | st.just(math.inf) | st.none(), max_size=30))
def test_each_row_is_clipped_and_rounded_by_itself(values):
    """The reference is Python's own rounding of exact fractions."""
    rows = Rows.of((-3.3, 120.1), None, finest=10_000)
    step, expected = rows.span.step, []
    for value in values:
        if value is None or math.isnan(value):
            continue
        clipped = min(max(value, -3.3), 120.1)
        expected.append(min(max(round(Fraction(clipped) / step), rows.span.lower), rows.span.upper) - rows.span.lower)
        assert abs((expected[-1] + rows.span.lower) * step - Fraction(clipped)) < step
    sums = rows.power_sums("values", values, 2)
    assert sums == (len(expected), sum(expected), sum(k * k for k in expected))


@given(st.lists(st.integers(-(2**70), 2**70), max_size=50), st.randoms())
def test_whole_numbers_are_added_exactly_in_any_order(values, order):
    rows = Rows.of((-(2**48), 2**48), None, finest=1, integers=True)
    shuffled = list(values)
    order.shuffle(shuffled)
    clipped = [min(max(value, -(2**48)), 2**48) + 2**48 for value in values]
    assert rows.power_sums("values", values, 1) == (len(values), sum(clipped))
    assert rows.power_sums("values", shuffled, 1) == rows.power_sums("values", values, 1)


def test_sums_go_on_beyond_int64_and_over_chunks():
    rows = Rows.of((0, 2**48), None, finest=1, integers=True)
    count = 3 * CHUNK + 17  # 2^48 times 2^17.6 is beyond 2^63
    assert rows.power_sums("values", np.full(count, 2**60), 1) == (count, count * 2**48)


def test_what_is_missing_is_left_out_or_stands_for_a_number():
    values = [math.nan, None, "two", [3], 1 + 2j, Decimal("sNaN"), object(), np.datetime64("2020-01-01")]
    left = Rows.of((0, 10), None, finest=10, integers=True)
    stands = Rows.of((0, 10), 4, finest=10, integers=True)
    assert left.power_sums("values", values, 1) == (0, 0)
    assert stands.power_sums("values", values, 1) == (len(values), 4 * len(values))
    assert stands.power_sums("values", [*values, 7], 1) == (len(values) + 1, 4 * len(values) + 7)


@pytest.mark.parametrize(
    "strange", ["two", None, 10**400, -(10**400), Decimal("1e999"), 2**64, True, Fraction(1, 3), ()]
)
@pytest.mark.parametrize("few", [1, 5, 9])
def test_one_row_changes_nothing_about_the_others(strange, few):
    """A row may change how the list is read; what the others add stays the same, and nothing is said."""
    rows = Rows.of((-1e15, 1e15), None, finest=2**40)
    generator = random.Random(1)
    kinds = [
        2**53 + 1,
        0.1,
        -7,
        1e300,
        -1e14 / 3,
        np.float32(0.1),
        np.int64(2**62 + 1),
        np.array(3.0),
        np.longdouble("0.1"),
    ]
    others = [generator.choice(kinds[:few]) for _ in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone, together = (rows.power_sums("values", values, 1) for values in ([strange], [*others, strange]))
        apart = [rows.power_sums("values", [other], 1) for other in [*others, strange]]
        assert together == tuple(np.add(rows.power_sums("values", others, 1), alone))
        assert together == tuple(map(sum, zip(*apart, strict=True)))


def test_columns_of_many_kinds_are_read():
    expected = [1.0, 0.0, 3.0]
    for kind in (np.int8, np.uint64, np.float16, np.float32, np.longdouble, object):
        assert read("values", np.array([1, 0, 3], dtype=kind)).tolist() == expected
    assert read("values", np.array([True, False])).tolist() == [1.0, 0.0]
    masked = read("values", np.ma.MaskedArray([1, 2], mask=[False, True]))
    assert masked[0] == 1
    assert math.isnan(masked[1])
    assert read("values", np.array([np.longdouble("1e4000")])).tolist() == [math.inf]
    assert read("values", []).size == read("values", ()).size == 0
    assert read("values", range(3)).tolist() == read("values", deque([0, 1, 2])).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "values",
    ["secret", b"secret", None, 31337, 3.5, {}, {1, 2}, np.zeros((2, 2)), np.array(["secret"]), np.array(3)],
    ids=repr,
)
def test_what_is_no_column_is_refused_by_its_type_alone(values):
    with pytest.raises(InvalidArgument, match="values is not a column of numbers") as refusal:
        read("values", values)
    assert "secret" not in refusal.value.what
    assert "31337" not in refusal.value.what


def test_masks_of_object_columns_and_rows_that_raise_are_missing():
    assert np.isnan(read("values", np.ma.array([1, 7], mask=[0, 1], dtype=object))).tolist() == [False, True]

    class Strange(float):
        def __float__(self):
            raise RuntimeError("secret")

    assert np.isnan(read("values", [1.0, Strange()])).tolist() == [False, True]
