"""Of which dtype a column of an answer is in a frame of pandas: what its cells are, with room for missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from .cells import are_whole

LARGEST = 2**63  # whole numbers from here on have no dtype of their own


def pandas_dtype(cells: Sequence[Any]) -> str | None:
    """Return the dtype of a column; None where pandas finds it: floats, texts, and what mixes kinds.

    Dates are times at midnight, as pandas has no dtype of dates.

    Example:
        >>> pandas_dtype([12, None]), pandas_dtype([True, None]), pandas_dtype([date(2025, 7, 1), None])
        ('Int64', 'boolean', 'datetime64[us]')
        >>> pandas_dtype([0.5, None]), pandas_dtype(["north", None]), pandas_dtype([])
        (None, None, None)
    """
    known = [cell for cell in cells if cell is not None]
    if not known:
        return None
    if all(isinstance(cell, bool) for cell in known):
        return "boolean"
    if all(isinstance(cell, date) for cell in known):  # a timestamp is a date as well
        return "datetime64[us]"
    return "Int64" if are_whole(known) and all(-LARGEST <= cell < LARGEST for cell in known) else None
