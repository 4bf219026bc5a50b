"""The nearest histogram: held against every histogram there is, where there are few."""

from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms.lattice import RULES, nearest_histogram

whole = st.integers(-9, 12).map(float)
halves = st.integers(-18, 24).map(lambda twice: twice / 2)
any_number = st.floats(-9, 12)
noisy_counts = st.one_of(*(st.lists(kind, min_size=1, max_size=5) for kind in (whole, halves, any_number)))


@cache
def all_histograms(cells, total):
    """Every way to put so many rows into so many cells: bars between stars."""
    last = total + cells - 1
    return np.array([np.diff([-1, *bars, last]) - 1 for bars in combinations(range(last), cells - 1)])


def nearest(noisy, total, power):
    return (np.abs(all_histograms(len(noisy), total) - noisy) ** power).sum(axis=1).min()


@given(noisy_counts, st.integers(0, 7), st.sampled_from(RULES))
@settings(max_examples=2000)
def test_no_histogram_is_nearer(noisy, total, rule):
    noisy = np.array(noisy)
    made = nearest_histogram(noisy, total, rule=rule)
    assert made.sum() == total
    assert (made >= 0).all()
    assert np.abs(made - noisy).sum() <= nearest(noisy, total, 1) + 1e-9


@given(noisy_counts, st.integers(0, 7), st.sampled_from([1.5, 2, 3]))
@settings(max_examples=500)
def test_level_is_nearest_in_every_norm(noisy, total, power):
    noisy = np.array(noisy)
    made = nearest_histogram(noisy, total)
    assert (np.abs(made - noisy) ** power).sum() <= nearest(noisy, total, power) * (1 + 1e-12) + 1e-9


@given(st.lists(st.integers(-50, 400), min_size=2, max_size=60), st.integers(0, 4000), st.sampled_from(RULES))
def test_whole_numbers_and_floats_give_the_same(noisy, total, rule):
    one, other = (nearest_histogram(np.array(noisy, dtype=kind), total, rule=rule) for kind in (np.int64, float))
    assert one.tolist() == other.tolist()


@given(st.lists(st.integers(-50, 400), min_size=2, max_size=60), st.integers(0, 4000), st.sampled_from(RULES))
def test_a_larger_count_stays_no_smaller(noisy, total, rule):
    made = nearest_histogram(noisy, total, rule=rule)
    order = np.lexsort((made, noisy))
    assert all(
        made[one] <= made[other]
        for one, other in pairwise(order)
        if noisy[one] < noisy[other]
    )  # fmt: skip


def test_what_cells_that_are_equal_get_depends_on_their_places_alone_and_is_spread_evenly():
    made = nearest_histogram(np.zeros(1000), 100)
    assert set(made) == {0, 1}
    assert (made == nearest_histogram(np.full(1000, 7.0), 100)).all()
    assert {int(part.sum()) for part in made.reshape(10, 100)} <= set(range(8, 13))


def test_the_rules_differ_where_most_cells_are_empty():
    noisy = np.array([500, 3, -4, 2, 0, 5, -1])
    assert nearest_histogram(noisy, 500).tolist() == [498, 0, 0, 0, 0, 2, 0]
    assert nearest_histogram(noisy, 506, rule="smallest").tolist() == [500, 1, 0, 0, 0, 5, 0]
    assert nearest_histogram(noisy, 255, rule="proportional").tolist() == [250, 1, 0, 1, 0, 3, 0]
    assert nearest_histogram(noisy, 600, rule="smallest").tolist()[0] > 580


def test_tables_keep_their_shape():
    made = nearest_histogram(np.arange(12).reshape(3, 4), 66)
    assert made.shape == (3, 4)
    assert (made == np.arange(12).reshape(3, 4)).all()


@pytest.mark.parametrize("noisy", [[], [float("nan")], [float("inf")], ["a"], [2.0**60]])
def test_what_is_no_count_is_refused(noisy):
    with pytest.raises(InvalidArgument):
        nearest_histogram(noisy, 3)
