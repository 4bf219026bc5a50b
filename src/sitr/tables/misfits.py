"""What of a table does not fit its declaration, counted exactly: for its owner's eyes alone.

Nothing here is private. Counts leave, and never a value; but a count without noise may be about one person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce

from .cells import FILLED
from .declaration import Column, KeyPath, Table
from .dialect import Value
from .domains import Domain
from .emitter import LONG_LIST, Emitter, is_listed
from .files import is_file, is_parquet
from .grid import joinable, outside, whole, whole_key
from .lines import LeftOut
from .relations import Scan
from .source import Source
from .statement import UNIT

Pairs = tuple[tuple[str, str], ...]
EXACT = "NOT PRIVATE: exact counts:"


class Exact:
    """Counts without noise: wherever they are shown, that is said first."""

    def __repr__(self) -> str:
        counts = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self))  # type: ignore[arg-type]
        return f"{EXACT} {type(self).__name__}({', '.join(counts)})"


@dataclass(frozen=True, repr=False)
class ColumnMisfits(Exact):
    """How many cells of a column are not as it is declared.

    Attributes:
        missing: Cells that have no value as they are read, whether they are empty or do not parse.
        unparsed: Cells that hold something, and no value of the type; None where cells are not counted.
        outside_bounds: Values that are clipped; None where no bounds are declared.
        outside_categories: Values that are not declared; None where no categories are.
    """

    missing: int
    unparsed: int | None = None
    outside_bounds: int | None = None
    outside_categories: int | None = None


@dataclass(frozen=True, repr=False)
class UnitMisfits(Exact):
    """How the units of a table stand to its row limit.

    Attributes:
        units: How many there are.
        nameless: Rows that belong to none, as they do not name it, or have no key to it.
        over: Units with more rows than the limit.
        rows_over: Their rows beyond the limit, which are left out of every answer.
    """

    units: int
    nameless: int
    over: int
    rows_over: int


@dataclass(frozen=True, repr=False)
class LostKey(Exact):
    """Rows with a key that leads nowhere.

    Attributes:
        table: Where it should lead.
        columns: Pairs of a column of the key and the one there that it has to equal.
        rows: How many rows have a key, and find no row with it.
    """

    table: str
    columns: Pairs
    rows: int


@dataclass(frozen=True, repr=False)
class Misfits(Exact):
    """What of one table does not fit.

    Attributes:
        table: As it is declared.
        rows: How many are read.
        columns: By name.
        units: None where each row is one, and of a public table.
        lost_keys: Of the path to the unit, and of columns that are named like the key of a public table.
        repeated: Of a public table with a key: rows that are dropped, as another one has their key.
        left_out: Lines of a text file that are no records; None of what is no text file, or is not counted.
        uncounted: Whether it is a text file of which this engine counts neither lines nor cells.
    """

    table: Table
    rows: int
    columns: Mapping[str, ColumnMisfits]
    units: UnitMisfits | None
    lost_keys: tuple[LostKey, ...]
    repeated: int | None
    left_out: LeftOut | None
    uncounted: bool


def misfits(source: Source, table: Table) -> Misfits:
    """Count what of a table does not fit its declaration; its rows are read several times.

    Raises:
        EngineFailed: The engine did not answer.
        Cancelled: The user stopped it.

    Privacy: none. The counts are exact, and are for whoever may see the rows themselves.
    """
    return _Counting(source, table).misfits()


class _Counting:
    """Asks an engine for counts of one table: each query has one row of whole numbers."""

    def __init__(self, source: Source, table: Table) -> None:
        self.source, self.table = source, table
        self.emitter = Emitter(source.declared, source.table, source)
        self.places = {name: f"c{place}" for place, name in enumerate(table.columns)}

    def misfits(self) -> Misfits:
        rows, lines = self._counts(self._rows), self.source.lines(self.table)
        is_text = is_file(self.table.source) and not is_parquet(self.table.source)
        return Misfits(
            table=self.table,
            rows=rows["rows"],
            columns=self._columns(rows),
            units=None if self.table.unit is None else self._units(rows["nameless"]),
            lost_keys=tuple(self._lost_keys()),
            repeated=rows["rows"] - self._counts(self._keys)["keys"] if self.table.public and self.table.key else None,
            left_out=None if lines is None else self.source.guarded(lines.left_out),
            uncounted=lines is None and is_text and self.source.found(self.table) is not None,
        )

    def _counts(self, query: Callable[[], Value]) -> dict[str, int]:
        (row,) = self.source.answered(query).to_pylist()
        return {name: int(count or 0) for name, count in row.items()}  # the sum of no rows is missing

    def _times(self, condition: Value) -> Value:
        """In how many rows it is true."""
        return self.source.total(condition.ifelse(whole(1), whole(0)))

    # Columns

    def _read(self) -> Value:
        """The declared columns as they are read."""
        given, columns = self.source.table(self.table), self.table.columns.items()
        read = {self.places[name]: self.emitter.column(given[name], column.domain) for name, column in columns}
        if isinstance(self.table.unit, str):
            read[UNIT] = self.emitter.unit(given[self.table.unit])
        return given.select(**read)

    def _rows(self) -> Value:
        """How many rows there are, and in how many of them a column is so and so."""
        read = self._read()
        counts = {"rows": read.count()}
        if self.table.unit is not None:
            counts["nameless"] = self._times(self._is_nameless(read, self.table.unit))
        for name, column in self.table.columns.items():
            place, value = self.places[name], read[self.places[name]]
            counts[f"missing_{place}"] = self._times(value.isnull())
            if column.domain.bounded:
                counts[f"outside_{place}"] = self._times(outside(value, column.domain))
            if column.domain.categories is not None and not _is_long(column):
                counts[f"listed_{place}"] = self._times(self._is_listed(value, column))
        return read.aggregate(**counts)

    def _is_nameless(self, read: Value, unit: str | KeyPath) -> Value:
        """Whether a row lacks its unit, or a part of the key to it."""
        named_by = [self.places[here] for here, _ in unit.columns] if isinstance(unit, KeyPath) else [UNIT]
        return reduce(lambda one, other: one | other, [read[name].isnull() for name in named_by])

    def _is_listed(self, value: Value, column: Column) -> Value:
        value = whole_key(value) if column.domain.kind == "number" else value
        return is_listed(value, column.domain.listed, self.source)

    def _columns(self, rows: Mapping[str, int]) -> dict[str, ColumnMisfits]:
        filled = self._filled()
        found = {}
        for name, column in self.table.columns.items():
            place = self.places[name]
            missing, listed = rows[f"missing_{place}"], rows.get(f"listed_{place}")
            there = rows["rows"] - missing
            if _is_long(column):
                listed = self._counts(partial(self._listed, column))["listed"]
            found[name] = ColumnMisfits(
                missing=missing,
                unparsed=None if filled is None else max(filled[place] - there, 0),  # the file may grow meanwhile
                outside_bounds=rows.get(f"outside_{place}"),
                outside_categories=None if listed is None else there - listed,
            )
        return found

    def _listed(self, column: Column) -> Value:
        """Rows with one of very many declared values, which are in a table: some engines look there but to filter."""
        read = self._read()
        return _number(read.filter(self._is_listed(read[self.places[column.name]], column)), "listed")

    def _filled(self) -> dict[str, int] | None:
        """How many cells of each column of a text file hold anything."""
        cells = self.source.guarded(lambda: self.source.cells(self.table))
        if cells is None:
            return None
        columns = self.table.columns.items()
        counts = {self.places[name]: self._times(_is_filled(cells[name], column)) for name, column in columns}
        return self._counts(lambda: cells.aggregate(**counts))

    # Units

    def _units(self, nameless: int) -> UnitMisfits:
        return UnitMisfits(nameless=nameless, **self._counts(self._sizes))

    def _sizes(self) -> Value:
        """How many units there are, and how many have more rows than are read."""
        rows = self.emitter.rows(Scan(self.table.name)).table
        sizes = rows.group_by(UNIT).aggregate(size=lambda one: one.count())
        made = sizes.select(beyond=sizes["size"].cast("int64") - whole(self.table.max_rows_per_unit))
        more = made["beyond"] > whole(0)
        rows_over = self.source.total(more.ifelse(made["beyond"], whole(0)))
        return made.aggregate(units=made.count(), over=self._times(more), rows_over=rows_over)

    # Keys

    def _lost_keys(self) -> Iterator[LostKey]:
        path = self.table.unit
        if isinstance(path, KeyPath):
            yield self._lost_key(path.table, path.columns, partial(self.emitter.holders, path))
        if self.table.public:
            return
        for other in self.source.declared.tables.values():
            if other.public and other.key and _is_named_like_key(self.table, other):
                there = partial(self._parts, other, other.key, "there")
                yield self._lost_key(other.name, tuple((name, name) for name in other.key), there)

    def _lost_key(self, to: str, pairs: Pairs, there: Callable[[], Value]) -> LostKey:
        having, meeting = self._counts(partial(self._having, pairs)), self._counts(partial(self._meeting, pairs, there))
        return LostKey(to, pairs, having["rows"] - meeting["rows"])

    def _having(self, pairs: Pairs) -> Value:
        """How many rows have all of a key."""
        return _number(self._keyed(pairs), "rows")

    def _meeting(self, pairs: Pairs, there: Callable[[], Value]) -> Value:
        """How many of them meet it there, where each key is looked for once."""
        here, found = self._keyed(pairs), there()
        keys = found.select(*(f"there{at}" for at, _ in enumerate(pairs))).distinct()
        on = [joinable(here[f"here{at}"]) == joinable(keys[f"there{at}"]) for at, _ in enumerate(pairs)]
        return _number(here.join(keys, on, how="inner").select(*here.columns), "rows")

    def _keyed(self, pairs: Pairs) -> Value:
        """The rows that have all of a key, whose parts are `here0`, `here1`, ..."""
        made = self._parts(self.table, [name for name, _ in pairs], "here")
        return made.filter(*(made[name].notnull() for name in made.columns))

    def _parts(self, table: Table, key: Sequence[str], called: str) -> Value:
        """Columns of a table, called `here0`, `here1`, ... or `there0`, `there1`, ..."""
        given, columns = self.source.table(table), [table.columns[name] for name in key]
        made = {f"{called}{at}": self.emitter.held(given[one.name], one.domain) for at, one in enumerate(columns)}
        return given.select(**made)

    def _keys(self) -> Value:
        """How many different keys a public table has."""
        return _number(self._parts(self.table, self.table.key, "there").distinct(), "keys")


def _number(rows: Value, name: str) -> Value:
    return rows.aggregate(**{name: rows.count()})


def _is_long(column: Column) -> bool:
    return len(column.domain.listed) > LONG_LIST


def _is_filled(cell: Value, column: Column) -> Value:
    """Whether a cell holds what could be a value: blanks are a text, and nothing else."""
    return cell.notnull() if column.type == "string" else cell.re_search(FILLED)


def _is_named_like_key(table: Table, public: Table) -> bool:
    """Whether a table can be joined with a public one by columns that are called like its key."""
    columns = [(table.columns.get(name), public.columns[name]) for name in public.key]
    return all(here is not None and _is_like(here.domain, there.domain) for here, there in columns)


def _is_like(here: Domain, there: Domain) -> bool:
    return here.kind == there.kind and not (here.float or there.float) and here.step == there.step == 1
