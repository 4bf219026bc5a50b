"""What a weighted sum of independent noises stays within: the half width of a shortest symmetric interval.

`half_width` is for one sum of any length, `half_widths` for many short ones at once. Both round up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import exprel, ndtri

from .. import _validate
from ..errors import InvalidArgument
from ..mechanisms.additive import laplace95

Kind = Literal["laplace", "gaussian"]
Floats = NDArray[np.float64]
KINDS = ("laplace", "gaussian")
HIGHEST = 0.9999  # confidence
UP = 1 + 1e-8  # more than the error of what is computed, and far less than one can see
LONGEST = 2**21  # points of a lattice that is summed exactly
BLOCK = 256  # weights whose characteristic functions are multiplied at once
ENVELOPE = 1 + 5e-4  # what the table of an envelope may lack between its nodes


def half_width(
    weights: ArrayLike, scales: ArrayLike, kind: Kind, confidence: float = 0.95, *, integers: bool = False
) -> float:
    """Return the least x with P(|Σ wᵢXᵢ| ≤ x) ≥ confidence for independent noises Xᵢ, rounded up.

    Laplace noises Xᵢ are exact for one and two (closed forms), and computed from the characteristic function of the sum
    for more, to a part in 10^6. On integers with equal weights x is exact: a multiple of the weight. On integers with
    other weights half a step of the largest weight is added to the answer for continuous noise.

    Args:
        weights: Of the noises.
        scales: Of the noises: of Laplace noise its scale, of Gaussian noise σ. One number stands for all.
        kind: "laplace" or "gaussian".
        confidence: At least this often the sum stays within x; from 0.01 to 0.9999.
        integers: The noises are whole numbers: discrete Laplace or discrete Gaussian noise.

    Example:
        >>> round(half_width([1.0], 1.0, "laplace"), 4), half_width([1.0], 1.0, "laplace", integers=True)
        (2.9957, 3.0)
        >>> round(half_width([1.0, 1.0], [1.0, 2.0], "laplace"), 4)
        6.5478
        >>> round(half_width(np.ones(10_000), 1.0, "laplace"), 2), half_width(np.ones(100), 1.0, "gaussian")
        (277.18, 19.599...)
    """
    sizes, spreads = _checked(weights, scales, kind)
    missed = 1 - _validate.real("confidence", confidence, 0.01, HIGHEST)
    if not sizes.size:
        return 0.0
    if integers and np.ptp(sizes) == 0:
        return float(sizes[0] * _lattice(spreads, kind, missed))
    rest = 0.5 * float(sizes.max()) if integers else 0.0
    return _continuous(sizes * spreads, kind, missed) + rest


def half_widths(
    weights: ArrayLike, scales: ArrayLike, kind: Kind, confidence: float = 0.95, *, step: float = 0.0
) -> Floats:
    """Return `half_width` for each row of a matrix of weights, or a little more: 1.5 % at 95 %.

    One and two Laplace noises are exact, but for the rounding up. Of more, only Σa² and Σa⁴ are looked at (a = weight ·
    scale): the answer is the largest for any sum that has the same two. Gaussian noise is exact.

    Args:
        weights: Of shape (…, k): one sum for each row.
        scales: Of the k noises.
        kind: "laplace" or "gaussian".
        confidence: As for `half_width`.
        step: What the noises are multiples of; 0 for continuous noise. Half of it times the largest weight is added.

    Example:
        >>> half_widths([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]], 1.0, "laplace").round(3)
        array([2.997, 4.971])
    """
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    spread = sizes * np.asarray(scales, dtype=np.float64)
    missed = 1 - _validate.real("confidence", confidence, 0.01, HIGHEST)
    if _validate.choice("kind", kind, KINDS) == "gaussian":
        found = -float(ndtri(missed / 2)) * UP * np.sqrt(np.einsum("...i,...i->...", spread, spread))
    elif spread.shape[-1] <= 2:
        found = _pairs(spread, missed)
    else:
        found = _many(spread, missed)
    return np.asarray(found + 0.5 * step * sizes.max(axis=-1) if step else found)


def _checked(weights: ArrayLike, scales: ArrayLike, kind: Kind) -> tuple[Floats, Floats]:
    _validate.choice("kind", kind, KINDS)
    sizes = np.abs(np.atleast_1d(np.asarray(weights, dtype=np.float64)))
    spreads = np.asarray(scales, dtype=np.float64)
    if sizes.ndim != 1 or spreads.shape not in ((), (1,), sizes.shape):
        raise InvalidArgument("weights and scales are not two lists of the same length.", do="Pass a scale per weight.")
    spreads = np.broadcast_to(spreads, sizes.shape)
    if not (np.isfinite(sizes).all() and np.isfinite(spreads).all() and (spreads >= 0).all()):
        raise InvalidArgument("weights are not finite, or a scale is negative or not finite.")
    used = (sizes > 0) & (spreads > 0)
    return sizes[used], spreads[used]


def _continuous(spread: Floats, kind: Kind, missed: float) -> float:
    if kind == "gaussian":
        return float(-ndtri(missed / 2) * np.linalg.norm(spread)) * UP
    if spread.size == 1:
        return float(-math.log(missed) * spread[0]) * UP
    return float(_pairs(spread, missed)) if spread.size == 2 else _laplaces(spread, missed) * UP


# One sum of many noises: the characteristic function, on a grid.


def _laplaces(spread: Floats, missed: float, normal: float = 0.0) -> float:
    """The half width of a sum of Laplace noises, and of a Gaussian noise of variance `normal`, without rounding up."""
    deviation = math.sqrt(2 * float(spread @ spread) + normal)
    values, counts = np.unique(spread / deviation, return_counts=True)
    highest = 2 - math.log(missed)
    spacing = 2 * math.pi / (highest + 25)  # what lies beyond 25 standard deviations comes back as an alias: e^-35
    normal /= deviation**2
    length = math.ceil(_last(values, counts, normal, missed) / spacing)
    places = np.asarray((np.arange(length) + 0.5) * spacing, dtype=np.float64)
    heights = np.exp(_logarithm(values, counts, normal, places)) / places

    def excess(x: float) -> float:
        return 1 - 2 / math.pi * spacing * float(np.sin(places * x) @ heights) - missed

    return float(brentq(excess, 0, highest, xtol=1e-10)) * deviation


def _logarithm(values: Floats, counts: NDArray[np.int64], normal: float, places: Floats) -> Floats:
    total = -normal / 2 * places**2
    for first in range(0, values.size, BLOCK):
        part = slice(first, first + BLOCK)
        total -= np.log1p(np.outer(places, values[part]) ** 2) @ counts[part]
    return np.asarray(total)


def _last(values: Floats, counts: NDArray[np.int64], normal: float, missed: float) -> float:
    """Where the integral of sin(sx) φ(s)/s may end: what is left is less than 2 φ(s)/(s x)."""
    places = np.asarray(np.geomspace(1, 1e7, 400), dtype=np.float64)
    small = _logarithm(values, counts, normal, places) - np.log(places) < math.log(1e-9 * missed)
    return float(places[int(np.argmax(small))])


# Integers: the lattice itself.


def _lattice(spreads: Floats, kind: Kind, missed: float) -> int:
    """The least k with P(|ΣXᵢ| ≤ k) ≥ 1 - missed for integer noises."""
    if kind == "laplace" and spreads.size == 1:
        return laplace95(float(spreads[0]), missed)
    deviation = float(np.linalg.norm(spreads)) * (math.sqrt(2) if kind == "laplace" else 1)
    length = 2 ** math.ceil(math.log2(60 * deviation + 60))
    if length > LONGEST:
        # Laplace noise is discrete Laplace noise and an independent part between, so it is never nearer to 0 (decision
        # 0012); discrete Gaussian noise this wide lies within k as often as Gaussian noise within k + 1/2.
        return math.ceil(_continuous(spreads, kind, missed))
    values, counts = np.unique(spreads, return_counts=True)
    transform = np.ones(length // 2 + 1)
    for value, count in zip(values, counts, strict=True):
        transform *= _transform(float(value), kind, length) ** count
    masses = np.fft.irfft(transform, length)[: length // 2]
    masses[1:] *= 2
    return int(np.argmax(np.cumsum(masses) >= 1 - missed + 1e-12))


def _transform(scale: float, kind: Kind, length: int) -> Floats:
    """The characteristic function of one integer noise at the frequencies of a transform."""
    if kind == "laplace":
        ratio = math.exp(-1 / scale)
        turns = np.sin(np.pi * np.arange(length // 2 + 1) / length) ** 2
        return np.asarray((1 - ratio) ** 2 / ((1 - ratio) ** 2 + 4 * ratio * turns))
    distance = np.minimum(np.arange(length), length - np.arange(length))
    masses = np.exp(-((distance / scale) ** 2) / 2)
    return np.asarray(np.fft.rfft(masses / masses.sum()).real)


# Many sums at once: tables of what depends on proportions alone.


def _pair_excess(larger: Floats, smaller: Floats, x: Floats) -> Floats:
    """P(|larger · X + smaller · Y| > x) of two Laplace noises; no difference of near numbers is taken."""
    apart = x * (larger - smaller) / (larger * np.maximum(smaller, 1e-300))
    more = smaller * x / (larger * (larger + smaller)) * exprel(-np.minimum(apart, 1e300))
    return np.asarray(np.exp(-x / larger) * (1 + more))


@lru_cache(maxsize=64)
def _pair_table(missed: float) -> Floats:
    """The half width of two noises with weights that add up to 1, at multiples of the smaller weight."""
    smaller = np.linspace(0, 0.5, 1025)
    low, high = np.zeros_like(smaller), np.full_like(smaller, -math.log(missed))
    for _ in range(60):
        middle = (low + high) / 2
        above = _pair_excess(1 - smaller, smaller, middle) > missed
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high * UP


def _pairs(spread: Floats, missed: float) -> Floats:
    """The half width is a norm of the weights (decision 0012), hence convex: a chord lies above it."""
    one, other = spread[..., 0], spread[..., -1]
    if spread.shape[-1] == 1:
        other = np.zeros_like(one)
    total = one + other
    share = np.minimum(one, other) / np.maximum(total, 1e-300)
    table = _pair_table(missed)
    return np.asarray(total * np.interp(share, np.linspace(0, 0.5, table.size), table))


@lru_cache(maxsize=64)
def _envelope(missed: float) -> tuple[Floats, Floats]:
    """For √(Σa⁴)/Σa²: the largest half width in standard deviations that any sum of noises has.

    The largest is that of one noise beside infinitely many small ones, or that of equal ones beside one smaller.
    """
    numbers = np.arange(1, 13)
    nodes = np.unique(np.concatenate([np.linspace(0, 1, 41), 1 / np.sqrt(numbers)]))
    mixed = [_laplaces(np.array([math.sqrt(node / 2)]), missed, 1 - node) for node in nodes[:-1]]
    chains = [np.sqrt([1.0] * count + [rest]) for count in numbers for rest in (0.05, 0.2, 0.5, 1.0)]
    ratios = np.array([math.sqrt(np.sum(one**4)) / np.sum(one**2) for one in chains])
    widths = np.array([_laplaces(one, missed) / math.sqrt(2 * np.sum(one**2)) for one in chains])
    order = np.argsort(ratios)
    single = -math.log(missed) / math.sqrt(2)
    chain = np.interp(nodes, np.append(ratios[order], 1), np.append(widths[order], single), left=0)
    return nodes, np.maximum(np.append(mixed, single), chain) * ENVELOPE


def _many(spread: Floats, missed: float) -> Floats:
    squares = spread * spread
    total = squares.sum(axis=-1)
    ratio = np.sqrt(np.einsum("...i,...i->...", squares, squares)) / np.maximum(total, 1e-300)
    nodes, widths = _envelope(missed)
    return np.asarray(np.sqrt(2 * total) * np.interp(ratio, nodes, widths))
