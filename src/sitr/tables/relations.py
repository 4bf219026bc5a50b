"""Which rows a query reads: declared tables, filtered, extended and joined, each row still belonging to one unit.

Every relation here is stable: the rows of a unit in the result depend on the rows of that unit, and on public tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .. import _validate
from ..errors import InvalidArgument, NotAllowed
from .declaration import Declaration, KeyPath, Table
from .domains import Domain
from .expressions import Column, Expression, require
from .limits import Extent, around

Schema = dict[str, Domain]
Sides = tuple[Literal["left", "right"], ...]  # to a part of a relation
OVER_UNIT = ("count", "sum", "min", "max", "mean")  # of the rows of one unit


class Relation:
    """Rows of units; every kind has a `schema` and the private tables that it reads.

    Attributes:
        extent: How large it is; none is made that is too large.
        computed: The extents of columns that are computed: an engine may put them in the place of their names.
    """

    extent: Extent
    computed: Mapping[str, Extent]

    def __post_init__(self) -> None:
        extent, computed = self._measured()
        object.__setattr__(self, "extent", extent)
        object.__setattr__(self, "computed", computed)

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        raise NotImplementedError

    def schema(self, declared: Declaration) -> Schema:
        """Return the columns, or refuse what does not fit."""
        raise NotImplementedError

    def tables(self) -> Iterator[str]:
        """Return the names of all tables that are read."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the relation as JSON holds it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scan(Relation):
    """A declared table."""

    table: str

    def schema(self, declared: Declaration) -> Schema:
        """As declared."""
        return dict(table_of(declared, self.table).schema)

    def tables(self) -> Iterator[str]:
        """Itself, and the one that it finds its unit through is of the same dataset."""
        yield self.table

    def to_dict(self) -> dict[str, Any]:
        """Its name."""
        return {"is": "scan", "table": self.table}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        return Extent(1, 1), {}


@dataclass(frozen=True)
class Filter(Relation):
    """The rows for which a condition is true."""

    source: Relation
    condition: Expression

    def schema(self, declared: Declaration) -> Schema:
        """The same columns."""
        schema = self.source.schema(declared)
        require(self.condition, schema, "boolean")
        return schema

    def tables(self) -> Iterator[str]:
        """Of its source."""
        return self.source.tables()

    def to_dict(self) -> dict[str, Any]:
        """Source and condition."""
        return {"is": "filter", "source": self.source.to_dict(), "condition": self.condition.to_dict()}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        computed = self.source.computed
        return around([self.source.extent, self.condition.extent_over(computed)]), computed


@dataclass(frozen=True)
class Derive(Relation):
    """The same rows with more columns, or with other values under a name."""

    source: Relation
    columns: tuple[tuple[str, Expression], ...]

    def schema(self, declared: Declaration) -> Schema:
        """With the new ones."""
        schema = self.source.schema(declared)
        return schema | {column_name(name): value.domain(schema) for name, value in self.columns}

    def tables(self) -> Iterator[str]:
        """Of its source."""
        return self.source.tables()

    def to_dict(self) -> dict[str, Any]:
        """Source and expressions."""
        derived = {name: value.to_dict() for name, value in self.columns}
        return {"is": "derive", "source": self.source.to_dict(), "columns": derived}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        made = [(name, value.extent_over(self.source.computed)) for name, value in self.columns]
        return around([self.source.extent, *(one for _, one in made)]), {**self.source.computed, **dict(made)}


@dataclass(frozen=True)
class Select(Relation):
    """The same rows with some of their columns, under new names or their own."""

    source: Relation
    columns: tuple[tuple[str, str], ...]

    def schema(self, declared: Declaration) -> Schema:
        """The chosen ones."""
        schema = self.source.schema(declared)
        made = {column_name(new): require_column(old, schema) for new, old in self.columns}
        if len(made) < len(self.columns):
            raise InvalidArgument("two columns have one name.", do="give one of them another name.")
        return made

    def tables(self) -> Iterator[str]:
        """Of its source."""
        return self.source.tables()

    def to_dict(self) -> dict[str, Any]:
        """Source and names."""
        return {"is": "select", "source": self.source.to_dict(), "columns": [list(pair) for pair in self.columns]}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        computed = self.source.computed
        renamed = {new: computed[old] for new, old in self.columns if old in computed}
        return around([self.source.extent], nodes=1 + len(self.columns)), renamed


@dataclass(frozen=True)
class Join(Relation):
    """Each row with the matching rows of a public table, or of another private table for the same unit.

    Attributes:
        left: A private relation.
        right: A public table, or a private relation.
        on: Pairs of a column of the left and one of the right that have to be equal; two private relations are joined
            on the unit in any case.
        keep: Whether rows of the left that match nothing stay, with missing values; public tables only.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    keep: bool = False

    def schema(self, declared: Declaration) -> Schema:
        """The columns of both; a name that both have is the left's, and has to be one of `on`."""
        left, right = self.left.schema(declared), self.right.schema(declared)
        public = is_public(self.right, declared)
        if is_public(self.left, declared):
            raise NotAllowed("a join begins with a private table.", do="write the public table second.")
        if public and not self.on:
            raise NotAllowed(
                "a join with a public table without a condition.",
                why="every row would meet every other.",
                do="say on=.",
            )
        if self.keep and not public:
            raise NotAllowed("private tables are joined by an inner join only.", do="leave out LEFT, or how=.")
        if not public:
            _check_units(self, declared)
        elif not has_unit(self.left, declared) and not _once(self.right, declared, {other for _, other in self.on}):
            raise NotAllowed(
                "each row is a unit of its own, and could meet many rows of the public table.",
                why="then it would move the answer by as many.",
                do="declare key = [...] for the public table, and join on all of it.",
            )
        for one, other in self.on:
            require_column(one, left), require_column(other, right)
            if left[one].kind != right[other].kind or left[one].float or right[other].float:
                raise NotAllowed(
                    f"{one} = {other}: columns of one kind, and no floats, can be joined.",
                    do="join on whole numbers, texts or dates.",
                )
            if left[one].step != 1 or right[other].step != 1:
                raise NotAllowed(f"{one} = {other}: numbers that are joined are whole.", do="join on whole numbers.")
        same = {other for one, other in self.on if one == other}
        clash = (left.keys() & right.keys()) - same - {_unit_name(self.right, declared)}
        if clash:
            raise NotAllowed(
                f"both sides of the join have a column {min(clash)!r}.",
                do="select and rename the columns of one first.",
            )
        return left | {name: self.domain(domain) for name, domain in right.items() if name not in left}

    def domain(self, right: Domain) -> Domain:
        """Return what a column of the right holds in the join: rows that match nothing lack it."""
        return dataclasses.replace(right, required=right.required and not self.keep)

    def tables(self) -> Iterator[str]:
        """Of both."""
        yield from self.left.tables()
        yield from self.right.tables()

    def to_dict(self) -> dict[str, Any]:
        """Both sides, and how they meet."""
        sides = {"left": self.left.to_dict(), "right": self.right.to_dict()}
        return {"is": "join", **sides, "on": [list(pair) for pair in self.on], "keep": self.keep}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        extent = around([self.left.extent, self.right.extent], nodes=1 + 3 * len(self.on))
        return extent, {**self.right.computed, **self.left.computed}


@dataclass(frozen=True)
class UnitAggregate:
    """A number over the rows of one unit, clipped to bounds: their count, or a column's sum, least, largest or mean."""

    over: str
    value: Expression | None = None
    bounds: tuple[Any, Any] | None = None

    def domain(self, schema: Mapping[str, Domain]) -> Domain:
        """Steps between the bounds."""
        _validate.choice("aggregate", self.over, OVER_UNIT)
        if self.over == "count":
            return _grid(Domain("number"), self.bounds, "how many rows a unit has")
        assert self.value is not None
        inner = require(self.value, schema, "number")
        if self.over == "sum":
            return _grid(inner, self.bounds, f"the sum of {self.value} over a unit")
        return _grid(
            inner, self.bounds if self.bounds is not None or not inner.bounded else inner.ends, str(self.value)
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        bounds = None if self.bounds is None else [str(end) for end in self.bounds]
        return {"over": self.over, "value": self.value.to_dict() if self.value is not None else None, "bounds": bounds}


def _grid(domain: Domain, bounds: tuple[Any, Any] | None, what: str) -> Domain:
    if bounds is None:
        raise InvalidArgument(
            f"{what} needs bounds.",
            why="without public bounds one person could move the answer without limit.",
            do="pass bounds=(lower, upper).",
        )
    return dataclasses.replace(domain.within(bounds), steps=True, float=False)


@dataclass(frozen=True)
class PerUnit(Relation):
    """One row for each unit, or for each unit and group, with numbers over its rows."""

    source: Relation
    keys: tuple[str, ...]
    values: tuple[tuple[str, UnitAggregate], ...]

    def schema(self, declared: Declaration) -> Schema:
        """The keys and the numbers."""
        schema = self.source.schema(declared)
        if is_public(self.source, declared):
            raise NotAllowed("a public table is about nobody, so there is nothing to add up for a unit.")
        if not has_unit(self.source, declared):
            raise NotAllowed("each row is a unit of its own, so there is nothing to add up for a unit.")
        keys = {name: require_column(name, schema) for name in self.keys}
        values = {column_name(name): value.domain(schema) for name, value in self.values}
        if keys.keys() & values.keys():
            raise InvalidArgument(f"{min(keys.keys() & values.keys())!r} is both a key and a number.")
        return keys | values

    def tables(self) -> Iterator[str]:
        """Of its source."""
        return self.source.tables()

    def to_dict(self) -> dict[str, Any]:
        """Source, keys and numbers."""
        values = {name: value.to_dict() for name, value in self.values}
        return {"is": "per_unit", "source": self.source.to_dict(), "keys": list(self.keys), "values": values}

    def _measured(self) -> tuple[Extent, Mapping[str, Extent]]:
        """What was added up is no longer computed, but held."""
        values = [one.value.extent_over(self.source.computed) for _, one in self.values if one.value is not None]
        return around([self.source.extent, *values], nodes=1 + len(self.keys) + len(self.values)), {}


def table_of(declared: Declaration, name: str) -> Table:
    """Return a declared table, or refuse a name that is none."""
    if name not in declared.tables:
        raise NotAllowed(
            f"there is no table {_validate.shown(name)} in the declaration.",
            do=f"{_validate.meant(name, declared.tables)}Tables: {', '.join(declared.tables)}.",
        )
    return declared.tables[name]


def column_name(name: str) -> str:
    """Return a name for a derived column, or refuse it."""
    return _validate.name("column", name)


def require_column(name: str, schema: Mapping[str, Domain]) -> Domain:
    """Return what a column holds, or refuse a name that is none."""
    return Column(name).domain(schema)


def datasets_of(relation: Relation, declared: Declaration) -> tuple[str, ...]:
    """Return the datasets whose budgets pay for a relation: that of every private table that it reads."""
    return tuple(sorted({table_of(declared, name).dataset for name in private_tables(relation, declared)}))


def private_tables(relation: Relation, declared: Declaration) -> tuple[str, ...]:
    """Return the private tables that a relation reads, each once."""
    return tuple(sorted({name for name in relation.tables() if not table_of(declared, name).public}))


def is_public(relation: Relation, declared: Declaration) -> bool:
    """Whether it reads public tables only."""
    return not private_tables(relation, declared)


def has_unit(relation: Relation, declared: Declaration) -> bool:
    """Whether rows name their unit; else each row is one."""
    return all(table_of(declared, name).unit is not None for name in private_tables(relation, declared))


def rows_per_unit(relation: Relation, declared: Declaration) -> int:
    """Return how many rows of one unit are kept at most, by what was declared: after a join, the larger of the two."""
    if one_row_per_unit(relation):
        return 1
    if isinstance(relation, (Filter, Derive, Select)):
        return rows_per_unit(relation.source, declared)
    return max(table_of(declared, name).max_rows_per_unit for name in private_tables(relation, declared))


def per_unit_within(relation: Relation) -> PerUnit | None:
    """Return the outermost step of a relation that adds up the rows of units, if there is one."""
    while isinstance(relation, (Filter, Derive)):
        relation = relation.source
    return relation if isinstance(relation, PerUnit) else None


def one_row_per_unit(relation: Relation) -> bool:
    """Whether units have one row each, since their rows were added up."""
    found = per_unit_within(relation)
    return found is not None and not found.keys


class Origin(NamedTuple):
    """Where the values of a column come from: the public side of a join, and the column there.

    Attributes:
        join: Which one.
        column: What the column is called on the public side.
        path: The sides of joins that lead to it. The same join may stand on both sides of another one, and then a row
            has two public rows: the path tells them apart.
    """

    join: Join
    column: str
    path: Sides


def public_origin(name: str, relation: Relation, declared: Declaration, path: Sides = ()) -> Origin | None:
    """Return the public table whose values are all that a column can hold; None where there may be others.

    A column of the private side that has to be equal to a public one holds no other values either.

    Args:
        name: Of the column.
        relation: In which it is.
        declared: The declaration.
        path: The sides of joins that lead to the relation.
    """
    if isinstance(relation, Select):
        return public_origin(dict(relation.columns)[name], relation.source, declared, path)
    if isinstance(relation, Derive) and name in (made := dict(relation.columns)):
        value = made[name]
        return public_origin(value.name, relation.source, declared, path) if isinstance(value, Column) else None
    if isinstance(relation, PerUnit) and name not in relation.keys:
        return None
    if isinstance(relation, (Filter, Derive, PerUnit)):
        return public_origin(name, relation.source, declared, path)
    return _origin_in_join(name, relation, declared, path) if isinstance(relation, Join) else None


def _origin_in_join(name: str, join: Join, declared: Declaration, path: Sides) -> Origin | None:
    public, of_left = is_public(join.right, declared), name in join.left.schema(declared)
    if public and not of_left:
        return Origin(join, name, path)
    equal = [other for one, other in join.on if one == name and of_left]
    if public and equal and not join.keep:
        return Origin(join, equal[0], path)
    if of_left:
        return public_origin(name, join.left, declared, (*path, "left"))
    return public_origin(name, join.right, declared, (*path, "right"))


def _unit_name(relation: Relation, declared: Declaration) -> str | None:
    names = {table_of(declared, name).unit for name in private_tables(relation, declared)}
    return next((name for name in names if isinstance(name, str)), None)


def _once(relation: Relation, declared: Declaration, columns: set[str]) -> bool:
    """Whether a public relation has at most one row for each value of some of its columns."""
    if isinstance(relation, Scan):
        key = table_of(declared, relation.table).key
        return bool(key) and set(key) <= columns
    if isinstance(relation, Derive):
        return _once(relation.source, declared, columns - {name for name, _ in relation.columns})
    return isinstance(relation, Filter) and _once(relation.source, declared, columns)


def _unit_kind(relation: Relation, declared: Declaration) -> set[str]:
    """The kind of what names the units."""
    found: set[str] = set()
    for name in private_tables(relation, declared):
        table = table_of(declared, name)
        holder = table_of(declared, table.unit.table) if isinstance(table.unit, KeyPath) else table
        found.add(holder.columns[str(holder.unit)].domain.kind)
    return found


def _check_units(join: Join, declared: Declaration) -> None:
    if not (has_unit(join.left, declared) and has_unit(join.right, declared)):
        raise NotAllowed(
            "private tables are joined on their unit, and one of these has none.",
            why="a row that is a unit of its own belongs to nobody in the other table.",
        )
    if _unit_kind(join.left, declared) != _unit_kind(join.right, declared):
        raise NotAllowed("private tables are joined on their unit, and theirs are of different kinds.")
