"""Groups that the question itself names, or that a public table lists: none is lost, and none costs a δ."""

import pyarrow
import pytest

import sitr
from sitr.errors import NotAllowed
from sitr.query import listed
from tests.query.databases import asked, column, exact, people, plan_of
from tests.tables.conftest import PARAMS

PLACES = {
    "public": True,
    "key": "place",
    "columns": {"place": column("integer"), "region": column("string"), "inhabitants": column("integer")},
}
ROWS = {"place": [1, 2, 3, 4], "region": ["north", "south", "north", None], "inhabitants": [10, 20, 30, None]}


@pytest.fixture(params=PARAMS)
def engine(request):
    return request.param


def clinic(engine, places=ROWS, **declared):
    """People in places 1, 1 and 2, and one in a place that is nowhere; no δ, so no group can be found privately."""
    content = people(place=column("integer"), age=column("integer", bounds=[0, 120]))
    content |= {"privacy": {}}
    content["tables"]["places"] = {**PLACES, **declared}
    kinds = {"place": pyarrow.int64(), "region": pyarrow.string(), "inhabitants": pyarrow.int64()}
    tables = {
        "visits": pyarrow.table({"person": [1, 2, 3, 4], "place": [1, 1, 2, 9], "age": [5, 40, None, 70]}),
        "places": pyarrow.table({name: pyarrow.array(cells, kinds[name]) for name, cells in places.items()}),
    }
    return asked(engine, tables, content)


def counted(table, *names, **keys):
    return table.group_by(*names, **keys).aggregate(n=sitr.count())


def test_the_branches_of_a_case_are_the_groups(engine):
    visits = clinic(engine).table("visits")
    band = (visits["age"] < 18).choose("child", (visits["age"] < 65).choose("adult", "senior"))
    question = counted(visits, band=band)
    assert not plan_of(question).spends_delta
    assert exact(question).value == {"band": ["child", "adult", "senior"], "n": [1, 1, 2]}  # no age is not under 18
    nobody = counted(visits.filter(visits["age"] > 110), band=band)
    assert exact(nobody).value["n"] == [0, 0, 0]


def test_a_condition_that_may_be_missing_has_a_group_of_what_is_missing(engine):
    visits = clinic(engine).table("visits")
    assert exact(counted(visits, old=visits["age"] >= 18)).value == {"old": [False, True, None], "n": [1, 2, 1]}
    assert exact(counted(visits, known=~visits["age"].is_null())).value == {"known": [False, True], "n": [1, 3]}
    derived = visits.derive(old=(visits["age"] >= 18).fill_null(False))
    assert exact(counted(derived, "old")).value == {"old": [False, True], "n": [2, 2]}


def test_numbers_that_a_case_names_are_listed_and_none_between(engine):
    visits = clinic(engine).table("visits")
    share = (visits["age"] < 18).choose(0, (visits["age"] < 65).choose(50_000, -3))
    assert exact(counted(visits, share=share)).value == {"share": [-3, 0, 50_000], "n": [2, 1, 1]}


def test_a_public_table_lists_its_groups_as_its_rows_have_them(engine):
    database = clinic(engine)
    joined = database.table("visits").join("places", "place")
    question = counted(joined, "region", "inhabitants")
    assert exact(question).value == {
        "region": ["north", "north", "south", None],
        "inhabitants": [10, 30, 20, None],
        "n": [2, 0, 1, 0],
    }
    assert "Of private tables no row has been read" in str(question.explain(epsilon=1.0))
    assert "Nothing has been read" in str(counted(joined, old=joined["age"] < 18).explain(epsilon=1.0))
    answer = question.release(epsilon=50.0)
    assert answer.value["region"] == ["north", "north", "south", None]


def test_what_matches_nothing_is_a_group_where_it_stays(engine):
    kept = clinic(engine).table("visits").join("places", "place", keep=True)
    assert exact(counted(kept, "region")).value == {"region": ["north", "south", None], "n": [2, 1, 1]}
    with pytest.raises(NotAllowed, match="needs a δ"):
        plan_of(counted(kept, "place"))  # of places that are nowhere nothing is public


def test_a_private_column_that_equals_a_public_one_holds_its_values(engine):
    joined = clinic(engine).table("visits").join("places", "place")
    assert exact(counted(joined, "place")).value == {"place": [1, 2, 3, 4], "n": [2, 1, 0, 0]}
    mixed = counted(joined, "inhabitants", "place", old=joined["age"] < 18)
    found = exact(mixed).value
    assert list(zip(found["inhabitants"], found["place"], found["old"], strict=True))[:4] == [
        (10, 1, False),
        (10, 1, True),
        (10, 1, None),
        (20, 2, False),
    ]
    assert found["n"][:3] == [1, 1, 0]
    assert len(found["n"]) == 12


def test_names_and_filters_do_not_hide_where_values_come_from(engine):
    database = clinic(engine)
    places = database.table("places")
    few = places.filter(places["inhabitants"] < 25).select("place", home="region")
    joined = database.table("visits").join(few, "place")
    table = joined.filter(joined["age"] < 60).derive(where=joined["home"])
    assert exact(counted(table, "where")).value == {"where": ["north", "south"], "n": [2, 0]}


def test_in_sql(engine):
    text = (
        "SELECT p.region, p.inhabitants, COUNT(*) AS n FROM visits v JOIN places p ON v.place = p.place "
        "GROUP BY p.region, p.inhabitants"
    )
    assert exact(clinic(engine).sql(text)).value["n"] == [2, 0, 1, 0]


def test_a_declared_key_is_not_read():
    columns = PLACES["columns"] | {"region": column("string", categories=["north", "south"])}
    joined = clinic("duckdb", columns=columns).table("visits").join("places", "place")
    question = counted(joined, "region")
    assert not question._grouped[0].together
    assert exact(question).value["region"] == ["north", "south"]


def test_the_request_says_which_groups_were_listed():
    first, second = (
        counted(clinic("duckdb", rows).table("visits").join("places", "place"), "region")._described()
        for rows in (ROWS, ROWS | {"region": ["north", "south", "east", None]})
    )
    assert first != second
    assert {**first["query"], "together": None} == {**second["query"], "together": None}


def test_more_values_than_can_be_listed_are_found_privately(monkeypatch):
    monkeypatch.setattr(listed, "MOST_ROWS", 2)
    question = counted(clinic("duckdb").table("visits").join("places", "place"), "region")
    with pytest.raises(NotAllowed, match="needs a δ"):
        question.explain(epsilon=1.0)
    assert "more than 2 values of region" in str(question.explain(epsilon=1.0, delta=1e-6))


def test_a_public_table_without_rows_lists_nothing(engine):
    nowhere = {name: [] for name in ROWS}
    question = counted(clinic(engine, nowhere).table("visits").join("places", "place"), "region")
    with pytest.raises(NotAllowed, match="no row"):
        question.explain(epsilon=1.0)


def test_private_rows_are_never_listed(engine):
    database = clinic(engine)
    with pytest.raises(NotAllowed, match="private table"):
        database.source.public_values(database.table("visits").relation, (), 10)
