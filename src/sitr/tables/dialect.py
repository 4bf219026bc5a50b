"""Where engines cannot be told the same thing in the same words: the few places that an engine answers for itself."""

from __future__ import annotations

from typing import Any

Value = Any
WIDE = "decimal(38, 0)"  # holds any sum of 64-bit numbers: 10^19 rows of them


class Dialect:
    """How one engine says what the emitter means; the defaults are those of DuckDB and PostgreSQL."""

    def local(self, moment: Value, zone: str) -> Value:
        """Return a moment as the clock on the wall of a time zone shows it; one without a zone stays as it is."""
        return moment

    def text(self, value: Value) -> Value:
        """Return a text that is equal to another only if its bytes are: a collation is left behind."""
        return value

    def total(self, number: Value) -> Value:
        """Return the exact sum of whole numbers: it neither wraps nor raises, however many rows there are.

        DuckDB adds 64-bit numbers up in 128 bits, and PostgreSQL as `numeric`; Ibis is told so by the cast.
        """
        return number.sum().cast(WIDE)
