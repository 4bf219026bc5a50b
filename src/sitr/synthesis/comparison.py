"""Synthetic rows beside the real ones, for tests: what is said here was looked up, and protects nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..display import counted
from ..errors import InvalidArgument
from ..tables.codes import Code
from .training import Trained, trained

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
TRIPLES = 60
RANGES = 20  # of a number, a date or a time, beside other columns: finer cells would hold too few rows to compare
DENSE = 2**20  # cells that are counted one by one


class Correlations(NamedTuple):
    """Of columns that are numbers.

    Attributes:
        columns: Their names.
        real: Between the real ones; nothing where one of the two is constant.
        synthetic: Between those that were drawn.
    """

    columns: tuple[str, ...]
    real: Floats
    synthetic: Floats

    @property
    def worst(self) -> float:
        """The largest difference; 0 where there is none to compare."""
        apart = np.abs(self.real - self.synthetic)
        return float(np.nanmax(apart)) if np.isfinite(apart).any() else 0.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far synthetic rows are from the real ones: NOT PRIVATE.

    Attributes:
        singles: The distance of each column, in total variation.
        pairs: That of each two columns, of which numbers, dates and times are in 20 ranges at most.
        triples: That of some three, likewise.
        shares: The real shares of each column.
        correlations: Of numbers.
        training: How well a learner that saw synthetic rows alone does on real ones; None where none was asked for.
    """

    singles: Mapping[str, float]
    pairs: Mapping[tuple[str, ...], float]
    triples: Mapping[tuple[str, ...], float]
    shares: Mapping[str, Floats]
    correlations: Correlations
    training: Trained | None

    def __str__(self) -> str:
        lines = ["true distance in total variation      mean   worst"]
        columns = {(name,): found for name, found in self.singles.items()}
        for what, distances in (("column", columns), ("pair", self.pairs), ("triple", self.triples)):
            if distances:
                names, worst = max(distances.items(), key=lambda one: one[1])
                mean = float(np.mean(list(distances.values())))
                lines.append(f"{counted(len(distances), what):<36}  {mean:.4f}  {worst:.4f} ({' × '.join(names)})")
        lines.append(f"(of several columns, numbers, dates and times are compared in {RANGES} ranges at most)")
        if len(self.correlations.columns) > 1:
            lines.append(f"largest difference of correlations: {self.correlations.worst:.3f}")
        return "\n".join([*lines, *([] if self.training is None else [str(self.training)])])


def compared(codes: Sequence[Code], synthetic: Any, real: Any, target: str | None, seed: int | None) -> Comparison:
    """Return how far synthetic rows are from real ones; rows without what no row lacks are left out.

    Args:
        codes: How the columns are numbered.
        synthetic: An Arrow table of synthetic rows.
        real: An Arrow table of the real ones.
        target: The column that a learner shall foretell.
        seed: Of the triples, and of the learner.

    Raises:
        InvalidArgument: The frame lacks a column, or has no row.

    Privacy: none. What is returned is computed from the real rows without noise.
    """
    numbers = _numbered(codes, real)
    kept = (numbers < [code.size for code in codes]).all(axis=1)
    if not kept.any():
        raise InvalidArgument("unsafe_compare has no row to compare with.")
    there, made = numbers[kept], _numbered(codes, synthetic)
    names, sizes = [code.name for code in codes], [code.size for code in codes]
    wide = [_ranges(code) for code in codes]
    real_few, made_few = (
        np.stack([one[column] for one, column in zip(wide, rows.T, strict=True)], axis=1) for rows in (there, made)
    )

    def distances(groups: Sequence[tuple[int, ...]]) -> dict[tuple[str, ...], float]:
        return {tuple(names[one] for one in group): distance(real_few, made_few, group, sizes) for group in groups}

    triples = list(combinations(range(len(codes)), 3))
    some = np.random.default_rng(seed).permutation(len(triples))[:TRIPLES]
    return Comparison(
        singles={name: distance(there, made, [place], sizes) for place, name in enumerate(names)},
        pairs=distances(list(combinations(range(len(codes)), 2))),
        triples=distances([triples[one] for one in sorted(some)]),
        shares={
            name: np.bincount(column, minlength=size) / len(there)
            for name, column, size in zip(names, there.T, sizes, strict=True)
        },
        correlations=_correlations(codes, real.filter(kept), synthetic),
        training=None if target is None else trained(codes, there, made, target, seed),
    )


def distance(one: Integers, other: Integers, columns: Sequence[int], sizes: Sequence[int]) -> float:
    """Return the total variation between the tables of some columns of two sets of rows.

    Example:
        >>> rows = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
        >>> distance(rows, rows[:2], [0], [2, 2]), distance(rows, rows[:2], [0, 1], [2, 2])
        (0.5, 0.5)
    """
    both, cells = np.concatenate([one, other]), 1
    places = np.zeros(len(both), dtype=np.int64)
    for column in columns:
        places, cells = places * sizes[column] + both[:, column], cells * sizes[column]
        if cells > DENSE:  # only those that occur
            places = np.unique(places, return_inverse=True)[1]
            cells = int(places.max(initial=0)) + 1
    shares = [np.bincount(part, minlength=cells) / max(len(part), 1) for part in np.split(places, [len(one)])]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _ranges(code: Code) -> Integers:
    """The range of each number; what is missing has one of its own."""
    numbers = np.arange(code.size)
    if not code.ordered:
        return numbers
    width = -(-code.known // RANGES)
    return np.where(numbers < code.known, numbers // width, -(-code.known // width))


def _numbered(codes: Sequence[Code], table: Any) -> Integers:
    for code in codes:
        if code.name not in table.column_names:
            raise InvalidArgument(f"unsafe_compare has no column {code.name}.")
    try:
        return np.stack([code.numbers_of(table.column(code.name).combine_chunks()) for code in codes], axis=1)
    except (ValueError, TypeError, NotImplementedError):  # as Arrow says that a type does not fit, with a value
        pass
    raise InvalidArgument("unsafe_compare has a column of another type.", do="pass the rows as they were declared.")


def _correlations(codes: Sequence[Code], *tables: Any) -> Correlations:
    names = tuple(code.name for code in codes if code.domain.kind == "number")
    if not names:
        return Correlations((), np.empty((0, 0)), np.empty((0, 0)))
    real, synthetic = (
        table.select(list(names)).to_pandas().astype(float).corr().to_numpy(dtype=np.float64) for table in tables
    )
    return Correlations(names, real, synthetic)
