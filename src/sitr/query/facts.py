"""What is publicly known of the data: how many units and rows there are, and what bounding and clipping will drop."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..tables.tally import Bound


@dataclass(frozen=True)
class Facts:
    """Public facts about the rows of a query, declared or released before.

    Attributes:
        units: About how many units there are.
        rows: About how many rows.
        sizes: Pairs of a number of rows and about which part of the units has so many.
        source: Where the facts come from, for people.
    """

    units: float | None = None
    rows: float | None = None
    sizes: tuple[tuple[float, float], ...] = ()
    source: str = "declared"

    @property
    def mean(self) -> float | None:
        """Rows of a unit, on average."""
        return None if self.units is None or self.rows is None else max(self.rows / self.units, 1.0)

    def kept(self, most: int) -> float | None:
        """Return which part of the rows is kept of units that have `most` each at most; None where nothing is known.

        By the released parts, or as if the rows of a unit were spread geometrically around the declared mean.

        Example:
            >>> round(Facts(units=1000, rows=10000).kept(5), 3)
            0.41
        """
        if self.sizes:
            total = max(sum(size * part for size, part in self.sizes), self.mean or 0.0)  # some rows may not be seen
            return sum(min(size, most) * part for size, part in self.sizes) / total if total else 1.0
        if self.mean is None:
            return None
        if self.mean == 1:
            return 1.0
        return float(-math.expm1(most * math.log1p(-1 / self.mean)))


def chosen_bound(facts: Facts, most: int, noise: float, groups: int) -> Bound:
    """Return how many rows of a unit to keep: what is dropped and the noise make the least error of a group's count.

    Example:
        >>> chosen_bound(Facts(units=1_000_000, rows=3_000_000), 50, noise=1.0, groups=50).rows
        22
        >>> chosen_bound(Facts(units=1000, rows=3000), 50, noise=1.0, groups=50).rows
        5
    """
    if facts.rows is None or facts.kept(1) is None:
        return Bound(rows=most)
    size = facts.rows / max(groups, 1)

    def error(rows: int) -> float:
        return size * (1 - (facts.kept(rows) or 0.0)) + 3 * rows * noise

    return Bound(rows=min(range(1, min(most, 10_000) + 1), key=error))
