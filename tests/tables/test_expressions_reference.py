"""Expressions on DuckDB against an evaluator in exact arithmetic; `test_engines` holds the other engines to DuckDB."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.conformance import _Trial, _truth
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from sitr.tables.expressions import (
    Arithmetic,
    Case,
    Coalesce,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Logic,
    Not,
    steps_of,
)

COLUMNS: dict[str, Any] = {
    "place": {"type": "integer"},
    "a": {"type": "integer", "bounds": [-20, 20]},
    "b": {"type": "int16", "bounds": [0, 9]},
    "yes": {"type": "boolean"},
    "text": {"type": "string"},
}
DECLARED = Declaration.of({"sitr": 1, "name": "t", "tables": {"trial": {"unit": "row", "columns": COLUMNS}}})
SCHEMA = DECLARED.tables["trial"].schema
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPUTED = {"+": operator.add, "-": operator.sub, "*": operator.mul}
TEXTS = st.sampled_from(["x", "X", "x ", ""])

CONSTANTS = st.builds(Constant, st.integers(-9, 9) | st.sampled_from([0.5, -1.25]))

numbers = st.recursive(
    st.sampled_from([Column("a"), Column("b")]) | CONSTANTS,
    lambda inner: (
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner)
        | st.builds(Coalesce, inner, inner)
        | st.builds(Case, st.deferred(lambda: conditions), inner, inner)
    ),
    max_leaves=4,
)
conditions: st.SearchStrategy[Expression] = st.recursive(
    st.just(Column("yes"))
    | st.builds(Comparison, st.sampled_from([*OPERATORS]), numbers, numbers)
    | st.builds(Comparison, st.sampled_from(["==", "!="]), st.just(Column("text")), st.builds(Constant, TEXTS))
    | st.builds(In, st.just(Column("text")), st.lists(TEXTS, min_size=1).map(tuple))
    | st.builds(In, numbers, st.lists(st.integers(-9, 9), min_size=1).map(tuple))
    | st.builds(IsNull, numbers),
    lambda inner: st.builds(Not, inner) | st.builds(Logic, st.sampled_from(["and", "or"]), inner, inner),
    max_leaves=3,
)
tables = st.lists(
    st.tuples(
        st.none() | st.integers(-20, 20),
        st.none() | st.integers(0, 9),
        st.none() | st.booleans(),
        st.none() | TEXTS,
    ),
    min_size=1,
    max_size=6,
)


def value(one: Expression, row: dict[str, Any]) -> Any:
    """An expression on a row, exactly; None is missing."""
    if isinstance(one, Column):
        return row[one.name]
    if isinstance(one, Constant):
        return one.value if isinstance(one.value, str) else Fraction(one.value)
    if isinstance(one, IsNull):
        return value(one.value, row) is None
    if isinstance(one, Coalesce):
        first = value(one.value, row)
        return value(one.other, row) if first is None else first
    if isinstance(one, Case):
        return value(one.then if value(one.condition, row) is True else one.other, row)
    if isinstance(one, Not):
        found = value(one.value, row)
        return None if found is None else not found
    if isinstance(one, In):
        found = value(one.value, row)
        return None if found is None else found in one.values
    left, right = value(one.left, row), value(one.right, row)
    if isinstance(one, Logic):
        decisive = one.operator == "or"
        if left is decisive or right is decisive:
            return decisive
        return None if left is None or right is None else not decisive
    if left is None or right is None:
        return None
    if isinstance(one, Comparison):
        return OPERATORS[one.operator](left, right)
    assert isinstance(one, Arithmetic)
    return quotient(one, left, right) if one.operator == "/" else COMPUTED[one.operator](left, right)


def quotient(one: Arithmetic, left: Fraction, right: Fraction) -> Fraction | None:
    """By doubles, as it is documented: rounded to the step of the result."""
    if right == 0:
        return None
    step = one.domain(SCHEMA).step
    first, second = steps_of(one.left.domain(SCHEMA)).step, steps_of(one.right.domain(SCHEMA)).step
    by = float(first / second / step)
    return math.floor(float(left / first) * by / float(right / second) + 0.5) * step


@cache
def trial() -> _Trial:
    return _Trial(DuckDB(DECLARED))


@given(tables, st.lists(numbers | conditions, min_size=1, max_size=4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_expressions_are_what_exact_arithmetic_says(rows, asked):
    allowed = []
    for one in asked:
        try:
            domain = one.domain(SCHEMA)
        except InvalidArgument:
            continue  # it could leave 64 bits
        if domain.kind == "boolean" or (domain.bounded and steps_of(domain).span[1] - steps_of(domain).span[0] < 2**62):
            allowed.append(one)
    if not allowed:
        return
    names = ("a", "b", "yes", "text")
    kinds = (pyarrow.int64(), pyarrow.int16(), pyarrow.bool_(), pyarrow.string())
    cells = zip(*rows, strict=True)
    columns = {name: pyarrow.array(held, kind) for name, kind, held in zip(names, kinds, cells, strict=True)}
    frame = pyarrow.table({"place": pyarrow.array(range(len(rows)), pyarrow.int64()), **columns})
    wanted = {str(at): _truth(one) if one.domain(SCHEMA).kind == "boolean" else one for at, one in enumerate(allowed)}
    got = trial().values(frame, COLUMNS, wanted)
    for at, one in enumerate(allowed):
        exact = [value(one, dict(zip(names, row, strict=True))) for row in rows]
        if one.domain(SCHEMA).kind == "boolean":
            exact = [{None: 0, False: 1, True: 2}[found] for found in exact]
        assert got[str(at)] == exact, str(one)
