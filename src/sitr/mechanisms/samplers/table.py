"""Exact draws from a discrete law by inversion, revealing only as many random bits as the answer needs.

To invert a distribution function one only has to know on which side of each of its steps a uniform number lies. The
first bits choose a cell of a table, and in most cells lies no step. For the others 64 bits are compared with the
floors of the steps; where even those agree, more bits are drawn and the steps are computed further. No float decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
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
CHUNK = 1 << 16  # draws at a time: what a cache holds
OPEN = np.iinfo(np.int32).min  # a cell in which a step lies


class Law(ABC):
    """Outcomes 0, 1, 2 … in the order of a distribution function; `values` says what they stand for."""

    @abstractmethod
    def steps(self, bits: int) -> Iterator[Interval]:
        """Yield integers around the distribution function times 2^bits, outcome by outcome, without the last 1."""

    @abstractmethod
    def values(self, count: int) -> Integers:
        """Return what the first `count` outcomes stand for."""


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
            return self._fine_draws(source, words(source, 64, count))
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
            found[undecided] = self._fine_draws(source, cell << np.uint64(64 - self.coarse) | rest)
        return found

    def _fine_draws(self, source: Source, uniform: NDArray[np.uint64]) -> Integers:
        """Decide by the first `fine` of 64 bits; where those equal a floor, by more."""
        uniform = uniform >> np.uint64(64 - self.fine)
        places = np.searchsorted(self.floors, uniform)
        undecided = np.flatnonzero(self.floors.take(places, mode="clip") == uniform)
        found = self.outcomes[places]
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
                return int(self.law.values(place + 1)[place])


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
