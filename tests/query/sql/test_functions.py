"""Aggregates of SQL: which are read, what they take, and what is said of those that are not."""

from __future__ import annotations

import pytest

from sitr.errors import InvalidArgument, NotAllowed
from sitr.query.sql import parsed
from sitr.query.sql.dialect import read
from sitr.query.sql.functions import NAMES, has_aggregate, is_aggregate
from tests.query.sql.clinic import DECLARED


@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ("AVG(urgent)", "AVG(CASE WHEN urgent THEN 1 ELSE 0 END)."),
        ("SUM(age > 65)", "SUM(CASE WHEN age > 65 THEN 1 ELSE 0 END)."),
        ("CORR(urgent, age)", "CORR(CASE WHEN urgent THEN 1 ELSE 0 END, ...)."),
        ("AVG(drug)", "COUNT(DISTINCT drug), or GROUP BY it."),
        ("SUM(region) FILTER (WHERE urgent)", "COUNT(DISTINCT region), or GROUP BY it."),
    ],
)
def test_what_is_no_number_is_repaired_in_sql(asked: str, instead: str) -> None:
    with pytest.raises(InvalidArgument, match="not a number") as refused:
        parsed(f"SELECT {asked} AS x FROM visits", DECLARED)
    assert refused.value.do.endswith(instead)
    if instead.startswith(asked[:4]) and "..." not in instead:
        parsed(f"SELECT {instead[:-1]} AS x FROM visits", DECLARED)


def select(text: str) -> list:
    """The nodes that a SELECT of them has."""
    return read(f"SELECT {text} FROM visits").tree.expressions


@pytest.mark.parametrize("name", NAMES)
def test_every_aggregate_is_known_by_its_name_in_any_letters(name: str) -> None:
    for text in (f"{name}(cost)", f"{name.lower()}(cost, 0.5)"):
        (node,) = select(text)
        assert is_aggregate(node)
        assert has_aggregate(node)


def test_an_aggregate_is_found_in_what_is_computed_and_not_in_a_subquery() -> None:
    (inside,) = select("1 + ABS(SUM(cost))")
    assert has_aggregate(inside)
    assert not is_aggregate(inside)
    assert not has_aggregate(select("(SELECT SUM(cost) FROM visits)")[0])
    assert not has_aggregate(select("cost + 1")[0])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("COUNT()", "one argument"),
        ("COUNT(age, cost)", "one argument"),
        ("SUM(age, cost)", "takes one value"),
        ("SUM(*)", r"SUM\(\*\)"),
        ("CORR(age)", "takes two values"),
        ("PERCENTILE_CONT(age)", "a value and a number"),
        ("PERCENTILE_CONT(age, 2)", "not between 0 and 1"),
        ("PERCENTILE_CONT(age, cost)", "not a number"),
        ("AVG(cost) FILTER (WHERE urgent)", "FILTER"),
        ("COUNT(cost) FILTER (WHERE urgent)", "FILTER"),
        ("SUM(0.5) WITHIN GROUP (ORDER BY age)", "WITHIN GROUP"),
        ("COUNT(*, contribution_bounds_per_row => (0, 1))", "contribution_bounds_per_row"),
        ("CORR(age, cost, contribution_bounds_per_row => (0, 1))", "two columns"),
        ("SUM(cost, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => (0, 1))", "two bounds"),
        ("SUM(cost, contribution_bounds_per_row => (0, 1), contribution_bounds_per_row => (0, 2))", "twice"),
    ],
)
def test_an_aggregate_takes_what_it_takes(asked: str, said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        parsed(f"SELECT {asked} AS x FROM visits", DECLARED)


@pytest.mark.parametrize(
    ("asked", "name"),
    [("COUNT(*)", "count"), ("AVG(cost)", "avg_cost"), ("CORR(age, cost)", "corr_age_cost"), ("SUM(cost + 1)", "sum")],
)
def test_what_has_no_alias_is_called_by_what_it_is(asked: str, name: str) -> None:
    assert list(parsed(f"SELECT {asked} FROM visits", DECLARED).query.aggregates) == [name]


def test_a_variance_is_over_n_and_says_so() -> None:
    told = parsed("SELECT VARIANCE(cost) AS v FROM visits", DECLARED)
    assert told.after is not None
    assert told.after.notes == ("VARIANCE is over n, as VAR_POP is.",)
    assert parsed("SELECT VAR_POP(cost) AS v FROM visits", DECLARED).after is None
