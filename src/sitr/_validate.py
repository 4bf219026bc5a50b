"""The only argument checks: one wording everywhere, naming the argument, the value and the range."""

from __future__ import annotations

import difflib
import math
import numbers
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidArgument

# Letters, marks and symbols by Unicode's book that show nothing: fillers, selectors of variants and their like (what is
# printable of Default_Ignorable_Code_Point), the empty Braille cell, and the note without a head.
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def real(name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> float:
    """Return `value` as a float inside the range, or raise.

    Example:
        >>> real("noise_multiplier", 2, 0, 10, open_low=True)
        2.0
        >>> real("delta", float("nan"), 0, 1)
        Traceback (most recent call last):
        sitr.errors.InvalidArgument: InvalidArgument [SITR-A01]: delta=nan is not in [0, 1].
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise InvalidArgument(f"{name}={shown(value)} is not a number in {_range(low, high, open_low, open_high)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf  # type: ignore[operator]  # past the largest double
    inside = (low < number if open_low else low <= number) and (number < high if open_high else number <= high)
    if not inside:  # also true of NaN
        raise InvalidArgument(f"{name}={shown(value)} is not in {_range(low, high, open_low, open_high)}.")
    return number


def plain(value: Any) -> Any:
    """Return a number of NumPy as Python's, and a list of them as a list; anything else as it is.

    Example:
        >>> plain(np.float64(0.5)), plain(np.arange(2)), plain("a")
        (0.5, [0, 1], 'a')
    """
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def integer(name: str, value: Any, low: int, high: int) -> int:
    """Return `value` as an int inside [low, high], or raise; 3.0 and True are not integers.

    Example:
        >>> integer("count", 3, 1, 10)
        3
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise InvalidArgument(f"{name}={shown(value)} is not a whole number in [{low}, {high}].")
    number = int(value)
    if not low <= number <= high:
        raise InvalidArgument(f"{name}={shown(value)} is not in [{low}, {high}].")
    return number


def reals(
    name: str, values: ArrayLike, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> NDArray[np.float64]:
    """Return an array of checked numbers with the shape of `values`.

    Example:
        >>> reals("epsilon", [0, 0.5], 0, 10)
        array([0. , 0.5])
    """
    array = np.asarray(values, dtype=object)
    checked = [real(name, v, low, high, open_low=open_low, open_high=open_high) for v in array.ravel()]
    return np.array(checked, dtype=np.float64).reshape(array.shape)


def choice(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return `value` if it is one of `allowed`, or raise with the list.

    Example:
        >>> choice("adjacency", "add_remove", ("add_remove", "replace_one"))
        'add_remove'
    """
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(f"{name}={shown(value)} is not one of {', '.join(map(repr, allowed))}.")
    return value


def name(what: str, value: Any, *, without: str = "") -> str:
    """Return `value` if two different names of its kind cannot look alike in a report, or raise.

    Only characters that show (so no line ends, fillers or blanks), in Unicode's composed form, 200 bytes at most.

    Example:
        >>> name("analyst", "amina@clinic")
        'amina@clinic'
        >>> name("dataset", "clinic/2026", without="/")
        Traceback (most recent call last):
        sitr.errors.InvalidArgument: InvalidArgument [SITR-A01]: dataset='clinic/2026' is no name: it contains '/'.
    """
    wrong = _wrong_name(value, without) if isinstance(value, str) else f"it is of type {type(value).__name__}"
    if wrong:
        raise InvalidArgument(f"{what}={shown(value)} is no name: {wrong}.")
    return str(value)


def shows(text: str) -> bool:
    r"""Return whether every character of a text is one that a reader sees; a plain space is.

    Example:
        >>> shows("amina b."), shows("amina\u200b"), shows("amina\u3164")
        (True, False, False)
    """
    return text.isprintable() and not BLANK.search(text)


@lru_cache(maxsize=1024)  # datasets and analysts are named in every request
def _wrong_name(value: str, without: str) -> str:
    if not value or value != value.strip():
        return "it is empty, or begins or ends with a space"
    if not shows(value):
        return "it has characters that do not show"
    if unicodedata.normalize("NFC", value) != value:
        return "it is not in Unicode's composed form (NFC)"
    if len(value.encode()) > 200:
        return "it is longer than 200 bytes"
    return next((f"it contains {sign!r}" for sign in without if sign in value), "")


def meant(word: str, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant, for a message; nothing where none is close.

    Example:
        >>> meant("regoin", ["age", "region"])
        "Did you mean 'region'? "
    """
    close = difflib.get_close_matches(word, list(known), 1)
    return f"Did you mean {close[0]!r}? " if close else ""


def shown(value: Any) -> str:
    """Return a value as an error shows it: in forty characters at most.

    Example:
        >>> shown(list(range(100)))
        '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11...'
    """
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # Python writes out no integer of more than 4300 digits
        text = f"<{type(value).__name__} of thousands of digits>"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _range(low: float, high: float, open_low: bool, open_high: bool) -> str:
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    return f"{left}{low:g}, {high:g}{right}".replace("inf", "∞")
