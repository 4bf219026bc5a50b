"""Relations: their columns, what they read, how many rows of a unit they keep, and what is refused."""

import pytest

from sitr.errors import InvalidArgument, NotAllowed
from sitr.tables.expressions import Column
from sitr.tables.relations import (
    Derive,
    Filter,
    Join,
    PerUnit,
    Scan,
    UnitAggregate,
    has_unit,
    is_public,
    private_tables,
    rows_per_unit,
    table_of,
)
from tests.tables import clinic

OTHERS = {
    "stays": {"unit": "patient", "max_rows_per_unit": 7,
              "columns": {"patient": {"type": "integer"}, "days": {"type": "int8", "nulls": "drop"}}},
    "notes": {"unit": "patient", "max_rows_per_unit": 1,
              "columns": {"patient": {"type": "string"}, "words": {"type": "int8"}}},
    "tests": {"unit": {"through": "stays", "on": {"stay": "days"}}, "max_rows_per_unit": 9,
              "columns": {"stay": {"type": "integer"}, "value": {"type": "int8"}}},
    "beds": {"public": True, "columns": {"ward": {"type": "string"}, "floor": {"type": "int8", "nulls": "drop"}}},
}  # fmt: skip
DECLARED = clinic.declared(tables=clinic.CONTENT["tables"] | OTHERS)
VISITS, STAYS = Scan("visits"), Scan("stays")
TOTAL = UnitAggregate("sum", Column("cost"), (0, 5000))


def test_what_a_table_holds():
    assert list(VISITS.schema(DECLARED)) == list(clinic.VISITS["columns"])
    assert Filter(VISITS, Column("age") > 18).schema(DECLARED) == VISITS.schema(DECLARED)
    derived = Derive(VISITS, (("double", Column("age") * 2), ("age", Column("age") + 1))).schema(DECLARED)
    assert (derived["double"].span, derived["age"].span) == ((0, 240), (1, 121))


def test_a_derived_column_is_computed_of_what_was_there_before():
    with pytest.raises(InvalidArgument, match="there is no column 'double'"):
        Derive(VISITS, (("double", Column("age") * 2), ("more", Column("double") + 1))).schema(DECLARED)


def test_a_join_has_the_columns_of_both():
    public = Join(VISITS, Scan("wards"), (("ward", "ward"),))
    assert list(public.schema(DECLARED)) == [*VISITS.schema(DECLARED), "beds"]
    private = Join(VISITS, STAYS, ())
    assert list(private.schema(DECLARED)) == [*VISITS.schema(DECLARED), "days"]
    assert list(private.tables()) == ["visits", "stays"]
    assert Join(VISITS, Scan("tests"), ()).schema(DECLARED)["value"].span == (-128, 127)


def test_rows_that_match_nothing_lack_what_no_row_lacked():
    inner, outer = (Join(VISITS, Scan("beds"), (("ward", "ward"),), keep) for keep in (False, True))
    assert inner.schema(DECLARED)["floor"].required
    assert not outer.schema(DECLARED)["floor"].required


@pytest.mark.parametrize(
    ("join", "message"),
    [
        (Join(Scan("wards"), VISITS, (("ward", "ward"),)), "begins with a private table"),
        (Join(VISITS, Scan("wards"), ()), "without a condition"),
        (Join(VISITS, STAYS, (), keep=True), "inner join only"),
        (Join(VISITS, Scan("labs"), (("ward", "ward"),)), "one of these has none"),
        (Join(VISITS, Scan("wards"), (("age", "ward"),)), "columns of one kind"),
        (Join(VISITS, Scan("wards"), (("cost", "beds"),)), "and no floats"),
        (Join(VISITS, VISITS, ()), "both sides of the join have a column 'age'"),
        (Join(VISITS, Scan("notes"), ()), "theirs are of different kinds"),
    ],
)
def test_a_join_that_is_not_stable_or_not_clear_is_refused(join, message):
    with pytest.raises(NotAllowed, match=message):
        join.schema(DECLARED)


def test_a_join_on_nothing_known_is_refused():
    with pytest.raises(InvalidArgument, match="there is no column 'wrad'"):
        Join(VISITS, Scan("wards"), (("wrad", "ward"),)).schema(DECLARED)
    with pytest.raises(InvalidArgument, match="there is no column 'wrad'"):
        Join(VISITS, Scan("wards"), (("ward", "wrad"),)).schema(DECLARED)


def test_numbers_over_a_unit():
    one = PerUnit(VISITS, ("region",), (("total", TOTAL), ("rows", UnitAggregate("count", bounds=(1, 10)))))
    schema = one.schema(DECLARED)
    assert list(schema) == ["region", "total", "rows"]
    assert schema["total"].steps
    assert schema["total"].ends[1] <= 5000
    assert schema["rows"].span == (1, 10)
    least = UnitAggregate("min", Column("age")).domain(VISITS.schema(DECLARED))
    assert least.span == (0, 120)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ((("total", UnitAggregate("sum", Column("cost"))),), InvalidArgument, "the sum of cost over a unit needs"),
        ((("rows", UnitAggregate("count")),), InvalidArgument, "how many rows a unit has needs bounds"),
        ((("x", UnitAggregate("median", Column("cost"))),), InvalidArgument, "median"),
        ((("x", UnitAggregate("max", Column("at"))),), InvalidArgument, "where a number is needed"),
        ((("region", TOTAL),), InvalidArgument, "both a key and a number"),
        (((" x", TOTAL),), InvalidArgument, "is no name"),
        ((("x", UnitAggregate("sum", Column("age"), (0.2, 0.8))),), InvalidArgument, "no two steps"),
    ],
)  # fmt: skip
def test_numbers_over_a_unit_that_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        PerUnit(VISITS, ("region",), values).schema(DECLARED)


def test_where_each_row_is_a_unit_there_is_nothing_to_add_up():
    with pytest.raises(NotAllowed, match="each row is a unit of its own"):
        PerUnit(Scan("labs"), (), (("rows", UnitAggregate("count", bounds=(1, 2))),)).schema(DECLARED)


def test_what_is_private():
    join = Join(VISITS, Scan("wards"), (("ward", "ward"),))
    assert private_tables(join, DECLARED) == ("visits",)
    assert not is_public(join, DECLARED)
    assert is_public(Scan("wards"), DECLARED)
    assert has_unit(join, DECLARED)
    assert not has_unit(Scan("labs"), DECLARED)


def test_rows_of_a_unit():
    each = PerUnit(VISITS, (), (("total", TOTAL),))
    assert rows_per_unit(VISITS, DECLARED) == 4
    assert rows_per_unit(Filter(VISITS, Column("urgent")), DECLARED) == 4
    assert rows_per_unit(Join(VISITS, STAYS, ()), DECLARED) == 7
    assert rows_per_unit(each, DECLARED) == 1
    assert rows_per_unit(Derive(Filter(each, Column("total") > 5), (("half", Column("total") / 2),)), DECLARED) == 1
    assert rows_per_unit(PerUnit(VISITS, ("region",), (("total", TOTAL),)), DECLARED) == 4


def test_a_table_that_is_not_declared_is_told_its_neighbour():
    with pytest.raises(NotAllowed) as caught:
        table_of(DECLARED, "vists")
    assert "Did you mean 'visits'?" in caught.value.do


def test_relations_as_json():
    ones = [VISITS, STAYS, Filter(VISITS, Column("urgent")), Derive(VISITS, (("x", Column("age")),)),
            Join(VISITS, STAYS, ()), Join(VISITS, STAYS, (("age", "days"),)),
            Join(VISITS, Scan("wards"), (("ward", "ward"),), keep=True), PerUnit(VISITS, (), (("x", TOTAL),)),
            PerUnit(VISITS, ("region",), (("x", TOTAL),)),
            PerUnit(VISITS, (), (("x", UnitAggregate("sum", Column("cost"), (0, 6000))),))]  # fmt: skip
    texts = [repr(one.to_dict()) for one in ones]
    assert len(set(texts)) == len(texts)
    assert VISITS.to_dict() == {"is": "scan", "table": "visits"}
