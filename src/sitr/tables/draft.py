"""The first draft of a declaration: from a schema to TOML text for an owner to complete; no value is ever read."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import ibis
import pyarrow.parquet

from .. import _validate
from ..errors import EngineFailed, InvalidArgument, InvalidDeclaration, MissingExtra
from .declaration import INTEGERS, TYPES, Declaration, domain_of_type
from .files import is_file
from .lines import names_of

if TYPE_CHECKING:
    from .source import Source

TO_FILL_IN = "TO FILL IN"
SHORT = {"int": "integer", "bool": "boolean", "str": "string", "text": "string"}  # what people write for a type
TEXT_FILES = (".csv", ".csv.gz", ".tsv")
LONGEST_HEADER = 2**20  # characters
BARE = re.compile(r"[A-Za-z0-9_-]+")
FLOATS = ("real", "double precision")
# What PostgreSQL's information_schema calls its types.
POSTGRESQL = {
    "boolean": "boolean",
    "smallint": "int16",
    "integer": "integer",
    "bigint": "integer",
    "text": "string",
    "character varying": "string",
    "character": "string",
    "uuid": "string",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp",
} | dict.fromkeys(FLOATS, "float")
DUCKDB_TABLES = """
    SELECT table_name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_catalog = current_database() ORDER BY table_name
"""
POSTGRESQL_COLUMNS = """
    SELECT table_name, column_name, data_type, numeric_precision, numeric_scale
    FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position
"""
EXAMPLE = {"unit_id": "integer", "region": "string", "amount": "decimal(12, 2)", "day": "date"}


@dataclass(frozen=True)
class Found:
    """A table as an engine describes it.

    Attributes:
        name: As analysts will call it.
        columns: The type of each column, as a declaration names it.
        source: What the engine calls it, where that is something else.
        unreadable: Columns of types that sitr does not read, with what the engine calls them.
    """

    name: str
    columns: Mapping[str, str]
    source: str | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)


Readable = tuple[tuple[Found, ...], Mapping[str, str]]  # and why other tables are not


@dataclass(frozen=True)
class Draft:
    """A declaration to be completed.

    Attributes:
        name: Of the database.
        tables: What was found.
        engine: That has them.
        address: Where the engine finds them.
        example: Whether the tables are made up, to be replaced.
        refused: Why other tables, by their names, are left out: what opens the database would not take them.

    Example:
        >>> drafted = Draft("clinic", (Found("visits", {"patient": "integer", "cost": "float"}),))
        >>> print(*drafted.places, sep=", ")
        budgets.clinic.epsilon, tables.visits.unit, tables.visits.max_rows_per_unit
        >>> 'cost = { type = "float" }  # or { type = "float", bounds = [0, 100] }' in drafted.text
        True
    """

    name: str
    tables: tuple[Found, ...]
    engine: str = "duckdb"
    address: str = ""
    example: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def places(self) -> tuple[str, ...]:
        """What has to be filled in before the declaration can be read."""
        names = [f"{_key(table.name)}" for table in self.tables]
        needed = [f"tables.{name}.{what}" for name in names for what in ("unit", "max_rows_per_unit")]
        return (f"budgets.{_key(self.name)}.epsilon", *needed)

    @property
    def text(self) -> str:
        """The TOML."""
        parts = [self._head(), self._connection(), _PRIVACY, self._ledger(), self._budget()]
        parts += [_table(table, first=at == 0, example=self.example) for at, table in enumerate(self.tables)]
        return "\n".join(parts + ([self._left_out()] if self.refused else []))

    def _left_out(self) -> str:
        told = [_printable(f"{_text(name)}: {reason}") for name, reason in self.refused.items()]
        lines = [line for one in told for line in textwrap.wrap(one, 118, subsequent_indent="  ")]
        return "\n".join(["# Left out, since sitr would not open them:", *(f"# {line}" for line in lines)]) + "\n"

    def _head(self) -> str:
        return f"""\
# What may be asked of this database, and how well its people are protected. Everything in this file is public: it may
# be shown to every analyst. Look for {TO_FILL_IN}: until that is done, sitr refuses to open it.
# A bound or a category must not be read off the data: write what you know without looking.

sitr = 1  # the version of this format
name = {_text(self.name)}
version = 1  # raise it with every change
# analysts = ["amina", "badr"]  # who may ask; without this line, everyone who can open this file
# time_zone = "Asia/Riyadh"  # in which moments with a time zone are read; UTC unless told
"""

    def _connection(self) -> str:
        empty = "  # a database file; left empty, every table names a file of its own" if not self.address else ""
        return f"""\
[connection]
engine = {_text(self.engine)}
address = {_text(self.address)}{empty}
"""

    def _ledger(self) -> str:
        url = f"{self.name}.ledger.db"
        return f"""\
# The book in which every release is charged before a row is read. `sitr budget begin` makes it, and writes its id here.
[ledger]
url = {_text(url)}  # a file beside this one, or postgresql://user@host/database
"""

    def _budget(self) -> str:
        name = _key(self.name)
        return f"""\
# How much may be learned about one unit from everything that is ever released. A smaller epsilon protects more.
[budgets.{name}]
epsilon = 0  # {TO_FILL_IN}: such as 1.0
# delta = 1e-6  # the chance that epsilon does not hold; groups that are not listed below cannot be found without it
# analysts.amina = {{ epsilon = 0.5 }}  # a share within the budget, at its δ; of a purpose: purposes.audit = {{ ... }}
"""


_PRIVACY = """\
[privacy]
unit = "person"  # whom the promise protects, in a word: patient, customer, household
adjacency = "add_remove"  # one unit more or less; or "replace_one"
# delta = 1e-8  # of a release that needs one and is not given one; far below 1 / (the number of units)
"""


def _table(table: Found, *, first: bool, example: bool) -> str:
    """A table; what its settings mean is said in the first one."""
    name = f"tables.{_key(table.name)}"
    lines = ["# An example: replace it by your own tables."] if example else []
    lines.append(f"[{name}]")
    lines += [f"source = {_text(table.source)}"] if table.source is not None else []
    lines += _SETTINGS_EXPLAINED if first else _SETTINGS
    lines.append(f"[{name}.columns]")
    lines += _COLUMNS_EXPLAINED if first else []
    lines += [f"{_key(name)} = {_column(kind)}" for name, kind in table.columns.items()]
    lines += [f"# {_key(name)}: {kind}, a type that sitr does not read" for name, kind in table.unreadable.items()]
    return "\n".join(lines) + "\n"


_SETTINGS_EXPLAINED = [
    f'unit = ""  # {TO_FILL_IN}: the column that names the unit; or "row", where each row is a unit of its own',
    '# unit = { through = "stays", on = { stay_id = "id" } }  # in its place, where another table has that column',
    f"# max_rows_per_unit = 10  # {TO_FILL_IN}, unless each row is a unit: of one that has more, only so many are read",
    "# expected_units = 10_000  # about how many there are, if that is public: then answers are planned better,",
    "# expected_rows = 30_000  #   and `sitr explain` says how wrong they will be",
    "# public = true  # the table is about nobody, such as a list of codes; then take the line with unit out",
]
_SETTINGS = [
    f'unit = ""  # {TO_FILL_IN}, or public = true in its place',
    f"# max_rows_per_unit = 10  # {TO_FILL_IN}, unless each row is a unit",
    "# expected_units = 10_000",
    "# expected_rows = 30_000",
]
_COLUMNS_EXPLAINED = [
    "# bounds are needed for sums and means: what lies outside is moved to the nearer end. categories are the groups",
    "# that answers list. Both are public. The alternative after '# or' may replace the setting.",
    "# Columns that nobody needs are better taken out.",
]
_HINTS = {
    "boolean": "",
    "string": 'categories = ["north", "south"]',
    "date": "bounds = [2020-01-01, 2026-12-31]",
    "timestamp": "bounds = [2020-01-01T00:00:00, 2026-12-31T23:59:59]",
}


def _column(kind: str) -> str:
    """The settings of a column, and beside them what may stand in their place."""
    hint = _HINTS.get(kind, "bounds = [0, 100]")
    more = f"  # or {{ type = {_text(kind)}, {hint} }}" if hint else ""
    return f"{{ type = {_text(kind)} }}{more}"


def _text(value: str) -> str:
    """A string of TOML: like one of JSON, apart from the sign that deletes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


# Where schemas come from


def example(name: str) -> Draft:
    """Return the draft of a database of which nothing is known yet.

    Example:
        >>> example("clinic").tables[0].name
        'example'
    """
    return Draft(name, (Found("example", EXAMPLE),), example=True)


def draft_of(name: str, source: str, folder: Path, types: Mapping[str, str] | None = None) -> Draft:
    """Return the draft of what a database or a file holds, by its schema alone.

    Args:
        name: Of the database.
        source: A file of DuckDB, a Parquet file, a text file with a header, or postgresql://user@host/database.
        folder: Where the declaration will be: files are named from there.
        types: For a text file: the type of each column.

    Raises:
        InvalidArgument: There is no such file, it is of another kind, or the types do not fit.
        EngineFailed: The engine could not open it.
    """
    if source.startswith(("postgresql://", "postgres://")):
        tables, refused = _postgresql_tables(source)
        return Draft(name, tables, "postgresql", without_password(source), refused=refused)
    path = Path(source)
    if not path.is_file():
        raise InvalidArgument(f"there is no file {_validate.shown(source)}.")
    place = _relative(path, folder)
    if source.lower().endswith(TEXT_FILES):
        return Draft(name, (Found(_table_name(_stem(path)), _typed(header(path), types), place),))
    if types:
        raise InvalidArgument("types are for text files; this one has its own.")
    if source.lower().endswith(".parquet"):
        return Draft(name, (_described(_stem(path), _parquet_schema(path), place),))
    tables, refused = _duckdb_tables(path)
    return Draft(name, tables, address=place, refused=refused)


def declared_type(found: Any) -> str | None:
    """Return what a declaration calls one of Ibis's types; None for what sitr does not read.

    Narrow whole numbers keep their type, and with it their bounds. Wide ones are to get bounds from the owner: those
    of 32 bits would make the noise of a sum useless.

    Example:
        >>> declared_type(ibis.dtype("int8")), declared_type(ibis.dtype("int64")), declared_type(ibis.dtype("json"))
        ('int8', 'integer', None)
    """
    kinds = ("boolean", "string", "date", "timestamp")
    if found.is_integer():
        name = type(found).__name__.lower()
        return name if name in INTEGERS and INTEGERS[name][1] < 2**16 else "integer"
    if found.is_decimal():
        known = found.precision is not None and found.scale is not None
        return f"decimal({found.precision}, {found.scale})" if known else "float"
    if found.is_floating():
        return "float"
    if found.is_uuid():
        return "string"
    return next((kind for kind in kinds if getattr(found, f"is_{kind}")()), None)


def header(path: Path) -> list[str]:
    """Return the names of the columns of a text file: its first line, and nothing after it.

    Raises:
        InvalidArgument: The first line is no list of names; it is not shown, since it may be a row of data.
    """
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            line = file.readline(LONGEST_HEADER)
    except (OSError, UnicodeDecodeError, EOFError):
        raise InvalidArgument(f"{path} cannot be read as text.") from None
    names = names_of(line)
    if not names or len(set(names)) < len(names) or not all(map(_is_name, names)):
        raise InvalidArgument(
            f"the first line of {path} is no list of names of columns.",
            why="if it is a row of data, its values must not get into a declaration; so it is not shown.",
            do="write a first line with a different name for each column.",
        )
    return names


def checked_type(name: str, kind: str) -> str:
    """Return a type that a declaration may name, or refuse it.

    Example:
        >>> checked_type("cost", "decimal(12, 2)"), checked_type("age", "int")
        ('decimal(12, 2)', 'integer')
    """
    kind = SHORT.get(kind, kind)
    try:
        domain_of_type(kind)
    except InvalidArgument:
        raise InvalidArgument(
            f"{name}: {_validate.shown(kind)} is no type.", do=f"one of {', '.join(TYPES)}."
        ) from None
    return kind


def without_password(url: str) -> str:
    """Return an address without the password in it: a declaration is public.

    Example:
        >>> without_password("postgresql://owner:secret@host/clinic")
        'postgresql://owner@host/clinic'
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if "password" not in name.lower()])
    place = f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"  # also where there is no host
    return f"{place}?{query}" if query else place


def _is_name(text: str) -> bool:
    """Whether a cell of a first line can be a name: a number, a date or nothing at all is a value."""
    return bool(text) and text.isprintable() and not re.fullmatch(r"[-+]?[\d.,:/ TeE+-]*\d[\d.,:/ TZeE+-]*", text)


def _typed(names: Sequence[str], types: Mapping[str, str] | None) -> dict[str, str]:
    given = dict(types or {})
    missing, unknown = [name for name in names if name not in given], sorted(given.keys() - set(names))
    if missing or unknown:
        wrong = [f"no type for {', '.join(missing)}"] if missing else []
        wrong += [f"no column {', '.join(unknown)}"] if unknown else []
        such = shlex.quote(",".join(f"{name}={given.get(name, '?')}" for name in names))
        rest = f"{'with a type for each ?; ' if missing else ''}the types are {', '.join(TYPES)}"
        raise InvalidArgument(
            f"types: {'; '.join(wrong)}.",
            why="a text file has no types, and to guess them would be to read values.",
            do=f"--types {such}, {rest}.",
        )
    return {name: checked_type(name, given[name]) for name in names}


def _relative(path: Path, folder: Path) -> str:
    """From the folder of the declaration, where one can be reached from the other."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # two drives
        return str(path.resolve())


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def _table_name(name: str) -> str:
    """A name that a declaration allows, and that shows."""
    made = unicodedata.normalize("NFC", "".join(sign if _validate.shows(sign) else "_" for sign in name))
    return made.replace("/", "_").strip()[:50] or "table"


def _described(name: str, schema: Mapping[str, Any], source: str | None = None) -> Found:
    made = _table_name(name)
    types = {column: (declared_type(kind), kind) for column, kind in schema.items()}
    return Found(
        made,
        {column: kind for column, (kind, _) in types.items() if kind is not None},
        source if source is not None else (name if made != name else None),
        {column: type(found).__name__.lower() for column, (kind, found) in types.items() if kind is None},
    )


def _parquet_schema(path: Path) -> Mapping[str, Any]:
    try:
        return dict(ibis.Schema.from_pyarrow(pyarrow.parquet.read_schema(path)).items())
    except Exception:  # whatever it is, it may quote what the file holds
        pass
    raise EngineFailed(f"{path} cannot be read as a Parquet file.")


def _duckdb_tables(path: Path) -> Readable:
    from .duckdb import DuckDB  # it needs this module

    found = None
    try:
        connection = ibis.duckdb.connect(str(path), read_only=True)
        try:
            names = [name for (name,) in connection.con.execute(DUCKDB_TABLES).fetchall()]
            # Before the others are described: to describe a view may be to read the values that it computes with.
            refused = _refusals(DuckDB, {"engine": "duckdb", "address": str(path.resolve())}, names)
            found = [(name, connection.table(name).schema()) for name in names if name not in refused]
        finally:
            connection.disconnect()
    except Exception:
        pass
    if found is None:
        raise EngineFailed(
            f"{path} cannot be opened as a database of DuckDB.",
            do="name a database file, or a file that ends in .parquet, .csv, .csv.gz or .tsv.",
        )
    return _some(tuple(_described(name, dict(schema.items())) for name, schema in found), refused, str(path))


def _postgresql_tables(url: str) -> Readable:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("psycopg is not installed.", do="pip install 'sitr[postgresql]'.") from None
    from .postgresql import PostgreSQL  # it needs this module

    try:
        with psycopg.connect(url, connect_timeout=10, autocommit=True, options="-c search_path=public") as connection:
            rows = connection.execute(POSTGRESQL_COLUMNS).fetchall()
    except psycopg.Error:
        rows = None
    if rows is None:  # its message may have the password in it
        raise EngineFailed("PostgreSQL cannot be reached, or does not let you in.", do="look at the address.")
    tables: dict[str, dict[str, tuple[str | None, str]]] = {}
    for table, column, kind, precision, scale in rows:
        made = POSTGRESQL.get(kind)
        if kind == "numeric":
            made = f"decimal({precision}, {scale})" if precision is not None and precision <= 38 else "float"
        tables.setdefault(table, {})[column] = (made, kind)
    refused = _refusals(PostgreSQL, {"engine": "postgresql", "address": url}, list(tables))
    found = []
    for name, columns in tables.items():
        if name not in refused:
            read = {column: made for column, (made, _) in columns.items() if made is not None}
            unread = {column: kind.lower() for column, (made, kind) in columns.items() if made is None}
            found.append(Found(_table_name(name), read, name if _table_name(name) != name else None, unread))
    return _some(tuple(found), refused, "the database")


def _refusals(
    engine: Callable[[Declaration], Source], connection: Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """Why some of these tables would not be opened, as what opens them says it."""
    opened = engine(_declared(connection, "any"))
    try:
        found = {name: _refusal(opened, connection, name) for name in names}
    finally:
        opened.close()
    return {name: _told(error) for name, error in found.items() if error}


def _told(error: InvalidDeclaration) -> str:
    return f"{error.what.removeprefix('tables.any: ')}{f' Do: {error.do}' if error.do else ''}"


def _refusal(opened: Source, connection: Mapping[str, str], name: str) -> InvalidDeclaration | None:
    if is_file(name):
        return InvalidDeclaration(
            f"{name} is called like a file, and would be read as one.",
            do="call it otherwise, or declare a view that picks its columns.",
        )
    try:
        return opened.refusal(_declared(connection, name).tables["any"])
    except InvalidDeclaration as error:
        return error


def _declared(connection: Mapping[str, str], source: str) -> Declaration:
    """A declaration of one table of which nothing but the name is known yet."""
    table = {"source": source, "unit": "row", "columns": {"any": {"type": "integer"}}}
    content = {"sitr": 1, "name": "any", "connection": connection, "budgets": {"any": {"epsilon": 1.0}}}
    return Declaration.of({**content, "tables": {"any": table}})


def _printable(text: str) -> str:
    """A text that may stand in a comment of TOML."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _some(tables: tuple[Found, ...], refused: Mapping[str, str], place: str) -> Readable:
    """The tables that can be read, each under a name of its own, and why others cannot."""
    readable: dict[str, Found] = {}
    for table in tables:
        if table.columns:
            name, number = table.name, 2
            while name in readable:
                name, number = f"{table.name}_{number}", number + 1
            readable[name] = replace(table, name=name, source=table.source if name == table.name else _called(table))
    if not readable:
        raise InvalidArgument(
            f"{place} has no tables with columns that sitr reads.", why=next(iter(refused.values()), "")
        )
    return tuple(readable.values()), refused


def _called(table: Found) -> str:
    return table.name if table.source is None else table.source
