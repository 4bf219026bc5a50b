"""Grids: an engine's numbers are clipped and rounded as Python's fractions are."""

import math
from fractions import Fraction

import ibis
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.tables.domains import FARTHEST, Domain
from sitr.tables.grid import clipped_steps, joinable, rounded, scaled, to_steps, whole, whole_key

CONNECTION = ibis.duckdb.connect()


def computed(value):
    return CONNECTION.to_pyarrow(value).as_py()


@given(st.floats(-(2**40), 2**40))
@settings(max_examples=50, deadline=None)
def test_halves_are_rounded_up(number):
    assert computed(rounded(ibis.literal(number))) == math.floor(number + 0.5)


@given(
    st.floats(allow_nan=False),
    st.sampled_from([Fraction(1), Fraction(1, 8), Fraction(4)]),
    st.integers(-1000, 0),
    st.integers(1, 1000),
)
@settings(max_examples=50, deadline=None)
def test_a_float_is_clipped_then_rounded(number, step, low, high):
    grid = Domain("number", step, low, high)
    clipped = min(max(number, float(low * step)), float(high * step))
    steps = computed(to_steps(ibis.literal(number, "float64"), Domain("number", float=True), grid))
    assert steps == math.floor(Fraction(clipped) / step + Fraction(1, 2))


@pytest.mark.parametrize(("number", "steps"), [(2**63 - 1, 7), (-(2**63), -7), (3, 3)])
def test_a_whole_number_is_clipped(number, steps):
    assert computed(clipped_steps(ibis.literal(number, "int64"), Domain("number", lower=-7, upper=7))) == steps


def test_a_factor_beyond_64_bits_is_of_nothing_but_zeros():
    assert computed(scaled(whole(0), FARTHEST + 1)) == 0
    assert computed(scaled(whole(3), 1000)) == 3000


def test_a_key_without_a_place_in_64_bits_is_missing():
    column = ibis.memtable(pyarrow.table({"x": pyarrow.array([5, 2**63 - 1, 2**63, 2**64 - 1], "uint64")}))["x"]
    for found in (whole_key(column), joinable(column)):
        assert CONNECTION.to_pyarrow(found).to_pylist() == [5, 2**63 - 1, None, None]
