"""Whether an engine reads, clips and rounds numbers, and computes with them, as we take it to."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow

from ..expressions import Column
from .trial import Trial, as_number, as_numbers

FLOATS = [math.nan, None, math.inf, -math.inf, 0.1, 2.0**-13, -(2.0**-13), 1e308, 5e-324, -0.0]
WIDE = [0.0, None, 1e300, -1e300, 2.0, 1.9999999, 6.0, 4e6, 5e-324, -5e-324]
LONGS = [2**63 - 1, -(2**63), None, 0, 1, -1, 5, -7, 3, 2]
UNSIGNED = [2**64 - 1, 0, None, 2**63, 1, 2, 3, 4, 5, 6]
BYTES = [-128, 127, None, 0, 1, -1, 5, -7, 3, 2]
MONEY = [
    Decimal(text) if text else None
    for text in ("99999999.99", "-99999999.99", "", "0.10", "0.01", "-0.01", "1", "0", "12.34", "5")
]
YES = [True, False, None, True, False, None, True, True, False, False]


def numbers_hold(trial: Trial) -> dict[str, bool]:
    """Numbers at the ends of their types, and what is no number."""
    small, count = 12, len(LONGS)
    columns = {
        "place": {"type": "integer"},
        "real": {"type": "float", "bounds": [-100, 100]},
        "wide": {"type": "float", "bounds": [0, 2**22]},
        "long": {"type": "int64", "bounds": [-small, small]},
        "unsigned": {"type": "uint64", "bounds": [0, 5]},
        "byte": {"type": "int8"},
        "money": {"type": "decimal(10, 2)", "bounds": [-1000, 1000]},
        "yes": {"type": "boolean"},
    }
    frame = pyarrow.table(
        {
            "place": pyarrow.array(range(count), pyarrow.int64()),
            "real": pyarrow.array(FLOATS, pyarrow.float64()),
            "wide": pyarrow.array(WIDE, pyarrow.float64()),
            "long": pyarrow.array(LONGS, pyarrow.int64()),
            "unsigned": pyarrow.array(UNSIGNED, pyarrow.uint64()),
            "byte": pyarrow.array(BYTES, pyarrow.int8()),
            "money": pyarrow.array(MONEY, pyarrow.decimal128(10, 2)),
            "yes": pyarrow.array(YES, pyarrow.bool_()),
        }
    )
    real, wide, long, byte = Column("real"), Column("wide"), Column("long"), Column("byte")
    money, yes, unsigned = Column("money"), Column("yes"), Column("unsigned")
    got = trial.values(
        frame,
        columns,
        {
            "real": real,
            "wide": wide,
            "nan": as_number(real.is_null()),
            "tenth": as_number(real == 0.1),
            "long": long,
            "extremes": as_number(long > 2**62),
            "unsigned": unsigned,
            "byte": byte,
            "product": byte * byte + long,
            "quotient": byte / long,
            "money": money,
            "dime": as_number(money == Decimal("0.1")),
            "yes": as_number(yes),
            "both": as_number(yes & (byte > 0)),
            "either": as_number(yes | (byte > 0)),
            "filled": byte.fill_null(-3),
            "listed": as_number(byte.isin([-7, 5, 127])),
        },
    )
    clip = [None if one is None else min(max(one, -small), small) for one in LONGS]
    quotient = Fraction(2) ** math.ceil(math.log2(Fraction(128, 2**40)))
    return {
        "NaN is missing": got["nan"] == as_numbers([one is None or math.isnan(one) for one in FLOATS]),
        "floats are clipped and rounded exactly": got["real"]
        == [rounded(one, -100, 100, Fraction(1, 2**12)) for one in FLOATS]
        and got["wide"] == [rounded(one, 0, 2**22, Fraction(4)) for one in WIDE]
        and got["tenth"] == as_numbers([None if one is None or math.isnan(one) else one == 0.1 for one in FLOATS]),
        "whole numbers reach from -2^63 to 2^64": got["long"] == clip
        and got["extremes"] == as_numbers([None if one is None else one > 2**62 for one in LONGS])
        and got["unsigned"] == [None if one is None else min(one, 5) for one in UNSIGNED]
        and got["byte"] == BYTES,
        "arithmetic is exact, and division by zero is missing": got["product"]
        == [None if one is None or two is None else one * one + two for one, two in zip(BYTES, clip, strict=True)]
        and got["quotient"] == [_quotient(one, two, quotient) for one, two in zip(BYTES, clip, strict=True)],
        "decimals are exact": got["money"]
        == [None if one is None else Fraction(min(max(one, Decimal(-1000)), Decimal(1000))) for one in MONEY]
        and got["dime"] == as_numbers([None if one is None else one == Decimal("0.1") for one in MONEY]),
        "logic has three values": got["yes"] == as_numbers(YES)
        and got["both"] == as_numbers([_and(one, two) for one, two in zip(YES, BYTES, strict=True)])
        and got["either"] == as_numbers([_or(one, two) for one, two in zip(YES, BYTES, strict=True)])
        and got["filled"] == [-3 if one is None else one for one in BYTES]
        and got["listed"] == as_numbers([None if one is None else one in (-7, 5, 127) for one in BYTES]),
    }


def _quotient(one: int | None, two: int | None, step: Fraction) -> Fraction | None:
    if one is None or two is None or two == 0:
        return None
    return math.floor(one * float(1 / step) / float(two) + 0.5) * step


def _and(one: bool | None, two: int | None) -> bool | None:
    sides = (one, None if two is None else two > 0)
    return False if False in sides else None if None in sides else True


def _or(one: bool | None, two: int | None) -> bool | None:
    sides = (one, None if two is None else two > 0)
    return True if True in sides else None if None in sides else False


def rounded(value: Any, low: int, high: int, step: Fraction) -> Fraction | None:
    """A number on a grid, by exact arithmetic."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    inside = min(max(value, low), high)
    return math.floor(Fraction(inside) / step + Fraction(1, 2)) * step
