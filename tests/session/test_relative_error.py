"""`explain(relative_error=...)`: counts by their declared size, and reasons where there is none."""

import pyarrow
import pytest

import sitr
from sitr.errors import CannotCalibrate, InvalidArgument
from sitr.session.database import open
from sitr.tables import Declaration

DECLARED = {
    "sitr": 1,
    "name": "clinic",
    "privacy": {"delta": 1e-8},
    "budgets": {"clinic": {"epsilon": 1.0}},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows_per_unit": 2,
            "columns": {
                "patient": {"type": "integer"},
                "region": {"type": "string", "categories": ["north", "south"]},
                "word": {"type": "string"},
                "cost": {"type": "float", "bounds": [0, 100]},
            },
        }
    },
}


@pytest.fixture
def opened():
    def opened(**sizes):
        tables = {"visits": {**DECLARED["tables"]["visits"], **sizes}}
        frame = pyarrow.table({"patient": [1], "region": ["north"], "word": ["x"], "cost": [1.0]})
        made.append(open(Declaration.of({**DECLARED, "tables": tables}), ledger="memory://", frames={"visits": frame}))
        return made[-1].table("visits")

    made = []
    yield opened
    for one in made:
        one.close()


def test_counts_of_rows_units_and_bins(opened):
    visits = opened(expected_rows=2000, expected_units=1500)
    rows = visits.group_by("region").aggregate(n=sitr.count())
    assert rows.explain(relative_error=0.05).target == rows.explain(error=50).target
    both = visits.aggregate(n=sitr.count(), people=sitr.count_units())
    found = both.explain(relative_error=0.1)
    assert found.errors["n"] <= 200
    assert found.errors["people"] <= 150
    assert "2,000 for n, 1,500 for people" in found.notes[0]
    bins = visits.aggregate(n=sitr.histogram("cost", [0, 50, 100]))
    assert bins.explain(relative_error=0.2).target == bins.explain(error=200).target


@pytest.mark.parametrize(
    ("sizes", "aggregate", "message"),
    [
        ({}, sitr.count(), "no size is declared"),
        ({"expected_units": 10}, sitr.count(), "no size is declared"),
        ({"expected_rows": 10}, sitr.count_units(), "no size is declared"),
        ({"expected_rows": 10}, sitr.mean("cost"), "a relative error is for counts"),
        ({"expected_rows": 10}, sitr.sum("cost"), "a relative error is for counts"),
    ],
)
def test_what_has_no_size_is_refused(opened, sizes, aggregate, message):
    with pytest.raises(InvalidArgument, match=message):
        opened(**sizes).aggregate(n=aggregate).explain(relative_error=0.05)


def test_groups_that_are_not_public_have_no_size(opened):
    question = opened(expected_rows=100).group_by("word").aggregate(n=sitr.count())
    with pytest.raises(InvalidArgument, match="how many groups"):
        question.explain(relative_error=0.05)


@pytest.mark.parametrize("part", [0, 1, -0.1, 5, float("nan"), "5%"])
def test_a_part_is_between_zero_and_one(opened, part):
    with pytest.raises(InvalidArgument, match="relative_error="):
        opened(expected_rows=100).aggregate(n=sitr.count()).explain(relative_error=part)


@pytest.mark.parametrize("other", [{"epsilon": 1.0}, {"rho": 1.0}, {"error": 5}])
def test_one_thing_is_wanted(opened, other):
    with pytest.raises(InvalidArgument, match="were given together"):
        opened(expected_rows=100).aggregate(n=sitr.count()).explain(relative_error=0.05, **other)


def test_what_no_price_reaches(opened):
    with pytest.raises(CannotCalibrate, match="no ε up to 100"):
        opened(expected_rows=100).aggregate(cost=sitr.mean("cost")).explain(error=1e-12)
