"""Losses with density ∝ e^{l/2} on [-e0, e0] and an atom at each end: Laplace and the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from .law import UNIT, Complexes, Floats, Loss, complex_expm1, moment_excess
from .rounding import rounded_up

TINY = 1e-2  # where |x| e0 stays under this, moments are summed from their excess over one
_LEGENDRE = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class IntervalLoss(Loss):
    """The same law in both orders. The density is `edge` e^{(l - e0)/2}; `top` and `bottom` are the masses at ±e0."""

    closed = True

    e0: float
    edge: float
    top: float
    bottom: float
    exact_largest: Fraction | None = None

    @classmethod
    def laplace(cls, epsilon: float | Fraction) -> IntervalLoss:
        """THEORY 2.2: half the mass at e0, e^{-e0}/2 at -e0, density e^{(l-e0)/2}/4 between; e0 is ε, rounded up."""
        exact = Fraction(epsilon)
        e0 = rounded_up(exact)
        return cls(e0, 0.25, 0.5, math.exp(-e0) / 2, exact)

    @classmethod
    def exponential(cls, e0: float) -> IntervalLoss:
        """THEORY 2.5: f = δ'' - δ' of the profile leaves no atom, and the density ends at 1 / 2(1 - e^{-e0})."""
        return cls(e0, -0.5 / math.expm1(-e0), 0.0, 0.0)

    def masses(self, edges: Floats) -> Floats:
        """Return P's mass of the density between neighbouring edges; Q's are the same from the other end."""
        low, high = edges[:-1], edges[1:]
        return 2 * self.edge * np.exp((high - self.e0) / 2) * -np.expm1((low - high) / 2)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return self.e0

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return -self.e0

    @property
    def top_mass(self) -> float:  # type: ignore[override]
        return self.top

    @property
    def log_overlap(self) -> float:
        """ln(1 - δ(0)): what both have in common, however little."""
        if self.top:  # Laplace: e^{-e0/2}
            return -self.e0 / 2
        return math.log(2) - self.e0 / 2 - math.log1p(math.exp(-self.e0 / 2))  # 1 - tanh(e0/4)

    def log_mgf(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        # In units of e^{|x| e0}, so that nothing overflows.
        size = np.abs(x) * self.e0
        ends = self.top * np.exp(x * self.e0 - size) + self.bottom * np.exp(-x * self.e0 - size)
        y = np.abs(x + 0.5) * self.e0
        # y - size - e0/2, without the rounding of three numbers as large as e0.
        middle = self.edge * self.e0 * _scaled_sinhc(y) * np.exp(self.e0 * np.minimum(np.maximum(2 * x, -1.0), 0.0))
        plain = np.log(ends + middle) + size
        small = size < TINY
        if self.e0 > 3 or not np.any(small):  # a wider law needs more nodes than this rule has
            return plain
        nodes, weights = self._nodes
        excess = np.sum(weights * moment_excess(np.where(small, x, 0.0)[..., None], nodes), axis=-1)
        return np.where(small, np.log1p(excess), plain)

    @cached_property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Both atoms and a Gauss–Legendre rule for the density, for sums over a narrow law."""
        inner = self.e0 * _LEGENDRE[0]
        dense = self.edge * np.exp((inner - self.e0) / 2) * self.e0 * _LEGENDRE[1]
        return np.append(inner, [self.e0, -self.e0]), np.append(dense, [self.top, self.bottom])

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        t = step * np.arange(count + 1)
        unit = math.exp(float(self.log_mgf(np.float64(c))) - c * self.e0)  # M(c) in units of e^{c e0}
        turn = np.exp(1j * t * self.e0)
        z = c + 0.5 + 1j * t
        # ∫ of the density: its two ends nearly cancel where |z| e0 is small, so their ratio is taken from expm1.
        dense = turn * self.edge * -complex_expm1(-2 * self.e0 * z) / z
        atoms = self.top * turn + self.bottom * math.exp(-2 * c * self.e0) * np.conj(turn)
        return (atoms + dense) / unit, UNIT * (32 + 8 * t[-1] * self.e0)

    def log_decay(self, c: float, t: Floats) -> Floats:
        unit = math.exp(float(self.log_mgf(np.float64(c))) - c * self.e0)
        atoms = self.top + self.bottom * math.exp(-2 * c * self.e0)
        swing = self.edge * (1 + math.exp(-(1 + 2 * c) * self.e0))
        with np.errstate(divide="ignore"):
            return np.minimum(np.log((atoms + swing / t) / unit), 0.0)

    def profile(self, epsilon: Floats) -> Floats:
        """Top (1 - e^{ε-e0}) + 2 edge (1 - e^{(ε-e0)/2})², and 1 - e^ε below -e0."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        inside = np.clip(epsilon, -self.e0, self.e0)
        half = -np.expm1((inside - self.e0) / 2)
        value = self.top * -np.expm1(inside - self.e0) + 2 * self.edge * half**2
        return np.where(epsilon < -self.e0, -np.expm1(np.minimum(epsilon, 0.0)), value)

    def mean(self) -> float:
        e0 = self.e0
        if self.top:  # Laplace: 1/λ + e^{-1/λ} - 1, by its series where that cancels
            return e0**2 / 2 * (1 - e0 / 3 * (1 - e0 / 4 * (1 - e0 / 5))) if e0 < 1e-3 else e0 + math.expm1(-e0)
        if e0 < 0.1:  # 4 edge e^{-h} (2h cosh h - 2 sinh h), h = e0/2, by its series
            h = e0 / 2
            return self.edge * math.exp(-h) * 8 * h**3 / 3 * (1 + h**2 / 10 + h**4 / 280)
        return 4 * self.edge * (e0 / 2 * (1 + math.exp(-e0)) + math.expm1(-e0))


def _scaled_sinhc(y: Floats) -> Floats:
    """Return 2 sinh(y) / (y e^y), continuous at 0."""
    safe = np.where(y > 0, y, 1.0)
    return np.where(y > 0, -np.expm1(-2 * safe) / safe, 2.0)


@dataclass(frozen=True)
class BoundedRange(Loss):
    """The Rényi curve of bounded range e0: at each order the worst two-point pair with losses t and t - e0.

    P has mass (e^{e0} - e^t)/(e^{e0} - 1) at t. No single pair attains all orders, so this is a curve, not a law.
    """

    e0: float

    @property
    def largest(self) -> float:  # type: ignore[override]
        return self.e0

    def log_mgf(self, x: Floats) -> Floats:
        """The maximum over t, at e^t = x (e^{e0} - e^{-x e0}) / (x+1)(1 - e^{-x e0}), or x(x+1) e0²/8, or x e0."""
        x = np.asarray(x, dtype=np.float64)
        safe = np.where(x > 0, x, 1.0)
        wide, own = np.log(-np.expm1(-(1 + safe) * self.e0)), np.log(-np.expm1(-safe * self.e0))
        worst = np.log(safe / (1 + safe)) + self.e0 + wide - own
        last = math.log(-math.expm1(-self.e0))
        exact = safe * worst + wide - last - np.log1p(safe)
        # What is taken from one another are numbers as large as these, and the first ones are multiplied by x.
        rounded = 1 + np.abs(wide) + abs(last) + np.log1p(safe) + safe * (1 + self.e0 + np.abs(wide) + np.abs(own))
        zcdp = safe * (safe + 1) * self.e0**2 / 8
        # Near 0 the mean leads: a loss in an interval so wide has at most the variance e0²/4, however it is tilted.
        flat = safe * (self.mean() + 8 * UNIT) + safe**2 * self.e0**2 / 8
        bounds = exact + 8 * UNIT * rounded, zcdp, flat, safe * self.e0
        return np.where(x > 0, np.minimum.reduce(bounds), 0.0)

    def mean(self) -> float:
        if self.e0 < 1e-3:
            return self.e0**2 / 8
        high = -1 / math.expm1(-self.e0) - 1 / self.e0
        worst = math.log(math.expm1(min(self.e0, 700.0)) / self.e0) if self.e0 < 700 else self.e0 - math.log(self.e0)
        return worst - self.e0 * (1 - high)

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        raise TypeError("a Rényi curve has no characteristic function")

    def profile(self, epsilon: Floats) -> Floats:
        raise TypeError("a Rényi curve has no profile")
