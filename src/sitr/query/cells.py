"""The cells of an answer as people read them: as many digits as noise leaves a meaning, intervals rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .answer import Answer

INTERVAL = "95 % interval"
FINEST = 9  # decimals
LONGEST = 400  # digits of a float that is written out


def cells(answer: Answer, most: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the head and the first rows of an answer, as texts: keys, then each number with its interval."""
    head = [*answer.keys, *(title for name in answer.raw for title in (name, INTERVAL))]
    columns = [[key_text(cell) for cell in answer.value[name][:most]] for name in answer.keys]
    for name in answer.raw:
        digits = _digits(answer, name)
        columns.append([number_text(cell, digits) for cell in answer.value[name][:most]])
        ends = zip(answer.low[name][:most], answer.high[name][:most], strict=True)
        columns.append([interval_text(low, high, digits) for low, high in ends])
    return tuple(head), list(zip(*columns, strict=True))


def decimals(errors: Sequence[Any]) -> int | None:
    """Return how many decimals a column needs: two digits of its least error; None where no error is known.

    Example:
        >>> decimals([12.0, 31.0]), decimals([0.53]), decimals([None])
        (0, 2, None)
    """
    known = [error for error in errors if isinstance(error, (int, float, np.integer)) and 0 < error < math.inf]
    return min(max(1 - math.floor(math.log10(min(known))), 0), FINEST) if known else None


def key_text(value: Any) -> str:
    """Return a key as people read it."""
    return "(missing)" if value is None else str(value)


def number_text(value: Any, digits: int | None) -> str:
    """Return a number as people read it.

    Example:
        >>> number_text(1936, 0), number_text(174.3263, 1), number_text(174.3263, None), number_text(None, 1)
        ('1,936', '174.3', '174.326', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:,.6g}" if digits is None else f"{value:z,.{digits}f}"


def interval_text(low: Any, high: Any, digits: int | None) -> str:
    """Return an interval as people read it; it is rounded outwards, so that it still holds what it held.

    Example:
        >>> interval_text(1829.56, 2177.36, 0), interval_text(0.0, 0.118, 2), interval_text(None, None, 0)
        ('1,829 to 2,178', '0.00 to 0.12', 'not known')
    """
    if low is None or high is None:
        return "not known"
    return f"{_end_text(low, digits, ROUND_FLOOR)} to {_end_text(high, digits, ROUND_CEILING)}"


def _end_text(end: Any, digits: int | None, rounding: str) -> str:
    if digits is None or not isinstance(end, float) or not math.isfinite(end):
        return number_text(end, digits)
    return f"{Decimal(repr(float(end))).quantize(Decimal((0, (1,), -digits)), context=Context(LONGEST, rounding)):z,f}"


def are_whole(values: Sequence[Any]) -> bool:
    """Whether a column has whole numbers only, as counts are: then half a row in its interval means nothing.

    Example:
        >>> are_whole([12, None, 7]), are_whole([12, 7.0]), are_whole([None])
        (True, False, False)
    """
    known = [one for one in values if one is not None]
    return bool(known) and all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in known)


def _digits(answer: Answer, name: str) -> int | None:
    """The decimals of a column; none where all its numbers are whole."""
    if are_whole(answer.value[name]):
        return 0
    numbers = [*answer.value[name], *answer.low[name], *answer.high[name]]
    whole = all(isinstance(one, int) or (isinstance(one, float) and one.is_integer()) for one in numbers)
    return 0 if whole else decimals(answer.error95[name])
