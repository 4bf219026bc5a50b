"""Numbers made of several: what is added to a sample, and which pairs of columns of many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sitr.audit.features import MOST_PAIRS, MOST_WRITTEN, Features, deviation, finite
from sitr.audit.samples import Reader, Sample

N = 2000
RANDOM = np.random.default_rng(20260101)


def sample(columns):
    return Sample([], np.asarray(columns, dtype=np.float64))


def added(first, second):
    """What is added to the second of two samples: columns by name."""
    made = Features.of(first, second).added(second)
    return dict(zip(made.derived, made.columns[:, made.width :].T, strict=True))


def test_one_plain_number_gains_nothing():
    one = sample([[1.0], [2.0]])
    assert Features.of(one, one).added(one) is one


def test_pairs_are_told_by_their_difference_their_sum_and_what_goes_together():
    made = added(sample([[0.0, 0.0]]), sample([[3.0, 1.0]]))
    assert {name: column.tolist() for name, column in made.items()} == {
        "coordinate 1 - coordinate 2": [2.0],
        "coordinate 1 + coordinate 2": [4.0],
        "coordinate 1 × coordinate 2": [(3 - 1.5) * (1 - 0.5)],
    }


@pytest.mark.parametrize("where", [(0, 1), (3, 17), (18, 19)])
@pytest.mark.parametrize("how", ["correlated", "equal"])
def test_of_many_columns_the_pair_that_changed_is_among_those_looked_at(where, how):
    """By a correlation of a half, thirty standard deviations; or equal in a twentieth of outputs that never are."""
    first, second = (RANDOM.normal(size=(N, 20)) for _ in range(2))
    left, right = where
    if how == "correlated":
        second[:, right] = (second[:, left] + np.sqrt(3) * second[:, right]) / 2
    else:
        second[: N // 20, right] = second[: N // 20, left]
    found = Features.of(sample(first), sample(second))
    assert len(found.pairs) == MOST_PAIRS
    assert where in found.pairs


def test_gaps_have_a_pattern_that_tells_them_apart():
    rows = [[np.nan, 1.0], [1.0, np.nan], [np.nan, np.nan], [1.0, 1.0]]
    pattern = added(sample(rows[3:]), sample(rows))["pattern of missing numbers"]
    assert len(set(pattern.tolist())) == 4


def test_lengths_are_looked_at_where_they_differ_and_outputs_are_short():
    def read(outputs):
        return Reader.of(outputs).read(outputs)

    assert "length as text" in added(read([0.0]), read([-0.0]))
    assert "length as text" not in added(read([1.0]), read([2.0]))
    wide = [tuple(range(MOST_WRITTEN + 1))]
    assert "length as text" not in added(read(wide), read([tuple(10 * x for x in wide[0])]))


@given(arrays(np.float64, (5, 3), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_whatever_the_numbers_are_nothing_overflows(rows):
    made = finite(rows)
    assert np.isfinite(made).all()
    assert np.isfinite(made.sum())
    assert (deviation(made) > 0).all()
    other = Features.of(sample(rows), sample(rows))
    assert other.added(sample(rows)).columns.shape[1] >= 3
