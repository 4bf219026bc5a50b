"""Where engines cannot be told the same thing in the same words: the few places that an engine answers for itself."""

from __future__ import annotations

from typing import Any

import ibis

Value = Any
PLAIN = ("boolean", "string", "date", "timestamp")  # types that Ibis calls as declarations do
KNOWN_KEY, PLACE_OF_KEY = "known_key", "place_of_key"  # columns of a table of public texts; no other one has them
WIDE = "decimal(38, 0)"  # holds any sum of 64-bit numbers: 10^19 rows of them


def _timezone(zone: str, moment: Any) -> Any:
    """A function of DuckDB and PostgreSQL: the time on the wall."""


_at_zone = ibis.udf.scalar.builtin(_timezone, name="timezone", signature=(("string", "timestamp('UTC')"), "timestamp"))


def type_of(declared: str) -> str:
    """Return Ibis's name of a declared type.

    Example:
        >>> type_of("float"), type_of("uint8"), type_of("decimal(10, 2)")
        ('float64', 'int64', 'decimal(10, 2)')
    """
    if declared in PLAIN or declared.startswith("decimal"):
        return declared
    return "float64" if declared == "float" else "int64"


class Dialect:
    """How one engine says what the emitter means; the defaults are those of DuckDB and PostgreSQL."""

    def local(self, moment: Value, zone: str) -> Value:
        """Return a moment as the clock on the wall of a time zone shows it; one without a zone stays as it is."""
        return moment if moment.type().timezone is None else _at_zone(zone, moment)

    def text(self, value: Value) -> Value:
        """Return a text that is equal to another only if its bytes are: a collation is left behind."""
        return value

    def places(self, values: tuple[str, ...]) -> Value | None:
        """Return a table of public texts, each with its place among them; None where that would save nothing."""
        return None

    def listed(self, values: tuple[Any, ...], kind: Any) -> Value:
        """Return public values of one of Arrow's types as a table of one column, `known`: they are not written out."""
        raise NotImplementedError

    def float_of(self, cell: Value, pattern: str) -> Value:
        """Return the number of a text that matches a pattern, and what is missing or not finite for any other."""
        return cell.re_search(pattern).ifelse(cell, ibis.null("string")).try_cast("float64")

    def total(self, number: Value) -> Value:
        """Return the exact sum of whole numbers: it neither wraps nor raises, however many rows there are.

        DuckDB adds 64-bit numbers up in 128 bits, and PostgreSQL as `numeric`; Ibis is told so by the cast.
        """
        return number.sum().cast(WIDE)
