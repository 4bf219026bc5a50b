"""Rows of an answer, in another order or fewer of them; what was released may be sorted and cut free of charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answer import Answer

CHOSEN = "Rows were chosen by their noisy values: an interval of a chosen row misses more often than 5 times in 100."


def taken(answer: Answer, rows: Sequence[int]) -> Answer:
    """Return some rows of an answer, in this order."""

    def chosen(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        return {name: [column[at] for at in rows] for name, column in columns.items()}

    return replace(
        answer,
        value=chosen(answer.value),
        error95=chosen(answer.error95),
        raw=chosen(answer.raw),
        low=chosen(answer.low),
        high=chosen(answer.high),
    )


def in_order(
    rows: Sequence[int], values: Sequence[Any], *, descending: bool = False, nulls_first: bool = False
) -> list[int]:
    """Return rows sorted by their values, by a stable sort; missing values come last, or first.

    Args:
        rows: The places of rows.
        values: Of all rows, by their place.
        descending: Whether the largest come first.
        nulls_first: Whether rows without a value do.

    Example:
        >>> in_order([0, 1, 2, 3], [5, None, 7, 5], descending=True)
        [2, 0, 3, 1]
    """
    there = [at for at in rows if values[at] is not None]
    missing = [at for at in rows if values[at] is None]
    try:
        there.sort(key=lambda at: values[at], reverse=descending)
    except TypeError:  # a date and a time, say
        there.sort(key=lambda at: str(values[at]), reverse=descending)
    return missing + there if nulls_first else there + missing
