"""What engines say in words of their own, and what they say alike."""

import ibis
import pytest

from sitr.tables.dialect import Dialect, type_of

TABLE = ibis.table({"at": "timestamp('UTC')", "seen": "timestamp", "name": "string", "n": "int64"}, name="t")


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("boolean", "boolean"),
        ("string", "string"),
        ("date", "date"),
        ("timestamp", "timestamp"),
        ("float", "float64"),
        ("integer", "int64"),
        ("uint8", "int64"),
        ("int16", "int64"),
        ("decimal(10, 2)", "decimal(10, 2)"),
    ],
)
def test_a_declared_type_has_a_name_that_ibis_knows(declared, named):
    assert type_of(declared) == named
    assert ibis.dtype(type_of(declared)) is not None


def test_only_a_moment_with_a_zone_is_moved_to_the_wall():
    seen = TABLE.seen
    assert Dialect().local(seen, "Asia/Riyadh") is seen
    moved = Dialect().local(TABLE.at, "Asia/Riyadh")
    assert moved.type() == ibis.dtype("timestamp")
    assert "timezone" in str(ibis.to_sql(TABLE.select(x=moved), dialect="duckdb")).lower()


def test_a_sum_is_as_wide_as_any_sum_of_numbers_is():
    assert str(Dialect().total(TABLE.n).type()) == "decimal(38, 0)"


def test_texts_are_compared_as_they_are_and_public_ones_are_written_out():
    name = TABLE.name
    assert Dialect().text(name) is name
    assert Dialect().places(("a", "b")) is None
    with pytest.raises(NotImplementedError):
        Dialect().listed((1, 2), None)
