"""Frames and Parquet files: what Arrow holds and DuckDB would fail on is missing in its own row."""

import uuid
from datetime import UTC, datetime

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sitr
from sitr.errors import InvalidDeclaration
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from tests.tables import engines

BROKEN = pyarrow.Array.from_buffers(
    pyarrow.string(),
    3,
    [None, pyarrow.py_buffer(numpy.array([0, 1, 3, 4], numpy.int32)), pyarrow.py_buffer(b"a\xff\xfeb")],
)
TEXT = {"t": {"type": "string"}}
TIME = {"t": {"type": "timestamp"}}


def database(tmp_path, table, columns, kind):
    """The same rows as a frame, or in a Parquet file."""
    content = {
        "sitr": 1,
        "name": "d",
        "tables": {"rows": {"unit": "row", "source": "rows.parquet", "columns": columns}},
        "budgets": {"d": {"epsilon": 100.0, "delta": 1e-3}},
    }
    if kind == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    frames = {"rows": table} if kind == "frame" else None
    return opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="amina", frames=frames)


def cells(tmp_path, array, columns, kind="frame"):
    with database(tmp_path, pyarrow.table({"t": array}), columns, kind) as one:
        table = one.source.table(one.declared.tables["rows"])
        return one.source.fetch(one.source.statement(table)).column("t").to_pylist()


KINDS = pytest.mark.parametrize("kind", ["frame", "parquet"])
TEXTS = [
    pyarrow.string(),
    pyarrow.large_string(),
    pyarrow.string_view(),
    pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
]


@KINDS
@pytest.mark.parametrize("type_", TEXTS, ids=str)
def test_a_text_that_is_no_utf8_is_missing(tmp_path, type_, kind):
    array = BROKEN.dictionary_encode() if pyarrow.types.is_dictionary(type_) else BROKEN.cast(type_)
    assert cells(tmp_path, array, TEXT, kind) == ["a", None, "b"]


@KINDS
def test_a_key_that_is_no_utf8_is_not_found(tmp_path, kind):
    table = pyarrow.table({"t": pyarrow.chunked_array([BROKEN] * 50)})
    with database(tmp_path, table, TEXT, kind) as one:
        found = one.table("rows").group_by("t").aggregate(n=sitr.count()).release(epsilon=20.0, delta=1e-6)
        assert found.value["t"] == ["a", "b"]


@pytest.mark.xdist_group("spark")
def test_a_key_that_is_no_utf8_is_not_found_by_spark():
    table = pyarrow.table({"t": pyarrow.chunked_array([BROKEN] * 50)})
    content = {"tables": {"rows": {"unit": "row", "columns": TEXT}}}
    with engines.asked("spark", {"rows": table}, content) as one:
        found = one.table("rows").group_by("t").aggregate(n=sitr.count()).release(epsilon=20.0, delta=1e-6)
        assert found.value["t"] == ["a", "b"]


@KINDS
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Riyadh"])
@pytest.mark.parametrize(("unit", "second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_a_time_that_does_not_fit_is_missing(tmp_path, kind, unit, second, zone):
    far = 2**53 if unit == "s" else 2**63 - 10  # seconds are milliseconds in Parquet
    moments = pyarrow.array([10**9 * second, far, -far, None], pyarrow.timestamp(unit, zone))
    with database(tmp_path, pyarrow.table({"t": moments}), TIME, kind) as one:
        rows = one.table("rows")
        counted = rows.derive(y=rows["t"].part("year")).aggregate(n=sitr.count("y")).release(epsilon=40.0)
        assert counted.value["n"] == [3 if unit == "ns" else 1]
        table = one.source.table(one.declared.tables["rows"])
        first = one.source.fetch(one.source.statement(table.limit(1))).column("t").to_pylist()[0]
    assert first == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC if zone else None)


@KINDS
def test_an_id_of_16_bytes_is_a_text(tmp_path, kind):
    one = uuid.UUID(int=2**127 + 5)
    array = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), pyarrow.array([one.bytes, None], pyarrow.binary(16)))
    assert cells(tmp_path, array, TEXT, kind) == [str(one), None]


@KINDS
def test_columns_that_are_not_declared_are_not_touched(tmp_path, kind):
    table = pyarrow.table({"t": ["a"], "other": pyarrow.array([[{"deep": 1}]])})
    with database(tmp_path, table, TEXT, kind) as one:
        assert one.source.table(one.declared.tables["rows"]).columns == ("t",)


@KINDS
def test_a_table_without_the_declared_columns(tmp_path, kind):
    with pytest.raises(InvalidDeclaration, match=r"columns.t: the table has no such column"):
        database(tmp_path, pyarrow.table({"other": [1]}), TEXT, kind)


def test_an_old_kind_of_time_in_parquet(tmp_path):
    table = pyarrow.table({"t": pyarrow.array([10**15, 2**62], pyarrow.timestamp("us"))})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)
    content = {"sitr": 1, "name": "d", "tables": {"rows": {"unit": "row", "source": "rows.parquet", "columns": TIME}}}
    declared = Declaration.of(content | {"budgets": {"d": {"epsilon": 100.0}}}, tmp_path)
    with opened(declared, ledger="memory://", analyst="amina") as one:
        rows = one.table("rows")
        assert rows.aggregate(n=sitr.count("t")).release(epsilon=40.0).value["n"] == [1]


@pytest.mark.parametrize("kind", [pyarrow.int8(), pyarrow.int16(), pyarrow.int64()])
def test_a_dictionary_whose_places_may_run_out_is_refused_by_its_type(tmp_path, kind):
    """The 129th text of a group of rows has no place in 8 bits: one row would make a release fail."""
    names = pyarrow.array(["a", "b"]).cast(pyarrow.dictionary(kind, pyarrow.string()))
    with pytest.raises(InvalidDeclaration, match="kept as a dictionary with places of"):
        database(tmp_path, pyarrow.table({"t": names}), TEXT, "parquet")
    assert cells(tmp_path, names, TEXT) == ["a", "b"]


@pytest.mark.parametrize("kind", [pyarrow.int32(), pyarrow.uint32()])
def test_a_dictionary_with_room_is_read(tmp_path, kind):
    names = pyarrow.array(["a", "b"]).cast(pyarrow.dictionary(kind, pyarrow.string()))
    assert cells(tmp_path, names, TEXT, "parquet") == ["a", "b"]


@KINDS
def test_what_is_no_plain_value_is_refused_by_its_type(tmp_path, kind):
    rows = pyarrow.array([["a"], ["b"]])
    with pytest.raises(InvalidDeclaration, match="it is kept as list"):
        database(tmp_path, pyarrow.table({"t": rows}), TEXT, kind)


def test_runs_of_a_text_are_refused_by_their_type(tmp_path):
    runs = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 3], pyarrow.int32()), pyarrow.array(["a", "b"]))
    with pytest.raises(InvalidDeclaration, match="it is kept as run_end_encoded"):
        database(tmp_path, pyarrow.table({"t": runs}), TEXT, "frame")


def test_a_file_that_was_replaced_by_one_with_other_columns_is_refused_before_the_charge(tmp_path):
    columns = {"t": {"type": "integer", "bounds": [0, 10]}}
    with database(tmp_path, pyarrow.table({"t": pyarrow.array([1, 2], pyarrow.int32())}), columns, "parquet") as one:
        question = one.table("rows").aggregate(n=sitr.count())
        question.release(epsilon=1.0)
        spent = one.ledger.spent("d").value
        pyarrow.parquet.write_table(pyarrow.table({"t": [2**40]}), tmp_path / "rows.parquet")
        with pytest.raises(InvalidDeclaration, match=r"rows.parquet is another file than it was"):
            question.release(epsilon=1.0)
        assert one.ledger.spent("d").value == spent


ALIKE = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bool": st.booleans(),
    "date32": st.dates(),
    "string": st.text(),
    "large_string": st.text(),
}
KIND_OF = {"uint64": "integer", "int8": "int8", "int64": "integer", "bool": "boolean", "date32": "date"}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_both_readers_of_parquet_make_the_same_of_every_value(tmp_path_factory, data):
    """So it does not matter which of them read a row."""
    rows = data.draw(st.integers(1, 6))
    drawn = {
        name: data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)) for name, values in ALIKE.items()
    }
    table = {name: pyarrow.array(values, pyarrow.type_for_alias(name)) for name, values in drawn.items()}
    kinds = {name: {"type": KIND_OF.get(name, "string" if "string" in name else "float")} for name in ALIKE}
    content = {"sitr": 1, "name": "d", "tables": {"rows": {"unit": "row", "source": "rows.parquet", "columns": kinds}}}
    folder = tmp_path_factory.mktemp("alike")
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "rows.parquet", row_group_size=2)
    source = DuckDB(Declaration.of(content, folder))
    asked = source.table(source.declared.tables["rows"])
    own = source.fetch(source.statement(asked))
    assert source._careful
    for name, text in source._careful.items():
        source._named(name, text)
    careful = source.fetch(source.statement(asked))
    source.close()
    assert own.schema == careful.schema
    assert repr(own.to_pylist()) == repr(careful.to_pylist())  # by their text, in which NaN is NaN


def test_a_text_that_is_no_utf8_is_read_by_the_careful_way(tmp_path):
    table = pyarrow.table({"t": pyarrow.chunked_array([BROKEN] * 40)})
    with database(tmp_path, table, TEXT, "parquet") as one:
        assert one.source._careful
        answer = one.table("rows").group_by("t").aggregate(n=sitr.count()).release(epsilon=20.0, delta=1e-4)
        assert answer.value["t"] == ["a", "b"]
        assert not one.source._careful


@pytest.mark.parametrize("name", ["g[1].parquet", "g?.parquet"])
def test_the_name_of_a_file_is_no_pattern_to_the_engine(tmp_path, name):
    """`g[1].parquet` would be `g1.parquet`, which nobody declared."""
    for other, texts in (("g1.parquet", ["other"] * 5), (name, ["this"])):
        pyarrow.parquet.write_table(pyarrow.table({"t": texts}), tmp_path / other)
    table = {"unit": "row", "source": name, "columns": TEXT}
    source = DuckDB(Declaration.of({"sitr": 1, "name": "d", "tables": {"rows": table}}, tmp_path))
    assert source.fetch(source.statement(source.table(source.declared.tables["rows"]))).to_pylist() == [{"t": "this"}]
    source.close()


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", None])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_text_is_looked_at_alone_whatever_its_page_holds(tmp_path, encoding, version):
    """DuckDB looks for UTF-8 in all texts of some pages together: two halves of a letter would pass, and one not."""
    halves = pyarrow.Array.from_buffers(
        pyarrow.string(),
        3,
        [None, pyarrow.py_buffer(numpy.array([0, 1, 2, 3], numpy.int32)), pyarrow.py_buffer(b"\xc3\xa9a")],
    )
    encoded = {"use_dictionary": False, "column_encoding": {"t": encoding}} if encoding else {}
    encoded["data_page_version"] = version
    pyarrow.parquet.write_table(pyarrow.table({"t": halves}), tmp_path / "rows.parquet", **encoded)
    table = {"unit": "row", "source": "rows.parquet", "columns": TEXT}
    source = DuckDB(Declaration.of({"sitr": 1, "name": "d", "tables": {"rows": table}}, tmp_path))
    found = source.fetch(source.statement(source.table(source.declared.tables["rows"]))).column("t").to_pylist()
    assert found == [None, None, "a"]
    assert bool(source._careful) == (encoding == "DELTA_LENGTH_BYTE_ARRAY")  # else DuckDB itself found one
    source.close()


def test_numbers_are_read_whatever_their_encoding(tmp_path):
    encoded = {"n": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT"}
    rows = pyarrow.table({"n": [1, 2], "x": [0.5, 1.5], "t": ["a", "b"]})
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet", use_dictionary=False, column_encoding=encoded)
    columns = {"n": {"type": "integer"}, "x": {"type": "float"}, **TEXT}
    table = {"unit": "row", "source": "rows.parquet", "columns": columns}
    source = DuckDB(Declaration.of({"sitr": 1, "name": "d", "tables": {"rows": table}}, tmp_path))
    assert source.fetch(source.statement(source.table(source.declared.tables["rows"]))).equals(rows)
    source.close()


def test_columns_that_differ_by_case_are_read_under_their_own_names(tmp_path):
    rows = {"Who": [7], "who": [8], "who_1": [9]}
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "rows.parquet")
    table = {"unit": "row", "source": "rows.parquet", "columns": {"who_1": {"type": "integer"}}}
    source = DuckDB(Declaration.of({"sitr": 1, "name": "d", "tables": {"rows": table}}, tmp_path))
    assert source.fetch(source.statement(source.table(source.declared.tables["rows"]))).to_pylist() == [{"who_1": 9}]
    source.close()


def test_a_file_that_was_replaced_is_refused_even_if_its_columns_are_the_same(tmp_path):
    with database(tmp_path, pyarrow.table({"t": ["a"] * 10}), TEXT, "parquet") as one:
        question = one.table("rows").aggregate(n=sitr.count())
        question.release(epsilon=1.0)
        pyarrow.parquet.write_table(pyarrow.table({"t": ["a"] * 500}), tmp_path / "rows.parquet")
        with pytest.raises(InvalidDeclaration, match=r"rows.parquet is another file than it was"):
            question.release(epsilon=1.0)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_a_file_that_was_replaced_is_refused_on_spark_too(tmp_path, monkeypatch, name):
    if reason := engines.missing("spark"):
        pytest.skip(reason)
    monkeypatch.setattr("sitr.tables.conformance.require", lambda source: None)

    def write(rows):
        if name.endswith("parquet"):
            pyarrow.parquet.write_table(pyarrow.table({"t": ["a"] * rows}), tmp_path / name)
        else:
            (tmp_path / name).write_text("t\n" + "a\n" * rows)

    write(10)
    table = {"unit": "row", "source": name, "columns": TEXT}
    content = {"sitr": 1, "name": "d", "connection": {"engine": "spark"}, "tables": {"rows": table}}
    content["budgets"] = {"d": {"epsilon": 100.0}}
    with opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="amina") as one:
        question = one.table("rows").aggregate(n=sitr.count())
        question.release(epsilon=1.0)
        spent = one.ledger.spent("d").value
        write(500)
        with pytest.raises(InvalidDeclaration, match=rf"{name} is another file than it was"):
            question.release(epsilon=1.0)
        (tmp_path / name).unlink()
        with pytest.raises(InvalidDeclaration, match=rf"{name} is another file than it was"):
            question.release(epsilon=1.0)
        assert one.ledger.spent("d").value == spent


def lying(tmp_path, values, here, gone):
    """A file that says of its values that all of them lie elsewhere: what it says at its end is changed."""
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"t": values}), path)
    content = path.read_bytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert here in content[end:]
    path.write_bytes(content[:end] + content[end:].replace(here, gone))


@pytest.mark.parametrize("engine", ["duckdb", "careful", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
@pytest.mark.parametrize("value", ["sitr here", int.from_bytes(b"sitr\x05", "little")], ids=["text", "number"])
def test_what_a_file_says_of_its_values_is_not_believed(tmp_path, monkeypatch, engine, value):
    """Engines would leave out the part of a file that, by what it says, has nothing that is asked for; or a clip."""
    if engine == "careful":
        monkeypatch.setattr("sitr.tables.duckdb.read_alike", lambda kind: False)
    text = isinstance(value, str)
    other = "other" if text else value + 1
    here = value.encode() if text else value.to_bytes(8, "little")
    lying(tmp_path, [value] * 5000, here, here.replace(b"sitr", b"gone"))
    rest = {"categories": [value, other]} if text else {"bounds": [0, 2**40]}
    columns = {"t": {"type": "string" if text else "int64", **rest}}
    content = {
        "sitr": 1,
        "name": "d",
        "connection": {"engine": "spark" if engine == "spark" else "duckdb"},
        "tables": {"rows": {"unit": "row", "source": "rows.parquet", "columns": columns}},
        "budgets": {"d": {"epsilon": 1000.0}},
    }
    with opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="amina") as one:
        rows = one.table("rows")
        asked = [rows.filter(rows["t"] == value), rows.filter(rows["t"].isin([value, other]))]
        asked += [] if text else [rows.filter(rows["t"] >= value), rows.filter(rows["t"] <= value)]
        for some in asked:
            assert some.aggregate(n=sitr.count()).release(epsilon=20.0).raw["n"][0] == pytest.approx(5000, abs=20)
        keyed = rows.group_by("t", values={"t": [value, other]}).aggregate(n=sitr.count()).release(epsilon=20.0)
        assert keyed.raw["n"] == pytest.approx([5000, 0], abs=20)
