"""The fluent verbs: what they build, and what they refuse."""

import pytest

import sitr
from sitr.errors import InvalidArgument, NotAllowed
from sitr.tables.relations import Derive, Filter, Join, PerUnit
from tests.tables import clinic


@pytest.fixture(scope="module")
def visits():
    with clinic.database() as database:
        yield database.table("visits")


def test_verbs_build_relations(visits):
    assert isinstance(visits.filter(visits["age"] > 18).relation, Filter)
    assert visits.derive(double=visits["age"] * 2).columns[-1] == "double"
    assert isinstance(visits.derive(double=visits["age"] * 2).relation, Derive)
    joined = visits.join("wards", "ward", keep=True)
    assert isinstance(joined.relation, Join)
    assert joined.relation.keep
    assert visits.join("wards", {"ward": "ward"}).relation.on == visits.join("wards", ["ward"]).relation.on
    per_unit = visits.per_unit("region", total=sitr.sum("cost", bounds=(0, 5000)), rows=sitr.count(bounds=(1, 9)))
    assert isinstance(per_unit.relation, PerUnit)
    assert per_unit.columns == ("region", "total", "rows")
    assert repr(per_unit) == "PrivateTable(region, total, rows)"
    assert repr(visits.group_by("region", month=visits["day"].truncate("month"))) == "Groups(region, month)"


def test_groups_have_public_values(visits):
    groups = visits.group_by("ward", values={"ward": ["a", None]})
    assert groups.groupings[0].values == ("a", None)
    with pytest.raises(InvalidArgument, match="which is not grouped by"):
        visits.group_by("ward", values={"region": ["a"]})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda t: t["cots"], InvalidArgument),
        (lambda t: t.filter(lambda row: row["age"] > 18), InvalidArgument),
        (lambda t: t.filter("age > 18"), InvalidArgument),
        (lambda t: t.filter(t["age"]), InvalidArgument),
        (lambda t: t.derive(x=5), InvalidArgument),
        (lambda t: t.group_by("cots"), InvalidArgument),
        (lambda t: t.group_by("cost").aggregate(n=sitr.count()), NotAllowed),
        (lambda t: t.aggregate(n="count"), InvalidArgument),
        (lambda t: t.aggregate(m=sitr.mean("ward")), InvalidArgument),
        (lambda t: t.aggregate(m=sitr.mean("day")), InvalidArgument),
        (lambda t: t.aggregate(h=sitr.histogram("age", [0, 1]), n=sitr.count()), NotAllowed),
        (lambda t: t.group_by("region").aggregate(region=sitr.count()), InvalidArgument),
        (lambda t: t.per_unit(m=sitr.median("cost")), NotAllowed),
        (lambda t: t.per_unit(m=sitr.count("cost")), NotAllowed),
        (lambda t: t.join("nobody", "ward"), NotAllowed),
    ],
)
def test_what_is_refused_at_once(visits, wrong, error):
    with pytest.raises(error):
        wrong(visits)


def test_a_table_is_shown_as_it_is_declared(visits):
    assert visits.database.tables == ("visits", "labs", "wards")
    lines = str(visits).splitlines()
    assert lines[0] == "visits: about units named by patient, 4 rows of each at most; paid from clinic"
    assert lines[2] == "region   string     east, north, south, west"
    assert "age      integer    0 to 120; missing is dropped" in lines
    assert "day      date       2024-01-01 to 2024-12-31" in lines
    made = visits.derive(double=visits["age"] * 2).select("double", "paid")
    assert str(made).splitlines() == ["double  integer  0 to 240; missing is dropped", "paid    decimal  0 to 500"]
    assert "labs: each row is a unit of its own" in str(visits.database.table("labs"))
    assert str(visits.database.table("wards")).startswith("wards: public")


def test_an_aggregate_needs_a_name(visits):
    for asked in (visits, visits.group_by("region")):
        with pytest.raises(InvalidArgument, match=r"an aggregate has no name: mean\(cost\)") as refused:
            asked.aggregate(sitr.mean("cost"))
        assert refused.value.do == "aggregate(n=sitr.count())."
