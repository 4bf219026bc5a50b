"""Laplace and Gaussian noise on numbers and vectors, drawn as integers and charged as what is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from scipy.special import ndtri

from .. import _validate
from ..accounting import DiscreteGaussian, DiscreteLaplace, Event, Gaussian, ZeroConcentrated, calibrate_noise
from ..errors import InvalidArgument
from ..units import Adjacency
from .grid import Grid
from .mechanism import Mechanism
from .randomness import Source
from .samplers.draws import LARGEST_SCALE, LARGEST_SIGMA, Variance, discrete_gaussian, discrete_laplace
from .samplers.table import Integers

MOST = 1e15  # sensitivities and scales that are accepted
LEAST = 1e-15
LONGEST = 10**8  # coordinates of a vector
FINER = 16  # bits by which the grid of a long vector may be finer than that of a number


class AdditiveNoise(Mechanism):
    """Exact integer noise on a grid; made by `laplace` and `gaussian`.

    Attributes:
        scale: Of the noise, in the units of the value.
        grid: Where answers lie.
    """

    def __init__(
        self, event: Event, grid: Grid, scale: float, draw: Callable[[int, Source], Integers], quantile: float
    ) -> None:
        self.event, self.grid, self._draw = event, grid, draw
        self.scale = scale * float(grid.step)
        rounding = 0.0 if grid.exponent is None else 0.5
        self.error95 = (quantile + rounding) * float(grid.step)

    def __repr__(self) -> str:
        return f"AdditiveNoise({self.event!r}, scale={self.scale:g})"

    def noise(self, source: Source) -> Integers:
        """Return noise alone, in grid steps, for a mechanism that adds it to integers of its own."""
        return self._draw(self.grid.count, source)

    def _checked(self, value: Any) -> Integers:
        return self.grid.placed("value", value)

    def _drawn(self, value: Integers, source: Source | None) -> Any:
        return self.grid.value(value if source is None else value + self.noise(source))


def laplace(
    *,
    sensitivity: float,
    epsilon: float | None = None,
    scale: float | None = None,
    integers: bool = False,
    length: int | None = None,
    adjacency: Adjacency | None = None,
) -> AdditiveNoise:
    """Return Laplace noise for a number, or a vector, that one person moves by at most `sensitivity`.

    Args:
        sensitivity: How far one person moves the value; for vectors in ℓ1.
        epsilon: The pure ε that a release may cost; or
        scale: the scale of the noise, in the units of the value.
        integers: The values are whole numbers, and so are the answers.
        length: How many numbers the value has; None for a single one.
        adjacency: The relation in which the sensitivity was measured.

    Privacy: pure ε-DP by discrete Laplace noise, charged by its own curve (THEORY 2.4). Floats are rounded to a grid
    2^20 times finer than the noise, and that rounding is part of the sensitivity charged.

    Example:
        >>> mechanism = laplace(epsilon=1.0, sensitivity=1.0)
        >>> round(mechanism.event.pure(), 9), round(mechanism.error95, 3)
        (1.0, 2.996)
        >>> isinstance(mechanism.release(3.7).value, float)
        True
    """
    size, length = _sensitivity(sensitivity), _length(length)
    if (epsilon is None) == (scale is None):
        raise InvalidArgument(f"epsilon={epsilon}, scale={scale} is not one target.", do="Pass exactly one of them.")
    cost = None if epsilon is None else Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4))
    wanted = size / cost if cost is not None else Fraction(_validate.real("scale", scale, LEAST, MOST))
    finer = min((length or 1).bit_length(), FINER)  # rounding adds a step for each number
    grid = Grid(None, length) if integers else Grid.below(wanted, length, finer)
    moved = max(math.floor(grid.cells(size)) + (0 if integers else grid.count), 1)
    noise = above(moved / cost if cost is not None else wanted / grid.step)
    in_range(noise, 1e-4, LARGEST_SCALE)
    event = DiscreteLaplace(scale=noise, sensitivity=moved, adjacency=adjacency)
    exact = Fraction(noise)
    return AdditiveNoise(event, grid, noise, lambda n, source: discrete_laplace(exact, n, source), laplace95(noise))


def gaussian(
    *,
    sensitivity: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    scale: float | None = None,
    integers: bool = False,
    length: int | None = None,
    adjacency: Adjacency | None = None,
) -> AdditiveNoise:
    """Return Gaussian noise for a number, or a vector, that one person moves by at most `sensitivity`.

    Args:
        sensitivity: How far one person moves the value; for vectors in ℓ2.
        epsilon: The ε that a release may cost, together with `delta`; or
        delta: In (0, 1).
        rho: the ρ of zero-concentrated privacy that it may cost; or
        scale: the standard deviation, in the units of the value.
        integers: The values are whole numbers, and so are the answers.
        length: How many numbers the value has; None for a single one.
        adjacency: The relation in which the sensitivity was measured.

    Privacy: discrete Gaussian noise; a number is charged by its own curve, a vector by ρ = Δ²/2σ², which holds in any
    dimension (THEORY 2.4). Floats are rounded as for `laplace`, which adds √length grid steps to the sensitivity.

    Example:
        >>> mechanism = gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0)
        >>> round(mechanism.scale, 3), float(mechanism.event.epsilon(delta=1e-6)) <= 1.0
        (4.225, True)
    """
    size, length = _sensitivity(sensitivity), _length(length)
    target = _Target.of(epsilon, delta, rho, scale)
    wanted = target.noise(size, lambda noise: Gaussian(noise / float(size)))
    finer = min((length or 1).bit_length() // 2, FINER // 2)  # rounding adds √length steps
    grid = Grid(None, length) if integers else Grid.below(wanted, length, finer)
    moved = grid.cells(size) + (0 if integers else _root(grid.count))

    def event(noise: float) -> Event:
        if length is None:
            return DiscreteGaussian(noise, max(math.floor(moved), 1), adjacency=adjacency)
        return ZeroConcentrated(_up(float(moved**2) / (2 * noise**2)), adjacency=adjacency)

    noise = above(wanted / grid.step if scale is not None else target.noise(moved, event))
    in_range(noise, 0.01, LARGEST_SIGMA)
    variance = Variance(Fraction(noise) ** 2)
    error95 = math.ceil(-float(ndtri(0.025)) * noise)
    return AdditiveNoise(event(noise), grid, noise, lambda n, source: discrete_gaussian(variance, n, source), error95)


@dataclass(frozen=True)
class _Target:
    """What a Gaussian release may cost, or its scale."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    scale: float | None

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, rho: float | None, scale: float | None) -> _Target:
        target = cls(epsilon, delta, rho, scale)
        if (epsilon is None) != (delta is None) or sum(one is not None for one in (epsilon, rho, scale)) != 1:
            raise InvalidArgument(
                f"epsilon={epsilon}, delta={delta}, rho={rho}, scale={scale} is not one target.",
                do="Pass epsilon and delta, or rho, or scale.",
            )
        if epsilon is not None:
            _validate.real("epsilon", epsilon, 1e-9, 1e4)
            _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
        elif rho is not None:
            _validate.real("rho", rho, 1e-18, 1e8)
        else:
            _validate.real("scale", scale, LEAST, MOST)
        return target

    def noise(self, sensitivity: Fraction, event: Callable[[float], Event]) -> Fraction:
        """Return the standard deviation that meets the target for a sensitivity, in its units."""
        if self.scale is not None:
            return Fraction(self.scale)
        if self.rho is not None:
            return sensitivity * Fraction(_up(1 / math.sqrt(2 * self.rho)))
        size = float(sensitivity)
        found = calibrate_noise(
            lambda ratio: event(ratio * size), epsilon=self.epsilon, delta=self.delta, bounds=(1e-3, 1e9)
        )
        return Fraction(found.value * size)


def _sensitivity(value: float) -> Fraction:
    return Fraction(_validate.real("sensitivity", value, LEAST, MOST))


def _length(value: int | None) -> int | None:
    return None if value is None else _validate.integer("length", value, 1, LONGEST)


def _up(value: float) -> float:
    """A few units more: what is charged, or drawn, is never less than was computed."""
    return value * (1 + 2.0**-50)


def _root(count: int) -> Fraction:
    """√count, rounded up."""
    return Fraction(math.isqrt(count * 2**40) + 1, 2**20)


def above(value: Fraction) -> float:
    """The least float that is not under a fraction."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def in_range(noise: float, least: float, most: float) -> None:
    """Refuse noise that no sampler draws."""
    if not least <= noise <= most:
        raise InvalidArgument(
            f"the noise would be {noise:.3g} grid steps, outside [{least:g}, {most:g}].",
            do="Choose another epsilon, rho or scale, or other units for the value.",
        )


def laplace95(scale: float, missed: float = 0.05) -> int:
    """The least k with P(|X| > k) = 2 r^{k+1} / (1 + r) ≤ 0.05, or another probability."""
    return max(math.ceil(scale * (math.log(2 / missed) - math.log1p(math.exp(-1 / scale))) - 1), 0)
