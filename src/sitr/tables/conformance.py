"""Whether an engine computes what we take it to compute: tiny tables of our own, and answers that are known.

Ibis writes queries down; it does not promise that engines mean the same by them. An engine that fails a check here is
not opened: a bound that does not hold, or a row that raises, would void the promise.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow

from ..errors import EngineFailed
from .declaration import Declaration
from .domains import EPOCH, Domain
from .emitter import PRIME, Emitter
from .expressions import Case, Column, Constant, Expression, steps_of
from .reference import Reference
from .relations import Filter, Scan
from .source import Source
from .tally import Bound, Key, Measure, Powers, Tally

ZONE = "America/New_York"
KEY = (1_234_567, 7_654_321, 1_000_003)
UNITS = 400  # of the table from which rows are chosen at random
_numbers = itertools.count(1)
_known: dict[tuple[str, ...], Report] = {}


@dataclass(frozen=True)
class Report:
    """What was found of an engine.

    Attributes:
        engine: Its name.
        version: As it says itself.
        checks: "passed", "wrong" or "did not run" for each check, by what it holds.
    """

    engine: str
    version: str
    checks: Mapping[str, str]

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that did not pass."""
        return tuple(name for name, found in self.checks.items() if found != "passed")

    @property
    def passed(self) -> bool:
        """Whether all did."""
        return not self.failed


def check(source: Source) -> Report:
    """Test an engine; the declared tables are not touched.

    Example:
        >>> from sitr.tables.duckdb import DuckDB
        >>> nothing = {"type": "boolean"}
        >>> table = {"unit": "row", "columns": {"x": nothing}}
        >>> declared = Declaration.of({"sitr": 1, "name": "none", "tables": {"none": table}})
        >>> check(DuckDB(declared)).failed
        ()
    """
    trial = _Trial(source)
    found: dict[str, str] = {}
    for group in CHECKS:
        try:
            found |= {name: "passed" if right else "wrong" for name, right in group.compare(trial).items()}
        except EngineFailed:
            found |= dict.fromkeys(group.names, "did not run")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # an answer of another shape
            found |= dict.fromkeys(group.names, "wrong")
    return Report(source.engine, source.version, found)


def report(source: Source) -> Report:
    """Return what was found of an engine; it is tested once in a process, for each way it is set up."""
    key = source.tested_as
    if key not in _known:
        _known[key] = check(source)
    return _known[key]


def require(source: Source) -> None:
    """Refuse an engine that failed.

    Raises:
        EngineFailed: It does not compute what we take it to.
    """
    found = report(source)
    if not found.passed:
        raise EngineFailed(
            f"{source.engine} {source.version} is not to be trusted: {'; '.join(found.failed)}.",
            why="it was tested on tables of our own, and an answer was not the known one.",
            do="take another version of it; `sitr doctor` shows the checks that failed.",
        )


class _Trial:
    """Tables of our own in an engine."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def ask(
        self,
        frame: pyarrow.Table,
        columns: Mapping[str, Any],
        tally: Callable[[Mapping[str, Domain]], Tally],
        *,
        key: tuple[int, int, int] | None = KEY,
        **settings: Any,
    ) -> list[dict[str, Any]]:
        """The rows of a tally over one table."""
        table = {"unit": "row", "columns": columns} | settings
        declared = Declaration.of({"sitr": 1, "name": "trial", "time_zone": ZONE, "tables": {"trial": table}})
        name = f"sitr_sample_{next(_numbers)}"

        def query() -> Any:
            made = self.source.sample(name, frame)
            return Emitter(declared, lambda _: made, self.source, key).tally(tally(declared.tables["trial"].schema))

        rows: list[dict[str, Any]] = self.source.answered(query).to_pylist()
        return rows

    def values(
        self, frame: pyarrow.Table, columns: Mapping[str, Any], asked: Mapping[str, Expression]
    ) -> dict[str, list[Fraction | None]]:
        """Expressions over each row, in the order of its column `place`; missing is None."""

        def tally(schema: Mapping[str, Domain]) -> Tally:
            measures = {f"m{at}": Measure(one, _grid(one, schema)) for at, one in enumerate(asked.values())}
            sums: list[Powers] = [((name, power),) for name in measures for power in (0, 1)]
            self.grids = {name: one.grid for name, one in measures.items()}
            return Tally(Scan("trial"), (Key("place", Column("place"), None),), None, measures, tuple(sums))

        rows = sorted(self.ask(frame, columns, tally), key=lambda row: int(row["key0"]))
        if [int(row["key0"]) for row in rows] != list(range(frame.num_rows)):
            raise ValueError("rows are missing")
        found: dict[str, list[Fraction | None]] = {}
        for at, name in enumerate(asked):
            grid = self.grids[f"m{at}"]
            low = grid.span[0]
            found[name] = [
                (low + int(row[f"sum{2 * at + 1}"])) * grid.step if int(row[f"sum{2 * at}"]) else None for row in rows
            ]
        return found


@dataclass(frozen=True)
class _Checks:
    names: tuple[str, ...]
    compare: Callable[[_Trial], dict[str, bool]]


def _grid(one: Expression, schema: Mapping[str, Domain]) -> Domain:
    domain = one.domain(schema)
    return domain if domain.steps else steps_of(domain)


def _truth(condition: Expression) -> Expression:
    """2 where it is true, 1 where it is false, 0 where it is missing."""
    return Case(condition, Constant(2), Case(~condition, Constant(1), Constant(0)))


def _three(values: list[bool | None]) -> list[Fraction | None]:
    return [Fraction({None: 0, False: 1, True: 2}[value]) for value in values]


def _rounded(value: Any, low: int, high: int, step: Fraction) -> Fraction | None:
    """A number on a grid, by exact arithmetic."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    inside = min(max(value, low), high)
    return math.floor(Fraction(inside) / step + Fraction(1, 2)) * step


# Numbers

FLOATS = [math.nan, None, math.inf, -math.inf, 0.1, 2.0**-13, -(2.0**-13), 1e308, 5e-324, -0.0]
WIDE = [0.0, None, 1e300, -1e300, 2.0, 1.9999999, 6.0, 4e6, 5e-324, -5e-324]
LONGS = [2**63 - 1, -(2**63), None, 0, 1, -1, 5, -7, 3, 2]
UNSIGNED = [2**64 - 1, 0, None, 2**63, 1, 2, 3, 4, 5, 6]
BYTES = [-128, 127, None, 0, 1, -1, 5, -7, 3, 2]
MONEY = [
    Decimal(text) if text else None
    for text in ("99999999.99", "-99999999.99", "", "0.10", "0.01", "-0.01", "1", "0", "12.34", "5")
]
YES = [True, False, None, True, False, None, True, True, False, False]


def _numbers_of(trial: _Trial) -> dict[str, bool]:
    small, count = 12, len(LONGS)
    columns = {
        "place": {"type": "integer"},
        "real": {"type": "float", "bounds": [-100, 100]},
        "wide": {"type": "float", "bounds": [0, 2**22]},
        "long": {"type": "int64", "bounds": [-small, small]},
        "unsigned": {"type": "uint64", "bounds": [0, 5]},
        "byte": {"type": "int8"},
        "money": {"type": "decimal(10, 2)", "bounds": [-1000, 1000]},
        "yes": {"type": "boolean"},
    }
    frame = pyarrow.table(
        {
            "place": pyarrow.array(range(count), pyarrow.int64()),
            "real": pyarrow.array(FLOATS, pyarrow.float64()),
            "wide": pyarrow.array(WIDE, pyarrow.float64()),
            "long": pyarrow.array(LONGS, pyarrow.int64()),
            "unsigned": pyarrow.array(UNSIGNED, pyarrow.uint64()),
            "byte": pyarrow.array(BYTES, pyarrow.int8()),
            "money": pyarrow.array(MONEY, pyarrow.decimal128(10, 2)),
            "yes": pyarrow.array(YES, pyarrow.bool_()),
        }
    )
    real, wide, long, byte = Column("real"), Column("wide"), Column("long"), Column("byte")
    money, yes, unsigned = Column("money"), Column("yes"), Column("unsigned")
    got = trial.values(
        frame,
        columns,
        {
            "real": real,
            "wide": wide,
            "nan": _truth(real.is_null()),
            "tenth": _truth(real == 0.1),
            "long": long,
            "extremes": _truth(long > 2**62),
            "unsigned": unsigned,
            "byte": byte,
            "product": byte * byte + long,
            "quotient": byte / long,
            "money": money,
            "dime": _truth(money == Decimal("0.1")),
            "yes": _truth(yes),
            "both": _truth(yes & (byte > 0)),
            "either": _truth(yes | (byte > 0)),
            "filled": byte.fill_null(-3),
            "listed": _truth(byte.isin([-7, 5, 127])),
        },
    )
    clip = [None if one is None else min(max(one, -small), small) for one in LONGS]
    quotient = Fraction(2) ** math.ceil(math.log2(Fraction(128, 2**40)))
    return {
        "NaN is missing": got["nan"] == _three([one is None or math.isnan(one) for one in FLOATS]),
        "floats are clipped and rounded exactly": got["real"]
        == [_rounded(one, -100, 100, Fraction(1, 2**12)) for one in FLOATS]
        and got["wide"] == [_rounded(one, 0, 2**22, Fraction(4)) for one in WIDE]
        and got["tenth"] == _three([None if one is None or math.isnan(one) else one == 0.1 for one in FLOATS]),
        "whole numbers reach from -2^63 to 2^64": got["long"] == clip
        and got["extremes"] == _three([None if one is None else one > 2**62 for one in LONGS])
        and got["unsigned"] == [None if one is None else min(one, 5) for one in UNSIGNED]
        and got["byte"] == BYTES,
        "arithmetic is exact, and division by zero is missing": got["product"]
        == [None if one is None or two is None else one * one + two for one, two in zip(BYTES, clip, strict=True)]
        and got["quotient"] == [_quotient(one, two, quotient) for one, two in zip(BYTES, clip, strict=True)],
        "decimals are exact": got["money"]
        == [None if one is None else Fraction(min(max(one, Decimal(-1000)), Decimal(1000))) for one in MONEY]
        and got["dime"] == _three([None if one is None else one == Decimal("0.1") for one in MONEY]),
        "logic has three values": got["yes"] == _three(YES)
        and got["both"] == _three([_and(one, two) for one, two in zip(YES, BYTES, strict=True)])
        and got["either"] == _three([_or(one, two) for one, two in zip(YES, BYTES, strict=True)])
        and got["filled"] == [-3 if one is None else one for one in BYTES]
        and got["listed"] == _three([None if one is None else one in (-7, 5, 127) for one in BYTES]),
    }


def _quotient(one: int | None, two: int | None, step: Fraction) -> Fraction | None:
    if one is None or two is None or two == 0:
        return None
    return math.floor(one * float(1 / step) / float(two) + 0.5) * step


def _and(one: bool | None, two: int | None) -> bool | None:
    sides = (one, None if two is None else two > 0)
    return False if False in sides else None if None in sides else True


def _or(one: bool | None, two: int | None) -> bool | None:
    sides = (one, None if two is None else two > 0)
    return True if True in sides else None if None in sides else False


# Conditions

BOTH = [(one, two, number) for number in (-1, None, 4) for one in (True, False, None) for two in (True, False, None)]


def _conditions(trial: _Trial) -> dict[str, bool]:
    """A condition inside another keeps its parentheses, wherever it stands; the reference says what each is."""
    columns = {
        "place": {"type": "integer"},
        "one": {"type": "boolean"},
        "two": {"type": "boolean"},
        "number": {"type": "integer", "bounds": [-9, 9]},
    }
    kinds = (pyarrow.bool_(), pyarrow.bool_(), pyarrow.int64())
    cells = {
        name: pyarrow.array(held, kind)
        for name, held, kind in zip(("one", "two", "number"), zip(*BOTH, strict=True), kinds, strict=True)
    }
    frame = pyarrow.table({"place": pyarrow.array(range(len(BOTH)), pyarrow.int64()), **cells})
    rows = frame.to_pylist()
    one, two, high = Column("one"), Column("two"), Column("number") > 0
    either, within = one | two, Column("number").between(-3, 3)
    parts = {"either": either, "not": ~one, "high": high, "within": within, "same": one == two, "gone": one.is_null()}
    asked: dict[str, Expression] = {}
    for name, part in parts.items():
        asked |= {f"{name} listed": part.isin([True, False]), f"{name} missing": part.is_null()}
        asked |= {f"{name} compared": part == high, f"{name} compares": two != part, f"{name} not": ~part}
        asked |= {f"{name} beside": part & two, f"{name} chosen": Case(part, either, high).isin([True])}
    got = trial.values(frame, columns, {name: _truth(part) for name, part in asked.items()})

    def kept(condition: Expression, key: Expression) -> dict[bool, int]:
        found = trial.ask(
            frame,
            columns,
            lambda _: Tally(Filter(Scan("trial"), condition), (Key("key", key, (True, False)),), None, {}),
        )
        return {bool(row["key0"]): int(row["sum0"]) for row in found}

    schema = Declaration.of({"sitr": 1, "name": "t", "tables": {"t": {"unit": "row", "columns": columns}}})
    reference = Reference(schema.tables["t"].schema)

    def right(condition: Expression, key: Expression) -> dict[bool, int]:
        keys = [reference.value(key, row) for row in rows if reference.value(condition, row) is True]
        return {truth: keys.count(truth) for truth in (True, False) if truth in keys}

    places = [(high, either), (either.isin([True]), ~one), ((~one).is_null(), within), (either == high, one == two)]
    return {
        "a condition inside another keeps its meaning": all(
            got[name] == _three([reference.value(part, row) for row in rows]) for name, part in asked.items()
        ),
        "rows are chosen and grouped by conditions": all(kept(*place) == right(*place) for place in places),
    }


# Dates and times

DAYS = [
    date(1, 1, 1),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2024, 2, 29),
    date(2023, 1, 1),
    None,
    date(1899, 12, 31),
    date(9999, 12, 31),
]
TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 13, 59, 59, 999999),
    None,
    datetime(1900, 1, 1, 0, 0, 0, 1),
    datetime(2038, 1, 19, 3, 14, 8),
    datetime(2024, 11, 3, 5, 30),
    datetime(2024, 11, 3, 6, 30),
]


def _moments(trial: _Trial) -> dict[str, bool]:
    columns = {
        "place": {"type": "integer"},
        "day": {"type": "date", "bounds": [date.min, date.max]},
        "time": {"type": "timestamp", "bounds": [datetime(1800, 1, 1), datetime(2100, 1, 1)]},
        "moment": {"type": "timestamp", "bounds": [datetime(1800, 1, 1), datetime(2100, 1, 1)]},
    }
    moments = [None if one is None else max(one, datetime(1969, 1, 1)).replace(tzinfo=UTC) for one in TIMES]
    frame = pyarrow.table(
        {
            "place": pyarrow.array(range(len(DAYS)), pyarrow.int64()),
            "day": pyarrow.array(DAYS, pyarrow.date32()),
            "time": pyarrow.array(TIMES, pyarrow.timestamp("us")),
            "moment": pyarrow.array(moments, pyarrow.timestamp("us", "UTC")),
        }
    )
    day, time, moment = Column("day"), Column("time"), Column("moment")
    asked: dict[str, Expression] = {"day": day, "time": time, "moment": moment, "hour": time.truncate("hour")}
    asked |= {f"day {unit}": day.truncate(unit) for unit in _BEGINS}
    asked |= {f"time {unit}": time.truncate(unit) for unit in _BEGINS}
    asked |= {f"part {part}": time.part(part) for part in _PARTS}
    asked |= {f"day part {part}": day.part(part) for part in ("year", "quarter", "month", "day", "weekday")}
    asked |= {
        "wall hour": moment.part("hour"),
        "late": _truth(time >= datetime(2000, 1, 1)),
        "leap": _truth(day == date(2024, 2, 29)),
    }
    got = trial.values(frame, columns, asked)
    wall = [None if one is None else one.astimezone(ZoneInfo(ZONE)).replace(tzinfo=None) for one in moments]
    return {
        "dates and times count from 1970, before it too": got["day"] == [_days(one) for one in DAYS]
        and got["time"] == [_seconds(one) for one in TIMES],
        "truncation, weeks too": all(
            got[f"day {unit}"] == [None if one is None else _days(begin(one)) for one in DAYS]
            and got[f"time {unit}"]
            == [None if one is None else _seconds(_midnight(begin(one.date()))) for one in TIMES]
            for unit, begin in _BEGINS.items()
        )
        and got["hour"]
        == [None if one is None else _seconds(one.replace(minute=0, second=0, microsecond=0)) for one in TIMES],
        "parts of dates and times": all(
            got[f"part {part}"] == [None if one is None else Fraction(of(one)) for one in TIMES]
            for part, of in _PARTS.items()
        )
        and all(
            got[f"day part {part}"] == [None if one is None else Fraction(_PARTS[part](_midnight(one))) for one in DAYS]
            for part in ("year", "quarter", "month", "day", "weekday")
        ),
        "time zones": got["moment"] == [_seconds(one) for one in wall]
        and got["wall hour"] == [None if one is None else Fraction(one.hour) for one in wall],
        "dates and times are compared": got["late"]
        == _three([None if one is None else one.year >= 2000 for one in TIMES])
        and got["leap"] == _three([None if one is None else one == date(2024, 2, 29) for one in DAYS]),
    }


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _days(day: date | None) -> Fraction | None:
    return None if day is None else Fraction((day - EPOCH).days)


def _seconds(time: datetime | None) -> Fraction | None:
    return None if time is None else Fraction((time - datetime(1970, 1, 1)) // timedelta(seconds=1))


def _week(day: date) -> date:
    return day - timedelta(days=day.weekday())


_BEGINS: dict[str, Callable[[date], date]] = {
    "year": lambda day: day.replace(month=1, day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda day: day.replace(day=1),
    "week": _week,
}
_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda time: time.year,
    "quarter": lambda time: (time.month - 1) // 3 + 1,
    "month": lambda time: time.month,
    "day": lambda time: time.day,
    "weekday": lambda time: time.weekday(),
    "hour": lambda time: time.hour,
    "minute": lambda time: time.minute,
}


# Text

TEXTS = [
    "a",
    "A",
    "a ",
    "\u00e4",
    "a\u0308",
    "",
    None,
    "o'clock",
    'say "x"',
    "back\\slash",
    "RAND()",
    "%s {} $1",
    "عين",
    "🦉",
]
AWKWARD = "Größe \"x\" `y` 'z' %s"


def _texts(trial: _Trial) -> dict[str, bool]:
    columns = {"place": {"type": "integer"}, AWKWARD: {"type": "string", "nulls": "group"}}
    frame = pyarrow.table(
        {"place": pyarrow.array(range(len(TEXTS)), pyarrow.int64()), AWKWARD: pyarrow.array(TEXTS, pyarrow.string())}
    )
    written = [one for one in TEXTS if one is not None]
    text = Column(AWKWARD)
    asked = {str(at): _truth(text == one) for at, one in enumerate(written)}
    got = trial.values(
        frame, columns, asked | {"list": _truth(text.isin(["A", "\u00e4", "o'clock"])), "gone": _truth(text.is_null())}
    )
    keys = trial.ask(frame, columns, lambda schema: Tally(Scan("trial"), (Key("text", text, None),), None, {}))
    return {
        "text is equal only to itself": all(
            got[str(at)] == _three([None if other is None else other == one for other in TEXTS])
            for at, one in enumerate(written)
        )
        and got["list"] == _three([None if one is None else one in ("A", "\u00e4", "o'clock") for one in TEXTS])
        and got["gone"] == _three([one is None for one in TEXTS]),
        "text keeps groups apart, under any name": sorted((row["key0"] or "", row["key0"] is None) for row in keys)
        == sorted((one or "", one is None) for one in TEXTS)
        and all(int(row["sum0"]) == 1 for row in keys),
    }


# Sums

LARGE = [2**61, 2**61 - 1, -(2**61), None, *[2**61] * 9]


def _sums(trial: _Trial) -> dict[str, bool]:
    columns = {
        "half": {"type": "integer", "bounds": [0, 1]},
        "x": {"type": "int64", "bounds": [-(2**61), 2**61]},
        "unit": {"type": "integer"},
    }
    halves = [at % 2 for at, _ in enumerate(LARGE)]
    grid = Domain("number", Fraction(1), -(2**61), 2**61)

    def tally(bound: Bound | None) -> Callable[[Mapping[str, Domain]], Tally]:
        return lambda schema: Tally(
            Scan("trial"),
            (Key("half", Column("half"), (0, 1)),),
            bound,
            {"x": Measure(Column("x"), grid)},
            ((("x", 1),), (("x", 0),), ()),
        )

    def found(order: int, bound: Bound | None) -> dict[int, tuple[int, ...]]:
        frame = pyarrow.table(
            {
                "half": pyarrow.array(halves[::order], pyarrow.int64()),
                "x": pyarrow.array(LARGE[::order], pyarrow.int64()),
                "unit": pyarrow.array([7] * len(LARGE), pyarrow.int64()),
            }
        )
        settings: dict[str, Any] = {} if bound is None else {"unit": "unit", "max_rows_per_unit": 1000}
        rows = trial.ask(frame, columns, tally(bound), **settings)
        return {int(row["key0"]): tuple(int(row[f"sum{at}"]) for at in range(3)) for row in rows}

    each = {half: [one for one, two in zip(LARGE, halves, strict=True) if two == half] for half in (0, 1)}
    right = {
        half: (sum(one + 2**61 for one in part if one is not None), sum(one is not None for one in part), len(part))
        for half, part in each.items()
    }
    by_group = Bound(groups=2, rows_per_group=1000)
    return {"sums are exact beyond 64 bits": found(1, None) == right and found(-1, by_group) == right}


# Bounding


def _bounds(trial: _Trial) -> dict[str, bool]:
    """Rows of three people and of nobody, in groups of which one is missing; the mix says which of them stay."""
    count = 60
    ids = [at * 2_147_483_659 - 2**40 for at in range(count)]
    people = [None if at % 5 == 4 else at % 3 for at in range(count)]
    groups = [[0, 1, None][at // 7 % 3] for at in range(count)]
    frame = pyarrow.table(
        {
            "id": pyarrow.array(ids, pyarrow.int64()),
            "who": pyarrow.array(people, pyarrow.int64()),
            "group": pyarrow.array(groups, pyarrow.int64()),
            "bit": pyarrow.array([2 ** (at % 31) for at in range(count)], pyarrow.int64()),
        }
    )
    columns = {
        "id": {"type": "integer"},
        "who": {"type": "integer"},
        "group": {"type": "integer", "nulls": "group", "categories": [0, 1]},
        "bit": {"type": "integer", "bounds": [0, 2**31]},
    }
    settings: dict[str, Any] = {"unit": "who", "max_rows_per_unit": 3, "row_id": "id"}
    keys = (Key("group", Column("group"), (0, 1, None)),)
    bit = {"bit": Measure(Column("bit"), Domain("number", Fraction(1), 0, 2**31))}
    named = [at for at in range(count) if people[at] is not None]
    first = sorted(named, key=lambda at: (_mixed(ids[at]), ids[at]))

    rows = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), keys, Bound(rows=3), bit, ((), (("bit", 1),)), units=True),
        **settings,
    )
    kept = [at for who in range(3) for at in [one for one in first if people[one] == who][:3]]
    by_rows = {
        group: (len(here), sum(2 ** (at % 31) for at in here), len({people[at] for at in here}))
        for group in (0, 1, None)
        if (here := [at for at in kept if groups[at] == group])
    }
    cells = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), keys, Bound(groups=2, rows_per_group=2), bit, cells="bit"),
        **settings,
    )
    kept = [
        at
        for who in range(3)
        for group in (0, 1, None)
        for at in [one for one in first if people[one] == who and groups[one] == group][:2]
    ]
    chosen = set()
    for who in range(3):
        least = {
            group: min(ids[at] for at in kept if (people[at], groups[at]) == (who, group))
            for group in {groups[at] for at in kept if people[at] == who}
        }
        chosen |= {(who, group) for group in sorted(least, key=lambda group: (_mixed(least[group]), least[group]))[:2]}
    in_cells: dict[tuple[int | None, int], int] = {}
    for at in kept:
        if (people[at], groups[at]) in chosen:
            in_cells[groups[at], 2 ** (at % 31)] = in_cells.get((groups[at], 2 ** (at % 31)), 0) + 1
    return {
        "a unit keeps its bound of rows, and the mix says which": by_rows
        == {_key(row["key0"]): (int(row["sum0"]), int(row["sum1"]), int(row["units"])) for row in rows},
        "a unit keeps its bound of groups, a missing one too": in_cells
        == {(_key(row["key0"]), int(row["bit"])): int(row["sum0"]) for row in cells},
    }


def _key(cell: Any) -> int | None:
    return None if cell is None else int(cell)


def _mixed(row: int) -> int:
    """The mix of `emitter`, in whole numbers; `math.fmod` and engines keep the sign of what is divided."""
    first, second, third = KEY

    def left(value: int) -> int:
        return int(math.copysign(abs(value) % PRIME, value)) if value else 0

    low, high = left(row), left(math.floor(float(row) / float(PRIME)))
    once = left(low * first + second)
    twice = left(once * once + high * third)
    return left(left(twice * once) * third + first)


def _chance(trial: _Trial) -> dict[str, bool]:
    """One row of two for each unit, by a random column: how often the first is taken is within ten deviations."""
    frame = pyarrow.table(
        {
            "who": pyarrow.array([at // 2 for at in range(2 * UNITS)], pyarrow.int64()),
            "first": pyarrow.array([at % 2 for at in range(2 * UNITS)], pyarrow.int64()),
        }
    )
    columns = {"who": {"type": "integer"}, "first": {"type": "integer", "bounds": [0, 1]}}
    measure = {"first": Measure(Column("first"), Domain("number", Fraction(1), 0, 1))}
    trial.source.guarded(lambda: trial.source.reseed(secrets.randbits(63)))
    rows = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), (), Bound(rows=1), measure, ((), (("first", 1),))),
        key=None,
        unit="who",
        max_rows_per_unit=1,
    )
    taken, spread = int(rows[0]["sum1"]), math.sqrt(UNITS) / 2
    fair = int(rows[0]["sum0"]) == UNITS and abs(taken - UNITS / 2) <= 10 * spread
    return {"a random column chooses rows": len(rows) == 1 and fair}


CHECKS = (
    _Checks(
        (
            "NaN is missing",
            "floats are clipped and rounded exactly",
            "whole numbers reach from -2^63 to 2^64",
            "arithmetic is exact, and division by zero is missing",
            "decimals are exact",
            "logic has three values",
        ),
        _numbers_of,
    ),
    _Checks(("a condition inside another keeps its meaning", "rows are chosen and grouped by conditions"), _conditions),
    _Checks(
        (
            "dates and times count from 1970, before it too",
            "truncation, weeks too",
            "parts of dates and times",
            "time zones",
            "dates and times are compared",
        ),
        _moments,
    ),
    _Checks(("text is equal only to itself", "text keeps groups apart, under any name"), _texts),
    _Checks(("sums are exact beyond 64 bits",), _sums),
    _Checks(
        (
            "a unit keeps its bound of rows, and the mix says which",
            "a unit keeps its bound of groups, a missing one too",
        ),
        _bounds,
    ),
    _Checks(("a random column chooses rows",), _chance),
)
