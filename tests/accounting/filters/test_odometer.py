"""The odometer: a report of what was recorded, and no limit."""

import pytest

from sitr.accounting import Composed, Gaussian, Laplace, Odometer, PureDP, ZCDPFilter, ZeroConcentrated, compose
from sitr.errors import IncompatibleAdjacency


def test_the_odometer_reports_the_composition_of_what_was_recorded():
    odometer = Odometer()
    assert odometer.epsilon(1e-6).upper == 0
    assert odometer.delta(0.0).upper == 0
    events = [Gaussian(10), Laplace(20), Gaussian(10), Laplace(30) * 4]
    for event in events:
        odometer.record(event)
    assert odometer.event == compose(*events)
    assert isinstance(odometer.event, Composed)
    assert odometer.epsilon(1e-6) == compose(*events).epsilon(1e-6)
    assert odometer.delta(1.0) == compose(*events).delta(1.0)


def test_the_odometer_is_tighter_than_the_filter_and_keeps_one_adjacency():
    book, odometer = ZCDPFilter(0.1), Odometer()
    for _ in range(10):
        book.charge(Gaussian(10))
        odometer.record(Gaussian(10))
    spent = ZeroConcentrated(book.spent()["rho"])
    assert odometer.epsilon(1e-6).upper < spent.epsilon(1e-6).lower * 1.2
    assert odometer.epsilon(1e-6).upper < spent.epsilon(1e-6).upper
    odometer.record(PureDP(0.1, adjacency="replace_one"))
    with pytest.raises(IncompatibleAdjacency):
        odometer.record(PureDP(0.1, adjacency="add_remove"))
