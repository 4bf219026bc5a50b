"""Whether an engine counts, cuts and compares dates and times as we take it to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pyarrow

from ..domains import EPOCH
from ..expressions import Column, Expression
from .trial import ZONE, Trial, as_number, as_numbers

DAYS = [
    date(1, 1, 1),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2024, 2, 29),
    date(2023, 1, 1),
    None,
    date(1899, 12, 31),
    date(9999, 12, 31),
]
TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 13, 59, 59, 999999),
    None,
    datetime(1900, 1, 1, 0, 0, 0, 1),
    datetime(2038, 1, 19, 3, 14, 8),
    datetime(2024, 11, 3, 5, 30),
    datetime(2024, 11, 3, 6, 30),
]


def moments_hold(trial: Trial) -> dict[str, bool]:
    """Days and times far before and after 1970, with leap days and changes of the clock."""
    columns = {
        "place": {"type": "integer"},
        "day": {"type": "date", "bounds": [date.min, date.max]},
        "time": {"type": "timestamp", "bounds": [datetime(1800, 1, 1), datetime(2100, 1, 1)]},
        "moment": {"type": "timestamp", "bounds": [datetime(1800, 1, 1), datetime(2100, 1, 1)]},
    }
    moments = [None if one is None else max(one, datetime(1969, 1, 1)).replace(tzinfo=UTC) for one in TIMES]
    frame = pyarrow.table(
        {
            "place": pyarrow.array(range(len(DAYS)), pyarrow.int64()),
            "day": pyarrow.array(DAYS, pyarrow.date32()),
            "time": pyarrow.array(TIMES, pyarrow.timestamp("us")),
            "moment": pyarrow.array(moments, pyarrow.timestamp("us", "UTC")),
        }
    )
    day, time, moment = Column("day"), Column("time"), Column("moment")
    asked: dict[str, Expression] = {"day": day, "time": time, "moment": moment, "hour": time.truncate("hour")}
    asked |= {f"day {unit}": day.truncate(unit) for unit in _BEGINS}
    asked |= {f"time {unit}": time.truncate(unit) for unit in _BEGINS}
    asked |= {f"part {part}": time.part(part) for part in _PARTS}
    asked |= {f"day part {part}": day.part(part) for part in ("year", "quarter", "month", "day", "weekday")}
    asked |= {
        "wall hour": moment.part("hour"),
        "late": as_number(time >= datetime(2000, 1, 1)),
        "leap": as_number(day == date(2024, 2, 29)),
        "no month": as_number(time.truncate("month") == datetime(2024, 2, 29)),
        "no year": as_number(day.truncate("year") != date(2024, 2, 29)),
    }
    got = trial.values(frame, columns, asked)
    wall = [None if one is None else one.astimezone(ZoneInfo(ZONE)).replace(tzinfo=None) for one in moments]
    return {
        "dates and times count from 1970, before it too": got["day"] == [_days(one) for one in DAYS]
        and got["time"] == [_seconds(one) for one in TIMES],
        "truncation, weeks too": all(
            got[f"day {unit}"] == [None if one is None else _days(begin(one)) for one in DAYS]
            and got[f"time {unit}"]
            == [None if one is None else _seconds(_midnight(begin(one.date()))) for one in TIMES]
            for unit, begin in _BEGINS.items()
        )
        and got["hour"]
        == [None if one is None else _seconds(one.replace(minute=0, second=0, microsecond=0)) for one in TIMES],
        "parts of dates and times": all(
            got[f"part {part}"] == [None if one is None else Fraction(of(one)) for one in TIMES]
            for part, of in _PARTS.items()
        )
        and all(
            got[f"day part {part}"] == [None if one is None else Fraction(_PARTS[part](_midnight(one))) for one in DAYS]
            for part in ("year", "quarter", "month", "day", "weekday")
        ),
        "time zones": got["moment"] == [_seconds(one) for one in wall]
        and got["wall hour"] == [None if one is None else Fraction(one.hour) for one in wall],
        "dates and times are compared": got["late"]
        == as_numbers([None if one is None else one.year >= 2000 for one in TIMES])
        and got["leap"] == as_numbers([None if one is None else one == date(2024, 2, 29) for one in DAYS])
        and got["no month"] == as_numbers([None if one is None else False for one in TIMES])
        and got["no year"] == as_numbers([None if one is None else True for one in DAYS]),
    }


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _days(day: date | None) -> Fraction | None:
    return None if day is None else Fraction((day - EPOCH).days)


def _seconds(time: datetime | None) -> Fraction | None:
    return None if time is None else Fraction((time - datetime(1970, 1, 1)) // timedelta(seconds=1))


def _week(day: date) -> date:
    return day - timedelta(days=day.weekday())


_BEGINS: dict[str, Callable[[date], date]] = {
    "year": lambda day: day.replace(month=1, day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda day: day.replace(day=1),
    "week": _week,
}
_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda time: time.year,
    "quarter": lambda time: (time.month - 1) // 3 + 1,
    "month": lambda time: time.month,
    "day": lambda time: time.day,
    "weekday": lambda time: time.weekday(),
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
}
