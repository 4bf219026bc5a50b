"""Bins: each holds enough, and levels lie inside each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sitr.synthesis.bins import Levels, even_share, held, pooled

shares = st.lists(st.integers(0, 100), min_size=1, max_size=40).filter(any).map(lambda n: np.array(n) / sum(n))


@given(shares, st.floats(0.001, 0.6))
def test_every_bin_holds_enough_or_is_the_only_one_of_small_values(share, least):
    bins = pooled(share, least)
    within = held(bins, share)
    assert sorted(set(bins.tolist())) == list(range(int(bins.max()) + 1))
    assert (within < least - 1e-12).sum() <= 1
    alone = share >= least
    assert all((bins == bins[value]).sum() == 1 for value in np.flatnonzero(alone))


@given(st.lists(shares, min_size=1, max_size=4), st.floats(0.01, 0.2))
def test_levels_lie_inside_each_other_and_keep_what_is_counted(columns, least):
    levels = Levels.of(columns, (least, 3 * least))
    assert levels.finest == levels.sizes[0].sum()
    assert (levels.sizes[1] <= levels.sizes[0]).all()
    assert [lead.size for lead in levels.leads] == [levels.finest] * 2
    for one in range(len(columns)):
        for other in range(one + 1, len(columns)):
            table = np.arange(levels.sizes[0][one] * levels.sizes[0][other]).reshape(levels.sizes[0][[one, other]])
            merged = levels.merged(table, 1, one, other)
            assert merged.shape == tuple(levels.sizes[1][[one, other]])
            assert merged.sum() == table.sum()
            assert levels.merged(table, 0, one, other) is table


@given(st.lists(shares, min_size=1, max_size=6), st.floats(0.001, 0.2), st.integers(6, 60))
def test_there_are_no_more_bins_than_may_be_and_small_columns_keep_theirs(columns, least, most):
    before = Levels.of(columns, (least,)).sizes[0].tolist()
    share = even_share(before, most)
    levels = Levels.of(columns, (least,), share)
    assert levels.finest <= most
    assert sum(before) > most or share == max(before)
    for size, now in zip(before, levels.sizes[0].tolist(), strict=True):
        assert now == size if size <= share else 1 <= now <= share
