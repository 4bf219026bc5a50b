"""The fluent verbs: what they build, and what they refuse."""

from datetime import date

import pytest

import sitr
from sitr.errors import InvalidArgument, NoSuchWord, NotAllowed
from sitr.tables.relations import Derive, Filter, Join, PerUnit
from tests.tables import clinic


@pytest.fixture(scope="module")
def visits():
    with clinic.database() as database:
        yield database.table("visits")


@pytest.mark.parametrize("wrong", [5, "count", None, sitr.count])
def test_what_is_no_aggregate_is_refused_by_its_name(visits, wrong):
    for verb in (visits.aggregate, visits.per_unit, visits.group_by("region").aggregate):
        with pytest.raises(InvalidArgument, match=r"n=.* is no aggregate") as refused:
            verb(n=wrong)
        assert refused.value.do == "n=sitr.count()."


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


def test_brackets_are_columns_selections_and_filters(visits):
    assert visits[["age", "cost"]].columns == ("age", "cost")
    old = visits["age"] >= 65
    assert visits[old].relation == visits.filter(old).relation
    assert visits[visits["age"] >= 65].relation.to_dict() == visits.filter(old).relation.to_dict()
    assert "age" in visits
    assert "ages" not in visits


@pytest.mark.parametrize("wrong", [0, slice(5), ("age", "cost"), None, 1.5])
def test_rows_have_no_numbers(visits, wrong):
    with pytest.raises(InvalidArgument, match="is not the name of a column") as refused:
        visits[wrong]
    assert 'table["age"] is a column' in refused.value.do


@pytest.mark.parametrize(
    "wrong", [lambda t: t[["age", 1]], lambda t: t.select(t["age"]), lambda t: t.group_by(["age"])]
)
def test_a_name_is_a_text(visits, wrong):
    with pytest.raises(InvalidArgument, match="is not the name of a column"):
        wrong(visits)


def test_a_column_that_is_grouped_by_needs_a_name(visits):
    with pytest.raises(InvalidArgument) as refused:
        visits.group_by(visits["age"] >= 18)
    assert refused.value.what == "age >= 18 is not the name of a column."
    assert refused.value.do == 'group_by("region", month=table["day"].truncate("month")).'


@pytest.mark.parametrize(
    "habit", [list, sorted, set, tuple, lambda t: next(iter(t)), lambda t: [*t], lambda t: dict(t)]
)
def test_rows_are_not_listed(visits, habit):
    for rows in (visits, visits.group_by("region")):
        with pytest.raises(NotAllowed) as refused:
            habit(rows)
        assert "aggregate(n=sitr.count())" in refused.value.do


@pytest.mark.parametrize("habit", [len, bool])
def test_rows_are_not_counted_free_of_charge(visits, habit):
    with pytest.raises(NotAllowed, match="does not say how many rows") as refused:
        habit(visits)
    assert refused.value.do == "table.aggregate(n=sitr.count()).release(epsilon=0.1)."


def test_a_table_is_not_changed(visits):
    with pytest.raises(NotAllowed) as refused:
        visits["double"] = visits["cost"] * 2
    assert "derive" in refused.value.do


@pytest.mark.parametrize(
    ("habit", "instead"),
    [
        (lambda t: t.groupby("region"), "group_by"),
        (lambda t: t.head(), "synthesize()"),
        (lambda t: t.mean(), "sitr.mean"),
        (lambda t: t["cost"].mean(), "sitr.mean"),
        (lambda t: t["region"].value_counts(), "group_by"),
        (lambda t: t.group_by("region").agg("mean"), "aggregate"),
        (lambda t: t.aggregate(n=sitr.count()).to_pandas(), "release"),
    ],
)
def test_words_of_pandas_say_what_to_write(visits, habit, instead):
    with pytest.raises(NoSuchWord) as refused:
        habit(visits)
    assert instead in refused.value.do


def test_a_grouped_table_has_no_columns_of_its_own(visits):
    with pytest.raises(NotAllowed, match=r"has no \['cost'\]"):
        visits.group_by("region")["cost"]


def test_a_text_beside_a_date_is_a_date_in_every_verb(visits):
    text, day = "2024-07-01", date(2024, 7, 1)

    def asked(begin):
        late = visits["day"] >= begin
        table = visits.filter(late).derive(late=late)
        groups = table.group_by(later=table["day"] == begin).aggregate(
            n=sitr.count(late), m=sitr.mean(late.choose(1, 0))
        )
        return [groups, table.per_unit(m=sitr.mean(late.choose(1, 0))).aggregate(n=sitr.count())]

    for one, other in zip(asked(text), asked(day), strict=True):
        assert one.query.to_dict() == other.query.to_dict()
    with pytest.raises(InvalidArgument, match="'July' is not a date"):
        visits.filter(visits["day"] >= "July")
