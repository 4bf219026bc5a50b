"""Subqueries of rows: each row as it is, or with computed columns."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ...errors import NotAllowed
from ...tables.expressions import Expression
from ...tables.relations import Derive, Relation
from .expressions import row_values
from .items import named, required_name
from .names import Scope, Visible, fresh, matching
from .refusals import only


def derived(scope: Scope, select: exp.Select) -> Scope:
    """Each row with other columns."""
    values = row_values(scope, "SELECT")
    visible: list[Visible] = []
    computed: list[tuple[str, Expression]] = []
    for node in select.expressions:
        if isinstance(node, exp.Star):
            only(node)
            visible += scope.everything()
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            only(node, "this", "table")
            only(node.this)
            visible += scope.sources[matching(node.args["table"], scope.sources, "table of FROM")]
        else:
            inner, alias = named(node)
            if isinstance(inner, exp.Column):
                found = scope.find(inner)
                visible.append(replace(found, name=alias or found.name))
            else:
                computed.append((required_name(alias), values.of(inner)))
                visible.append(Visible(computed[-1][0], None))
    return with_columns(scope, visible, computed)


def with_columns(scope: Scope, visible: list[Visible], computed: list[tuple[str, Expression]]) -> Scope:
    """The rows with computed columns; no column that can still be named is covered by one."""
    taken = set(scope.schema)
    used = {one.column for one in visible if one.column is not None}
    made: dict[str, str] = {}
    for name, _ in computed:
        made[name] = fresh(name, (taken & used) | set(made.values()))
    names = [
        one if one.name not in made or one.unit or one.column else replace(one, column=made[one.name])
        for one in visible
    ]
    repeated = [one.name for one in names]
    for name in repeated:
        if repeated.count(name) > 1:
            raise NotAllowed(f"two columns of the subquery are called {name!r}.", do="give one of them another name.")
    relation: Relation = scope.relation
    if computed:
        relation = Derive(relation, tuple((made[name], value) for name, value in computed))
        relation.schema(scope.declared)
    return Scope(scope.declared, relation, {"subquery": tuple(names)})
