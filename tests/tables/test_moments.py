"""Texts beside dates and times: read as SQL reads them, wherever in an expression they stand, and nowhere else."""

from dataclasses import replace
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.domains import Domain
from sitr.tables.expressions import Column, Comparison, Constant, expression
from sitr.tables.moments import date_of, dated, time_of

SCHEMA = {"day": Domain("date"), "at": Domain("timestamp"), "name": Domain("string"), "flag": Domain("boolean")}
day, at, name, flag = map(Column, SCHEMA)


@given(st.dates())
def test_a_date_is_read_as_it_is_written(one):
    assert date_of(one.isoformat()) == one
    assert time_of(one.isoformat()) == datetime(one.year, one.month, one.day)


@given(st.datetimes(), st.sampled_from("T "))
def test_a_time_is_read_as_it_is_written(one, between):
    assert time_of(one.isoformat(sep=between)) == one


@given(st.text(max_size=12))
def test_any_text_is_a_date_or_none(text):
    assert date_of(text) is None or len(text) == 10
    assert time_of(text) is None or isinstance(time_of(text), datetime)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (day >= "2025-07-01", day >= date(2025, 7, 1)),
        (day < "2025-07-01", day < date(2025, 7, 1)),
        (Comparison("<", Constant("2025-07-01"), day), Comparison("<", Constant(date(2025, 7, 1)), day)),
        (at < "2025-07-01 08:30", at < datetime(2025, 7, 1, 8, 30)),
        (at < "2025-07-01", at < datetime(2025, 7, 1)),
        (day.between("2025-07-01", "2025-07-31"), day.between(date(2025, 7, 1), date(2025, 7, 31))),
        (day.isin(["2025-07-01", date(2025, 7, 2)]), day.isin([date(2025, 7, 1), date(2025, 7, 2)])),
        (day.fill_null("2025-07-01"), day.fill_null(date(2025, 7, 1))),
        (flag.choose("2025-07-01", day), flag.choose(date(2025, 7, 1), day)),
        (
            flag.choose("2025-01-01", flag.choose(day, "2025-02-01")),
            flag.choose(date(2025, 1, 1), flag.choose(day, date(2025, 2, 1))),
        ),
        (~(day.truncate("month") == "2025-07-01"), ~(day.truncate("month") == date(2025, 7, 1))),
        ((day >= "2025-07-01").choose(1, 0) + 1, (day >= date(2025, 7, 1)).choose(1, 0) + 1),
        ((name == "2025-07-01") | (day == "2025-07-01"), (name == "2025-07-01") | (day == date(2025, 7, 1))),
    ],
    ids=str,
)
def test_a_text_beside_a_date_is_the_date(written, meant):
    found = dated(written, SCHEMA)
    assert found.to_dict() == meant.to_dict()
    assert found.domain(SCHEMA) == meant.domain(SCHEMA)


@pytest.mark.parametrize(
    "made",
    [
        day,
        name == "2025-07-01",
        name.isin(["2025-07-01"]),
        flag.choose("2025-07-01", "2025-07-02"),
        day == date(2025, 7, 1),
        day.isin([date(2025, 7, 1)]),
        day < at,
        expression("2025-07-01"),
    ],
    ids=str,
)
def test_what_has_no_text_beside_a_date_stays_the_same(made):
    assert dated(made, SCHEMA) is made


def test_what_is_used_twice_is_read_once():
    late = day >= "2025-07-01"
    found = dated(late | ~late, SCHEMA)
    assert found.left is found.right.value


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (day >= "June", "'June' is not a date."),
        (day >= "2025-06-01 12:00", "'2025-06-01 12:00' is not a date."),
        (day.isin(["2025-06-01", "2025-06-31"]), "'2025-06-31' is not a date."),
        (at >= "noon", "'noon' is not a time without a time zone."),
        (at >= "2025-06-01 12:00+03:00", "is not a time without a time zone."),
    ],
    ids=str,
)
def test_a_text_that_is_no_date_is_refused(written, said):
    with pytest.raises(InvalidArgument) as refused:
        dated(written, SCHEMA)
    assert said in refused.value.what
    assert refused.value.do.startswith('write "2025-06-01')
    dated(replace(day >= "x", right=Constant(date(2025, 6, 1))), SCHEMA)


def test_what_is_not_known_is_refused_as_elsewhere():
    with pytest.raises(InvalidArgument, match="there is no column 'week'"):
        dated(Column("week") >= "2025-07-01", SCHEMA)
