"""Examples by their places."""

from __future__ import annotations

import numpy as np
import torch

from sitr.learning.data import Examples

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
