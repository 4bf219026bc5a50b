"""Laws with finitely many losses: randomized response, discrete Laplace, (ε,δ) claims, tables."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .law import (
    FARTHEST,
    SMALL,
    UNIT,
    Complexes,
    Floats,
    Lattice,
    Loss,
    Pair,
    log_sum_exp,
    mean_excess,
    moment_excess,
    profile_of,
    waves,
    waves_error,
)

LATTICE_TOLERANCE = 1e-13  # relative to the spread: a loss this near a lattice point is moved onto it, and charged
LONGEST_LATTICE = 200_000


@dataclass(frozen=True, eq=False)
class Atoms(Loss):
    """Finitely many losses, ascending, with the logs of their probabilities given that the loss is finite."""

    losses: Floats
    logs: Floats
    infinite_mass: float = 0.0
    uneven: bool = False  # P or Q has outcomes that the other has not, so that E e^{-L} is not 1
    stated: bool = False
    largest_stated: bool = False
    exact_largest: Fraction | None = None

    @classmethod
    def of(cls, losses: Floats, masses: Floats, infinite_mass: float = 0.0, uneven: bool = False) -> Atoms:
        """Sort, join equal losses, drop empty atoms, and condition on a finite loss; without any, all is infinite."""
        masses = np.asarray(masses, dtype=np.float64)
        kept = masses > 0
        if not kept.any():
            return cls(np.zeros(1), np.zeros(1), 1.0)
        values, joined = np.asarray(losses, dtype=np.float64)[kept], masses[kept]
        if not (values[1:] > values[:-1]).all():
            values, places = np.unique(values, return_inverse=True)
            joined = np.bincount(places.ravel(), weights=joined)
        logs = np.log(joined)
        return cls(values, logs - log_sum_exp(logs), infinite_mass, uneven)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return float(self.losses[-1])

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return float(self.losses[0])

    @property
    def top_mass(self) -> float:  # type: ignore[override]
        return math.exp(self.logs[-1])

    def log_mgf(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        if self._farthest == 0:
            return np.zeros(x.shape)
        if x.ndim == 0:  # the common case, in half of the time
            return self._log_moment(x[()])
        plain = log_sum_exp(self.logs + x[..., None] * self.losses)
        sizes = np.abs(x) * self._farthest
        small = (sizes < SMALL) | (self._balanced & (np.abs(plain) < SMALL) & (sizes < FARTHEST))
        if not small.any():
            return plain
        tiny = np.where(small, x, 0.0)[..., None]
        excess = moment_excess(tiny, self.losses) if self._balanced else np.expm1(tiny * self.losses)
        excess = np.sum(self._masses * excess, axis=-1)
        return np.where(small, np.log1p(excess), plain)

    def _log_moment(self, x: np.float64) -> np.float64:
        """The same of one number."""
        moment = np.float64(log_sum_exp(self.logs + x * self.losses))
        size = abs(x) * self._farthest
        if size >= SMALL and not (self._balanced and abs(moment) < SMALL and size < FARTHEST):
            return moment
        excess = moment_excess(x, self.losses) if self._balanced else np.expm1(x * self.losses)
        return np.float64(np.log1p((self._masses * excess).sum()))

    @cached_property
    def _masses(self) -> Floats:
        return np.exp(self.logs)

    @cached_property
    def _farthest(self) -> float:
        return max(self.largest, -self.smallest)

    @cached_property
    def _balanced(self) -> bool:
        """Whether E e^{-L} = 1, to the last digits."""
        if self.uneven or self.infinite_mass or self._farthest > 30:
            return False
        total = float(np.sum(np.exp(self.logs - self.losses)))
        return bool(abs(total - 1) < 8 * UNIT * (4 + self.losses.size))

    def tilted(self, c: float) -> Floats:
        """Return the probabilities of the law tilted by e^{cL}."""
        logs = self.logs + c * self.losses
        return np.exp(logs - log_sum_exp(logs))

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        weights = self.tilted(c)
        size = float(np.max(np.abs(self.losses)))
        error = waves_error(self.losses, weights, step * count) + 4e-16 * c * size
        return waves(self.losses, weights, step, count), error

    def profile(self, epsilon: Floats) -> Floats:
        return profile_of(self.losses, self._masses, epsilon)

    def mean(self) -> float:
        terms = mean_excess(self.losses) if self._balanced else self.losses
        return float(np.sum(self._masses * terms))

    def work(self, c: float) -> int:
        return int(self.losses.size)

    def lattice(self, c: float) -> Lattice | None:
        if self._places is None:
            return None
        places, spacing, rounding = self._places
        return Lattice(float(self.losses[0]), spacing, places, self.tilted(c), rounding)

    @cached_property
    def _places(self) -> tuple[np.ndarray, float, float] | None:
        """Find a spacing that every loss is a multiple of, seen from the smallest one."""
        distances = self.losses - self.losses[0]
        spread = float(distances[-1])
        if self.losses.size == 1 or spread == 0:
            return np.zeros(self.losses.size, dtype=np.int64), 1.0, 0.0
        spacing = common_divisor(distances[1:], LATTICE_TOLERANCE * spread)
        if spacing is None or spread / spacing > LONGEST_LATTICE:
            return None
        places = np.round(distances / spacing).astype(np.int64)
        rounding = float(np.max(np.abs(distances - places * spacing)))
        return (places, spacing, rounding) if rounding <= 8 * LATTICE_TOLERANCE * spread else None


def common_divisor(distances: Floats, tolerance: float) -> float | None:
    """Return the greatest spacing that divides all distances within the tolerance (Euclid), or None."""
    divisor = float(distances[-1])
    for distance in distances:
        a, b = float(max(distance, divisor)), float(min(distance, divisor))
        while b > 4 * tolerance:
            rest = math.fmod(a, b)
            a, b = b, (0.0 if b - rest <= 4 * tolerance else rest)
        divisor = a
        if divisor < 1e4 * tolerance:
            return None
    return divisor


def pair_of(losses: Floats, masses: Floats, infinite_mass: float = 0.0) -> Pair:
    """Make both orders from P's masses at finite losses and its mass at infinity (THEORY 1.2).

    Q's mass at loss l is e^{-l} P's; what is left of Q's mass lies where P has none, and is infinite loss there.
    """
    losses, masses = np.asarray(losses, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    # What Q lacks of one is what P's finite losses say, less what P has of infinite ones: nothing of size one cancels.
    other = masses * np.exp(-losses)
    missing = math.fsum([*(masses * -np.expm1(-losses)), infinite_mass])
    rounding = 4 * UNIT * math.fsum([*(np.abs(masses * np.expm1(-losses)) * (2 + np.abs(losses))), infinite_mass])
    missing = _missing(losses, masses, infinite_mass) if missing > rounding else 0.0
    uneven = bool(infinite_mass or missing)
    forward = replace(Atoms.of(losses, masses, infinite_mass, uneven), stated=True, largest_stated=True)
    return Pair(forward, Atoms.of(-losses, other, missing, uneven))


def _missing(losses: Floats, masses: Floats, infinite_mass: float) -> float:
    """Return the same to its last digit, though most of it may cancel."""
    with localcontext(prec=60):
        rows = zip(masses.tolist(), losses.tolist(), strict=True)
        return float(sum((Decimal(p) * (1 - (-Decimal(loss)).exp()) for p, loss in rows), Decimal(infinite_mass)))


def two_point(epsilon: float, delta: float) -> Pair:
    """The pair of a black box that is known to be (ε,δ)-DP (Kairouz–Oh–Viswanath; THEORY 2.6)."""
    if delta >= 1:
        return nothing()
    return Pair.symmetric(replace(response(epsilon, delta), stated=True, largest_stated=True))


def response(epsilon: float, delta: float = 0.0) -> Atoms:
    """Losses of ±ε, as randomized response has them, outside a mass of δ (THEORY 2.1, 2.6)."""
    return Atoms(np.array([-epsilon, epsilon]), -np.logaddexp(0.0, np.array([epsilon, -epsilon])), delta)


def nothing() -> Pair:
    """Nothing is promised: every loss is infinite."""
    return Pair.symmetric(Atoms(np.zeros(1), np.zeros(1), 1.0, stated=True))


def hull(points: list[tuple[float, float]]) -> Pair:
    """The pair of a mechanism known by several (ε,δ) at once, in both orders (THEORY 2.6).

    The lower convex hull, in (e^ε, δ), of each point, its mirror image and (0, 1); slopes are Q's masses. Differences
    of slopes cancel, and so does what is left of Q near e^ε = 0: all of it is exact, in integers, and only the
    logarithms of the masses are rounded.
    """
    if len(points) == 1:
        return two_point(*points[0])
    chain = _lower_hull(points)
    if len(chain) == 1:
        return nothing()
    beyond = Vertex(chain[-1].y + ONE, chain[-1].delta, math.inf)  # the last slope is 0
    logs = np.array([_log_mass(*three) for three in zip(chain, chain[1:], [*chain[2:], beyond], strict=False)])
    losses = np.array([vertex.epsilon for vertex in chain[1:]])
    law = Atoms(losses, logs - log_sum_exp(logs), chain[-1].delta / ONE)
    return Pair.symmetric(replace(law, stated=True, largest_stated=True))


class Vertex(NamedTuple):
    """A point of a privacy profile: y = e^ε and δ in units of 1/ONE, and the ε that it came from."""

    y: int
    delta: int
    epsilon: float


# Every double in [0, 1] is a whole number of these units, and e^-600 has more than a hundred digits in them.
ONE = 1 << 1280
SURE_DIGITS = 60


def _lower_hull(points: list[tuple[float, float]]) -> list[Vertex]:
    vertices = [Vertex(0, ONE, -math.inf)]
    for (epsilon, delta), y in zip(points, _exponentials([e for e, _ in points]), strict=True):
        left = int(Fraction(delta) * ONE)
        vertices.append(Vertex(y, left, epsilon))
        vertices.append(Vertex(ONE * ONE // y, ONE - (ONE - left) * ONE // y, -epsilon))
    chain: list[Vertex] = []
    for vertex in sorted(vertices):
        if chain and chain[-1].y == vertex.y:  # the lowest came first
            continue
        while len(chain) >= 2 and _turns_up(chain[-2], chain[-1], vertex):
            chain.pop()
        chain.append(vertex)
    while len(chain) > 1 and chain[-1].delta >= chain[-2].delta:
        chain.pop()
    return chain


def _exponentials(epsilons: list[float]) -> list[int]:
    """Return each e^ε in units of 1/ONE, with so many digits that those of e^ε - 1 and of differences are sure too."""
    known = sorted({0.0, *epsilons})
    closest = min((b - a for a, b in pairwise(known)), default=1.0)
    with decimal.localcontext() as context:
        context.prec = SURE_DIGITS + max(-math.floor(math.log10(closest)), 0)
        ratios = [Decimal(e).exp().as_integer_ratio() for e in epsilons]
    return [top * ONE // bottom for top, bottom in ratios]


def _turns_up(a: Vertex, b: Vertex, c: Vertex) -> bool:
    """Say whether b lies on or above the chord from a to c."""
    return (b.delta - a.delta) * (c.y - a.y) >= (c.delta - a.delta) * (b.y - a.y)


def _log_mass(a: Vertex, b: Vertex, c: Vertex) -> float:
    """Return the log of P's mass at b: e^ε times the change of slope there."""
    before, after = b.y - a.y, c.y - b.y
    mass = b.y * ((c.delta - b.delta) * before - (b.delta - a.delta) * after)
    unit = before * after * ONE
    size = mass.bit_length() - unit.bit_length()
    return math.log(mass / (unit << size) if size >= 0 else (mass << -size) / unit) + size * math.log(2)
