"""Numbers as people read them: spent is rounded up, what remains is rounded down, delta is scientific."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


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


def scientific(value: float) -> str:
    """Show a delta; a small one is never printed as 0.000.

    Example:
        >>> scientific(1e-6), scientific(2.5e-13), scientific(0.0)
        ('1e-06', '2.5e-13', '0')
    """
    return "0" if value == 0 else f"{value:.3g}" if value >= 1e-2 else f"{Decimal(f'{value:.2e}').normalize():e}"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return "∞" if value > 0 else "0"
    exact = Decimal(repr(float(value)))  # what the number is written as, not its last binary digits
    quantum = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    shown = exact.quantize(quantum, rounding=rounding) if exact.adjusted() < 25 else exact
    plain = -5 <= exact.adjusted() < 7
    return f"{shown:f}" if plain else f"{shown:.{digits - 1}e}"
