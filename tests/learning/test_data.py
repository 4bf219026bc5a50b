"""Examples by their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from sitr.errors import InvalidArgument
from sitr.learning.data import Examples, PeoplesExamples

PLACES = np.array([2, 0])


def test_tensors_are_indexed() -> None:
    x = torch.arange(6.0).view(3, 2)
    assert Examples(x, 3).at(PLACES).tolist() == [[4, 5], [0, 1]]
    assert [one.tolist() for one in Examples([x, x[:, 0]], 3).at(PLACES)] == [[[4, 5], [0, 1]], [4, 0]]
    assert Examples({"x": x}, 3).at(PLACES)["x"].tolist() == [[4, 5], [0, 1]]
    both = torch.utils.data.TensorDataset(x, x[:, 0])
    assert Examples(both, 3).at(PLACES)[1].tolist() == [4, 0]


def test_others_are_collated() -> None:
    found = Examples([{"x": float(place), "y": place} for place in range(3)], 3).at(PLACES)
    assert found["x"].tolist() == [2, 0]
    assert found["y"].dtype == torch.int64


class TestPeople:
    def test_are_known_with_their_examples(self) -> None:
        """By which processes see that they were given the same."""
        x = torch.arange(3.0)
        for data in (x, torch.utils.data.TensorDataset(x)):
            known = PeoplesExamples(data, [1, 0, 1], 2, 1).tensors
            assert [one.tolist() for one in known] == [[0, 1, 2], [1, 0, 1]]

    @given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6))
    def test_have_examples_of_their_own(self, owners: list[int], each: int) -> None:
        """None twice where there are enough; else all of them, each about as often."""
        examples = PeoplesExamples(torch.arange(len(owners)), np.array(owners, np.int64), 10, each)
        places = examples.held(np.arange(10))
        assert places.tolist() == sorted(set(owners))
        if not places.size:
            return
        found = examples.at(places).numpy()
        assert found.shape == (places.size, each)
        for person, row in zip(places, found, strict=True):
            own = {place for place, owner in enumerate(owners) if owner == person}
            assert set(row) <= own
            times = np.bincount(row, minlength=len(owners))[sorted(own)]
            assert times.max() - times.min() <= 1

    @pytest.mark.statistical
    def test_choose_each_example_equally_often(self) -> None:
        """One person, five examples, two at a time, 4,000 times. The counts of five add up, so that the sum of squares,
        over their variance 4000 · 2/5 · 3/5 times 5/4, is near χ² with four degrees; FALSE_ALARM is 1e-9.
        """
        examples, counts = PeoplesExamples(torch.arange(5), [0] * 5, 1, 2), np.zeros(5)
        for _ in range(4000):
            np.add.at(counts, examples.at(np.array([0])).numpy().ravel(), 1)
        assert ((counts - 1600) ** 2).sum() / (4000 * 0.4 * 0.6 * 5 / 4) < chi2.isf(1e-9, 4)

    def test_of_any_data(self) -> None:
        x = torch.arange(12.0).view(6, 2)
        owners = torch.tensor([0, 1, 2, 0, 1, 2])
        several = PeoplesExamples({"x": x, "y": x[:, 0]}, owners, 3, 4).at(PLACES)
        assert (several["x"].shape, several["y"].shape) == ((2, 4, 2), (2, 4))
        collated = PeoplesExamples([(row, place) for place, row in enumerate(x)], owners, 3, 2).at(PLACES)
        assert [one.shape for one in collated] == [(2, 2, 2), (2, 2)]
        assert collated[1].sort().values.tolist() == [[2, 5], [0, 3]]

    @pytest.mark.parametrize(
        ("people", "each", "match"),
        [
            ([0, 1], 1, "one whole number for each"),
            ([0.0, 1.0, 1.0], 1, "one whole number for each"),
            ([[0], [1], [1]], 1, "one whole number for each"),
            (["a", "b", "b"], 1, "one whole number for each"),
            ([0, 1, 2], 1, "not of n=2 people"),
            ([0, 1, -1], 1, "not of n=2 people"),
            ([0, 1, 1], 0, "each"),
            ([0, 1, 1], 1.5, "each"),
        ],
    )
    def test_that_are_wrong_are_refused(self, people: Any, each: Any, match: str) -> None:
        with pytest.raises(InvalidArgument, match=match):
            PeoplesExamples(torch.arange(3), people, 2, each)
