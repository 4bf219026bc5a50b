"""The tables of a book, and the version of their form.

`entry` is the truth: append-only, chained. `budget` and `block` hold running totals, so that granting does not grow
with the length of the book; `verify` works them out again from the entries. What happened to an operation is said by
its entries alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    Dialect,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from ..errors import LedgerDamaged
from .totals import Vector

SCHEMA_VERSION = 3

metadata = MetaData()
PLACE = BigInteger().with_variant(Integer, "sqlite")  # STRICT tables know no BIGINT; SQLite's INTEGER has 64 bits


class Vectors(TypeDecorator[Vector]):
    """Whole numbers of any size, and null for what is dead: numeric[] in PostgreSQL, a list of JSON in SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type of the column."""
        return dialect.type_descriptor(ARRAY(Numeric) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Vector | None, dialect: Dialect) -> Any:
        """Return what is stored."""
        assert value is not None
        return list(value) if dialect.name == "postgresql" else vector_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Vector:
        """Return what was stored."""
        return whole_numbers(value) if dialect.name == "postgresql" else vector(value)


def vector(text: str) -> Vector:
    """Read what SQLite keeps of a total.

    Raises:
        LedgerDamaged: It is something else.

    Example:
        >>> vector("[5,null]")
        (5, None)
    """
    try:
        return tuple([None if one == "null" else int(one) for one in text[1:-1].split(",")])
    except ValueError:
        raise damaged_total() from None


def vector_text(used: Vector) -> str:
    """Return what SQLite keeps of a total: a list of JSON, in one form.

    Example:
        >>> vector_text((5, None))
        '[5,null]'
    """
    return "[" + ",".join(["null" if one is None else str(one) for one in used]) + "]"


def whole_numbers(values: Sequence[Decimal | None]) -> Vector:
    """Read what PostgreSQL keeps of a total.

    Raises:
        LedgerDamaged: It is something else.

    Example:
        >>> whole_numbers([Decimal(5), None])
        (5, None)
    """
    try:
        found = tuple([None if one is None else int(one) for one in values])
    except (ValueError, OverflowError):  # of NaN and infinity, which numeric has
        raise damaged_total() from None
    if found != tuple(values):
        raise damaged_total()
    return found


def damaged_total() -> LedgerDamaged:
    """What is stored is no total."""
    return LedgerDamaged("a running total cannot be read.", do="sitr ledger verify.")


def _vector(name: str) -> list[SchemaItem]:
    """A column of a total, of which nothing is below nothing."""
    plain = CheckConstraint(f"{name} NOT GLOB '*[^][0-9,nul]*'").ddl_if(dialect="sqlite")
    return [
        Column(name, Vectors, nullable=False),
        plain,
        CheckConstraint(f"0 <= ALL ({name})").ddl_if(dialect="postgresql"),
    ]


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
    Column("seq", PLACE, primary_key=True, autoincrement=False),
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

# In units of 2^-60 of each limit of its filters (decision 0006, 0021), null for what is dead. `whole` was spent on the
# whole dataset; `peak` is the most of each that any block has used besides.
budget = Table(
    "budget",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("body", Text, nullable=False),
    *_vector("whole"),
    *_vector("peak"),
    sqlite_strict=True,
)

block = Table(
    "block",
    metadata,
    Column("budget", Text, ForeignKey("budget.name"), primary_key=True),
    Column("block", Text, primary_key=True),
    *_vector("used"),
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
