"""Consistency: counts are whole, not negative, add up to the rounded total, and stay where nothing is wrong."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sitr.query.consistency import counts

raws = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40).map(np.array)


@given(raws)
def test_counts_are_whole_not_negative_and_add_up(raw):
    found = counts(raw)
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.sum() == max(round(float(raw.sum())), 0)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40).map(lambda whole: np.array(whole, dtype=float)))
def test_counts_that_are_right_already_stay(raw):
    assert counts(raw).tolist() == raw.tolist()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40).map(np.array))
def test_counts_that_are_not_negative_are_only_rounded(raw):
    assert np.abs(counts(raw) - raw).max() <= 1 + 1e-6


@given(raws)
def test_a_larger_count_stays_no_smaller(raw):
    found = counts(raw)
    order = np.argsort(raw, kind="stable")
    assert np.all(np.diff(found[order]) >= -1)  # but for the rounding


def test_no_groups_and_nothing_left():
    assert counts(np.empty(0)).tolist() == []
    assert counts(np.array([-5.0, 2.0])).tolist() == [0, 0]


def test_noise_of_any_size_leaves_counts():
    """By a tiny ε the noise is larger than any count; what was charged shall have an answer."""
    for raw in ([3e18, -2e18], [1e17] * 3, [-1e300, 1e300]):
        made = counts(np.array(raw))
        assert (made >= 0).all()
        assert made.sum() <= 2**52
