"""Subqueries of rows: new columns cover none that can still be named."""

from __future__ import annotations

import pytest

import sitr
from sitr.errors import NotAllowed
from sitr.query.sql import parsed
from sitr.session.database import Database
from tests.query.sql.clinic import DECLARED


def test_derived_columns_stay_apart_in_the_engine(db: Database) -> None:
    """One that covers a column does not make room for the next one to cover it."""
    visits = db.table("visits")
    first = visits.derive(age=visits["age"] + 1)
    second = first.derive(half=first["cost"] / 2)
    found = second.filter((second["age"] == 21) & (second["half"] == 50)).aggregate(n=sitr.count())
    assert found.release(epsilon=200.0).value == {"n": [8]}


def test_a_computed_column_makes_room_for_the_one_it_is_called_after(db: Database) -> None:
    """Both are there: the new one by its name, and the old one by that which the subquery gave it."""
    text = (
        "SELECT COUNT(*) AS n FROM (SELECT age AS years, age + 100 AS age FROM visits) WHERE years = 20 AND age = 120"
    )
    assert db.sql(text).release(epsilon=200.0).value == {"n": [16]}


def test_all_columns_are_those_of_all_tables_each_once() -> None:
    text = "SELECT COUNT(*) FROM (SELECT {} FROM visits JOIN areas USING (region)) WHERE zone = 'inner' AND cost > 1"
    assert (
        parsed(text.format("*"), DECLARED).query.to_dict()
        == parsed(text.format("visits.*, zone"), DECLARED).query.to_dict()
    )
    with pytest.raises(NotAllowed, match="two columns of the subquery"):
        parsed(text.format("*, zone"), DECLARED)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("cost, age AS cost", "two columns of the subquery are called 'cost'"),
        ("cost * 2", "has no name"),
        ("nothing.*", "there is no table of FROM"),
    ],
)
def test_each_column_has_a_name_of_its_own(columns: str, said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        parsed(f"SELECT COUNT(*) FROM (SELECT {columns} FROM visits)", DECLARED)
