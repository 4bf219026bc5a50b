"""Years, months, weeks, days and hours between public ends: all of them, each once, and no more than are listed."""

from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.tables.calendar import MOST, SHORTEST, buckets
from sitr.tables.domains import EPOCH, Domain
from sitr.tables.reference import begin_of

UNITS = [unit for unit in SHORTEST if unit != "hour"]


def days(first, last):
    """A column of dates between two."""
    return Domain("date", Fraction(1), (first - EPOCH).days, (last - EPOCH).days)


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 900), st.sampled_from(UNITS))
def test_every_day_between_the_ends_lies_in_one_of_them(first, length, unit):
    last = first + timedelta(days=length)
    found = buckets(unit, days(first, last))
    every = [begin_of(first + timedelta(days=more), unit) for more in range(length + 1)]
    assert list(found) == sorted(set(every))


@given(st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)), st.integers(0, 10**6), st.sampled_from([*SHORTEST]))
def test_every_time_between_the_ends_lies_in_one_of_them(first, seconds, unit):
    first = first.replace(microsecond=0)
    low = (first - datetime(1970, 1, 1)) // timedelta(seconds=1)
    found = buckets(unit, Domain("timestamp", Fraction(1), low, low + seconds))
    assert found[0] == begin_of(first, unit)
    assert found[-1] == begin_of(first + timedelta(seconds=seconds), unit)
    assert all(begin_of(one, unit) == one for one in found)
    assert list(found) == sorted(set(found))


def test_one_day_is_one_of_each():
    leap = date(2024, 2, 29)
    assert {unit: buckets(unit, days(leap, leap)) for unit in UNITS} == {
        "day": (leap,),
        "week": (date(2024, 2, 26),),
        "month": (date(2024, 2, 1),),
        "quarter": (date(2024, 1, 1),),
        "year": (date(2024, 1, 1),),
    }


def test_too_many_are_not_listed():
    whole = days(date(1, 1, 1), date(9999, 12, 31))
    assert buckets("day", whole) is None
    assert buckets("month", whole) is None
    assert len(buckets("quarter", whole)) == 4 * 9999
    assert len(buckets("year", whole)) == 9999  # the last one has no next
    assert len(buckets("day", days(EPOCH, EPOCH + timedelta(days=MOST)))) == MOST + 1
    assert buckets("day", days(EPOCH, EPOCH + timedelta(days=MOST + 1))) is None


@pytest.mark.parametrize("unit", UNITS)
def test_none_is_shorter_than_is_reckoned_with(unit):
    found = buckets(unit, days(date(2000, 1, 1), date(2004, 12, 31)))
    assert min((after - before).days for before, after in pairwise(found)) >= SHORTEST[unit]
