"""How far a model is from the rows, measured privately with a part of the price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from ..display import counted


class Distance(NamedTuple):
    """A total variation that was measured, as a part of the rows.

    Attributes:
        value: Right on average; noise may take it below 0.
        within: What 95 % of its noise stays within.
    """

    value: float
    within: float

    def __str__(self) -> str:
        return f"{100 * min(max(self.value, 0.0), 1.0):.2g} % ± {100 * self.within:.2g} % of the rows"


@dataclass(frozen=True)
class Fit:
    """How far the tables of a model are from those of the rows: of each column, and in bins of each two.

    Attributes:
        distances: Of each column and each pair, by number: by how many rows its cells differ, in all, with noise.
        deviation: Of the noise on each.
        rows: How many rows there are, about.
    """

    distances: Mapping[tuple[int, ...], int]
    deviation: float
    rows: float

    def of(self, columns: tuple[int, ...]) -> Distance:
        """Return how far the table of one column, or of two, is from that of the rows."""
        return self._distance(self.distances[columns], 1)

    def mean(self, width: int) -> Distance:
        """Return the mean over all columns, or over all pairs of them: far less noisy than each of them.

        Args:
            width: 1 of columns, 2 of pairs.

        Example:
            >>> print(Fit({(0,): 20, (1,): 40, (0, 1): 100}, 10.0, 1000.0).mean(1))
            1.5 % ± 0.69 % of the rows
        """
        found = [distance for columns, distance in self.distances.items() if len(columns) == width]
        return self._distance(sum(found) / len(found), len(found))

    def farthest(self, width: int) -> tuple[int, ...]:
        """Return the column, or the pair, that seems to be farthest off."""
        return max((columns for columns in self.distances if len(columns) == width), key=self.distances.__getitem__)

    def _distance(self, rows: float, averaged: int) -> Distance:
        twice = 2 * max(self.rows, 1.0)  # a row in a wrong cell lacks in another one
        return Distance(rows / twice, 1.96 * self.deviation / math.sqrt(averaged) / twice)

    def lines(self, names: Sequence[str]) -> list[str]:
        """Return it for people, with the names of the columns."""
        told = [("distance from the real data, measured with noise", "")]
        for width, what in ((1, "column"), (2, "pair")):
            how_many = sum(len(columns) == width for columns in self.distances)
            if how_many:
                worst = self.farthest(width)
                told.append((f"  mean of {counted(how_many, what)}", str(self.mean(width))))
                told.append((f"  farthest: {' × '.join(names[one] for one in worst)}", str(self.of(worst))))
        room = max(len(left) for left, _ in told)
        rows = [f"{left:<{room}}  {right}".rstrip() for left, right in told]
        return [*rows, "  (the farthest of many was picked partly for its noise, so its distance is likely overstated)"]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"distances": [[list(one), rows] for one, rows in self.distances.items()], **self._plain()}

    def _plain(self) -> dict[str, float]:
        return {"deviation": self.deviation, "rows": self.rows}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], columns: int) -> Fit:
        """Return what was written, of so many columns.

        Raises:
            ValueError: It is of others, or of no numbers.
        """
        distances = {tuple(map(int, one)): int(rows) for one, rows in content["distances"]}
        made = cls(distances, float(content["deviation"]), float(content["rows"]))
        if distances.keys() != {one for width in (1, 2) for one in combinations(range(columns), width)}:
            raise ValueError("distances of other columns")
        if not all(math.isfinite(one) for one in (made.deviation, made.rows, *distances.values())):
            raise ValueError("no distances")
        return made
