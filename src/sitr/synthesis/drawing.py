"""Rows drawn from a mixture: as even as whole numbers allow, so that drawing adds little to the error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .mixture import Mixture

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def drawn(mixture: Mixture, singles: Sequence[Floats], rows: int, generator: np.random.Generator) -> Integers:
    """Return rows of values, by number.

    Args:
        mixture: Of bins.
        singles: The share of each value of each column, by which bins become values again.
        rows: How many.
        generator: Draws them; what it draws from is public.
    """
    levels, components = mixture.levels, len(mixture.shares)
    each = np.full(components, rows // components)
    each[generator.permutation(components)[: rows - int(each.sum())]] += 1
    made = np.empty((rows, len(levels.bins)), dtype=np.int64)
    for column, bins in enumerate(levels.bins):
        shares = mixture.shares[:, levels.slice(0, column)].astype(np.float64)
        counts = even_counts(shares, each, generator)
        places = np.repeat(np.tile(np.arange(shares.shape[1]), components), counts.ravel())
        made[:, column] = _values(_shuffled(places, each, generator), bins, singles[column], generator)
    return generator.permutation(made)


def even_counts(shares: Floats, rows: Integers, generator: np.random.Generator) -> Integers:
    """Return whole counts, row by row of shares, that add up, each off by less than 1 and right on average.

    Example:
        >>> even_counts(np.array([[0.25, 0.75]]), np.array([8]), np.random.default_rng(1))
        array([[2, 6]])
    """
    ends = np.cumsum(shares, axis=1)
    ends *= rows[:, np.newaxis] / ends[:, -1:]
    whole = np.floor(ends + generator.random((len(shares), 1)))
    whole[:, -1] = rows
    return np.diff(np.minimum(whole, rows[:, np.newaxis]), axis=1, prepend=0).astype(np.int64)


def _shuffled(places: Integers, each: Integers, generator: np.random.Generator) -> Integers:
    """Shuffle inside each component: there, columns are independent."""
    owners = np.repeat(np.arange(each.size), each)
    return places[np.lexsort((generator.random(places.size), owners))]


def _values(places: Integers, bins: Integers, shares: Floats, generator: np.random.Generator) -> Integers:
    """Values in place of bins, by their shares inside."""
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=int(bins.max()) + 1)
    made = np.empty(places.size, dtype=np.int64)
    for bin_, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        values = np.flatnonzero(bins == bin_)
        inside = shares[values] if shares[values].sum() > 0 else np.ones(values.size)
        counted = even_counts(inside[np.newaxis], np.array([rows.size]), generator)[0]
        made[rows] = generator.permutation(np.repeat(values, counted))
    return made
