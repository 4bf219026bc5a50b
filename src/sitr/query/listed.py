"""Groups that a public table lists: its rows may be read to plan, and nobody's privacy pays for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import NotAllowed
from ..tables.declaration import Declaration
from ..tables.expressions import Column
from ..tables.limits import NUMBERS
from ..tables.relations import Join, Relation, Sides, public_origin
from ..tables.tally import Key

if TYPE_CHECKING:
    from .query import Query

Row = tuple[Any, ...]
Read = Callable[[Relation, tuple[Key, ...], int], list[Row]]
MOST_ROWS = 100_000  # of a public table, that are groups
TOO_MANY = "too many to list, so groups are found privately."


@dataclass(frozen=True)
class Together:
    """Keys that occur together only as the rows of a public table have them.

    Attributes:
        names: Of the keys.
        rows: Their values, each combination once.
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    @cached_property
    def known(self) -> dict[str, tuple[Any, ...]]:
        """The values of each key, in order."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.names)
        return {name: tuple(dict.fromkeys(column)) for name, column in zip(self.names, columns, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return the keys, and a digest of their values, of which there may be many."""
        listed = "\n".join(repr(row) for row in self.rows)
        return {"names": list(self.names), "digest": hashlib.sha256(listed.encode()).hexdigest()}


class Listed(NamedTuple):
    """A query with the groups that public tables list.

    Attributes:
        query: It.
        notes: What is to be said of it.
        read: Whether rows of public tables were read for it; they were too where those are too many to list.
    """

    query: Query
    notes: tuple[str, ...]
    read: bool


def with_public_groups(query: Query, declared: Declaration, read: Read) -> Listed:
    """Return a query with the groups that public tables list, where no declaration does, and what is to be said of it.

    Args:
        query: What is asked.
        declared: The declaration.
        read: Gives the different keys in a public relation, no more than so many.
    """
    found, notes = [], []
    joins = _by_join(query, declared)
    for join, keys in joins:
        rows = set(read(join.right, keys, MOST_ROWS + 1))
        if join.keep:
            rows.add((None,) * len(keys))  # of what matches nothing
        names = tuple(key.name for key in keys)
        if not rows:
            raise NotAllowed(
                f"the public table has no row, and {', '.join(names)} can have no other values.",
                why="the answer would have no group.",
                do="look at what the declaration calls public.",
            )
        if len(rows) <= MOST_ROWS:
            found.append(Together(names, tuple(in_order(rows))))
        else:
            notes.append(f"The public table has more than {MOST_ROWS:,} values of {', '.join(names)}: {TOO_MANY}")
    grouped, more = _within_limits(replace(query, together=tuple(found)) if found else query, declared)
    return Listed(grouped, (*notes, *more), bool(joins))


def _within_limits(query: Query, declared: Declaration) -> tuple[Query, list[str]]:
    """A query without its longest lists, while with them its answer would have too many numbers; and remarks."""
    notes = []
    while query.together and (numbers := query.count_numbers(declared)) > NUMBERS:
        longest = max(query.together, key=lambda one: len(one.rows))
        notes.append(
            f"With {len(longest.rows):,} values of {', '.join(longest.names)} from the public table, the answer would "
            f"have {numbers:,} numbers: {TOO_MANY}"
        )
        query = replace(query, together=tuple(one for one in query.together if one is not longest))
    return query, notes


def in_order(groups: Iterable[Row]) -> list[Row]:
    """Return groups sorted by their keys: missing ones come last."""
    return sorted(groups, key=lambda group: [(cell is None, str(type(cell)), cell) for cell in group])


def _by_join(query: Query, declared: Declaration) -> list[tuple[Join, tuple[Key, ...]]]:
    """The joins with public tables that some key, whose values are not known, has all of its values from."""
    joins: dict[Sides, tuple[Join, list[Key]]] = {}
    unknown: set[Sides] = set()
    for one, key in zip(query.groupings, query.keys(declared), strict=True):
        if one.values is not None or not isinstance(one.value, Column):
            continue
        origin = public_origin(one.value.name, query.relation, declared)
        if origin is not None:
            keys = joins.setdefault(origin.path, (origin.join, []))[1]
            keys.append(Key(one.name, Column(origin.column), None))
            unknown |= {origin.path} if key.known is None else set()
    return [(join, tuple(keys)) for path, (join, keys) in joins.items() if path in unknown]
