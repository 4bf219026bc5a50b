"""Text files: a line is a row on its own, whatever the others hold."""

import csv
import gzip
from collections import Counter

import duckdb
import ibis
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sitr.errors import InvalidDeclaration
from sitr.tables import lines as module
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from sitr.tables.lines import LONGEST_LINE, LeftOut, Lines, columns_of, names_of
from sitr.tables.spark import Spark
from tests.tables import engines

NAMES = ["who", "text", "x"]
COLUMNS = {"who": {"type": "integer"}, "text": {"type": "string"}, "x": {"type": "float"}}
PLAIN = [b"1,a,0.5", b"2,b,", b'3,"c, d",1e3', b'4,"say ""x""",2', "5,عين,3".encode(), b"6", b"7,e,4,more,cells"]
ROWS = Counter(
    [
        (1, "a", 0.5),
        (2, "b", None),
        (3, "c, d", 1000.0),
        (4, 'say "x"', 2.0),
        (5, "عين", 3.0),
        (6, None, None),
        (7, "e", 4.0),
    ]
)
NASTY = [
    b'8,"open,1',
    b'"',
    b'8,5" pipe,1',
    b'9,"a"b,1"',
    b'9,a"b,c"d,1',
    b'"9","""",1',
    b"",
    b" ",
    b"9\x00,\x00a,1",
    b"9,\xff\xfe,1",
    b"9,a\xe2",  # a sign that would go on in the next line
    b"\xef\xbb\xbf9,a,1",
    b"9;a;1",
    b"," * 30_000,  # Spark's own reader fails on so many
    b"9,\\",
    b"9,'a,1",
    b"# 9,a,1",
    b"9," + b"a" * LONGEST_LINE,
    b"9,a,\x1a",
]


# Units as pandas writes integers of a column with gaps; and what only some engines take for a number.
TYPED = [
    b"34.0,a,1",
    b"34,b,1",
    b"1e3,c,1_000",
    b"1_000,d,+5",
    b"0x1F,e,0x1F",
    b"34\x00,f,1\x00",
    b" 34 ,g,1d",
    b"34.5,h,nan",
]


def read(folder, content, name="rows.csv", engine=DuckDB):
    """The rows of a file, as an engine counts them."""
    packed = gzip.compress(content) if name.endswith(".gz") else content
    (folder / name).write_bytes(packed)
    table = {"unit": "who", "max_rows_per_unit": 1, "source": name, "columns": COLUMNS}
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"rows": table}}, folder)
    source = engine(declared)
    try:
        rows = source.fetch(source.statement(source.table(declared.tables["rows"]))).to_pylist()
    finally:
        source.close()
    return Counter(tuple(row.values()) for row in rows)


def of(*rows, end=b"\n"):
    return end.join([b"who,text,x", *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lines")


def test_what_cells_hold(folder):
    assert read(folder, of(*PLAIN)) == ROWS


@pytest.mark.parametrize("nasty", NASTY)
def test_one_line_changes_no_other(folder, nasty):
    """Two files that differ by a line: the rows of one are those of the other, and at most one more."""
    for place in (0, 3, len(PLAIN)):
        more = read(folder, of(*PLAIN[:place], nasty, *PLAIN[place:]))
        assert not ROWS - more
        assert (more - ROWS).total() <= 1


@pytest.mark.xdist_group("spark")
def test_spark_reads_the_same_lines(folder):
    """Of all of them at once."""
    if reason := engines.missing("spark"):
        pytest.skip(reason)
    content = b"\xef\xbb\xbf" + of(*PLAIN, *NASTY, *TYPED, b"who,text,x")
    assert read(folder, content, "spark.csv", Spark) == read(folder, content)
    content = b"who\ttext\tx\r\n" + b'1\t"a\tb"\t0.5\r\n2\ta, b\t\r\n'
    assert read(folder, content, "spark.tsv", Spark) == Counter([(1, "a\tb", 0.5), (2, "a, b", None)])


SIGNS = st.sampled_from(list(b'"",,a1 \x00\\\xff\xc3\xa9\xef\xbb\xbf\t'))


@given(st.lists(st.lists(SIGNS, max_size=9).map(bytes), max_size=4))
@example([b'"', b',"'])
@settings(max_examples=25, deadline=None)
def test_a_file_is_read_as_its_lines_are_one_by_one(folder, rows):
    assert read(folder, of(*rows)) == sum((read(folder, of(row)) for row in rows), Counter())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_where_a_block_ends_makes_no_difference(folder, size, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 20)
    content = of(*PLAIN, b"9," + b"a" * 18, b"9," + b"a" * 19, b"9," + b"a" * 300, *PLAIN)
    whole = read(folder, content)
    assert whole == read(folder, of(*PLAIN, *PLAIN, b"9," + b"a" * 18))
    monkeypatch.setattr(module, "BLOCK", size)
    assert read(folder, content) == whole


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
def test_ends_of_lines_archives_and_byte_order_marks(folder, end, name, before):
    assert read(folder, before + of(*PLAIN, b"", end=end), name) == ROWS


def test_tabs(folder):
    rows = [b"1\ta, b\t0.5", b'2\t"a\tb"\t1']
    content = b'who\t"text"\tx\n' + b"\n".join(rows)
    assert read(folder, content, "rows.tsv") == Counter([(1, "a, b", 0.5), (2, "a\tb", 1.0)])


@given(st.lists(st.lists(st.text("ab\",' é\\", max_size=6), min_size=3, max_size=3), max_size=5))
@settings(max_examples=40, deadline=None)
def test_what_a_writer_of_csv_wrote_is_read_as_it_was(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("written") / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])
    texts = {name: {"type": "string"} for name in NAMES}
    declared = Declaration.of(
        {"sitr": 1, "name": "d", "tables": {"t": {"unit": "row", "source": "rows.csv", "columns": texts}}}
    )
    connection = ibis.duckdb.connect()
    connection.con.register("given", Lines(path))
    table = connection.table("given")
    columns = columns_of(table["line"].split(","), Lines(path).head, declared.tables["t"])
    found = connection.to_pyarrow(table.select(**columns)).to_pylist()
    connection.disconnect()
    assert [list(row.values()) for row in found] == [[cell or None for cell in row] for row in rows]


def test_a_unit_that_is_written_in_two_ways_is_one(folder):
    found = Counter(who for who, *_ in read(folder, of(*TYPED)).elements())
    assert found == Counter({34: 3, 1000: 1, None: 4})


def test_a_number_that_is_very_long_is_missing(folder):
    rows = [b"1" * 999 + b"," + b"a" * 5000 + b"," + b"0." + b"5" * 900, b"2,b," + b"0." + b"5" * 999]
    assert read(folder, of(*rows)) == Counter([(None, "a" * 5000, 5 / 9), (2, "b", None)])


def test_a_line_that_repeats_the_first_is_no_row(folder):
    for before in (b"", b"\xef\xbb\xbf"):
        assert read(folder, before + of(*PLAIN[:3], b"who,text,x", *PLAIN[3:])) == ROWS
    assert read(folder, of(b"9,who,text,x")).total() == 1


def test_a_first_line_of_its_own(folder):
    (folder / "head.csv").write_bytes(b'\xef\xbb\xbf"a, b",c\r1,2')
    assert names_of(Lines(folder / "head.csv").head) == ["a, b", "c"]
    (folder / "latin.csv").write_bytes(b"caf\xe9,c\n1,2")
    with pytest.raises(InvalidDeclaration, match=r"the first line of latin.csv is not UTF-8"):
        Lines(folder / "latin.csv").head  # noqa: B018
    (folder / "none.csv").write_bytes(b"")
    assert names_of(Lines(folder / "none.csv").head) == []


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_first_line_says_what_stands_between_cells(folder, separator):
    content = b'who,text,x\n1,"a,b",2\n2,,?'.replace(b",", separator.encode())
    assert read(folder, content) == Counter([(1, f"a{separator}b", 2), (2, None, None)])


def test_a_name_that_is_there_twice_is_not_read(folder):
    declared = Declaration.of({"sitr": 1, "name": "d", "tables": {"t": {"unit": "row", "columns": COLUMNS}}})
    assert set(columns_of(ibis.array(["1", "2", "3"]), "who,x,x", declared.tables["t"])) == {"who"}


def test_an_engine_reads_lines_as_often_as_it_likes(folder):
    (folder / "again.csv").write_bytes(of(*PLAIN))
    with duckdb.connect() as connection:
        connection.register("given", Lines(folder / "again.csv"))
        asked = "SELECT count(*) FROM given AS one JOIN given AS two USING (line)"
        assert [connection.execute(asked).fetchone() for _ in range(2)] == [(len(PLAIN),)] * 2


def of_lines(path, **settings):
    """The lines of a file that are records."""
    return pyarrow.RecordBatchReader.from_stream(Lines(path, **settings)).read_all()["line"].to_pylist()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_that_is_no_record_is_counted_once(folder, end):
    path = folder / "left.csv"
    for rows in (NASTY, [*PLAIN, b"who,text,x", b"who,text,x"], [], [b'"', b'a"', b"b" * (LONGEST_LINE + 1) + b'"']):
        path.write_bytes(of(*rows, end=end) + end)
        there = [row for row in rows if row]
        assert len(of_lines(path)) + sum(Lines(path).left_out()) == len(there)
    assert Lines(path).left_out() == LeftOut(too_long=1, heads=0, quotes=2)


def test_blocks_make_no_difference_to_what_is_counted(folder, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 20)
    path = folder / "left.csv"
    path.write_bytes(of(*PLAIN, b'8,"open', b"9," + b"a" * 300, b"who,text,x", b'"', *PLAIN))
    for size in (1, 7, 64, 2**20):
        monkeypatch.setattr(module, "BLOCK", size)
        assert Lines(path).left_out() == LeftOut(too_long=1, heads=1, quotes=2)


def test_what_is_no_text_is_seen_by_those_who_count(folder):
    path = folder / "whole.csv"
    path.write_bytes(of(b"1,\xff,2", b"2,b,3"))
    assert of_lines(path) == ["1,,2", "2,b,3"]
    assert of_lines(path, whole=True) == ["1,\ufffd,2", "2,b,3"]
