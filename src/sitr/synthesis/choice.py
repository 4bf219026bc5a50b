"""Which tables are measured, how finely, and with how much noise: by what that is expected to gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..accounting.notions import SMOOTHING
from ..mechanisms.samplers.draws import LARGEST_SIGMA
from .measured import OFF

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]
Pair = tuple[int, int]
Key = TypeVar("Key", bound=Columns)

SMOOTHED = 0.5  # which part of small noise is left after many tables were fitted at once
GRID = 2  # deviations of noise are 2^(k/GRID),
LEAST_DEVIATION = 4.0  # and no smaller, so that hardly anything is outside of what passes for Gaussian noise
WORTH = 0.2  # the least part of its distance that measuring a table gains
HALVINGS = 60
NEWTON = 8  # steps to solve a cubic
SPARE = 2.0**-36  # the part of a μ that is left, so that what is rounded up is not above it


class Chosen(NamedTuple):
    """A table to be measured.

    Attributes:
        level: Of its bins.
        mu: What it costs.
        deviation: Of the noise on each number that is measured.
    """

    level: int
    mu: float
    deviation: float


@dataclass(frozen=True)
class Scores(Generic[Key]):
    """How far tables are from what is known of them, in rows.

    Attributes:
        tables: The columns of each.
        distances: By table and level: noisy ones, less a deviation of that noise, since those that are chosen are
            among the largest.
        errors: By how many rows, about, noise that costs a μ of 1 would take its cells away, in all; 0 where there is
            no table of that level: see `there`.
        reaches: How far a unit moves the whole numbers that would be measured, in ℓ2.
    """

    tables: tuple[Key, ...]
    distances: Floats
    errors: Floats
    reaches: Floats

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether a level has a table of its own: it has none with a column of one bin, or bins of the level before."""
        return self.errors > 0

    def chosen(self, mu: float, *, whole: bool = False) -> dict[Key, Chosen]:
        """Return the tables that gain most in all for the privacy μ.

        A price of μ² is found at which the tables that are worth it cost what there is, or less: noise is drawn with
        few deviations, so that about a quarter of μ² is left.

        Args:
            mu: What may be spent.
            whole: Whether all noise is then made smaller together, until nothing is left or no noise may be smaller.

        Privacy: never more than μ is spent. Where it is so small that every price lets through too much, as distances
        are but noise then, no table is measured.
        """
        low, high = 1e-6, 1e18
        for _ in range(HALVINGS):
            price = np.sqrt(low * high)
            low, high = (price, high) if (self._at(price)[1] ** 2).sum() > mu**2 else (low, price)
        levels, mus, deviations = self._at(high)
        if (mus**2).sum() > mu**2:
            return {}
        some = mus > 0
        if whole:
            mus[some], deviations[some] = _filled(mu, self.reaches[some, levels[some]], deviations[some])
        found = zip(self.tables, levels.tolist(), mus.tolist(), deviations.tolist(), strict=True)
        return {one: Chosen(*how) for one, *how in found if how[1]}

    def _at(self, price: float) -> tuple[Integers, Floats, Floats]:
        """Return each table's best level at a price; what that costs, or 0 if it is not worth it; and its noise.

        A table that is off by d rows, and would be by r if nothing but its noise were known, is off by d r / (d + r)
        after the fit, which draws it towards what is known: the harmonic law was found by measuring. So d² / (d + r) is
        gained, where r = c/μ; its best μ solves x (1 + x)² = d³ / (2 c² price) with x = d μ / c.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far, noise = np.maximum(self.distances, 0.0), OFF * SMOOTHED * self.errors
            wanted = _solved(far**3 / (2 * price * noise**2)) * noise / far
            deviations = _deviations((self.reaches / wanted) ** 2 + SMOOTHING)
            mus = _cost(self.reaches, deviations)
            gains = far**2 / (far + noise / mus) - price * mus**2
            worth = self.there & (far > 0) & (deviations <= LARGEST_SIGMA) & (gains > WORTH * far)
        gains = np.where(worth, gains, 0.0)
        levels = gains.argmax(axis=1)
        best = np.arange(len(levels)), levels
        return levels, np.where(gains[best] > 0, mus[best], 0.0), deviations[best]


def again(tables: Mapping[Key, tuple[int, float]], mu: float) -> dict[Key, Chosen]:
    """Return with how much noise tables are measured again that share the privacy μ, about evenly.

    Those that need more noise than is drawn are left out, and the others have their part.

    Args:
        tables: The level of each, and how far a unit moves the whole numbers that are measured, in ℓ2.
        mu: What they cost in all: less only if there are none, or if no noise may be smaller.

    Example:
        >>> round(again({(0, 1): (2, 1.0)}, 0.125)[0, 1].deviation, 3)  # 8, and what discrete noise gives up
        8.093
    """
    each = mu / math.sqrt(max(len(tables), 1)) * (1 - SPARE)
    reaches = np.array([reach for _, reach in tables.values()])
    deviations = _deviations((reaches / each) ** 2 + SMOOTHING)
    drawn = deviations <= LARGEST_SIGMA
    found = np.stack(_filled(mu, reaches[drawn], deviations[drawn]), axis=1).tolist()
    kept = [(table, level) for (table, (level, _)), there in zip(tables.items(), drawn, strict=True) if there]
    return {table: Chosen(level, *how) for (table, level), how in zip(kept, found, strict=True)}


def _filled(mu: float, reaches: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Return what tables cost, and their noise, where all of it is made smaller together until they cost μ."""
    most, low, high = mu**2 * (1 - 2.0**-40), 0.0, 1.0
    for _ in range(HALVINGS):
        times = (low + high) / 2
        smaller = np.maximum(times * deviations, LEAST_DEVIATION)
        low, high = (times, high) if (_cost(reaches, smaller) ** 2).sum() > most else (low, times)
    smaller = np.maximum(high * deviations, LEAST_DEVIATION)
    return _cost(reaches, smaller), smaller


def _cost(reaches: Floats, deviations: Floats) -> Floats:
    """The μ of noise on what a unit moves so far (THEORY 3.5), rounded up."""
    return np.asarray(reaches / np.sqrt(deviations**2 - SMOOTHING) * (1 + 2.0**-40))


def _deviations(variances: Floats) -> Floats:
    """Return the next larger deviations that noise is drawn with: few, since each has a table to draw from."""
    return np.asarray(2.0 ** (np.ceil(GRID * np.log2(np.maximum(variances, LEAST_DEVIATION**2)) / 2) / GRID))


def _solved(wanted: Floats) -> Floats:
    """Return x with x (1 + x)² as wanted, by Newton from above."""
    x = np.minimum(wanted, np.cbrt(wanted))
    for _ in range(NEWTON):
        x = x - (x * (1 + x) ** 2 - wanted) / ((1 + x) * (1 + 3 * x))
    return np.asarray(np.maximum(x, 0.0))
