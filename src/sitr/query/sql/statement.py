"""One SELECT as a query and what is done with its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from ... import _validate
from ...errors import NotAllowed, SitrError
from ...tables.declaration import Declaration
from ...tables.expressions import Column, Constant, Expression, Truncated
from ...tables.limits import check_columns
from ...tables.relations import PerUnit, UnitAggregate, has_unit, is_public
from .. import aggregates
from ..aggregates import OF_RANKS, Aggregate
from ..answer import Answer
from ..query import ONE_EACH, Grouping, Limits, Query, has_fractions
from .dialect import Options, read
from .expressions import Values, row_values
from .functions import Asked, has_aggregate, is_aggregate, read_aggregate
from .items import bare, called, default_name, named, resolved
from .names import fresh, matching
from .postprocessing import Order, Output, Shape, kind_of
from .refusals import only, refused, shown
from .sources import Sources
from .units import keyed, over_unit

MOST_ROWS = 10**9  # of a LIMIT
BINS = "group by bins: CASE WHEN x < 10 THEN 1 WHEN x < 20 THEN 2 ELSE 3 END AS bin."
# What to ask of a column that is not grouped by; GROUP BY it may be a way too.
OF_KIND = {
    "number": "AVG({})",
    "boolean": "COUNTIF({})",
    "string": "COUNT(DISTINCT {})",
    "date": "MEDIAN({})",
    "timestamp": "MEDIAN({})",
}


@dataclass(frozen=True)
class Parsed:
    """What a text asks.

    Attributes:
        query: What is measured, and charged.
        after: What is done with the answer, for nothing.
        epsilon: The ε that the text states.
        delta: The δ that it states.
    """

    query: Query
    after: Callable[[Answer], Answer] | None = None
    epsilon: float | None = None
    delta: float | None = None


def parsed(text: str, declared: Declaration) -> Parsed:
    """Read SQL.

    Args:
        text: One SELECT.
        declared: The tables that it can name.

    Raises:
        NotAllowed: It asks for what is not on the list; the message says what to write instead.
        InvalidArgument: It names what is there, but of another kind, or without bounds.

    Privacy: nothing of the text reaches an engine; it becomes a query of declared tables and typed constants, with the
    same plan and the same price as the same query in Python. What is done with the answer reads released numbers only.

    Example:
        >>> declared = Declaration.of(
        ...     {
        ...         "sitr": 1,
        ...         "name": "clinic",
        ...         "tables": {"visits": {"unit": "row", "columns": {"age": {"type": "integer", "bounds": [0, 120]}}}},
        ...     }
        ... )
        >>> print(
        ...     parsed("SELECT AVG(age) AS mean_age FROM visits WHERE age >= 18", declared).query.aggregates["mean_age"]
        ... )
        mean(age)
    """
    statement = read(text)
    try:
        made = _Statement(statement.tree, statement.options, declared).parsed()
        made.query.check(declared)
    except RecursionError:
        raise NotAllowed("the query is nested too deeply.", do="write it flatter.") from None
    return made


class _Statement:
    def __init__(self, select: exp.Select, options: Options, declared: Declaration) -> None:
        only(select, "with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
        group = select.args.get("group")
        check_columns(len(group.expressions) if group is not None else 0, len(select.expressions))
        self.select, self.options, self.declared = select, options, declared
        self.items = [named(one) for one in select.expressions]
        self.scope = Sources(declared).rows(select)
        if is_public(self.scope.relation, declared):
            raise NotAllowed("the query reads public tables only.", do="read them without sitr: they cost nothing.")
        for inner, _ in self.items:
            if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
                raise refused(exp.Star())
        self.groupings: list[Grouping] = []
        self.keys: list[dict[str, Any]] = []
        self.asked: dict[str, Asked] = {}
        self.aliases: dict[str, Expression] = {}

    def parsed(self) -> Parsed:
        self._check_unit()
        self._group()
        outputs = self._outputs()
        having, order = self._having(), self._order()
        limit, offset = (self._whole(name) for name in ("limit", "offset"))
        if not self.asked:
            raise NotAllowed("nothing is asked of the groups.", do="add COUNT(*), or another aggregate.")
        notes = tuple(dict.fromkeys(one.note for one in self.asked.values() if one.note))
        shape = Shape(tuple(outputs), having, tuple(order), limit, offset or 0, notes)
        plain = shape.only_notes(tuple(one.name for one in self.groupings), tuple(self.asked))
        after = None if plain and not notes else shape
        return Parsed(self._query(), after, self.options.epsilon, self.options.delta)

    # The query

    def _check_unit(self) -> None:
        column = self.options.unit
        if column is not None and not self.scope.find(column).unit:
            raise NotAllowed(
                f"privacy_unit_column: {shown(column)} is not the declared unit.",
                why="the owner says whom the promise protects, and the query cannot change that.",
                do="name the declared column, or leave the option out.",
            )

    def _group(self) -> None:
        group = self.select.args.get("group")
        if group is None:
            return
        only(group, "expressions")
        values = row_values(self.scope, "GROUP BY")
        for one in group.expressions:
            node = resolved(one, self.select, self.scope)
            if self.scope.is_unit(node):
                raise NotAllowed(
                    "the outermost SELECT is grouped by the unit.",
                    why=ONE_EACH,
                    do="group a subquery by the unit, and aggregate what it finds for each.",
                )
            value = values.of(node)
            if isinstance(value, Constant):
                raise NotAllowed("GROUP BY a constant.", do="leave GROUP BY out: then all rows are one group.")
            if has_fractions(value.domain(self.scope.schema)):
                raise NotAllowed(f"GROUP BY {shown(node)}: it has fractions, and is no key.", do=BINS)
            plain = value.to_dict()
            if plain in self.keys:
                continue
            taken = [key.name for key in self.groupings]
            self.keys.append(plain)
            self.groupings.append(Grouping(fresh(self._key_name(node), taken), value))

    def _key_name(self, node: exp.Expr) -> str:
        found = [alias for inner, alias in self.items if alias is not None and self._same(inner, node)]
        if not found and isinstance(node, exp.Column):
            return self.scope.find(node).name
        return found[0] if found else default_name(node)

    def _same(self, one: exp.Expr, other: exp.Expr) -> bool:
        if has_aggregate(one):
            return False
        try:
            values = row_values(self.scope, "SELECT")
            return values.of(one).to_dict() == values.of(other).to_dict()
        except SitrError:
            return False

    def _query(self) -> Query:
        whole = any(_clips(one) for one in self.asked.values())
        if whole and has_unit(self.scope.relation, self.declared):
            return self._per_unit()
        made = {name: self._by_row(one) for name, one in self.asked.items()}
        return Query(self.scope.relation, tuple(self.groupings), made, self._limits())

    @staticmethod
    def _by_row(one: Asked) -> Aggregate:
        """Where each row is a unit, what a unit adds in a group is what a row adds."""
        if one.per_group is None or one.aggregate.kind == "count":
            return one.aggregate
        return replace(one.aggregate, bounds=one.per_group)

    def _limits(self) -> Limits:
        rows = [one.per_group[1] for one in self.asked.values() if one.per_group is not None]
        if not has_unit(self.scope.relation, self.declared):
            return Limits()
        for one in rows:
            _validate.integer("contribution_bounds_per_group", one, 1, 2**31)
        if len(set(rows)) > 1:
            raise NotAllowed(
                "two COUNTs with different bounds on what one unit adds to a group.",
                why="they are bounds on the rows that are read, for all aggregates of the query.",
                do="give both the same, or ask apart.",
            )
        groups = self.options.max_groups
        if not self.groupings:  # all rows are one group
            return Limits(max_rows_per_unit=max(rows)) if rows else Limits()
        return Limits(max_groups_per_unit=groups, max_rows_per_group=max(rows) if rows else None)

    def _per_unit(self) -> Query:
        """One row for each unit and group, with what the unit adds to it; then sums and means over these rows."""
        relation, columns = keyed(self.scope, [(one.value, one.name) for one in self.groupings])
        values: dict[str, UnitAggregate] = {}
        made: dict[str, Aggregate] = {}
        for name, one in self.asked.items():
            if one.aggregate.kind == "count_units":
                made[name] = one.aggregate
                continue
            if one.aggregate.kind not in ("count", "sum", "mean"):
                raise NotAllowed(
                    f"{one.aggregate} beside bounds on what one unit adds to a group.",
                    why="there each unit has one number in a group, and no rows.",
                    do="ask for it apart, or use contribution_bounds_per_row => (0, 100) throughout.",
                )
            column = fresh(name, {*columns, *values})
            values[column] = over_unit(self.scope, one)
            mean = one.aggregate.kind == "mean"
            made[name] = aggregates.mean(column) if mean else aggregates.sum(column)
        groupings = tuple(
            replace(one, value=_again(one.value, column)) for one, column in zip(self.groupings, columns, strict=True)
        )
        limits = Limits(max_groups_per_unit=self.options.max_groups, max_rows_per_group=1) if groupings else Limits()
        return Query(PerUnit(relation, tuple(columns), tuple(values.items())), groupings, made, limits)

    # What is done with the answer

    def _outputs(self) -> list[Output]:
        """The columns of SELECT; aggregates get the names of theirs first, so that a plain query stays plain."""
        wanted = [(inner, alias) for inner, alias in self.items if is_aggregate(inner)]
        for inner, alias in wanted:
            self._measured(inner, alias)
        values = self._values("SELECT")
        made: list[Output] = []
        for inner, alias in self.items:
            value = values.of(inner)
            self._kind(value)
            name = alias if alias is not None else self._name(value, [one.name for one in made])
            if name in [one.name for one in made]:
                raise NotAllowed(
                    f"two columns are called {_validate.shown(name)}.", do="give them aliases: COUNT(*) AS n."
                )
            made.append(Output(_validate.name("column", name), value))
        self.aliases = {one.name: one.value for one in made}
        return made

    def _name(self, value: Expression, taken: list[str]) -> str:
        aliases = [alias for _, alias in self.items if alias is not None]
        return fresh(value.name if isinstance(value, Column) else f"column_{len(taken) + 1}", [*taken, *aliases])

    def _measured(self, node: exp.Expr, alias: str | None = None) -> Column:
        """The column of an aggregate: measured once, however often it stands in the query."""
        found = read_aggregate(node, self.scope)
        text = _text(found)
        for name, one in self.asked.items():
            if _text(one) == text:
                return Column(name)
        taken = [*self.asked, *(one.name for one in self.groupings)]
        taken += [other for _, other in self.items if other is not None and other != alias]
        name = fresh(alias if alias is not None else found.label, taken)
        self.asked[name] = found
        check_columns(len(self.groupings), len(self.asked))  # HAVING and ORDER BY may ask for more
        return Column(name)

    def _values(self, place: str) -> Values:
        def known(node: exp.Expr) -> Expression | None:
            for name, value in self.aliases.items():
                if called(node, name):
                    return value
            if has_aggregate(node):
                return None
            try:
                plain = row_values(self.scope, place).of(node).to_dict()
            except SitrError:
                return None
            return next((Column(self.groupings[at].name) for at, key in enumerate(self.keys) if key == plain), None)

        def column(node: exp.Column) -> Expression:
            self._check_name(node)
            raise NotAllowed(
                f"{shown(node)} is neither grouped by nor aggregated.",
                why="rows of people never leave; numbers over groups of them do.",
                do=self._instead(node),
            )

        def aggregate(node: exp.Expr) -> Expression | None:
            return self._measured(node) if is_aggregate(node) else None

        return Values(column, self._kind, place, aggregate, known)

    def _check_name(self, node: exp.Column) -> None:
        """Refuse an unknown name; what SELECT calls its columns is known as well."""
        if node.args.get("table") is None and isinstance(node.this, exp.Identifier) and not self.scope.knows(node):
            there = [one.name for columns in self.scope.sources.values() for one in columns]
            matching(node.this, [*self.aliases, *there], "column")
        self.scope.find(node)

    def _instead(self, node: exp.Column) -> str:
        """What may be asked of a column that is not grouped by; nothing that would be refused in its turn."""
        if self.scope.is_unit(node):
            return f"COUNT(DISTINCT {shown(node)})."
        domain = self.scope.column(node).domain(self.scope.schema)
        ask = OF_KIND[domain.kind].format(shown(node))
        return f"ask for {ask}." if has_fractions(domain) else f"GROUP BY {shown(node)}, or ask for {ask}."

    def _kind(self, value: Expression) -> str:
        schema = self.scope.schema
        kinds = {one.name: one.value.domain(schema).kind for one in self.groupings}
        for name, one in self.asked.items():
            rank = one.aggregate.kind in OF_RANKS and one.aggregate.value is not None
            kinds[name] = (
                one.aggregate.value.domain(schema).kind if rank and one.aggregate.value is not None else "number"
            )
        return kind_of(value, kinds)

    def _having(self) -> Expression | None:
        node = self.select.args.get("having")
        if node is None:
            return None
        only(node, "this")
        found = self._values("HAVING").of(node.this)
        if self._kind(found) != "boolean":
            raise NotAllowed("HAVING is no condition.", do="HAVING COUNT(*) >= 100.")
        return found

    def _order(self) -> list[Order]:
        node = self.select.args.get("order")
        if node is None:
            return []
        only(node, "expressions")
        made = []
        for one in node.expressions:
            only(one, "this", "desc", "nulls_first")
            inner = bare(one.this)
            if isinstance(inner, exp.Literal):
                value = self._at(inner)
            else:
                value = self._values("ORDER BY").of(inner)
            self._kind(value)
            made.append(Order(value, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
        return made

    def _at(self, node: exp.Literal) -> Expression:
        places = list(self.aliases.values())
        text = str(node.this)
        place = int(text) if not node.is_string and text.isdecimal() and len(text) < 6 else 0
        if not 1 <= place <= len(places):
            raise NotAllowed(
                f"ORDER BY {_validate.shown(text)}.", do=f"a column, or a position from 1 to {len(places)}."
            )
        return places[place - 1]

    def _whole(self, name: str) -> int | None:
        node = self.select.args.get(name)
        if node is None:
            return None
        if not isinstance(node, (exp.Limit, exp.Offset)):
            raise NotAllowed("FETCH is not allowed.", do="LIMIT 10.")
        only(node, "expression")
        inner = node.expression
        text = str(inner.this) if isinstance(inner, exp.Literal) and not inner.is_string else ""
        if not text.isdecimal() or len(text) > 10:
            raise NotAllowed(f"{name.upper()} is no whole number.", do=f"{name.upper()} 10.")
        return _validate.integer(name.upper(), int(text), 0, MOST_ROWS)


def _clips(asked: Asked) -> bool:
    """Whether bounds are on a sum over the rows of one unit; an upper bound of a count is one on its rows."""
    return asked.per_group is not None and (asked.aggregate.kind != "count" or bool(asked.per_group[0] > 1))


def _text(asked: Asked) -> str:
    return json.dumps([asked.aggregate.to_dict(), str(asked.per_group)], default=str)


def _again(value: Expression, column: str) -> Expression:
    """A key of what has one row for each unit; the begin of a month is the begin of its month, and stays known so."""
    return Truncated(Column(column), value.unit) if isinstance(value, Truncated) else Column(column)
