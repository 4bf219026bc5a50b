"""Which sums are measured so that several aggregates share one measurement.

With t in [0, 1] the place of a value between its bounds, the Bernstein polynomials of a degree are not negative and add
up to 1. So a row moves all of their sums together by exactly 1 in ℓ1, and by at most 1 in ℓ2: count, sum and mean
(degree 1), or variance as well (degree 2), cost no more than one count. For two values the products of their
polynomials do the same.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables.tally import Powers

Exact = NDArray[Any]
Floats = NDArray[np.float64]
WHOLE = 2**57  # sums that are combined as 64-bit integers; larger ones as Python's, which have no largest


@dataclass(frozen=True)
class Design:
    """Sums over (rows of) one or two measures, or none.

    Attributes:
        measures: Their names.
        degrees: The degree in each: 0 counts rows that have it, 1 adds it up, 2 its square.
        missing: Whether rows that lack a measure are counted too, by a sum of their own.

    Privacy: a row moves the statistics by `unit(widths)` in ℓ1, and by at most that in ℓ2 (THEORY 2.2); a row that
    lacks a measure moves only the last of them, by so much, or nothing.

    Example:
        >>> design = Design(("x",), (1,))
        >>> design.sums, design.unit({"x": 100})
        (((('x', 0),), (('x', 1),)), 100)
        >>> design.statistics({(("x", 0),): np.array([3]), (("x", 1),): np.array([120])}, {"x": 100})
        array([[180, 120]])
    """

    measures: tuple[str, ...]
    degrees: tuple[int, ...]
    missing: bool = False

    @property
    def sums(self) -> tuple[Powers, ...]:
        """The moments that the engine adds up."""
        powers = itertools.product(*(range(degree + 1) for degree in self.degrees))
        inner = tuple(tuple(zip(self.measures, one, strict=True)) for one in powers)
        return (*inner, ()) if self.missing else inner

    @property
    def count(self) -> int:
        """How many statistics there are."""
        return math.prod(degree + 1 for degree in self.degrees) + self.missing

    def unit(self, widths: dict[str, int]) -> int:
        """Return what one row moves: the product of the widths, each to its degree."""
        return math.prod(widths[name] ** degree for name, degree in zip(self.measures, self.degrees, strict=True))

    def statistics(self, moments: dict[Powers, Exact], widths: dict[str, int]) -> Exact:
        """Return the exact statistics, a row for each group, from the moments."""
        unit = self.unit(widths)
        largest = max((int(np.max(column, initial=1)) for column in moments.values()), default=1)
        plain = largest * unit * 4 ** sum(self.degrees) < WHOLE
        columns = {powers: column.astype(np.int64 if plain else object) for powers, column in moments.items()}
        places = itertools.product(*(range(degree + 1) for degree in self.degrees))
        found = [self._statistic(place, columns, widths) for place in places]
        if self.missing:
            present = tuple((name, 0) for name in self.measures)
            found.append((columns[()] - columns[present]) * unit)
        return np.stack(found, axis=-1)

    def _statistic(self, place: tuple[int, ...], columns: dict[Powers, Exact], widths: dict[str, int]) -> Exact:
        """Σ Π C(d,a) k^a (w - k)^{d-a}, multiplied out."""
        terms = [
            _bernstein(at, degree, widths[name])
            for at, degree, name in zip(place, self.degrees, self.measures, strict=True)
        ]
        total: Any = 0
        for powers in itertools.product(*terms):
            moment = tuple((name, power) for name, (power, _) in zip(self.measures, powers, strict=True))
            total = total + columns[moment] * math.prod(factor for _, factor in powers)
        return np.asarray(total)


@dataclass(frozen=True)
class Total:
    """The sum of one measure alone, where neither its mean nor a count is asked for.

    Attributes:
        measures: Its name.
        ends: The bounds, in steps from 0.

    Privacy: a row moves the sum by at most the larger end, in steps.

    Example:
        >>> design = Total(("x",), (-20, 80))
        >>> design.unit({"x": 100})
        80
        >>> design.statistics({(("x", 0),): np.array([3]), (("x", 1),): np.array([120])}, {"x": 100})
        array([[60]], dtype=object)
    """

    measures: tuple[str, ...]
    ends: tuple[int, int]
    degrees = (1,)
    missing = False
    count = 1

    @property
    def sums(self) -> tuple[Powers, ...]:
        """How many rows have it, and the sum of the steps above the lower end."""
        return tuple(((self.measures[0], power),) for power in (0, 1))

    def unit(self, widths: dict[str, int]) -> int:
        """Return what one row moves."""
        return max(abs(end) for end in self.ends)

    def statistics(self, moments: dict[Powers, Exact], widths: dict[str, int]) -> Exact:
        """Return the exact sum, in steps."""
        count, steps = (moments[powers].astype(object) for powers in self.sums)
        return np.asarray(count * self.ends[0] + steps)[:, None]


def _bernstein(at: int, degree: int, width: int) -> list[tuple[int, int]]:
    """C(d,a) k^a (w - k)^{d-a} as pairs of a power of k and its factor."""
    rest = degree - at
    return [
        (at + j, math.comb(degree, at) * math.comb(rest, j) * (-1) ** j * width ** (rest - j)) for j in range(rest + 1)
    ]


def moment(design: Design, powers: tuple[int, ...]) -> Floats:
    """Return how much of each statistic, in rows, is in Σ t^i s^j: C(a,i)/C(d,i) of the a-th polynomial of degree d.

    Example:
        >>> moment(Design(("x",), (2,)), (1,)), moment(Design(("x",), (2,)), (2,))
        (array([0. , 0.5, 1. ]), array([0., 0., 1.]))
    """
    whole = np.ones(1)
    for degree, power in zip(design.degrees, powers, strict=True):
        part = [math.comb(at, power) / math.comb(degree, power) for at in range(degree + 1)]
        whole = np.kron(whole, np.array(part))
    return np.append(whole, 0.0) if design.missing else whole
