"""Groups that the question itself names, or that a public table lists: none is lost, and none costs a δ."""

import pyarrow
import pytest

import sitr
from sitr.errors import NotAllowed, OperationTaken
from sitr.query import listed
from tests.query.databases import asked, column, exact, people, plan_of, replaced, spent
from tests.tables.conftest import PARAMS

PLACES = {
    "public": True,
    "key": "place",
    "columns": {"place": column("integer"), "region": column("string"), "inhabitants": column("integer")},
}
ROWS = {"place": [1, 2, 3, 4], "region": ["north", "south", "north", None], "inhabitants": [10, 20, 30, None]}
KINDS = {"place": pyarrow.int64(), "region": pyarrow.string(), "inhabitants": pyarrow.int64()}
VISITS = {"person": [1, 2, 3, 4], "place": [1, 1, 2, 9], "age": [5, 40, None, 70]}


@pytest.fixture(params=PARAMS)
def engine(request):
    return request.param


def frame(places):
    return pyarrow.table({name: pyarrow.array(cells, KINDS[name]) for name, cells in places.items()})


def clinic(engine, places=ROWS, visits=VISITS, most=3, more=None, **declared):
    """People in places 1, 1 and 2, and one in a place that is nowhere; no δ, so no group can be found privately."""
    content = people(most, place=column("integer"), age=column("integer", bounds=[0, 120]))
    content |= {"privacy": {}}
    content["tables"]["places"] = {**PLACES, **declared}
    tables = {"visits": pyarrow.table(visits), "places": frame(places)}
    for name, (table, rows) in (more or {}).items():
        content["tables"][name], tables[name] = table, pyarrow.table(rows)
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


# A person in the north and in the south, and one in the south alone.
TWICE = {"person": [1, 1, 2], "place": [1, 2, 2], "age": [5, 6, 7]}
REGIONS = ("north", "south", None)
PAIRS = {("north", "north"): 1, ("north", "south"): 1, ("south", "north"): 1, ("south", "south"): 2}


def pairs(question):
    """How many rows each pair of regions has."""
    (first, second), found = question.query.groupings, exact(question).value
    return dict(zip(zip(found[first.name], found[second.name], strict=True), found["n"], strict=True))


def test_one_join_on_both_sides_of_another_has_the_pairs_of_its_groups(engine):
    """A row has two public rows there, each of its own: groups are all pairs, and not those of one public row."""
    joined = clinic(engine, visits=TWICE, most=9).table("visits").join("places", "place")
    again = joined.join(joined.select("person", home="region"))
    expected = {(first, second): PAIRS.get((first, second), 0) for first in REGIONS for second in REGIONS}
    assert pairs(counted(again, "region", "home")) == expected
    assert pairs(counted(again, "home", "region")) == expected


def test_one_join_on_both_sides_of_another_in_sql(engine):
    text = (
        "WITH t AS (SELECT v.person, p.region FROM visits v JOIN places p ON v.place = p.place) "
        "SELECT a.region, b.region, COUNT(*) AS n FROM t a JOIN t b ON a.person = b.person GROUP BY a.region, b.region"
    )
    question = clinic(engine, visits=TWICE, most=9).sql(text)
    expected = {(first, second): PAIRS.get((first, second), 0) for first in REGIONS for second in REGIONS}
    assert pairs(question) == expected


def test_two_public_tables_in_one_question(engine):
    bands = {"public": True, "key": "age", "columns": {"age": column("integer"), "band": column("string")}}
    rows = {"age": [5, 6, 7], "band": ["a", "b", "a"]}
    visits = clinic(engine, visits=TWICE, more={"bands": (bands, rows)}).table("visits")
    joined = visits.join("places", "place").join("bands", "age")
    found = pairs(counted(joined, "region", "band"))
    few = {("north", "a"): 1, ("south", "b"): 1, ("south", "a"): 1}
    assert found == {(region, band): few.get((region, band), 0) for region in REGIONS for band in ("a", "b")}
    assert exact(counted(joined, "region", "band", "place")).value["n"] == [1, 0, 0, 0, 1, 1, 0, 0]


def test_a_public_table_that_was_read_is_never_said_not_to_have_been(monkeypatch):
    monkeypatch.setattr(listed, "MOST_ROWS", 2)
    question = counted(clinic("duckdb").table("visits").join("places", "place"), "region")
    found = question.explain(epsilon=1.0, delta=1e-6)
    assert not found.plan.query.together
    assert "Of private tables no row has been read." in str(found)


MANY = 50_000


def test_a_list_is_left_out_if_the_answer_would_have_too_many_numbers():
    """50,000 places and 121 ages are 6,050,000 groups: places are found privately, as if they could not be listed."""
    places = {"place": range(1, MANY + 1), "region": ["north"] * MANY, "inhabitants": [1] * MANY}
    people = {"person": range(2000), "place": [1] * 2000, "age": [5] * 2000}
    joined = clinic("duckdb", places, people).table("visits").join("places", "place")
    found = counted(joined, "place", "age").explain(epsilon=1.0, delta=1e-6)
    assert found.plan.selects
    (note,) = (note for note in found.notes if "too many to list" in note)
    assert note.startswith("With 50,000 values of place from the public table, the answer would have 6,050,000 numbers")
    assert "Of private tables no row has been read." in str(found)
    assert not plan_of(counted(joined, "place")).selects
    bins = joined.group_by("place").aggregate(n=sitr.histogram("age", range(101)))
    assert plan_of(bins, 1.0, 1e-6).selects
    assert exact(counted(joined, "place", "age"), 1.0, 1e-6).value == {"place": [1], "age": [5], "n": [2000]}


def test_the_longest_list_is_left_out_first(monkeypatch):
    monkeypatch.setattr(listed, "NUMBERS", 20)
    bands = {"public": True, "key": "age", "columns": {"age": column("integer"), "band": column("string")}}
    rows = {"age": [1, 2, 3, 4, 5, 6, 7], "band": ["a", "b", "c", "d", "e", "f", "g"]}
    visits = clinic("duckdb", more={"bands": (bands, rows)}).table("visits")
    question = counted(visits.join("places", "place").join("bands", "age"), "region", "band")
    assert [one.names for one in question._grouped.query.together] == [("region",)]
    assert "With 7 values of band" in question._grouped.notes[0]
    monkeypatch.setattr(listed, "NUMBERS", 21)
    again = counted(visits.join("places", "place").join("bands", "age"), "region", "band")
    assert [one.names for one in again._grouped.query.together] == [("region",), ("band",)]


def test_an_operation_stands_for_the_values_that_a_public_table_had():
    """Its answer has other groups than the same words ask for now: it is refused, and nothing is charged."""
    database = clinic("duckdb")

    def regions():
        return counted(database.table("visits").join("places", "place"), "region")

    first = regions().release(epsilon=1.0, operation="regions")
    assert regions().release(epsilon=1.0, operation="regions").raw == first.raw
    before = spent(database)
    rows = {"visits": pyarrow.table(VISITS), "places": frame(ROWS | {"region": ["north", "south", "east", None]})}
    replaced(database, rows)
    with pytest.raises(OperationTaken):
        regions().release(epsilon=1.0, operation="regions")
    assert spent(database) == before
    assert regions().release(epsilon=1.0, operation="regions now").value["region"] == ["east", "north", "south", None]
