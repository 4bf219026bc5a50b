"""What does not fit a declaration: each count is that of a loop over the rows, on every engine."""

import copy
from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import pyarrow
import pytest

from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from sitr.tables.lines import LeftOut
from sitr.tables.misfits import ColumnMisfits, LostKey, UnitMisfits, misfits
from sitr.tables.spark import Spark
from tests.tables import engines

REGIONS = ["north", "south"]
CODES = [f"code {number}" for number in range(2000)]  # more than are written out
VISITS = {
    "unit": "who",
    "max_rows_per_unit": 2,
    "columns": {
        "who": {"type": "integer"},
        "id": {"type": "integer"},
        "region": {"type": "string", "categories": REGIONS},
        "code": {"type": "string", "categories": CODES},
        "kind": {"type": "integer", "categories": [1, 2]},
        "age": {"type": "integer", "bounds": [0, 120]},
        "small": {"type": "int8"},
        "cost": {"type": "float", "bounds": [0.1, 1000]},
        "paid": {"type": "decimal(10, 2)", "bounds": [0, 99.99]},
        "day": {"type": "date", "bounds": [date(2025, 1, 1), date(2025, 12, 31)]},
        "at": {"type": "timestamp", "bounds": [datetime(2025, 1, 1), datetime(2025, 12, 31, 12)]},
        "urgent": {"type": "boolean"},
    },
}
TESTS = {
    "unit": {"through": "visits", "on": {"visit": "id"}},
    "max_rows_per_unit": 2,
    "columns": {"visit": {"type": "integer"}, "level": {"type": "float"}},
}
OFFICES = {"public": True, "key": "region", "columns": {"region": {"type": "string"}, "beds": {"type": "int16"}}}
DECLARED = {"privacy": {"unit": "patient"}, "tables": {"visits": VISITS, "tests": TESTS, "offices": OFFICES}}
NAN = float("nan")


def visits():
    """Of patient 1 there are four rows, of 2 three, of 3 one; two rows name nobody."""
    who = [1, 1, 1, 1, 2, 2, 2, 3, None, None]
    moments = [datetime(2025, 1, 1), datetime(2024, 12, 31, 23, 59, 59), datetime(2025, 12, 31, 12), None]
    return pyarrow.table(
        {
            "who": pyarrow.array(who, "int64"),
            "id": pyarrow.array(range(10), "int64"),
            "region": ["north", "south", "nroth", "North", None, "north", "", "south", "east", "south"],
            "code": ["code 0", "code 1999", "code 2000", None, *CODES[:6]],
            "kind": pyarrow.array([1, 2, 3, None, 1, 1, 1, 1, -1, 2**40], "int64"),
            "age": pyarrow.array([0, 120, 121, -1, None, 5, 5, 5, 5, 2**40], "int64"),
            "small": pyarrow.array([127, 128, -128, -129, None, 0, 0, 0, 0, 0], "int64"),
            "cost": [0.1, 1000.0, 0.05, 1000.1, None, NAN, float("inf"), 5.0, 5.0, 5.0],
            "paid": pyarrow.array([Decimal(cents) / 100 for cents in (0, 9999, 10000, -1, 5, 5, 5, 5, 5, 5)]),
            "day": [
                date(2025, 1, 1),
                date(2025, 12, 31),
                date(2026, 1, 1),
                date(2024, 12, 31),
                None,
                *[date(2025, 5, 5)] * 5,
            ],
            "at": pyarrow.array([*moments, datetime(2025, 12, 31, 12, 0, 1), *[moments[0]] * 5], "timestamp[us]"),
            "urgent": [True, False, None, *[True] * 7],
        }
    )


def rows():
    """Tests of visits 0, 4 and 8 (of nobody), of one that is nowhere, and of none."""
    tests = {"visit": pyarrow.array([0, 0, 0, 4, 8, 99, 99, None], "int64"), "level": [1.0] * 8}
    offices = {"region": ["north", "south", "south", "west"], "beds": pyarrow.array([1, 2, 3, 4], "int16")}
    return {"visits": visits(), "tests": pyarrow.table(tests), "offices": pyarrow.table(offices)}


def test_the_counts_are_those_of_the_rows_on_every_engine(engine):
    with engines.asked(engine, rows(), DECLARED) as database:
        tables = database.declared.tables
        found = misfits(database.source, tables["visits"])
        assert (found.rows, found.left_out, found.repeated, found.uncounted) == (10, None, None, False)
        assert found.units == UnitMisfits(units=3, nameless=2, over=2, rows_over=3)
        assert dict(found.columns) == {
            "who": ColumnMisfits(2),
            "id": ColumnMisfits(0),
            "region": ColumnMisfits(1, outside_categories=4),
            "code": ColumnMisfits(1, outside_categories=1),
            "kind": ColumnMisfits(1, outside_categories=3),
            "age": ColumnMisfits(1, outside_bounds=3),
            "small": ColumnMisfits(1, outside_bounds=2),
            "cost": ColumnMisfits(2, outside_bounds=3),  # NaN is missing, and infinity is beyond every bound
            "paid": ColumnMisfits(0, outside_bounds=2),
            "day": ColumnMisfits(1, outside_bounds=2),
            "at": ColumnMisfits(1, outside_bounds=2),
            "urgent": ColumnMisfits(1),
        }
        assert found.lost_keys == (LostKey("offices", (("region", "region"),), 4),)
        found = misfits(database.source, tables["tests"])
        assert (found.rows, found.lost_keys) == (8, (LostKey("visits", (("visit", "id"),), 3),))  # one is of nobody's
        assert found.units == UnitMisfits(units=2, nameless=1, over=1, rows_over=1)
        found = misfits(database.source, tables["offices"])
        assert (found.rows, found.units, found.repeated, found.lost_keys) == (4, None, 1, ())


def test_the_group_of_all_others_holds_what_is_not_declared():
    kept = copy.deepcopy(DECLARED)
    kept["tables"]["visits"]["columns"]["region"]["others"] = "group"
    found = []
    for content in (DECLARED, kept):
        with engines.asked("duckdb", rows(), content) as database:
            one = misfits(database.source, database.declared.tables["visits"])
            found.append((one.rows, one.columns, one.units, one.lost_keys))
    assert found[0] == found[1]


def test_tables_without_rows_and_with_rows_as_units(engine):
    answers = {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 1], "categories": [0, 1]}}}
    empty = pyarrow.table({"x": pyarrow.array([], "int64")})
    with engines.asked(engine, {"answers": empty}, {"tables": {"answers": answers}}) as database:
        found = misfits(database.source, database.declared.tables["answers"])
    assert (found.rows, found.units, dict(found.columns)) == (0, None, {"x": ColumnMisfits(0, None, 0, 0)})


# Text files

MESSY = [
    b"1,north,34,1.5,2025-03-01,fine",
    b"1,north,34.0, 2 ,2025-03-01,",
    b"2,nroth,n/a,\xe2\x82\xac120,15/08/2025,\xff\xfe",
    b"2,,-5,,,",
    b'x,south,thirty,1e3,2025-02-30,"a, b"',
    b"3,south,  ,5000,2025-01-01T10:00,ok",
    b'3,south,40,1,2025-01-01,"begins here',
    b'and ends here"',
    b"",
    b"who,region,age,cost,day,note",
    b",south,40,1,2025-01-01,who?",
    b"4,south,1_0,0x1,2025-1-1," + b"long " * 300,
    b"4,south," + b"7" * 1001 + b",1,2025-01-01,ok",
    b"5,south,40,1,2025-01-01," + b"a" * 2**20,
]
TEXTS = {
    "who": {"type": "integer"},
    "region": {"type": "string", "categories": REGIONS},
    "age": {"type": "integer", "bounds": [0, 120]},
    "cost": {"type": "float", "bounds": [0, 1000]},
    "day": {"type": "date", "bounds": [date(2025, 1, 1), date(2025, 12, 31)]},
    "note": {"type": "string"},
}
COUNTED = {
    "who": ColumnMisfits(2, 1),
    "region": ColumnMisfits(1, 0, outside_categories=1),
    "age": ColumnMisfits(5, 4, outside_bounds=1),  # blanks are an empty cell
    "cost": ColumnMisfits(3, 2, outside_bounds=1),
    "day": ColumnMisfits(4, 3, outside_bounds=0),
    "note": ColumnMisfits(3, 1),
}


def of_text(folder, engine):
    (folder / "visits.csv").write_bytes(b"\n".join([b"who,region,age,cost,day,note", *MESSY]) + b"\n")
    table = {"source": "visits.csv", "unit": "who", "max_rows_per_unit": 1, "columns": TEXTS}
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"visits": table}}, folder)
    source = engine(declared)
    try:
        return misfits(source, declared.tables["visits"])
    finally:
        source.close()


def test_cells_and_lines_of_a_text_file(tmp_path):
    found = of_text(tmp_path, DuckDB)
    assert dict(found.columns) == COUNTED
    assert found.left_out == LeftOut(too_long=1, heads=1, quotes=2)
    assert (found.rows, found.uncounted) == (9, False)
    assert found.units == UnitMisfits(units=4, nameless=2, over=3, rows_over=3)


@pytest.mark.xdist_group("spark")
def test_spark_counts_the_same_of_a_text_file(tmp_path):
    if reason := engines.missing("spark"):
        pytest.skip(reason)
    assert of_text(tmp_path, Spark) == of_text(tmp_path, DuckDB)


def test_a_check_does_not_change_what_is_read_afterwards(tmp_path):
    (tmp_path / "visits.csv").write_bytes(b"who,note\n1,fine\n2,\xff\n")
    columns = {"who": {"type": "integer"}, "note": {"type": "string"}}
    table = {"source": "visits.csv", "unit": "who", "max_rows_per_unit": 1, "columns": columns}
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"visits": table}}, tmp_path)
    source = DuckDB(declared)
    try:
        assert misfits(source, declared.tables["visits"]).columns["note"] == ColumnMisfits(1, 1)
        read = source.fetch(source.statement(source.table(declared.tables["visits"]))).to_pylist()
        assert Counter(row["note"] for row in read) == Counter(["fine", None])
    finally:
        source.close()
