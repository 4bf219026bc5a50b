"""Rules: every row keeps them, and columns keep their counts where that can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.synthesis import Determines, Rules, synthesizer
from sitr.synthesis.bins import Levels
from sitr.synthesis.drawing import drawn
from sitr.synthesis.mixture import Mixture

SIZES = (4, 6, 3, 5)


def some_mixture(generator, sizes=SIZES):
    singles = [generator.dirichlet(np.full(size, 3.0)) for size in sizes]
    levels = Levels.of(singles, (0.1,))
    return Mixture(levels, generator.normal(0, 1, (30, levels.finest)).astype(np.float32)), singles


# Values 0 to 2 of a few columns: a row of other values keeps all of them.
combinations = st.dictionaries(
    st.integers(0, 3), st.sets(st.integers(0, 2), min_size=1, max_size=2), min_size=2, max_size=3
)


@given(
    st.lists(combinations, max_size=2),
    st.sampled_from([(), (Determines(0, 3, (4, 0, 1, 1)),), (Determines(1, 2), Determines(0, 1, (5, 4, 3, 0)))]),
    st.integers(0, 3000),
    st.integers(0, 9),
)
def test_every_row_keeps_the_rules(impossible, determines, rows, seed):
    mixture, singles = some_mixture(np.random.default_rng(seed))
    rules = Rules(SIZES, impossible, determines)
    found = drawn(mixture, singles, rows, np.random.default_rng(seed), rules)
    assert found.shape == (rows, 4)
    assert (found < np.array(SIZES)).all()
    for combination in impossible:
        matches = [np.isin(found[:, column], list(values)) for column, values in combination.items()]
        assert not np.logical_and.reduce(matches).any()
    for by, column, values in determines:
        pairs = {(int(one), int(other)) for one, other in found[:, [by, column]]}
        assert len({one for one, _ in pairs}) == len(pairs)
        assert values is None or all(values[one] == other for one, other in pairs)


def test_columns_keep_their_counts_where_rows_can_swap():
    mixture, singles = some_mixture(np.random.default_rng(1))
    free = drawn(mixture, singles, 20_000, np.random.default_rng(2))
    rules = Rules(SIZES, [{0: {0, 1}, 1: {0}}, {2: {1}, 3: {2, 3}, 0: {2}}])
    assert rules.broken(free).any(axis=0).all()
    kept = drawn(mixture, singles, 20_000, np.random.default_rng(2), rules)
    assert not rules.broken(kept).any()
    for column, size in enumerate(SIZES):
        assert (np.bincount(free[:, column], minlength=size) == np.bincount(kept[:, column], minlength=size)).all()


def test_what_determines_what_is_learnt():
    generator = np.random.default_rng(3)
    meaning = np.array([3, 0, 2, 1, 4, 4])
    town = generator.integers(0, 6, 5000)
    rows = np.stack([town, meaning[town], generator.integers(0, 2, 5000)], axis=1)
    found = synthesizer([6, 5, 2], epsilon=2.0, delta=1e-6).release(rows, unsafe_seed=1).value
    drawn_rows = found.sample(3000, seed=1, rules=Rules([6, 5, 2], determines=[Determines(0, 1)]))
    assert (drawn_rows[:, 1] == meaning[drawn_rows[:, 0]]).all()


def test_rules_that_no_row_keeps_are_refused():
    mixture, singles = some_mixture(np.random.default_rng(4))
    rules = Rules(SIZES, [{0: set(range(4))}])
    with pytest.raises(InvalidArgument, match="keeps the rules"):
        drawn(mixture, singles, 10, np.random.default_rng(5), rules)


@pytest.mark.parametrize(
    "arguments",
    [
        {"impossible": [{}]},
        {"impossible": [{4: {0}}]},
        {"impossible": [{0: {4}}]},
        {"determines": [Determines(0, 9)]},
        {"determines": [Determines(0, 1, (1, 2))]},
        {"determines": [Determines(0, 1, (1, 2, 3, 6))]},
        {"determines": [Determines(0, 1), Determines(1, 0)]},
        {"determines": [Determines(0, 0)]},
        {"determines": [Determines(0, 2), Determines(1, 2)]},
    ],
)
def test_what_is_no_rule_is_refused(arguments):
    with pytest.raises(InvalidArgument):
        Rules(SIZES, **arguments)
