"""Rows that were drawn are made more even: each two columns go together nearly as often as the mixture says."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bins import MOST_BINS
from .mixture import Mixture

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

PASSES = 6
WORK = 70_000_000  # numbers that are looked up at most: rows, times the square of the number of columns, times passes,
COUNTING = 1  # and this many more, as long as it takes to count the tables of all columns first
TRIED = 0.2  # of all rows, how many are tried at a time


def passes_over(rows: int, columns: int) -> int:
    """Return how often each column has its turn if so many rows are drawn, in all blocks together.

    Many or wide rows are left as they are: the more rows, the less their drawing matters.

    Example:
        >>> [passes_over(rows, 14) for rows in (50_000, 100_000, 1_000_000)]
        [6, 2, 0]
    """
    return max(min(PASSES, WORK // max(rows * columns**2, 1) - COUNTING), 0)


def evened(
    bins: NDArray[Any], each: Integers, mixture: Mixture, generator: np.random.Generator, passes: int | None = None
) -> None:
    """Swap bins between rows of one component, in place, where that brings tables of two columns nearer to the mixture.

    Inside a component columns are independent, so its rows may have the bins of a column in any order; the counts of
    each column stay. Rows of which no component has two are left as they are, and those of more bins than are ever
    learnt, as tables of all of them are held.

    Args:
        bins: By row and column, at the finest level; rows in the order of the components.
        each: How many rows are of each component.
        mixture: What they were drawn from.
        generator: Chooses what is tried.
        passes: How often each column has its turn; by default as if these rows were all.
    """
    rows, columns = bins.shape
    passes = passes_over(rows, columns) if passes is None else passes
    if passes == 0 or columns < 2 or each.max() < 2 or mixture.levels.finest > MOST_BINS:
        return
    places = bins + mixture.levels.starts[0]
    off = _off(places, each, mixture)
    owners = np.repeat(np.arange(each.size), each)
    for _ in range(passes):
        for column in range(columns):
            one, other = _tried(owners, generator)
            _swap(places, off, mixture.levels.slice(0, column), column, *_differing(places[:, column], one, other))
    bins[:] = places - mixture.levels.starts[0]


def _off(places: Integers, each: Integers, mixture: Mixture) -> Floats:
    """How many rows more have each two bins of different columns than the mixture says."""
    shares, levels = mixture.shares, mixture.levels
    off = np.asarray(-((each[:, np.newaxis].astype(np.float32) * shares).T @ shares), dtype=np.float32)
    slices = [levels.slice(0, column) for column in range(places.shape[1])]
    for (one, here), (other, there) in combinations(enumerate(slices), 2):
        part = off[here, there]
        cells = (places[:, one] - here.start) * part.shape[1] + places[:, other] - there.start
        counts = np.bincount(cells, minlength=part.size).reshape(part.shape)
        part += counts
        off[there, here] += counts.T
    return off


def _tried(owners: Integers, generator: np.random.Generator) -> tuple[Integers, Integers]:
    """Choose pairs of rows, each of one component."""
    chosen = np.flatnonzero(generator.random(owners.size) < TRIED)
    order = chosen[np.argsort(owners[chosen] + generator.random(chosen.size))]
    one, other = order[: order.size // 2 * 2].reshape(-1, 2).T
    alike = owners[one] == owners[other]
    return one[alike], other[alike]


def _differing(column: Integers, one: Integers, other: Integers) -> tuple[Integers, Integers]:
    differ = column[one] != column[other]
    return one[differ], other[differ]


def _swap(places: Integers, off: Floats, bins: slice, column: int, one: Integers, other: Integers) -> None:
    """Swap the bins of one column between those pairs of rows that gain most, in squared distance from the mixture.

    Those that gain alone may overshoot together: half of them are left out until that gains no more. So rows never come
    to be farther from the mixture than they were.
    """
    rest = np.delete(np.arange(places.shape[1]), column)
    here, there = places[one, column][:, np.newaxis], places[other, column][:, np.newaxis]
    beside, across = places[np.ix_(one, rest)], places[np.ix_(other, rest)]
    # A cell that is off by e and loses a row gains 2e - 1, one that gets it loses 2e + 1; where both rows have the same
    # bin of another column, nothing changes.
    gains = (off[here, beside] - off[there, beside] + off[there, across] - off[here, across]).sum(axis=1)
    gains -= 2 * (beside != across).sum(axis=1)
    some = np.argsort(-gains)[: int((gains > 0).sum())]
    part, best, most, change = off[bins], some[:0], 0.0, np.zeros((), dtype=np.float32)
    while some.size:
        moved = _moved(here[some] - bins.start, there[some] - bins.start, beside[some], across[some], part.shape)
        gained = -float((moved * (2 * part + moved)).sum())
        if gained > most:
            best, most, change = some, gained, moved
        elif most > 0:
            break
        some = some[: some.size // 2]
    part += change
    off[:, bins] = part.T
    places[one[best], column], places[other[best], column] = there[best, 0], here[best, 0]


def _moved(here: Integers, there: Integers, beside: Integers, across: Integers, shape: tuple[int, ...]) -> Any:
    """By how much the cells of one column and all others change where its bins are swapped."""
    wide, cells = shape[1], shape[0] * shape[1]
    more, less = (
        np.bincount(np.concatenate([(one * wide + others).ravel() for one, others in ends]), minlength=cells)
        for ends in (((there, beside), (here, across)), ((here, beside), (there, across)))
    )
    return (more - less).astype(np.float32).reshape(shape)
