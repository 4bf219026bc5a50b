"""What an engine is asked for: exact whole numbers for each group, over rows of which no unit has more than a bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from .domains import Domain
from .expressions import Expression
from .relations import Relation

Powers = tuple[tuple[str, int], ...]
THERE = Domain("number", lower=0, upper=0, steps=True)  # the grid of a value of which only presence is asked


@dataclass(frozen=True)
class Bound:
    """How much of one unit is kept, whatever the data hold.

    Attributes:
        rows: Its rows in all; or
        groups: the groups that it is in, with
        rows_per_group: its rows in each.

    Example:
        >>> Bound(rows=5).l1, Bound(groups=4, rows_per_group=5).l1, Bound(groups=4, rows_per_group=5).l2
        (5, 20, 10.0)
    """

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None

    def __post_init__(self) -> None:
        by_group = self.groups is not None and self.rows_per_group is not None
        if by_group == (self.rows is not None) or (self.groups is None) != (self.rows_per_group is None):
            raise InvalidArgument("a bound is on rows, or on groups and rows in each.")

    @property
    def l1(self) -> int:
        """How far a unit moves the counts of all groups together."""
        return self.rows if self.rows is not None else self._product

    @property
    def l2(self) -> float:
        """How far it moves them in Euclidean distance."""
        if self.rows is not None:
            return float(self.rows)
        assert self.groups is not None
        assert self.rows_per_group is not None
        return math.sqrt(self.groups) * self.rows_per_group

    @property
    def most_groups(self) -> int:
        """How many groups a unit is in at most."""
        return self.rows if self.rows is not None else self.groups or 1

    @property
    def most_in_group(self) -> int:
        """How many of its rows are in one group at most."""
        return self.rows if self.rows is not None else self.rows_per_group or 1

    @property
    def _product(self) -> int:
        return (self.groups or 1) * (self.rows_per_group or 1)


@dataclass(frozen=True)
class Key:
    """A column of the answer by which rows are grouped.

    Attributes:
        name: In the answer.
        value: What is grouped by.
        known: The public values, in order; None where they are to be found privately. A missing value is one of them
            only where None is listed.
    """

    name: str
    value: Expression
    known: tuple[Any, ...] | None


@dataclass(frozen=True)
class Measure:
    """A number of each row, clipped and counted in steps from the lower bound: from 0 to `width`."""

    value: Expression
    grid: Domain

    @property
    def width(self) -> int:
        """The largest number of steps."""
        low, high = self.grid.span
        return high - low


@dataclass(frozen=True)
class Tally:
    """Sums over groups of rows, after bounding.

    Attributes:
        relation: Which rows.
        keys: What they are grouped by.
        measures: Numbers of each row, by name.
        bound: What is kept of a unit; None where each row is a unit of its own.
        sums: For each column of the result, the powers of measures whose product is added up, over rows in which none
            of them is missing; () counts all rows, (("x", 0),) those in which x is not missing.
        units: Whether the number of units in each group is counted as well.
        cells: A measure by which each group is divided further: its histogram.
        distinct: An expression of which each unit's different values are kept once in each group; then the count is
            that of different values in the group.
    """

    relation: Relation
    keys: tuple[Key, ...]
    bound: Bound | None
    measures: Mapping[str, Measure]
    sums: tuple[Powers, ...] = ((),)
    units: bool = False
    cells: str | None = None
    distinct: Expression | None = None


def rows_of(table: Any, keys: int) -> list[tuple[Any, ...]]:
    """Return the keys in each row of a result, as Python holds them."""
    columns = [key_cells(table, place) for place in range(keys)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def key_cells(table: Any, place: int) -> list[Any]:
    """Return one key of all rows of a result, as Python holds it."""
    cells = table.column(f"key{place}").to_pylist()
    return [cell.to_pydatetime() if hasattr(cell, "to_pydatetime") else cell for cell in cells]
