"""Expressions: DuckDB's value of a random expression is the exact one, inside its domain, and no row makes it fail."""

import functools
import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.declaration import Declaration
from sitr.tables.domains import FARTHEST, Domain
from sitr.tables.duckdb import DuckDB
from sitr.tables.emitter import Emitter
from sitr.tables.expressions import (
    Arithmetic,
    Bucket,
    Case,
    Coalesce,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Logic,
    Not,
    Part,
    Truncated,
    align,
    common_step,
    expression,
    steps_of,
)
from sitr.tables.relations import Scan
from sitr.tables.values import Values

NUMBERS = {
    "whole": {"type": "integer", "bounds": [-5, 1000]},
    "huge": {"type": "int64", "bounds": [-(2**62), 2**62]},
    "far": {"type": "integer", "bounds": [2**55, 2**55 + 9]},
    "share": {"type": "float", "bounds": [0, 1]},
    "wide": {"type": "float", "bounds": [-1e6, 3e6]},
    "tiny": {"type": "float", "bounds": [-1e-250, 1e-250]},
    "money": {"type": "decimal(10,2)", "bounds": [-3, 99.99]},
    "fine": {"type": "decimal(38,30)", "bounds": [0, 1]},
    "distant": {"type": "decimal(20,2)", "bounds": [1e14, 100000000000100.01]},
    "small": {"type": "int8"},
}
COLUMNS = NUMBERS | {"flag": {"type": "boolean"}, "name": {"type": "string"}, "day": {"type": "date"}}
DECLARED = Declaration.of({"sitr": 1, "name": "d", "tables": {"t": {"unit": "row", "columns": COLUMNS}}})
SCHEMA = DECLARED.tables["t"].schema
FLOATS = [None, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1e308, -1e308, 0.0, -0.0, 0.5, 1.0, 1e-300, 2.5e-301]
WHOLES = [None, 2**63 - 1, -(2**63), 0, 1, -1, 2**53 + 1, 2**55 + 4, 2**62, 999, 1000, 1001, -5, -6]
DECIMALS = [None, "0", "0.01", "99.99", "100", "-3", "-3.01", "99999999.99", "-99999999.99", "12.34", "50.50"]
FINES = [None, "0", "1", "99999999.999999999999999999999999999999", "-99999999.5", "0.123456789012345678901234567890"]
FAR = [None, "0", "100000000000000", "100000000000100.01", "100000000000100.02", "999999999999999999.99", "1e14"]
DAYS = [None, 0, 1, -1, 19_000, 2**31 - 1, -(2**31), 2_932_896, -719_162, 2_932_897]


def hostile(size=90, seed=5):
    random = np.random.default_rng(seed)

    def some(values, others):
        return [values[at] if at < len(values) else others() for at in random.integers(0, 2 * len(values), size)]

    def decimals(values, scale, most):
        made = some(values, lambda: str(round(random.uniform(-most, most), min(scale, 15))))
        return [None if one is None else Decimal(one) for one in made]

    wholes = lambda: int(random.integers(-1200, 1200))  # noqa: E731
    return pyarrow.table(
        {
            "whole": pyarrow.array(some(WHOLES, wholes), "int64"),
            "huge": pyarrow.array(some(WHOLES, lambda: int(random.integers(-(2**62), 2**62))), "int64"),
            "far": pyarrow.array(some(WHOLES, lambda: 2**55 + wholes() // 100), "int64"),
            "share": pyarrow.array(some(FLOATS, lambda: random.uniform(-0.2, 1.2)), "float64"),
            "wide": pyarrow.array(some(FLOATS, lambda: random.uniform(-2e6, 4e6)), "float64"),
            "tiny": pyarrow.array(some(FLOATS, lambda: random.uniform(-1, 1) * 1e-250), "float64"),
            "money": pyarrow.array(decimals(DECIMALS, 2, 200), pyarrow.decimal128(10, 2)),
            "fine": pyarrow.array(decimals(FINES, 15, 2), pyarrow.decimal128(38, 30)),
            "distant": pyarrow.array(decimals(FAR, 2, 2), pyarrow.decimal128(20, 2)),
            "small": pyarrow.array(some([None, 127, -128, 0], lambda: int(random.integers(-128, 128))), "int8"),
            "flag": some([None, True, False], lambda: bool(random.integers(2))),
            "name": some([None, "", "a", "'; DROP TABLE t; --"], lambda: "b"),
            "day": pyarrow.array(some(DAYS, lambda: int(random.integers(-9999, 30_000))), "int32").cast("date32"),
        }
    )


@functools.cache
def engine():
    return DuckDB(DECLARED, {"t": hostile()})


def found(**values):
    rows = Emitter(DECLARED, engine().table, engine()).rows(Scan("t"))
    made = {}
    for name, one in values.items():
        made[name] = Values(rows).of(one) if name.endswith("_") else Values(rows).steps(one)
    table = engine().answered(lambda: rows.table.select(**made))
    return {name: table.column(name).to_pylist() for name in values}


@functools.cache
def leaves():
    """For each row, each number in steps of its own grid as the engine finds it, and other columns as they are."""
    steps = found(**{name: Column(name) for name in NUMBERS})
    raw = found(**{f"{name}_": Column(name) for name in COLUMNS})
    size = len(next(iter(raw.values())))
    return [
        {name: column[place] for name, column in steps.items()} | {name: column[place] for name, column in raw.items()}
        for place in range(size)
    ]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_clipped_and_rounded_to_the_nearest_step(name):
    grid = steps_of(SCHEMA[name])
    low, high = grid.ends
    there = 0
    for row in leaves():
        value, steps = row[f"{name}_"], row[name]
        if value is None:
            assert steps is None
            continue
        assert grid.span[0] <= steps <= grid.span[1]
        finite = value if math.isfinite(value) else math.copysign(1e308, value)
        exact = min(max(Fraction(finite), low), high)
        slack = abs(exact) * Fraction(2) ** -52  # a decimal, or a whole number on a coarser grid, is a double first
        assert abs(steps * grid.step - exact) <= grid.step * Fraction(500001, 10**6) + slack
        if name in ("whole", "far", "small"):
            assert steps == exact
        there += 1
    assert there > 30


def test_nan_is_missing_and_infinity_is_an_end():
    grid = steps_of(SCHEMA["share"])
    table = hostile().column("share").to_pylist()
    assert {grid.span[1]} == {row["share"] for row, value in zip(leaves(), table, strict=True) if value == math.inf}
    assert {grid.span[0]} == {row["share"] for row, value in zip(leaves(), table, strict=True) if value == -math.inf}
    assert {None} == {row["share_"] for row, value in zip(leaves(), table, strict=True) if value != value}


def test_days_outside_the_calendar_are_missing():
    table = hostile().column("day").cast("int32").to_pylist()
    for row, days in zip(leaves(), table, strict=True):
        inside = days is not None and -719_162 <= days <= 2_932_896
        assert (row["day_"] is not None) == inside


# A second evaluation: exact, in fractions.


def exact(one, row):
    if isinstance(one, Column):
        if one.name not in NUMBERS:
            return row[f"{one.name}_"]
        steps = row[one.name]
        return None if steps is None else steps * steps_of(SCHEMA[one.name]).step
    if isinstance(one, Constant):
        return Domain("number").measure(one.value) if type(one.value) in (int, float) else one.value
    if isinstance(one, Arithmetic):
        left, right = exact(one.left, row), exact(one.right, row)
        if left is None or right is None or (one.operator == "/" and right == 0):
            return None
        if one.operator == "/":
            return left / right
        return {"+": left + right, "-": left - right, "*": left * right}[one.operator]
    if isinstance(one, Logic):
        sides = [exact(one.left, row), exact(one.right, row)]
        decisive = one.operator == "or"
        return decisive if decisive in sides else None if None in sides else not decisive
    if isinstance(one, Not):
        inner = exact(one.value, row)
        return None if inner is None else not inner
    if isinstance(one, IsNull):
        return exact(one.value, row) is None
    if isinstance(one, Coalesce):
        first = exact(one.value, row)
        return exact(one.other, row) if first is None else first
    if isinstance(one, Case):
        return exact(one.then if exact(one.condition, row) is True else one.other, row)
    if isinstance(one, Part):
        day = row["day_"]
        if day is None:
            return None
        parts = {"weekday": day.weekday(), "quarter": (day.month + 2) // 3}
        return Fraction(parts[one.which] if one.which in parts else getattr(day, one.which))
    assert isinstance(one, Comparison)
    return compared(one, row)


def compared(one, row):
    if one.native(SCHEMA):
        left, right = (
            row[f"{side.name}_"] if isinstance(side, Column) else exact(side, row) for side in (one.left, one.right)
        )
        if left is None or right is None:
            return None
        kinds = [isinstance(side, Fraction) and side.denominator > 1 for side in (left, right)]
        if isinstance(left, float) or isinstance(right, float) or any(kinds):
            left, right = float(left), float(right)
    else:
        left, right = exact(one.left, row), exact(one.right, row)
        if left is None or right is None:
            return None
    return {
        "==": left == right, "!=": left != right, "<": left < right,
        "<=": left <= right, ">": left > right, ">=": left >= right,
    }[one.operator]  # fmt: skip


constants = st.one_of(st.integers(-9, 99), st.sampled_from([0.5, 0.1, -2.75, 1000, 2**40, 1e-6])).map(Constant)
columns = st.sampled_from(list(NUMBERS)).map(Column)
parts = st.sampled_from(["year", "month", "day", "weekday", "quarter"]).map(lambda which: Part(Column("day"), which))
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@st.composite
def numbers(draw, depth=2):
    """A number: a column, a constant or a part of a day, or computed of such."""
    shape = draw(st.sampled_from(["leaf", "+", "-", "*", "case", "coalesce"])) if depth else "leaf"
    if shape == "leaf":
        one = draw(st.one_of(columns, constants, parts))
        return draw(st.sampled_from([one, abs(one), -one]))
    left, right = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    if shape == "case":
        return Case(draw(conditions(depth - 1)), left, right)
    return Coalesce(left, right) if shape == "coalesce" else Arithmetic(shape, left, right)


@st.composite
def conditions(draw, depth=2):
    shape = draw(st.sampled_from(["compared", "missing", "flag", "name", "and", "or", "not"]))
    if shape in ("and", "or", "not") and depth:
        one = draw(conditions(depth - 1))
        return Not(one) if shape == "not" else Logic(shape, one, draw(conditions(depth - 1)))
    if shape == "compared":
        return Comparison(draw(operators), draw(numbers(depth - 1 if depth else 0)), draw(numbers(0)))
    if shape == "missing":
        return IsNull(draw(numbers(0)))
    return Column("name") != "a" if shape == "name" else Column("flag")


def allowed(one):
    try:
        one.domain(SCHEMA)
        if one.domain(SCHEMA).kind == "number":
            steps_of(one.domain(SCHEMA))
    except InvalidArgument:
        return False  # refused before anything runs
    return True


def several(ones):
    """Some expressions that are not refused, under names: one query answers for all of them."""
    return st.lists(ones.filter(allowed), min_size=4, max_size=12).map(
        lambda found: {f"e{place}": one for place, one in enumerate(found)}
    )


@given(ones=several(numbers()))
@settings(max_examples=15)
def test_a_random_number_is_exact_and_inside_its_domain(ones):
    values = found(**ones)
    for name, one in ones.items():
        domain = steps_of(one.domain(SCHEMA))
        low, high = domain.span
        assert max(-low, high) <= FARTHEST
        for value, row in zip(values[name], leaves(), strict=True):
            wanted = exact(one, row)
            assert (value is None) == (wanted is None), (str(one), row)
            if value is not None:
                assert value * domain.step == wanted, (str(one), row)
                assert low <= value <= high, (str(one), row)
            else:
                assert not domain.required


@given(ones=several(conditions()))
@settings(max_examples=20)
def test_a_random_condition_is_exact(ones):
    values = found(**{f"{name}_": one for name, one in ones.items()})
    for name, one in ones.items():
        for value, row in zip(values[f"{name}_"], leaves(), strict=True):
            assert value == exact(one, row), (str(one), row)


@given(ones=several(st.builds(Arithmetic, st.just("/"), numbers(1), numbers(1))))
@settings(max_examples=10)
def test_a_random_quotient_is_near_and_inside_its_domain(ones):
    values = found(**ones)
    for name, one in ones.items():
        domain = one.domain(SCHEMA)
        low, high = domain.span
        for value, row in zip(values[name], leaves(), strict=True):
            wanted = exact(one, row)
            assert (value is None) == (wanted is None)
            if value is not None:
                assert low <= value <= high
                assert abs(value * domain.step - wanted) <= domain.step * Fraction(51, 100), (str(one), row)


@given(st.lists(st.integers(-300, 300).map(lambda x: x / 4), min_size=1, max_size=20, unique=True).map(sorted))
@settings(max_examples=15)
def test_a_bucket_counts_the_edges_below(edges):
    for name in ("money", "share", "whole"):
        one = Bucket(Column(name), tuple(edges))
        assert one.domain(SCHEMA).span == (0, len(edges))
        for value, row in zip(found(bucket_=one)["bucket_"], leaves(), strict=True):
            held = row[f"{name}_"]
            assert value == (None if held is None else sum(edge <= held for edge in edges))


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day"])
def test_a_day_is_cut_to_its_begin(unit):
    for value, row in zip(found(begin_=Truncated(Column("day"), unit))["begin_"], leaves(), strict=True):
        day = row["day_"]
        if day is None:
            assert value is None
            continue
        begin = value.date() if isinstance(value, datetime) else value
        assert begin <= day
        assert (day - begin).days < {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
        assert {"week": begin.weekday() == 0, "day": True}.get(unit, begin.day == 1)


@pytest.mark.parametrize(
    "values", [[1, 2**40], [0.5, 0.01, 99.99], [-3, 12.34, 1000]]
)  # fmt: skip
@pytest.mark.parametrize("name", ["whole", "money", "share", "fine", "huge"])
def test_a_list_holds_what_equals_one_of_it(name, values):
    for value, row in zip(found(held_=Column(name).isin(values))["held_"], leaves(), strict=True):
        held = row[f"{name}_"]
        assert value == (None if held is None else any(float(held) == float(one) for one in values))


# What is refused


def test_arithmetic_needs_bounds_and_comparisons_with_constants_do_not():
    schema = {"x": Domain("number"), "y": Domain("number", float=True)}
    with pytest.raises(InvalidArgument, match="no declared bounds"):
        (Column("x") + 1).domain(schema)
    with pytest.raises(InvalidArgument, match="no declared bounds"):
        Coalesce(Column("x"), Constant(0)).domain(schema)
    assert (Column("x") > 3).domain(schema).kind == "boolean"
    assert (Column("x") > Column("y")).domain(schema).kind == "boolean"


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (lambda: Column("huge") * Column("huge"), "64 bits"),
        (lambda: Column("huge") + Column("share"), "64 bits"),
        (lambda: Column("far") * 2**7, "64 bits"),
        (lambda: Column("far") / Column("whole"), "64 bits"),
        (lambda: Column("name") < "b", "compared by == and != only"),
        (lambda: Column("flag") < True, "compared by == and != only"),
        (lambda: Column("name") == 1, "a string is compared with a number"),
        (lambda: Column("name") + 1, "is a string, where a number is needed"),
        (lambda: Column("whole") & Column("flag"), "is a number, where a boolean is needed"),
        (lambda: ~Column("whole"), "where a boolean is needed"),
        (lambda: Column("whole").isin(["a"]), "is not a number"),
        (lambda: Column("nmae") == "a", "there is no column 'nmae'"),
        (lambda: Column("day").part("hour"), "a date has no hour"),
        (lambda: Column("day").truncate("hour"), "a date has no hour"),
        (lambda: Column("whole").part("year"), "is a number, where a date or a timestamp is needed"),
        (lambda: Column("whole").fill_null("a"), "and 'a' a string"),
        (lambda: Case(Column("whole"), Column("whole"), Column("whole")), "where a boolean is needed"),
    ],
)
def test_what_has_no_domain_is_refused(one, message):
    with pytest.raises(InvalidArgument, match=message):
        one().domain(SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Column("whole") == None,  # noqa: E711
        lambda: Column("whole") * object(),
        lambda: Column("whole") > math.nan,
        lambda: Column("whole") > math.inf,
        lambda: Column("whole") > 2**70,
        lambda: Column("name").isin("abc"),
        lambda: Column("name").isin([]),
        lambda: Column("name").isin(list(map(str, range(10_001)))),
        lambda: Column("name").isin([None]),
        lambda: Column("day").part("decade"),
        lambda: Column("day").truncate("minute"),
        lambda: bool(Column("whole") > 1),
        lambda: 1 < Column("whole") < 3,
        lambda: Column("flag") and Column("flag"),
    ],
)
def test_what_is_no_expression_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidArgument):
        wrong()


def test_a_misspelt_column_is_told_its_neighbour():
    with pytest.raises(InvalidArgument) as caught:
        Column("wohle").domain(SCHEMA)
    assert "Did you mean 'whole'?" in caught.value.do


# Forms


def test_operators_read_as_they_are_written():
    x, y = Column("x"), Column("y")
    texts = {
        "(x + 1)": x + 1, "(1 + x)": 1 + x, "(x - y)": x - y, "(1 - x)": 1 - x, "(2 * x)": 2 * x, "(x / 2)": x / 2,
        "(1 / x)": 1 / x, "(0 - x)": -x, "x == 'a'": x == "a", "x != 1": x != 1, "not (x)": ~x,
        "(x) and (y)": x & y, "(x) or (y)": x | y, "(True) and (x)": True & x, "(True) or (x)": True | x,
        "x is null": x.is_null(), "coalesce(x, 0)": x.fill_null(0), "x in (1, 2)": x.isin([1, 2]),
        "(x >= 1) and (x <= 2)": x.between(1, 2), "year(x)": x.part("year"), "month_of(x)": x.truncate("month"),
        "case when x < 0 then (0 - x) else x": abs(x), "x > 2024-01-01": x > date(2024, 1, 1),
        "bucket(x, 2 edges)": Bucket(x, (1, 2)), "x in (1, 2, 3, 4, 5, …)": x.isin(range(1, 9)),
    }  # fmt: skip
    assert {text: str(one) for text, one in texts.items()} == {text: text for text in texts}


def test_columns_that_are_read():
    one = Case(Column("a") > 1, Column("b") + Column("c"), Constant(0))
    assert one.columns() == {"a", "b", "c"}
    assert In(Column("d"), (1, 2)).columns() == {"d"}
    assert Constant(1).columns() == set()


def test_two_different_expressions_have_different_json():
    x = Column("x")
    ones = [x, x + 1, x - 1, x + 1.0, x == "1", x == 1, x == date(2024, 1, 1), x == datetime(2024, 1, 1),
            x == Decimal("1"), x.isin([1]), x.isin(["1"]), x.is_null(), x.fill_null(1), x.part("day"),
            x.truncate("day"), Bucket(x, (1,)), Case(x, x, x), ~x, x & x, x | x]  # fmt: skip
    texts = [repr(one.to_dict()) for one in ones]
    assert len(set(texts)) == len(texts)
    assert (x + 1).to_dict() == {
        "is": "Arithmetic", "operator": "+",
        "left": {"is": "Column", "name": "x"}, "right": {"is": "Constant", "value": 1},
    }  # fmt: skip


positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)


@given(positive, positive)
def test_a_common_step_is_the_largest(one, other):
    step = common_step(one, other)
    first, second = one / step, other / step
    assert first.denominator == second.denominator == 1
    assert math.gcd(first.numerator, second.numerator) == 1


def test_aligned_steps_stay_within_64_bits():
    one = Domain("number", Fraction(1, 3), 0, 10, steps=True)
    other = Domain("number", Fraction(1, 2), 0, 10, steps=True)
    assert align(one, other) == (Fraction(1, 6), 2, 3)
    with pytest.raises(InvalidArgument, match="64 bits"):
        align(one, Domain("number", Fraction(1, 2), 0, 2**61, steps=True))


def test_constants_are_values_of_their_own():
    assert Constant(0.1).domain({}).ends == (Fraction(1, 10), Fraction(1, 10))
    assert [expression(one).domain({}).kind for one in (True, 1, 1.5, "a", date(2024, 1, 1), datetime(2024, 1, 1))] == [
        "boolean", "number", "number", "string", "date", "timestamp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "instead"),
    [
        (lambda: Column("day") >= "2025-06-01", "write datetime.date(2025, 6, 1)."),
        (lambda: Column("day") >= "June", "write datetime.date(2025, 6, 1)."),
        (lambda: Column("day").isin(["2024-02-29"]), "write datetime.date(2024, 2, 29)."),
        (lambda: Column("at") < "2025-06-01 08:30", "write datetime.datetime(2025, 6, 1, 8, 30)."),
        (lambda: Column("n") == "7", "a number stands without quotes: 7."),
        (lambda: Column("n") < "0.5", "a number stands without quotes: 0.5."),
        (lambda: Constant("many") == Column("n"), "a number stands without quotes: 5."),
        (lambda: Column("name") == 7, "a text stands in quotes: '7'."),
        (lambda: Column("flag") == "yes", "compare it with true or false, or use it as it is."),
        (lambda: Column("day") == Column("n"), ""),
    ],
)
def test_a_constant_of_another_kind_is_written_as_it_should_be(made, instead):
    schema = {
        "day": Domain("date"),
        "at": Domain("timestamp"),
        "n": Domain("number"),
        "name": Domain("string"),
        "flag": Domain("boolean"),
    }
    with pytest.raises(InvalidArgument) as refused:
        made().domain(schema)
    assert refused.value.do == instead
