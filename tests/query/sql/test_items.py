"""The parts of SELECT and GROUP BY: a position, an alias, or itself; and what each is called."""

from __future__ import annotations

import pytest

from sitr.errors import NotAllowed
from sitr.query.sql import parsed
from tests.query.sql.clinic import DECLARED


def keys(text: str) -> list[tuple[str, set[str]]]:
    """What a query is grouped by: the names of its keys, and the columns that each is made of."""
    return [(one.name, set(one.value.columns())) for one in parsed(text, DECLARED).query.groupings]


@pytest.mark.parametrize("group", ["1", "m", "M", '"m"', "(m)", "DATE_TRUNC('month', day)"])
def test_a_key_may_be_named_by_its_place_its_alias_or_itself(group: str) -> None:
    text = f"SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY {group}"
    assert keys(text) == [("m", {"day"})]


@pytest.mark.parametrize(
    ("select", "name"),
    [
        ("region", "region"),
        ("region AS r", "r"),
        ("(region) AS r", "r"),
        ("EXTRACT(year FROM day)", "year"),
        ("MONTH(day)", "month"),
        ("CASE WHEN urgent THEN 'a' ELSE 'b' END", "key"),
    ],
)
def test_a_key_without_an_alias_is_called_by_what_it_is(select: str, name: str) -> None:
    ((found, _),) = keys(f"SELECT {select}, COUNT(*) AS n FROM visits GROUP BY 1")
    assert found == name


def test_an_alias_in_quotes_is_another_name_in_other_letters() -> None:
    with pytest.raises(NotAllowed, match="there is no column 'M'"):
        keys('SELECT MONTH(day) AS m, COUNT(*) FROM visits GROUP BY "M"')


def test_an_alias_of_the_column_itself_is_no_second_thing() -> None:
    assert keys("SELECT region AS region, COUNT(*) AS n FROM visits GROUP BY region") == [("region", {"region"})]
    with pytest.raises(NotAllowed, match="an alias of something else"):
        keys("SELECT drug AS region, COUNT(*) AS n FROM visits GROUP BY region")


@pytest.mark.parametrize("place", ["0", "3", "99999999", "1.5", "'1'", "-1"])
def test_a_place_that_select_does_not_have(place: str) -> None:
    with pytest.raises(NotAllowed):
        keys(f"SELECT region, COUNT(*) FROM visits GROUP BY {place}")


def test_an_aggregate_is_no_key_by_its_alias() -> None:
    with pytest.raises(NotAllowed):
        keys("SELECT COUNT(*) AS n FROM visits GROUP BY n")
