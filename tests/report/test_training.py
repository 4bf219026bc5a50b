"""The picture of a training run says what it shows."""

import numpy as np
import pytest

from sitr.errors import InvalidArgument
from sitr.learning.explanation import Trace
from sitr.report.training import draw_training, write_training

STEPS = np.array([1, 5, 10])


def trace(losses: int, *, private: bool = True) -> Trace:
    return Trace(STEPS, np.array([0.1, 0.3, 0.4]), 1e-5, np.linspace(2, 1, losses), private)


def test_cost_is_drawn_over_steps():
    figure = draw_training(trace(0))
    (cost,) = figure.axes
    assert cost.lines[0].get_xydata().tolist() == [[1, 0.1], [5, 0.3], [10, 0.4]]
    assert cost.get_ylabel() == "ε at δ = 1e-05"


@pytest.mark.parametrize("private", [True, False])
def test_losses_say_whether_they_are_private(private):
    _, loss = draw_training(trace(10, private=private)).axes
    assert loss.lines[0].get_xdata().tolist() == list(range(1, 11))
    assert ("NOT PRIVATE" in loss.get_title(loc="left")) != private


def test_pictures_are_written(tmp_path):
    found = write_training(tmp_path / "new", trace(10))
    assert [path.name for path in found] == ["training.svg", "training.png"]
    assert all(path.stat().st_size > 1000 for path in found)
    with pytest.raises(InvalidArgument):
        write_training(tmp_path, trace(10), formats=["gif"])
