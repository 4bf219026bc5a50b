"""FROM, JOIN and subqueries: each row keeps its unit, and no name reaches another column than its own."""

from __future__ import annotations

from typing import Any

import pytest

from sitr.errors import NotAllowed, SitrError
from sitr.query.sql import parsed
from sitr.session.database import Database
from sitr.tables.expressions import Column
from sitr.tables.relations import Derive, Filter, Scan, Select, rows_per_unit
from sitr.tables.tally import Bound
from tests.query.sql.clinic import DECLARED, opened


@pytest.fixture(scope="module")
def db() -> Any:
    with opened() as database:
        yield database


def test_a_column_that_is_called_like_the_unit_is_not_the_unit() -> None:
    """Flags follow columns, not names: no alias makes a unit of another column, or hides it."""
    fake = "(SELECT age AS patient, cost FROM visits)"
    assert (
        parsed(f"SELECT COUNT(DISTINCT patient) AS n FROM {fake}", DECLARED).query.aggregates["n"].kind
        == "count_distinct"
    )
    for text in (
        f"SELECT COUNT(*) FROM {fake} a JOIN patients p ON a.patient = p.id",
        f"SELECT SUM(s) FROM (SELECT patient, SUM(cost) AS s FROM {fake} GROUP BY patient)",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = patient) COUNT(*) FROM {fake}",
    ):
        with pytest.raises(SitrError):
            parsed(text, DECLARED)
    renamed = "(SELECT patient AS who, cost FROM visits)"
    assert (
        parsed(f"SELECT COUNT(DISTINCT who) AS n FROM {renamed}", DECLARED).query.aggregates["n"].kind == "count_units"
    )
    parsed(f"SELECT COUNT(*) FROM {renamed} a JOIN patients p ON a.who = p.id", DECLARED)


def test_a_table_joined_with_itself_keeps_both_columns(db: Database) -> None:
    text = (
        "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient = b.patient WHERE a.cost = 100 AND b.cost = 200"
    )
    assert db.sql(text).release(epsilon=200.0).value == {"n": [266]}


def test_a_join_is_bounded_after_it_multiplied_rows(db: Database) -> None:
    """A unit with three visits has nine pairs, of which five are kept at most."""
    question = db.sql("SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient = b.patient")
    assert question.explain(epsilon=1.0).plan.bound.l1 <= 5
    found = question.bounded(max_rows_per_unit=5).release(epsilon=200.0).value["n"][0]
    assert found == 134 + 133 * 4 + 133 * 5


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_the_right_column_of_a_left_join_is_missing_where_nothing_met(db: Database, join: str) -> None:
    met = "SUM(CASE WHEN a.region IS NULL THEN 0 ELSE 1 END)"
    text = f"SELECT {met} AS there, COUNT(*) AS n FROM visits v {join} areas a ON v.region = a.region"
    found = db.sql(text).release(epsilon=200.0).value
    assert found["there"] == [pytest.approx(400, abs=2)]
    assert found["n"] == [pytest.approx(400 if join == "JOIN" else 799, abs=2)]


def test_columns_of_one_name_have_to_be_told_apart() -> None:
    text = "SELECT {} , COUNT(*) FROM visits v JOIN patients p ON v.patient = p.id GROUP BY 1"
    with pytest.raises(NotAllowed, match="2 tables"):
        parsed(text.format("region"), DECLARED)
    assert parsed(text.format("p.region"), DECLARED).query.groupings[0].value.columns() == {"p_region"}
    assert parsed(text.format("v.region"), DECLARED).query.groupings[0].value.columns() == {"region"}


def test_derived_columns_stay_apart_in_the_engine(db: Database) -> None:
    """One that covers a column does not make room for the next one to cover it."""
    visits = db.table("visits")
    first = visits.derive(age=visits["age"] + 1)
    second = first.derive(half=first["cost"] / 2)
    found = second.filter((second["age"] == 21) & (second["half"] == 50)).aggregate(n=_count())
    assert found.release(epsilon=200.0).value == {"n": [8]}


def _count() -> Any:
    import sitr

    return sitr.count()


def test_selected_columns(db: Database) -> None:
    visits = db.table("visits").select("cost", home="region")
    assert visits.columns == ("cost", "home")
    assert visits.group_by("home").aggregate(n=_count()).release(epsilon=200.0).value["n"] == [400, 399, 0]
    with pytest.raises(SitrError):
        db.table("visits").select("cost", cost="age")
    with pytest.raises(SitrError):
        db.table("visits").select("kost")


def test_filters_and_new_columns_give_a_unit_no_more_rows() -> None:
    units = parsed("SELECT SUM(s) FROM (SELECT patient, SUM(cost) AS s FROM visits GROUP BY patient)", DECLARED).query
    assert rows_per_unit(units.relation, DECLARED) == 1
    text = "SELECT SUM(s) FROM (SELECT patient, SUM(cost) AS s FROM visits GROUP BY patient) WHERE s > 5"
    assert rows_per_unit(parsed(text, DECLARED).query.relation, DECLARED) == 1
    scan = Scan("visits")
    for one in (Filter(scan, Column("age") > 18), Derive(scan, ()), Select(scan, ())):
        assert rows_per_unit(one, DECLARED) == 5
    assert Bound(rows=5).l1 == 5
