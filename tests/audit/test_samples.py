"""Outputs as columns and labels."""

import math

import numpy as np
import pytest

from sitr.accounting import PureDP
from sitr.audit.samples import Reader, draw
from sitr.release import Release


@pytest.mark.parametrize(
    ("outputs", "columns"),
    [
        ([1, 2.5, True], [[1], [2.5], [1]]),
        ([(1, 2), (3, 4)], [[1, 2], [3, 4]]),
        ([np.ones((2, 2)), np.zeros((2, 2))], [[1, 1, 1, 1], [0, 0, 0, 0]]),
        (np.array([True, False]), [[1], [0]]),
        ([1.0, None], [[1, 1], [math.nan, 0]]),
        (["a", "b"], [[], []]),
        ([{"x": 1}, {"x": 2}], [[1], [2]]),
        ([10**400, -(10**400)], [[math.inf], [-math.inf]]),
        ([(1, (2, "x")), (3,)], [[1, 2, 2], [3, math.nan, 1]]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_numbers_are_found(outputs, columns):
    sample = Reader.of(outputs).read(outputs)
    np.testing.assert_array_equal(sample.columns, np.array(columns, dtype=float))
    assert sample.size == len(outputs)


def test_only_single_numbers_are_plain():
    assert Reader.of([1, 2]).read([1, 2]).plain
    assert not Reader.of([1, 2]).read([1, None]).plain
    assert not Reader.of([(1, 2)]).read([(1, 2)]).plain


def test_labels_tell_different_outputs_apart():
    outputs = [1, 1.0, "1", True, None, (1,), [1], np.array([1]), frozenset({1}), np.float64(1.0)]
    labels = Reader.of(outputs).read(outputs).labels()
    assert labels[6] == labels[7]
    assert labels[1] == labels[9]
    assert len(set(labels)) == 8
    assert Reader.of([{2, 1}]).read([{2, 1}]).labels() == Reader.of([{1, 2}]).read([{1, 2}]).labels()


def test_releases_are_opened():
    release = Release(value=3, error95=None, event=PureDP(epsilon=1.0))
    assert draw(lambda _: release, None, 0, 2) == [3, 3]
    assert draw(None, lambda _, n: [release] * n, 0, 2) == [3, 3]
