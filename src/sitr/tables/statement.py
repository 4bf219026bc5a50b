"""The text of a query: every composite operand in parentheses, and read again before it runs.

Ibis makes a tree, and the text that is written of it may say something else: of `(a OR b) IN (TRUE)` the parentheses
are lost, and with them the condition that stands before it. So the tree is what was meant. The text is read again, and
has to be the same tree; and what bounds a unit has to stand where nothing can undo it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import sqlglot
import sqlglot.generator
from ibis.expr import operations
from sqlglot import exp

from ..errors import EngineFailed, InvalidArgument, MissingExtra
from .dialect import Value

PLACE, UNIT = "place", "unit"  # the columns by which units are bounded
DEEP = 20_000  # calls within calls, for expressions that are deeply nested
# What needs no parentheses: names, constants, and what ends with a word or a bracket of its own.
CLOSED = (
    exp.Column,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Star,
    exp.Paren,
    exp.Cast,
    exp.Case,
    exp.If,
    exp.Anonymous,
    exp.AggFunc,
)
BETWEEN_WORDS = (exp.Paren, exp.Case, exp.If, exp.Window)  # whose parts need none either
CHAINS = (exp.And, exp.Or, exp.Add, exp.Mul)  # every engine reads a chain of one of them from the left
OPERATORS = (exp.Connector, exp.Cast, exp.Case, exp.If, exp.AggFunc)  # functions to sqlglot, and read as they are
READINGS = 2000  # of functions, that are kept
Found = TypeVar("Found")
_deepening = threading.Lock()
_readings: dict[Any, exp.Expr] = {}


@dataclass(frozen=True)
class Statement:
    """A query as it is sent to an engine.

    Attributes:
        tree: What was meant, with parentheses.
        text: What is sent; it was read again.
        schema: Of its rows, as Arrow has it.
        dialect: Of the engine.
    """

    tree: exp.Expr
    text: str
    schema: Any
    dialect: Any

    @property
    def pretty(self) -> str:
        """The text in lines, for people."""
        return _deeply(lambda: text_of(self.tree, self.dialect, pretty=True))

    @cached_property
    def on_empty_tables(self) -> Statement:
        """The same of tables without rows; a question that is asked again is rehearsed again."""

        def emptied(tree: exp.Expr) -> None:
            for table in list(tree.find_all(exp.Table)):
                alias = table.args.get("alias")
                table.replace(empty := exp.Subquery(alias=alias))
                table.set("alias", None)
                empty.set("this", exp.Select(expressions=[exp.Star()]).from_(table, copy=False).limit(0, copy=False))

        return self.changed(emptied)

    def changed(self, change: Callable[[exp.Expr], None]) -> Statement:
        """The same after a change to a copy of its tree."""

        def work() -> Statement:
            change(tree := self.tree.copy())
            return replace(self, tree=tree, text=text_of(tree, self.dialect))

        return _deeply(work)


def check_library() -> None:
    """Refuse sqlglot's compiled form: no generator of ours can be made of its own, and every check needs one.

    Raises:
        MissingExtra: It is installed.
    """
    if not str(sqlglot.generator.__file__).endswith(".py"):
        raise MissingExtra(
            "sqlglot is installed in its compiled form.",
            why="the text of a query is read again before it runs, which needs the plain one.",
            do="pip uninstall sqlglotc",
        )


def stated(query: Value, compiler: Any) -> Statement:
    """Return the statement of one of Ibis's queries.

    Raises:
        EngineFailed: Its text does not say what was meant.
        InvalidArgument: It is too deeply nested.
    """
    dialect = compiler.dialect

    def work() -> Statement:
        meant = plain(compiler.to_sqlglot(query))
        tree = in_parentheses(meant)
        text = text_of(tree, dialect)
        check(meant, text, dialect, bounds_of(query))
        return Statement(tree, text, query.schema().to_pyarrow(), dialect)

    return _deeply(work)


def check(meant: exp.Expr, text: str, dialect: Any, bounds: Counter[str]) -> None:
    """Read a text again and hold it against what was meant, the whole of it.

    Raises:
        EngineFailed: It says something else, or a condition that bounds units is no conjunct at the top of a WHERE.
    """
    _spelled_out(meant, dialect)
    read = _read(text, dialect)
    if read is None or not bounds <= bounds_in(read) or marked(read, dialect) != marked(meant, dialect):
        raise EngineFailed(
            "the text of the query does not say what was meant.",
            why="it was read again and differs from the plan, so a bound might not hold: it is not run.",
            do="put the condition in other words, and report this with the output of `sitr doctor`.",
        )


def text_of(tree: exp.Expr, dialect: Any, *, pretty: bool = False) -> str:
    """Return the text of a tree; what the engine has no words for is an error."""
    return str(tree.sql(dialect=dialect, pretty=pretty, unsupported_level=sqlglot.ErrorLevel.RAISE))


def _read(text: str, dialect: Any) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, dialect=dialect)
    except sqlglot.errors.SqlglotError:
        return None


def _spelled_out(tree: exp.Expr, dialect: Any) -> None:
    """Put in the place of each function what is read of it: dialects have other names for some, and casts around them.

    The arguments are left out while it is read, so that what is read is no more than the function.
    """
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Func) and not isinstance(node, OPERATORS):
            node.replace(_as_read(node, dialect))


def _as_read(node: exp.Expr, dialect: Any) -> exp.Expr:
    """What is read of a function. Its arguments are taken out of it, and not copied: they may hold most of the tree."""
    held: dict[str, exp.Expr] = {}
    for one in list(node.iter_expressions()):
        if not isinstance(one, (exp.Literal, exp.Var)):
            name = f"sitr_{len(held)}"
            held[name] = one
            one.replace(exp.column(name))
    made = _reading(node, dialect)
    for column in list(made.find_all(exp.Column)):
        argument = held[column.name]
        column.replace(argument if argument.parent is None else argument.copy())
    return made


def _reading(function: exp.Expr, dialect: Any) -> exp.Expr:
    """What is read of the text of a small tree; a query has few such, each of them often."""
    key = _shape(function), dialect
    found = _readings.get(key)
    if found is None:
        found = sqlglot.parse_one(text_of(function, dialect), dialect=dialect)
        if len(_readings) >= READINGS:
            _readings.clear()
        _readings[key] = found
    return found.copy()


def _shape(part: Any) -> Any:
    """All that a tree is made of, as a value."""
    if isinstance(part, list):
        return tuple(map(_shape, part))
    if not isinstance(part, exp.Expr):
        return type(part), part
    return type(part), tuple((name, _shape(held)) for name, held in part.args.items())


def _deeply(work: Callable[[], Found]) -> Found:
    """Do what calls itself as deeply as expressions are nested: again, with more room, if Python's limit is met."""
    try:
        return work()
    except RecursionError:
        pass
    with _deepening:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(DEEP, limit))
        try:
            return work()
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(limit)
    raise InvalidArgument("the query is too deeply nested.", do="derive columns of its parts in several steps.")


# Parentheses


def plain(tree: exp.Expr) -> exp.Expr:
    """Return a copy of Ibis's tree in the words in which a text is read: nothing is shared, and nothing hidden.

    Ibis puts tuples into lists, where sqlglot does not look; a negative number is the opposite of one, and
    `IS NOT NULL` that of `IS NULL`; words that are no names are in capitals.
    """
    stack = [tree]
    while stack:
        node = stack.pop()
        for name, held in node.args.items():
            if isinstance(held, (list, tuple)):
                node.args[name] = held = list(_flat(held))
            stack += [one for one in (held if isinstance(held, list) else [held]) if isinstance(one, exp.Expr)]
    made = tree.copy()
    for node in list(made.walk()):
        if isinstance(node, exp.Literal) and not node.is_string and node.name.startswith("-"):
            node.replace(exp.Neg(this=exp.Literal.number(node.name[1:])))
        elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Not):
            node.replace(exp.Not(this=exp.Is(this=node.this, expression=node.expression.this)))
        elif isinstance(node, exp.Var):
            node.set("this", node.name.upper())
    return made


def _flat(held: Any) -> Iterator[Any]:
    for one in held:
        if isinstance(one, (list, tuple)):
            yield from _flat(one)
        else:
            yield one


def in_parentheses(tree: exp.Expr) -> exp.Expr:
    """Return a copy in which every operand and every argument that is composite stands in parentheses.

    Example:
        >>> either = exp.Or(this=exp.column("a"), expression=exp.column("b"))
        >>> in_parentheses(exp.In(this=either, expressions=[exp.true()])).sql()
        '(a OR b) IN (TRUE)'
    """
    made = tree.copy()
    for node in [one for one in made.walk() if _needs_them(one)]:
        node.replace(around := exp.Paren())
        around.set("this", node)
    return made


def _needs_them(node: exp.Expr) -> bool:
    parent = node.parent
    if not isinstance(parent, exp.Condition) or isinstance(parent, BETWEEN_WORDS):
        return False
    if not isinstance(node, exp.Condition) or isinstance(node, CLOSED):
        return False
    return not (isinstance(node, CHAINS) and type(node) is type(parent) and node.arg_key == "this")


# What a text says


def marked(tree: exp.Expr, dialect: Any) -> str:
    """Return a text that shows the tree: each value and each SELECT says how long it is, and parentheses are left out.

    Two trees have the same marks only if they are made of the same parts in the same way: a chain of one operator
    without marks between is one that begins at the left. The trees are used up.

    Example:
        >>> marked(sqlglot.parse_one("(a + b) * c"), "") == marked(sqlglot.parse_one("a + b * c"), "")
        False
        >>> marked(sqlglot.parse_one("(a * b) + (c)"), "") == marked(sqlglot.parse_one("a * b + c"), "")
        True
    """
    root = exp.Paren(this=tree)
    for node in list(tree.find_all(exp.Paren)):
        node.replace(node.this)
    engine = sqlglot.Dialect.get_or_raise(dialect)
    return str(_marking(type(engine))(dialect=engine).generate(root.this, copy=False))


@lru_cache(maxsize=16)
def _marking(dialect: Any) -> Any:
    class Marking(dialect.generator_class):  # type: ignore[misc]
        def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
            text = str(super().sql(expression, key, comment))
            own = key is None and isinstance(expression, (exp.Condition, exp.Query))
            return f"{len(text)}:{text};" if own else text

        def binary(self, expression: exp.Binary, op: str) -> str:
            """A chain of one operator, from the left: sqlglot's own has no marks for what is on the right."""
            sides, node = [], expression
            while type(node) is type(expression):
                sides.append(self.sql(node, "expression"))
                node = node.this
            return f" {op} ".join([self.sql(node), *reversed(sides)])

        def connector_sql(self, expression: exp.Connector, op: str, stack: Any = None) -> str:
            return self.binary(expression, op)

    return Marking


def bounds_of(query: Value) -> Counter[str]:
    """Return how often Ibis's query bounds units, by what is asked of rows: their place, and that they have a unit."""
    filters = query.op().find(operations.Filter)
    return Counter(filter(None, (_bound(one) for filtered in filters for one in filtered.predicates)))


def _bound(condition: Any) -> str | None:
    if isinstance(condition, operations.NotNull) and getattr(condition.arg, "name", "") == UNIT:
        return UNIT
    if isinstance(condition, operations.Less) and getattr(condition.left, "name", "") == PLACE:
        return f"{PLACE} < {condition.right.value}"
    return None


def bounds_in(tree: exp.Expr) -> Counter[str]:
    """Return how often a text bounds units: by conjuncts at the top of a WHERE alone."""
    tops = (one.this for one in tree.find_all(exp.Where))
    return Counter(filter(None, (_said(conjunct) for top in tops for conjunct in _conjuncts(top))))


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    found, stack = [], [condition]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.And):
            stack += [one.this, one.expression]
        else:
            found.append(one)
    return found


def _said(condition: exp.Expr) -> str | None:
    """That something is not missing counts for a unit, as Ibis may write what the unit was made of in its place."""
    if isinstance(condition, exp.Not):
        inner = condition.this.unnest()
        return UNIT if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) else None
    if isinstance(condition, exp.LT) and condition.this.name == PLACE and isinstance(condition.expression, exp.Literal):
        return f"{PLACE} < {condition.expression.name}"
    return None
