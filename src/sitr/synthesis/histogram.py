"""A private histogram: cells are counted, covered with noise, and made a histogram again (seed 001, THEORY 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..accounting import DiscreteLaplace
from ..errors import InvalidArgument
from ..mechanisms import Mechanism, laplace
from ..mechanisms.lattice import RULES, Rule, nearest_histogram
from ..mechanisms.randomness import Source
from ..units import ADJACENCIES, Adjacency
from .denoising import Spread, denoised

Integers = NDArray[np.int64]
Likeliest = Literal["likeliest"]
MOST_CELLS = 10**7
MOST_ROWS = 10**12


@dataclass(frozen=True, eq=False)
class Histogram:
    """What is released: anyone may ask it anything, for ever.

    Attributes:
        counts: Rows in each cell, none negative.
        noisy: The counts as they were measured: right on average, and so best for sums over many cells, as counts that
            are kept from being negative are too large where little is.
        described_as: How the noise was taken off: "alike", "smooth", or "nearest" where it was not.
    """

    counts: Integers
    noisy: Integers
    described_as: str

    def sample(self, rows: int, *, seed: int | None = None) -> Integers:
        """Return the cells of so many rows, drawn at random by the counts; as often as one likes, for nothing.

        Args:
            rows: How many.
            seed: To draw the same again. It makes nothing less private: the histogram is public.

        Privacy: post-processing of the histogram (THEORY 6.3).

        Example:
            >>> one = Histogram(np.array([3, 0, 1]), np.array([4, -2, 1]), "nearest")
            >>> sorted(set(one.sample(100, seed=1).tolist()))
            [0, 2]
        """
        wanted, total = _validate.integer("rows", rows, 0, MOST_ROWS), int(self.counts.sum())
        if total == 0:
            raise InvalidArgument("nothing can be drawn from a histogram without rows.")
        generator = np.random.default_rng(seed)
        drawn = generator.multinomial(wanted, self.counts.ravel() / total)
        return generator.permutation(np.repeat(np.arange(drawn.size), drawn))


class PrivateHistogram(Mechanism):
    """Counts of cells with noise, made a histogram again; made by `histogram`.

    Attributes:
        cells: How many in each direction.
        total: How many rows there are, where that is public.
        ordered: Whether neighbouring cells may be alike.
        rule: How a histogram is made of noisy counts.
        scale: Of the noise on each count.
    """

    def __init__(
        self,
        cells: tuple[int, ...],
        epsilon: float,
        adjacency: Adjacency,
        total: int | None,
        ordered: bool,
        rule: Rule | Likeliest,
        max_rows_per_unit: int = 1,
    ) -> None:
        # A row leaves one cell, and where it is replaced it comes into another.
        moved = max_rows_per_unit * (2 if adjacency == "replace_one" else 1)
        length = math.prod(cells)
        self._noise = laplace(sensitivity=moved, epsilon=epsilon, integers=True, length=length, adjacency=adjacency)
        self.cells, self.total, self.ordered, self.rule = cells, total, ordered, rule
        self.scale, self.error95 = self._noise.scale, self._noise.error95
        single = DiscreteLaplace(scale=self.scale, adjacency=adjacency) * moved
        self.event = single if max_rows_per_unit == 1 else self._noise.event  # several rows may be in one cell

    def __repr__(self) -> str:
        return f"PrivateHistogram({self.event!r}, cells={self.cells})"

    def _checked(self, value: ArrayLike) -> Integers:
        return counted(value, self.cells, self.total)

    def _drawn(self, value: Integers, source: Source | None) -> Histogram:
        noisy = value if source is None else value + self._noise.noise(source).reshape(self.cells)
        if self.rule != "likeliest":
            return Histogram(nearest_histogram(noisy, self._rows(noisy), rule=self.rule), noisy, "nearest")
        found = denoised(noisy.ravel(), Spread("laplace", self.scale), ordered=self.ordered)
        counts = np.zeros(noisy.size, dtype=np.int64)
        filled = found.counts > 0 if found.counts.any() else np.ones(noisy.size, dtype=bool)
        counts[filled] = nearest_histogram(found.counts[filled], self._rows(found.counts))
        return Histogram(counts.reshape(self.cells), noisy, found.described_as)

    def _rows(self, estimates: NDArray[Any]) -> int:
        """How many rows the histogram has: the public number, or what the counts add up to."""
        return max(round(float(estimates.sum())), 0) if self.total is None else self.total


def histogram(
    cells: int | Sequence[int],
    *,
    epsilon: float,
    adjacency: Adjacency = "add_remove",
    total: int | None = None,
    ordered: bool = False,
    rule: Rule | Likeliest = "likeliest",
    max_rows_per_unit: int = 1,
) -> PrivateHistogram:
    """Return the histogram of seed 001: noise on the count of every cell, and the result made a histogram again.

    Args:
        cells: How many, or how many in each direction. They are drawn from declared bounds and categories, never from
            the data.
        epsilon: The pure ε that a release may cost: the seed's α.
        adjacency: "add_remove", or "replace_one", under which the number of rows may be public.
        total: That number; then the histogram has as many.
        ordered: Whether neighbouring cells may be alike, as those of a number or a date. One direction only.
        rule: "likeliest" asks what each true count may be, given all noisy ones. The others are the seed's own method,
            the nearest histogram in ℓ1, by the rules of `nearest_histogram`: "level" is the nearest in ℓ2 as well.
        max_rows_per_unit: How many rows one unit has at most. The caller sees to it.

    Raises:
        InvalidArgument: A total under add_remove, where the number of rows is private; more than 10^7 cells; or an
            order in several directions.

    Privacy: one row is in one cell, so counts move by 1 in ℓ1, and by 2 where a row is replaced: discrete Laplace noise
    of scale 1/ε, or 2/ε, which is the seed's 2/(nα) in shares of n rows. Replacing moves two cells by 1 each, and is
    charged as that: two Laplace events of half the ε (THEORY 6.1). A unit of several rows moves counts by as many, in
    ℓ1. All that follows is post-processing (THEORY 6.2).

    Example:
        >>> seed = histogram(3, epsilon=1.0, adjacency="replace_one", total=120, rule="level")
        >>> seed.scale, round(float(seed.event.delta(epsilon=0.5)), 3)
        (2.0, 0.152)
        >>> int(seed.release([100, 0, 20]).value.counts.sum())
        120
    """
    shape = tuple(_validate.integer("cells", one, 1, MOST_CELLS) for one in _sequence(cells))
    if not shape or math.prod(shape) > MOST_CELLS:
        raise InvalidArgument(
            f"a histogram of {math.prod(shape):,} cells is too large.",
            why=f"every cell gets noise, of {MOST_CELLS:,} at most.",
            do="take coarser cells or fewer columns; or sparse_histogram, which counts the cells that occur.",
        )
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    _validate.choice("rule", rule, ("likeliest", *RULES))
    known = public_total(total, adjacency)
    if ordered and len(shape) > 1:
        raise InvalidArgument("cells in several directions have no one order.", do="leave ordered out.")
    rows = _validate.integer("max_rows_per_unit", max_rows_per_unit, 1, 10**6)
    return PrivateHistogram(shape, epsilon, adjacency, known, ordered, rule, rows)


def counted(value: ArrayLike, cells: tuple[int, ...], total: int | None) -> Integers:
    """Return counts of cells, which add up to the total where that is public; or refuse them without showing them."""
    counts = np.asarray(value)
    if counts.shape != cells or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InvalidArgument(f"the counts are not whole numbers, none negative, of {cells} cells.")
    if total is not None and int(counts.sum()) != total:
        raise InvalidArgument("the counts do not add up to the total, which is public.")
    return counts.astype(np.int64)


def public_total(total: int | None, adjacency: Adjacency) -> int | None:
    """Return the number of rows, where it may be public and is given."""
    if total is None:
        return None
    if adjacency == "add_remove":
        raise InvalidArgument(
            "the number of rows is private under add_remove.", do='leave total out, or take adjacency="replace_one".'
        )
    return _validate.integer("total", total, 0, MOST_ROWS)


def _sequence(cells: int | Sequence[int]) -> Sequence[int]:
    return cells if isinstance(cells, (list, tuple)) else [cells]  # type: ignore[list-item]
