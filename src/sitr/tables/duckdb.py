"""DuckDB: files, a database file, or frames of the process itself."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import ibis
from ibis.expr.operations import InMemoryTable

from .. import _validate
from ..errors import InvalidArgument, InvalidDeclaration
from .declaration import Declaration, Table
from .dialect import Value, type_of
from .source import Source

FILES = (".parquet", ".csv", ".csv.gz", ".tsv")
LONGEST_LINE = 2**26  # bytes, in a text file
COARSE = {"s": 10**6, "ms": 10**3}  # microseconds


def _encode(text: str) -> Any:
    """A function of DuckDB's own: the bytes of a text."""


def _decode(content: bytes) -> Any:
    """A function of DuckDB's own: the text of bytes, without a collation; a cast would keep it."""


_bytes = ibis.udf.scalar.builtin(_encode, name="encode", signature=(("string",), "binary"))
_plain = ibis.udf.scalar.builtin(_decode, name="decode", signature=(("binary",), "string"))


class DuckDB(Source):
    """Tables in DuckDB, which runs inside this process.

    Args:
        declared: The declaration; its `address` is a database file, or empty.
        frames: Tables of pandas, Polars or Arrow that take the place of declared sources.
        memory: The most that the engine may use, such as "1.5GB".
    """

    engine = "duckdb"

    def __init__(
        self, declared: Declaration, frames: Mapping[str, Any] | None = None, *, memory: str | None = None
    ) -> None:
        super().__init__(declared)
        self._connection = _connected(declared)
        if memory is not None:
            if not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory):
                raise InvalidArgument(f"memory={_validate.shown(memory)} is no size.", do='such as "1.5GB".')
            self._connection.raw_sql(f"SET memory_limit = '{memory}'")
        self._frames = {name: _arrow(name, frame) for name, frame in (frames or {}).items()}
        self._tables: dict[str, Value] = {}
        self._runnable = lru_cache(64)(self._compiled)

    @property
    def version(self) -> str:
        """Of DuckDB."""
        return str(self._connection.version)

    def sample(self, name: str, frame: Any) -> Value:
        """As a view of the frame."""
        self._connection.con.register(name, frame)
        return self._connection.table(name)

    def table(self, table: Table) -> Value:
        """The file, the frame or the table of the database."""
        if table.name not in self._tables:
            self._tables[table.name] = _in_microseconds(self._opened(table))
        return self._tables[table.name]

    def _opened(self, table: Table) -> Value:
        name = f"sitr_{len(self._tables)}"
        if table.name in self._frames:
            self._connection.con.register(name, self._frames[table.name])
            return self._connection.table(name)
        if not table.source.lower().endswith(FILES):
            return self._connection.table(table.source)
        path = str(self.declared.folder / table.source)
        if table.source.lower().endswith(".parquet"):
            return self._connection.read_parquet(path, table_name=name)
        return self._cast(self._text(path, name), table)

    def _text(self, path: str, name: str) -> Value:
        """A text file as it is: what does not fit a type is missing later, and refused for no row.

        Nothing is guessed from the rows: one of them could change how all others are read.
        """
        options = {
            "auto_detect": False,
            "columns": dict.fromkeys(_header(path), "VARCHAR"),
            "delim": _separator(path),
            "quote": '"',
            "escape": '"',
            "header": True,
            "ignore_errors": True,
            "null_padding": True,
            "strict_mode": False,
            "max_line_size": LONGEST_LINE,
            "parallel": False,
        }
        return self._connection.read_csv(path, table_name=name, **options)

    @staticmethod
    def _cast(text: Value, table: Table) -> Value:
        there = {name: column for name, column in table.columns.items() if name in text.columns}
        return text.select(**{name: text[name].try_cast(type_of(column.type)) for name, column in there.items()})

    def text(self, value: Value) -> Value:
        """By its bytes, in a database; files and frames have no collations."""
        return _plain(_bytes(value)) if self.declared.address else value

    def compiled(self, query: Value) -> str:
        """DuckDB's SQL."""
        return str(ibis.to_sql(query, dialect="duckdb"))

    def fetch(self, query: Value) -> Any:
        """By Arrow; what was compiled lately is not compiled again."""
        if query.op().find(InMemoryTable):  # Ibis lends the engine its rows
            return self._connection.to_pyarrow(query)
        sql, schema = self._runnable(query)
        return self._connection.con.sql(sql).to_arrow_table().cast(schema)

    def _compiled(self, query: Value) -> tuple[str, Any]:
        return str(self._connection.compile(query)), query.schema().to_pyarrow()

    def interrupt(self) -> None:
        """Stop the running query."""
        self._connection.con.interrupt()

    def reseed(self, seed: int) -> None:
        """By `setseed`, which takes a number from -1 to 1."""
        self._connection.raw_sql(f"SELECT setseed({2 * seed / 2**63 - 1!r})")

    def close(self) -> None:
        """Close the database."""
        self._connection.disconnect()


def _separator(path: str) -> str:
    return "\t" if path.lower().endswith(".tsv") else ","


def _header(path: str) -> list[str]:
    """The names in the first line of a text file."""
    opened = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
        return next(csv.reader(lines, delimiter=_separator(path)), [])


def _connected(declared: Declaration) -> Value:
    if not declared.address:
        return ibis.duckdb.connect()
    path = declared.folder / declared.address
    if not Path(path).exists():
        raise InvalidDeclaration(f"connection.address: there is no database at {path}.")
    try:
        return ibis.duckdb.connect(str(path), read_only=True)
    except Exception:
        pass
    raise InvalidDeclaration(f"connection.address: {path} cannot be opened as a database of DuckDB.")


def _arrow(name: str, frame: Any) -> Any:
    """A frame as an Arrow table; nothing of it is shown where that fails."""
    import pyarrow

    try:
        if hasattr(frame, "to_arrow"):
            frame = frame.to_arrow()
        if not isinstance(frame, pyarrow.Table):
            frame = pyarrow.Table.from_pandas(frame, preserve_index=False)
        return _arrow_in_microseconds(frame)
    except Exception:
        pass
    raise InvalidArgument(
        f"frames[{name!r}] is no table of pandas, Polars or Arrow with one type in each column.",
        do="give each column one type: df.astype({...}).",
    )


def _arrow_in_microseconds(frame: Any) -> Any:
    """A frame whose times DuckDB can read; what has no place among them is missing, where DuckDB would fail."""
    import pyarrow

    for place, field in enumerate(frame.schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.unit != "us":
            kind, column = pyarrow.timestamp("us", field.type.tz), frame.column(place)
            fine = column.cast(kind, safe=False) if field.type.unit == "ns" else _finer(column, kind)
            frame = frame.set_column(place, pyarrow.field(field.name, kind), fine)
    return frame


def _finer(column: Any, kind: Any) -> Any:
    """Seconds or milliseconds as microseconds; those that do not fit are missing."""
    import pyarrow
    import pyarrow.compute

    factor = COARSE[column.type.unit]
    numbers, most = column.cast("int64"), 2**62 // factor
    inside = pyarrow.compute.and_(
        pyarrow.compute.less_equal(numbers, most), pyarrow.compute.greater_equal(numbers, -most)
    )
    kept = pyarrow.compute.if_else(inside, numbers, pyarrow.scalar(None, pyarrow.int64()))
    return pyarrow.compute.multiply(kept, factor).cast(kind)


def _in_microseconds(table: Value) -> Value:
    """A table whose times have six digits; such as do not fit are missing."""
    others = {
        name: table[name].try_cast("timestamp(6)")
        for name, kind in table.schema().items()
        if kind.is_timestamp() and kind.timezone is None and kind.scale not in (None, 6)
    }
    return table.mutate(**others) if others else table
