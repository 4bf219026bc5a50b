"""PostgreSQL: tables of a server, read in transactions that cannot write."""

from __future__ import annotations

import importlib.util
from typing import Any

import ibis
import pyarrow

from ..errors import InvalidDeclaration, MissingExtra
from .declaration import Declaration, Table
from .dialect import Value
from .domains import Domain
from .source import Source

SCHEMES = ("postgresql://", "postgres://")
DIGITS = 38  # of a number that is read; one with more is clipped
REACH = 300  # powers of ten, either way, within which a `numeric` becomes a double
TYPES = {  # of Arrow, by their names, to PostgreSQL's
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20, 0)",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "date32[day]": "date",
}


def _convert_to(text: str, encoding: str) -> Any:
    """A function of PostgreSQL's own: the bytes of a text."""


def _convert_from(content: bytes, encoding: str) -> Any:
    """A function of PostgreSQL's own: the text of bytes, with the collation of the database, which is of bytes."""


_bytes = ibis.udf.scalar.builtin(_convert_to, name="convert_to", signature=(("string", "string"), "binary"))
_plain = ibis.udf.scalar.builtin(_convert_from, name="convert_from", signature=(("binary", "string"), "string"))


class PostgreSQL(Source):
    """Tables of a PostgreSQL server.

    Args:
        declared: The declaration; its `address` is postgresql://user@host/database. A password belongs into
            ~/.pgpass, or into the variable PGPASSWORD.
    """

    engine = "postgresql"

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared)
        self.renew()

    def renew(self) -> None:
        """On a connection of its own."""
        self._connection = _connected(self.declared)
        _check_encoding(self._connection)
        self._tables: dict[str, Value] = {}

    @property
    def version(self) -> str:
        """Of the server."""
        major, minor = divmod(self._connection.con.info.server_version, 10_000)
        return f"{major}.{minor}"

    def table(self, table: Table) -> Value:
        """A table or a view: `name`, or `schema.name`."""
        if table.name not in self._tables:
            *schema, name = table.source.split(".")
            found = self._connection.table(name, database=".".join(schema) or None)
            self._tables[table.name] = _finite(found, table)
        return self._tables[table.name]

    def sample(self, name: str, frame: Any) -> Value:
        """As a list of values in the query itself: nothing is written, so that a replica can be tested too."""
        types = [type_of(field.type) for field in frame.schema]
        rows = [
            ", ".join(_literal(cell, kind) for cell, kind in zip(row.values(), types, strict=True))
            for row in frame.to_pylist()
        ]
        names = ", ".join(_name(column) for column in frame.column_names)
        values = ", ".join(f"({row})" for row in rows)
        text = f"SELECT * FROM (VALUES {values}) AS {_name(name)} ({names})"
        return self._connection.sql(text, schema=ibis.Schema.from_pyarrow(frame.schema))

    def text(self, value: Value) -> Value:
        """By its bytes: a column may have a collation for which two texts are equal."""
        return _plain(_bytes(value.cast("string"), "UTF8"), "UTF8")

    def compiled(self, query: Value) -> str:
        """PostgreSQL's SQL."""
        return str(self._connection.compile(query, pretty=True))

    def fetch(self, query: Value) -> Any:
        """Row by row, as Python's values: a `numeric` stays exact."""
        text = self._connection.compile(query)
        with self._connection.con.cursor() as cursor:
            rows = cursor.execute(text).fetchall()
        names = list(query.schema().names)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return pyarrow.table({name: list(column) for name, column in zip(names, columns, strict=True)})

    def interrupt(self) -> None:
        """Ask the server to stop the running query."""
        self._connection.con.cancel_safe(timeout=5)

    def reseed(self, seed: int) -> None:
        """By `setseed`, which takes a number from -1 to 1, and holds for this connection; it keeps 53 bits of it."""
        with self._connection.con.cursor() as cursor:
            cursor.execute(f"SELECT setseed({2 * seed / 2**63 - 1!r})")

    def disconnect(self) -> None:
        """Close the connection."""
        self._connection.disconnect()


def _connected(declared: Declaration) -> Value:
    if not declared.address.startswith(SCHEMES):
        raise InvalidDeclaration(
            "connection.address is no address of PostgreSQL.", do='address = "postgresql://user@host/database".'
        )
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra("tables in PostgreSQL need psycopg.", do="pip install 'sitr[postgresql]'.")
    import psycopg

    try:
        options = "-c default_transaction_read_only=on -c search_path=public -c extra_float_digits=1"
        return ibis.postgres.from_connection(
            psycopg.connect(
                declared.address, autocommit=True, application_name="sitr", connect_timeout=10, options=options
            )
        )
    except Exception:
        pass
    raise InvalidDeclaration(
        "connection.address: the server cannot be reached, or does not let this user in.",
        do="try the address with psql; a password belongs into ~/.pgpass.",
    )


def _check_encoding(connection: Value) -> None:
    """A text of another encoding may have no place in UTF-8, and SQL_ASCII lets any byte pass: one row would fail."""
    if connection.con.info.parameter_status("server_encoding") != "UTF8":
        connection.disconnect()
        raise InvalidDeclaration(
            "connection.address: the database is not in UTF-8.",
            why="a text that has no place in it would make a release fail.",
            do="copy it into one that is: CREATE DATABASE ... ENCODING 'UTF8'.",
        )


def _finite(table: Value, declared: Table) -> Value:
    """A table whose `numeric` columns hold what other engines' decimals do: no NaN, no infinity, no endless digits."""
    made = {}
    for name, column in declared.columns.items():
        if name in table.columns and table[name].type().is_decimal():
            made[name] = _decimal(table[name], column.domain)
    return table.mutate(**made) if made else table


def _decimal(value: Value, domain: Domain) -> Value:
    value = (value == _numeric("NaN")).ifelse(ibis.null(value.type()), value)
    if domain.float:  # a double has no room for what is smaller or larger
        tiny, zero = _numeric(f"1e-{REACH}"), _numeric("0")
        value = ibis.cases(((value < tiny) & (value > -tiny), zero), else_=value)
        return _clipped(value, _numeric(f"1e{REACH}")).cast("float64")
    digits = len(str(domain.step.denominator)) - 1
    most = _numeric("9" * (DIGITS - digits))
    return _clipped(value, most).cast(f"decimal({DIGITS}, {digits})")


def _clipped(value: Value, most: Value) -> Value:
    return ibis.cases((value > most, most), (value < -most, -most), else_=value)


def _numeric(text: str) -> Value:
    """A number of any size."""
    return ibis.literal(text).cast("decimal")


def type_of(kind: Any) -> str:
    """Return PostgreSQL's type for one of Arrow's."""
    if str(kind).startswith("decimal"):
        return f"numeric({kind.precision}, {kind.scale})"
    if str(kind).startswith("timestamp"):
        return "timestamptz" if kind.tz else "timestamp"
    return TYPES[str(kind)]


def _literal(cell: Any, kind: str) -> str:
    text = "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'"
    return f"CAST({text} AS {kind})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
