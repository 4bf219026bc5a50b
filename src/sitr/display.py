"""Numbers as people read them: spent is rounded up, what remains is rounded down, delta is scientific."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

CUT = re.compile(r"… \([0-9,]+ characters in all\)\Z")  # how a shortened text ends
HAIR = 2.0**-38  # what a promise allows anyway (decision 0006): ε = 0.1 three times is 0.3, and 0.5 is no 0.501


def rounded_up(value: float, digits: int = 3) -> str:
    """Show a cost with `digits` significant digits, never less than it is.

    Example:
        >>> rounded_up(2.38111)
        '2.39'
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 3) -> str:
    """Show what is left with `digits` significant digits, never more than it is.

    Example:
        >>> rounded_down(0.31999)
        '0.319'
    """
    return _rounded(value, digits, ROUND_FLOOR)


def reckoned(amount: float, *, spent: bool) -> float:
    """Return what was spent, or what is left, as people reckon it: without the hair that a promise allows anyway.

    Example:
        >>> rounded_up(0.1 + 0.2), rounded_up(reckoned(0.1 + 0.2, spent=True))
        ('0.301', '0.300')
    """
    return amount * (1 - HAIR if spent else 1 + HAIR)


def percent(share: float, *, spent: bool) -> str:
    """Show which part of a budget was spent, rounded up, or is left, rounded down.

    Example:
        >>> percent(0.12345, spent=True), percent(0.12345, spent=False)
        ('12.4 %', '12.3 %')
    """
    rounded = rounded_up if spent else rounded_down
    return f"{rounded(min(100 * reckoned(share, spent=spent), 100.0))} %"


def counted(count: int, what: str) -> str:
    """Show a number of things.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """Show the beginning of a text, and say how long it is, where it is longer than so many characters.

    One that was shortened before goes on to say how long it was at first.

    Example:
        >>> shortened("SELECT 1", 10), shortened("SELECT " * 4, 10)
        ('SELECT 1', 'SELECT SEL… (28 characters in all)')
        >>> shortened(shortened("SELECT " * 4, 10), 3)
        'SEL… (28 characters in all)'
    """
    if len(text) <= most:
        return text
    before = CUT.search(text)
    if before:
        return text[: min(most, before.start())] + before[0]
    return f"{text[:most]}… ({len(text):,} characters in all)"


def scientific(value: float, *, up: bool | None = None) -> str:
    """Show a delta; a small one is never printed as 0.000.

    Args:
        value: The delta.
        up: Whether to round up, as for what is spent, or down, as for what is left; to the nearest unless told.

    Example:
        >>> scientific(1e-6), scientific(2.5e-13), scientific(0.0)
        ('1e-06', '2.5e-13', '0')
        >>> scientific(1.23456e-9, up=True), scientific(1.23456e-9, up=False)
        ('1.24e-09', '1.23e-09')
    """
    if up is not None and value:
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        value = float(Context(prec=3, rounding=rounding).create_decimal(repr(float(value))))
    if value == 0 or value >= 1e-2:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{exponent}"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}".replace("inf", "∞")
    # What the number is written as, not its last binary digits; 9.999 may carry into one more place.
    shown = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    if -5 <= shown.adjusted() < 7:
        return f"{shown:.{max(digits - 1 - shown.adjusted(), 0)}f}"
    return f"{shown:.{digits - 1}e}"
