"""What Arrow holds, as a frame or in a Parquet file, so that no row of it can make an engine fail.

Arrow believes that a text is UTF-8 and that a time fits. DuckDB looks, and fails on the first one that does not. So
texts are handed over as bytes and coarse times as whole numbers, and read in the query, where one can be missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ibis
import pyarrow
import pyarrow.dataset

from ..errors import InvalidArgument, InvalidDeclaration
from .declaration import files_of
from .dialect import Value

ONE_BY_ONE = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}  # of Parquet's encodings
COARSE = {"s": 10**6, "ms": 10**3}  # microseconds
LATEST = 2**62  # microseconds after 1970, and before; further than any calendar
PARQUET = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")


def _decode(content: bytes) -> Any:
    """A function of DuckDB's own: the text of bytes; it fails on what is no UTF-8."""


def _try(value: str) -> Any:
    """DuckDB's own way not to fail: missing in the rows in which a value cannot be computed."""


def _hex(content: bytes) -> Any:
    """A function of DuckDB's own: bytes as digits."""


def _make_timestamp(microseconds: int) -> Any:
    """A function of DuckDB's own: a time without a zone."""


def _make_timestamptz(microseconds: int) -> Any:
    """A function of DuckDB's own: a moment."""


decoded = ibis.udf.scalar.builtin(_decode, name="decode", signature=(("binary",), "string"))
tried = ibis.udf.scalar.builtin(_try, name="try", signature=(("string",), "string"))
_digits = ibis.udf.scalar.builtin(_hex, name="hex", signature=(("binary",), "string"))
_time = ibis.udf.scalar.builtin(_make_timestamp, name="make_timestamp", signature=(("int64",), "timestamp(6)"))
_moment = ibis.udf.scalar.builtin(
    _make_timestamptz, name="make_timestamptz", signature=(("int64",), "timestamp('UTC', 6)")
)


def frame_of(name: str, frame: Any) -> pyarrow.Table:
    """Return a frame of pandas, Polars or Arrow as Arrow's table; nothing of it is shown where that fails.

    Raises:
        InvalidArgument: It is none of them, or one column has several types.
    """
    try:
        if hasattr(frame, "to_arrow"):
            frame = frame.to_arrow()
        return frame if isinstance(frame, pyarrow.Table) else pyarrow.Table.from_pandas(frame, preserve_index=False)
    except Exception:
        pass
    raise InvalidArgument(
        f"frames[{name!r}] is no table of pandas, Polars or Arrow with one type in each column.",
        do="give each column one type: df.astype({...}).",
    )


def parquet_of(path: Path) -> pyarrow.dataset.FileSystemDataset:
    """Return a Parquet file, or those of a folder or of a pattern; nothing is read of them but their schemas.

    Raises:
        FileNotFoundError: There is none.
        InvalidDeclaration: Two have different columns, and a cast of one to the types of another could fail on a row;
            or the folder has others in it, whose rows would not be read.
    """
    files = files_of(path)
    if path.is_dir() and any(one.is_dir() for one in path.iterdir()):
        raise InvalidDeclaration(f"{path.name} has folders in it.", do="name the files by a pattern: folder/*.parquet.")
    if not files or not all(file.is_file() for file in files):
        raise FileNotFoundError(path)
    first, *others = (pyarrow.dataset.dataset(str(file), format=PARQUET).schema for file in files)
    if not all(first.equals(other) for other in others):
        raise InvalidDeclaration(
            f"the files of {path.name} have different columns.",
            do="write them with one schema, or declare them one by one.",
        )
    return pyarrow.dataset.dataset([str(file) for file in files], schema=first, format=PARQUET)


def handed(content: Any, names: Iterable[str]) -> Any:
    """Return some columns of a frame, or of a Parquet file, of types with which an engine looks at no value."""
    in_memory = isinstance(content, pyarrow.Table)
    kept = {name: content.schema.field(name).type for name in names}
    for name, kind in kept.items():
        _check(name, kind, in_memory=in_memory)
    kinds = pyarrow.schema([(name, _handed(_kind(kind))) for name, kind in kept.items()])
    if in_memory:
        return content.select(kinds.names).cast(kinds)
    return pyarrow.dataset.dataset(content.files, schema=kinds, format=content.format)


def read(table: Value, schema: pyarrow.Schema) -> dict[str, Value]:
    """Return the columns of a table that was handed over, as what they were in their own schema."""
    return {name: _read(table[name], _kind(schema.field(name).type)) for name in table.columns}


def read_alike(kind: Any) -> bool:
    """Whether DuckDB's own reader of Parquet makes the same of a value, where it does not fail."""
    types = pyarrow.types
    plain = kind.value_type if types.is_dictionary(kind) else kind
    number = types.is_integer(plain) or types.is_floating(plain) or types.is_decimal128(plain)
    return bool(number or types.is_date32(plain) or types.is_boolean(plain) or _is_text(plain))


def checked_together(content: pyarrow.dataset.FileSystemDataset) -> set[str]:
    """Return the texts that DuckDB's own reader checks by whole pages, in which two halves of a letter pass."""
    found = set()
    for part in content.get_fragments():
        for group in map(part.metadata.row_group, range(part.metadata.num_row_groups)):
            chunks = map(group.column, range(group.num_columns))
            found |= {one.path_in_schema for one in chunks if not set() < set(one.encodings) <= ONE_BY_ONE}
    return {name for name in content.schema.names if name in found and _is_text(_kind(content.schema.field(name).type))}


def _kind(kind: Any) -> Any:
    """The type of the values, however they are kept."""
    if pyarrow.types.is_dictionary(kind):
        return _kind(kind.value_type)
    keeps = isinstance(kind, pyarrow.BaseExtensionType) and not isinstance(kind, pyarrow.UuidType)
    return _kind(kind.storage_type) if keeps else kind


def _check(name: str, kind: Any, *, in_memory: bool) -> None:
    """Refuse by its type what could fail on a row."""
    types, plain = pyarrow.types, _kind(kind)
    numbers = types.is_integer(plain) or types.is_floating(plain) or types.is_decimal128(plain)
    moments = types.is_date(plain) or types.is_timestamp(plain)
    if not (numbers or moments or types.is_boolean(plain) or _is_text(plain) or isinstance(plain, pyarrow.UuidType)):
        raise InvalidDeclaration(f"columns.{name}: it is kept as {kind}.", do="write it as text, or as a plain number.")
    while isinstance(kind, pyarrow.BaseExtensionType) and not isinstance(kind, pyarrow.UuidType):
        kind = kind.storage_type
    # Arrow's reader of Parquet counts in the type of the places, and fails on a text that is one too many for it.
    if types.is_dictionary(kind) and not in_memory and kind.index_type.bit_width != 32:
        raise InvalidDeclaration(
            f"columns.{name}: it is kept as a dictionary with places of {kind.index_type.bit_width} bits.",
            why="a row with one text more than that has room for would make a release fail.",
            do=f"write it as plain text: df.astype({{{name!r}: str}}).to_parquet(...).",
        )


def _is_text(kind: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_coarse(kind: Any) -> bool:
    return bool(pyarrow.types.is_timestamp(kind) and kind.unit in COARSE)


def _handed(kind: Any) -> Any:
    if _is_text(kind):
        return pyarrow.binary() if pyarrow.types.is_string(kind) else pyarrow.large_binary()
    if isinstance(kind, pyarrow.UuidType):
        return pyarrow.binary(16)
    return pyarrow.int64() if _is_coarse(kind) else kind


def _read(value: Value, kind: Any) -> Value:
    if _is_text(kind):
        return tried(decoded(value))
    if isinstance(kind, pyarrow.UuidType):
        return _digits(value).try_cast("uuid")
    if _is_coarse(kind):
        most = LATEST // COARSE[kind.unit]
        inside = value.between(-most, most).ifelse(value, ibis.null("int64")) * COARSE[kind.unit]
        return _moment(inside) if kind.tz else _time(inside)
    return value
