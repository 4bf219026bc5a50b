"""Rows drawn from a mixture: as even as whole numbers allow, so that drawing adds little to the error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evening import evened, passes_over
from .mixture import Mixture
from .rules import Rules

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[Any]  # of the smallest unsigned type that holds every value

BLOCK = 2**20  # rows that are drawn at a time: memory does not grow with their number
TRIES = 20  # blocks that are drawn in search of rows that keep the rules


def drawn(
    mixture: Mixture,
    singles: Sequence[Floats],
    rows: int,
    generator: np.random.Generator,
    rules: Rules | None = None,
) -> Codes:
    """Return rows of values, by number; see `blocks`."""
    made = np.empty((rows, len(singles)), dtype=_smallest(singles), order="F")
    begin = 0
    for block in blocks(mixture, singles, rows, generator, rules):
        made[begin : begin + len(block)] = block
        begin += len(block)
    return made


def blocks(
    mixture: Mixture,
    singles: Sequence[Floats],
    rows: int,
    generator: np.random.Generator,
    rules: Rules | None = None,
) -> Iterator[Codes]:
    """Yield rows of values, by number, a block at a time.

    Args:
        mixture: Of bins.
        singles: The share of each value of each column, by which bins become values again.
        rows: How many.
        generator: Draws them; what it draws from is public.
        rules: What every row keeps.

    Raises:
        InvalidArgument: Hardly a row of the mixture keeps the rules.
    """
    keys = None if rules is None else rules.keys(mixture, singles)
    passes = passes_over(rows, len(singles))
    for begin in range(0, rows, BLOCK):
        count = min(BLOCK, rows - begin)
        made, each = _block(mixture, singles, count, generator, passes)
        if rules is not None and keys is not None:
            owners = np.repeat(np.arange(each.size), each)
            spare = (_block(mixture, singles, max(count, 1000), generator, passes=0)[0] for _ in range(TRIES))
            rules.keep(made, keys, owners, spare, generator)
        order = generator.permutation(count)
        for column in range(made.shape[1]):
            made[:, column] = made[order, column]
        yield made


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


def _smallest(singles: Sequence[Floats]) -> np.dtype[Any]:
    return np.min_scalar_type(max(share.size for share in singles) - 1)


def _block(
    mixture: Mixture, singles: Sequence[Floats], rows: int, generator: np.random.Generator, passes: int
) -> tuple[Codes, Integers]:
    """Rows in the order of the components, evened by so many passes, and how many are of each."""
    levels, components = mixture.levels, len(mixture.shares)
    each = np.full(components, rows // components)
    each[generator.permutation(components)[: rows - int(each.sum())]] += 1
    ends = np.cumsum(each)
    made = np.empty((rows, len(levels.bins)), dtype=_smallest(singles), order="F")
    for column in range(len(levels.bins)):
        shares = mixture.shares[:, levels.slice(0, column)].astype(np.float64)
        counts = even_counts(shares, each, generator)
        made[:, column] = np.repeat(np.tile(np.arange(shares.shape[1], dtype=made.dtype), components), counts.ravel())
        for begin, end in zip(ends - each, ends, strict=True):
            generator.shuffle(made[begin:end, column])  # inside a component, columns are independent
    evened(made, each, mixture, generator, passes)
    for column, bins in enumerate(levels.bins):
        made[:, column] = values_in_bins(made[:, column], bins, singles[column], generator)
    return made, each


def values_in_bins(places: Codes, bins: Integers, shares: Floats, generator: np.random.Generator) -> Codes:
    """Return values in the place of bins, by their shares inside."""
    count = int(bins.max()) + 1
    several = np.bincount(bins, minlength=count) > 1
    alone = np.zeros(count, dtype=places.dtype)
    alone[bins] = np.arange(bins.size)  # right where a bin has one value
    made = alone[places]
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=count))
    for bin_ in np.flatnonzero(several):
        rows = order[ends[bin_ - 1] if bin_ else 0 : ends[bin_]]
        values = np.flatnonzero(bins == bin_).astype(places.dtype)
        inside = shares[values] if shares[values].sum() > 0 else np.ones(values.size)
        counted = even_counts(inside[np.newaxis], np.array([rows.size]), generator)[0]
        made[rows] = generator.permutation(np.repeat(values, counted))
    return made
