"""Remarks on a query by what is declared: what is asked as it was written, and may not be what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from .. import _validate
from ..tables.declaration import Declaration
from ..tables.expressions import Column, Comparison, Constant, Expression, In
from ..tables.relations import Derive, Filter, Join, Relation, Schema
from .query import Query


def unlisted(query: Query, declared: Declaration) -> tuple[str, ...]:
    """Return a remark for each constant that a column with declared categories is compared with, and that is none."""
    return tuple(dict.fromkeys(_remarks(query.relation, declared)))


def _remarks(relation: Relation, declared: Declaration) -> Iterator[str]:
    for below in (relation.left, relation.right) if isinstance(relation, Join) else _source(relation):
        yield from _remarks(below, declared)
    written = [relation.condition] if isinstance(relation, Filter) else []
    written += [value for _, value in relation.columns] if isinstance(relation, Derive) else []
    for value in written:
        schema = next(_source(relation)).schema(declared)
        for column, constant in _compared(value):
            yield from _remark(column, constant, schema)


def _source(relation: Relation) -> Iterator[Relation]:
    source = getattr(relation, "source", None)
    if source is not None:
        yield source


def _compared(value: Expression) -> Iterator[tuple[Column, object]]:
    """The columns of an expression that have to equal a constant somewhere in it, or not to."""
    if isinstance(value, In) and isinstance(value.value, Column):
        yield from ((value.value, one) for one in value.values)
    if isinstance(value, Comparison) and value.operator in ("==", "!="):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, Column) and isinstance(other, Constant):
                yield one, other.value
    for part in vars(value).values():
        if isinstance(part, Expression):
            yield from _compared(part)


def _remark(column: Column, constant: object, schema: Schema) -> Iterator[str]:
    listed = schema[column.name].categories
    if listed is not None and constant not in listed:
        meant = _validate.meant(constant, listed) if isinstance(constant, str) else ""
        yield f"{_validate.shown(constant)} is no declared category of {column.name}. {meant}".rstrip()
