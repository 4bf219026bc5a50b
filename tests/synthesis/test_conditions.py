"""A model under a condition: a mixture that gives nothing to what is not allowed, and the rest as before."""

import numpy as np
import pytest

from sitr.errors import InvalidArgument
from sitr.synthesis import synthesizer
from sitr.synthesis.conditions import conditioned

SIZES = (2, 12, 3)


@pytest.fixture(scope="module")
def learnt():
    generator = np.random.default_rng(2)
    first = generator.integers(0, 2, 6000)
    second = np.clip(generator.normal(3 + 5 * first, 1.5, 6000).round(), 0, 11).astype(int)
    rows = np.stack([first, second, generator.integers(0, 3, 6000)], axis=1)
    return synthesizer(SIZES, epsilon=30.0, delta=1e-6, ordered=[False, True, False]).release(rows, unsafe_seed=1).value


def drawn(rows, seed=1):
    return rows.sample(200_000, seed=seed).astype(int)


@pytest.mark.parametrize("values", [[0], [3, 4, 5], [11], [0, 11]])
def test_rows_are_those_of_the_model_that_meet_it(learnt, values):
    """Rejection is the second way: of rows drawn without the condition, those that meet it have the same shares."""
    allowed = np.isin(np.arange(12), values)
    given = drawn(type(learnt)(conditioned(learnt.learnt, {1: allowed})))
    kept = drawn(learnt, seed=2)
    kept = kept[allowed[kept[:, 1]]]
    assert allowed[given[:, 1]].all()
    for column, size in enumerate(SIZES):
        one, other = (np.bincount(rows[:, column], minlength=size) / len(rows) for rows in (given, kept))
        assert np.abs(one - other).sum() / 2 < 0.03


def test_several_hold_at_once(learnt):
    allowed = {0: np.array([True, False]), 1: np.arange(12) >= 8}
    rows = drawn(type(learnt)(conditioned(learnt.learnt, allowed)))
    assert (rows[:, 0] == 0).all()
    assert (rows[:, 1] >= 8).all()


def test_what_no_row_can_have_is_refused(learnt):
    with pytest.raises(InvalidArgument):
        conditioned(learnt.learnt, {1: np.zeros(12, dtype=bool)})
