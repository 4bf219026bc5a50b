"""Noisy tables: sums of their cells, with the variance of the noise in them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sitr.synthesis.measured import Measured, Sum, together


@given(st.data())
def test_a_sum_is_that_of_the_values_where_no_bin_is_cut(data):
    sizes = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    cells = sizes[0] * sizes[1]
    values = np.array(data.draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells))).reshape(sizes)
    bins = tuple(
        np.unique(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), return_inverse=True)[1]
        for size in sizes
    )
    table = np.zeros([one.max() + 1 for one in bins])
    np.add.at(table, np.ix_(*bins), values)
    masks = [np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))) for size in sizes]
    found = Measured((4, 7), bins, table, 2.0).total({4: masks[0], 7: masks[1]})
    cut = any(len(set(mask[one == place])) > 1 for one, mask in zip(bins, masks, strict=True) for place in one)
    assert (found is None) == cut
    if found is not None:
        assert found.value == values[np.ix_(*masks)].sum()
        taken = [np.unique(one[mask]).size for one, mask in zip(bins, masks, strict=True)]
        assert found.variance == 2.0 * taken[0] * taken[1]


def test_columns_that_nothing_is_asked_of_are_summed_over():
    table = Measured((0, 1), (np.arange(2), np.arange(3)), np.arange(6.0).reshape(2, 3), 1.0)
    assert table.total({0: np.array([False, True])}) == Sum(12.0, 3.0)
    assert table.total({}) == Sum(15.0, 6.0)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1e-2, 1e3)), min_size=1, max_size=5))
def test_no_weights_have_less_variance(sums):
    found = together([Sum(*one) for one in sums])
    assert found.variance <= min(variance for _, variance in sums) * (1 + 1e-9)
    assert min(value for value, _ in sums) - 1e-6 <= found.value <= max(value for value, _ in sums) + 1e-6
