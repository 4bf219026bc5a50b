"""Tables of many columns: measured once, for one Gaussian event, and drawn as often as one likes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..accounting import ApproximateDP, Event, Gaussian, calibrate_noise
from ..errors import InvalidArgument
from ..mechanisms import Mechanism
from ..mechanisms.randomness import Source
from ..release import Release
from ..units import ADJACENCIES, Adjacency
from .choice import Columns, Pair
from .drawing import Codes, blocks, drawn
from .measuring import MOST_VALUES, Costs, Counter, Learnt, Measuring
from .rules import Rules

Integers = NDArray[np.int64]
MOST_COLUMNS = 200
MOST_ROWS = 10**9
MOST_CHECKED = 0.5
BLOCK = 2**16  # rows that are counted at a time


@dataclass(frozen=True)
class CodedRows:
    """Rows in memory, whose values are numbers from 0 on: what is counted of them is exact, and stays inside."""

    codes: Integers
    sizes: tuple[int, ...]

    def singles(self) -> list[Integers]:
        """Return how many rows have each value of each column."""
        return [np.bincount(column, minlength=size) for column, size in zip(self.codes.T, self.sizes, strict=True)]

    def pairs(self, bins: Sequence[Integers]) -> Mapping[Pair, Integers]:
        """Return how many rows are in each two bins of each two columns."""
        pairs = tuple(combinations(range(len(bins)), 2))
        return dict(zip(pairs, self._counted(pairs, bins), strict=True))

    def tables(self, groups: Sequence[Columns], bins: Sequence[Integers]) -> Mapping[Columns, Integers]:
        """Return how many rows are in each bins of each group of columns: an axis for each."""
        return dict(zip(groups, self._counted(groups, bins), strict=True))

    def _counted(self, groups: Sequence[Columns], bins: Sequence[Integers]) -> list[Integers]:
        sizes = [int(one.max()) + 1 for one in bins]
        shapes = [tuple(sizes[column] for column in group) for group in groups]
        found = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        for begin in range(0, len(self.codes), BLOCK):
            block = self.codes[begin : begin + BLOCK]
            binned = [one[column] for one, column in zip(bins, block.T, strict=True)]
            for counts, group in zip(found, groups, strict=True):
                cells = binned[group[0]]
                for column in group[1:]:
                    cells = cells * sizes[column] + binned[column]
                counts += np.bincount(cells, minlength=counts.size)
        return [counts.reshape(shape) for counts, shape in zip(found, shapes, strict=True)]


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """What is released: rows can be drawn from it for ever.

    Attributes:
        learnt: What was learnt.
    """

    learnt: Learnt

    @property
    def rows(self) -> int:
        """How many rows there were, about."""
        return self.learnt.rows

    def sample(self, rows: int | None = None, *, seed: int | None = None, rules: Rules | None = None) -> Codes:
        """Return rows, as numbers of values, drawn at random; as often as one likes, for nothing.

        They are of the smallest unsigned type that holds all values: `rows.astype(int)` before calculating with them.

        Args:
            rows: How many; as many as there were, about, unless told.
            seed: To draw the same again.
            rules: What every row keeps.

        Raises:
            InvalidArgument: Hardly a row that was learnt keeps the rules.

        Privacy: post-processing of what was measured (THEORY 6.3).
        """
        return drawn(self.learnt.mixture, self.learnt.singles, self._wanted(rows), np.random.default_rng(seed), rules)

    def blocks(
        self, rows: int | None = None, *, seed: int | None = None, rules: Rules | None = None
    ) -> Iterator[Codes]:
        """Yield the rows that `sample` returns, a million at a time, so that they need not all be in memory.

        Privacy: post-processing of what was measured (THEORY 6.3).
        """
        return blocks(self.learnt.mixture, self.learnt.singles, self._wanted(rows), np.random.default_rng(seed), rules)

    def _wanted(self, rows: int | None) -> int:
        return self.rows if rows is None else _validate.integer("rows", rows, 0, MOST_ROWS)


class Synthesizer(Mechanism):
    """Rows of many columns, measured and learnt; made by `synthesizer`.

    Attributes:
        sizes: How many values each column has.
        ordered: Of each column, whether neighbouring values may be alike.
        costs: What is spent on what.
        adjacency: Between neighbours.
    """

    error95 = None

    def __init__(self, sizes: tuple[int, ...], ordered: tuple[bool, ...], costs: Costs, adjacency: Adjacency) -> None:
        self.sizes, self.ordered, self.costs, self.adjacency = sizes, ordered, costs, adjacency
        self.event = _event(1 / costs.mu, costs.outside, adjacency)

    def __repr__(self) -> str:
        return f"Synthesizer({self.event!r}, {len(self.sizes)} columns)"

    def release(self, value: Any, *, unsafe_seed: int | None = None, unsafe_without_noise: bool = False) -> Release:
        """Return what rows can be drawn from; see `Mechanism.release`.

        Raises:
            InvalidArgument: The rows are none, or without noise, of which nothing could be learnt safely.
        """
        if unsafe_without_noise:
            raise InvalidArgument("what is learnt here is chosen by its noise.", do="pass a large epsilon.")
        return super().release(value, unsafe_seed=unsafe_seed)

    def _checked(self, value: ArrayLike | Counter) -> Counter:
        if isinstance(value, Counter):
            return value
        codes = np.asarray(value)
        if codes.ndim != 2 or codes.shape[1] != len(self.sizes) or codes.dtype.kind not in "iu":
            raise InvalidArgument(f"rows are whole numbers in {len(self.sizes)} columns.")
        if len(codes) and ((codes < 0).any() or (codes >= np.array(self.sizes)).any()):
            raise InvalidArgument("a value is none of its column's, which are counted from 0.")
        # Small types stay small: a copy in wide ones would be most of the memory. Unsigned wide ones cannot be counted.
        return CodedRows(codes.astype(np.int64, copy=False) if codes.dtype.itemsize == 8 else codes, self.sizes)

    def _drawn(self, value: Counter, source: Source | None) -> SyntheticRows:
        assert source is not None
        generator = np.random.default_rng(np.frombuffer(source.bytes(32), dtype=np.uint32))
        return SyntheticRows(Measuring(value, self.ordered, self.costs, source, generator).learnt())


def synthesizer(
    sizes: Sequence[int],
    *,
    epsilon: float,
    delta: float,
    ordered: Sequence[bool] | None = None,
    max_rows_per_unit: int = 1,
    adjacency: Adjacency = "add_remove",
    check: float = 0.0,
    beside: Event | None = None,
) -> Synthesizer:
    """Return what makes synthetic rows of many columns: a mixture that is fitted to noisy tables of two columns.

    Args:
        sizes: How many values each column has: public, and never read off the data.
        epsilon: The ε that a release may cost, together with
        delta: in (0, 1).
        ordered: Of each column, whether neighbouring values may be alike, as those of a number or a date; none, unless
            told.
        max_rows_per_unit: How many rows one unit has at most. The caller sees to it.
        adjacency: Between neighbours. The number of rows is private under either.
        check: The part of the price, in [0, 0.5], that goes into measuring how far the result is from the rows: of the
            square of μ, which is what adds up.
        beside: What else is released with it, for the same price.

    Raises:
        InvalidArgument: The noise would be more than is drawn: ε is tiny for so many columns, or rows of a unit. Or δ
            is less than what discrete noise takes of it.

    Privacy: all measurements are discrete Gaussian noise on whole numbers: on the counts of each column, and of tables
    of three columns, in each of which one row moves one cell by 1; on what two columns have in common beside their
    counts, in units so small that it is whole (`interactions.reach` says how far a unit moves it); and on distances of
    tables from what is known, which a row moves by 1, also those by which the result is checked. The parts add up to a
    μ of Gaussian DP that is fixed in advance, whichever tables are chosen, and however noisy (THEORY 3.5, 4.1, 5.1). So
    a release is one Gaussian event, outside a mass of less than 1e-10; 1e-13 where a unit has at most 1,000 rows.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> smokes = rng.integers(0, 2, 5000)
        >>> coughs = np.where(rng.random(5000) < 0.8, smokes, 1 - smokes)
        >>> made = synthesizer([2, 2], epsilon=1.0, delta=1e-6)
        >>> found = made.release(np.stack([smokes, coughs], axis=1), unsafe_seed=1).value.sample(5000, seed=1)
        >>> 0.7 < float((found[:, 0] == found[:, 1]).mean()) < 0.9
        True
    """
    columns = tuple(_validate.integer("sizes", size, 1, MOST_VALUES) for size in sizes)
    _validate.integer("columns", len(columns), 1, MOST_COLUMNS)
    alike = (False,) * len(columns) if ordered is None else tuple(map(bool, ordered))
    if len(alike) != len(columns):
        raise InvalidArgument("`ordered` says something of each column.")
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    rows = _validate.integer("max_rows_per_unit", max_rows_per_unit, 1, 10**6)
    part = _validate.real("check", check, 0, MOST_CHECKED)
    outside = Costs(1.0, rows, adjacency, len(columns), part).outside
    _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    if delta <= 2 * outside:
        raise InvalidArgument(
            f"delta={delta:g} is not above {2 * outside:.2g}.",
            why="discrete noise passes for Gaussian noise but for a tiny probability, which is part of delta; it grows "
            "with the columns, and with the rows of a unit.",
            do=f"take a delta above {2 * outside:.2g}, fewer columns, or a smaller max_rows_per_unit.",
        )

    def both(noise: float) -> Event:
        own = _event(noise, outside, adjacency)
        return own if beside is None else own + beside

    noise = calibrate_noise(both, epsilon=epsilon, delta=delta).value
    costs = Costs(1 / noise, rows, adjacency, len(columns), part)
    costs.require_drawn(columns)
    return Synthesizer(columns, alike, costs, adjacency)


def _event(noise: float, outside: float, adjacency: Adjacency) -> Event:
    return Gaussian(noise_multiplier=noise, adjacency=adjacency) + ApproximateDP(0.0, outside)
