"""Remarks: a category that nobody declared is pointed out, wherever it is compared."""

import copy

import sitr
from sitr.query.remarks import unlisted
from tests.tables import clinic


def remarks(database, table):
    return unlisted(table.aggregate(n=sitr.count()).query, database.declared)


def test_a_category_that_is_not_declared():
    said = "'nroth' is no declared category of region. Did you mean 'north'?"
    with clinic.database() as database:
        visits = database.table("visits")
        wrong = visits["region"] == "nroth"
        for table in (
            visits.filter(wrong),
            visits.filter(~(wrong & (visits["age"] >= 18))),
            visits.filter(visits["region"].isin(["north", "nroth"])),
            visits.derive(there=wrong.choose(1, 0)),
            visits.filter(wrong).join("wards", on="ward"),
            visits.filter(wrong).derive(again=wrong),
        ):
            assert remarks(database, table) == (said,)
        for query in (
            visits.group_by(there=wrong).aggregate(n=sitr.count()).query,
            visits.aggregate(n=sitr.sum(wrong.choose(1, 0))).query,
            visits.per_unit(k=sitr.max(wrong.choose(1, 0))).aggregate(n=sitr.count()).query,
        ):
            assert unlisted(query, database.declared) == (said,)
        moved = visits.select("age", home="region")
        assert remarks(database, moved.filter(moved["home"] != "x")) == ("'x' is no declared category of home.",)


def test_a_category_that_is_counted_among_all_others():
    content = copy.deepcopy(clinic.CONTENT)
    content["tables"]["visits"]["columns"]["region"]["others"] = "group"
    with clinic.database(content) as database:
        visits = database.table("visits")
        assert remarks(database, visits.filter(visits["region"] == "nroth")) == (
            "'nroth' is no declared category of region. All that are none are '(other)'. Did you mean 'north'?",
        )
        assert remarks(database, visits.filter(visits["region"] == "(other)")) == ()


def test_what_is_declared_or_has_no_categories_is_not_remarked_on():
    with clinic.database() as database:
        visits = database.table("visits")
        assert remarks(database, visits.filter((visits["region"] == "north") & (visits["ward"] == "z"))) == ()
        assert remarks(database, visits.filter(visits["region"].isin(["north", "south"]))) == ()
