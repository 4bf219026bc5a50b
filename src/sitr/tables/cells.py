"""Cells of text files: what each type takes for a value, the same on every engine.

An engine's own casts take what its authors found handy: 1_000, hexadecimal digits, a year for a date, 34.5 for the
integer 35. Here a cell is a value if it matches one expression that means the same everywhere; it is then taken apart,
and put together as a text that every engine casts alike. What does not match is missing. The usual cells, which are
written just as the engine itself would write their value, need none of this.
"""

from __future__ import annotations

from datetime import date

import ibis

from .declaration import Table
from .dialect import Dialect, Value, type_of

# No sign here means anything else to one engine's expressions than to another's: no \d, no \s, and no $, behind which
# a line may end. And no text matches in two ways, which Java would try one by one.
BLANK = r"[ \t\x0b\x0c]*"
FILLED = r"[^ \t\x0b\x0c]"  # what is found in a cell that is not blank
DIGITS = "[0-9]+(?:[.][0-9]*)?|[.][0-9]+"
NUMBER = rf"\A{BLANK}[+-]?(?:{DIGITS})(?:[eE][+-]?[0-9]+)?{BLANK}\z"
SHORT = rf"\A{BLANK}([+-]?)({DIGITS})(?:[eE]([+-]?[0-9]{{1,2}}))?{BLANK}\z"
WHOLE = "^[0-9]*"  # what stands before the point
ZEROS = "0" * 140  # more than an exponent of two digits moves a point by, and as many as a decimal has digits
YEAR = "[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9]"
DAY = f"(?:{YEAR})-[0-9]{{2}}-[0-9]{{2}}"
CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?"
OFFSET = "(?:0[0-9]|1[0-4])(?::?[0-5][0-9])?"
DATE = rf"\A{BLANK}({DAY})(?:[ T]{CLOCK})?{BLANK}\z"
TIME = rf"\A{BLANK}({DAY}(?:[ T]{CLOCK})?){BLANK}\z"
MOMENT = rf"\A{BLANK}({DAY}[ T]{CLOCK})[ ]?(Z|[+-]{OFFSET}){BLANK}\z"
HOURS, MINUTES = "^([+-][0-9]{2})", "^([+-])[0-9]{2}:?([0-9]{2})$"
TRUE = rf"\A{BLANK}(?:[Tt]|[Tt][Rr][Uu][Ee]|[Yy]|[Yy][Ee][Ss]|1|1[.]0){BLANK}\z"
FALSE = rf"\A{BLANK}(?:[Ff]|[Ff][Aa][Ll][Ss][Ee]|[Nn]|[Nn][Oo]|0|0[.]0){BLANK}\z"
TIMESTAMP = "timestamp(6)"
FIRST_AND_LAST = date(1, 1, 1), date(9999, 12, 31)  # between which every engine writes a year with four digits
LARGEST = 1.7976931348623157e308


def values_of(cells: Value, table: Table, dialect: Dialect, zone: str) -> dict[str, Value]:
    """Return the declared columns of a table of texts; see `value_of`."""
    kinds = {name: column.type for name, column in table.columns.items()}
    return {name: value_of(cells[name], kinds[name], dialect, zone, names=table.unit == name) for name in cells.columns}


def value_of(cell: Value, kind: str, dialect: Dialect, zone: str, *, names: bool = False) -> Value:
    """Return what a cell holds, as a declared type; what is no value of it is missing, and never raises.

    Args:
        cell: Its text, or nothing.
        kind: The declared type.
        dialect: Of the engine.
        zone: On whose clock a time with an offset is read.
        names: Whether it names a unit: then nothing is rounded, which would make one unit of several.

    - A float is a decimal number (`12`, `-0.5`, `.5`, `5.`, `+1e3`) that is finite: NaN and infinities are missing.
    - A decimal is such a number with an exponent of up to two digits. Digits that it has no room for after its point
      are rounded, half away from zero; one that is too large is missing.
    - An integer is such a number that is whole and has 64 bits: `34`, `34.0` and `1e3`, but not `34.5`.
    - A boolean is true, t, yes, y, 1 or 1.0, or false, f, no, n, 0 or 0.0, in small letters or capitals.
    - A date is YYYY-MM-DD, in the years 1 to 9999, and what follows of a time without an offset is left out.
    - A timestamp is such a date, and after a blank or a T may have hh:mm, hh:mm:ss or hh:mm:ss.f, of which six digits
      are read. One with an offset (Z, +03, +0300, +03:00) is a moment, and is read on the clock of `zone`.
    - Blanks around any of them do not count. A string is what stands there. Of any other type, a cell of more than a
      thousand signs is missing (`lines`): engines take very long to find that it is no number.
    """
    read = {"boolean": _boolean, "string": _string, "date": _date, "float": _float}.get(kind)
    if read is not None:
        return read(cell, dialect)
    if kind == "timestamp":
        return _time(cell, dialect, zone)
    return _exact(cell, type_of(kind), whole=names or type_of(kind) == "int64")


def _string(cell: Value, _: Dialect) -> Value:
    return cell


def _boolean(cell: Value, _: Dialect) -> Value:
    usual = [(cell == "True", True), (cell == "False", False), (cell == "true", True), (cell == "false", False)]
    return ibis.cases(*usual, (cell.re_search(TRUE), True), (cell.re_search(FALSE), False), else_=ibis.null("boolean"))


def _float(cell: Value, dialect: Dialect) -> Value:
    made = dialect.float_of(cell, NUMBER)
    return made.between(-LARGEST, LARGEST).ifelse(made, ibis.null("float64"))


def _exact(cell: Value, kind: str, *, whole: bool) -> Value:
    """A whole number or a decimal."""
    made = cell.try_cast(kind)
    text = made.cast("string")
    usual = [(text == cell, made), (text + ".0" == cell, made)] if whole else [(text == cell, made)]
    return _chosen(*usual, (cell.re_search(SHORT), _digit_by_digit(cell, kind, only_whole=whole)))


def _digit_by_digit(cell: Value, kind: str, *, only_whole: bool) -> Value:
    """A number whose point is moved by its exponent, so that it has none when an engine reads it."""
    sign, number, exponent = (cell.re_extract(SHORT, part) for part in (1, 2, 3))
    point = len(ZEROS) + number.re_extract(WHOLE, 0).length() + exponent.try_cast("int64").fill_null(0)
    digits = ibis.literal(ZEROS) + number.replace(".", "") + ZEROS
    whole, rest = digits.substr(0, point).re_replace("^0+", ""), digits.substr(point, digits.length())
    if only_whole:
        return (rest.replace("0", "") == "").ifelse((sign + "0" + whole).try_cast(kind), ibis.null(kind))
    scale = int(kind.rstrip(")").rpartition(",")[2])
    return (sign + "0" + whole + "." + rest.substr(0, scale + 1)).try_cast(kind)


def _date(cell: Value, _: Dialect) -> Value:
    made = cell.try_cast("date")
    usual = made.between(*FIRST_AND_LAST) & (made.cast("string") == cell)
    return _chosen((usual, made), (cell.re_search(DATE), cell.re_extract(DATE, 1).try_cast("date")))


def _time(cell: Value, dialect: Dialect, zone: str) -> Value:
    made = cell.try_cast(TIMESTAMP)
    inside, text = made.cast("date").between(*FIRST_AND_LAST), made.cast("string")
    return _chosen(
        (inside & (text == cell), made),
        (inside & (text.replace(" ", "T") == cell), made),
        (cell.re_search(TIME), cell.re_extract(TIME, 1).try_cast(TIMESTAMP)),
        (cell.re_search(MOMENT), _moment(cell, dialect, zone)),
    )


def _moment(cell: Value, dialect: Dialect, zone: str) -> Value:
    offset = cell.re_extract(MOMENT, 2)
    minutes = offset.re_extract(MINUTES, 1) + offset.re_extract(MINUTES, 2)
    away = offset.re_extract(HOURS, 1).try_cast("int64").fill_null(0) * 60 + minutes.try_cast("int64").fill_null(0)
    utc = cell.re_extract(MOMENT, 1).try_cast(TIMESTAMP) - away.as_interval("m")
    return dialect.local(utc.cast("timestamp('UTC')"), zone)


def _chosen(*ways: tuple[Value, Value]) -> Value:
    """The first of some ways to read a cell that applies."""
    return ibis.cases(*ways, else_=ibis.null(ways[0][1].type()))
