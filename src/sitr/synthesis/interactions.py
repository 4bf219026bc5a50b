"""Tables of two columns without their margins: what is left to measure where the counts of each column are known.

The interaction of a table C of x × y counts is (I - J/x) C (I - J/y), J of ones: rows and columns add up to 0. Times
xy it is of whole numbers, so that exact noise can be added. One row of data moves it less far than the table, since a
part of what it moves there are the margins (decision 0037).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..units import Adjacency

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def interaction(counts: Integers) -> Integers:
    """Return the interaction of a table of x × y counts, times xy.

    Example:
        >>> interaction(np.array([[3, 1], [0, 0]]))
        array([[ 2, -2],
               [-2,  2]])
    """
    x, y = counts.shape
    by_row, by_column = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    return np.asarray(x * y * counts - x * by_row - y * by_column + counts.sum())


def reach(shape: tuple[int, int], rows: int, adjacency: Adjacency) -> float:
    """Return how far a unit of at most so many rows moves an interaction times xy, in ℓ2.

    One row that comes or goes moves it by a column of (xI - J) ⊗ (yI - J), whose square is xy(x - 1)(y - 1). One that
    goes from a cell to another moves it farthest along the shorter side: by xy · 2(xy - min(x, y)), squared.

    Example:
        >>> round(reach((2, 2), 1, "add_remove"), 6)  # beside 4 times 1, by which it moves the table times 4
        2.0
    """
    x, y = shape
    square = (x - 1) * (y - 1) if adjacency == "add_remove" else 2 * (x * y - min(x, y))
    return rows * math.sqrt(x * y * square) * (1 + 2.0**-50)


def centred(table: Floats) -> Floats:
    """Return the interaction of a table."""
    return np.asarray(table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean())


def with_margins(found: Floats, one: Floats, other: Floats) -> Floats:
    """Return the table whose interaction is `found`, and whose margins are the counts of one column and of the other.

    Example:
        >>> with_margins(np.array([[0.5, -0.5], [-0.5, 0.5]]), np.array([4.0, 0.0]), np.array([3.0, 1.0]))
        array([[3., 1.],
               [0., 0.]])
    """
    x, y = found.shape
    margins = one[:, np.newaxis] / y + other / x - (one.sum() + other.sum()) / (2 * x * y)
    return np.asarray(found + margins)
