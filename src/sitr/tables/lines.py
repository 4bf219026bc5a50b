"""A text file as a sequence of lines: each of them is a row on its own, whatever the others hold.

A usual reader of CSV lets a quote reach over the ends of lines. One that is not closed then swallows the rows that
follow: one person's line decides which others are read. Here a line ends where the file ends it, always.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ibis
import numpy
import pyarrow
import pyarrow.compute

from ..errors import InvalidDeclaration
from .declaration import Table
from .dialect import Value

BLOCK = 2**22  # bytes that are read at once
LONGEST_LINE = 2**20  # bytes; a longer one is left out
LONGEST_CELL = 1000  # signs, unless it is a text; a longer one is missing
QUOTE, END = '"', "\n"
MARK = "\ufeff"  # that some programs put at the beginning of a file
SEPARATORS = ",;\t|"
NO_TEXT = "\ufffd"  # stands where bytes are no UTF-8
SCHEMA = pyarrow.schema([("line", pyarrow.string())])


class LeftOut(NamedTuple):
    """How many lines of a text file are no records; those that are empty are not counted.

    Attributes:
        too_long: Those of more than 1 MiB.
        heads: Those that repeat the first.
        quotes: Those with a quote that they do not close, as where a cell goes on in the next line.
    """

    too_long: int
    heads: int
    quotes: int


@dataclass(frozen=True)
class Lines:
    """The lines of a text file after the first, as Arrow: an engine reads them as often as it likes.

    Left out are lines that are empty or too long, those with an odd number of quotes, and those that repeat the first:
    they are no records. Whether a line is one of these is seen from itself alone, and from the names of the columns.

    Attributes:
        path: Of the file; one that ends in .gz is unpacked while it is read.
        whole: Whether a cell that is no text stays as it is, to be counted, in place of being empty.

    Privacy: two files that differ by a line differ by that line here, and by nothing else. The promise is about the
    unit that a line names; so a record must not have two lines.
    """

    path: Path
    whole: bool = False

    @property
    def head(self) -> str:
        """The first line, without a byte order mark.

        Raises:
            InvalidDeclaration: It is not UTF-8, so that engines would not agree on what it is.
        """
        with self._opened() as file:
            head = _first(file).decode(errors="replace").removeprefix(MARK)
        if NO_TEXT in head:
            raise InvalidDeclaration(f"the first line of {self.path.name} is not UTF-8.", do="save the file as UTF-8.")
        return head

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Begin to read; this is what engines call that know Arrow."""
        reader = pyarrow.RecordBatchReader.from_batches(SCHEMA, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def left_out(self) -> LeftOut:
        """Count the lines that are no records; the file is read to its end."""
        head = self.head
        found = [_left_out(block, head) for block in self._after_head()]
        return LeftOut(*map(sum, zip(*found, strict=True)))

    def _batches(self) -> Iterator[pyarrow.RecordBatch]:
        head = self.head
        for block in self._after_head():
            yield pyarrow.record_batch([_records(block, head, whole=self.whole)], schema=SCHEMA)

    def _after_head(self) -> Iterator[bytes]:
        """What follows the first line, in pieces that end where lines do."""
        with self._opened() as file:
            file.seek(len(_first(file)))
            yield from _blocks(file)

    def _opened(self) -> Any:
        return gzip.open(self.path) if self.path.name.lower().endswith(".gz") else self.path.open("rb")


def separator_of(head: str) -> str:
    """Return what stands between two cells of a file: the sign that its first line has most of, outside quotes.

    Example:
        >>> separator_of('who;"what, when, where"')
        ';'
    """
    return max(SEPARATORS, key=re.sub('"[^"]*"', "", head).count)


def names_of(head: str) -> list[str]:
    """Return the cells of a first line.

    Example:
        >>> names_of('who, "what, where"')
        ['who', 'what, where']
    """
    cells = csv.reader([head.removeprefix(MARK)], delimiter=separator_of(head), skipinitialspace=True)
    return [name.strip() for name in next(cells, [])]


def columns_of(cells: Value, head: str, table: Table, *, whole: bool = False) -> dict[str, Value]:
    """Return the declared columns, as texts, of lines that an engine has split at their separators.

    Missing is a cell that is empty, and what a line has too few of; what it has too many of is not read. Separators
    between quotes stand as ends of lines until here, and what is no text is empty already.

    Args:
        cells: Of the lines.
        head: The first line.
        table: What is declared.
        whole: Whether a cell that is too long for its type stays as it is, to be counted, in place of being missing.
    """
    names, separator = names_of(head), separator_of(head)
    there = {name: column for name, column in table.columns.items() if names.count(name) == 1}
    return {
        name: _cell(cells[names.index(name)], separator, short=column.type != "string" and not whole)
        for name, column in there.items()
    }


def _first(file: Any) -> bytes:
    """The first line."""
    return re.split(rb"[\r\n]", file.read(LONGEST_LINE), maxsplit=1)[0]


def _blocks(file: Any) -> Iterator[bytes]:
    """The file in pieces that end where lines do."""
    begun = b""
    while block := file.read(BLOCK):
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if end:
            yield begun + block[:end]
            begun = block[end:]
        elif len(begun) <= LONGEST_LINE:  # a longer one will be left out: no more of it is collected
            begun += block
    yield begun


def _records(block: bytes, head: str, *, whole: bool) -> pyarrow.StringArray:
    """The lines of a block that can be records."""
    block = _as_text(block)
    lines = _cut(block)
    length = pyarrow.compute.binary_length(lines)
    fits = pyarrow.compute.and_(pyarrow.compute.greater(length, 0), pyarrow.compute.less_equal(length, LONGEST_LINE))
    if head.encode() in block:
        fits = pyarrow.compute.and_(fits, pyarrow.compute.not_equal(lines, head))
    lines = lines.filter(fits)
    separator = separator_of(head)
    lines = _quoted(lines, separator) if QUOTE.encode() in block else lines
    blank = not whole and not block.isascii() and NO_TEXT.encode() in block
    return _texts(lines, separator) if blank else lines


def _left_out(block: bytes, head: str) -> LeftOut:
    """How many lines of a block `_records` leaves out, each for the first reason that holds."""
    compute = pyarrow.compute
    lines = _cut(_as_text(block))
    too_long = compute.greater(compute.binary_length(lines), LONGEST_LINE)
    there = lines.filter(compute.and_not(compute.greater(compute.binary_length(lines), 0), too_long))
    heads = compute.equal(there, head)
    quotes = compute.count_substring(there.filter(compute.invert(heads)), QUOTE)
    return LeftOut(_times(too_long), _times(heads), _times(compute.bit_wise_and(quotes, 1)))


def _times(found: Any) -> int:
    """How many are true, or 1."""
    return pyarrow.compute.sum(found).as_py() or 0


def _as_text(block: bytes) -> bytes:
    """A block in UTF-8, with one kind of line ends; what is none in one line does not reach into the next."""
    block = block.replace(b"\r", END.encode())
    return block if block.isascii() else block.decode(errors="replace").encode()  # most are, and need no look


def _cut(block: bytes) -> pyarrow.StringArray:
    """A block of UTF-8, cut where lines end."""
    ends = numpy.array([0, len(block)], numpy.int32)
    whole = pyarrow.StringArray.from_buffers(1, pyarrow.py_buffer(ends), pyarrow.py_buffer(block))
    return pyarrow.compute.split_pattern(whole, END).flatten()


def _texts(lines: pyarrow.StringArray, separator: str) -> pyarrow.StringArray:
    """Lines in which a cell that is no text is empty."""
    others = f"[^{re.escape(separator)}]*"
    return pyarrow.compute.replace_substring_regex(lines, f"{others}{NO_TEXT}{others}", "")


def _quoted(lines: pyarrow.StringArray, separator: str) -> pyarrow.StringArray:
    """Lines whose quotes are closed; a separator between quotes is written as the end of a line, which none holds."""
    quotes = pyarrow.compute.count_substring(lines, QUOTE)
    lines = lines.filter(pyarrow.compute.equal(pyarrow.compute.bit_wise_and(quotes, 1), 0))
    if not len(lines):
        return lines
    _, offsets, content = lines.buffers()
    ends = numpy.frombuffer(offsets, numpy.int32)[lines.offset : lines.offset + len(lines) + 1]
    signs = numpy.frombuffer(content, numpy.uint8).copy()
    here = signs[ends[0] : ends[-1]]
    inside = numpy.cumsum(here == ord(QUOTE), dtype=numpy.uint8) & 1  # even in each line: all of them begin outside
    here[(here == ord(separator)) & (inside == 1)] = ord(END)
    return pyarrow.StringArray.from_buffers(len(lines), offsets, pyarrow.py_buffer(signs), offset=lines.offset)


def _cell(cell: Value, separator: str, *, short: bool) -> Value:
    whole = cell.startswith(QUOTE) & cell.endswith(QUOTE)
    inner = cell.substr(1, cell.length() - 2).replace(QUOTE * 2, QUOTE)
    missing = cell.isin(["", QUOTE * 2])
    return ibis.cases(
        (missing | (cell.length() > LONGEST_CELL) if short else missing, ibis.null("string")),
        (whole, inner.replace(END, separator)),
        (cell.contains(END), cell.replace(END, separator)),
        else_=cell,
    )
