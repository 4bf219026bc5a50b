"""Cells: every output has one, and a set of cells is said in words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.audit.cells import Bins, Labels, LowBits, lowest_bit, size
from sitr.audit.samples import Sample

FINITE = st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: value != 0)


def column(*values):
    return Sample(list(values), np.array(values, dtype=float).reshape(-1, 1), plain=True)


@given(FINITE)
def test_the_lowest_bit_divides_and_its_double_does_not(value):
    exponent = int(lowest_bit(np.array([value]))[0])
    numerator, denominator = value.as_integer_ratio()
    assert denominator == 2 ** max(-exponent, 0) or exponent > 0
    assert (numerator // 2 ** max(exponent, 0)) % 2 == 1
    assert 2.0 ** int(size(np.array([value]))[0]) <= abs(value)


def test_what_has_no_lowest_bit_is_apart():
    bits = lowest_bit(np.array([0.0, math.nan, math.inf, 1.0]))
    assert len(set(bits[:3].tolist())) == 1
    assert bits[0] != bits[3]


def test_patterns_by_size_are_apart():
    low = LowBits(0, "output", sized=True)
    values = [s * m * 2.0**e for e in (-1074, -600, -3, 0, 900) for m in (1, 1.5, 1.25) for s in (1, -1)] + [0.0]
    cells = low.cells(column(*values))
    pairs = set(zip(lowest_bit(np.array(values)).tolist(), size(np.array(values)).tolist(), strict=True))
    assert len(set(cells.tolist())) == len(pairs)
    assert low.words(low.cells(column(0.75, 2.5))) == (
        "lowest set bit of output by its size is one of 2 patterns, such as 2^-2 at size 2^-1"
    )


@given(st.lists(st.floats(), min_size=2, max_size=50), st.floats())
def test_every_number_has_a_bin(values, other):
    bins = Bins.of(column(*values), column(*values))
    cells = bins.cells(column(*values, other))
    assert len(cells) == len(values) + 1
    assert bins.words(np.unique(cells))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([2, 3], "output ≤ 6"),
        ([4], "output > 6"),
        ([3], "output in (4, 6]"),
        ([0, 4], "output = 0 or > 6"),
        ([0, 1], "output = 0, 1"),
        ([2, 3, 4], "output any other"),
        ([-1], "output no number"),
    ],
)
def test_bins_in_words(cells, words):
    bins = Bins(np.array([0.0, 1.0]), np.array([4.0, 6.0]), 0, "output")
    assert bins.words(np.array(cells)) == words


def test_long_lists_are_cut_short():
    sample = Sample([f"name {k}" for k in range(20)], np.zeros((20, 0)))
    labels = Labels(sample)
    words = labels.words(labels.cells(sample))
    assert words.startswith("output is 'name 0', ")
    assert words.endswith("… (20 in all)")
    long = Sample(["x" * 100], np.zeros((1, 0)))
    assert len(Labels(long).words(Labels(long).cells(long))) < 60
    alternate = Bins(np.array([]), np.arange(20.0), 0, "output")
    assert alternate.words(np.arange(1, 20, 2)).endswith("or …")
