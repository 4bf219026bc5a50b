"""Queries: limits, public values of keys, and the calendar's buckets."""

from datetime import date, datetime

import pytest

import sitr
from sitr.errors import InvalidArgument, NotAllowed
from sitr.query.query import ONE_EACH, Grouping, Limits, Query
from sitr.tables.expressions import Column
from sitr.tables.relations import Scan
from tests.tables import clinic

DECLARED = clinic.declared()


def known(value, values=None, declared=DECLARED, table="visits"):
    query = Query(Scan(table), (Grouping("key", value, values),), {"n": sitr.count()})
    query.check(declared)
    return query.keys(declared)[0].known


def test_values_that_are_public():
    assert known(Column("region")) == tuple(clinic.REGIONS)
    assert known(Column("urgent")) == (False, True)
    assert known(Column("age")) == tuple(range(121))
    assert known(Column("ward")) is None
    assert known(Column("ward"), ("a", None)) == ("a", None)
    assert known(Column("day").part("month")) == tuple(range(1, 13))
    assert len(known(Column("day").truncate("month"))) == 12
    assert known(Column("day").truncate("quarter"))[-1] == date(2024, 10, 1)
    assert known(Column("day").truncate("week"))[0] == date(2024, 1, 1)
    assert known(Column("at").truncate("month")) is None


def test_the_last_bucket_of_the_calendar():
    table = {"unit": "row", "columns": {"day": {"type": "date", "bounds": [date(9999, 1, 1), date(9999, 12, 31)]}}}
    declared = clinic.declared(tables={"t": table})
    for unit, number in [("year", 1), ("quarter", 4), ("month", 12), ("day", 365)]:
        assert len(known(Column("day").truncate(unit), declared=declared, table="t")) == number


@pytest.mark.parametrize("values", [(), ("a", "a"), ("a", 1), (datetime(2024, 1, 1),)])
def test_values_that_are_no_keys_are_refused(values):
    with pytest.raises(InvalidArgument):
        known(Column("ward"), values)


def test_fractions_are_no_keys():
    for name in ("cost", "paid"):
        with pytest.raises(NotAllowed, match="has fractions"):
            known(Column(name))


def test_too_many_groups_are_refused():
    groupings = tuple(Grouping(f"k{at}", Column("age")) for at in range(4))
    with pytest.raises(NotAllowed, match="more than"):
        Query(Scan("visits"), groupings, {"n": sitr.count()}).check(DECLARED)


def test_limits_are_no_more_than_the_owner_allows():
    assert Limits().bound(5).rows == 5
    assert Limits(max_rows_per_unit=3).bound(5).rows == 3
    assert Limits(max_rows_per_unit=9).bound(5).rows == 5
    bound = Limits(max_groups_per_unit=2).bound(6)
    assert (bound.groups, bound.rows_per_group) == (2, 3)
    for wrong in (
        {"max_rows_per_unit": 0},
        {"max_rows_per_unit": 1, "max_rows_per_group": 1},
        {"max_rows_per_group": 1.5},
    ):
        with pytest.raises(InvalidArgument):
            Limits(**wrong)


def grouped(table, name):
    return table.group_by(name).aggregate(n=sitr.count())


def test_the_unit_is_no_key_under_any_name():
    with clinic.database() as database:
        visits = database.table("visits")
        refused = [
            (visits, "patient"),
            (visits.filter(visits["age"] >= 18), "patient"),
            (visits.derive(who=visits["patient"]), "who"),
            (visits.select("age", who="patient"), "who"),
            (visits.join("wards", on="ward"), "patient"),
            (visits.join("wards", on="ward").join(visits.per_unit(n=sitr.count(bounds=(0, 9)))), "patient"),
            (visits.per_unit("patient", rows=sitr.count(bounds=(0, 9))), "patient"),
        ]
        for table, name in refused:
            with pytest.raises(NotAllowed, match="names the unit") as error:
                grouped(table, name)
            assert error.value.why == ONE_EACH
        with pytest.raises(NotAllowed) as error:
            database.sql("SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient")
        assert error.value.why == ONE_EACH
        allowed = [
            (visits.derive(patient=visits["age"]), "patient"),
            (visits.derive(even=(visits["patient"] >= 50)), "even"),
            (visits.select(patient="age"), "patient"),
            (visits.per_unit("region", rows=sitr.count(bounds=(0, 9))), "rows"),
            (visits.per_unit("region", rows=sitr.count(bounds=(0, 9))), "region"),
            (visits.join("wards", on="ward"), "beds"),
            (database.table("labs"), "ward"),  # each row is a unit
        ]
        for table, name in allowed:
            grouped(table, name)
