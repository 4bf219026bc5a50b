"""FROM, JOIN and subqueries: each row keeps its unit, and no name reaches another column than its own."""

from __future__ import annotations

import pytest

import sitr
from sitr.errors import SitrError
from sitr.query.sql import parsed
from sitr.session.database import Database
from sitr.tables.expressions import Column
from sitr.tables.relations import Derive, Filter, Scan, Select, rows_per_unit
from sitr.tables.tally import Bound
from tests.query.sql.clinic import DECLARED


def test_selected_columns(db: Database) -> None:
    visits = db.table("visits").select("cost", home="region")
    assert visits.columns == ("cost", "home")
    assert visits.group_by("home").aggregate(n=sitr.count()).release(epsilon=200.0).value["n"] == [400, 399, 0]
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


def test_an_alias_or_a_cte_has_the_budget_of_its_table(db: Database) -> None:
    for text in (
        "SELECT COUNT(*) FROM visits AS other",
        "WITH other AS (SELECT * FROM visits) SELECT COUNT(*) FROM other AS another",
        "WITH areas AS (SELECT * FROM visits) SELECT COUNT(*) FROM areas",
    ):
        assert db.sql(text).query.datasets(DECLARED) == ("clinic",)
