"""The rows of a random question, numbered and counted as a synthesis counts them: several columns at once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sitr.errors import InvalidArgument
from sitr.synthesis.plan import kept_of_unit
from sitr.tables.codes import Code, Coded
from sitr.tables.crosstab import Crosstab
from sitr.tables.declaration import Declaration
from sitr.tables.domains import Domain
from sitr.tables.relations import Relation

Integers = NDArray[np.int64]
LISTED = ("a", "b", "é")  # values of texts of which none are declared
MOST = 4  # columns


def numbered(relation: Relation, declared: Declaration) -> Coded:
    """The rows of a relation, with the first few columns that can be numbered."""
    codes = [code for name, one in relation.schema(declared).items() if (code := _code(name, one)) is not None]
    return Coded(relation, tuple(codes[:MOST]), kept_of_unit(relation, declared, None))


def _code(name: str, domain: Domain) -> Code | None:
    if domain.kind == "string" and domain.categories is None:
        return Code(name, domain, None, LISTED, nulls=True)
    try:
        return Code.of(name, domain, cells=7)
    except InvalidArgument:  # no bounds
        return None


def crosstab(coded: Coded) -> Crosstab:
    """Each column by itself, and each with the next."""
    columns = range(len(coded.codes))
    groups = [*((column,) for column in columns), *itertools.pairwise(columns)]
    return Crosstab(tuple(code.coder() for code in coded.codes), tuple(groups))


def reach(coded: Coded, declared: Declaration) -> int:
    """How far a unit may move each table."""
    rows = 1 if coded.bound is None else coded.bound.rows
    assert rows is not None
    return rows * (2 if declared.adjacency == "replace_one" else 1)


def moved(first: list[Integers], second: list[Integers]) -> list[Any]:
    """How far each table moved."""
    return [int(np.abs(one - other).sum()) for one, other in zip(first, second, strict=True)]
