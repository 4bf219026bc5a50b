"""The parts of SELECT and GROUP BY: what each is, and what it is called."""

from __future__ import annotations

from sqlglot import exp

from ... import _validate
from ...errors import NotAllowed
from .functions import has_aggregate
from .names import Scope
from .refusals import only, refused


def named(node: exp.Expr) -> tuple[exp.Expr, str | None]:
    """Return what a part of SELECT is, and its alias."""
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        if not isinstance(node.args["alias"], exp.Identifier):
            raise refused(node)
        return bare(node.this), node.alias
    return bare(node), None


def bare(node: exp.Expr) -> exp.Expr:
    """Return a node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def resolved(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """Return what a part of GROUP BY stands for: a position or an alias of SELECT, or itself."""
    node = bare(node)
    items = [named(one) for one in select.expressions]
    if isinstance(node, exp.Literal):
        text = str(node.this)
        place = int(text) if not node.is_string and text.isdecimal() and len(text) < 6 else 0
        if not 1 <= place <= len(items):
            raise NotAllowed(
                f"GROUP BY {_validate.shown(node.this)}.", do=f"a column, or a position from 1 to {len(items)}."
            )
        return items[place - 1][0]
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return node
    meant = [inner for inner, alias in items if alias is not None and called(node, alias) and not has_aggregate(inner)]
    if not scope.knows(node):
        return meant[0] if meant else node
    if any(not isinstance(inner, exp.Column) or scope.find(inner) != scope.find(node) for inner in meant):
        raise NotAllowed(
            f"GROUP BY {_validate.shown(node.name)}: that is a column, and an alias of something else.",
            do="GROUP BY 1, or use another alias.",
        )
    return node


def called(node: exp.Expr, alias: str) -> bool:
    """Whether a name without a table is an alias."""
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return False
    name = node.this
    if not isinstance(name, exp.Identifier):
        return False
    return bool(name.name == alias or (not name.quoted and _folded(alias, name.name)))


def _folded(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def default_name(node: exp.Expr) -> str:
    """Return what a column is called that has no alias."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, (exp.Anonymous, exp.Extract)):
        return str(node.this if isinstance(node.this, str) else node.this.name).lower() or "key"
    return "key"


def key_name(node: exp.Expr, select: exp.Select) -> str:
    """Return what a key is called in SELECT."""
    for inner, alias in (named(one) for one in select.expressions):
        if inner == node and alias is not None:
            return alias
    return default_name(node)


def required_name(alias: str | None) -> str:
    """Return the alias of a computed column, which it needs."""
    if alias is None:
        raise NotAllowed("a computed column of a subquery has no name.", do="give it one: x * 2 AS doubled.")
    return _validate.name("column", alias)
