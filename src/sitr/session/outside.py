"""What leaves a database outside every promise: noted in the book before a row is read, and stamped NOT PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidArgument
from ..query.wording import rows_text
from ..synthesis.histogram import MOST_CELLS
from ..synthesis.random_dp import RandomRelease, random_dp_histogram, require_unsafe
from ..tables.codes import Code, Coded
from ..tables.crosstab import Crosstab
from ..tables.relations import Relation, datasets_of, has_unit, require_column

if TYPE_CHECKING:
    from .database import Database


def random_dp_counts(
    database: Database,
    relation: Relation,
    columns: Sequence[str],
    *,
    rows: int,
    alpha: float,
    reason: str,
    unsafe_random_dp: bool,
    cells: int,
) -> RandomRelease:
    """Count the cells of some columns under random DP; see `PrivateTable.random_dp_histogram`."""
    require_unsafe(unsafe_random_dp)
    schema = relation.schema(database.declared)
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument("columns names none, or one of them twice.")
    for name in columns:
        require_column(name, schema)
    if has_unit(relation, database.declared):
        raise InvalidArgument(
            "random DP speaks of rows that are drawn independently of each other.",
            why="here a unit may have several, which are not.",
            do="take histogram(...), which bounds what a unit has.",
        )
    codes = tuple(Code.of(name, schema[name], cells) for name in columns)
    size = math.prod(code.size for code in codes)
    if size > MOST_CELLS:
        raise InvalidArgument(
            f"a histogram of {size:,} cells is too large.",
            why=f"all of them are counted, {MOST_CELLS:,} at most.",
            do="take coarser cells or fewer columns.",
        )
    made = random_dp_histogram(size, rows, alpha=alpha)
    coded = Coded(relation, codes, None)
    crosstab = Crosstab(tuple(code.coder() for code in codes), (tuple(range(len(codes))),))
    database.hold_to_terms()  # again: the book that this is noted in has to be that of these rows
    database.source.rehearse(coded)
    what = f"a histogram of {', '.join(columns)} of {rows_text(relation)}"
    for dataset in datasets_of(relation, database.declared):
        database.ledger.note_outside(dataset, what, notion=made.notion, reason=reason, analyst=database.analyst)
    (counts,) = database.source.count(coded, crosstab)
    texts = [code.cell_texts() for code in codes]
    found = {
        tuple(text[place] for text, place in zip(texts, places, strict=True)): int(counts[tuple(places)])
        for places in np.argwhere(counts)
    }
    return made.release(found, unsafe_random_dp=True)
