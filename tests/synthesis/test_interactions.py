"""Interactions: whole numbers, moved no farther than is said, and whole tables with their margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.synthesis.interactions import centred, interaction, reach, with_margins

shapes = st.tuples(st.integers(2, 6), st.integers(2, 6))


def kron(shape):
    """The matrix of an interaction times its number of cells, cell by cell."""
    one, other = (size * np.eye(size, dtype=np.int64) - 1 for size in shape)
    return np.kron(one, other)


@given(shapes, st.integers(0, 2**32 - 1))
def test_an_interaction_is_of_whole_numbers_and_centred(shape, seed):
    counts = np.random.default_rng(seed).integers(0, 10**9, shape)
    found = interaction(counts)
    assert found.dtype == np.int64
    assert (found.ravel() == kron(shape) @ counts.ravel()).all()
    assert (found.sum(axis=0) == 0).all()
    assert (found.sum(axis=1) == 0).all()
    assert centred(counts.astype(float)) * counts.size == pytest.approx(found, rel=1e-9, abs=1e-3)


@given(shapes)
def test_one_row_moves_it_no_farther_than_is_said_and_some_row_as_far(shape):
    matrix = kron(shape)
    added = [np.linalg.norm(column) for column in matrix.T]
    replaced = [np.linalg.norm(one - other) for one in matrix.T for other in matrix.T]
    for moved, adjacency in ((added, "add_remove"), (replaced, "replace_one")):
        assert max(moved) <= reach(shape, 1, adjacency) <= max(moved) * (1 + 1e-12)


@given(shapes, st.integers(1, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_several_rows_of_a_unit_move_it_no_farther(shape, rows, leaving, coming, seed):
    """Of rows that are replaced more may leave than come, or fewer."""
    generator, matrix = np.random.default_rng(seed), kron(shape)
    size = shape[0] * shape[1]
    here, there = (generator.integers(0, size, rows) for _ in range(2))
    some = generator.integers(0, rows + 1)
    assert np.linalg.norm(matrix[:, here[:some]].sum(axis=1)) <= reach(shape, rows, "add_remove")
    moved = matrix[:, here].sum(axis=1) - matrix[:, there].sum(axis=1)
    assert np.linalg.norm(moved) <= reach(shape, rows, "replace_one")
    here, there = (generator.integers(0, size, min(count, rows)) for count in (leaving, coming))
    moved = matrix[:, here].sum(axis=1) - matrix[:, there].sum(axis=1)
    assert np.linalg.norm(moved) <= reach(shape, rows, "replace_one")


@given(shapes, st.integers(1, 10**6))
def test_rows_of_a_unit_that_are_all_alike_move_it_as_far_as_is_said(shape, rows):
    """In random units most rows stand against each other: the bound is reached where each goes the same way."""
    matrix = kron(shape)
    pairs = [(one, other) for one in matrix.T for other in matrix.T]
    leaving, coming = max(pairs, key=lambda pair: np.linalg.norm(pair[0] - pair[1]))
    for moved, adjacency in ((rows * leaving, "add_remove"), (rows * leaving - rows * coming, "replace_one")):
        assert np.linalg.norm(moved) <= reach(shape, rows, adjacency) <= np.linalg.norm(moved) * (1 + 1e-12)


@given(shapes, st.integers(0, 2**32 - 1))
def test_a_table_is_its_interaction_and_its_margins(shape, seed):
    table = np.random.default_rng(seed).normal(0, 100, shape)
    assert with_margins(centred(table), table.sum(axis=1), table.sum(axis=0)) == pytest.approx(table, abs=1e-9)


@given(shapes, st.integers(0, 2**32 - 1))
def test_the_margins_are_those_that_were_given(shape, seed):
    generator = np.random.default_rng(seed)
    found, one = centred(generator.normal(0, 100, shape)), generator.normal(10, 3, shape[0])
    other = generator.normal(10, 3, shape[1])
    other *= one.sum() / other.sum()
    table = with_margins(found, one, other)
    assert table.sum(axis=1) == pytest.approx(one, abs=1e-9)
    assert table.sum(axis=0) == pytest.approx(other, abs=1e-9)
