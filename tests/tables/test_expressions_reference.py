"""Expressions mean on every engine what the reference says, in every place where they can stand."""

from __future__ import annotations

from random import Random

from benchmarks.attack_expressions import opened
from sitr.tables import conformance, statement
from sitr.tables.duckdb import DuckDB
from tests.tables.drawn import DECLARED, SCHEMA, Draw, differences

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
