"""From sqlglot's nodes to our expressions, one kind of node after the other; what has no line here is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sqlglot import exp

from ... import _validate
from ...errors import NotAllowed
from ...tables.expressions import (
    BUCKETS,
    PARTS,
    Arithmetic,
    Case,
    Coalesce,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Logic,
    Not,
    Part,
    Truncated,
)
from ...tables.moments import date_of, time_of
from .dialect import number
from .names import Scope
from .refusals import only, refused

Kind = Callable[[Expression], str]
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
DATES = (exp.DataType.Type.DATE,)
TIMES = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME)
LITERALS = {"DATE": "DATE '2026-01-31'", "TIMESTAMP": "TIMESTAMP '2026-01-31 12:00:00'"}
SCALARS = (
    "ABS",
    "COALESCE",
    "IFNULL",
    "NVL",
    "DATE_TRUNC",
    "TIMESTAMP_TRUNC",
    "IIF",
    *(name.upper() for name in PARTS),
)


class Values:
    """Turns nodes into expressions, in one place of a query.

    Args:
        column: Resolves a name.
        kind: Says what an expression holds.
        place: What the place is called.
        aggregate: Resolves an aggregate; None where there are none.
        known: Resolves what is known as a whole, such as a key that is grouped by.
    """

    def __init__(
        self,
        column: Callable[[exp.Column], Expression],
        kind: Kind,
        place: str,
        aggregate: Callable[[exp.Expr], Expression | None] | None = None,
        known: Callable[[exp.Expr], Expression | None] = lambda node: None,
    ) -> None:
        self.column, self.kind, self.place = column, kind, place
        self.aggregate, self.known = aggregate, known

    def of(self, node: exp.Expr) -> Expression:
        """Return a node as an expression.

        Raises:
            NotAllowed: It is not on the list.
        """
        found = self.known(node)
        if found is None and self.aggregate is not None:
            found = self.aggregate(node)
        return found if found is not None else self._read(node)

    def _read(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Paren):
            only(node, "this")
            return self.of(node.this)
        if isinstance(node, exp.Column):
            return self.column(node)
        if type(node) in COMPARISONS:
            only(node, "this", "expression")
            left, right = self._alike(self.of(node.this), self.of(node.expression))
            return Comparison(COMPARISONS[type(node)], left, right)
        if type(node) in ARITHMETIC:
            only(node, "this", "expression")
            return Arithmetic(ARITHMETIC[type(node)], self.of(node.this), self.of(node.expression))
        reader = READERS.get(type(node))
        if reader is None:
            raise refused(node, self.place)
        return reader(self, node)

    def literal(self, node: exp.Literal) -> Expression:
        """Return a number or a text."""
        only(node, "this", "is_string")
        made = Constant(str(node.this) if node.is_string else number(str(node.this)))
        made.domain({})
        return made

    def boolean(self, node: exp.Boolean) -> Expression:
        """Return TRUE or FALSE."""
        only(node, "this")
        return Constant(bool(node.this))

    def negative(self, node: exp.Neg) -> Expression:
        """Return a number with the other sign."""
        only(node, "this")
        inner = self.of(node.this)
        if isinstance(inner, Constant) and isinstance(inner.value, (int, float)) and not isinstance(inner.value, bool):
            return Constant(-inner.value)
        return -inner

    def logic(self, node: exp.And | exp.Or) -> Expression:
        """Return both, or one of two."""
        only(node, "this", "expression")
        return Logic("and" if isinstance(node, exp.And) else "or", self.of(node.this), self.of(node.expression))

    def inverted(self, node: exp.Not) -> Expression:
        """Return the opposite."""
        only(node, "this")
        return Not(self.of(node.this))

    def listed(self, node: exp.In) -> Expression:
        """Return whether a value is in a list of constants."""
        if node.args.get("query") is not None:
            raise refused(node.args["query"], self.place)
        only(node, "this", "expressions")
        value = self.of(node.this)
        kind = "" if isinstance(value, Constant) else self.kind(value)
        constants = [_read_as(self.of(one), kind) for one in node.expressions]
        if not constants or not all(isinstance(one, Constant) for one in constants):
            raise NotAllowed("IN takes a list of constants.", do="x IN ('a', 'b'), or several comparisons with OR.")
        return value.isin([one.value for one in constants if isinstance(one, Constant)])

    def between(self, node: exp.Between) -> Expression:
        """Return whether a value lies between two ends."""
        only(node, "this", "low", "high")
        value = self.of(node.this)
        (one, low), (other, high) = (self._alike(value, self.of(node.args[end])) for end in ("low", "high"))
        return Logic("and", Comparison(">=", one, low), Comparison("<=", other, high))

    def missing(self, node: exp.Is) -> Expression:
        """Return whether a value is missing."""
        only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise NotAllowed("IS stands before NULL only.", do="write x = TRUE.")
        return IsNull(self.of(node.this))

    def case(self, node: exp.Case) -> Expression:
        """Return the first value whose condition is true."""
        only(node, "this", "ifs", "default")
        if node.args.get("default") is None:
            raise NotAllowed(
                "CASE without ELSE.", why="what it leaves out would be missing.", do="say ELSE 0, or ELSE 'other'."
            )
        made = self.of(node.args["default"])
        subject = self.of(node.this) if node.this is not None else None
        for one in reversed(node.args["ifs"]):
            only(one, "this", "true")
            condition = self.of(one.this)
            if subject is not None:
                condition = Comparison("==", *self._alike(subject, condition))
            then, made = self._alike(self.of(one.args["true"]), made)
            made = Case(condition, then, made)
        return made

    def chosen(self, node: exp.If) -> Expression:
        """Return one of two values."""
        only(node, "this", "true", "false")
        if node.args.get("false") is None:
            raise NotAllowed("IF without a third argument.", do="IF(condition, x, 0).")
        return Case(self.of(node.this), *self._alike(self.of(node.args["true"]), self.of(node.args["false"])))

    def dated(self, node: exp.Cast) -> Expression:
        """Return a literal of a date or a time; no column is cast."""
        only(node, "this", "to", "_type")
        kind = node.args["to"].this
        if isinstance(node.this, exp.Literal) and node.this.is_string and not node.args["to"].expressions:
            if kind in DATES:
                return Constant(_date(str(node.this.this)))
            if kind in TIMES:
                return Constant(_time(str(node.this.this)))
        raise refused(node, self.place)

    def extracted(self, node: exp.Extract) -> Expression:
        """Return a part of a date."""
        only(node, "this", "expression")
        return self._part(node.this.name, node.expression)

    def called(self, node: exp.Anonymous) -> Expression:
        """Return what a function of the list gives."""
        only(node, "this", "expressions")
        name, arguments = str(node.this).upper(), node.expressions
        if name == "ABS" and len(arguments) == 1:
            return abs(self.of(arguments[0]))
        if name in ("COALESCE", "IFNULL", "NVL") and len(arguments) >= 2:
            made = self.of(arguments[-1])
            for one in reversed(arguments[:-1]):
                value, made = self._alike(self.of(one), made)
                made = Coalesce(value, made)
            return made
        if name == "IIF" and len(arguments) == 3:
            return Case(self.of(arguments[0]), *self._alike(self.of(arguments[1]), self.of(arguments[2])))
        if name in ("DATE_TRUNC", "TIMESTAMP_TRUNC") and len(arguments) == 2:
            return self._truncated(arguments[0], arguments[1])
        if name.lower() in PARTS and len(arguments) == 1:
            return self._part(name, arguments[0])
        raise self._unknown(name)

    def _unknown(self, name: str) -> NotAllowed:
        from .functions import NAMES, SAMPLED  # which takes values from here

        if name in SAMPLED:
            return NotAllowed(
                f"{name} is over n - 1.",
                why="n is not known exactly, and n - 1 of a small noisy n may be nothing.",
                do=f"{SAMPLED[name]}, which is over n.",
            )
        if name in LITERALS:
            return NotAllowed(f"the function {name}.", why="no column is cast.", do=f"a constant: {LITERALS[name]}.")
        if name in SCALARS:
            return NotAllowed(f"{name} has another number of arguments.", do="docs/sql.md has examples.")
        if name in NAMES:
            return NotAllowed(
                f"the aggregate {name} in {self.place}.",
                why="a row is not kept, or changed, for what the rows of others hold.",
                do="conditions on aggregates stand in HAVING; an aggregate takes no other one inside.",
            )
        return NotAllowed(
            f"the function {_validate.shown(name)} is not known.",
            why="a function that can fail on one row, or that engines compute differently, would tell of it.",
            do=f"functions of a row: {', '.join(SCALARS)}; of a group: {', '.join(NAMES)}.",
        )

    def _part(self, name: str, value: exp.Expr) -> Expression:
        which = name.lower()
        if which not in PARTS:
            raise NotAllowed(
                f"{_validate.shown(name)} of a date is not known.",
                do=f"one of {', '.join(PARTS)}; weekday counts from Monday, which is 0.",
            )
        return Part(self.of(value), which)

    def _truncated(self, first: exp.Expr, second: exp.Expr) -> Expression:
        """DATE_TRUNC('month', d), and BigQuery's DATE_TRUNC(d, MONTH)."""
        if not (isinstance(first, exp.Literal) and first.is_string):
            first, second = second, first
        unit = first.name.lower() if isinstance(first, (exp.Literal, exp.Column, exp.Var)) else ""
        if unit not in BUCKETS:
            raise NotAllowed(
                f"DATE_TRUNC to {_validate.shown(unit)}.", do=f"DATE_TRUNC('month', d); one of {', '.join(BUCKETS)}."
            )
        return Truncated(self.of(second), unit)

    def _alike(self, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Both sides; a text beside a date is read as one."""
        left_text, right_text = (isinstance(one, Constant) and isinstance(one.value, str) for one in (left, right))
        if left_text == right_text:
            return left, right
        kind = self.kind(right if left_text else left)
        return _read_as(left, kind), _read_as(right, kind)


def _read_as(one: Expression, kind: str) -> Expression:
    """A text beside what is of another kind, read as a date or a time."""
    if not isinstance(one, Constant) or not isinstance(one.value, str):
        return one
    if kind == "date":
        return Constant(_date(one.value))
    return Constant(_time(one.value)) if kind == "timestamp" else one


def row_values(scope: Scope, place: str) -> Values:
    """Return what reads expressions of rows."""
    return Values(scope.column, lambda one: one.domain(scope.schema).kind, place)


READERS: dict[type[exp.Expr], Callable[[Values, Any], Expression]] = {
    exp.Literal: Values.literal,
    exp.Boolean: Values.boolean,
    exp.Neg: Values.negative,
    exp.And: Values.logic,
    exp.Or: Values.logic,
    exp.Not: Values.inverted,
    exp.In: Values.listed,
    exp.Between: Values.between,
    exp.Is: Values.missing,
    exp.Case: Values.case,
    exp.If: Values.chosen,
    exp.Cast: Values.dated,
    exp.Extract: Values.extracted,
    exp.Anonymous: Values.called,
}


def _date(text: str) -> date:
    if (found := date_of(text)) is not None:
        return found
    raise NotAllowed(f"{_validate.shown(text)} is no date.", do=f"{LITERALS['DATE']}.")


def _time(text: str) -> datetime:
    if (found := time_of(text)) is not None:
        return found
    raise NotAllowed(
        f"{_validate.shown(text)} is no time.",
        why="times are those of the declared time zone, and are written without one.",
        do=f"{LITERALS['TIMESTAMP']}.",
    )
