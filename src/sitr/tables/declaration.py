"""What the owner declares: tables, whom they are about, bounds, and who may ask; read from one TOML file.

Nothing here is read off the data. What is declared is public: it may be shown to every analyst.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from .. import _validate
from ..errors import InvalidArgument, InvalidDeclaration
from ..units import ADJACENCIES, Adjacency
from .domains import OTHERS, Domain

FORMAT = 1
ENGINES = ("duckdb", "postgresql", "spark")
INTEGERS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)
}
TYPES = ("boolean", "integer", *INTEGERS, "float", "decimal(precision, scale)", "string", "date", "timestamp")
# A missing value is left out of what is computed of it; or it is a group of its own; or its row is dropped.
NULLS = ("skip", "group", "drop")
UNDECLARED = ("skip", "group")  # a value that is no category is in no group; or in one with all others like it
SMALL = 2**32  # whole numbers of a type that is no wider have bounds by their type
MOST_ROWS = 10**9
MOST_CATEGORIES = 10**6
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
MOMENTS = {"date": DAY, "timestamp": f"{DAY}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}})?)?"}  # in quotes
SUCH = {"date": "2025-12-31", "timestamp": "2025-12-31T23:59:59"}
MOST_BESIDE_OTHERS = 1000  # categories that are written out in each question, to know what is none of them


@dataclass(frozen=True)
class Column:
    """A column as declared.

    Attributes:
        name: In the engine.
        type: One of the types that a declaration may name.
        domain: What it can hold.
    """

    name: str
    type: str
    domain: Domain


@dataclass(frozen=True)
class KeyPath:
    """How a table without the unit's column finds it: by a key into another table.

    Attributes:
        table: The declared table that has the unit.
        columns: Pairs of a column here and the column there that it has to equal.
    """

    table: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table as declared.

    Attributes:
        name: As analysts call it.
        source: What the engine calls it: a table, or a file.
        columns: By name.
        public: Whether it is about nobody: it costs nothing to read.
        key: For a public table: columns of which it has each value once; what repeats is dropped.
        dataset: The budget that pays for it.
        unit: The column that names the unit; a path to it; or None, where each row is a unit of its own.
        max_rows_per_unit: How many rows of one unit are read at most; the others are dropped at random.
        row_id: A column of whole numbers, different in each row, by which rows may be chosen.
        expected_units: About how many units there are; public.
        expected_rows: About how many rows there are; public.
        max_rows: More rows than the table will ever have.
    """

    name: str
    source: str
    columns: Mapping[str, Column]
    public: bool = False
    key: tuple[str, ...] = ()
    dataset: str = ""
    unit: str | KeyPath | None = None
    max_rows_per_unit: int = 1
    row_id: str | None = None
    expected_units: int | None = None
    expected_rows: int | None = None
    max_rows: int = MOST_ROWS

    @property
    def schema(self) -> dict[str, Domain]:
        """What each column can hold."""
        return {name: column.domain for name, column in self.columns.items()}


@dataclass(frozen=True)
class Declaration:
    """All that an owner says of a database.

    Attributes:
        name: Of the database.
        version: Raised by the owner with every change.
        engine: "duckdb", "postgresql" or "spark".
        address: Where the engine finds the data: a file, a server, a master; empty for files and frames in DuckDB.
        tables: By name.
        unit: Whom the promise protects, in a word.
        adjacency: How neighbouring databases differ.
        delta: The δ of a release that needs one and is not given one.
        time_zone: In which moments with a time zone are read.
        ledger: Where the book is.
        ledger_id: Which book it is.
        anchor: The file that its end is written down in, elsewhere: an older copy of the book is refused by it.
        budgets: The limits of each dataset, as they stand in the file: epsilon, delta, rho, and shares of analysts.
        analysts: Who may ask; empty: everyone.
        folder: Where the file is: other files are named from there.
    """

    name: str
    version: int
    engine: str
    address: str
    tables: Mapping[str, Table]
    unit: str
    adjacency: Adjacency
    delta: float
    time_zone: str
    ledger: str | None
    ledger_id: str | None
    anchor: str | None
    budgets: Mapping[str, Mapping[str, Any]]
    analysts: tuple[str, ...]
    folder: Path = field(compare=False)

    @classmethod
    def read(cls, path: str | Path) -> Declaration:
        """Read a declaration from a TOML file.

        Raises:
            InvalidDeclaration: It cannot be read, or it is not consistent; the message names the place.
        """
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidDeclaration(f"{path} cannot be read: {error.strerror}.", do="sitr init drafts one.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidDeclaration(f"{path} is no TOML: {error}.") from None
        return cls.of(content, path.parent)

    @classmethod
    def of(cls, content: Mapping[str, Any], folder: str | Path = ".") -> Declaration:
        """Read a declaration from what a TOML file holds.

        Example:
            >>> declared = Declaration.of(
            ...     {
            ...         "sitr": 1,
            ...         "name": "clinic",
            ...         "tables": {
            ...             "visits": {
            ...                 "unit": "patient",
            ...                 "max_rows_per_unit": 5,
            ...                 "columns": {
            ...                     "patient": {"type": "integer"},
            ...                     "cost": {"type": "float", "bounds": [0, 1000]},
            ...                 },
            ...             }
            ...         },
            ...     }
            ... )
            >>> declared.tables["visits"].schema["cost"].ends
            (Fraction(0, 1), Fraction(1000, 1))
        """
        return _Reader(content).declaration(Path(folder))


class _Part:
    """A table of the file, with its place in it for messages; what was not read at the end is unknown."""

    def __init__(self, content: Any, place: str) -> None:
        self.place = place
        if not isinstance(content, Mapping):
            raise InvalidDeclaration(f"{place or 'the file'} is not a table of settings.")
        self.left = dict(content)
        self.known: list[str] = []  # what was looked for

    def fail(self, what: str, **more: str) -> InvalidDeclaration:
        return InvalidDeclaration(f"{self.place}: {what}" if self.place else what, **more)

    def pop(self, name: str, default: Any = None) -> Any:
        self.known.append(name)
        return self.left.pop(name, default)

    def take(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        value = self.pop(name, default)
        wrong_bool = isinstance(value, bool) and kind is not bool
        if value is not default and (not isinstance(value, kind) or wrong_bool):
            wanted = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
            raise self.fail(f"{name}={_validate.shown(value)} is not of type {wanted}.")
        return value

    def whole(self, name: str, default: int | None, low: int, high: int) -> int | None:
        value = self.take(name, int, default)
        if value is not None and not low <= value <= high:
            raise self.fail(f"{name}={value} is not in [{low}, {high}].")
        return value  # type: ignore[no-any-return]

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.take(name, str, default)
        if value not in allowed:
            raise self.fail(f"{name}={_validate.shown(value)} is not one of {', '.join(map(repr, allowed))}.")
        return value  # type: ignore[no-any-return]

    def part(self, name: str) -> _Part:
        return _Part(self.pop(name, {}), f"{self.place}.{name}" if self.place else name)

    def done(self) -> None:
        if self.left:
            raise self.fail(
                f"{', '.join(map(repr, self.left))} is not known here.",
                why="a misspelt setting would silently not hold.",
                do="".join(_validate.meant(name, self.known) for name in self.left).strip(),
            )

    def missing(self, name: str, why: str, do: str) -> InvalidDeclaration:
        """The refusal of a part that lacks a setting; one that looks like it is misspelt."""
        misspelt = next((other for other in self.left if _validate.meant(other, [name])), None)
        return self.fail(
            f"{name} is not declared{f', and {misspelt!r} is not known' if misspelt else ''}.", why=why, do=do
        )


class _Reader:
    def __init__(self, content: Mapping[str, Any]) -> None:
        self.top = _Part(content, "")

    def declaration(self, folder: Path) -> Declaration:
        top = self.top
        if top.take("sitr", int, 0) != FORMAT:
            raise top.fail(f"the first line has to be: sitr = {FORMAT}", why="it is the version of the format.")
        name = self._name(top, "name", top.take("name", str, ""))
        connection, privacy, ledger = top.part("connection"), top.part("privacy"), top.part("ledger")
        delta = privacy.take("delta", (int, float), 0.0)
        if not 0 <= delta < 1:
            raise privacy.fail(f"delta={_validate.shown(delta)} is not in [0, 1).")
        made = Declaration(
            name=name,
            version=top.whole("version", 1, 1, 2**31) or 1,
            engine=connection.choice("engine", ENGINES, "duckdb"),
            address=connection.take("address", str, ""),
            tables=self._tables(top.part("tables"), name),
            unit=privacy.take("unit", str, "person"),
            adjacency=privacy.choice("adjacency", ADJACENCIES, "add_remove"),  # type: ignore[arg-type]
            delta=float(delta),
            time_zone=self._zone(top),
            ledger=ledger.take("url", str, None),
            ledger_id=ledger.take("id", str, None) or None,
            anchor=ledger.take("anchor", str, None) or None,
            budgets=self._budgets(top.part("budgets")),
            analysts=tuple(self._name(top, "analysts", one) for one in top.take("analysts", list, [])),
            folder=folder,
        )
        for part in (connection, privacy, ledger, top):
            part.done()
        _check_paths(made.tables)
        _check_datasets(made.tables, folder)
        _check_units(made.tables)
        return made

    @staticmethod
    def _name(part: _Part, what: str, value: Any) -> str:
        try:
            return _validate.name(what, value, without="/")
        except ValueError as error:
            raise part.fail(getattr(error, "what", str(error))) from None

    @staticmethod
    def _zone(top: _Part) -> str:
        zone = str(top.take("time_zone", str, "UTC"))
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):
            raise top.fail(f"time_zone={_validate.shown(zone)} is no time zone.", do='such as "Asia/Riyadh".') from None
        return zone

    @staticmethod
    def _budgets(part: _Part) -> dict[str, Mapping[str, Any]]:
        budgets = dict(part.left)
        for name, limits in budgets.items():
            one = _Part(limits, f"budgets.{name}")
            _limits(one)
            for share in ("analysts", "purposes"):
                for holder, settings in one.part(share).left.items():
                    inner = _Part(settings, f"budgets.{name}.{share}.{holder}")
                    _limits(inner)
                    inner.done()
            one.done()
        return budgets

    def _tables(self, part: _Part, dataset: str) -> dict[str, Table]:
        if not part.left:
            raise self.top.fail("no tables are declared.", do="[tables.visits], with its columns below it.")
        return {name: self._table(name, part.part(name), dataset) for name in list(part.left)}

    def _table(self, name: str, part: _Part, dataset: str) -> Table:
        self._name(part, "table", name)
        columns = {column: _column(column, settings) for column, settings in _columns(part)}
        public = part.take("public", bool, False)
        unit = None if public else _unit(part)
        made = Table(
            name=name,
            source=_source(part, name),
            columns=columns,
            public=public,
            key=tuple(_listed(part, "key", part.take("key", (str, list), []))),
            dataset="" if public else self._name(part, "dataset", part.take("dataset", str, dataset)),
            unit=unit,
            max_rows_per_unit=_max_rows_per_unit(part, unit, public=public),
            row_id=part.take("row_id", str, None),
            expected_units=part.whole("expected_units", None, 1, 2**53),
            expected_rows=part.whole("expected_rows", None, 1, 2**53),
            max_rows=part.whole("max_rows", MOST_ROWS, 1, 2**53) or MOST_ROWS,
        )
        part.done()
        _check_columns(part, made)
        return made


def _source(part: _Part, name: str) -> str:
    source = str(part.take("source", str, name))
    if not source or not source.isprintable():
        raise part.fail(f"source={_validate.shown(source)} is no name of a table, and no path of a file.")
    return source


def _limits(part: _Part) -> None:
    for limit, such in (("epsilon", "1.0"), ("rho", "0.1"), ("delta", "1e-6")):
        value = part.take(limit, (int, float))
        if value is not None and (value < 0 or (value == 0 and limit != "delta")):
            raise part.fail(f"{limit}={value:g} is no limit.", do=f"say how much may be learned: {limit} = {such}")


def _columns(part: _Part) -> list[tuple[str, _Part]]:
    columns = part.part("columns")
    if not columns.left:
        raise part.fail("no columns are declared.", do='columns.age = { type = "integer", bounds = [0, 120] }')
    return [(name, columns.part(name)) for name in list(columns.left)]


def _listed(part: _Part, name: str, value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(one, str) for one in listed):
        raise part.fail(f"{name} is not a list of columns.")
    return listed


def _unit(part: _Part) -> str | KeyPath | None:
    value = part.pop("unit")
    if isinstance(value, str) and value:
        return None if value == "row" else value
    if isinstance(value, Mapping):
        path = _Part(value, f"{part.place}.unit")
        through, on = path.take("through", str, ""), path.part("on")
        path.done()
        pairs = tuple(sorted((str(here), str(there)) for here, there in on.left.items()))
        if through and pairs:
            return KeyPath(through, pairs)
    raise part.missing(
        "unit",
        "it says whom the promise protects.",
        'unit = "patient_id" (a column), unit = { through = "stays", on = { stay_id = "id" } }, or unit = "row".',
    )


def _max_rows_per_unit(part: _Part, unit: str | KeyPath | None, *, public: bool) -> int:
    found = part.whole("max_rows_per_unit", None, 1, 2**31)
    if unit is None and found is not None:
        raise part.fail(
            f"max_rows_per_unit says nothing where {'the table is public' if public else 'each row is a unit'}.",
            why="whoever wrote it may think that it bounds what one person can do to an answer.",
            do="take the line out" + ("." if public else '; or name the column of the unit: unit = "patient_id".'),
        )
    if unit is None:
        return 1
    if found is None:
        raise part.missing(
            "max_rows_per_unit", "it caps what one unit can do to any answer.", "max_rows_per_unit = 10, in the table."
        )
    return found


def _column(name: str, part: _Part) -> Column:
    kind = part.take("type", str, "")
    try:
        domain = domain_of_type(kind)
    except InvalidArgument as error:
        raise part.fail(error.what) from None
    bounds, categories = part.take("bounds", list, None), part.take("categories", list, None)
    nulls = part.choice("nulls", NULLS, NULLS[0])
    others = part.choice("others", UNDECLARED, UNDECLARED[0])
    if bounds is not None:
        domain = _with_bounds(part, domain, _read(part, "bounds", domain, bounds))
    if categories is not None:
        domain = _with_categories(part, domain, _read(part, "categories", domain, categories))
    if others == "group":
        domain = _with_others(part, domain)
    part.done()
    return Column(name, kind, dataclasses.replace(domain, nulls=nulls == "group", required=nulls == "drop"))


def domain_of_type(kind: str) -> Domain:
    """Return what a column of a type can hold before anything else is declared of it.

    Example:
        >>> domain_of_type("int8").span
        (-128, 127)
    """
    if kind in ("boolean", "string", "date", "timestamp"):
        return Domain(kind)  # type: ignore[arg-type]
    if kind == "float":
        return Domain("number", float=True)
    if kind == "integer":
        return Domain("number")
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return Domain("number", Fraction(1), low, high) if high < SMALL else Domain("number")
    scale = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind)
    if scale and int(scale[2]) <= int(scale[1]) <= 38:
        return Domain("number", Fraction(1, 10 ** int(scale[2])))
    raise InvalidArgument(f"type={_validate.shown(kind)} is not one of {', '.join(TYPES)}.")


def _read(part: _Part, name: str, domain: Domain, values: list[Any]) -> list[Any]:
    """Values of which dates and times may stand in quotes, as they do not in TOML."""
    if domain.kind not in MOMENTS:
        return values
    return [_moment(part, name, domain.kind, one) if isinstance(one, str) else one for one in values]


def _moment(part: _Part, name: str, kind: str, text: str) -> date:
    try:
        if re.fullmatch(MOMENTS[kind], text):
            return date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)
    except ValueError:  # such as the 30th of February
        pass
    raise part.fail(
        f"{name}: {_validate.shown(text)} is not a {kind}.", do=f"such as {SUCH[kind]}, with or without quotes."
    )


def _with_bounds(part: _Part, domain: Domain, bounds: list[Any]) -> Domain:
    if len(bounds) != 2 or not domain.ordered:
        raise part.fail("bounds are two ends of numbers, dates or times: [lower, upper].")
    try:
        low, high = (domain.measure(end) for end in bounds)
        if low >= high:
            raise part.fail(f"bounds={_validate.shown(bounds)} are not in order.")
        if domain.float:  # a float has a grid of its own for each use; its ends are kept as they are
            domain = dataclasses.replace(domain, step=Fraction(1, math.lcm(low.denominator, high.denominator)))
        lower, upper = math.ceil(low / domain.step), math.floor(high / domain.step)
        domain = dataclasses.replace(domain, lower=lower, upper=upper)
        domain.within(None)
    except InvalidArgument as error:
        raise part.fail(f"bounds: {error.what}") from None
    return domain


def _with_categories(part: _Part, domain: Domain, categories: list[Any]) -> Domain:
    kinds = {"boolean": bool, "string": str, "number": int, "date": date, "timestamp": datetime}
    wanted = kinds[domain.kind]
    fits = all(type(one) is wanted for one in categories)
    if not fits or domain.float or not 1 <= len(categories) <= MOST_CATEGORIES:
        raise part.fail(f"categories are 1 to {MOST_CATEGORIES} values of the column's type; floats have none.")
    if len(set(categories)) < len(categories):
        raise part.fail("categories repeat.")
    return dataclasses.replace(domain, categories=tuple(categories))


def _with_others(part: _Part, domain: Domain) -> Domain:
    """One more category, for all values that are none."""
    if domain.kind != "string" or not 1 <= len(domain.listed) <= MOST_BESIDE_OTHERS:
        raise part.fail(
            f'others = "group" is for texts with 1 to {MOST_BESIDE_OTHERS:,} categories.',
            why="all values that are not declared become one, and a number or a date has no name for it.",
            do='declare categories = ["north", "south"], or leave others out.',
        )
    if OTHERS in domain.listed:
        raise part.fail(
            f"{OTHERS!r} is a declared category, and the name of the group of all other values.",
            why="the two would be counted as one.",
            do="leave it out of the categories, or leave others out.",
        )
    return dataclasses.replace(domain, categories=(*domain.listed, OTHERS), others=True)


def _check_columns(part: _Part, table: Table) -> None:
    named = [*table.key, *([table.row_id] if table.row_id else [])]
    named += [table.unit] if isinstance(table.unit, str) else []
    named += [here for here, _ in table.unit.columns] if isinstance(table.unit, KeyPath) else []
    for name in named:
        if name not in table.columns:
            raise part.fail(f"{_validate.shown(name)} is not among the columns.", do="declare it under columns.")
    for name in named:
        if table.columns[name].domain.float:
            raise part.fail(f"{name!r} is a float.", why="NaN and rounding make no dependable identity.")
        if table.columns[name].domain.others:
            raise _one_of_many(f"{part.place}.columns.{name}")
        if table.columns[name].domain.step != 1:
            raise part.fail(f"{name!r} has fractions.", why="engines compare decimals of different digits differently.")
        if table.columns[name].domain.kind in ("date", "timestamp") and name == table.unit:
            raise part.fail(
                f"{name!r} is a time, and names no unit.",
                why="engines keep fewer digits of it than files do: two units could pass for one.",
                do="name units by a text or a whole number.",
            )
    if table.unit is None and not table.public and "row" in table.columns:
        raise part.fail(
            'unit = "row" says that each row is a unit, and there is a column "row".', do="rename the column."
        )
    if table.row_id and table.columns[table.row_id].domain.kind != "number":
        raise part.fail("row_id is a column of whole numbers.")


def _check_paths(tables: Mapping[str, Table]) -> None:
    for name, table in tables.items():
        if not isinstance(table.unit, KeyPath):
            continue
        through = tables.get(table.unit.table)
        if through is None or not isinstance(through.unit, str):
            raise InvalidDeclaration(
                f"tables.{name}.unit: {table.unit.table!r} is not a declared table with a column for its unit.",
                do="name the table that has the unit's column.",
            )
        for here, there in table.unit.columns:
            if there not in through.columns or through.columns[there].domain.kind != table.columns[here].domain.kind:
                raise InvalidDeclaration(f"tables.{name}.unit: {here} cannot equal {table.unit.table}.{there}.")
            if through.columns[there].domain.others:
                raise _one_of_many(f"tables.{through.name}.columns.{there}")
        if through.dataset != table.dataset:
            raise InvalidDeclaration(
                f"tables.{name}: its dataset is not that of {table.unit.table!r}, through which it finds its unit."
            )


def _one_of_many(place: str) -> InvalidDeclaration:
    """The refusal of a column that names units or rows, and has one name for many of them."""
    return InvalidDeclaration(
        f'{place}: others = "group", in a column that tells units or rows apart.',
        why="all that are not declared would be one.",
        do="leave others out.",
    )


def _check_datasets(tables: Mapping[str, Table], folder: Path) -> None:
    """One source has one budget: under a second name, or by another path, it would be paid from another."""
    seen: dict[str, Table] = {}
    for table in tables.values():
        for path in {folder / table.source, *files_of(folder / table.source)}:
            check_alike(table, seen.setdefault(os.path.realpath(path).casefold(), table))
    for table, other in itertools.permutations(tables.values(), 2):
        name, pattern = (os.path.realpath(folder / one.source).casefold() for one in (table, other))
        if fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}/"):  # also where there are no files yet
            check_alike(table, other)


def files_of(path: Path) -> list[Path]:
    """Return the files behind a path: those of a folder, or of a pattern in its last part; else itself."""
    folder, pattern = (path, "*.parquet") if path.is_dir() else (path.parent, path.name)
    return sorted(folder.glob(pattern)) if "*" in pattern else [path]


def check_alike(table: Table, other: Table) -> None:
    """Refuse two tables that read the same rows and are paid from different budgets, or protect different units."""
    if (other.dataset, other.public) != (table.dataset, table.public):
        raise InvalidDeclaration(
            f"tables.{table.name} and tables.{other.name} read one source and have different budgets.",
            why="the same people's data would be spent twice.",
            do="give both the same dataset.",
        )
    if other.unit != table.unit:
        raise InvalidDeclaration(
            f"tables.{table.name} and tables.{other.name} read one source and have different units.",
            why="one budget would promise to protect both, and only the smaller would be protected.",
            do="give both the same unit.",
        )
    if isinstance(table.unit, str) and table.columns[table.unit].domain.kind != other.columns[table.unit].domain.kind:
        raise InvalidDeclaration(
            f"tables.{table.name} and tables.{other.name} read one source, with {table.unit!r} of different types.",
            why="7 and 07 are one number and two texts: who is one unit here would be two there, with twice the rows.",
            do="give it one type in both.",
        )


def _check_units(tables: Mapping[str, Table]) -> None:
    """One budget makes one promise: to rows, or to those whom rows are about."""
    first: dict[str, Table] = {}
    for table in tables.values():
        other = first.setdefault(table.dataset, table)
        if not table.public and (other.unit is None) != (table.unit is None):
            raise InvalidDeclaration(
                f"tables.{table.name} and tables.{other.name} share a budget, and in one of them each row is a unit.",
                why="the budget's promise would not hold for a unit that has many rows.",
                do=f'give one of them a budget of its own: dataset = "{table.name}", and [budgets.{table.name}].',
            )
