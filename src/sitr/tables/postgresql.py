"""PostgreSQL: tables of a server, read in transactions that cannot write."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow

from .. import _validate
from ..errors import InvalidDeclaration, MissingExtra
from .crosstab import BATCH, Crosstab, Integers
from .declaration import Declaration, Table
from .dialect import Value
from .domains import Domain
from .origins import Seen, computed_column, refused_view
from .source import Source
from .statement import Statement

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
TABLES, VIEWS = "rp", "vm"  # kinds of relations: plain and partitioned, computed and kept
# All of it at once, since it is asked before each charge: which view it is, its columns, and what is read with it.
RELATION = """
    SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text, c.relrowsecurity, row_security_active(c.oid), (
        SELECT ev_action::text FROM pg_catalog.pg_rewrite WHERE ev_class = c.oid AND ev_type = '1'
    ), (
        SELECT json_agg(json_build_array(
            attnum, attname, attgenerated = 'v', atttypid::int8, atttypmod, attcollation::int8
        ) ORDER BY attnum) FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0
    ), (
        WITH RECURSIVE family AS (
            SELECT c.oid UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN family ON inhparent = family.oid
        )
        SELECT json_agg(json_build_array(one.oid::int8, one.relkind::text))
        FROM family JOIN pg_catalog.pg_class AS one ON one.oid = family.oid
    ) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE
"""
NAMED = "(n.nspname = 'public' AND c.relname = %(name)s) OR n.nspname || '.' || c.relname = %(name)s"
NUMBERED = "c.oid = %(oid)s"
SET_APART = """
    SELECT name, setting FROM pg_catalog.pg_settings WHERE source IN ('database', 'user', 'database user', 'global')
    UNION ALL SELECT 'collation', datcollate || ' ' || datctype FROM pg_catalog.pg_database
    WHERE datname = current_database() ORDER BY 1
"""
# What a view is made of that picks columns of one table, and does nothing else.
PICKING = {"QUERY", "RANGETBLENTRY", "RTEPERMISSIONINFO", "ALIAS", "FROMEXPR", "RANGETBLREF", "TARGETENTRY", "VAR"}
ONCE = ("QUERY", "RANGETBLREF")


def _convert_to(text: str, encoding: str) -> Any:
    """A function of PostgreSQL's own: the bytes of a text."""


def _convert_from(content: bytes, encoding: str) -> Any:
    """A function of PostgreSQL's own: the text of bytes, with the collation of the database, which is of bytes."""


_bytes = ibis.udf.scalar.builtin(_convert_to, name="convert_to", signature=(("string", "string"), "binary"))
_plain = ibis.udf.scalar.builtin(_convert_from, name="convert_from", signature=(("binary", "string"), "string"))


@dataclass(frozen=True)
class _Relation:
    """What the catalogue says of a table or a view.

    Attributes:
        hides: Whether it hides rows from this user.
        tree: What a view is made of.
        columns: Their numbers and names, whether they are computed, and their types.
        family: Itself, its partitions and its heirs, which are read with it: their numbers and kinds.
    """

    oid: int
    schema: str
    name: str
    kind: str
    has_policies: bool
    hides: bool
    tree: str | None
    columns: list[Any] | None
    family: list[Any]


class PostgreSQL(Source):
    """Tables of a PostgreSQL server.

    Args:
        declared: The declaration; its `address` is postgresql://user@host/database. A password belongs into
            ~/.pgpass, or into the variable PGPASSWORD.
    """

    engine = "postgresql"
    sources = "a table of the database: name, in the schema public, or schema.name"

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared)
        self.renew()

    def renew(self) -> None:
        """On a connection of its own."""
        self._connection = _connected(self.declared)
        _check_encoding(self._connection)

    @property
    def tested_as(self) -> tuple[str, ...]:
        """A database, or a role, may have settings of its own."""
        return self.engine, self.version, *(f"{name} = {value}" for name, value in self._catalogued(SET_APART))

    @property
    def version(self) -> str:
        """Of the server."""
        major, minor = divmod(self._connection.con.info.server_version, 10_000)
        return f"{major}.{minor}"

    def opened(self, table: Table) -> Value:
        """A table, or a view that picks columns of one: `name` in the schema public, or `schema.name`."""
        named = self._relation(NAMED, name=table.source)
        self._behind(named)
        return _finite(self._connection.table(named.name, database=named.schema), table)

    def seen(self, table: Table) -> Seen:
        """The table, by its number, and the types of its columns; with it its partitions, tables of their own."""
        named = self._relation(NAMED, name=table.source)
        behind = self._behind(named)
        columns = [column for column in named.columns or () if column[1] in table.columns]
        origins = frozenset(("table", oid) for oid, _ in behind.family)
        return Seen((named.schema, named.name, behind.oid, columns), origins)

    def found(self, table: Table) -> str | None:
        """The table itself, or the one of which a view picks columns."""
        behind = self._behind(self._relation(NAMED, name=table.source))
        return f"{behind.schema}.{behind.name}"

    def _relation(self, where: str, **wanted: Any) -> _Relation:
        found = self._catalogued(RELATION + where, **wanted)
        if not found:
            raise LookupError
        if len(found) > 1:
            raise InvalidDeclaration(f"{_validate.shown(wanted.get('name'))} may be two tables of the database.")
        return _Relation(*found[0])

    def _behind(self, relation: _Relation) -> _Relation:
        """The table whose rows are read: itself, or that of which a view picks columns; anything else is refused."""
        if relation.kind in VIEWS:
            other = _picked_from(relation)
            if other is None:
                raise refused_view(relation.name)
            below = self._relation(NUMBERED, oid=other)
            if _renames(relation, below):
                raise refused_view(relation.name)
            _check_rows(below, hidden=below.has_policies)
            return self._behind(below)
        _check_rows(relation, hidden=relation.hides)
        if any(computed for _, _, computed, *_ in relation.columns or ()):
            raise computed_column(relation.name)
        if not all(kind in TABLES for _, kind in relation.family):
            raise InvalidDeclaration(
                f"{relation.name} is no table of this server, or a part of it is not.",
                why="what another server holds may have other names here, and one of its rows may fail.",
                do="connect to the server that keeps the rows, or copy them into a table.",
            )
        return relation

    def _catalogued(self, text: str, **wanted: Any) -> list[Any]:
        with self._connection.con.cursor() as cursor:
            return list(cursor.execute(text, wanted).fetchall())

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

    def listed(self, values: tuple[Any, ...], kind: Any) -> Value:
        """As one constant, which the server takes apart: a list of constants takes long to be read again."""
        texts = _literal(json.dumps([str(one) for one in values]), "json")
        text = (
            f"SELECT CAST(value AS {type_of(kind)}) AS known FROM json_array_elements_text({texts}) AS listed (value)"
        )
        return self._connection.sql(text, schema=ibis.Schema.from_pyarrow(pyarrow.schema([("known", kind)])))

    def text(self, value: Value) -> Value:
        """By its bytes: a column may have a collation for which two texts are equal."""
        return _plain(_bytes(value.cast("string"), "UTF8"), "UTF8")

    @property
    def compiler(self) -> Any:
        """For PostgreSQL's SQL."""
        return self._connection.compiler

    def fetch(self, statement: Statement) -> Any:
        """Row by row, as Python's values: a `numeric` stays exact."""
        with self._connection.con.cursor() as cursor:
            rows = cursor.execute(statement.text).fetchall()
        names = statement.schema.names
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return pyarrow.table({name: list(column) for name, column in zip(names, columns, strict=True)})

    def reduce(self, statement: Statement, crosstab: Crosstab) -> list[Integers]:
        """By a cursor of the server's: no more of the rows than a batch is held at once."""

        def batches() -> Iterator[Any]:
            while rows := cursor.fetchmany(BATCH):
                columns = zip(*rows, strict=True)
                yield pyarrow.record_batch(
                    [pyarrow.array(column, kind) for column, kind in zip(columns, statement.schema.types, strict=True)],
                    statement.schema.names,
                )

        connection = self._connection.con
        with connection.transaction(), connection.cursor(name="sitr_rows") as cursor:
            cursor.execute(statement.text)
            return crosstab.counts(batches())

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
        # What a database or a role may have set otherwise: where functions are looked up, and how texts are read.
        options = (
            "-c default_transaction_read_only=on -c search_path=pg_catalog -c extra_float_digits=1 "
            "-c standard_conforming_strings=on -c client_encoding=UTF8"
        )
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


def _picked_from(view: _Relation) -> int | None:
    """The one relation of which a view picks columns, and None where it does anything else."""
    tree = view.tree or ""
    parts = re.findall(r"\{([A-Z_]+)", tree)
    read = {int(oid) for oid in re.findall(r":relid (\d+)", tree)} - {0, view.oid}
    plain = set(parts) <= PICKING and all(parts.count(part) == 1 for part in ONCE)
    return read.pop() if plain and len(read) == 1 else None


def _renames(view: _Relation, table: _Relation) -> bool:
    """Whether a view shows a column under another name: a unit is known by its name."""
    here, there = ({number: name for number, name, *_ in one.columns or ()} for one in (view, table))
    shown = re.findall(r":resno (\d+) .*? :resorigtbl (\d+) :resorigcol (\d+)", view.tree or "")
    return any(int(oid) != table.oid or here.get(int(mine)) != there.get(int(theirs)) for mine, oid, theirs in shown)


def _check_rows(relation: _Relation, *, hidden: bool) -> None:
    """Refuse what the server keeps for itself, and rows that are hidden by conditions, which read other tables."""
    if relation.schema.startswith("pg_") or relation.schema == "information_schema":
        raise InvalidDeclaration(f"{relation.name} is a table of the server itself.", do="declare tables of your own.")
    if hidden:
        raise InvalidDeclaration(
            f"{relation.name} has row security, which hides rows from this user.",
            why="its conditions may read other tables, and may fail on a row.",
            do="ask as a user who sees all rows, or copy those that may be seen into a table.",
        )


def _finite(table: Value, declared: Table) -> Value:
    """A table whose `numeric` columns hold what other engines' decimals do: no NaN, no infinity, no endless digits."""
    made = {}
    for name, column in declared.columns.items():
        if name in table.columns and table[name].type().is_decimal():
            made[name] = _identity(table[name]) if name == declared.unit else _decimal(table[name], column.domain)
    return table.mutate(**made) if made else table


def _identity(value: Value) -> Value:
    """A number that names a unit: a whole one, or missing. To clip or to round it would make one unit of several."""
    most = _numeric("9" * DIGITS)
    inside = value.between(-most, most).ifelse(value, ibis.null(value.type()))  # NaN is larger than all others
    whole = inside.cast(f"decimal({DIGITS}, 0)")
    return (whole == inside).ifelse(whole, ibis.null(whole.type()))


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
