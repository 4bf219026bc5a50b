"""A query: which rows, grouped how, and what is asked of each group; it is a description, and reads nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import chain, product
from typing import Any

from .. import _validate
from ..errors import InvalidArgument, NotAllowed
from ..tables.declaration import Declaration
from ..tables.domains import FARTHEST, Domain
from ..tables.expressions import Column, Expression, constant_kind, is_key
from ..tables.limits import Extent, around, check_columns, check_numbers
from ..tables.relations import (
    Derive,
    Filter,
    Join,
    PerUnit,
    Relation,
    Scan,
    Select,
    column_name,
    datasets_of,
    has_unit,
    per_unit_within,
    private_tables,
    rows_per_unit,
    table_of,
)
from ..tables.tally import Bound, Key
from .aggregates import DEGREES, Aggregate
from .listed import Together

ONE_EACH = "every group would be one person."  # why no query is grouped by the unit
MOST_NUMBERS = 1000  # whole numbers between declared bounds that are keys by themselves


@dataclass(frozen=True)
class Limits:
    """What an analyst asks to keep of a unit; what is left out, the plan chooses.

    Attributes:
        max_rows_per_unit: Rows in all; or
        max_groups_per_unit: groups, with
        max_rows_per_group: rows in each.
    """

    max_rows_per_unit: int | None = None
    max_groups_per_unit: int | None = None
    max_rows_per_group: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group"):
            if getattr(self, name) is not None:
                _validate.integer(name, getattr(self, name), 1, 2**31)
        if self.max_rows_per_unit is not None and self.by_group:
            raise InvalidArgument(
                "max_rows_per_unit with max_groups_per_unit or max_rows_per_group.",
                why="one bound decides what a unit can do to the answer.",
                do="name rows in all, or groups and rows in each.",
            )

    @property
    def by_group(self) -> bool:
        """Whether groups are bounded."""
        return self.max_groups_per_unit is not None or self.max_rows_per_group is not None

    def bound(self, most: int, *, one_in_group: bool = False) -> Bound:
        """Return the bound; no more rows than the owner allows, and one in a group where no unit has more there."""
        if self.by_group:
            groups = min(self.max_groups_per_unit or most, most)
            rows = 1 if one_in_group else self.max_rows_per_group or most
            return Bound(groups=groups, rows_per_group=max(min(rows, most // groups), 1))
        return Bound(rows=min(self.max_rows_per_unit or most, most))


@dataclass(frozen=True)
class Grouping:
    """What is grouped by: a name, an expression, and the public values where they are listed in the query."""

    name: str
    value: Expression
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Query:
    """What is asked.

    Attributes:
        relation: Which rows.
        groupings: What they are grouped by.
        aggregates: What is asked of each group, by name.
        limits: What is kept of a unit.
        together: Keys whose values a public table lists.
    """

    relation: Relation
    groupings: tuple[Grouping, ...]
    aggregates: Mapping[str, Aggregate]
    limits: Limits = field(default_factory=Limits)
    together: tuple[Together, ...] = ()

    def check(self, declared: Declaration) -> None:
        """Refuse what does not fit the declaration.

        Raises:
            InvalidArgument: A column is unknown, or of another kind.
            NotAllowed: No proof covers it.
        """
        check_columns(len(self.groupings), len(self.aggregates))
        self.extent()
        schema = self.relation.schema(declared)
        if not private_tables(self.relation, declared):
            raise NotAllowed("the query reads public tables only.", do="read them without sitr: they cost nothing.")
        if len(self.aggregates) > 1 and any(one.kind == "histogram" for one in self.aggregates.values()):
            raise NotAllowed("a histogram has a row for each bin, and stands alone.", do="ask for the others apart.")
        if not self.aggregates:
            raise InvalidArgument("nothing is asked of the rows.", do="aggregate(n=sitr.count()).")
        names = [one.name for one in self.groupings] + list(self.aggregates)
        for name in names:
            column_name(name)
        if len(set(names)) < len(names):
            raise InvalidArgument("two columns of the answer have one name.")
        for aggregate in self.aggregates.values():
            aggregate.check(schema)
        for one in self.groupings:
            if isinstance(one.value, Column) and _names_unit(one.value.name, self.relation, declared):
                raise NotAllowed(
                    f"{one.name} names the unit, and is grouped by.",
                    why=ONE_EACH,
                    do="count units with count_units(); or group by what per_unit(...) finds for each of them.",
                )
        self.keys(declared)

    def extent(self) -> Extent:
        """Return how large it is: sums of all rows are one reading of them, and each other aggregate one of its own.

        Raises:
            NotAllowed: It is too large.
        """
        computed = self.relation.computed
        read = around([self.relation.extent, *(one.value.extent_over(computed) for one in self.groupings)])
        readings = max(sum(one.kind not in DEGREES for one in self.aggregates.values()), 1)
        return around([read] * readings + [one.extent_over(computed) for one in self.aggregates.values()])

    def datasets(self, declared: Declaration) -> tuple[str, ...]:
        """Return the datasets whose budgets pay for it: that of every private table that it reads."""
        return datasets_of(self.relation, declared)

    def keys(self, declared: Declaration) -> tuple[Key, ...]:
        """Return the keys with their public values, where there are any.

        Raises:
            NotAllowed: The answer would have too many numbers.
        """
        keys = self._keys(declared)
        check_numbers(self.count_groups(keys), self._bins, len(self.aggregates))
        return keys

    def count_numbers(self, declared: Declaration) -> int:
        """Return how many numbers the answer would have, by those keys whose values are public."""
        return self.count_groups(self._keys(declared)) * self._bins * len(self.aggregates)

    def _keys(self, declared: Declaration) -> tuple[Key, ...]:
        schema = self.relation.schema(declared)
        listed = {name: known for one in self.together for name, known in one.known.items()}
        return tuple(
            Key(one.name, one.value, listed.get(one.name, _known(one, one.value.domain(schema))))
            for one in self.groupings
        )

    @property
    def _bins(self) -> int:
        """Rows of the answer for each group."""
        return max((len(one.edges) - 1 for one in self.aggregates.values() if one.edges), default=1)

    def groups(self, keys: tuple[Key, ...]) -> list[tuple[Any, ...]]:
        """Return all groups, by keys with public values; those of a public table go together as its rows have them."""
        if not self.together:
            return list(product(*(key.known or () for key in keys)))
        joint = self._joint
        alone = (Together((key.name,), tuple((value,) for value in key.known or ())) for key in keys)
        blocks = {one.names: one.rows for one in (joint.get(one.names[0], one) for one in alone)}
        order = list(chain.from_iterable(blocks))
        places = [order.index(key.name) for key in keys]
        rows = (tuple(chain.from_iterable(parts)) for parts in product(*blocks.values()))
        return [tuple(row[place] for place in places) for row in rows]

    def count_groups(self, keys: tuple[Key, ...]) -> int:
        """Return how many groups the keys make whose values are public."""
        joint = self._joint
        alone = (len(key.known) for key in keys if key.known is not None and key.name not in joint)
        return math.prod(alone) * math.prod(len(one.rows) for one in self.together)

    @property
    def _joint(self) -> dict[str, Together]:
        return {name: one for one in self.together for name in one.names}

    def most_rows(self, declared: Declaration) -> int | None:
        """Return how many rows of a unit may be kept at most; None where each row is a unit."""
        return rows_per_unit(self.relation, declared) if has_unit(self.relation, declared) else None

    def one_in_group(self) -> bool:
        """Whether a unit has one row in a group at most, since its rows were added up by the same keys."""
        added = per_unit_within(self.relation)
        if added is None or not added.keys:
            return False
        return set(added.keys) <= {str(one.value) for one in self.groupings if isinstance(one.value, Column)}

    def to_dict(self) -> dict[str, Any]:
        """Return the query as JSON holds it."""
        return {
            "relation": self.relation.to_dict(),
            "groups": [
                {"name": one.name, "value": one.value.to_dict(), "values": _texts(one.values)} for one in self.groupings
            ],
            "aggregates": {name: one.to_dict() for name, one in self.aggregates.items()},
            "limits": {name: value for name, value in vars(self.limits).items() if value is not None},
            **({"together": [one.to_dict() for one in self.together]} if self.together else {}),
        }


def has_fractions(domain: Domain) -> bool:
    """Whether values may lie between whole numbers, and so are no keys."""
    return domain.float or (domain.kind == "number" and domain.step != 1)


def _names_unit(name: str, relation: Relation, declared: Declaration) -> bool:
    """Whether a column is that of the unit, under its own name or another."""
    if isinstance(relation, Scan):
        return table_of(declared, relation.table).unit == name
    if isinstance(relation, Join):
        side = relation.left if name in relation.left.schema(declared) else relation.right
        return _names_unit(name, side, declared)
    if isinstance(relation, Select):
        return _names_unit(dict(relation.columns)[name], relation.source, declared)
    if isinstance(relation, Derive) and name in (made := dict(relation.columns)):
        value = made[name]
        return isinstance(value, Column) and _names_unit(value.name, relation.source, declared)
    if isinstance(relation, PerUnit) and name not in relation.keys:
        return False
    assert isinstance(relation, (Filter, Derive, PerUnit))
    return _names_unit(name, relation.source, declared)


def _texts(values: tuple[Any, ...] | None) -> list[str] | None:
    return None if values is None else [f"{type(value).__name__}:{value}" for value in values]


def _known(grouping: Grouping, domain: Domain) -> tuple[Any, ...] | None:
    """The public values of a key: listed in the query, declared, or counted out between declared bounds."""
    if has_fractions(domain):
        raise NotAllowed(
            f"{grouping.name} is no key: it has fractions.", do="group by bins: a histogram, or whole numbers."
        )
    if grouping.values is not None:
        _check_listed(grouping, domain)
        return grouping.values
    values = _declared(domain)
    return (*values, None) if values is not None and domain.nulls else values


def _check_listed(grouping: Grouping, domain: Domain) -> None:
    """Refuse values that are no values of the key, or are there twice: each is a row of the answer."""
    values = grouping.values or ()
    for value in values:
        if value is not None and (not isinstance(value, (bool, int, str, date)) or constant_kind(value) != domain.kind):
            raise InvalidArgument(f"values of {grouping.name}: {_validate.shown(value)} is no {domain.kind}.")
        if isinstance(value, int) and abs(value) > FARTHEST:
            raise InvalidArgument(f"values of {grouping.name}: {_validate.shown(value)} is beyond 64 bits.")
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise InvalidArgument(
                f"values of {grouping.name}: {_validate.shown(value)} has a time zone.",
                do="write the time on the clock of the declared time zone.",
            )
        if isinstance(value, str) and not is_key(value):
            raise InvalidArgument(f"values of {grouping.name}: {_validate.shown(value)} holds what is no text.")
    if not values or len(set(values)) < len(values):
        raise InvalidArgument(f"values of {grouping.name}: at least one, and none twice.")


def _declared(domain: Domain) -> tuple[Any, ...] | None:
    if domain.categories is not None:
        return domain.categories
    if domain.kind == "boolean":
        return (False, True)
    if domain.kind == "number" and domain.bounded and domain.span[1] - domain.span[0] < MOST_NUMBERS:
        return tuple(range(domain.span[0], domain.span[1] + 1))
    return None
