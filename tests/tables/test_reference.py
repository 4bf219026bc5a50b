"""Expressions mean on every engine what the reference says, in every place where they can stand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.attack_expressions import opened
from sitr.tables import conformance, statement
from sitr.tables.domains import Domain
from sitr.tables.duckdb import DuckDB
from sitr.tables.expressions import Case, Coalesce, Column, Constant
from sitr.tables.reference import Reference, begin_of, on_grid, part_of
from tests.tables.drawn import DECLARED, SCHEMA, Draw, differences, rows_of

COUNTS = {"duckdb": (80, 2), "postgresql": (80, 2), "spark": (40, 1)}


def test_an_expression_has_one_meaning(engine):
    count, lone = COUNTS[engine]
    source = opened(engine)
    try:
        assert not list(differences(source, 7, count, packed=40, lone=lone))
    finally:
        source.close()


def test_a_text_without_parentheses_is_found(monkeypatch):
    """Neither the pass nor the check: the test above finds it, and an engine with it would not be opened."""
    monkeypatch.setattr(statement, "in_parentheses", lambda tree: tree.copy())
    monkeypatch.setattr(statement, "check", lambda *_: None)
    source = DuckDB(DECLARED)
    try:
        assert list(differences(source, 7, 40, packed=40, lone=1))
        assert set(conformance.check(source).failed) == {
            "a condition inside another keeps its meaning",
            "rows are chosen and grouped by conditions",
        }
    finally:
        source.close()


KINDS = ("IsNull", "In", "Comparison", "Case", "Coalesce", "Part", "Truncated", "Bucket", "Arithmetic")


def test_drawn_expressions_are_deep_and_of_every_kind():
    random = Random(1)
    drawn = [Draw(random).one() for _ in range(100)]
    assert all(one.domain(SCHEMA).kind in ("boolean", "number") for one in drawn)
    shown = [str(one.to_dict()) for one in drawn]
    assert sum(one.count("'is'") > 8 for one in shown) > 30
    for kind in KINDS:
        assert sum(f"'is': '{kind}'" in one[10:] for one in shown) > 3, kind  # inside another


def test_what_is_said_of_missing_and_of_listed_values_is_true():
    """Groups are listed by it: a value that is not among them would be lost."""
    random, reference, listed = Random(5), Reference(SCHEMA), 0
    for _ in range(400):
        one = Draw(random).one()
        domain, values = one.domain(SCHEMA), {reference.value(one, row) for row in rows_of(random)}
        assert None not in values or not domain.required, one
        assert not domain.nulls or not domain.required, one
        if domain.categories is not None:
            listed += 1
            assert values - {None} <= set(domain.categories), one
            assert domain.required or domain.nulls, one
    assert listed > 3


AGES = {"age": Domain("number", Fraction(1), 0, 120), "paid": Domain("number", Fraction(1, 4), 0, 400, float=True)}
AGE, PAID = Column("age"), Column("paid")


REGIONS = {"region": Domain("string", categories=("north", "(other)"), others=True)}
REGION = Column("region")


@pytest.mark.parametrize(
    ("one", "row", "found"),
    [
        (REGION, "north", "north"),
        (REGION, "North", "(other)"),
        (REGION, "(other)", "(other)"),
        (REGION, None, None),
        (REGION == "(other)", "south", True),
        (REGION == "south", "south", False),
        (REGION.isin(["north", "south"]), "south", False),
        (REGION.is_null(), "south", False),
    ],
)
def test_what_is_not_declared_is_one_value(one, row, found):
    assert Reference(REGIONS).value(one, {"region": row}) == found


@pytest.mark.parametrize(
    ("one", "row", "found"),
    [
        (AGE > 18, {"age": None}, None),
        ((AGE > 18) & (AGE < 0), {"age": 5}, False),
        ((AGE > 18) | (PAID > 1), {"age": None, "paid": 2.0}, True),  # whatever the age is
        ((AGE > 18) & (PAID > 1), {"age": None, "paid": 0.0}, False),
        (~(AGE > 18), {"age": None}, None),
        (AGE.isin([1, 2]), {"age": None}, None),
        (AGE.is_null(), {"age": None}, True),
        (Coalesce(AGE, Constant(7)), {"age": None}, 7),
        (Case(AGE > 18, Constant(1), Constant(0)), {"age": None}, 0),  # what is missing is not true
        (AGE / (AGE - 5), {"age": 5}, None),
        (AGE + 1, {"age": 500}, 121),  # clipped to its bounds first
        (PAID > 0, {"paid": float("nan")}, None),
    ],
    ids=str,
)
def test_what_is_missing_or_out_of_bounds(one, row, found):
    assert Reference(AGES).value(one, row) == found


@given(st.floats(allow_nan=False), st.fractions(Fraction(1, 64), 4), st.integers(-1000, 0), st.integers(1, 1000))
def test_any_number_lies_on_the_grid_inside_its_ends(value, step, low, high):
    grid = Domain("number", step, low, high)
    found = on_grid(value, Domain("number", step, low, high, float=True), grid)
    assert (found / step).denominator == 1
    assert low * step <= found <= high * step


@given(st.dates(date(2, 1, 1), date(9998, 1, 1)), st.sampled_from(["year", "quarter", "month", "week", "day"]))
def test_a_day_lies_in_what_it_begins(day, unit):
    begin = begin_of(day, unit)
    assert begin <= day
    assert begin_of(begin, unit) == begin
    assert all(begin_of(begin + timedelta(days=more), unit) == begin for more in range((day - begin).days))
    assert begin_of(datetime(day.year, day.month, day.day, 13, 5), unit) == datetime(begin.year, begin.month, begin.day)
    assert part_of(day, "quarter") == (begin_of(day, "quarter").month + 2) // 3
