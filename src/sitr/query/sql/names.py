"""Which names a SELECT knows: the columns of its tables, by table; they become columns of the plan and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from ... import _validate
from ...errors import NotAllowed
from ...tables.declaration import Declaration
from ...tables.domains import Domain
from ...tables.expressions import Column
from ...tables.relations import Relation, Scan, table_of
from .refusals import only


@dataclass(frozen=True)
class Visible:
    """A column that can be named.

    Attributes:
        name: As it is called in the query.
        column: What the plan calls it; None for the unit of a table that has one row for each unit.
        unit: Whether it names the unit.
        origin: The declared table and column that it is, unchanged.
    """

    name: str
    column: str | None
    unit: bool = False
    origin: tuple[str, str] | None = None


@dataclass(frozen=True)
class Scope:
    """Rows, and the names of their columns under each name of a table.

    Attributes:
        declared: The declaration.
        relation: The rows.
        sources: For each table of FROM, its columns.
    """

    declared: Declaration
    relation: Relation
    sources: Mapping[str, tuple[Visible, ...]]

    @cached_property
    def schema(self) -> Mapping[str, Domain]:
        """What the columns hold."""
        return self.relation.schema(self.declared)

    def everything(self) -> tuple[Visible, ...]:
        """Return all columns, in order; what is one column under two names of tables comes once."""
        found: dict[str, Visible] = {}
        for one in (one for columns in self.sources.values() for one in columns):
            known = found.setdefault(one.name, one)
            if known.column != one.column and not (known.unit and one.unit):
                raise NotAllowed(f"two tables have a column {one.name!r}.", do="name the columns, with their tables.")
        return tuple(found.values())

    def find(self, node: exp.Column) -> Visible:
        """Return the column that a name stands for.

        Raises:
            NotAllowed: It is none, or more than one.
        """
        only(node, "this", "table")
        identifier, table = node.this, node.args.get("table")
        if not isinstance(identifier, exp.Identifier):
            raise NotAllowed("* stands only at the begin of a subquery's SELECT, or in COUNT(*).", do="name columns.")
        sources = self.sources
        if isinstance(table, exp.Identifier):
            name = matching(table, sources, "table of FROM")
            sources = {name: sources[name]}
        here = [one.name for columns in sources.values() for one in columns]
        name = matching(identifier, here, "column")
        found = [one for columns in sources.values() for one in columns if one.name == name]
        found.sort(key=lambda one: one.column is None)
        first = found[0]
        if any(one.column != first.column and not (one.unit and first.unit) for one in found):
            raise NotAllowed(
                f"{_validate.shown(name)} is a column of {len(found)} tables.",
                do=f"say which: {next(iter(sources))}.{name}.",
            )
        return first

    def column(self, node: exp.Column) -> Column:
        """Return a name as a column of the plan."""
        found = self.find(node)
        if found.column is None:
            raise NotAllowed(
                f"{_validate.shown(found.name)} is the unit of a subquery with a row for each unit, and is no column.",
                why="a unit is never named.",
                do="join on it, or COUNT(DISTINCT it).",
            )
        return Column(found.column)

    def knows(self, node: exp.Column) -> bool:
        """Whether a name is a column here."""
        try:
            self.find(node)
        except NotAllowed:
            return False
        return True

    def is_unit(self, node: exp.Expr) -> bool:
        """Whether a node is the name of the unit's column."""
        while isinstance(node, exp.Paren):
            node = node.this
        return isinstance(node, exp.Column) and self.find(node).unit


def scanned(declared: Declaration, table: str) -> Scope:
    """Return the names of a declared table."""
    made = table_of(declared, table)
    columns = tuple(Visible(name, name, name == made.unit, (table, name)) for name in made.columns)
    return Scope(declared, Scan(table), {table: columns})


def matching(identifier: exp.Identifier, names: Iterable[str], what: str) -> str:
    """Return the name that is meant: as written; or, without quotes, in other letters if only one such name is there.

    Raises:
        NotAllowed: There is none, or more than one.
    """
    names, wanted = list(dict.fromkeys(names)), identifier.name
    if wanted in names:
        return wanted
    near = [] if identifier.quoted else [name for name in names if name.casefold() == wanted.casefold()]
    if len(near) == 1:
        return near[0]
    if near:
        raise NotAllowed(f"{_validate.shown(wanted)} may be {' or '.join(near)}.", do=f'use quotes: "{near[0]}".')
    text = "A text stands in single quotes. " if identifier.quoted and what == "column" else ""
    raise NotAllowed(
        f"there is no {what} {_validate.shown(wanted)}.",
        do=f"{text}{_validate.meant(wanted, names)}Known here: {', '.join(names) or 'nothing'}.",
    )


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: the wanted one, or with a number.

    Example:
        >>> fresh("n", ["n", "n_2"])
        'n_3'
    """
    taken, made, count = set(taken), wanted, 1
    while made in taken:
        count += 1
        made = f"{wanted}_{count}"
    return made
