"""Aggregates: how they read, what they are as JSON, and what is refused."""

import math

import pytest

import sitr
from sitr.errors import InvalidArgument
from sitr.query.aggregates import MOST_BINS
from sitr.tables.expressions import Column
from tests.tables import clinic

SCHEMA = clinic.declared().tables["visits"].schema
ALL = [sitr.count(), sitr.count("cost"), sitr.count_units(), sitr.count_distinct("ward"), sitr.sum("cost"),
       sitr.mean("cost"), sitr.mean("cost", bounds=(0, 5)), sitr.variance("cost"), sitr.stddev("cost"),
       sitr.covariance("age", "cost"), sitr.covariance("age", "cost", other_bounds=(0, 5)),
       sitr.correlation("age", "cost"), sitr.quantile("cost", 0.25), sitr.median("cost"), sitr.min("cost"),
       sitr.max("cost"), sitr.histogram("age", [0, 18, 120]), sitr.histogram("age", [0, 19, 120]),
       sitr.mean(Column("cost") * 2)]  # fmt: skip


def test_two_different_aggregates_have_different_json():
    texts = [repr(one.to_dict()) for one in ALL]
    assert len(set(texts)) == len(texts)


def test_all_of_them_fit_their_columns():
    for one in ALL:
        one.check(SCHEMA)
        assert str(one).startswith(one.kind)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: sitr.mean("ward").check(SCHEMA), lambda: sitr.mean("day").check(SCHEMA),
        lambda: sitr.median("ward").check(SCHEMA), lambda: sitr.mean("cots").check(SCHEMA),
        lambda: sitr.count(bounds=(0, 5)).check(SCHEMA), lambda: sitr.covariance("age", "ward").check(SCHEMA),
        lambda: sitr.quantile("cost", 1.1), lambda: sitr.quantile("cost", math.nan), lambda: sitr.mean(5),
        lambda: sitr.histogram("age", [0]), lambda: sitr.histogram("age", [0, 0]),
        lambda: sitr.histogram("age", [1, 0]), lambda: sitr.histogram("age", [0, math.nan]),
        lambda: sitr.histogram("age", range(MOST_BINS + 2)),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        wrong()
