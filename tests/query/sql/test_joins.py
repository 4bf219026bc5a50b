"""JOIN: rows of one unit, or of a public table, and every column under a name of its own."""

from __future__ import annotations

import pytest

from sitr.errors import NotAllowed
from sitr.query.sql import parsed
from sitr.session.database import Database
from tests.query.sql.clinic import DECLARED


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


def relation(text: str) -> dict:
    return parsed(f"SELECT COUNT(*) FROM {text}", DECLARED).query.to_dict()["relation"]


@pytest.mark.parametrize(
    "text",
    [
        "visits v JOIN patients p ON p.id = v.patient",
        "visits v JOIN patients p ON (v.patient = p.id)",
        "visits v INNER JOIN patients p ON v.patient = p.id AND p.id = v.patient",
    ],
)
def test_the_sides_of_an_equality_may_stand_in_any_order(text: str) -> None:
    assert relation(text) == relation("visits v JOIN patients p ON v.patient = p.id")


def test_a_public_table_stands_on_the_right_wherever_it_was_written() -> None:
    assert relation("areas JOIN visits USING (region)") == relation("visits JOIN areas USING (region)")


def test_two_private_tables_meet_by_a_declared_key_as_well() -> None:
    """Labs find their unit in stays by that key, and by no other column."""
    relation("labs JOIN stays ON labs.stay_id = stays.stay")
    with pytest.raises(NotAllowed, match="without their unit"):
        relation("labs JOIN stays ON labs.stay_id = stays.patient")
