"""Losses with density A e^{l/2} on [-e0, e0] and an atom at each end: Laplace and the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .law import UNIT, Complexes, Floats, Loss, moment_excess, waves

SMALL = 0.3  # where |x| e0 stays under this, moments are summed from their excess over one
_LEGENDRE = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class IntervalLoss(Loss):
    """The same law in both orders. `density` is A; `top` and `bottom` are the masses at ±e0."""

    closed = True

    e0: float
    density: float
    top: float
    bottom: float

    @classmethod
    def laplace(cls, e0: float) -> IntervalLoss:
        """THEORY 2.2: half the mass at e0, e^{-e0}/2 at -e0, density e^{(l-e0)/2}/4 between."""
        return cls(e0, math.exp(-e0 / 2) / 4, 0.5, math.exp(-e0) / 2)

    @classmethod
    def exponential(cls, e0: float) -> IntervalLoss:
        """THEORY 2.5: f = δ'' - δ' of the exact profile leaves no atom, and A = e^{e0/2} / 2(e^{e0} - 1)."""
        return cls(e0, math.exp(-e0 / 2) / (-2 * math.expm1(-e0)), 0.0, 0.0)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return self.e0

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return -self.e0

    @property
    def top_mass(self) -> float:  # type: ignore[override]
        return self.top

    def log_mgf(self, x: Floats) -> Floats:
        # In units of e^{|x| e0}, so that nothing overflows.
        x = np.asarray(x, dtype=np.float64)
        size = np.abs(x) * self.e0
        ends = self.top * np.exp(x * self.e0 - size) + self.bottom * np.exp(-x * self.e0 - size)
        y = np.abs(x + 0.5) * self.e0
        middle = self.density * self.e0 * _scaled_sinhc(y) * np.exp(y - size)
        plain = np.log(ends + middle) + size
        if self.e0 > SMALL:
            return plain
        nodes, weights = self._nodes
        small = size < SMALL
        excess = np.sum(weights * moment_excess(np.where(small, x, 0.0)[..., None], nodes), axis=-1)
        return np.where(small, np.log1p(excess), plain)

    @cached_property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Both atoms and a Gauss–Legendre rule for the density, for sums over a narrow law."""
        inner = self.e0 * _LEGENDRE[0]
        dense = self.density * np.exp(inner / 2) * self.e0 * _LEGENDRE[1]
        return np.append(inner, [self.e0, -self.e0]), np.append(dense, [self.top, self.bottom])

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        t = step * np.arange(count + 1)
        unit = math.exp(float(self.log_mgf(np.float64(c))) - c * self.e0)  # M(c) in units of e^{c e0}
        turn = waves(np.array([self.e0]), np.ones(1), step, count)
        z = c + 0.5 + 1j * t
        upper = turn * (self.top + self.density * math.exp(self.e0 / 2) / z)
        lower = np.conj(turn) * (self.bottom - self.density * math.exp(-self.e0 / 2) / z) * math.exp(-2 * c * self.e0)
        size = (1 + 1 / (2 * c + 1)) / unit
        return (upper + lower) / unit, UNIT * size * (24 + 6 * t[-1] * self.e0)

    def log_decay(self, c: float, t: Floats) -> Floats:
        unit = math.exp(float(self.log_mgf(np.float64(c))) - c * self.e0)
        atoms = self.top + self.bottom * math.exp(-2 * c * self.e0)
        swing = self.density * (math.exp(self.e0 / 2) + math.exp(-(0.5 + 2 * c) * self.e0))
        with np.errstate(divide="ignore"):
            return np.minimum(np.log((atoms + swing / t) / unit), 0.0)

    def profile(self, epsilon: Floats) -> Floats:
        """E(1 - e^{ε-L})_+ : top (1 - e^{ε-e0}) + A (e^{e0/2} - e^{ε/2})² e^{-e0/2}·2, and 1 - e^ε below -e0."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        inside = np.clip(epsilon, -self.e0, self.e0)
        half = -np.expm1((inside - self.e0) / 2)
        value = self.top * -np.expm1(inside - self.e0) + 2 * self.density * math.exp(self.e0 / 2) * half**2
        return np.where(epsilon < -self.e0, -np.expm1(np.minimum(epsilon, 0.0)), value)

    def mean(self) -> float:
        # ∫ l e^{l/2} over [-e0, e0] = 4 e0 cosh(e0/2) - 8 sinh(e0/2), by its series where that cancels.
        h = self.e0 / 2
        moment = 8 * h**3 / 3 * (1 + h**2 / 10 + h**4 / 280) if h < 0.05 else 8 * (h * math.cosh(h) - math.sinh(h))
        if self.top:  # Laplace: 1/λ + e^{-1/λ} - 1
            e0 = self.e0
            return e0**2 / 2 * (1 - e0 / 3 * (1 - e0 / 4 * (1 - e0 / 5))) if e0 < 1e-3 else e0 + math.expm1(-e0)
        return self.density * moment


def _scaled_sinhc(y: Floats) -> Floats:
    """Return 2 sinh(y) / (y e^y), continuous at 0."""
    safe = np.where(y > 0, y, 1.0)
    return np.where(y > 0, -np.expm1(-2 * safe) / safe, 2.0)
