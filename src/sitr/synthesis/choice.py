"""Which tables are measured, how finely, and with how much noise: by what that is expected to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.samplers.draws import LARGEST_SIGMA

Floats = NDArray[np.float64]
Columns = tuple[int, ...]
Pair = tuple[int, int]
Key = TypeVar("Key", bound=Columns)

OFF = 0.8  # mean size of a normal number, in standard deviations
SMOOTHED = 0.5  # which part of small noise is left after many tables were fitted at once
GRID = 2  # noises that are drawn are 2^(k/GRID): few different ones, since each has a table of its own to draw from
WORTH = 0.2  # the least part of its distance that measuring a table gains
HALVINGS = 60
NEWTON = 8  # steps to solve a cubic


class Chosen(NamedTuple):
    """A table to be measured.

    Attributes:
        level: Of its bins.
        mu: What it costs.
    """

    level: int
    mu: float


@dataclass(frozen=True)
class Scores(Generic[Key]):
    """How far tables are from what is known of them, in rows.

    Attributes:
        tables: The columns of each.
        distances: By table and level: noisy ones, less a deviation of that noise, since those that are chosen are
            among the largest.
        cells: Of the tables; 0 where a level is not worth a table, or is the same as another.
        reach: How far a unit moves a table: noise is so much larger.
    """

    tables: tuple[Key, ...]
    distances: Floats
    cells: Floats
    reach: float

    def chosen(self, mu: float) -> dict[Key, Chosen]:
        """Return the tables that gain most in all for the privacy μ, which is spent whole or nearly.

        A price of μ² is found at which the tables that are worth it cost what there is.

        Privacy: never more than μ is spent. Where it is so small that every price lets through too much, as distances
        are but noise then, no table is measured.
        """
        low, high = 1e-6, 1e18
        for _ in range(HALVINGS):
            price = np.sqrt(low * high)
            low, high = (price, high) if self._at(price)[1] > mu**2 else (low, price)
        found, spent = self._at(high)
        return found if spent <= mu**2 else {}

    def _at(self, price: float) -> tuple[dict[Key, Chosen], float]:
        """What is worth its price, and its μ² in all.

        A table that is off by d rows, and would be by r if nothing but its noise were known, is off by d r / (d + r)
        after the fit, which draws it towards what is known: the harmonic law was found by measuring. So d² / (d + r) is
        gained, where r = c/μ; its best μ solves x (1 + x)² = d³ / (2 c² price) with x = d μ / c.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            far, noise = np.maximum(self.distances, 0.0), OFF * SMOOTHED * self.reach * self.cells
            mus = _solved(far**3 / (2 * price * noise**2)) * noise / far
            mus = 2.0 ** (np.floor(GRID * np.log2(mus)) / GRID)
            gains = far**2 / (far + noise / mus) - price * mus**2
        drawn = mus * LARGEST_SIGMA > 2 * self.reach  # noise beyond that is not
        gains = np.where((self.cells > 0) & (far > 0) & drawn & (gains > WORTH * far), gains, 0.0)
        levels = gains.argmax(axis=1)
        rows = np.flatnonzero(gains[np.arange(len(levels)), levels] > 0)
        found = {self.tables[row]: Chosen(int(levels[row]), float(mus[row, levels[row]])) for row in rows}
        return found, sum(one.mu**2 for one in found.values())


def _solved(wanted: Floats) -> Floats:
    """Return x with x (1 + x)² as wanted, by Newton from above."""
    x = np.minimum(wanted, np.cbrt(wanted))
    for _ in range(NEWTON):
        x = x - (x * (1 + x) ** 2 - wanted) / ((1 + x) * (1 + 3 * x))
    return np.asarray(np.maximum(x, 0.0))
