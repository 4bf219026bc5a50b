"""Which tables of two columns are measured, how finely, and with how much noise: by what that is expected to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.samplers.draws import LARGEST_SIGMA

Floats = NDArray[np.float64]
Pair = tuple[int, int]

OFF = 0.8  # mean size of a normal number, in standard deviations
SMOOTHED = 0.5  # which part of the noise is left after many tables were fitted at once
GRID = 8  # noises that are drawn are 2^(k/GRID): few different ones, since each has a table of its own to draw from
HALVINGS = 60


class Chosen(NamedTuple):
    """A table to be measured.

    Attributes:
        level: Of its bins.
        mu: What it costs.
    """

    level: int
    mu: float


@dataclass(frozen=True)
class Scores:
    """How far tables of two columns are from what is known of them, in rows.

    Attributes:
        pairs: The pairs of columns.
        distances: Noisy ones, by pair and level.
        cells: Of their tables; 0 where a level is not worth a table, or is the same as another.
        reach: How far a unit moves a table: noise is so much larger.
    """

    pairs: tuple[Pair, ...]
    distances: NDArray[np.int64]
    cells: Floats
    reach: float

    def chosen(self, mu: float) -> dict[Pair, Chosen]:
        """Return the tables that lose least in all for the privacy μ, which is spent whole or nearly.

        To leave a table out loses its largest distance; to take it at a level loses what finer ones would show, and the
        noise on its cells. A price of μ² is found at which the tables that are worth it cost what there is.

        Privacy: never more than μ is spent. Where it is so small that every price lets through too much, as distances
        are but noise then, no table is measured.
        """
        low, high = 1e-6, 1e18
        for _ in range(HALVINGS):
            price = np.sqrt(low * high)
            low, high = (price, high) if self._at(price)[1] > mu**2 else (low, price)
        found, spent = self._at(high)
        return found if spent <= mu**2 else {}

    def _at(self, price: float) -> tuple[dict[Pair, Chosen], float]:
        noise = OFF * SMOOTHED * self.reach * self.cells
        with np.errstate(divide="ignore", invalid="ignore"):
            mus = 2.0 ** (np.floor(GRID * np.log2(np.cbrt(noise / (2 * price)))) / GRID)
            best = self.distances.max(axis=1)
            lost = np.maximum(best[:, np.newaxis] - self.distances, 0) + noise / mus + price * mus**2
        drawn = mus * LARGEST_SIGMA > 2 * self.reach  # noise beyond that is not
        lost = np.where((self.cells > 0) & drawn, lost, np.inf)
        levels = lost.argmin(axis=1)
        rows = np.flatnonzero(lost[np.arange(len(levels)), levels] < best)
        found = {self.pairs[row]: Chosen(int(levels[row]), float(mus[row, levels[row]])) for row in rows}
        return found, sum(one.mu**2 for one in found.values())
