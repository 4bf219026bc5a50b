"""Estimates of means, variances, covariances and correlations from noisy statistics, and intervals that hold them.

Rows have values t (and s) from 0 to 1, their places between public bounds. What was measured of each cell, in rows, is
in the last axis of `statistics`; `moments` says which combinations of them are the sums that an aggregate is made of:

| of | rows of `moments` |
|---|---|
| mean | Σ1, Σt |
| variance | Σ1, Σt, Σt² |
| covariance | Σ1, Σs, Σt, Σts |
| correlation | Σ1, Σs, Σs², Σt, Σts, Σt² |

An interval is what a test does not reject: exact for means, to second order for the rest (decision 0012). It speaks of
the rows as they were measured. All of it is post-processing: it reads noisy numbers and public scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..errors import InvalidArgument
from .half_widths import KINDS, Floats, Kind, half_width, half_widths

__all__ = [
    "correlation",
    "correlation_interval",
    "covariance",
    "covariance_interval",
    "half_width",
    "mean",
    "mean_interval",
    "standard_deviation",
    "standard_deviation_interval",
    "variance",
    "variance_interval",
]

Interval = tuple[Floats, Floats]
CELLS = 2**13  # worked on at once: what fits a processor's cache
HALVINGS = 14  # before a chord is drawn: it is off by the square of what they leave
MOVED = 2.0  # times what the errors of estimated parameters move a test by: decision 0012
MEANS = 0.02  # of what may be missed: spent on each mean that bounds a covariance
LEAST = 1e-9  # instead of 0, under a fraction


def mean(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the mean of t for each cell, from 0 to 1; 1/2 where noise left no rows on either side.

    Args:
        statistics: Noisy, of shape (…, k), in rows.
        moments: Of shape (m, k): the sums as combinations of the statistics.

    Example:
        >>> moments = [[1, 1], [0, 1]]
        >>> mean([[60.0, 20.0], [-3.0, 2.0]], moments)
        array([0.25, 1. ])
    """
    return _mean(*_moments(statistics, moments))


def variance(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the variance of t for each cell (over n), from 0 to 1/4.

    Args:
        statistics: Noisy, of shape (…, k), in rows.
        moments: Of shape (m, k): the sums as combinations of the statistics.

    Example:
        >>> moments = [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]
        >>> variance([[40.0, 20.0, 40.0], [100.0, 0.0, 0.0]], moments)
        array([0.15, 0.  ])
    """
    return _variance(*_moments(statistics, moments))


def standard_deviation(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the root of `variance`, from 0 to 1/2.

    Args:
        statistics: Noisy, of shape (…, k), in rows.
        moments: Of shape (m, k): the sums as combinations of the statistics.

    Example:
        >>> moments = [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]
        >>> standard_deviation([[50.0, 0.0, 50.0]], moments)
        array([0.5])
    """
    return np.sqrt(variance(statistics, moments))


def covariance(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the covariance of t and s for each cell (over n), from -1/4 to 1/4.

    Args:
        statistics: Noisy, of shape (…, k), in rows.
        moments: Of shape (m, k): the sums as combinations of the statistics.

    Example:
        >>> moments = np.kron([[1, 1], [0, 1]], [[1, 1], [0, 1]])
        >>> covariance([[50.0, 0.0, 0.0, 50.0], [25.0, 25.0, 25.0, 25.0]], moments)
        array([0.25, 0.  ])
    """
    return _covariance(*_moments(statistics, moments))


def correlation(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the correlation of t and s for each cell, from -1 to 1; 0 where a column seems constant.

    Args:
        statistics: Noisy, of shape (…, k), in rows.
        moments: Of shape (m, k): the sums as combinations of the statistics.

    Example:
        >>> moments = np.kron([[1, 1, 1], [0, 0.5, 1], [0, 0, 1]], [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]])[
        ...     [0, 1, 2, 3, 4, 6]
        ... ]
        >>> correlation([[40.0, 0, 10, 0, 0, 0, 10, 0, 40], [9.0, 0, 0, 0, 0, 0, 0, 0, 0]], moments)
        array([0.6, 0. ])
    """
    count, s, ss, t, ts, tt = _moments(statistics, moments)
    spread = np.sqrt(_variance(count, t, tt) * _variance(count, s, ss))
    found = _covariance(count, s, t, ts) / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.where(spread > 0, np.clip(found, -1, 1), 0.0))


def mean_interval(
    statistics: ArrayLike,
    moments: ArrayLike,
    scales: ArrayLike,
    kind: Kind,
    confidence: float = 0.95,
    *,
    step: float = 0.0,
) -> Interval:
    """Return the least and the largest mean of t that the noisy statistics allow, for each cell.

    The means m with |Σt - mn| within the half width of its own noise (Fieller): exact, for any data.

    Args:
        statistics: As for `mean`.
        moments: As for `mean`.
        scales: Of the noises, in rows.
        kind: "laplace" or "gaussian".
        confidence: At least this often the interval holds the truth; from 0.5 to 0.99.
        step: What the noises are multiples of, in rows; 0 if that is much less than the scales.

    Example:
        >>> moments = [[1, 1], [0, 1]]
        >>> low, high = mean_interval([[60.0, 20.0], [-3.0, 2.0]], moments, 1.0, "laplace")
        >>> low.round(3), high.round(3)
        (array([0.22, 0.  ]), array([0.278, 1.   ]))
    """
    return _by_cells(_means, mean, statistics, _Noise.of(scales, kind, step, confidence, _matrix(moments)))


def variance_interval(
    statistics: ArrayLike,
    moments: ArrayLike,
    scales: ArrayLike,
    kind: Kind,
    confidence: float = 0.95,
    *,
    step: float = 0.0,
) -> Interval:
    """Return the least and the largest variance of t that the noisy statistics allow, for each cell.

    The v with |Σ((t - m)² - v)| within the half width of its own noise, with m the estimated mean. An error of m moves
    the sum by its square only, times n; twice what is expected of that is added to the half width.

    Args:
        statistics: As for `variance`.
        moments: As for `variance`.
        scales: Of the noises, in rows.
        kind: "laplace" or "gaussian".
        confidence: At least this often the interval holds the truth; from 0.5 to 0.99.
        step: What the noises are multiples of, in rows; 0 if that is much less than the scales.

    Example:
        >>> moments = [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]
        >>> low, high = variance_interval([[400.0, 200.0, 400.0], [2.0, 3.0, -1.0]], moments, 1.0, "laplace")
        >>> low.round(4), high.round(4)
        (array([0.1487, 0.    ]), array([0.1513, 0.25  ]))
    """
    return _by_cells(_variances, variance, statistics, _Noise.of(scales, kind, step, confidence, _matrix(moments)))


def standard_deviation_interval(
    statistics: ArrayLike,
    moments: ArrayLike,
    scales: ArrayLike,
    kind: Kind,
    confidence: float = 0.95,
    *,
    step: float = 0.0,
) -> Interval:
    """Return the roots of `variance_interval`.

    Args:
        statistics: As for `variance`.
        moments: As for `variance`.
        scales: Of the noises, in rows.
        kind: "laplace" or "gaussian".
        confidence: At least this often the interval holds the truth; from 0.5 to 0.99.
        step: What the noises are multiples of, in rows; 0 if that is much less than the scales.

    Example:
        >>> moments = [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]
        >>> low, high = standard_deviation_interval([[400.0, 200.0, 400.0]], moments, 1.0, "laplace")
        >>> low.round(4), high.round(4)
        (array([0.3857]), array([0.3889]))
    """
    low, high = variance_interval(statistics, moments, scales, kind, confidence, step=step)
    return np.sqrt(low), np.sqrt(high)


def covariance_interval(
    statistics: ArrayLike,
    moments: ArrayLike,
    scales: ArrayLike,
    kind: Kind,
    confidence: float = 0.95,
    *,
    step: float = 0.0,
) -> Interval:
    """Return the least and the largest covariance of t and s that the noisy statistics allow, for each cell.

    As `variance_interval`, with Σ((t - m)(s - k) - c) for the estimated means m and k; and between what any two means
    of their intervals allow.

    Args:
        statistics: As for `covariance`.
        moments: As for `covariance`.
        scales: Of the noises, in rows.
        kind: "laplace" or "gaussian".
        confidence: At least this often the interval holds the truth; from 0.5 to 0.99.
        step: What the noises are multiples of, in rows; 0 if that is much less than the scales.

    Example:
        >>> moments = np.kron([[1, 1], [0, 1]], [[1, 1], [0, 1]])
        >>> low, high = covariance_interval([[400.0, 100.0, 100.0, 400.0]], moments, 1.0, "laplace")
        >>> low.round(4), high.round(4)
        (array([0.1483]), array([0.1517]))
    """
    return _by_cells(_covariances, covariance, statistics, _Noise.of(scales, kind, step, confidence, _matrix(moments)))


def correlation_interval(
    statistics: ArrayLike,
    moments: ArrayLike,
    scales: ArrayLike,
    kind: Kind,
    confidence: float = 0.95,
    *,
    step: float = 0.0,
) -> Interval:
    """Return the least and the largest correlation of t and s that the noisy statistics allow, for each cell.

    With f the part of t's variance in the sum of both, Σ(r (1-f)(t - m)² + r f (s - k)² - 2√(f(1-f)) (t - m)(s - k)) is
    0 for the true means m and k, f and correlation r, and an error of m, k or f moves it by its square only. So they
    are estimated, as for `variance_interval`. Where a column may be constant the interval is [-1, 1].

    Args:
        statistics: As for `correlation`.
        moments: As for `correlation`.
        scales: Of the noises, in rows.
        kind: "laplace" or "gaussian".
        confidence: At least this often the interval holds the truth; from 0.5 to 0.99.
        step: What the noises are multiples of, in rows; 0 if that is much less than the scales.

    Example:
        >>> moments = np.kron([[1, 1, 1], [0, 0.5, 1], [0, 0, 1]], [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]])[
        ...     [0, 1, 2, 3, 4, 6]
        ... ]
        >>> low, high = correlation_interval([[400.0, 0, 100, 0, 0, 0, 100, 0, 400]], moments, 1.0, "laplace")
        >>> low.round(3), high.round(3)
        (array([0.593]), array([0.607]))
    """
    return _by_cells(
        _correlations, correlation, statistics, _Noise.of(scales, kind, step, confidence, _matrix(moments))
    )


# Estimates, from moments.


def _matrix(moments: ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(moments, dtype=np.float64))


def _moments(statistics: ArrayLike, moments: ArrayLike) -> Floats:
    """Return the moments, first axis, of cells."""
    design = _matrix(moments)
    return np.asarray(np.moveaxis(_cells(statistics, design) @ design.T, -1, 0))


def _cells(statistics: ArrayLike, design: Floats) -> Floats:
    cells = np.asarray(statistics, dtype=np.float64)
    if cells.ndim == 0 or cells.shape[-1] != design.shape[1]:
        raise InvalidArgument(f"statistics have the shape {cells.shape}, not (…, {design.shape[1]}).")
    return cells


def _mean(count: Floats, first: Floats) -> Floats:
    above, below = np.maximum(first, 0), np.maximum(count - first, 0)
    total = above + below
    return np.asarray(np.where(total > 0, above / np.where(total > 0, total, 1), 0.5))


def _variance(count: Floats, first: Floats, second: Floats) -> Floats:
    """The variance of moments, between what is feasible for the mean: squares lie under values."""
    centre = _mean(count, first)
    return np.asarray(np.clip(second / np.maximum(count, 1), centre**2, centre) - centre**2)


def _covariance(count: Floats, s: Floats, t: Floats, ts: Floats) -> Floats:
    """The covariance of moments, between the bounds of Fréchet for the means."""
    one, other = _mean(count, t), _mean(count, s)
    product = np.clip(ts / np.maximum(count, 1), np.maximum(one + other - 1, 0), np.minimum(one, other))
    return np.asarray(product - one * other)


# Intervals, by inversion of tests.


@dataclass(frozen=True)
class _Noise:
    """What is known of the noises of an aggregate's statistics."""

    scales: Floats
    kind: Kind
    step: float
    missed: float
    design: Floats

    @classmethod
    def of(cls, scales: ArrayLike, kind: Kind, step: float, confidence: float, design: Floats) -> _Noise:
        _validate.choice("kind", kind, KINDS)
        _validate.real("confidence", confidence, 0.5, 0.99)  # a part of what is missed is more than half_width takes
        _validate.real("step", step, 0, 1e9)
        found = _validate.reals("scales", scales, 0, 1e15)
        if found.shape not in ((), (1,), (design.shape[1],)):
            raise InvalidArgument(f"scales have the shape {found.shape}, not ({design.shape[1]},).")
        return cls(found, kind, step, 1 - confidence, design)

    def weights(self, *coefficients: Floats | float) -> Floats:
        """Return the weights of the statistics in a combination of moments, for each cell."""
        return np.asarray(np.stack(np.broadcast_arrays(*coefficients), axis=-1) @ self.design)

    def ratio(self, cells: Floats, over: Floats, under: Floats) -> Interval:
        """Return a ratio from 0 to 1 for each cell, and the standard deviation of its error."""
        below = _at_least(cells, under)
        found = np.clip(np.sum(cells * over, axis=-1) / below, 0, 1)
        errors = np.sum(((over - found[:, None] * under) * self.scales) ** 2, axis=-1)
        return found, np.sqrt(errors * (2 if self.kind == "laplace" else 1)) / below

    def ratios(
        self,
        cells: Floats,
        over: Floats,
        under: Floats,
        low: float,
        high: float,
        *,
        part: float = 1.0,
        moved: Floats | float = 0.0,
    ) -> Interval:
        """Return the least and largest θ that a test of `over - θ under = 0` keeps; NaN where it keeps none.

        Args:
            cells: Noisy statistics.
            over: Weights of the statistics.
            under: Weights of the statistics.
            low: The least θ there is.
            high: The largest θ there is.
            part: Of what may be missed.
            moved: How far estimated parameters in the weights move the test.
        """
        above, below = np.sum(cells * over, axis=-1), np.sum(cells * under, axis=-1)

        def test(theta: Floats) -> Interval:
            weights = over - theta[:, None] * under
            width = half_widths(weights, self.scales, self.kind, 1 - self.missed * part, step=self.step)
            return above - theta * below, width + MOVED * moved

        ends = np.full(len(cells), float(low)), np.full(len(cells), float(high))
        return _edge(test, ends[1], ends[0]), _edge(test, ends[0], ends[1])


def _edge(test: Callable[[Floats], Interval], inside: Floats, end: Floats) -> Floats:
    """Return how far a test keeps θ on the way to an end; NaN where it keeps none.

    What rejects the end is concave in θ, since the half width is a norm: so it rejects an interval, and a chord lies on
    its safe side.
    """
    outside, (value, width) = end, test(end)
    sign, rejected, beyond = np.sign(value), np.abs(value) > width, np.abs(value) - width

    def excess(theta: Floats) -> Floats:
        value, width = test(theta)
        return np.asarray(sign * value - width)

    within = excess(inside)
    none = rejected & (within > 0)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        found = excess(middle)
        out = found > 0
        inside, within = np.where(out, inside, middle), np.where(out, within, found)
        outside, beyond = np.where(out, middle, outside), np.where(out, found, beyond)
    rise = np.where(rejected & ~none, beyond - within, 1.0)
    root = inside - (outside - inside) * within / rise
    return np.asarray(np.where(none, np.nan, np.where(rejected, root, end)))


def _by_cells(
    kept: Callable[[Floats, _Noise], Interval],
    estimate: Callable[[ArrayLike, ArrayLike], Floats],
    statistics: ArrayLike,
    noise: _Noise,
) -> Interval:
    """Return the hull of what tests keep for each cell and of its estimate."""
    cells = _cells(statistics, noise.design)
    low = np.array(estimate(cells, noise.design))
    high, flat = low.copy(), cells.reshape(-1, cells.shape[-1])
    lows, highs = low.reshape(-1), high.reshape(-1)
    for first in range(0, len(flat), CELLS):
        part = slice(first, first + CELLS)
        least, largest = kept(flat[part], noise)
        lows[part], highs[part] = np.fmin(lows[part], least), np.fmax(highs[part], largest)
    return lows.reshape(low.shape), highs.reshape(low.shape)


def _means(cells: Floats, noise: _Noise) -> Interval:
    return noise.ratios(cells, noise.weights(0, 1), noise.weights(1, 0), 0, 1)


def _variances(cells: Floats, noise: _Noise) -> Interval:
    count = noise.weights(1, 0, 0)
    m, error = noise.ratio(cells, noise.weights(0, 1, 0), count)
    moved = error**2 * _at_least(cells, count)
    return noise.ratios(cells, noise.weights(m**2, -2 * m, 1), count, 0, 0.25, moved=moved)


def _covariances(cells: Floats, noise: _Noise) -> Interval:
    count, t, s = noise.weights(1, 0, 0, 0), noise.weights(0, 0, 1, 0), noise.weights(0, 1, 0, 0)
    (m, one), (k, other) = noise.ratio(cells, t, count), noise.ratio(cells, s, count)
    moved = one * other * _at_least(cells, count)
    over = noise.weights(m * k, -m, -k, 1)
    low, high = noise.ratios(cells, over, count, -0.25, 0.25, part=1 - 2 * MEANS, moved=moved)
    ones, others = (noise.ratios(cells, value, count, 0, 1, part=MEANS) for value in (t, s))
    least, largest = _feasible(ones, others)
    return np.maximum(low, least), np.minimum(high, largest)


def _feasible(ones: Interval, others: Interval) -> Interval:
    """Return the least and largest covariance that two means allow (Fréchet); where no mean was kept, it is any."""
    a, c = (np.nan_to_num(low, nan=0.0) for low, _ in (ones, others))
    b, d = (np.nan_to_num(high, nan=1.0) for _, high in (ones, others))
    least = -np.minimum(np.minimum(b * d, (1 - a) * (1 - c)), 0.25)
    return least, np.minimum(np.minimum(b * (1 - c), d * (1 - a)), 0.25)


def _correlations(cells: Floats, noise: _Noise) -> Interval:
    count = noise.weights(1, 0, 0, 0, 0, 0)
    m, one = noise.ratio(cells, noise.weights(0, 0, 0, 1, 0, 0), count)
    k, other = noise.ratio(cells, noise.weights(0, 1, 0, 0, 0, 0), count)
    first, second = noise.weights(m**2, 0, 0, -2 * m, 0, 1), noise.weights(k**2, -2 * k, 1, 0, 0, 0)
    f, turned = noise.ratio(cells, first, first + second)
    moved = ((1 - f) * one**2 + f * other**2) * _at_least(cells, count)
    moved += turned**2 * _at_least(cells, first + second) / np.maximum(4 * f * (1 - f), LEAST)
    f = f[:, None]
    over = 2 * np.sqrt(f * (1 - f)) * noise.weights(m * k, -m, 0, -k, 1, 0)
    return noise.ratios(cells, over, (1 - f) * first + f * second, -1, 1, moved=moved)


def _at_least(cells: Floats, weights: Floats) -> Floats:
    """Return a sum over rows that is positive without noise, and is so here."""
    return np.asarray(np.maximum(np.sum(cells * weights, axis=-1), LEAST))
