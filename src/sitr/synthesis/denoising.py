"""What noisy counts say of the true ones: free, since nothing but the noisy counts and the law of the noise is used.

Two descriptions are tried, and the one under which the noisy counts are likelier is taken. Either the cells are alike
in no order, and how often which count occurs is found from all of them together; or neighbours are alike, and counts
are those of rows that fell into cells by a smooth law. Both end with the median of what each true count may be, which
is as near to it as can be in ℓ1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Floats = NDArray[np.float64]
Kind = Literal["laplace", "gaussian"]

STEPS = 1500  # of the search for how often which count occurs
DENSE = 200  # counts from 0 that are all possible; above them, those that were seen
SUPPORT = 1000  # different counts at most, seen or possible
KEPT = 5.0  # standard deviations from which on a difference between neighbours is believed
HALVINGS = 50


@dataclass(frozen=True)
class Spread:
    """The law of the noise on every count.

    Attributes:
        kind: "laplace" or "gaussian".
        scale: In rows: that of Laplace noise, or the standard deviation.
    """

    kind: Kind
    scale: float

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        return self.scale * math.sqrt(2) if self.kind == "laplace" else self.scale

    def log_density(self, distances: Floats) -> Floats:
        """Return the logarithm of the density of noise."""
        steps, width = np.abs(distances) / self.scale, 2.0
        if self.kind == "gaussian":
            steps, width = steps**2 / 2, math.sqrt(2 * math.pi)
        return -steps - math.log(width * self.scale)


class Denoised(NamedTuple):
    """What is thought of the true counts.

    Attributes:
        counts: The median of each.
        described_as: "alike" or "smooth": under what description.
    """

    counts: Floats
    described_as: str


def denoised(noisy: NDArray[Any], noise: Spread, *, ordered: bool) -> Denoised:
    """Return the medians of the true counts, given the noisy ones.

    Args:
        noisy: Counts with noise, one after the other.
        noise: Its law.
        ordered: Whether neighbours may be alike: cells of a number, a date or a time.

    Privacy: post-processing of the noisy counts (THEORY 6.2).

    Example:
        >>> rng = np.random.default_rng(1)
        >>> noisy = np.repeat([400, 100], 50) + np.rint(rng.laplace(0, 20, 100))
        >>> found = denoised(noisy, Spread("laplace", 20), ordered=True)
        >>> found.described_as, [int(part.mean().round(-1)) for part in np.split(found.counts, 2)]
        ('smooth', [400, 100])
    """
    counts = np.asarray(noisy, dtype=np.float64)
    alike = _alike(counts, noise)
    if ordered and counts.size > 3:
        smooth = _smooth(counts, noise)
        if smooth.evidence > alike.evidence:
            return Denoised(_medians(counts, smooth.expected, smooth.spread, noise), "smooth")
    return Denoised(alike.counts, "alike")


class Alike(NamedTuple):
    """Medians of counts in no order, and how likely the noisy ones are."""

    counts: Floats
    evidence: float


class Smooth(NamedTuple):
    """What counts are expected to be, and how likely the noisy ones are, less what it cost to choose that."""

    expected: Floats
    spread: Floats
    evidence: float


def _alike(noisy: Floats, noise: Spread) -> Alike:
    """Counts in no order, which occur by a law of their own; a true count is the median of it, given the noisy one.

    The law is the one under which the noisy counts are likeliest, of all on a grid, found by EM.
    """
    seen, back, times = _seen(noisy, noise)
    possible = _possible(seen)
    logs = noise.log_density(seen[:, np.newaxis] - possible)
    highest = logs.max(axis=1)
    likely = np.exp(logs - highest[:, np.newaxis])
    law = np.full(possible.size, 1 / possible.size)
    for _ in range(STEPS):
        law *= (times / (likely @ law)) @ likely / noisy.size
    given = likely * law
    under = np.cumsum(given, axis=1)
    medians = possible[(under < under[:, -1:] / 2).sum(axis=1)]
    return Alike(medians[back], float(times @ (np.log(likely @ law) + highest)))


def _seen(noisy: Floats, noise: Spread) -> tuple[Floats, NDArray[np.intp], Floats]:
    """The different noisy counts, on a coarser grid where there are too many, and how often each was seen."""
    step = 1.0
    while True:
        seen, back, times = np.unique(np.rint(noisy / step) * step, return_inverse=True, return_counts=True)
        if seen.size <= SUPPORT or step > noise.scale / 4:
            return seen, back, times.astype(np.float64)
        step *= 2


def _possible(seen: Floats) -> Floats:
    """What true counts may be: all small ones, and larger ones where something was seen."""
    large = seen[seen >= DENSE]
    if large.size > SUPPORT:
        large = np.unique(np.rint(np.quantile(large, np.linspace(0, 1, SUPPORT))))
    return np.concatenate([np.arange(DENSE, dtype=np.float64), large])


def _smooth(noisy: Floats, noise: Spread) -> Smooth:
    """Rows that fell into cells by a law in which neighbours are alike.

    Differences that the noise does not explain are kept, and all others are levelled. A true count is spread around
    what is expected by that like a Poisson number.
    """
    expected, chosen = _levelled(noisy, noise.deviation)
    spread = np.sqrt(np.maximum(expected, 0.25))
    evidence = float(_log_mixed(noisy - expected, spread, noise).sum()) - chosen * math.log(noisy.size)
    return Smooth(expected, spread, evidence)


def _levelled(noisy: Floats, deviation: float) -> tuple[Floats, float]:
    """Haar's differences at every place and width, without those that noise explains; and how many are left.

    All shifts are averaged, so that no place is preferred; the ends are mirrored.
    """
    means, kept, chosen = np.concatenate([noisy, noisy[::-1]]), [], 1.0
    for level in range(int(math.log2(noisy.size))):
        shifted = np.roll(means, -(1 << level))
        differences, means = (means - shifted) / 2, (means + shifted) / 2
        large = np.abs(differences) > KEPT * deviation * 2 ** (-(level + 1) / 2)
        kept.append(np.where(large, differences, 0.0))
        chosen += float(large.sum()) / 2 ** (level + 2)  # of a transform that keeps one shift only
    for level in reversed(range(len(kept))):
        means = (means + kept[level] + np.roll(means - kept[level], 1 << level)) / 2
    return np.maximum(means[: noisy.size], 0.0), chosen


def _log_mixed(distances: Floats, spread: Floats, noise: Spread) -> Floats:
    """The logarithm of the density of a normal number with noise on it, at a distance from the expectation."""
    if noise.kind == "gaussian":
        both = np.hypot(spread, noise.scale)
        return np.asarray(-((distances / both) ** 2) / 2 - np.log(both * math.sqrt(2 * math.pi)))
    ratio, steps = spread / noise.scale, distances / spread
    sides = [log_ndtr(-ratio + sign * steps) - sign * distances / noise.scale for sign in (1, -1)]
    return np.asarray(ratio**2 / 2 + np.logaddexp(*sides) - math.log(2 * noise.scale))


def _medians(noisy: Floats, expected: Floats, spread: Floats, noise: Spread) -> Floats:
    """The median of a normal number that is not negative, given what noise made of it."""
    if noise.kind == "gaussian":
        weight = spread**2 / (spread**2 + noise.scale**2)
        centre, width = expected + weight * (noisy - expected), spread * noise.scale / np.hypot(spread, noise.scale)
        return _upper_median(centre, width)
    low = np.zeros_like(noisy)
    high = np.maximum(np.maximum(noisy, expected) + 12 * spread, 1.0)
    half = _log_above(low, noisy, expected, spread, noise.scale) - math.log(2)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        over = _log_above(middle, noisy, expected, spread, noise.scale) > half
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return (low + high) / 2


def _upper_median(centre: Floats, width: Floats) -> Floats:
    """The median of a normal number that is not negative."""
    under = ndtr(-centre / width)
    return np.asarray(np.maximum(centre + width * ndtri((1 + under) / 2), 0.0))


def _log_above(bound: Floats, noisy: Floats, expected: Floats, spread: Floats, scale: float) -> Floats:
    """The logarithm of the mass above a bound of a normal number with Laplace noise on it, up to a common factor.

    Under the noisy value the noise leans one way, and above it the other: a shifted normal law on each side.
    """
    lean, away = spread**2 / scale, (noisy - expected) / scale
    up, down = expected + lean, expected - lean
    left = -away + _log_between((np.minimum(bound, noisy) - up) / spread, (noisy - up) / spread)
    right = away + log_ndtr((down - np.maximum(bound, noisy)) / spread)
    return np.asarray(np.logaddexp(np.where(bound < noisy, left, -np.inf), right))


def _log_between(low: Floats, high: Floats) -> Floats:
    """The logarithm of the normal mass between two bounds."""
    flip = low + high > 0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore"):
        return np.asarray(log_ndtr(last) + np.log1p(-np.exp(np.minimum(log_ndtr(first) - log_ndtr(last), 0.0))))
