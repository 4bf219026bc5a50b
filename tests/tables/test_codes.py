"""Values become numbers and values again, whatever an engine holds."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.codes import Code, Coded
from sitr.tables.crosstab import Crosstab
from sitr.tables.domains import Domain
from sitr.tables.relations import Scan
from sitr.tables.tally import Bound
from tests.tables import engines

DAY = date(2020, 1, 1)
ROWS = 400
DECLARED = {
    "tables": {
        "visits": {
            "unit": "who",
            "max_rows_per_unit": 3,
            "columns": {
                "who": {"type": "integer"},
                "age": {"type": "integer", "bounds": [0, 99], "nulls": "drop"},
                "cost": {"type": "float", "bounds": [-10, 50]},
                "price": {"type": "decimal(8, 2)", "bounds": [0, 20]},
                "day": {"type": "date", "bounds": [DAY, DAY + timedelta(days=30)]},
                "at": {"type": "timestamp", "bounds": [datetime(2020, 1, 1), datetime(2020, 1, 2)]},
                "smokes": {"type": "boolean"},
                "region": {"type": "string", "categories": ["north", "südlich"]},
                "ward": {"type": "string", "categories": ["a", "b"], "nulls": "drop"},
                "kind": {"type": "integer", "categories": [3, 1, 2]},
            },
        }
    }
}
COLUMNS = tuple(DECLARED["tables"]["visits"]["columns"])[1:]


def visits(seed=1):
    """Rows with everything that a column may hold, in bounds and beyond them."""
    rng = np.random.default_rng(seed)

    def some(values):
        return [values[place] for place in rng.integers(0, len(values), ROWS)]

    return pyarrow.table(
        {
            "who": pyarrow.array([*range(ROWS // 2), *range(ROWS // 2)]),
            "age": pyarrow.array(some([0, 1, 50, 99, 120, -3, None]), pyarrow.int64()),
            "cost": pyarrow.array(some([0.0, 49.99, 1e300, -1e300, 3.3, float("nan"), None]), pyarrow.float64()),
            "price": pyarrow.array(some([Decimal("0.00"), Decimal("19.99"), Decimal("30.00"), None])),
            "day": pyarrow.array(some([DAY, DAY + timedelta(days=7), date(1999, 1, 1), None])),
            "at": pyarrow.array(some([datetime(2020, 1, 1, 12, 30), datetime(2021, 1, 1), None])),
            "smokes": pyarrow.array(some([True, False, None])),
            "region": pyarrow.array(some(["north", "südlich", "elsewhere", "", None])),
            "ward": pyarrow.array(some(["a", "b", "c", None])),
            "kind": pyarrow.array(some([1, 2, 3, 4, None]), pyarrow.int64()),
        }
    )


def codes_of(declared, columns=COLUMNS, cells=20):
    schema = Scan("visits").schema(declared)
    return tuple(Code.of(name, schema[name], cells) for name in columns)


def by_hand(code, value):
    """The number of a value, in fractions: None where its row is left out."""
    if value is None or value != value:
        return code.known if code.nulls else None
    if code.grid is None:
        return code.values.index(value) if value in code.values else code.known if code.nulls else None
    low, high = code.grid.span
    exact = code.domain.measure(value) if abs(code.domain.measure(value)) < 10**20 else Fraction(value)
    clipped = min(max(exact, low * code.grid.step), high * code.grid.step)
    return int((clipped / code.grid.step + Fraction(1, 2)).__floor__()) - low


def test_every_engine_numbers_rows_as_they_are_numbered_by_hand(engine):
    table = visits()
    with engines.asked(engine, {"visits": table}, DECLARED) as database:
        codes = codes_of(database.declared)
        groups = (*((place,) for place in range(len(codes))), (0, 6), (1, 7))
        crosstab = Crosstab(tuple(code.coder() for code in codes), groups)
        coded = Coded(Scan("visits"), codes, Bound(rows=3))
        database.source.rehearse(coded)
        found = database.source.count(coded, crosstab)
    rows = [[by_hand(code, row[code.name]) for code in codes] for row in table.to_pylist()]
    rows = [row for row in rows if None not in row]
    assert 50 < len(rows) < ROWS
    for counts, group in zip(found, groups, strict=True):
        expected = np.zeros(counts.shape, dtype=int)
        for row in rows:
            expected[tuple(row[column] for column in group)] += 1
        assert counts.tolist() == expected.tolist()


def test_no_more_rows_of_a_unit_are_counted_than_its_bound(engine):
    table = visits()
    with engines.asked(engine, {"visits": table.set_column(0, "who", pyarrow.array([7] * ROWS))}, DECLARED) as database:
        codes = codes_of(database.declared, ("smokes", "region"))
        crosstab = Crosstab(tuple(code.coder() for code in codes), ((0,), (1,), (0, 1)))
        found = database.source.count(Coded(Scan("visits"), codes, Bound(rows=2)), crosstab)
    assert [int(counts.sum()) for counts in found] == [2, 2, 2]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_come_back_as_the_types_they_came_in_and_in_their_cells(name):
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        (code,) = codes_of(database.declared, (name,))
    numbers = np.arange(code.size).repeat(50)
    values = code.values_of(numbers, np.random.default_rng(1))
    expected = visits().schema.field(name).type
    same_kind = values.type == expected or pyarrow.types.is_decimal(values.type) == pyarrow.types.is_decimal(expected)
    assert same_kind
    assert [by_hand(code, value) for value in values.to_pylist()] == numbers.tolist()
    assert (values.null_count > 0) == code.nulls


@given(
    st.integers(-1000, 1000),
    st.integers(1, 5000),
    st.integers(2, 300),
    st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(5), Fraction(1, 8)]),
    st.booleans(),
)
def test_a_value_that_is_drawn_from_a_cell_is_numbered_as_that_cell_and_within_bounds(low, width, cells, step, float_):
    domain = Domain("number", step, low, low + width, float=float_, required=True)
    try:
        code = Code.of("x", domain, cells)
    except InvalidArgument:  # no two cells between the bounds
        return
    assert code.size <= cells + 2
    numbers = np.arange(code.size).repeat(3)
    values = code.values_of(numbers, np.random.default_rng(1)).to_pylist()
    exact = [Fraction(value) for value in values]
    assert all(domain.ends[0] <= value <= domain.ends[1] for value in exact)
    found = [int((value / code.grid.step + Fraction(1, 2)).__floor__()) - code.grid.span[0] for value in exact]
    assert np.clip(found, 0, code.size - 1).tolist() == numbers.tolist()
    if not float_:
        assert all((value / step).denominator == 1 for value in exact)


def test_a_code_can_be_written_down():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        for code in codes_of(database.declared):
            again = Code.from_dict(code.to_dict())
            assert again.to_dict() == code.to_dict()
            assert (again.size, again.values, again.nulls) == (code.size, code.values, code.nulls)


def test_a_number_without_bounds_is_refused():
    with pytest.raises(InvalidArgument, match="x: the values have no bounds") as refused:
        Code.of("x", Domain("number"))
    assert "declare bounds" in refused.value.do


TEXTS = ["1.00", "5.00", "90071992547409931.00", "9223372036854775807.00", "9" * 36 + ".99", "-" + "9" * 36 + ".99"]
DECIMALS = pyarrow.array([*map(Decimal, TEXTS), None], pyarrow.decimal128(38, 2))
FLOATS = pyarrow.array([1.0, 5.0, math.inf, -math.inf, math.nan, 1e300, None])


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
@pytest.mark.parametrize("nulls", ["skip", "drop"])
@pytest.mark.parametrize("values", [DECIMALS, FLOATS], ids=["decimals", "floats"])
def test_no_value_of_a_decimal_with_categories_fails(engine, nulls, values):
    """What a double or 64 bits cannot hold is not listed: a release that fails on a single row would tell of it."""
    column = {"type": "decimal(38, 2)", "categories": [1, 5], "nulls": nulls}
    declared = {"tables": {"sales": {"unit": "row", "columns": {"price": column}}}}
    with engines.asked(engine, {"sales": pyarrow.table({"price": values})}, declared) as database:
        code = Code.of("price", database.declared.tables["sales"].schema["price"])
        counted = database.source.count(Coded(Scan("sales"), (code,), None), Crosstab((code.coder(),), ((0,),)))
    assert counted[0].tolist() == ([1, 1, 5] if nulls == "skip" else [1, 1])


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_in_memory_are_numbered_as_by_hand(name):
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        (code,) = codes_of(database.declared, (name,))
    column = visits().column(name).combine_chunks()
    expected = [by_hand(code, value) for value in column.to_pylist()]
    assert code.numbers_of(column).tolist() == [code.known if one is None else one for one in expected]


@pytest.mark.parametrize(
    ("name", "values", "cells"),
    [
        ("price", [Decimal(cents) / 100 for cents in range(501)], 20),
        ("price", [Decimal(cents) / 100 for cents in range(501)], 34),
        ("age", list(range(100)), 17),
        ("age", list(range(100)), 10),
        ("cost", [float(one) for one in np.linspace(-10, 50, 961)], 20),
        ("day", [DAY + timedelta(days=one) for one in range(31)], 6),
        ("at", [datetime(2020, 1, 1) + timedelta(minutes=30 * one, microseconds=3) for one in range(48)], 24),
    ],
)
def test_a_range_that_cuts_no_cell_counts_what_is_in_it(name, values, cells):
    """As DuckDB counts, whose doubles put a value on the border of two cells on either side."""
    columns = {one: [visits()[one][0].as_py()] * len(values) for one in visits().column_names}
    columns |= {name: values, "who": range(len(values)), "age": [5] * len(values), "ward": ["a"] * len(values)}
    table = pyarrow.table(columns | {name: values}, schema=visits().schema)
    with engines.asked("duckdb", {"visits": table}, DECLARED) as database:
        (code,) = codes_of(database.declared, (name,), cells)
        coded = Coded(Scan("visits"), (code,), Bound(rows=1))
        (counts,) = database.source.count(coded, Crosstab((code.coder(),), ((0,),)))
    exact = [code.domain.measure(value) for value in values]
    wanted = [(code.domain.ends[0], end) for end in exact] + [(end, code.domain.ends[1]) for end in exact]
    whole = 0
    for low, high in wanted:
        mask = code.whole((low, high))
        if mask is not None:
            whole += 1
            assert counts[mask].sum() == sum(low <= value <= high for value in exact)
        assert code.parts((low, high))[~code.allowed((low, high))[0]].max(initial=0) == 0
    assert whole >= (3 if name == "cost" else code.known // 4)


def test_values_beside_each_other():
    age, cost = (Code.of("x", Domain("number", lower=0, upper=99, float=one)) for one in (False, True))
    assert (age.beside(Fraction(7), 1), age.beside(Fraction(15, 2), -1), age.beside(Fraction(15, 2), 1)) == (8, 7, 8)
    assert float(cost.beside(Fraction(8), -1)) < 8 == float(cost.beside(cost.beside(Fraction(8), -1), 1))


@pytest.mark.parametrize(("low", "width"), [(0, 19_600), (-7, 19_600), (0, 1000), (10**17, 10**14), (0, 20_600)])
def test_the_ends_of_cells_are_where_rows_change_their_number(low, width):
    """Steps of 98 among them: 147 / 98 is under 1.5 in doubles, so that 147 is in the cell before its exact one."""
    code = Code.of("x", Domain("number", lower=low, upper=low + width, required=True))
    first, last = code.cell_ends()
    assert first[0] == low
    assert last[-1] == low + width
    assert [one + 1 for one in last[:-1]] == first[1:]
    numbers = range(code.known)
    assert [code.numbers_of(pyarrow.array(ends)).tolist() for ends in (first, last)] == [list(numbers)] * 2
    for cell in numbers[:: max(code.known // 20, 1)]:
        assert code.cells_within(first[cell], last[cell]) == (range(cell, cell + 1),) * 2
        if cell > 0:
            assert code.cells_within(first[cell] - 1, last[cell]) == (range(cell - 1, cell + 1), range(cell, cell + 1))


def test_147_is_where_the_engine_counts_it():
    content = {"tables": {"sums": {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 19_600]}}}}}
    with engines.asked("duckdb", {"sums": pyarrow.table({"x": [146, 147, 148]})}, content) as database:
        code = Code.of("x", database.table("sums").relation.schema(database.declared)["x"])
        counted = database.source.count(Coded(Scan("sums"), (code,), None), Crosstab((code.coder(),), ((0,),)))
    assert counted[0][:4].tolist() == [0, 2, 1, 0]
    assert code.cell_texts()[1:3] == ["49 to 147", "148 to 244"]
    assert code.cells_within(0, 146) == (range(0, 2), range(0, 1))
