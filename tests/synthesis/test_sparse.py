"""The histogram of what occurs: what it costs, what stays unnamed, and what is drawn as other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms import select_partitions
from sitr.synthesis import OTHER, SparseHistogram, sparse_histogram
from tests.mechanisms.statistics import ALARM
from tests.mechanisms.test_partitions import group_law, joint
from tests.mechanisms.truths import keeps_its_promise, laplace_mass, laplace_tail


def number_law(scale, count, far=60):
    """A noisy number of rows, with all that is far on either side as one outcome each."""
    found = {seen: laplace_mass(scale, seen - count) for seen in range(-far, far + 1)}
    return found | {"low": laplace_tail(scale, far + 1 + count), "high": laplace_tail(scale, far + 1 - count)}


def test_a_cell_and_the_number_of_rows_are_told_no_better_than_the_event_says():
    made = sparse_histogram(epsilon=2.0, delta=0.01)
    scale = made._rows.scale
    for count in (0, 1, made.threshold):
        laws = [joint(group_law(made._cells, rows), number_law(scale, rows + 3)) for rows in (count, count + 1)]
        keeps_its_promise(made.event, *laws, (0.0, 0.5, 1.0, 2.0))


@given(st.floats(0.01, 20), st.floats(1e-12, 0.1), st.sampled_from(["add_remove", "replace_one"]), st.booleans())
def test_all_of_it_costs_what_was_asked(epsilon, delta, adjacency, public):
    total = 5 if public and adjacency == "replace_one" else None
    made = sparse_histogram(epsilon=epsilon, delta=delta, adjacency=adjacency, total=total)
    assert made.event.adjacency == adjacency
    rounding = 1e-13 if total else 0  # of the accountant, who adds up two halves
    assert made.event.epsilon(delta=delta).upper <= epsilon * (1 + rounding)
    assert (made.event == select_partitions(epsilon=epsilon, delta=delta, adjacency=adjacency).event) == bool(total)


@given(st.dictionaries(st.integers() | st.text(max_size=3), st.integers(0, 200), max_size=8), st.booleans())
def test_what_leaves_is_named_or_other(counts, public):
    rows = sum(counts.values())
    adjacency, total = ("replace_one", rows) if public else ("add_remove", None)
    made = sparse_histogram(epsilon=1.0, delta=1e-6, adjacency=adjacency, total=total)
    found = made.release(counts, unsafe_seed=1).value
    assert found.counts.keys() <= {cell for cell, count in counts.items() if count}
    assert all(count >= made.threshold for count in found.counts.values())
    assert found.other == max(found.total - sum(found.counts.values()), 0)
    assert not public or found.total == rows
    assert found.total >= 0


def test_what_is_rare_stays_unnamed_and_is_drawn_as_other():
    counts = {"flu": 6000, "cold": 3000, **{f"rare {number}": 1 for number in range(1000)}}
    made = sparse_histogram(epsilon=1.0, delta=1e-9, adjacency="replace_one", total=10_000)
    found = made.release(counts).value  # a cell of one row is named less than once in 10^9 releases, of 1,000 in 10^6
    assert set(found.counts) <= {"flu", "cold"}
    drawn = found.sample(100_000, seed=1)
    assert set(drawn) == {"flu", "cold", OTHER}
    assert drawn.count(OTHER) / 1000 == pytest.approx(10, abs=1)
    assert made.chance(1) <= 1e-9


@pytest.mark.statistical
def test_the_number_of_rows_is_right_on_average():
    """The mean of 2,000 noises of scale 10/ε: off by more than 7 deviations, 7 · 20√2/√2000 = 4.4, once in 10^9."""
    made = sparse_histogram(epsilon=0.5, delta=1e-6)
    found = [made.release({"a": 1000}).value.total for _ in range(2000)]
    assert np.mean(found) == pytest.approx(1000, abs=4.5)
    assert made._rows.scale == pytest.approx(20)
    assert math.exp(-(7**2) / 2) < ALARM


def test_a_seed_draws_the_same_rows_again():
    one = SparseHistogram({"a": 3, None: 1}, 5)
    assert one.sample(50, seed=4) == one.sample(50, seed=4)
    assert one.sample(0) == []
    assert set(one.sample(1000, seed=1)) == {"a", None, OTHER}  # a null is a value, and not other
    assert repr(OTHER) == "OTHER"


def test_a_histogram_without_rows_has_none_to_draw():
    with pytest.raises(InvalidArgument, match="without rows"):
        SparseHistogram({}, 0).sample(1)


@pytest.mark.parametrize("value", [[1, 2], {"a": -1}, {"a": 0.5}, {"secret": "x"}])
def test_what_are_no_counts_is_refused_and_not_shown(value):
    with pytest.raises(InvalidArgument) as refused:
        sparse_histogram(epsilon=1.0, delta=1e-6).release(value)
    assert "secret" not in str(refused.value)


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidArgument, match="private under add_remove"):
        sparse_histogram(epsilon=1.0, delta=1e-6, total=5)
    with pytest.raises(InvalidArgument):
        sparse_histogram(epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidArgument, match="add up"):
        sparse_histogram(epsilon=1.0, delta=1e-6, adjacency="replace_one", total=7).release({"a": 5})
