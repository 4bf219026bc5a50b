"""DuckDB: files, a database file, or frames of the process itself."""

from __future__ import annotations

import glob
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import ibis
import pyarrow
import sqlglot
from sqlglot import expressions

from .. import _validate
from ..errors import InvalidArgument, InvalidDeclaration
from .arrow import checked_together, decoded, frame_of, handed, parquet_of, read, read_alike, tried
from .cells import values_of
from .crosstab import BATCH, Crosstab, Integers
from .declaration import Declaration, Table, files_of
from .dialect import KNOWN_KEY, PLACE_OF_KEY, Value
from .files import FILES, head_of, is_file, is_parquet
from .lines import Lines, columns_of, separator_of
from .origins import Seen, computed_column, origins_of_files, path_within, refused_view
from .source import Source, not_after_fork
from .statement import Statement

Found = TypeVar("Found")
MOST_PLACES = 10_000  # public texts that are kept as a table
# What a file says of its least and largest values is not believed: by it, a clip would be left out, and parts of a file
# by a filter, or a join, that is handed to the reader. One person's row can make it wrong for everybody's.
BELIEVING = ("statistics_propagation", "filter_pushdown", "join_filter_pushdown")
WRONG = ("top_n_window_elimination",)  # without filter_pushdown it keeps one row too few (DuckDB 1.5.6)
TAKEN = ("memory", "system", "temp")  # names of DuckDB's own databases
RELATIONS = """
    SELECT schema_name, table_name, NULL, sql FROM duckdb_tables()
    WHERE database_name = $name AND NOT internal AND NOT temporary
    UNION ALL SELECT schema_name, view_name, sql, '' FROM duckdb_views()
    WHERE database_name = $name AND NOT internal AND NOT temporary
"""
# Of a view that picks columns of one table, and does nothing else.
PICKING = {"Create", "Select", "From", "Table", "TableAlias", "Identifier", "Column", "Alias", "Star"}
_opened_by: dict[Path, int] = {}  # which process opened a database first: DuckDB keeps one of each for all that ask


def _encode(text: str) -> Any:
    """A function of DuckDB's own: the bytes of a text."""


_bytes = ibis.udf.scalar.builtin(_encode, name="encode", signature=(("string",), "binary"))


def _checked(text: Value) -> Value:
    """A text, or nothing in the place of one that is no UTF-8."""
    return tried(decoded(_bytes(text)))


class DuckDB(Source):
    """Tables in DuckDB, which runs inside this process.

    Args:
        declared: The declaration; its `address` is a database file, or empty.
        frames: Tables of pandas, Polars or Arrow that take the place of declared sources.
        memory: The most that the engine may use, such as "1.5GB".
    """

    engine = "duckdb"
    sources = f"a file that ends in {', '.join(FILES)}, a table of the database at connection.address, or a frame"

    def __init__(
        self, declared: Declaration, frames: Mapping[str, Any] | None = None, *, memory: str | None = None
    ) -> None:
        super().__init__(declared)
        if memory is not None and not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", memory):
            raise InvalidArgument(f"memory={_validate.shown(memory)} is no size.", do='such as "1.5GB".')
        self._memory = memory
        self._given = dict(frames or {})
        self._frames = {name: frame_of(name, frame) for name, frame in self._given.items()}
        self._connect()

    def _connect(self) -> None:
        self._connection = _connected(self.declared)
        self._connection.raw_sql(f"SET disabled_optimizers = '{','.join(BELIEVING + WRONG)}'")
        self._connection.raw_sql("SET python_enable_replacements = false")  # a name is no variable of the process
        if self._memory is not None:
            self._connection.raw_sql(f"SET memory_limit = '{self._memory}'")
        self._known: dict[tuple[str, ...], Value] = {}  # public texts
        self._catalogue: dict[tuple[str, str], tuple[str | None, bool]] | None = None
        self._careful: dict[str, str] = {}  # how to read what DuckDB's own reader may fail on

    @property
    def version(self) -> str:
        """Of DuckDB."""
        return str(self._connection.version)

    def sample(self, name: str, frame: Any) -> Value:
        """As a view of the frame."""
        self._connection.con.register(name, frame)
        return self._connection.table(name)

    def opened(self, table: Table) -> Value:
        """The file, the frame or the table of the database."""
        return _in_microseconds(self._opened(table))

    def _opened(self, table: Table) -> Value:
        name = f"sitr_{len(self._tables)}"
        if table.name in self._frames:
            return self._view(name, self._arrow(name, self._frames[table.name], table))
        if not is_file(table.source):
            schema, relation = self._named_in_catalogue(table.source)
            return self._connection.table(relation, database=(self._database, schema))
        lines = self.lines(table)
        if lines is None:
            return self._parquet(name, parquet_of(self.declared.folder / table.source), table)
        return self._text(name, lines, table)

    def lines(self, table: Table) -> Lines | None:
        """The file, unless it is Parquet, or a frame stands for it."""
        if table.name in self._given or not is_file(table.source) or is_parquet(table.source):
            return None
        return Lines(self.declared.folder / table.source)

    def cells(self, table: Table) -> Value | None:
        """Of a reading of its own, by which nothing else is asked."""
        lines = self.lines(table)
        if lines is None:
            return None
        name = f"sitr_check_{list(self.declared.tables).index(table.name)}"
        split = self._split(name, replace(lines, whole=True))
        return split.select(**columns_of(split["cells"], lines.head, table, whole=True))

    def seen(self, table: Table) -> Seen:
        """The frame, the files, or the table of the database, which a view that picks columns leads to.

        Of a database file this is what it held when it was attached, and so are its rows: DuckDB reads on from the file
        that it has open, whatever is put in its place.
        """
        if table.name in self._given:
            return Seen(None, frozenset({("frame", id(self._given[table.name]))}))
        if not is_file(table.source):
            behind = self._behind(*self._named_in_catalogue(table.source))
            return Seen(behind, frozenset({("table", *behind)}))
        path = self.declared.folder / table.source
        if not is_parquet(table.source):
            self._held.check(path)
        return Seen(head_of(path), origins_of_files(files_of(path)))

    def found(self, table: Table) -> str | None:
        """The file that a link leads to, or the table of which a view picks columns."""
        if table.name in self._given:
            return None
        if is_file(table.source):
            return path_within(self.declared.folder, os.path.realpath, table.source)
        return ".".join(self._behind(*self._named_in_catalogue(table.source)))

    @property
    def _database(self) -> str:
        return _database_of(self.declared)

    @property
    def _relations(self) -> dict[tuple[str, str], tuple[str | None, bool]]:
        """The tables of the database file by schema and name: the text of those that are views, and who computes."""
        if self._catalogue is None:
            rows = self._connection.con.execute(RELATIONS, {"name": self._database}).fetchall()
            self._catalogue = {(schema, name): (text, _computes(made)) for schema, name, text, made in rows}
        return self._catalogue

    def _named_in_catalogue(self, source: str) -> tuple[str, str]:
        """The table that is meant by `name`, or by `schema.name`: DuckDB would also look for files and variables."""
        wanted = source.lower()
        found = [
            (schema, name)
            for schema, name in self._relations
            if wanted == f"{schema}.{name}".lower() or (schema == "main" and wanted == name.lower())
        ]
        if not found:
            raise LookupError
        if len(found) > 1:
            raise InvalidDeclaration(f"{_validate.shown(source)} may be two tables of the database.")
        self._behind(*found[0])
        return found[0]

    def _behind(self, schema: str, name: str) -> tuple[str, str]:
        """The table whose rows are read: itself, or the one of which a view picks columns."""
        text, computes = self._relations[schema, name]
        if computes:
            raise computed_column(name)
        if text is None:
            return schema, name
        read = _picked_from(text)
        if read is None or read.catalog.lower() not in ("", self._database.lower()):
            raise refused_view(name)
        names = read.db.lower(), read.name.lower()
        found = [one for one in self._relations if one[1].lower() == names[1] and names[0] in ("", one[0].lower())]
        if len(found) != 1:
            raise refused_view(name)
        return self._behind(*found[0])

    def _parquet(self, name: str, content: Any, table: Table) -> Value:
        """A Parquet file: by DuckDB's own reader, which is faster, until that fails on a value (`fetch`)."""
        careful = self._arrow(name, content, table)
        files = [glob.escape(file) for file in content.files]
        own = self._connection.read_parquet(files, table_name=f"{name}_own", hive_partitioning=False)
        alike = all(read_alike(content.schema.field(column).type) for column in careful.columns)
        if not alike or list(own.columns) != content.schema.names:  # DuckDB calls "A" and "a" by other names
            return self._view(name, careful)
        columns = {one: own[one] for one in careful.columns}
        columns |= {one: _checked(own[one]) for one in checked_together(content) & columns.keys()}
        made = self._view(name, own.select(**columns))
        self._careful[name] = self.compiled(careful)
        return made

    def _arrow(self, name: str, content: Any, table: Table) -> Value:
        """A frame or a Parquet file: a text that is no UTF-8 is missing, and so is a time that does not fit."""
        there = [one for one in table.columns if one in content.schema.names] or content.schema.names[:1]
        given = self._registered(name, handed(content, there))
        return given.select(**read(given, content.schema))

    def _text(self, name: str, lines: Lines, table: Table) -> Value:
        """A text file: a cell that does not fit its type is missing, and nothing is guessed from the rows."""
        split = self._split(name, lines)
        texts = columns_of(split["cells"], lines.head, table)
        if not texts:
            return split
        cells = self._view(f"{name}_cells", split.select(**texts))  # or each use of a cell would find it anew
        return self._view(name, cells.select(**values_of(cells, table, self, self.declared.time_zone)))

    def _split(self, name: str, lines: Lines) -> Value:
        """The cells of each line; by a view, or each column would split the line anew."""
        given = self._registered(name, lines)
        return self._view(f"{name}_split", given.select(cells=given["line"].split(separator_of(lines.head))))

    def _registered(self, name: str, content: Any) -> Value:
        """What Arrow can read, as a table of the engine."""
        self._connection.con.register(f"{name}_given", content)
        return self._connection.table(f"{name}_given")

    def _view(self, name: str, table: Value) -> Value:
        """A table under a name, so that queries do not repeat how it is read."""
        return self._named(name, self.compiled(table))

    def _named(self, name: str, text: str) -> Value:
        self._connection.raw_sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {text}")
        return self._connection.table(name)

    def text(self, value: Value) -> Value:
        """By its bytes, in a database, where a cast would keep a collation; files and frames have none."""
        return decoded(_bytes(value)) if self.declared.address else value

    def float_of(self, cell: Value, pattern: str) -> Value:
        """By DuckDB's own cast, which is much faster: it takes no more than the pattern, but for 1_000 and +-5."""
        odd = cell.contains("_") | cell.contains("+-")
        return odd.ifelse(ibis.null("float64"), cell.try_cast("float64"))

    def places(self, values: tuple[str, ...]) -> Value | None:
        """As a small table of the process: a text has 16 bytes in DuckDB, wherever rows are sorted."""
        if len(values) > MOST_PLACES:
            return None
        if values not in self._known:
            narrow = pyarrow.uint8() if len(values) <= 2**8 else pyarrow.uint16()
            place = pyarrow.array(range(len(values)), narrow)
            name = f"sitr_known_{len(self._known)}"
            self._known[values] = self.sample(name, pyarrow.table({KNOWN_KEY: list(values), PLACE_OF_KEY: place}))
        return self._known[values]

    @property
    def compiler(self) -> Any:
        """For DuckDB's SQL."""
        return self._connection.compiler

    def fetch(self, statement: Statement) -> Any:
        """By Arrow. What DuckDB's reader of Parquet fails on is read again, and from then on, by the careful way.

        Privacy: an answer is a function of the rows alone, whichever way they were read: where neither fails, both give
        the same values (`read_alike`). That a row was read by the careful way is seen from the time at most.
        """
        return self._carefully(lambda: self._connection.con.sql(statement.text).to_arrow_table().cast(statement.schema))

    def reduce(self, statement: Statement, crosstab: Crosstab) -> list[Integers]:
        """A batch at a time: no more of the rows than that is held at once."""

        def read() -> list[Integers]:
            reader = self._connection.con.sql(statement.text).to_arrow_reader(BATCH)
            return crosstab.counts(batch.cast(statement.schema) for batch in reader)

        return self._carefully(read)

    def _carefully(self, read: Callable[[], Found]) -> Found:
        """Read; and if the quick way fails, again by the careful one."""
        try:
            return read()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise
        except Exception:
            if not self._careful:
                raise
        for name, text in self._careful.items():
            self._named(name, text)
        self._careful.clear()
        self.reseed(secrets.randbits(63))
        return read()

    def interrupt(self) -> None:
        """Stop the running query."""
        self._connection.con.interrupt()

    def reseed(self, seed: int) -> None:
        """By `setseed`, which takes a number from -1 to 1 and keeps 32 bits of it.

        Privacy: the proof (0014) needs draws that do not depend on what the rows hold, and each kept row to be
        counted within the bound; it does not need draws that are hard to foretell. The seed is fresh for each run, is
        drawn after the question is fixed, and neither it nor a draw leaves: only sums with noise do. So the choice is
        one of 2^32, and who could try them all would have nothing to compare them with. That a generator's draws pass
        for independent ones is believed, here as with a longer seed.
        """
        self._connection.raw_sql(f"SELECT setseed({2 * seed / 2**63 - 1!r})")

    def renew(self) -> None:
        """In a database of its own, with the same files and frames."""
        self._connect()

    def disconnect(self) -> None:
        """Close the database."""
        self._connection.disconnect()


def _computes(made: str) -> bool:
    """Whether a table, as it was made, has a column that is computed when it is read."""
    plain = re.sub(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'', "", made)
    return re.search(r"\bGENERATED\b", plain, re.IGNORECASE) is not None


def _picked_from(text: str) -> expressions.Table | None:
    """The one table of which a view picks columns, under their own names, and None where it does anything else."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    renamed = any(one.alias.lower() != one.this.name.lower() for one in tree.find_all(expressions.Alias))
    numbered = any(one.name.lower() == "rowid" for one in tree.find_all(expressions.Column))
    if renamed or numbered:
        return None
    tables = [one for one in tree.find_all(expressions.Table) if one.find_ancestor(expressions.Select)]
    changed = any(any(star.args.values()) for star in tree.find_all(expressions.Star))  # * REPLACE (...)
    plain = {type(node).__name__ for node in tree.walk()} <= PICKING
    return tables[0] if plain and not changed and len(tables) == 1 else None


def _database_of(declared: Declaration) -> str:
    """What the file at `address` is called: as DuckDB calls it, since its views may say so."""
    name = Path(declared.address).stem
    return f"the {name}" if name.lower() in TAKEN else name


def _connected(declared: Declaration) -> Value:
    if not declared.address:
        return ibis.duckdb.connect()
    path = declared.folder / declared.address
    if not Path(path).exists():
        raise InvalidDeclaration(f"connection.address: there is no database at {path}.")
    if _opened_by.setdefault(path.resolve(), os.getpid()) != os.getpid():
        raise not_after_fork(f"connection.address: {path}")  # DuckDB would hand out what it has open
    try:
        connection = ibis.duckdb.connect()
        place, name = str(path).replace("'", "''"), _database_of(declared).replace('"', '""')
        # Of other kinds, which it opens too, a row may fail. Beside the database in memory, where names of functions
        # are looked up: else a macro of the file would stand for a function that bounds a unit.
        connection.raw_sql(f"ATTACH '{place}' AS \"{name}\" (READ_ONLY, TYPE duckdb)")
        return connection
    except Exception:
        pass
    raise InvalidDeclaration(f"connection.address: {path} cannot be opened as a database of DuckDB.")


def _in_microseconds(table: Value) -> Value:
    """A table whose times have six digits; such as do not fit are missing."""
    others = {
        name: table[name].try_cast("timestamp(6)")
        for name, kind in table.schema().items()
        if kind.is_timestamp() and kind.timezone is None and kind.scale not in (None, 6)
    }
    return table.mutate(**others) if others else table
