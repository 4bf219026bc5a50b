"""Noisy tables: sums of their cells, with the variance of the noise in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.synthesis.interactions import centred
from sitr.synthesis.measured import Interaction, Margin, Sum, averaged


@st.composite
def tables(draw):
    """Counts of two columns, bins of their values, and which values are wanted."""
    sizes = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    cells = sizes[0] * sizes[1]
    values = np.array(draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells))).reshape(sizes)
    bins = tuple(
        np.unique(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), return_inverse=True)[1]
        for size in sizes
    )
    masks = [np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))) for size in sizes]
    return values, bins, masks


def interaction_of(values, bins, noise=(0.0, 0.0, 0.0), variances=(1.0, 1.0, 1.0)):
    """What would be measured of two columns, with some noise on either margin and on the cells."""
    table = np.zeros([one.max() + 1 for one in bins])
    np.add.at(table, np.ix_(*bins), values)
    margins = (
        Margin(4, values.sum(axis=1) + noise[0], variances[0]),
        Margin(7, values.sum(axis=0) + noise[1], variances[1]),
    )
    return Interaction(margins, bins, centred(table + noise[2]), variances[2])


@given(tables())
def test_a_sum_is_that_of_the_values_where_no_bin_is_cut(drawn):
    values, bins, masks = drawn
    found = interaction_of(values, bins).total({4: masks[0], 7: masks[1]})
    cut = any(len(set(mask[one == place])) > 1 for one, mask in zip(bins, masks, strict=True) for place in one)
    assert (found is None) == cut
    if found is not None:
        assert found.value == pytest.approx(values[np.ix_(*masks)].sum(), abs=1e-9)


@given(tables(), st.tuples(*3 * [st.sampled_from([0.5, 1.0, 20.0])]))
def test_the_variance_is_that_of_the_noise_in_a_sum(drawn, variances):
    """A sum is linear in the noise: each number of noise moves it by what it moves alone, and variances add."""
    values, bins, masks = drawn
    wanted = {4: masks[0], 7: masks[1]}
    plain = interaction_of(values, bins, variances=variances)
    before = plain.total(wanted)
    if before is None:
        return
    found = 0.0
    for place, shape in enumerate([(values.shape[0],), (values.shape[1],), plain.cells.shape]):
        for cell in np.ndindex(shape):
            noise = [np.zeros(one) for one in (values.shape[0], values.shape[1], plain.cells.shape)]
            noise[place][cell] = 1.0
            moved = interaction_of(values, bins, noise, variances).total(wanted).value - before.value
            found += variances[place] * moved**2
    assert before.variance == pytest.approx(found, rel=1e-9, abs=1e-9)


@given(tables())
def test_deviations_are_those_of_single_cells(drawn):
    values, bins, _ = drawn
    one = interaction_of(values, bins, variances=(2.0, 3.0, 5.0))
    assert one.deviations.shape == one.shape
    for here, there in np.ndindex(one.shape):
        cell = one.total({4: bins[0] == here, 7: bins[1] == there})
        assert one.deviations[here, there] == pytest.approx(cell.variance**0.5)


def test_columns_that_nothing_is_asked_of_are_summed_over():
    values = np.arange(6).reshape(2, 3)
    table = interaction_of(values, (np.arange(2), np.arange(3)))
    assert table.total({4: np.array([False, True])}).value == pytest.approx(12)
    assert table.total({}).value == pytest.approx(15)
    margin = table.margins[0]
    assert margin.total({7: np.array([True, False, False])}) == Sum(15.0, 2.0)
    assert margin.total({4: np.array([False, True])}) == Sum(12.0, 1.0)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1e-2, 1e3)), min_size=1, max_size=5))
def test_no_weights_have_less_variance(sums):
    found = averaged([Sum(*one) for one in sums])
    assert found.variance <= min(variance for _, variance in sums) * (1 + 1e-9)
    assert min(value for value, _ in sums) - 1e-6 <= found.value <= max(value for value, _ in sums) + 1e-6
