"""FROM, JOIN, WITH and subqueries: from tables to rows, which still belong to one unit each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ...errors import NotAllowed
from ...tables.declaration import Declaration
from ...tables.relations import Filter
from .expressions import row_values
from .functions import has_aggregate
from .joins import check_join, joined
from .names import Scope, matching, scanned
from .refusals import only, refused
from .rows import derived
from .units import per_unit


class Sources:
    """Reads what stands in FROM; what WITH names stands beside the declared tables, and reads them."""

    def __init__(self, declared: Declaration, named: Mapping[str, Scope] | None = None) -> None:
        self.declared, self.named = declared, dict(named or {})

    def rows(self, select: exp.Select) -> Scope:
        """Return the rows of a SELECT: FROM and JOIN, after WHERE."""
        self._with(select.args.get("with_"))
        origin = select.args.get("from_")
        if origin is None:
            raise NotAllowed("SELECT without FROM.", do=f"tables: {', '.join(self.declared.tables)}.")
        only(origin, "this")
        scope = self._source(origin.this)
        for join in select.args.get("joins") or ():
            check_join(join)
            scope = joined(scope, self._source(join.this), join)
        where = select.args.get("where")
        if where is not None:
            only(where, "this")
            condition = row_values(scope, "WHERE").of(where.this)
            scope = replace(scope, relation=Filter(scope.relation, condition))
            scope.schema  # noqa: B018 - refuses a condition that is none
        return scope

    def _with(self, node: exp.Expr | None) -> None:
        if node is None:
            return
        only(node, "expressions")
        for one in node.expressions:
            only(one, "this", "alias")
            alias = one.args["alias"]
            only(alias, "this")
            if not isinstance(one.this, exp.Select):
                raise refused(one.this)
            self.named[alias.name] = Sources(self.declared, self.named).table(one.this)

    def _source(self, node: exp.Expr) -> Scope:
        """A table, a name of WITH, or a subquery, under its alias."""
        alias = node.args.get("alias")
        if alias is not None:
            only(alias, "this")
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            if not isinstance(node.this, exp.Select):
                raise refused(node.this) if not isinstance(node.this, exp.Subquery) else refused(node.this.this)
            made = Sources(self.declared, self.named).table(node.this)
            name = alias.name if alias is not None else "subquery"
        elif isinstance(node, exp.Table):
            only(node, "this", "alias")
            if not isinstance(node.this, exp.Identifier):
                raise NotAllowed("a function in FROM.", why="it could read anything.", do="name a declared table.")
            made, name = self._named(node.this)
            name = alias.name if alias is not None else name
        else:
            raise refused(node, "FROM")
        return replace(made, sources={name: made.everything()})

    def _named(self, identifier: exp.Identifier) -> tuple[Scope, str]:
        known = [*self.named, *(name for name in self.declared.tables if name not in self.named)]
        name = matching(identifier, known, "table")
        return (self.named[name] if name in self.named else scanned(self.declared, name)), name

    # Subqueries

    def table(self, select: exp.Select) -> Scope:
        """Return a subquery as rows: each row of it changed, or one row for each unit."""
        only(select, "with_", "expressions", "from_", "joins", "where", "group", "having")
        scope = self.rows(select)
        group, having = select.args.get("group"), select.args.get("having")
        aggregated = any(has_aggregate(one) for one in select.expressions) or having is not None
        if group is None and aggregated:
            raise NotAllowed(
                "a subquery that aggregates over all people.",
                why="it would be a release of its own, with a price of its own.",
                do="ask for it first, or group it by the unit.",
            )
        if group is not None:
            return per_unit(scope, select, group, having)
        return derived(scope, select)
