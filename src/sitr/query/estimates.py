"""From noisy statistics to what was asked for: a value and an interval for each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import intervals
from .aggregates import Aggregate
from .answer import Additive
from .designs import Design, Total, moment
from .measurements import Sums

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimated:
    """A column of the answer.

    Attributes:
        raw: As measured.
        low: The lower end of the interval in each row.
        high: The upper end.
        additive: Its noise, where rows may be added up.
    """

    raw: Floats
    low: Floats
    high: Floats
    additive: Additive | None = None


def additive(noisy: Floats, weights: Floats, scale: float, kind: str, *, integers: bool = False) -> Estimated:
    """Return a weighted sum of statistics, whose interval is the shortest symmetric one."""
    used = tuple(float(weight) for weight in weights if weight)
    noise = Additive(used, scale, kind, integers)
    value, width = noisy @ weights, noise.half_width()
    return Estimated(value, value - width, value + width, noise)


def of_sums(aggregate: Aggregate, measured: Sums, noisy: Floats) -> Estimated:
    """Return an aggregate of the noisy statistics of a design, which are in rows."""
    design, noise = measured.design, measured.noise
    integers = noise.unit == 1
    rows = np.ones(design.count)
    if aggregate.kind == "count":
        if aggregate.value is not None and design.missing:
            rows[-1] = 0.0
        return additive(noisy, rows, noise.scale, noise.kind, integers=integers)
    places = _axes(aggregate, measured)
    if isinstance(design, Total):
        grid = next(iter(measured.measures.values())).grid
        return additive(noisy, np.array([float(noise.unit * grid.step)]), noise.scale, noise.kind, integers=integers)
    if aggregate.kind == "sum":
        return additive(noisy, _values(measured, places[0]), noise.scale, noise.kind, integers=integers)
    matrix = np.stack([moment(design, powers) for powers in _powers(aggregate.kind, places, len(design.degrees))])
    value, interval = FUNCTIONS[aggregate.kind]
    step = 1 / noise.unit
    found = value(noisy, matrix)
    low, high = interval(noisy, matrix, noise.scale, noise.kind, step=step)
    if aggregate.kind == "mean":  # a point is where noise contradicts every mean: it would look certain
        point = low == high
        low, high = np.where(point, 0.0, low), np.where(point, 1.0, high)
    return _in_units(aggregate.kind, measured, places, found, low, high)


FUNCTIONS: dict[str, Any] = {
    "mean": (intervals.mean, intervals.mean_interval),
    "variance": (intervals.variance, intervals.variance_interval),
    "stddev": (intervals.standard_deviation, intervals.standard_deviation_interval),
    "covariance": (intervals.covariance, intervals.covariance_interval),
    "correlation": (intervals.correlation, intervals.correlation_interval),
}


def _axes(aggregate: Aggregate, measured: Sums) -> list[int]:
    """Which measures of the design the aggregate is of."""
    if aggregate.other is not None:
        return [0, 1]
    return [next(at for at, one in enumerate(measured.measures.values()) if str(one.value) == str(aggregate.value))]


def _values(measured: Sums, axis: int) -> Floats:
    """The value of a measure at each polynomial: Σx is the sum of the statistics with these weights."""
    low, high = (float(end) for end in _ends(measured, axis))
    assert isinstance(measured.design, Design)
    powers = [0] * len(measured.design.degrees)
    count = moment(measured.design, tuple(powers))
    powers[axis] = 1
    return np.asarray(low * count + (high - low) * moment(measured.design, tuple(powers)))


def _ends(measured: Sums, axis: int) -> tuple[Any, Any]:
    return list(measured.measures.values())[axis].grid.ends


def _powers(kind: str, axes: list[int], count: int) -> list[tuple[int, ...]]:
    """The moments that an aggregate is a function of, in the order in which `intervals` takes them."""

    def at(**powers: int) -> tuple[int, ...]:
        made = [0] * count
        for name, power in powers.items():
            made[axes["ts".index(name)]] = power
        return tuple(made)

    if kind == "mean":
        return [at(), at(t=1)]
    if kind in ("variance", "stddev"):
        return [at(), at(t=1), at(t=2)]
    if kind == "covariance":
        return [at(), at(s=1), at(t=1), at(t=1, s=1)]
    return [at(), at(s=1), at(s=2), at(t=1), at(t=1, s=1), at(t=2)]


def _in_units(kind: str, measured: Sums, axes: list[int], value: Floats, low: Floats, high: Floats) -> Estimated:
    """From places between the bounds to the units of the values."""
    if kind == "correlation":
        return Estimated(value, low, high)
    widths = [float(end - begin) for begin, end in (_ends(measured, axis) for axis in axes)]
    if kind == "mean":
        begin = float(_ends(measured, axes[0])[0])
        return Estimated(begin + widths[0] * value, begin + widths[0] * low, begin + widths[0] * high)
    factor = widths[0] * (widths[1] if kind == "covariance" else 1.0 if kind == "stddev" else widths[0])
    return Estimated(factor * value, factor * low, factor * high)
