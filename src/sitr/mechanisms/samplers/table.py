"""Exact draws from a discrete law by inversion, revealing only as many random bits as the answer needs.

To invert a distribution function one only has to know on which side of each of its steps a uniform number lies. The
first bits choose a cell of a table, and in most cells lies no step. For the others 64 bits are compared with the
floors of the steps; where even those agree, more bits are drawn and the steps are computed further. No float decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..randomness import Source, words
from .intervals import Interval

Integers = NDArray[np.int64]

FINE = 64  # bits of the second level
BATCH = 4096  # below this many draws every one goes to the second level, so that its work does not tell its value
FEW_STEPS = 2048  # up to so many steps 16 bits decide most draws; beyond, 20 do
COMPARED = 1 << 16  # numbers times steps up to which all are compared
CHUNK = 1 << 16  # draws at a time: what a cache holds
OPEN = np.iinfo(np.int32).min  # a cell in which a step lies


class Law(ABC):
    """Outcomes 0, 1, 2 … in the order of a distribution function; `at` says what they stand for."""

    @abstractmethod
    def steps(self, bits: int) -> Iterator[Interval]:
        """Yield integers around the distribution function times 2^bits, outcome by outcome, without the last 1."""

    @abstractmethod
    def at(self, places: Integers) -> Integers:
        """Return what outcomes stand for: computed, as a clock can tell a place of a table that is seldom read."""

    def values(self, count: int) -> Integers:
        """Return what the first `count` outcomes stand for."""
        return self.at(np.arange(count, dtype=np.int64))


class Table:
    """A sampler of one law."""

    def __init__(self, law: Law, fine: int = FINE) -> None:
        self.law, self.fine = law, fine

    @cached_property
    def floors(self) -> NDArray[np.uint64]:
        """The floors of the steps times 2^fine; above the last one lies less than one unit."""
        return np.array(self._floors(self.fine), dtype=np.uint64)

    def _floors(self, bits: int) -> list[int]:
        """Compute the floors with as many guard bits as it takes for both ends to agree."""
        guard = 32
        while True:
            found = _agreed(self.law.steps(bits + guard), bits, guard)
            if found is not None:
                return found
            guard *= 2

    @cached_property
    def outcomes(self) -> Integers:
        """What each place between two steps stands for."""
        return self.law.values(self.floors.size + 1)

    @cached_property
    def coarse(self) -> int:
        """Bits of the first level."""
        return min(16 if self.floors.size <= FEW_STEPS else 20, self.fine)

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """For each value of the first bits the outcome, or `OPEN`."""
        inside = np.bincount((self.floors >> np.uint64(self.fine - self.coarse)).astype(np.int64), minlength=1)
        inside = np.pad(inside, (0, (1 << self.coarse) - inside.size))
        before = np.cumsum(inside) - inside
        return np.where(inside == 0, self.outcomes[before], OPEN).astype(np.int32)

    def draw(self, source: Source, count: int) -> Integers:
        """Return `count` independent draws."""
        if count < BATCH:
            return self._fine_draws(source, words(source, 64, count), evenly_searched)
        found = np.empty(count, dtype=np.int64)
        for first in range(0, count, CHUNK):
            found[first : first + CHUNK] = self._chunk(source, min(CHUNK, count - first))
        return found

    def _chunk(self, source: Source, count: int) -> NDArray[Any]:
        width = 16 if self.coarse <= 16 else 32
        first = words(source, width, count)
        found = self.cells.take(first if width == self.coarse else first >> np.uint32(width - self.coarse))
        undecided = np.flatnonzero(found == OPEN)
        if undecided.size:
            rest = words(source, 64, undecided.size) >> np.uint64(self.coarse)
            cell = (first[undecided] >> (width - self.coarse)).astype(np.uint64)
            found[undecided] = self._fine_draws(source, cell << np.uint64(64 - self.coarse) | rest, np.searchsorted)
        return found

    def _fine_draws(
        self, source: Source, uniform: NDArray[np.uint64], search: Callable[..., NDArray[np.intp]]
    ) -> Integers:
        """Decide by the first `fine` of 64 bits; where those equal a floor, by more."""
        uniform = uniform >> np.uint64(64 - self.fine)
        places = search(self.floors, uniform)
        undecided = np.flatnonzero(self.floors.take(places, mode="clip") == uniform)
        found = self.law.at(places.astype(np.int64))
        for place in undecided:
            found[place] = self._deep_draw(source, int(uniform[place]))
        return found

    def _deep_draw(self, source: Source, uniform: int) -> int:
        """Draw 64 more bits, as often as it takes."""
        bits = self.fine
        while True:
            bits += 64
            uniform = uniform << 64 | int(words(source, 64, 1)[0])
            floors = self._floors(bits)
            place = bisect_left(floors, uniform)
            # Past the last step lies the last outcome of a finite law; the steps of others end only at the last unit.
            if place == len(floors) or floors[place] != uniform:
                return int(self.law.at(np.array([place], dtype=np.int64))[0])


def evenly_searched(floors: NDArray[np.uint64], uniform: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return how many floors are under each number, by steps that are the same wherever it lies.

    The branches of `np.searchsorted` are guessed right by a processor more often near the middle of a law than in its
    tails, which a clock can tell. Here a few numbers are compared with all floors, and more halve their range together.

    Example:
        >>> evenly_searched(np.array([3, 5], dtype=np.uint64), np.array([2, 3, 4, 5, 9], dtype=np.uint64))
        array([0, 0, 1, 1, 2])
    """
    if uniform.size * floors.size <= COMPARED:
        return np.asarray(np.count_nonzero(floors < uniform[:, np.newaxis], axis=1))
    levels = floors.size.bit_length()
    padded = np.pad(floors, (0, (1 << levels) - 1 - floors.size), constant_values=np.iinfo(np.uint64).max)
    under = np.zeros(uniform.size, dtype=np.intp)
    for level in reversed(range(levels)):
        under += (padded[under + ((1 << level) - 1)] < uniform).astype(np.intp) << level
    return under


def _agreed(steps: Iterator[Interval], bits: int, guard: int) -> list[int] | None:
    """Return floor(step 2^bits) up to the last unit, or None where both ends do not agree on one."""
    floors: list[int] = []
    for low, high in steps:
        floor = low >> guard
        if floor != high >> guard:
            return None
        floors.append(floor)
        if floor == (1 << bits) - 1:
            break
    return floors
