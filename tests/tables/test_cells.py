"""Cells of text files: one reading, held on each engine against one in plain Python."""

import math
import random
import re
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from zoneinfo import ZoneInfo

import pyarrow
import pytest

from sitr.tables.cells import value_of
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import DuckDB
from sitr.tables.spark import Spark
from tests.tables import engines

ENGINES = [DuckDB, pytest.param(Spark, marks=pytest.mark.xdist_group("spark"))]
ZONE = "Asia/Kathmandu"  # at +05:45
EXACT = Context(prec=5000, Emax=10**6, Emin=-(10**6))
KINDS = ["integer", "float", "decimal(10, 2)", "decimal(38, 0)", "decimal(38, 10)", "decimal(6, 6)", "boolean", "date",
         "timestamp", "string"]  # fmt: skip


def number(text):
    """A decimal number, and the digits of its exponent."""
    return re.fullmatch("[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?(?P<e>[0-9]+))?", text)


def expected(cell, kind):
    """What a cell holds, by a definition of its own."""
    if kind == "string":
        return cell
    text = cell.strip(" \t\x0b\x0c")
    if kind == "boolean":
        words = {"true": True, "t": True, "yes": True, "y": True, "1": True, "1.0": True}
        words |= {"false": False, "f": False, "no": False, "n": False, "0": False, "0.0": False}
        return words.get(text.lower()) if text.isascii() else None
    if kind in ("date", "timestamp"):
        return moment(text, kind)
    found = number(text)
    if found is None:
        return None
    if kind == "float":
        return float(text) if math.isfinite(float(text)) else None
    if len(found["e"] or "") > 2:
        return None
    value = Decimal(text)
    if kind == "integer":
        whole = value == value.to_integral_value(context=EXACT)
        return int(value) if whole and -(2**63) <= value < 2**63 else None
    precision, scale = map(int, re.findall(r"\d+", kind))
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


def moment(text, kind):
    found = re.fullmatch(
        "([0-9]{4})-([0-9]{2})-([0-9]{2})"
        "([ T]([0-9]{2}):([0-9]{2})(:([0-9]{2})([.]([0-9]{1,9}))?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?",
        text,
    )
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[part] or 0) for part in (1, 2, 3, 5, 6, 8))
    try:
        made = datetime(year, month, day, hour, minute, second, int((found[10] or "").ljust(6, "0")[:6]))
    except ValueError:
        return None
    if kind == "date":
        return None if found[12] else made.date()
    if not found[12]:
        return made
    offset = found[12].replace("Z", "+00").replace(":", "").ljust(5, "0")
    hours, minutes = int(offset[1:3]), int(offset[3:])
    if hours > 14 or minutes > 59:
        return None
    away = timedelta(hours=hours, minutes=minutes) * (-1 if offset[0] == "-" else 1)
    return (made - away).replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(ZONE)).replace(tzinfo=None)


FIXED = [
    "34", "-3", "34.0", "1e3", "+5", "+-5", "--3", "1_000", "0x1F", "0b1", "34\0", "\x0034", " 34 ", "\t34", "34\x0b",
    "34\u00a0", "34\u2028", "34\u0085", "34\x1c", "\ufeff34", "34.5", ".5", "5.", ".", "", " ", "+", "-", "e5", "1e",
    "1e+", "1e-1", "10e-1", "1e18", "9.3e18", "1e19", "1e99", "1e100", "1e400", "-1e400", "1e-400", "0e5", "0e99999",
    "1e99999999999999999999", "1e-99999999999999999999", "9223372036854775807", "9223372036854775808",
    "9223372036854775807.0", "-9223372036854775808", "-9223372036854775809", "-9223372036854775808.0",
    "0.9999999999999999999", "1.0000000000000000001", "1.000000000000000000", "-0", "-0.0", "0" * 60 + "7", "7" * 60,
    "0." + "0" * 60 + "7", "0." + "9" * 60, "1" * 400, "99999999.994", "99999999.995", "-99999999.995", "0.125",
    "-0.125", "2.5", "-2.5", "0.005", "0.0049999", "1.005e0", "125e-3", "12345678901234567890.5", "0.1234565", "nan",
    "NaN", "inf", "-inf", "Infinity", "+Infinity", "1d", "1f", "1D", "1L", "1 2", "1,5", "1'000", "$5", "5%", "(5)",
    "\u0661\u0662", "\u00bd", "\uff11", "1.7976931348623157e308", "1.7976931348623159e308", "2.2250738585072011e-308",
    "4.9e-324", "2e-324", "0.1", "0.30000000000000004", "123456789.123456789", "1e23", "9007199254740993", "true",
    "True", "TRUE", "tRuE", "t", "T", "yes", "Y", "on", "1.0", "0.0", "1.00", "false", "no", "N", "off", "FALſE",
    "truе", "2020", "2020-01", "2020-1-2", "2020-01-02", "2020/01/02", "20200102", "2020-02-30", "2021-02-29",
    "2020-02-29", "1900-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "+2020-01-01", "-2020-01-01",
    "2020-01-02 (BC)", "2020-00-01", "2020-13-01", "2020-01-32", "epoch", "infinity", "today", "now", "1582-10-10",
    "2020-01-02 10:00", "2020-01-02T10:00", "2020-01-02 10", "2020-01-02T", "2020-01-02 ", "2020-01-02t10:00",
    "2020-01-02 10:00:00", "2020-01-02T10:00:00", "2020-01-02  10:00:00", "2020-01-02 1:00", "2020-01-02 24:00:00",
    "2020-01-02 23:59:60", "2020-01-02 23:59:59.9999999", "2020-01-02 10:00:00.", "2020-01-02 10:00:00.1",
    "2020-01-02 10:00:00.123456", "2020-01-02T10:00:00.123456", "2020-01-02 10:00:00.1234567",
    "2020-01-02 10:00:00.123456789", "2020-01-02 10:00:00.1234567890", "2020-01-02T10:00:00Z",
    "2020-01-02 10:00:00+03", "2020-01-02 10:00:00 +03", "2020-01-02 10:00:00+3", "2020-01-02 10:00:00+0300",
    "2020-01-02 10:00:00+03:00", "2020-01-02 10:00:00-05:30", "2020-01-02 10:00:00+14:59", "2020-01-02 10:00:00+15",
    "2020-01-02Z", "2020-01-02 10:00:00+03:60", "2020-01-02 10:00:00 UTC", "2020-01-02 10:00:00 Europe/Berlin",
    "2020-01-02 10:00:00z", "2020-01-02 10:00Z", "2020-01-02 10:00:00+03:", "1969-12-31 23:59:59.999999",
    "9999-12-31 23:59:59.999999", "2020-W01-1", "0000-12-31 23:00:00", "a", "NULL", "None", "NA", "'34'", '"34"', "é",
    "34é",
]  # fmt: skip
PIECES = [
    "0", "1", "5", "9", "00", "12", "34", "59", "2020", "-", "+", ".", ":", "e", "E", "T", " ", "Z", "_", "x", "\t",
    "\0", "f", "d", "n", "inf", "2020-01-02", "10:00", ":00", "+03", ".5", ".0", "e3", "e-2", "1e", "true", "\u00a0",
    "\u0661",
]  # fmt: skip


def cells(size):
    """Texts that nearly are values: pieces of values put together, and values with one sign changed."""
    draw = random.Random(13)
    made = list(FIXED)
    while len(made) < size:
        if draw.random() < 0.5:
            text = "".join(draw.choices(PIECES, k=draw.randint(1, 6)))
        else:
            signs = list(draw.choice(FIXED))
            for _ in range(draw.randint(1, 2)):
                place = draw.randint(0, len(signs))
                signs[place : place + draw.randint(0, 1)] = draw.choice(["", draw.choice(PIECES)])
            text = "".join(signs)
        made.append(text)
    return sorted(set(made))


def same(found, wanted):
    if isinstance(wanted, float):
        return isinstance(found, float) and found == wanted
    return found == wanted


@pytest.fixture(params=ENGINES)
def source(request):
    if request.param is Spark and (reason := engines.missing("spark")):
        pytest.skip(reason)
    table = {"unit": "row", "columns": {"cell": {"type": "string"}}}
    content = {"sitr": 1, "name": "d", "connection": {"engine": request.param.engine}, "tables": {"t": table}}
    one = request.param(Declaration.of(content))
    yield one
    one.close()


def test_every_engine_reads_a_cell_as_we_define_it(source):
    """No cell makes an engine fail, and all of them are read as plain Python reads them."""
    texts = cells(4000)
    table = source.sample("cells", pyarrow.table({"cell": texts}))
    values = {f"v{place}": value_of(table["cell"], kind, source, ZONE) for place, kind in enumerate(KINDS)}
    rows = source.fetch(source.statement(table.select("cell", **values))).to_pylist()
    assert len(rows) == len(texts)
    wrong = [
        (kind, row["cell"], row[f"v{place}"], expected(row["cell"], kind))
        for row in rows
        for place, kind in enumerate(KINDS)
        if not same(row[f"v{place}"], expected(row["cell"], kind))
    ]
    assert not wrong, (len(wrong), wrong[:20])


def test_the_definition_is_about_something():
    texts = cells(4000)
    for kind in KINDS:
        found = [expected(text, kind) for text in texts]
        assert sum(value is not None for value in found) > 20, kind
    assert expected("34.0", "integer") == expected("34", "integer") == 34
    assert expected("2020-01-02", "date") == date(2020, 1, 2)
    assert expected("2020", "date") is expected("1_000", "integer") is expected("34\0", "integer") is None
