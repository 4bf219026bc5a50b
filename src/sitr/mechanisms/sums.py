"""Sums, means and variances of numbers between public bounds, added exactly as integers.

Each row is clipped and rounded to a grid by itself (`rows`), and the sensitivity that is charged is that of the rounded
rows: the farthest grid point inside the bounds. Nothing is refused because of what a row holds.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import _validate
from ..accounting import DiscreteGaussian, Event, Gaussian, calibrate_noise, compose
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency
from .additive import AdditiveNoise, above, gaussian, laplace, laplace95
from .mechanism import Mechanism
from .randomness import Source
from .rows import Rows
from .samplers.draws import LARGEST_SCALE, LARGEST_SIGMA

Floats = NDArray[np.float64]
FINEST = 2**40  # steps between the bounds: as many as a sum of 10^12 rows can be asked to tell apart


class BoundedSum(Mechanism):
    """A noisy sum; made by `bounded_sum`.

    Attributes:
        error95: What the noise stays within, 95 times in 100.
        scale: Of the noise, in the units of the rows.
        step: Rows are rounded to multiples of this: by half of it at most, and by less than it beside the bounds.
        sensitivity: How far one person moves the sum of the rounded rows; what is charged.
    """

    def __init__(self, rows: Rows, noise: AdditiveNoise, sensitivity: int) -> None:
        self.event, self._rows, self._noise = noise.event, rows, noise
        self.step, self.sensitivity = float(rows.span.step), float(sensitivity * rows.span.step)
        self.scale, self.error95 = noise.scale * self.step, noise.error95 * self.step

    def __repr__(self) -> str:
        return f"BoundedSum({self.event!r}, scale={self.scale:g})"

    def _checked(self, value: Any) -> int:
        count, total = self._rows.power_sums("values", value, 1)
        return total + self._rows.span.lower * count

    def _drawn(self, value: int, source: Source | None) -> Any:
        noisy = value if source is None else value + int(self._noise.noise(source)[0])
        exponent = self._rows.span.exponent
        return noisy if exponent is None else math.ldexp(noisy, exponent)


def bounded_sum(
    *,
    bounds: tuple[float, float],
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    integers: bool = False,
    missing: float | None = None,
    adjacency: Adjacency = "add_remove",
) -> BoundedSum:
    """Return the sum of a column of numbers, one of each person, clipped to bounds.

    Args:
        bounds: What the numbers are clipped to; public, never read off the data. Infinities are clipped too.
        epsilon: The pure ε that a release costs, by Laplace noise; with
        delta: in (0, 1) the cost is (ε,δ), by Gaussian noise; or
        rho: the ρ of zero-concentrated privacy that it costs, by Gaussian noise.
        integers: Rows are rounded to whole numbers, and the answer is one.
        missing: What stands for a row that is NaN, None or no number. Left out: such a row is left out under
            `add_remove`, and is the middle of the bounds under `replace_one`, where their number is public.
        adjacency: Under `add_remove` the number of people is private, under `replace_one` it is public.

    Privacy: discrete Laplace or Gaussian noise, charged by its own curve (THEORY 2.4). Rows are rounded to a grid, each
    by itself, and added as integers of any size, so the sum is exact, in any order, for any number of rows. One row
    adds a grid point between the bounds, or nothing; so the sensitivity is the larger of |lower| and |upper| under
    `add_remove`, and upper - lower under `replace_one` (THEORY 1.1), both of the grid points, which are attained. The
    time tells how many rows there are and, of a list, whether all are plain numbers; that of a typed array does not.

    Example:
        >>> total = bounded_sum(bounds=(0, 100), epsilon=1.0, integers=True)
        >>> round(total.event.pure(), 9), total.sensitivity, total.error95
        (1.0, 100.0, 300.0)
        >>> total.release([70, 250, -3, float("nan")], unsafe_without_noise=True).value
        170
        >>> isinstance(total.release([]).value, int)
        True
    """
    target = _Target.of(epsilon, delta, rho)
    wide = _validate.choice("adjacency", adjacency, ADJACENCIES) == "replace_one"
    ratio = target.ratio(1, joint=False)
    finest = target.finest(ratio, 1)
    rows = _rows(bounds, missing, adjacency, finest=finest, reach="width" if wide else "size", integers=integers)
    moved = rows.width if wide else max(-rows.span.lower, rows.span.upper)
    if target.epsilon is not None and target.delta is None:
        noise = laplace(epsilon=target.epsilon, sensitivity=moved, integers=True, adjacency=adjacency)
    else:
        noise = gaussian(epsilon=epsilon, delta=delta, rho=rho, sensitivity=moved, integers=True, adjacency=adjacency)
    return BoundedSum(rows, noise, moved)


@dataclass(frozen=True)
class Design:
    """Which sums are measured for a mean or a variance.

    With t in [0, 1] the place of a row between the bounds, `rows` are sums over (1, t, t²), and `degrees` the powers of
    the width in steps that make each of them whole. One person moves statistic j by at most width^degree; where they
    are `joint`, by so much in ℓ1 together.

    `ENDS` for Laplace noise are the Bernstein polynomials: not negative, their sum is 1, so that one person moves all
    of them together by exactly as much as one of them. Sum and count then have the whole ε each, where two releases
    would have half. `WAVES` for Gaussian noise are Chebyshev's: each within [-1, 1]; they are composed, each charged by
    its own curve. `KNOWN` is for a public number of people: t and (2t - 1)², each within [0, 1], composed.
    """

    rows: tuple[tuple[int, ...], ...]
    degrees: tuple[int, ...]
    joint: bool = False
    counts: bool = True

    def statistics(self, sums: tuple[int, ...], width: int) -> list[int]:
        """Return the exact statistics, from n, Σk and Σk²: Σ row_i width^{degree - i} Σk^i."""
        return [
            sum(part * width ** (degree - i) * sums[i] for i, part in enumerate(row) if part)
            for row, degree in zip(self.rows, self.degrees, strict=True)
        ]

    @property
    def inverse(self) -> Floats:
        """From statistics over width^degree back to n, Σt and Σt²; where n is known, it comes first."""
        size = len(self.rows[0])
        known = [] if self.counts else [[1] + [0] * (size - 1)]
        return np.asarray(np.linalg.inv(np.array([*known, *self.rows], dtype=np.float64)))


ENDS = {
    1: Design(((1, -1), (0, 1)), (1, 1), joint=True),
    2: Design(((1, -2, 1), (0, 2, -2), (0, 0, 1)), (2, 2, 2), joint=True),
}
WAVES = {1: Design(((1, 0), (-1, 2)), (0, 1)), 2: Design(((1, 0, 0), (-1, 2, 0), (1, -8, 8)), (0, 1, 2))}
KNOWN = {1: Design(((0, 1),), (1,), counts=False), 2: Design(((0, 1, 0), (1, -4, 4)), (1, 2), counts=False)}


class Moments(Mechanism):
    """What `bounded_mean` and `bounded_variance` share: noisy sums of powers, and what is computed of them.

    Attributes:
        error95: None: it depends on how many people there are, and is stated with each release.
        step: Rows are rounded to multiples of this, as for `BoundedSum`.
        bounds: The multiples between which rows are clipped: those inside the bounds that were asked for.
    """

    error95 = None
    degree: int

    def __init__(self, rows: Rows, design: Design, noises: tuple[AdditiveNoise, ...], within: Floats) -> None:
        self.event = compose(*(noise.event for noise in noises))
        self._rows, self._design, self._noises, self._within = rows, design, noises, within
        self.step, self.bounds = (
            float(rows.span.step),
            (rows.span.value(rows.span.lower), rows.span.value(rows.span.upper)),
        )
        self._inverse = design.inverse
        self._scales = [rows.width**degree for degree in design.degrees]
        self._mean = self._mean_error()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.event!r})"

    def accuracy(self, rows: int) -> float:
        """Return about the `error95` that a release states where there are so many people."""
        return self._scaled(0.5, self._error(_validate.integer("rows", rows, 1, 2**53), 0.5))[1]

    @abstractmethod
    def _estimate(self, sums: Floats) -> tuple[float, float]:
        """Return the answer for rows from 0 to 1 from noisy sums, and where the error is to be computed."""

    @abstractmethod
    def _error(self, count: float, place: float) -> float:
        """Return what the noise moves the answer by at most, 95 times in 100, for rows from 0 to 1."""

    @abstractmethod
    def _scaled(self, value: float, error: float) -> tuple[float, float]:
        """Return both in the units of the rows, with the rounding of the rows as part of the error."""

    def _checked(self, value: Any) -> tuple[int, ...]:
        return self._rows.power_sums("values", value, self.degree)

    def _answered(self, checked: tuple[int, ...], source: Source | None) -> tuple[float, float]:
        exact = self._design.statistics(checked, self._rows.width)
        drawn = [] if source is None else [int(one) for noise in self._noises for one in noise.noise(source)]
        noisy = [value + noise for value, noise in zip(exact, drawn, strict=True)] if drawn else exact
        known = [] if self._design.counts else [float(checked[0])]
        sums = self._inverse @ np.array([*known, *map(operator.truediv, noisy, self._scales)])
        value, place = self._estimate(sums)
        return self._scaled(value, self._error(float(sums[0]), place))

    def _drawn(self, value: tuple[int, ...], source: Source | None) -> float:
        return self._answered(value, source)[0]

    def _mean_error(self) -> float:
        """What the noises move a mean by at most, with one person: (-m, 1) of them for m = 0 or 1, the worst."""
        rest = (0.0,) * (self.degree - 1)
        weights = [self._weights((-mean, 1.0, *rest)) for mean in (0.0, 1.0)]
        together: Callable[[Floats], Any] = np.linalg.norm if self._independent else np.sum
        return max(float(together(one)) for one in weights)

    @property
    def _independent(self) -> bool:
        """Whether what noises stay within holds for each alone, and they are Gaussian: then squares add up."""
        return self.degree == 1 and not self._design.joint

    def _weights(self, functional: tuple[float, ...]) -> Floats:
        """How much of each statistic's noise a sum over (n, Σt, Σt²) has, in multiples of what that stays within."""
        return np.asarray(
            np.abs(np.array(functional) @ self._inverse)[0 if self._design.counts else 1 :] * self._within
        )


class BoundedMean(Moments):
    """A noisy mean; made by `bounded_mean`."""

    degree = 1

    def _estimate(self, sums: Floats) -> tuple[float, float]:
        return min(max(float(sums[1]) / max(float(sums[0]), 1.0), 0.0), 1.0), 0.5

    def _error(self, count: float, place: float) -> float:
        return min(self._mean / count, 1.0) if count >= 1 else 1.0

    def _scaled(self, value: float, error: float) -> tuple[float, float]:
        low, high = self.bounds
        return min(max(low + value * (high - low), low), high), error * (high - low) + self.step


class BoundedVariance(Moments):
    """A noisy variance; made by `bounded_variance`."""

    degree = 2

    def _estimate(self, sums: Floats) -> tuple[float, float]:
        count, first, second = map(float, sums)
        count = max(count, 1.0)
        mean = first / count
        return min(max(second / count - mean**2, 0.0), 0.25), mean

    def _error(self, count: float, place: float) -> float:
        if count < 1:
            return 0.25
        farthest = max(abs(place), abs(1 - place)) ** 2
        around = [self._weights((place**2 - square, -2 * place, 1.0)) for square in (0.0, farthest)]
        return min(max(float(one.sum()) for one in around) / count + (self._mean / count) ** 2, 0.25)

    def _scaled(self, value: float, error: float) -> tuple[float, float]:
        width = self.bounds[1] - self.bounds[0]
        return value * width**2, error * width**2 + self.step * (width + self.step)


def bounded_mean(
    *,
    bounds: tuple[float, float],
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    missing: float | None = None,
    adjacency: Adjacency = "add_remove",
) -> BoundedMean:
    """Return the mean of a column of numbers, one of each person, clipped to bounds; how many there are is private.

    Under `replace_one` their number is public, and the noisy sum is divided by it. A release states its own `error95`;
    `accuracy(rows)` foretells it. The answer lies between the bounds; without data it is noise.

    Args:
        bounds: What the numbers are clipped to; public.
        epsilon: The pure ε that a release costs, by Laplace noise; with
        delta: in (0, 1) the cost is (ε,δ), by Gaussian noise; or
        rho: the ρ of zero-concentrated privacy that it costs, by Gaussian noise.
        missing: As for `bounded_sum`.
        adjacency: Under `add_remove` the number of people is private, under `replace_one` it is public.

    Privacy: with Laplace noise Σ(x - lower) and Σ(upper - x) are measured: each row moves the two together by exactly
    upper - lower in ℓ1, so they cost one ε, and their sum is n(upper - lower) (THEORY 2.2, 2.4). With Gaussian noise
    the sum about the middle of the bounds and the count are measured, with equal ratios of noise to sensitivity, and
    composed (THEORY 4.5). Sums are exact, as for `bounded_sum`.

    The error: where ŝ and n̂ are noisy, with noises η and ν, and m is the mean, (ŝ/n̂ - m) n̂ = η - mν. `error95` is what
    |η - mν| stays within 95 times in 100 for the worst m, over the released n̂, or the distance of the bounds where that
    is less or n̂ < 1; a step is added for the rounding of rows. It speaks of the clipped rows, and is post-processing.
    The worst m is 0 or 1 between the bounds: a sum of independent symmetric log-concave noises with weights that add up
    to 1 is more peaked than one of them alone (Proschan 1965), and a Gaussian's variance is convex in m.

    Example:
        >>> mean = bounded_mean(bounds=(0, 120), epsilon=1.0)
        >>> round(mean.event.pure(), 9), round(mean.accuracy(rows=1000), 3)
        (1.0, 0.359)
        >>> release = mean.release([30, 40, 50] * 1000, unsafe_seed=1)
        >>> round(release.value, 2), round(release.error95, 3)
        (39.9, 0.12)
    """
    return BoundedMean(*_measured(1, bounds, _Target.of(epsilon, delta, rho), missing, adjacency, missed=0.05))


def bounded_variance(
    *,
    bounds: tuple[float, float],
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    missing: float | None = None,
    adjacency: Adjacency = "add_remove",
) -> BoundedVariance:
    """Return the variance (over n) of a column of numbers, one of each person, clipped to bounds; n is private.

    A release states its own `error95`; `accuracy(rows)` foretells it for data about the middle of the bounds. The
    answer lies between 0 and (upper - lower)²/4; without data it is noise.

    Args:
        bounds: What the numbers are clipped to; public.
        epsilon: The pure ε that a release costs, by Laplace noise; with
        delta: in (0, 1) the cost is (ε,δ), by Gaussian noise; or
        rho: the ρ of zero-concentrated privacy that it costs, by Gaussian noise.
        missing: As for `bounded_sum`.
        adjacency: Under `add_remove` the number of people is private, under `replace_one` it is public.

    Privacy: with t from 0 to 1 between the bounds, Laplace noise measures Σ(1 - t)², Σ2t(1 - t) and Σt²: each row moves
    the three together by exactly 1 in ℓ1, so they cost one ε (THEORY 2.2, 2.4). Gaussian noise measures n, Σ(2t - 1)
    and Σ(8t² - 8t + 1), each moved by 1 at most, composed (THEORY 4.5). Where n is public, under `replace_one`, Σt and
    Σ(2t - 1)² are measured and composed. Sums are exact, as for `bounded_sum`.

    The error: with a the released mean, the variance is r - (m - a)², where r is the mean square about a; its estimate
    is that of r. All noises stay within their bounds at once 95 times in 100, which bounds the errors of r and of the
    mean through the released count, for the worst r and m. The rounding of rows is added.

    Example:
        >>> variance = bounded_variance(bounds=(0, 120), epsilon=1.0)
        >>> round(variance.event.pure(), 9), round(variance.accuracy(rows=10_000), 1)
        (1.0, 4.4)
        >>> release = variance.release([30, 40, 50] * 1000, unsafe_seed=1)
        >>> abs(release.value - 200 / 3) < release.error95
        True
    """
    return BoundedVariance(*_measured(2, bounds, _Target.of(epsilon, delta, rho), missing, adjacency, missed=0.05))


@dataclass(frozen=True)
class _Target:
    """What a release may cost."""

    epsilon: float | None
    delta: float | None
    rho: float | None

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, rho: float | None) -> _Target:
        if (epsilon is None) == (rho is None) or (epsilon is None and delta is not None):
            raise InvalidArgument(
                f"epsilon={epsilon}, delta={delta}, rho={rho} is not one target.",
                do="Pass epsilon, or epsilon and delta, or rho.",
            )
        if epsilon is not None:
            _validate.real("epsilon", epsilon, 1e-9, 1e4)
        if delta is not None:
            _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
        if rho is not None:
            _validate.real("rho", rho, 1e-18, 1e8)
        return cls(epsilon, delta, rho)

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.epsilon is None or self.delta is not None

    def ratio(self, count: int, *, joint: bool) -> float:
        """Return about the noise over the sensitivity that so many statistics need, to choose the grid by."""
        if self.rho is not None:
            return math.sqrt(count / (2 * self.rho))
        assert self.epsilon is not None
        if self.delta is None:
            return (1 if joint else count) / self.epsilon
        return self._calibrated(lambda noise: Gaussian(noise) * count)

    def finest(self, ratio: float, degree: int) -> int:
        """Return how many steps the bounds may be apart, so that noise on a power of that many can be drawn."""
        largest = (LARGEST_SIGMA if self.gaussian else LARGEST_SCALE) // 2
        return max(int(min(FINEST, largest / ratio) ** (1 / degree)), 1)

    def noises(self, design: Design, width: int, adjacency: Adjacency) -> tuple[AdditiveNoise, ...]:
        """Return the noise of each statistic, or of all at once where they are joint."""
        moved, count = [width**degree for degree in design.degrees], len(design.degrees)
        if self.epsilon is not None and self.delta is None:
            parts, length = (1, count) if design.joint else (count, None)
            return tuple(
                laplace(
                    scale=above(one * parts / Fraction(self.epsilon)),
                    sensitivity=one,
                    integers=True,
                    length=length,
                    adjacency=adjacency,
                )
                for one in (moved[:1] if design.joint else moved)
            )

        def event(ratio: float) -> Event:
            return compose(*(DiscreteGaussian(ratio * one, one, adjacency=adjacency) for one in moved))

        ratio = self._calibrated(event) if self.rho is None else math.sqrt(count / (2 * self.rho)) * (1 + 2.0**-50)
        return tuple(gaussian(scale=ratio * one, sensitivity=one, integers=True, adjacency=adjacency) for one in moved)

    def _calibrated(self, event: Callable[[float], Event]) -> float:
        found = calibrate_noise(event, epsilon=self.epsilon, delta=self.delta, bounds=(0.01, 1e9))
        return float(found.value)


def _rows(bounds: Any, missing: float | None, adjacency: Adjacency, **options: Any) -> Rows:
    rows = Rows.of(bounds, missing, **options)
    if missing is None and adjacency == "replace_one":
        return Rows.of(bounds, rows.low + (rows.high - rows.low) / 2, **options)
    return rows


def _measured(
    degree: int, bounds: Any, target: _Target, missing: float | None, adjacency: Adjacency, missed: float
) -> tuple[Rows, Design, tuple[AdditiveNoise, ...], Floats]:
    """Return what a mean or a variance is made of; noises stay within the last, but for `missed` of the time."""
    if _validate.choice("adjacency", adjacency, ADJACENCIES) == "replace_one":
        design = KNOWN[degree]
    else:
        design = (WAVES if target.gaussian else ENDS)[degree]
    count = len(design.degrees)
    rows = _rows(bounds, missing, adjacency, finest=target.finest(target.ratio(count, joint=design.joint), degree))
    noises = target.noises(design, rows.width, adjacency)
    each = missed if degree == 1 else 1 - (1 - missed) ** (1 / count)
    within = []
    for place, moved in enumerate(design.degrees):
        scale = noises[0 if design.joint else place].scale
        steps = -float(ndtri(each / 2)) * scale if target.gaussian else laplace95(scale, each)
        within.append((steps + 1) / float(rows.width) ** moved)
    return rows, design, noises, np.array(within)
