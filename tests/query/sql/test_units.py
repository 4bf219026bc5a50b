"""Subqueries with a row for each unit: clipped to bounds, which an analyst may only tighten."""

from __future__ import annotations

from datetime import date

import pytest

import sitr
from sitr.errors import NotAllowed
from sitr.query.sql import parsed
from sitr.session.database import Database
from tests.query.sql.clinic import DECLARED, count_within


def test_bounds_of_groups_are_of_units(db: Database) -> None:
    """What one unit adds to a group is clipped, as BigQuery does it: one row for each unit and group, then sums."""
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, max_groups_contributed = 2) region, "
        "DATE_TRUNC('month', day) AS m, SUM(cost, contribution_bounds_per_group => (0, 300)) AS s, "
        "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, "
        "AVG(age, contribution_bounds_per_group => (18, 500)) AS a, COUNT(DISTINCT patient) AS u "
        "FROM visits GROUP BY region, m"
    )
    visits = db.table("visits")
    units = visits.derive(m=visits["day"].truncate("month")).per_unit(
        "region", "m", s=sitr.sum("cost", bounds=(0, 300)), n=count_within(2), a=sitr.mean("age", bounds=(18, 120))
    )
    same = units.group_by("region", m=units["m"].truncate("month")).aggregate(
        s=sitr.sum("s"), n=sitr.sum("n"), a=sitr.mean("a"), u=sitr.count_units()
    )
    same = same.bounded(max_groups_per_unit=2, max_rows_per_group=1)
    assert db.sql(text).query.to_dict() == same.query.to_dict()


def test_where_rows_are_units_bounds_of_groups_are_of_rows(db: Database) -> None:
    found = db.sql("SELECT SUM(score, contribution_bounds_per_group => (2, 5)) AS s FROM answers").query
    assert found.to_dict() == db.table("answers").aggregate(s=sitr.sum("score", bounds=(2, 5))).query.to_dict()


def test_bounds_of_groups_are_answered(db: Database) -> None:
    """Of 400 people in January, 266 in February; each adds at most 150 to a month."""
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 200, max_groups_contributed = 12) "
        "DATE_TRUNC('month', day) AS m, SUM(cost, contribution_bounds_per_group => (0, 150)) AS s "
        "FROM visits GROUP BY m ORDER BY m LIMIT 3"
    )
    answer = db.sql(text).release()
    assert answer.value["m"] == [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)]
    assert answer.value["s"] == pytest.approx([400 * 100, 266 * 150, 133 * 150], rel=1e-2)


def test_a_lower_bound_of_a_count_is_one_of_units(db: Database) -> None:
    found = db.sql("SELECT COUNT(*, contribution_bounds_per_group => (2, 4)) AS n FROM visits").query
    assert (
        found.to_dict() == db.table("visits").per_unit(n=count_within(4, 2)).aggregate(n=sitr.sum("n")).query.to_dict()
    )
    with pytest.raises(NotAllowed, match="two COUNTs"):
        db.sql(
            "SELECT region, COUNT(*, contribution_bounds_per_group => (0, 2)), "
            "COUNT(cost, contribution_bounds_per_group => (0, 3)) FROM visits GROUP BY region"
        )


def test_arithmetic_and_having_over_one_unit(db: Database) -> None:
    text = (
        "WITH p AS (SELECT patient, v.region AS r, SUM(cost) / COUNT(*) AS mean, DATE_TRUNC('year', day) AS y "
        "FROM visits v GROUP BY patient, region, y HAVING MAX(cost) >= 200 AND y = '2026-01-01') "
        "SELECT r, COUNT(*) AS n, AVG(mean) AS m FROM p GROUP BY r"
    )
    answer = db.sql(text).release(epsilon=200.0)
    assert answer.value["r"] == ["north", "south", "east"]
    assert sum(answer.value["n"]) == pytest.approx(266, abs=2)
    assert answer.value["m"][0] == pytest.approx((67 * 150 + 67 * 200) / 134, rel=0.05)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", (0, 5000)),  # five rows of at most 1,000
        (", contribution_bounds_per_group => (0, 300)", (0, 300)),
        (", contribution_bounds_per_group => (-7, 300)", (0, 300)),
        (", contribution_bounds_per_group => (10, 99999)", (10, 5000)),
    ],
)
def test_bounds_are_those_given_where_they_are_tighter_than_the_owners(given: str, kept: tuple[int, int]) -> None:
    text = f"SELECT SUM(s) FROM (SELECT patient, SUM(cost{given}) AS s FROM visits GROUP BY patient)"
    found = parsed(text, DECLARED).query.to_dict()["relation"]["values"]
    assert tuple(map(int, found["s"]["bounds"])) == kept


def test_the_same_aggregate_over_a_unit_is_made_once() -> None:
    text = (
        "SELECT SUM(a) FROM (SELECT patient, SUM(cost) AS a, SUM(cost) AS b, SUM(cost) + COUNT(*) AS c FROM visits "
        "GROUP BY patient HAVING SUM(cost) > 5)"
    )
    relation = parsed(text, DECLARED).query.to_dict()["relation"]
    while relation["is"] != "per_unit":
        relation = relation["source"]
    assert list(relation["values"]) == ["a", "count"]


@pytest.mark.parametrize("asked", ["MEDIAN(cost)", "COUNT(DISTINCT region)", "COUNT(cost)", "VARIANCE(cost)"])
def test_over_one_unit_there_are_sums_counts_and_ends(asked: str) -> None:
    with pytest.raises(NotAllowed, match="over the rows of one unit"):
        parsed(f"SELECT SUM(s) FROM (SELECT patient, {asked} AS s FROM visits GROUP BY patient)", DECLARED)
