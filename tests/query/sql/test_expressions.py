"""Expressions of SQL: constants in their own form, and nesting that has an end."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import NotAllowed
from sitr.query.sql import parsed
from tests.query.sql.clinic import DECLARED


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ('region = "north"', "A text stands in single quotes."),
        ('day >= "2026-01-01"', "A text stands in single quotes."),
        ("day >= '2026-1-1'", "DATE '2026-01-31'."),
        ("day >= DATE('2026-01-01')", "DATE '2026-01-31'."),
        ("seen >= TIMESTAMP('2026-01-01')", "TIMESTAMP '2026-01-31 12:00:00'."),
    ],
)
def test_a_constant_is_written_in_its_own_form(condition: str, said: str) -> None:
    with pytest.raises(NotAllowed) as refused:
        parsed(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", DECLARED)
    assert said in refused.value.do


def test_nested_functions_do_not_double() -> None:
    """ABS and CASE repeat what is in them, so their nesting is bounded."""
    parsed(f"SELECT SUM({'ABS(' * 3}age - 40{')' * 3}) FROM visits", DECLARED)
    with pytest.raises(NotAllowed):
        parsed(f"SELECT SUM({'ABS(' * 20}age - 40{')' * 20}) FROM visits", DECLARED)
    whens = " ".join(f"WHEN age = {age} THEN {age}" for age in range(60))
    parsed(f"SELECT SUM(CASE {whens} ELSE 0 END) FROM visits", DECLARED)


def test_a_list_may_be_long() -> None:
    names = ", ".join(f"'name {place}'" for place in range(5000))
    found = parsed(f"SELECT COUNT(*) FROM visits WHERE drug IN ({names})", DECLARED)
    assert len(found.query.to_dict()["relation"]["condition"]["values"]) == 5000


def condition(text: str) -> Any:
    """A condition as the plan has it."""
    return parsed(f"SELECT COUNT(*) FROM visits WHERE {text}", DECLARED).query.to_dict()["relation"]["condition"]


def constant(text: str) -> Any:
    return condition(text)["right"]["value"]


@given(st.dates(date(1, 1, 1)), st.datetimes(datetime(1, 1, 1)))
def test_dates_and_times_are_what_was_written_with_or_without_their_word(day: date, moment: datetime) -> None:
    """A text beside a date is read as one; that beside a text stays a text."""
    assert constant(f"day = '{day.isoformat()}'") == constant(f"day = DATE '{day.isoformat()}'")
    assert constant(f"seen = '{moment.isoformat(sep=' ')}'") == constant(
        f"seen = TIMESTAMP '{moment.isoformat(sep=' ')}'"
    )
    assert constant(f"drug = '{day.isoformat()}'") == day.isoformat()


@given(st.integers(-(10**9), 10**9))
def test_a_sign_is_part_of_its_number(number: int) -> None:
    assert constant(f"age = {number}") == number
    assert constant(f"age = - - {abs(number)}") == abs(number)
    assert condition(f"{number} = age")["left"] == condition(f"age = {number}")["right"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age BETWEEN 1 AND 5", "age >= 1 AND age <= 5"),
        ("NOT age = 1", "NOT (age = 1)"),
        ("age <> 1", "age != 1"),
        ("IF(urgent, 1, 0) = 1", "IIF(urgent, 1, 0) = 1"),
        ("COALESCE(cost, 0) > 1", "IFNULL(cost, 0) > 1"),
        ("EXTRACT(year FROM day) = 2026", "YEAR(day) = 2026"),
        ("CASE region WHEN 'north' THEN 1 ELSE 0 END = 1", "CASE WHEN region = 'north' THEN 1 ELSE 0 END = 1"),
    ],
)
def test_two_ways_to_write_one_thing(one: str, other: str) -> None:
    assert condition(one) == condition(other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seen >= '2026-01-01T00:00:00+03:00'", "no time"),
        ("day = '2026-02-30'", "no date"),
        ("age IN (cost)", "list of constants"),
        ("urgent IS TRUE", "IS stands before NULL"),
        ("EXTRACT(epoch FROM day) = 1", "of a date is not known"),
        ("DATE_TRUNC('fortnight', day) = '2026-01-01'", "DATE_TRUNC to"),
        ("ABS(age, 1) = 1", "another number of arguments"),
        ("IF(urgent, 1) = 1", "third argument"),
    ],
)
def test_what_is_not_on_the_list_is_refused(text: str, said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        condition(text)
