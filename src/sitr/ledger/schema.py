"""The tables of a book, the version of their form, and how an older form becomes this one.

`entry` is the truth: append-only, chained. `budget` and `block` hold running totals, so that granting does not grow
with the length of the book; `verify` works them out again from the entries. What happened to an operation is said by
its entries alone.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 3

# From a version to the next: each changes the tables in the transaction it is given; there was none before 1. Form 2
# has the same tables and stricter functions in PostgreSQL, which are installed anew after every step; form 3 has
# entries of terms.
MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: lambda connection: None, 2: lambda connection: None}

metadata = MetaData()
UNITS = BigInteger().with_variant(Integer, "sqlite")  # STRICT tables know no BIGINT; SQLite's INTEGER has 64 bits


def _units(name: str) -> Column[int]:
    return Column(name, UNITS, CheckConstraint(f"{name} >= 0"), nullable=False)


# One row: which book this is, and the form of its tables.
book = Table(
    "book",
    metadata,
    Column("id", Text, primary_key=True),
    Column("schema_version", Integer, nullable=False),
    sqlite_strict=True,
)

entry = Table(
    "entry",
    metadata,
    Column("seq", UNITS, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("operation", Text),
    Column("analyst", Text),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # An operation is reserved once, started once, committed once: whoever comes second is refused by the store.
    UniqueConstraint("operation", "kind", name="once"),
    sqlite_strict=True,
)

# In units of 2^-60 of the filter's two limits (decision 0006). `cost` and `delta` were spent on the whole dataset;
# the peaks are what the block that spent most has used besides.
budget = Table(
    "budget",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("body", Text, nullable=False),
    _units("cost"),
    _units("delta"),
    _units("peak_cost"),
    _units("peak_delta"),
    sqlite_strict=True,
)

block = Table(
    "block",
    metadata,
    Column("budget", Text, ForeignKey("budget.name"), primary_key=True),
    Column("block", Text, primary_key=True),
    _units("cost"),
    _units("delta"),
    sqlite_strict=True,
)

# What was answered, for those who ask again. Large answers stay in a file; the sha256 of either is in the entry.
answer = Table(
    "answer",
    metadata,
    Column("operation", Text, primary_key=True),
    Column("media", Text, nullable=False),
    Column("content", LargeBinary),
    Column("path", Text),
    CheckConstraint("(content IS NULL) <> (path IS NULL)", name="somewhere"),
    sqlite_strict=True,
)
