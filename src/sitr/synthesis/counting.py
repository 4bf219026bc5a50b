"""Conditions on columns in SQL: of rows that are counted, so that measurements can answer it, and of rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import sqlglot
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from .. import _validate
from ..errors import InvalidArgument
from ..tables.codes import Code

Condition = tuple[int, Any]  # a column, by number, and what is wanted of it
COMPARED: Mapping[type[expressions.Expression], Callable[[Any, Any], bool]] = {
    expressions.LT: operator.lt,
    expressions.LTE: operator.le,
    expressions.GT: operator.gt,
    expressions.GTE: operator.ge,
}
TURNED = {operator.lt: operator.gt, operator.le: operator.ge, operator.gt: operator.lt, operator.ge: operator.le}
# Rows that are left out by their counts would be chosen by the noise in them; the order of rows is no matter.
READ = {"kind", "expressions", "from", "from_", "where", "group", "order", "operation_modifiers"}


class NotRead(Exception):
    """The SQL asks for something else than rows by conditions."""


@dataclass(frozen=True)
class Counting:
    """How many rows there are, in all or in groups.

    Attributes:
        conditions: What holds in all that are counted.
        keys: The columns of groups: where in the answer they stand, and their numbers.
    """

    conditions: tuple[Condition, ...]
    keys: tuple[tuple[int, int], ...]

    def of_row(self, row: Sequence[Any]) -> tuple[Condition, ...]:
        """Return what holds in all that a row of the answer counts."""
        return (*self.conditions, *((column, row[place]) for place, column in self.keys))


def read_counting(sql: str, codes: Sequence[Code]) -> Counting | None:
    """Return what SQL counts: COUNT(*) of one table, with conditions joined by AND, by columns or in all; or None.

    Example:
        >>> from sitr.tables.domains import Domain
        >>> age = Code.of("age", Domain("number", lower=0, upper=99))
        >>> read_counting("SELECT age, COUNT(*) FROM people WHERE age BETWEEN 20 AND 29 GROUP BY age", [age])
        Counting(conditions=((0, (20, 29)),), keys=((0, 0),))
        >>> read_counting("SELECT AVG(age) FROM people", [age]) is None
        True
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        return _Reader(codes).counting(tree)
    except (SqlglotError, NotRead, InvalidArgument, RecursionError, ValueError, TypeError):
        return None


def read_combination(sql: str, codes: Sequence[Code]) -> dict[str, Any]:
    """Return conditions joined by AND as what is wanted of each column, as `Code.allowed` takes it.

    Args:
        sql: Such as "age < 16 AND married".
        codes: How the columns are numbered; of a column whose values are not known yet, any text may be wanted.

    Raises:
        InvalidArgument: It says something else, or something of what is no column.

    Example:
        >>> from sitr.tables.domains import Domain
        >>> age, married = Code.of("age", Domain("number", lower=0, upper=99)), Code.of("married", Domain("boolean"))
        >>> read_combination("age BETWEEN 0 AND 15 AND married", [age, married])
        {'age': (0, 15), 'married': [True]}
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb", into=expressions.Condition)
        found = list(_Reader(codes, listed=False).conditions(tree))
    except (SqlglotError, NotRead, InvalidArgument, RecursionError, ValueError, TypeError):
        found = []
    wanted = {codes[column].name: one for column, one in found}
    if not found or len(wanted) < len(found):
        raise InvalidArgument(
            f"impossible={_validate.shown(sql)} is not understood.",
            why="it takes conditions of one column each, joined by AND, with no column in two of them.",
            do='such as "age < 16 AND married"; also =, BETWEEN, IS NULL, NOT, and IN of values that are listed. In '
            f"place of OR, state two combinations. Columns: {', '.join(code.name for code in codes)}.",
        )
    return wanted


class _Reader:
    """Reads SQL by the columns that there are; what it does not know, it refuses.

    Args:
        codes: The columns.
        listed: Whether a value has to be one that is listed.
    """

    def __init__(self, codes: Sequence[Code], *, listed: bool = True) -> None:
        self.listed = listed
        self.codes, self.places = codes, {code.name.lower(): place for place, code in enumerate(codes)}
        if len(self.places) < len(codes):
            raise NotRead

    def counting(self, tree: Any) -> Counting:
        if not isinstance(tree, expressions.Select) or _said(tree) - READ:
            raise NotRead
        tables = list(tree.find_all(expressions.Table))
        if len(tables) != 1 or _said(tables[0]) - {"this", "alias"} or tree.find(expressions.Subquery):
            raise NotRead
        shown = [one.unalias() for one in tree.expressions]
        keys = tuple((place, self._column(one)) for place, one in enumerate(shown) if not _counts_rows(one))
        if len(keys) != len(shown) - 1 or not self._groups_by(tree.args.get("group"), {column for _, column in keys}):
            raise NotRead
        where = tree.args.get("where")
        return Counting(() if where is None else tuple(self.conditions(where.this)), keys)

    def _groups_by(self, group: Any, keys: set[int]) -> bool:
        if group is None:
            return not keys
        if _said(group) == {"all"}:
            return True
        return _said(group) == {"expressions"} and {self._column(one) for one in group.expressions} == keys

    def _column(self, node: Any) -> int:
        if not isinstance(node, expressions.Column) or node.name.lower() not in self.places:
            raise NotRead
        return self.places[node.name.lower()]

    def conditions(self, node: Any) -> Iterator[Condition]:
        node = node.unnest()
        if isinstance(node, expressions.And):
            yield from self.conditions(node.left)
            yield from self.conditions(node.right)
        elif isinstance(node, expressions.Column):
            yield self._is(node, True)
        elif isinstance(node, expressions.Not):
            yield self._is(node.this.unnest(), False)
        else:
            yield self._compared(node)

    def _is(self, node: Any, value: bool) -> Condition:
        """A truth value by itself."""
        column = self._column(node)
        if self.codes[column].domain.kind != "boolean":
            raise NotRead
        return column, [value]

    def _compared(self, node: Any) -> Condition:
        if isinstance(node.this, expressions.Column):
            one, others, turned = node.this, node.args.get("expression"), False
        else:
            one, others, turned = node.args.get("expression"), node.this, True
        column = self._column(one)
        code = self.codes[column]
        if isinstance(node, expressions.Is) and isinstance(others, expressions.Null):
            return column, None
        if isinstance(node, expressions.EQ):
            return column, self._one_of(code, [others])
        if isinstance(node, expressions.In) and _said(node) == {"this", "expressions"}:
            return column, self._one_of(code, node.expressions)
        if isinstance(node, expressions.Between) and _said(node) == {"this", "low", "high"}:
            ends = _literal(node.args["low"], code), _literal(node.args["high"], code)
            return column, ends if code.grid is not None else _listed(code, lambda value: ends[0] <= value <= ends[1])
        compare = COMPARED.get(type(node))
        if compare is None:
            raise NotRead
        return column, _beyond(code, TURNED[compare] if turned else compare, _literal(others, code))

    def _one_of(self, code: Code, nodes: Sequence[Any]) -> Any:
        values = [_literal(node, code) for node in nodes]
        if code.grid is None and (not self.listed or all(value in code.values for value in values)):
            return values
        if code.grid is not None and len(values) == 1:
            return values[0], values[0]
        raise NotRead  # what is not listed counts as missing, and several cells of a grid are no range


def _said(node: Any) -> set[str]:
    return {name for name, one in node.args.items() if one}


def _counts_rows(node: Any) -> bool:
    return isinstance(node, expressions.Count) and isinstance(node.this, expressions.Star) and not _said(node.this)


def _beyond(code: Code, compare: Callable[[Any, Any], bool], value: Any) -> Any:
    """What lies on one side of a value."""
    if code.grid is None:
        return _listed(code, lambda one: compare(one, value))
    least, most = code.domain.ends
    end = code.domain.measure(value)
    if compare in (operator.lt, operator.gt):
        end = code.beside(end, -1 if compare is operator.lt else 1)
    return (least, end) if compare in (operator.lt, operator.le) else (end, most)


def _listed(code: Code, wanted: Callable[[Any], bool]) -> list[Any]:
    if not code.values:
        raise NotRead  # they are not known yet, and some may be wanted
    return [value for value in code.values if wanted(value)]


def _literal(node: Any, code: Code) -> Any:
    """A value that is written down, as the column holds it."""
    kind = code.domain.kind
    if isinstance(node, expressions.Cast) and node.to.this.name in ("DATE", "TIMESTAMP"):
        node = node.this
    if isinstance(node, expressions.Neg) and kind == "number":
        return -_literal(node.this, code)
    if isinstance(node, expressions.Boolean) and kind == "boolean":
        return bool(node.this)
    if not isinstance(node, expressions.Literal) or node.is_string == (kind in ("number", "boolean")):
        raise NotRead
    if kind == "number":
        return int(node.this) if node.is_int else float(node.this)
    if kind in ("date", "timestamp"):
        return (date if kind == "date" else datetime).fromisoformat(node.this)
    return str(node.this)
