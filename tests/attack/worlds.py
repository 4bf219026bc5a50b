"""Random databases for the law of the house: what an owner declares, rows of the worst kind, and neighbours.

A world is made from a seed alone. Its rows are kept with the part that they belong to: what both neighbours have, what
only the first has (one unit's rows), what only the second has (other rows of that unit, under `replace_one`), and rows
that must not count at all: rows that name nobody, and rows that every question of a guarded world leaves out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow

COMMON, THEIRS, OTHERS, NOBODYS = "common", "theirs", "others", "nobody's"
Row = tuple[Any, ...]
Tagged = tuple[str, Row]  # a part and a row of it
BROKEN = (b"\xff1", b"\xff2", b"a\x80", b"\xc3", b"\xed\xa0\x80")  # no UTF-8, and each another person's


@dataclass(frozen=True)
class Kind:
    """A kind of column: how it is declared, what Arrow keeps it as, and the values that are tried."""

    name: str
    type: str
    arrow: Any
    values: tuple[Any, ...]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """A column of a world: its kind, and the few values that most of its rows have, so that they meet."""

    name: str
    kind: Kind
    hot: tuple[Any, ...]
    nulls: str = "skip"

    @property
    def declared(self) -> dict[str, Any]:
        return {"type": self.kind.type, "nulls": self.nulls, **self.kind.settings}

    def cell(self, rng: random.Random) -> Any:
        return rng.choice(self.hot if rng.random() < 0.85 else self.kind.values)


@dataclass(frozen=True)
class Table:
    """A table of a world, without its rows."""

    name: str
    columns: tuple[Made, ...]
    settings: dict[str, Any]
    unit: str | None = None
    live: str | None = None  # the column by which every question of a guarded world leaves rows out

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns)

    def at(self, name: str) -> int:
        return self.names.index(name)


@dataclass(frozen=True)
class World:
    """A declaration, and the rows behind it.

    Attributes:
        seed: From which all of it was made.
        engine: "duckdb", "postgresql" or "spark".
        reader: How the engine comes by the rows: "frames", "parquet", "csv", "file" or "server".
        content: What the TOML file would hold, without connection and sources.
        tables: By name.
        rows: By the name of the table; each with the part that it belongs to.
        guarded: Whether every question leaves out the rows that are not live.
    """

    seed: int
    engine: str
    reader: str
    content: dict[str, Any]
    tables: dict[str, Table]
    rows: dict[str, tuple[Tagged, ...]]
    guarded: bool

    def database(self, *parts: str) -> dict[str, list[Row]]:
        """The rows of some parts; in another order for each choice of parts, as no answer may depend on it."""
        rng = random.Random(f"{self.seed} {parts}")
        made = {name: [row for part, row in tagged if part in parts] for name, tagged in self.rows.items()}
        for rows in made.values():
            rng.shuffle(rows)
        return made

    def with_rows(self, rows: dict[str, tuple[Tagged, ...]]) -> World:
        return replace(self, rows=rows)


FIRST, SECOND, PADDED = (COMMON, THEIRS), (COMMON, OTHERS), (COMMON, THEIRS, NOBODYS)


# Kinds of columns

LONG = (2**63 - 1, -(2**63), 2**62, -(2**53) - 1)
FLOATS = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 5e-324, -0.0, 0.5, 2.9, 2.999999999, 1e-9)
TEXTS = ("a", "b", "c", "A", "", " a", "a ", "it's", 'a"b', "a,b", "é", "ß", "ﷺ", "\U0001f600", "NULL", "other", "%")
DAYS = (date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2020, 2, 29), date(2021, 1, 3), date(1582, 10, 10))
MOMENTS = (
    *(datetime(day.year, day.month, day.day, 23, 59, 59, 999_999) for day in DAYS),
    datetime(2020, 1, 1),
    datetime(2020, 1, 1, 0, 30),
    datetime(2021, 3, 28, 2, 30),
)
PRICES = tuple(map(Decimal, ("0.00", "0.01", "-0.01", "99.99", "100.00", "12345678.90", "-99999999.99", "5.50")))


def kinds(rng: random.Random) -> list[Kind]:
    """Columns of every type, with bounds or without."""
    small = rng.choice([(0, 2), (-1, 3), (1, 4)])
    around = tuple(range(small[0] - 2, small[1] + 3))
    return [
        Kind("flag", "boolean", pyarrow.bool_(), (True, False, None)),
        Kind("other", "boolean", pyarrow.bool_(), (True, False, None)),
        Kind("small", "integer", pyarrow.int64(), (*around, None, *LONG), {"bounds": list(small)}),
        Kind("age", rng.choice(["integer", "int32"]), pyarrow.int32(), (0, 17, 18, 64, 200, -5, None, 2**31 - 1), AGES),
        Kind("tiny", "int8", pyarrow.int8(), (-128, 127, 0, 1, 5, None)),
        Kind("whole", "integer", pyarrow.int64(), (*around, None, *LONG)),
        Kind("wide", "integer", pyarrow.uint64(), (0, 1, 7, 10, 11, 2**64 - 1, 2**63, None), {"bounds": [0, 10]}),
        Kind("score", "float", pyarrow.float64(), (*FLOATS, -1.7, 3.0, None), {"bounds": [-2, 3]}),
        Kind("narrow", "float", pyarrow.float32(), (0.1, 0.25, -7.0, float("nan"), 3e38, None), {"bounds": [0, 1]}),
        Kind("ratio", "float", pyarrow.float64(), (*FLOATS, None)),
        Kind("price", "decimal(10, 2)", pyarrow.decimal128(10, 2), (*PRICES, None), {"bounds": [0, 100]}),
        Kind("label", "string", pyarrow.string(), (*TEXTS, None), {"categories": ["a", "b", "it's", "é", ""]}),
        Kind("text", "string", pyarrow.string(), (*TEXTS, None)),
        Kind("day", "date", pyarrow.date32(), (*DAYS, None), rng.choice([{}, {"bounds": [DAYS[3], DAYS[4]]}])),
        Kind("moment", "timestamp", pyarrow.timestamp("us"), (*MOMENTS, None), rng.choice([{}, SPAN])),
        Kind("zoned", "timestamp", pyarrow.timestamp("us", "UTC"), (*MOMENTS[3:], None)),
    ]


def _usual(kind: Kind) -> tuple[Any, ...]:
    """The values that a question finds: categories, those at the bounds and between them, or all that are there."""
    if "categories" in kind.settings:
        return tuple(kind.settings["categories"])
    there = tuple(value for value in kind.values if value is not None and value == value)
    low, high = kind.settings.get("bounds", (None, None))
    return there if low is None else (*(value for value in there if low <= value <= high), there[-1])


AGES = {"bounds": [0, 120]}
SPAN = {"bounds": [datetime(2019, 12, 30), datetime(2021, 4, 1)]}
ODD = ("unit", "place", "chosen_by", "row_id", "key0", "value", "sum0", "cell", "units", "c0", "Select", "a b", 'q"t')
UNITS = {
    "integer": (pyarrow.int64(), (1, 2, 3, 4, 5, 2**63 - 1)),
    "string": (pyarrow.string(), ("p1", "P1", "p1 ", "é", "p2", "")),
}


class Maker:
    """Makes one world."""

    def __init__(self, seed: int, engine: str, reader: str) -> None:
        self.seed, self.engine, self.reader = seed, engine, reader
        self.rng = random.Random(f"world {seed}")
        self.names: set[str] = set()
        self.keys = (0, 1, 1, 2)

    def world(self) -> World:
        rng = self.rng
        self.guarded = rng.random() < 0.4
        self.unit_kind = rng.choice(["integer", "integer", "string", "string", "string"])
        self.broken = self.unit_kind == "string" and self._holds_broken()
        self.adjacency = rng.choice(["add_remove", "add_remove", "add_remove", "replace_one"])
        made = {one.name: one for one in self._tables()}
        rows = {name: tuple(self._rows(one)) for name, one in made.items()}
        return World(self.seed, self.engine, self.reader, self._content(made), made, rows, self.guarded)

    def _holds_broken(self) -> bool:
        return self.reader in ("frames", "parquet", "csv")

    def _content(self, tables: dict[str, Table]) -> dict[str, Any]:
        declared = {}
        for name, table in tables.items():
            declared[name] = {**table.settings, "columns": {one.name: one.declared for one in table.columns}}
        return {
            "sitr": 1,
            "name": "world",
            "privacy": {"delta": self.rng.choice([1e-6, 1e-6, 0.0]), "adjacency": self.adjacency},
            "time_zone": self.rng.choice(["UTC", "UTC", "Asia/Riyadh", "Europe/Berlin"]),
            "tables": declared,
            "budgets": {name: {"epsilon": 1e4, "delta": 1e-2} for name in ("world", "single")},
        }

    # Declarations

    def _tables(self) -> Iterator[Table]:
        rng = self.rng
        through = rng.choice([{"stay_of": "stay"}, {"stay_of": "stay", "wing_of": "wing"}])
        yield self._private("visits", 6, row_id=rng.random() < 0.2)
        yield self._private("drugs", 3)
        yield self._private("stays", 1, keys=("stay", "wing"), live=False)
        path = {"through": "stays", "on": through}
        yield self._private("charges", 4, keys=("stay_of", "wing_of"), path=path)
        yield self._private("single", 4, rows=True)
        yield self._public("codes", 4, key=False)
        yield self._public("regions", 3, key=True)

    def _private(
        self,
        name: str,
        width: int,
        *,
        keys: tuple[str, ...] = (),
        path: dict[str, Any] | None = None,
        rows: bool = False,
        row_id: bool = False,
        live: bool = True,
    ) -> Table:
        rng, columns = self.rng, []
        settings: dict[str, Any] = {"max_rows_per_unit": rng.choice([1, 2, 3, 5])}
        unit = None
        if rows:
            settings = {"unit": "row", "dataset": "single"}
        elif path is not None:
            settings["unit"] = path
        else:
            unit = rng.choice(["who", "who", f"who_{name}"])
            arrow, values = UNITS[self.unit_kind]
            columns.append(Made(unit, Kind("unit", self.unit_kind, arrow, (*values, None)), values))
            settings["unit"] = unit
        columns += [self._key(one, name) for one in keys] or [self._key(f"k_{name[0]}", name)]
        columns += self._columns(name, width)
        if row_id:
            ids = Kind("id", "integer", pyarrow.int64(), tuple(range(9)))  # some repeat
            columns.append(Made("id", ids, ids.values))
            settings["row_id"] = "id"
        guard = None
        if live and self.guarded:
            guard = f"live_{name[0]}"
            columns.append(Made(guard, Kind("live", "integer", pyarrow.int64(), (1,)), (1,), "skip"))
        if rng.random() < 0.3:
            settings["expected_rows"] = settings["expected_units"] = 50
        return Table(name, tuple(columns), settings, unit, guard)

    def _public(self, name: str, width: int, *, key: bool) -> Table:
        columns = (self._key(f"k_{name[0]}", name), *self._columns(name, width))
        return Table(name, columns, {"public": True, **({"key": columns[0].name} if key else {})})

    def _key(self, name: str, table: str) -> Made:
        """A column by which tables are joined: its few values are everywhere, whatever type they have there."""
        arrow = self.rng.choice([pyarrow.int64(), pyarrow.int64(), pyarrow.int32(), pyarrow.uint64()])
        return Made(name, Kind("key", "integer", arrow, (*self.keys, None, 5)), self.keys)

    def _columns(self, table: str, width: int) -> list[Made]:
        rng = self.rng
        chosen = rng.sample(kinds(rng), width)
        if table in ("visits", "codes", "single"):  # conditions of two columns are where engines are told nonsense
            flags = [one for one in kinds(rng) if one.type == "boolean"]
            chosen = flags + [one for one in chosen if one.type != "boolean"]
        made = []
        for kind in chosen:
            nulls = rng.choice(["skip", "skip", "skip", "skip", "group", "group", "drop"])
            usual = _usual(kind)
            hot = tuple(rng.choice(usual if rng.random() < 0.85 else kind.values) for _ in range(rng.choice([1, 2, 3])))
            made.append(Made(self._name(kind, table), self._held(kind), hot, nulls))
        return made

    def _name(self, kind: Kind, table: str) -> str:
        name = self.rng.choice(ODD) if self.rng.random() < 0.06 else f"{kind.name}_{table[0]}"
        if name.casefold() in self.names:
            name = f"{kind.name}_{table}"
        self.names.add(name.casefold())
        return name

    def _held(self, kind: Kind) -> Kind:
        """A kind with what the reader can hold beside it: coarser and finer times, texts that are none; and in every
        second world, what is not declared is one group.
        """
        if kind.name == "moment" and self.reader in ("frames", "parquet"):
            kind = replace(kind, arrow=pyarrow.timestamp(self.rng.choice(["s", "ms", "us", "us"])))
        if "categories" in kind.settings and self.seed % 2:
            kind = replace(kind, settings={**kind.settings, "others": "group"})
        if kind.type == "string" and self._holds_broken():
            kind = replace(kind, values=(*kind.values, *BROKEN))
        return kind

    # Rows

    def _rows(self, table: Table) -> Iterator[Tagged]:
        rng = self.rng
        if table.settings.get("public"):
            size = rng.choice([4, 8, 12])
            yield from ((COMMON, self._row(table)) for _ in range(size))
        elif table.unit is None:
            yield from ((COMMON, self._row(table)) for _ in range(rng.choice([3, 8, 14])))
            if "unit" in table.settings and table.settings["unit"] == "row":
                yield (THEIRS, self._row(table))
                if self.adjacency == "replace_one":
                    yield (OTHERS, self._row(table))
        else:
            yield from self._of_units(table, table.unit)
        if table.live is not None:
            yield from ((NOBODYS, self._dead(table)) for _ in range(9))

    def _of_units(self, table: Table, unit: str) -> Iterator[Tagged]:
        """Rows of some people, of the one who leaves (often far more than the bound), and of nobody."""
        rng, at = self.rng, table.at(unit)
        people = [*UNITS[self.unit_kind][1], *(BROKEN if self.broken else ())]
        leaving = self._leaving(people)
        for person in people:
            if person != leaving:
                yield from self._owned(table, at, person, COMMON, rng.choice([0, 1, 2, 4]))
        most = table.settings["max_rows_per_unit"]
        yield from self._owned(table, at, leaving, THEIRS, rng.choice([1, most, most + 1, 2 * most + 3, 3 * most + 6]))
        if self.adjacency == "replace_one":
            yield from self._owned(table, at, leaving, OTHERS, rng.choice([0, 1, most + 1, 2 * most + 3]))
        for nobody in (None, *(BROKEN if self.broken else ())):  # an id that is no text names nobody
            yield from self._owned(table, at, nobody, NOBODYS, 5)

    def _leaving(self, people: list[Any]) -> Any:
        """The same person in every table."""
        return random.Random(f"leaving {self.seed}").choice(people)

    def _owned(self, table: Table, at: int, person: Any, part: str, count: int) -> Iterator[Tagged]:
        alike = self._row(table) if self.rng.random() < 0.4 else None  # many equal rows, or all different
        for _ in range(count):
            row = list(alike if alike is not None and self.rng.random() < 0.8 else self._row(table))
            row[at] = person
            yield part, tuple(row)

    def _dead(self, table: Table) -> Row:
        row = list(self._row(table))
        row[table.at(str(table.live))] = self.rng.choice([0, 0, 2, None])
        return tuple(row)

    def _row(self, table: Table) -> Row:
        return tuple(one.cell(self.rng) for one in table.columns)


def made(seed: int, engine: str = "duckdb", reader: str | None = None) -> World:
    """Return the world of a seed on an engine."""
    readers = {"duckdb": READERS, "postgresql": ("server",), "spark": ("parquet", "parquet", "csv")}[engine]
    chosen = reader or readers[random.Random(f"reader {seed}").randrange(len(readers))]
    return Maker(seed, engine, chosen).world()


READERS = ("frames",) * 5 + ("parquet",) * 2 + ("csv",) * 2 + ("file",)


def frame(table: Table, rows: list[Row]) -> pyarrow.Table:
    """Rows as an Arrow table; texts may be none."""
    columns = {}
    for at, one in enumerate(table.columns):
        columns[one.name] = _array([row[at] for row in rows], one.kind.arrow)
    return pyarrow.table(columns)


def _array(cells: list[Any], arrow: Any) -> Any:
    if arrow != pyarrow.string():
        return pyarrow.array(cells, arrow) if not pyarrow.types.is_timestamp(arrow) else _moments(cells, arrow)
    raw = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
    return pyarrow.array(raw, pyarrow.binary()).view(pyarrow.string())


def _moments(cells: list[Any], arrow: Any) -> Any:
    steps = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}[arrow.unit]
    whole = [None if cell is None else (cell - datetime(1970, 1, 1)) // steps for cell in cells]
    return pyarrow.array(whole, pyarrow.int64()).cast(arrow)
