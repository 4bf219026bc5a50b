"""What the engines ask of a privacy-loss law, and the pair of laws that an event has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .rounding import ROUNDED, rounded_up

# Scalars and arrays alike: the formulas are the same for both, and NumPy's own types would tell them apart.
Floats: TypeAlias = Any
Complexes: TypeAlias = Any

BLOCK = 2048  # nodes that `waves` takes at a time: keeps its tables in memory
LARGEST_EXPONENT = 700.0  # of e that is a number, with room for a few more
FAINT = 2.0**-1000  # a mass under which rounding may take many of its digits
UNIT = 2.0**-53  # half the spacing of doubles near 1: the unit of the rounding model


class Lattice(NamedTuple):
    """A tilted law on `offset + spacing * places`, with probabilities that sum to one."""

    offset: float
    spacing: float
    places: NDArray[np.int64]
    weights: Floats
    rounding: float  # how far a loss may lie from its lattice point


class Loss(ABC):
    """The privacy loss L = ln P/Q under P in one order of the pair (THEORY 1.2), given that it is finite.

    `M(z) = E e^{zL}` below always means the law conditioned on a finite loss; the mass at infinity is apart.
    """

    infinite_mass: float = 0.0
    stated: bool = False  # `infinite_mass` is a number that was given, not one that was computed and is rounded
    largest_stated: bool = False  # and so is `largest`
    largest: float = math.inf  # no loss is above it: rounded up, where it was computed
    exact_largest: Fraction | None = None  # what it was before, where that is a fraction
    smallest: float = -math.inf
    top_mass: float = 0.0
    reach: float = math.inf  # `ratios` is accurate for |t| up to here
    tilt_limit: float = math.inf  # up to here `log_mgf` is exact; beyond, an upper bound
    orders: tuple[float, ...] = ()  # the orders of a table, where that is all that is known
    closed: bool = False  # `profile` is a closed form without cancellation
    tuning: float = 0.0  # multiplications, about, that it takes to find a tilt and to bound |M| there, if they are many

    @property
    def bound(self) -> Fraction:
        """What no loss is above, before any rounding that is known, so that many of them do not add up roundings."""
        return Fraction(self.largest) if self.exact_largest is None else self.exact_largest

    @property
    def largest_below(self) -> float:
        """What some loss reaches: `largest` itself, where that was given."""
        return self.largest if self.largest_stated else self.largest - ROUNDED * abs(self.largest)

    @property
    def log_finite(self) -> float:
        """The log of the probability that the loss is finite."""
        return math.log1p(-self.infinite_mass) if self.infinite_mass < 1 else -math.inf

    @abstractmethod
    def log_mgf(self, x: Floats) -> Floats:
        """Return ln M(x) for real x."""

    @abstractmethod
    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        """Return M(c + i k step) / M(c) for k = 0..count, and a bound on the absolute error of each."""

    @abstractmethod
    def profile(self, epsilon: Floats) -> Floats:
        """Return E[(1 - e^{epsilon - L})_+] for real epsilon (THEORY 1.3)."""

    @abstractmethod
    def mean(self) -> float:
        """Return E L."""

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Return the log of a bound on |M(c + it')| / M(c) that holds for every t' between t and `reach`."""
        return np.zeros_like(t)

    def work(self, c: float) -> int:
        """Return how many terms `ratios` sums for one node; a formula counts as a dozen."""
        return 12

    def moment_work(self, c: float) -> float:
        """Return how many multiplications, about, ln M(c) takes where they are many, and 0 where they are few."""
        return 0.0

    def blur(self, epsilon: float) -> float:
        """Return how far the ε that a closed form was computed at may lie from the one asked for."""
        return 0.0

    def lattice(self, c: float) -> Lattice | None:
        """Return the law tilted by e^{cL} on its lattice, or None where it has none."""
        return None


@dataclass(frozen=True)
class Pair:
    """Both orders of a dominating pair: `forward` is ln P/Q under P, with the person; `backward` ln Q/P under Q.

    `beneath`, where given, is a pair that the truth dominates: then this pair is only an upper side. `renyi`, where
    given, has Rényi curves that hold for the truth and lie under this pair's. `alone` is what the truth dominates
    where nothing is composed with it, and `grown` makes the pair of a group, where sensitivity says it. `leads` says
    that the forward order has the larger moments, as it has where the orders were equal before sampling (THEORY 2.7).
    `attains` makes more pairs that the truth dominates, from a number between 0 and 1: which is best, a question says.
    `farthest` says that of all neighbours whom this pair stands for, none has likelier losses above any x ≥ 0
    (THEORY 1.6): whoever is closer has a smaller P[L > x], and not only a smaller δ.
    """

    forward: Loss
    backward: Loss
    beneath: Pair | None = None
    renyi: Pair | None = None
    alone: Pair | None = None
    grown: Callable[[int], Pair] | None = field(default=None, compare=False)
    leads: bool = False
    attains: Callable[[float], Pair] | None = field(default=None, compare=False)
    farthest: bool = False

    @classmethod
    def symmetric(cls, loss: Loss, *, farthest: bool = False) -> Pair:
        return cls(loss, loss, farthest=farthest)

    @property
    def is_symmetric(self) -> bool:
        return self.forward is self.backward


class LaterPair(Pair):
    """A pair whose laws are made when they are first asked for; its Rényi curves are there at once.

    A filter asks for the curves, the largest loss and the infinite mass alone, and laws that are cut into cells cost a
    thousand times as much.
    """

    def __init__(self, renyi: Pair, make: Callable[[], Pair]) -> None:
        object.__setattr__(self, "renyi", renyi)
        object.__setattr__(self, "_make", make)

    @cached_property
    def made(self) -> Pair:
        """The laws."""
        return self._make()  # type: ignore[attr-defined,no-any-return]  # set around the frozen dataclass

    @property
    def forward(self) -> Loss:
        return self.made.forward

    @property
    def backward(self) -> Loss:
        return self.made.backward

    @property
    def beneath(self) -> Pair | None:
        return self.made.beneath

    @property
    def alone(self) -> Pair | None:
        return self.made.alone

    @property
    def attains(self) -> Callable[[float], Pair] | None:
        return self.made.attains

    __eq__ = object.__eq__  # comparing the laws would make them
    __hash__ = object.__hash__


def share_of(q: float, mass: float) -> float:
    """Return q times a mass, for q > 0: to the last digits, and rounded up where the smallest numbers have few of them.

    Example:
        >>> share_of(0.5, 1e-6), share_of(0.1, 1e-323)
        (5e-07, 5e-324)
    """
    product = q * mass
    return product if product >= FAINT or not mass else rounded_up(Fraction(q) * Fraction(mass))


def before_sampling(epsilon: float, q: float) -> float:
    """Return ln(1 + (e^ε - 1)/q), the loss that sampling at rate q makes ε of (THEORY 2.7): any ε over ln(1 - q).

    Example:
        >>> round(before_sampling(1.0, 0.01), 6), round(before_sampling(690.0, 1e-10), 6)
        (5.152298, 713.025851)
    """
    grown = math.expm1(epsilon) / q if epsilon < LARGEST_EXPONENT else math.inf
    if grown < math.inf:
        return math.log1p(grown) if grown > -1 else -math.inf
    return epsilon + math.log(-math.expm1(-epsilon)) - math.log(q)  # 1 is nothing beside what is no number


def waves(losses: Complexes, weights: Complexes, step: float, count: int) -> Complexes:
    """Return the sums over x of weights[x] e^{i k step losses[x]} for k = 0..count.

    Two short tables of powers and one matrix product: one multiplication for each node and k, and no
    transcendental function in the loop. Complex losses are fine while their imaginary parts are not negative.
    """
    short = math.isqrt(count) + 1
    starts, ends = short * np.arange(count // short + 1), np.arange(short)
    total = np.zeros((starts.size, short), dtype=np.complex128)
    for first in range(0, losses.size, BLOCK):
        turn = 1j * step * losses[first : first + BLOCK]
        coarse = np.exp(np.outer(starts, turn)) * weights[first : first + BLOCK]
        total += coarse @ np.exp(np.outer(turn, ends))
    return total.ravel()[: count + 1]


def waves_error(losses: Floats, weights: Floats, t: float) -> float:
    """Bound the error of `waves` up to t by the rounding model of docs/decisions/0004.

    Each term: its weight, two exponentials and two products; its phase, a product of a loss that carries a few
    rounding errors itself; the sum, whose errors add like a random walk in its length.
    """
    size = np.abs(weights)
    terms = float(np.sum(size)) * (16 + 4 * math.sqrt(losses.size))
    return UNIT * (terms + 6 * t * float(np.sum(size * (np.abs(losses) + UNIT))))


def profile_of(losses: Floats, weights: Floats, epsilon: Floats) -> Floats:
    """Return the sum of weights (1 - e^{epsilon - losses})_+ for each epsilon (THEORY 1.3)."""
    gains = -np.expm1(np.minimum(np.asarray(epsilon)[..., None] - losses, 0.0))
    return np.asarray(np.sum(weights * gains, axis=-1))


SMALL = 1e-2  # where ln M(x) stays under this, it is summed from the excess of M over one
FARTHEST = 300.0  # up to here e^{xl} is a number, and a sum of them


def moment_excess(x: Floats, losses: Floats) -> Floats:
    """Return e^{xl} - 1 + x(e^{-l} - 1), whose mean is M(x) - 1 wherever E e^{-L} = 1: never negative for x ≥ 0.

    By its series where l is small, so that a tiny loss keeps its digits.
    """
    series = losses**2 * (
        (x**2 + x) / 2 + losses * ((x**3 - x) / 6 + losses * ((x**4 + x) / 24 + losses * (x**5 - x) / 120))
    )
    plain = np.expm1(x * losses) + x * np.expm1(-losses)
    return np.where(np.maximum(np.abs(losses), np.abs(x * losses)) < 1e-3, series, plain)


def small_log_moment(x: float, losses: Floats, masses: Floats) -> float:
    """Return ln E e^{xL} near 0, from positive terms, so that a tiny moment keeps its digits.

    Where Q has mass that these losses have not, E e^{-L} falls short of 1 by more than rounding, and terms of either
    sign are summed.
    """
    terms = moment_excess(np.float64(x), losses) if _have_all(losses, masses) else np.expm1(x * losses)
    return math.log1p(float(np.sum(masses * terms)))


def small_mean(losses: Floats, masses: Floats) -> float:
    """Return E L in the same way."""
    return float(np.sum(masses * (mean_excess(losses) if _have_all(losses, masses) else losses)))


def _have_all(losses: Floats, masses: Floats) -> bool:
    """Whether E e^{-L} = 1, but for rounding."""
    with np.errstate(over="ignore"):
        gaps = masses * np.expm1(-losses)
    return bool(abs(float(np.sum(gaps))) <= 64 * UNIT * float(np.sum(np.abs(gaps))) < math.inf)


def mean_excess(losses: Floats) -> Floats:
    """Return l + e^{-l} - 1, whose mean is E L where E e^{-L} = 1: never negative, so a tiny mean keeps its digits."""
    with np.errstate(over="ignore"):
        return np.where(np.abs(losses) < 1e-4, losses**2 / 2 - losses**3 / 6, losses + np.expm1(-losses))


def log_sum_exp(values: Floats, axis: int = -1) -> Floats:
    """Return ln of the sum of e^values along an axis; -inf entries are fine."""
    if values.ndim == 1:  # the common case, in a third of the time
        highest = float(values.max())
        return np.float64(highest + math.log(np.exp(values - highest).sum()) if math.isfinite(highest) else highest)
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.sum(np.exp(values - top), axis=axis))
    return total + np.squeeze(top, axis=axis)


def complex_expm1(z: Complexes) -> Complexes:
    """e^z - 1 with full relative accuracy for small z."""
    half = np.imag(z) / 2
    grown, sine = np.expm1(np.real(z)), np.sin(half)
    size, bent = 1 + grown, 2 * sine * sine  # e^x, and 1 - cos y
    found = np.empty(np.shape(z), dtype=np.complex128)
    found.real, found.imag = grown - size * bent, size * (2 * sine * np.cos(half))
    return found[()]


def complex_log1p(z: Complexes) -> Complexes:
    """ln(1+z) with full relative accuracy; NumPy's complex log1p has only absolute accuracy.

    |1+z|² - 1 is formed without cancellation near z = 0; away from it the plain logarithm is the accurate one.
    """
    small = np.abs(z) < 0.5
    near, far = np.where(small, z, 0.0), np.where(small, 0.0, z)
    x, y = np.real(near), np.imag(near)
    size = np.where(small, np.log1p(x * (2 + x) + y * y) / 2, np.log(np.abs(1 + far)))
    return size + 1j * np.arctan2(np.imag(z), 1 + np.real(z))
