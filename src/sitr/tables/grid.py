"""Numbers inside an engine: whole steps of a grid, clipped before anything is computed of them.

Whole numbers have 64 bits, others are doubles, and rounding is by floor: what engines do by themselves differs.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

import ibis

from .dialect import Value
from .domains import EPOCH, FARTHEST, Domain
from .expressions import EXACT


def clipped(value: Value, low: Any, high: Any) -> Value:
    """Return a value no lower and no higher than two constants; missing stays missing."""
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def whole(value: int) -> Value:
    """Return a whole number of 64 bits: the literal alone has 32 in some engines, and would overflow there."""
    return ibis.literal(value).cast("int64")


def real(value: Fraction | float) -> Value:
    """Return the nearest double: the literal alone is a decimal in some engines, of too few digits."""
    return ibis.literal(repr(float(value))).cast("float64")


def scaled(value: Value, factor: int) -> Value:
    """Return steps of one grid in those of a finer one; beyond 64 bits a factor is only of what is 0 in each row."""
    return value if factor == 1 else value * whole(factor if factor <= FARTHEST else 0)


def rounded(value: Value) -> Value:
    """Return the nearest whole number, halves up: `round` and casts differ between engines."""
    return (value + real(0.5)).floor().cast("int64")


def clipped_steps(value: Value, domain: Domain) -> Value:
    """Return whole steps inside a domain."""
    low, high = domain.span
    return clipped(value, whole(low), whole(high)).cast("int64")


def outside(value: Value, domain: Domain) -> Value:
    """Return whether a value of a column lies beyond its bounds, so that it is clipped."""
    low, high = domain.span
    if domain.kind in ("date", "timestamp"):
        value = since_1970(value, domain.kind)
    elif domain.float or domain.step != 1:
        least, most = domain.ends
        value = value.cast("float64")
        return (value < real(least)) | (value > real(most))
    return (value < whole(low)) | (value > whole(high))


def since_1970(value: Value, kind: str) -> Value:
    """Return the days of a date, or the seconds of a time, rounded down."""
    if kind == "date":
        return value.delta(ibis.literal(EPOCH), unit="day").cast("int64")
    return value.truncate("s").delta(ibis.literal(datetime(1970, 1, 1)), unit="second").cast("int64")


def to_steps(value: Value, domain: Domain, grid: Domain) -> Value:
    """Return what the engine holds as whole steps of a grid: clipped first, so that nothing overflows, then rounded."""
    if domain.kind in ("date", "timestamp"):
        value = since_1970(value, domain.kind)
    if domain.steps:  # already steps, of a finer or another grid
        return _regridded(value, domain, grid)
    low, high = grid.span
    if domain.step == 1 and grid.step == 1 and not domain.float:
        return clipped_steps(value, grid)
    inside = clipped(value.cast("float64"), real(low * grid.step), real(high * grid.step))
    if grid.step > 1:  # to scale a tiny number down is an error in some engines; it is rounded to 0 anyway
        inside = (inside.abs() < real(grid.step / 4)).ifelse(real(0.0), inside)
    steps = rounded(inside * real(1 / grid.step))
    # The ends are multiples of the step, so it stays within; but far from 0 doubles are coarser than the steps.
    return clipped_steps(steps, grid) if max(-low, high) > EXACT else steps


def _regridded(value: Value, domain: Domain, grid: Domain) -> Value:
    low, high = grid.span
    factor = domain.step / grid.step
    if factor.denominator == 1 and low <= domain.span[0] * factor and domain.span[1] * factor <= high:
        return value if factor == 1 else value * whole(factor.numerator)
    if factor.denominator == 1:
        edge = [-(-low // factor.numerator) - 1, high // factor.numerator + 1]
        inside = clipped(value, *(whole(end) for end in edge)) * whole(factor.numerator)
    else:
        inside = rounded(value.cast("float64") * real(factor))
    return clipped(inside, whole(low), whole(high))


def joinable(value: Value) -> Value:
    """Return what an engine compares without a cast that could fail on a row: numbers of one type."""
    return whole_key(value) if value.type().is_numeric() else value


def whole_key(value: Value) -> Value:
    """Return a whole number in 64 bits; one that does not fit is missing."""
    kind = value.type()
    if kind.is_floating():  # declared as a decimal: infinity, and what is as large, is no whole number of 64 bits
        return rounded(value.between(real(-FARTHEST), real(FARTHEST)).ifelse(value, ibis.null(kind)))
    if kind.is_decimal() or (kind.is_integer() and not kind.is_signed_integer()):
        value = value.between(whole(-(2**63) + 1), whole(2**63 - 1)).ifelse(value, ibis.null(kind))
    return value.cast("int64")
