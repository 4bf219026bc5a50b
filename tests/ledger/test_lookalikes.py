"""Files that are no books are told by what they are, and a book that was damaged is never called by another name."""

import gzip

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

from sitr.errors import LedgerDamaged, LedgerError, UnknownName
from sitr.ledger import Ledger


@pytest.fixture
def folder(tmp_path):
    with Ledger.open(tmp_path / "book.db") as ledger:
        ledger.write_anchor(tmp_path / "anchor")
    duckdb.connect(str(tmp_path / "clinic.duckdb")).close()
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "stays.csv").write_text("patient,cost\n1,2\n" * 1000, encoding="utf-8")
    (tmp_path / "long.txt").write_text("é" * 4095 + "\n", encoding="utf-8")
    (tmp_path / "clinic.toml").write_text("sitr = 1\n", encoding="utf-8")
    (tmp_path / "dump.sql").write_text("--\n-- PostgreSQL database dump\n--\n", encoding="utf-8")
    (tmp_path / "book.gz").write_bytes(gzip.compress((tmp_path / "book.db").read_bytes()))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "what", "do"),
    [
        ("clinic.duckdb", "a DuckDB database", "belongs under \\[connection\\]"),
        ("a.parquet", "a Parquet file", "belongs under"),
        ("stays.csv", "a text file", "belongs under"),
        ("long.txt", "a text file", "belongs under"),
        ("clinic.toml", "a declaration", "--ledger clinic.toml"),
        ("dump.sql", "a dump of PostgreSQL", "sitr ledger restore"),
        ("anchor", "an anchor", "--anchor"),
        ("book.gz", "a packed file", "unpack it"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_other_files_are_told_by_what_they_are(folder, name, what, do, create):
    before = (folder / name).read_bytes()
    with pytest.raises(LedgerDamaged, match=f"that is {what}, not a book(.|\n)*{do}"):
        Ledger.open(folder / name, create=create)
    assert (folder / name).read_bytes() == before
    assert not (folder / f"{name}-wal").exists()


@pytest.mark.parametrize("torn", [b"", b"\x00" * 8192, b"\xff" * 8192, b"garbage \x00\x01" * 500])
def test_a_book_that_was_torn_stays_a_damaged_book(folder, torn):
    path = folder / "book.db"
    path.write_bytes(torn + path.read_bytes()[len(torn) :] if torn else b"")
    with pytest.raises(LedgerDamaged) as refused:
        Ledger.open(path)
    assert "not a book" not in refused.value.what


def test_a_name_that_is_close_is_offered(folder):
    with pytest.raises(UnknownName, match=rf"did you mean {folder}/book\.db\?"):
        Ledger.open(folder / "bok.db", create=False)
    with pytest.raises(LedgerError) as refused:
        Ledger.open(folder / "something else entirely", create=False)
    assert "did you mean" not in str(refused.value)
    with pytest.raises(UnknownName, match="there is no ledger"):
        Ledger.open(folder / "nowhere" / "book.db", create=False)
