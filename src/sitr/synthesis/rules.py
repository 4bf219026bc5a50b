"""Rules that every synthetic row keeps: combinations that cannot be, and columns that others determine.

They are public, and kept when rows are drawn, so that they cost nothing. Rows that break a rule swap values with
others, by which every column keeps its counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..errors import InvalidArgument
from .mixture import Mixture

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[Any]
Keys = Sequence[tuple[int, int, Codes]]  # what determines what, and how: in order

NEAR, FAR = 8, 24  # tries to swap with rows of the same component, and then with any


class Determines(NamedTuple):
    """A column that another one determines, as a town does its country.

    Attributes:
        by: The column that determines it.
        column: The one that is determined.
        values: Its value for each value of the other; found from what was measured, unless told.
    """

    by: int
    column: int
    values: Sequence[int] | None = None


@dataclass(frozen=True)
class Rules:
    """What every row keeps.

    Args:
        sizes: How many values each column has.
        impossible: Combinations that cannot be: of some columns, the values that no row has together.
        determines: Columns that others determine.

    Raises:
        InvalidArgument: A column or value does not exist, or columns determine each other in a circle.

    Privacy: post-processing with public facts (THEORY 6.3). A rule that was found by looking at the rows is not public.

    Example:
        >>> rules = Rules((2, 3), impossible=[{0: {1}, 1: {2}}])
        >>> rules.broken(np.array([[1, 2], [1, 1], [0, 2]])).sum(axis=1)
        array([1, 0, 0])
    """

    sizes: Sequence[int]
    impossible: Sequence[Mapping[int, AbstractSet[int]]] = ()
    determines: Sequence[Determines] = ()
    _masks: list[dict[int, NDArray[np.bool_]]] = field(init=False)
    _order: list[Determines] = field(init=False)

    def __post_init__(self) -> None:
        masks = []
        for rule in self.impossible:
            if not rule:
                raise InvalidArgument("a combination of no columns is that of every row.")
            masks.append({column: self._mask(column, values) for column, values in rule.items()})
        object.__setattr__(self, "_masks", masks)
        object.__setattr__(self, "_order", self._sorted())

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON holds them."""
        impossible = [[[column, sorted(values)] for column, values in rule.items()] for rule in self.impossible]
        told = [[one.by, one.column, None if one.values is None else list(one.values)] for one in self.determines]
        return {"sizes": list(self.sizes), "impossible": impossible, "determines": told}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Rules:
        """Return what `to_dict` wrote down."""
        impossible = [{column: frozenset(values) for column, values in rule} for rule in content["impossible"]]
        return cls(tuple(content["sizes"]), impossible, [Determines(*one) for one in content["determines"]])

    def _mask(self, column: int, values: Iterable[int]) -> NDArray[np.bool_]:
        _validate.integer("column", column, 0, len(self.sizes) - 1)
        mask = np.zeros(self.sizes[column], dtype=bool)
        mask[[_validate.integer("value", value, 0, mask.size - 1) for value in values]] = True
        return mask

    def _sorted(self) -> list[Determines]:
        """Each after those that determine what it is determined by."""
        for by, column, values in self.determines:
            for name in (by, column):
                _validate.integer("column", name, 0, len(self.sizes) - 1)
            if values is not None:
                if len(values) != self.sizes[by]:
                    raise InvalidArgument("`values` has one value for each value of the column that determines it.")
                self._mask(column, values)
        waiting, done = {one.column: one for one in self.determines}, []
        if len(waiting) < len(self.determines):
            raise InvalidArgument("a column is determined twice.", do="name one column that determines it.")
        while waiting:
            ready = [one for one in waiting.values() if one.by not in waiting]
            if not ready:
                raise InvalidArgument("columns determine each other in a circle.", do="leave one of them out.")
            done += ready
            waiting = {column: one for column, one in waiting.items() if one not in ready}
        return done

    def broken(self, rows: Codes) -> NDArray[np.bool_]:
        """Return which rows break which combination: a row for each, with a place for each combination."""
        found = np.ones((len(rows), len(self._masks)), dtype=bool)
        for place, masks in enumerate(self._masks):
            for column, mask in masks.items():
                found[:, place] &= mask[rows[:, column]]
        return found

    def keys(self, mixture: Mixture, singles: Sequence[Floats]) -> Keys:
        """Return, in order, what determines what, and how: as told, or as the mixture has it most often."""
        found = []
        for by, column, values in self._order:
            told = _likeliest(mixture, singles, by, column) if values is None else np.asarray(values)
            found.append((by, column, told))
        return found

    def told(self, mixture: Mixture, singles: Sequence[Floats]) -> Rules:
        """Return the same rules, with which value goes with which as the mixture has it."""
        keys = self.keys(mixture, singles)
        return replace(self, determines=[Determines(by, column, values.tolist()) for by, column, values in keys])

    def keep(
        self,
        rows: Codes,
        keys: Keys,
        owners: Integers,
        spare: Iterator[Codes],
        generator: np.random.Generator,
    ) -> None:
        """Change rows in place until all keep the rules.

        Args:
            rows: To be changed.
            keys: What determines what.
            owners: Their components, in order.
            spare: More rows, to replace what no swap repairs.
            generator: Draws whom to swap with.

        Raises:
            InvalidArgument: There are no rows that keep them.
        """
        _determine(rows, keys)
        for attempt in range(NEAR + FAR):
            bad = np.flatnonzero(self.broken(rows).any(axis=1))
            if not bad.size:
                return
            near = attempt < NEAR
            begins = np.searchsorted(owners, owners[bad]) if near else np.zeros(bad.size, dtype=np.int64)
            ends = np.searchsorted(owners, owners[bad], side="right") if near else np.full(bad.size, len(rows))
            self._swap(rows, keys, bad, generator.integers(begins, ends), generator)
        self._replace(rows, keys, spare, generator)

    def _swap(self, rows: Codes, keys: Keys, bad: Integers, others: Integers, generator: np.random.Generator) -> None:
        """Swap one column of a rule that a row breaks with another row, where that breaks less."""
        alone = np.unique(others, return_index=True)[1]  # no row is in two swaps
        alone = alone[~np.isin(others[alone], bad)]
        bad, others = bad[alone], others[alone]
        before = self.broken(rows[bad])
        rule = before.argmax(axis=1)
        for place in np.unique(rule):
            here, there = bad[rule == place], others[rule == place]
            column = generator.choice(np.array(sorted(self._masks[place])))
            while free := [by for by, determined, _ in keys if determined == column]:
                column = free[0]  # what is determined is changed by what determines it
            one, other = rows[here], rows[there]
            one[:, column], other[:, column] = rows[there, column], rows[here, column]
            for part in (one, other):
                _determine(part, keys)
            broken = self.broken(one).sum(axis=1) + self.broken(other).sum(axis=1)
            better = broken < before[rule == place].sum(axis=1)
            rows[here[better]], rows[there[better]] = one[better], other[better]

    def _replace(
        self,
        rows: Codes,
        keys: Keys,
        spare: Iterator[Codes],
        generator: np.random.Generator,
    ) -> None:
        """Put other rows of the mixture in place of what is left."""
        bad = np.flatnonzero(self.broken(rows).any(axis=1))
        while bad.size:
            more = next(spare, None)
            if more is None:
                raise InvalidArgument(
                    "hardly a row of what was learnt keeps the rules.",
                    why="rows that break one are replaced, and none was found to replace them with.",
                    do="leave out the rule that most rows break.",
                )
            _determine(more, keys)
            good = more[~self.broken(more).any(axis=1)]
            taken = bad[: len(good)]
            rows[taken] = good[generator.permutation(len(good))[: taken.size]]
            bad = bad[taken.size :]


def _determine(rows: Codes, keys: Keys) -> None:
    for by, column, values in keys:
        rows[:, column] = values[rows[:, by]]


def _likeliest(mixture: Mixture, singles: Sequence[Floats], by: int, column: int) -> Integers:
    """For each value of a column, the commonest value of the commonest bin of another, as the mixture has them."""
    levels = mixture.levels
    table = mixture.tables()[0][levels.slice(0, by), levels.slice(0, column)]
    bins, shares = levels.bins[column], singles[column]
    commonest = np.array([max(np.flatnonzero(bins == one), key=lambda v: shares[v]) for one in range(table.shape[1])])
    return np.asarray(commonest[table.argmax(axis=1)][levels.bins[by]])
