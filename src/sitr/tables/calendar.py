"""The years, months, weeks, days and hours between two public ends."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from .domains import EPOCH, Domain

MOST = 10**5  # that are listed
SHORTEST = {"hour": 1 / 24, "day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}  # days


@lru_cache(maxsize=64)
def buckets(unit: str, domain: Domain) -> tuple[date, ...] | None:
    """Return the begins of all years, months or days that meet the bounds of a domain; None where they are too many.

    Example:
        >>> from fractions import Fraction
        >>> [str(day) for day in buckets("month", Domain("date", Fraction(1), 0, 31))]
        ['1970-01-01', '1970-02-01']
    """
    length = timedelta(days=1) if domain.kind == "date" else timedelta(seconds=1)
    epoch = datetime(EPOCH.year, EPOCH.month, EPOCH.day)
    first, last = (epoch + float(end) * length for end in domain.ends)
    if (last - first).days > MOST * SHORTEST[unit]:
        return None
    found: list[date] = []
    begin = _begin(unit, first)
    while begin <= last:
        found.append(begin.date() if domain.kind == "date" else begin)
        try:
            begin = _next(unit, begin)
        except OverflowError:  # the year 9999 is Python's last
            break
    return tuple(found)


def _begin(unit: str, moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    months = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}
    return day.replace(day=1, month=months[unit]) if unit in months else day


def _next(unit: str, begin: datetime) -> datetime:
    if unit in ("hour", "day", "week"):
        return begin + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[unit]
    return _begin(unit, begin + timedelta(days={"year": 370, "quarter": 95, "month": 35}[unit]))
