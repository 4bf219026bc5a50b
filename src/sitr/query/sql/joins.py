"""JOIN: rows that meet rows of a public table, or of the same unit in another private one."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ...errors import NotAllowed
from ...tables.declaration import Declaration, KeyPath
from ...tables.relations import Join, Select, is_public, table_of
from .names import Scope, Visible, fresh
from .refusals import only

Pairs = list[tuple[Visible, Visible]]


def joined(left: Scope, right: Scope, node: exp.Join) -> Scope:
    """Return the rows of two tables that meet.

    Raises:
        NotAllowed: They are private and do not meet on their unit, or the condition is no equality of columns.
    """
    if left.sources.keys() & right.sources.keys():
        name = min(left.sources.keys() & right.sources.keys())
        raise NotAllowed(f"two tables are called {name!r}.", do="give them aliases: FROM visits AS a.")
    pairs, declared, keep = _pairs(left, right, node), left.declared, node.args.get("side") == "LEFT"
    if not keep and is_public(left.relation, declared) and not is_public(right.relation, declared):
        left, right, pairs = right, left, _turned(pairs)
    if not is_public(right.relation, declared) and not is_public(left.relation, declared):
        pairs = _on_unit(declared, pairs)
    return _met(left, right, pairs, keep=keep, using=bool(node.args.get("using")))


def check_join(node: exp.Join) -> None:
    """Refuse all joins but JOIN and LEFT JOIN."""
    if node.args.get("method") or node.args.get("kind") in ("CROSS", "SEMI", "ANTI") or node.args.get("global"):
        raise NotAllowed(f"{node.args.get('method') or node.args.get('kind')} JOIN.", do="write JOIN ... ON a.x = b.y.")
    if (node.args.get("side") or "") not in ("", "LEFT"):
        raise NotAllowed(
            f"{node.args['side']} JOIN.",
            why="rows without a unit would be made.",
            do="JOIN, or LEFT JOIN with a public table on the right.",
        )
    only(node, "this", "side", "kind", "on", "using")


def _on_unit(declared: Declaration, pairs: Pairs) -> Pairs:
    """The equalities beside that of the units, which has to be among them, or to follow from a declared key."""
    rest = [(one, other) for one, other in pairs if not (one.unit and other.unit)]
    if len(rest) == len(pairs) and not (_follows(declared, pairs) or _follows(declared, _turned(pairs))):
        raise NotAllowed(
            "two private tables are joined without their unit.",
            why="a row would belong to two people.",
            do="add the equality of their units: ON a.patient = b.patient.",
        )
    return rest


def _turned(pairs: Pairs) -> Pairs:
    return [(other, one) for one, other in pairs]


def _follows(declared: Declaration, pairs: Pairs) -> bool:
    """Whether the left finds its unit in the right, by the key that the pairs are."""
    origins = {(one.origin, other.origin) for one, other in pairs}
    for origin in {one.origin for one, _ in pairs if one.origin is not None}:
        path = table_of(declared, origin[0]).unit
        if isinstance(path, KeyPath) and all(
            ((origin[0], here), (path.table, there)) in origins for here, there in path.columns
        ):
            return True
    return False


def _pairs(left: Scope, right: Scope, node: exp.Join) -> Pairs:
    using, on = node.args.get("using"), node.args.get("on")
    if using:
        names = [one.this if isinstance(one, exp.Column) else one for one in using]
        if on is not None or not all(isinstance(name, exp.Identifier) for name in names):
            raise NotAllowed("USING takes names of columns.", do="JOIN b USING (region).")
        columns = [exp.Column(this=name) for name in names]
        return [(left.find(column), right.find(column)) for column in columns]
    if on is None:
        raise NotAllowed(
            "a join without a condition.", why="every row would meet every other.", do="write JOIN ... ON a.x = b.y."
        )
    return [_pair(left, right, one) for one in _conjuncts(on)]


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    return [*_conjuncts(node.this), *_conjuncts(node.expression)] if isinstance(node, exp.And) else [node]


def _pair(left: Scope, right: Scope, node: exp.Expr) -> tuple[Visible, Visible]:
    sides = (node.this, node.expression) if isinstance(node, exp.EQ) else ()
    if len(sides) != 2 or not all(isinstance(side, exp.Column) for side in sides):
        raise NotAllowed(
            "a condition of ON that is no equality of two columns.",
            do="put other conditions into WHERE, or into a subquery: JOIN (SELECT * FROM t WHERE ...) AS t.",
        )
    places = [(left.knows(side), right.knows(side)) for side in sides]
    if places == [(True, False), (False, True)]:
        return left.find(sides[0]), right.find(sides[1])
    if places == [(False, True), (True, False)]:
        return left.find(sides[1]), right.find(sides[0])
    both = Scope(left.declared, left.relation, {**left.sources, **right.sources})
    for side in sides:
        both.find(side)
    raise NotAllowed("a condition of ON that does not say which columns of the two tables are equal.", do="a.x = b.y.")


def _met(left: Scope, right: Scope, pairs: Pairs, *, keep: bool, using: bool) -> Scope:
    """The joined rows; a column of the right whose name is taken by another one of the left gets a new name."""
    taken, theirs = left.schema, right.schema
    same = {other.column for one, other in pairs if one.column == other.column and not keep}
    units = {one.column for columns in left.sources.values() for one in columns if one.unit}
    unit = {one.column for columns in right.sources.values() for one in columns if one.unit}
    renamed: dict[str, str] = {}
    for name in theirs:
        shared = name in same or (name in units and name in unit)
        if name in taken and not shared:
            prefix = next(iter(right.sources))
            renamed[name] = fresh(f"{prefix}_{name}", {*taken, *theirs, *renamed.values()})
    relation = right.relation
    if renamed:
        relation = Select(relation, tuple((renamed.get(name, name), name) for name in theirs))
    on = [(one.column, renamed.get(other.column, other.column)) for one, other in pairs if one.column and other.column]
    if len(on) < len(pairs):
        raise NotAllowed("a unit is compared with what is no unit.", do="join on unit = unit.")
    columns = {
        alias: tuple(
            replace(one, column=renamed.get(one.column, one.column) if one.column is not None else None)
            for one in names
            if not (using and any(one.name == other.name for _, other in pairs))
        )
        for alias, names in right.sources.items()
    }
    made = Scope(left.declared, Join(left.relation, relation, tuple(on), keep), {**left.sources, **columns})
    made.schema  # noqa: B018 - refuses what does not fit
    return made
