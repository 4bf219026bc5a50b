"""The Gaussian mechanism, continuous and discrete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erfcx, log_ndtr

from .law import UNIT, Complexes, Floats, Lattice, Loss, log_sum_exp, profile_of, waves, waves_error

WIDE = 12.5  # standard deviations kept on each side: Φ(-12.5) < 4e-36
SMALL = 1e-2  # of the scale: a move under this changes the sum over the integers by a difference that would cancel
FINE_GRID = 300.0  # from this scale on, a discrete Gaussian is summed in its dual, where one term is left


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """L ~ N(m²/2, m²), in both orders (THEORY 2.3). Gaussians compose to a Gaussian with m² = Σ m_i²."""

    m: float

    def log_mgf(self, x: Floats) -> Floats:
        return self.m**2 * x * (x + 1) / 2

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        t = step * np.arange(count + 1)
        exponent = self.m**2 / 2 * (-(t**2) + 1j * t * (2 * c + 1))
        return np.exp(exponent), UNIT * (8 + 4 * self.m**2 * (2 * c + 1) * t[-1])

    def log_decay(self, c: float, t: Floats) -> Floats:
        return -(self.m**2) * t**2 / 2

    def profile(self, epsilon: Floats) -> Floats:
        return np.exp(log_profile(self.m, epsilon))

    def mean(self) -> float:
        return self.m**2 / 2


def log_profile(m: Floats, epsilon: Floats) -> Floats:
    """Return ln δ(ε) of the Gaussian mechanism (THEORY 2.3), to a relative error of δ near 1e-13.

    With a = ε/m - m/2 and b = ε/m + m/2, δ = φ(a) [R(a) - R(b)], R the Mills ratio: for a > 0 the two scaled
    functions are subtracted, which loses few digits; otherwise the plain form does.
    """
    a, b = epsilon / m - m / 2, epsilon / m + m / 2
    narrow = (m < 0.5) & (a > -8)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lowest = np.where(narrow, -8.0, 0.0)
        mills = np.log(np.maximum(_mills_difference(np.maximum(a, lowest), np.maximum(b, lowest), m), 1e-320))
        far = -(a**2) / 2 - 0.5 * math.log(2 * math.pi) + mills
        first, second = log_ndtr(-a), epsilon + log_ndtr(-b)
        near = first + np.log1p(-np.exp(np.minimum(second - first, 0.0)))
    result: Floats = np.where((a > 0) | narrow, far, near)
    return result


def _mills_difference(a: Floats, b: Floats, m: Floats) -> Floats:
    """Return R(a) - R(b) for b = a + m; by the integral of R' = xR - 1 where they are close."""
    root = math.sqrt(math.pi / 2)
    plain = root * (erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2)))
    nodes, weights = _LEGENDRE
    x = ((a + b) / 2)[..., None] + np.multiply.outer(m / 2, nodes)
    integrated = m / 2 * (_minus_mills_slope(x) @ weights)
    return np.where(m < 0.5, integrated, plain)


def _minus_mills_slope(x: Floats) -> Floats:
    """Return 1 - x R(x), by its continued fraction where x is large and the difference would cancel."""
    near = 1 - x * math.sqrt(math.pi / 2) * erfcx(np.minimum(x, 30.0) / math.sqrt(2))
    inverse = 1 / np.maximum(x, 1.0) ** 2
    far = inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse * (1 - 9 * inverse * (1 - 11 * inverse)))))
    return np.where(x < 30, near, far)


_LEGENDRE = np.polynomial.legendre.leggauss(14)


@dataclass(frozen=True)
class DiscreteGaussianLoss(Loss):
    """P(x) ∝ e^{-x²/2σ²} on the integers, moved by an integer (THEORY 2.4): L = (Δ² - 2ΔX)/2σ² in both orders."""

    scale: float
    sensitivity: int

    @property
    def m(self) -> float:
        return self.sensitivity / self.scale

    @property
    def is_fine(self) -> bool:
        """Whether the grid is so fine that the dual theta series has one term left, up to `reach`."""
        return self.scale > FINE_GRID

    @property
    def reach(self) -> float:  # type: ignore[override]
        """How far along the line the transform is a Gaussian's: there 2 e^{-2π²σ² + 2πtΔ} is under `fineness`."""
        return (2 * math.pi**2 * self.scale**2 - 46) / (2 * math.pi * self.sensitivity) if self.is_fine else math.inf

    @property
    def fineness(self) -> float:
        """The relative error of taking the Gaussian's transform for one of these: 4 e^-46."""
        return 4 * math.exp(-46)

    def _points(self, center: float) -> Floats:
        half = WIDE * self.scale + 2
        return np.arange(math.floor(center - half), math.ceil(center + half) + 1, dtype=np.float64)

    def log_mgf(self, x: Floats) -> Floats:
        gaussian = self.m**2 * x * (x + 1) / 2
        if self.is_fine:
            return gaussian
        if np.ndim(x) == 0:  # the common case, in half of the time
            return np.asarray(gaussian + self._log_moment(float(x)))
        shifts = np.atleast_1d(x) * self.sensitivity
        # The theta sum is periodic in the shift: reduce it first, so that the grid stays near zero.
        moved = shifts - np.round(shifts)
        points, _, total = self._law
        moments = log_sum_exp(-((points + moved[:, None]) ** 2) / (2 * self.scale**2)) - total
        small = np.abs(moved) < SMALL * self.scale
        if small.any():
            moments = np.where(small, self._small_moments(np.where(small, moved, 0.0)), moments)
        return gaussian + moments.reshape(np.shape(x))

    def _log_moment(self, x: float) -> float:
        """What the theta sum adds, for one number."""
        shift = x * self.sensitivity
        moved = shift - round(shift) if math.isfinite(shift) else math.nan
        if abs(moved) < SMALL * self.scale:
            return float(self._small_moments(np.array([moved]))[0])
        points, _, total = self._law
        return float(log_sum_exp(-((points + moved) ** 2) / (2 * self.scale**2))) - total

    @cached_property
    def _law(self) -> tuple[Floats, Floats, float]:
        """The points of the noise, their probabilities, and the log of what these were divided by."""
        points = self._points(0.0)
        logs = -(points**2) / (2 * self.scale**2)
        total = float(log_sum_exp(logs))
        return points, np.exp(logs - total), total

    def _small_moments(self, moved: Floats) -> Floats:
        """Return the log of Σ e^{-(x+s)²/2σ²} over the same sum at s = 0, for small s: its terms at ±x are one.

        Their mean is e^{-s²/2σ²} cosh(xs/σ²): of the excess over one nothing of size one is subtracted.
        """
        points, weights, _ = self._law
        half = np.sinh(points * moved[:, None] / (2 * self.scale**2))
        fall = -(moved**2) / (2 * self.scale**2)
        return np.log1p(np.exp(fall) * np.sum(2 * weights * half**2, axis=-1) + np.expm1(fall))

    def lattice(self, c: float) -> Lattice | None:
        if self.is_fine:
            return None
        points = self._points(-c * self.sensitivity)
        logs = -((points + c * self.sensitivity) ** 2) / (2 * self.scale**2)
        weights = np.exp(logs - log_sum_exp(logs))
        spacing = self.sensitivity / self.scale**2
        offset = self.sensitivity**2 / (2 * self.scale**2)
        return Lattice(offset, spacing, -points.astype(np.int64), weights, 0.0)

    def work(self, c: float) -> int:
        return 1 if self.is_fine else int(2 * WIDE * self.scale)

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        lattice = self.lattice(c)
        assert lattice is not None, "a fine discrete Gaussian is merged with the Gaussians"
        losses = lattice.offset + lattice.spacing * lattice.places
        error = waves_error(losses, lattice.weights, step * count) + 1e-34
        return waves(losses, lattice.weights, step, count), error

    def profile(self, epsilon: Floats) -> Floats:
        if self.is_fine:
            return GaussianLoss(self.m).profile(epsilon)
        points = self._points(0.0)
        logs = -(points**2) / (2 * self.scale**2)
        weights = np.exp(logs - log_sum_exp(logs))
        losses = (self.sensitivity**2 - 2 * self.sensitivity * points) / (2 * self.scale**2)
        return profile_of(losses, weights, epsilon)

    def mean(self) -> float:
        return self.m**2 / 2
