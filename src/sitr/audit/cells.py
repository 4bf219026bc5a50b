"""Ways to sort outputs into finitely many cells, and how a set of cells is said in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .samples import Numbers, Sample

Cells = NDArray[np.int64]
SHOWN = 4  # pieces of a set that are spelled out
FEW = 5  # outputs in a cell, under which cells are taken together
GLANCE = 1000  # outputs that are looked at to decide what they are
HEAVY = 200  # an output that is one in so many is a cell of its own
MOST_BINS = 64
NOTHING = -1  # the cell of what is no number
SIZES = 4096  # more than there are exponents of doubles, of either sign


class Cutter(ABC):
    """Sorts outputs into cells."""

    name: str

    @abstractmethod
    def cells(self, sample: Sample) -> Cells:
        """Return the cell of each output."""

    @abstractmethod
    def words(self, cells: Cells) -> str:
        """Say of an output that it lies in one of these cells."""


class Labels(Cutter):
    """Each distinct output is a cell."""

    name = "categories"

    def __init__(self, *samples: Sample) -> None:
        self._texts = {hash(text): text for sample in samples for text in sample.labels()}

    def cells(self, sample: Sample) -> Cells:
        """Return a hash of each output."""
        return np.array([hash(text) for text in sample.labels()], dtype=np.int64)

    def words(self, cells: Cells) -> str:
        """List the outputs."""
        return f"output is {_listed([self._texts[cell] for cell in cells.tolist()])}"


@dataclass(frozen=True)
class Bins(Cutter):
    """Frequent numbers of one column are cells of their own; the rest is cut at quantiles.

    Example:
        >>> sample = Sample([], np.array([[0.0]] * 6 + [[1.5], [2.5], [3.5], [4.5]]))
        >>> bins = Bins.of(sample, sample)
        >>> bins.cells(sample).tolist()
        [0, 0, 0, 0, 0, 0, 1, 2, 3, 4]
        >>> bins.words(np.array([0, 3]))
        'output = 0 or in (2.5, 3.5]'
    """

    atoms: Numbers
    edges: Numbers
    column: int
    what: str
    name: str = "bins"

    @classmethod
    def of(cls, first: Sample, second: Sample, column: int = 0) -> Bins:
        """Choose the cells by two samples together."""
        values = np.concatenate([first.columns[:, column], second.columns[:, column]])
        values = values[~np.isnan(values)]
        distinct, counts = np.unique(values, return_counts=True)
        heavy = counts >= max(len(values) / HEAVY, 3)
        rest = np.sort(np.repeat(distinct[~heavy], counts[~heavy]))
        bins = min(max(round(len(rest) ** (1 / 3)), 4), MOST_BINS)
        ranks = (np.arange(1, bins) * len(rest)) // bins - 1
        edges = np.unique(rest[ranks[ranks >= 0]]) if len(rest) else rest
        return cls(distinct[heavy], edges, column, first.place(column))

    def cells(self, sample: Sample) -> Cells:
        """Return the index of the atom, or of the bin after all atoms."""
        values = sample.columns[:, self.column]
        found = np.searchsorted(self.edges, values) + len(self.atoms)
        near = np.minimum(np.searchsorted(self.atoms, values), max(len(self.atoms) - 1, 0))
        if len(self.atoms):
            found = np.where(self.atoms[near] == values, near, found)
        return np.where(np.isnan(values), NOTHING, found).astype(np.int64)

    def words(self, cells: Cells) -> str:
        """List the numbers and the intervals."""
        atoms = [f"{self.atoms[cell]:.6g}" for cell in cells if 0 <= cell < len(self.atoms)]
        bins = sorted(int(cell) - len(self.atoms) for cell in cells if cell >= len(self.atoms))
        pieces = [f"{self.what} = {', '.join(atoms[: 2 * SHOWN])}{', …' if len(atoms) > 2 * SHOWN else ''}"]
        pieces = (pieces if atoms else []) + [self._interval(*run) for run in _runs(bins)]
        if NOTHING in cells:
            pieces.append("no number")
        text = " or ".join(pieces[:SHOWN]) + (" or …" if len(pieces) > SHOWN else "")
        return text if atoms else f"{self.what} {text}"

    def _interval(self, low: int, high: int) -> str:
        if low == 0:
            return f"≤ {self.edges[high]:.6g}" if high < len(self.edges) else "any other"
        if high >= len(self.edges):
            return f"> {self.edges[low - 1]:.6g}"
        return f"in ({self.edges[low - 1]:.6g}, {self.edges[high]:.6g}]"


@dataclass(frozen=True)
class Repeats(Cutter):
    """Each number of one column that comes again and again is a cell; all others are one.

    Example:
        >>> sample = Sample([], np.array([[7.0]] * 6 + [[1.5], [2.5]]))
        >>> repeats = Repeats.of(sample, sample)
        >>> repeats.cells(sample).tolist(), repeats.words(np.array([0]))
        ([0, 0, 0, 0, 0, 0, -1, -1], 'output = 7')
    """

    repeated: Numbers
    column: int
    what: str
    name: str = "repeats"

    @classmethod
    def of(cls, first: Sample, second: Sample, column: int = 0) -> Repeats:
        """Choose the cells by two samples together."""
        distinct, counts = np.unique(
            np.concatenate([first.columns[:, column], second.columns[:, column]]), return_counts=True
        )
        return cls(distinct[(counts >= FEW) & ~np.isnan(distinct)], column, first.place(column))

    def cells(self, sample: Sample) -> Cells:
        """Return the index of the number."""
        values = sample.columns[:, self.column]
        if not len(self.repeated):
            return np.full(len(values), NOTHING, dtype=np.int64)
        near = np.minimum(np.searchsorted(self.repeated, values), len(self.repeated) - 1)
        return np.where(self.repeated[near] == values, near, NOTHING).astype(np.int64)

    def words(self, cells: Cells) -> str:
        """List the numbers."""
        numbers = [f"{self.repeated[cell]:.6g}" for cell in cells.tolist() if cell != NOTHING]
        others = ["a number that is not repeated"] if NOTHING in cells else []
        return f"{self.what} = {_listed(numbers + others)}"


@dataclass(frozen=True)
class LowBits(Cutter):
    """The lowest bit that is set in a float, alone or with the size of the float.

    Privacy: noise that is added in floating point leaves in these bits what it was added to (Mironov 2012, Haney et
    al. 2022).

    Example:
        >>> lowest_bit(np.array([0.75, 3.0, -40.0, 2.0**-60])).tolist()
        [-2, 0, 3, -60]
        >>> LowBits(0, "output", sized=False).words(np.array([-2, -60]))
        'lowest set bit of output is 2^-60, 2^-2'
    """

    column: int
    what: str
    sized: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """What the score is called."""
        return "low bits by size" if self.sized else "low bits"

    def cells(self, sample: Sample) -> Cells:
        """Return the exponent of the lowest bit, and that of the size where it is wanted."""
        values = sample.columns[:, self.column]
        low = lowest_bit(values)
        if not self.sized:
            return low
        return low + SIZES * size(values)

    def words(self, cells: Cells) -> str:
        """List the bits, or some of the patterns."""
        if not self.sized:
            return f"lowest set bit of {self.what} is {_listed([f'2^{cell}' for cell in sorted(cells.tolist())])}"
        sizes = (cells + SIZES // 2) // SIZES
        order = np.lexsort((cells, sizes))
        pairs = [f"2^{cells[i] - SIZES * sizes[i]} at size 2^{sizes[i]}" for i in order]
        return f"lowest set bit of {self.what} by its size is one of {len(cells)} patterns, such as {pairs[0]}"


def lowest_bit(values: Numbers) -> Cells:
    """Return the exponent of the lowest bit set; a very large one for 0 and for what is not finite."""
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(finite, values, 1.0))
    digits = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2((digits & -digits).astype(np.float64)).astype(np.int64)
    return np.where(finite, exponent - 53 + lowest, SIZES // 2 - 1).astype(np.int64)


def size(values: Numbers) -> Cells:
    """Return e with 2^e ≤ |value| < 2^(e+1), and a value outside that range for 0 and for what is not finite."""
    finite = np.isfinite(values) & (values != 0)
    _, exponent = np.frexp(np.where(finite, values, 1.0))
    return np.where(finite, exponent - 1, SIZES).astype(np.int64)


def _listed(texts: list[str]) -> str:
    shown = [text if len(text) <= 40 else f"{text[:39]}…" for text in texts[: 2 * SHOWN]]
    return ", ".join(shown) + (f", … ({len(texts)} in all)" if len(texts) > 2 * SHOWN else "")


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Sorted whole numbers as runs without a gap."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def has_low_bits(values: Numbers) -> bool:
    """Whether the low bits of numbers may speak: some are no whole numbers, or they are of more than two kinds."""
    finite = values[np.isfinite(values)]
    return bool(np.any(finite != np.rint(finite))) or bool(len(np.unique(finite[:GLANCE])) > 2)
