"""Tables of several columns, counted in one pass."""

import numpy as np
import pyarrow
from hypothesis import given
from hypothesis import strategies as st

from sitr.tables.crosstab import BLOCK, Coder, Crosstab

WORDS = ("a", "b", "c")


@st.composite
def columns(draw):
    """Two columns: one of texts, some of them missing or not listed, one of steps, some of them missing."""
    count = draw(st.integers(0, 40))
    texts = draw(st.lists(st.sampled_from((*WORDS, "other", None)), min_size=count, max_size=count))
    steps = draw(st.lists(st.sampled_from((0, 1, 2, 3, None)), min_size=count, max_size=count))
    return texts, steps


@given(columns(), st.lists(st.integers(0, 1), min_size=5, max_size=5), st.integers(1, 7))
def test_tables_are_those_of_counting_row_by_row(rows, bins, batch):
    texts, steps = rows
    coarse = np.array(bins)
    coders = (
        Coder(pyarrow.array(WORDS), 3, np.arange(4)),
        Coder(None, 4, coarse),
    )
    crosstab = Crosstab(coders, ((0,), (1,), (0, 1), (1, 0, 0)))
    schema = pyarrow.schema({"texts": pyarrow.string(), "steps": pyarrow.int64()})
    batches = pyarrow.table({"texts": texts, "steps": steps}, schema=schema).to_batches(max_chunksize=batch)
    expected = [np.zeros(shape, dtype=int) for shape in crosstab.shapes]
    for text, step in zip(texts, steps, strict=True):
        cell = WORDS.index(text) if text in WORDS else 3, int(coarse[4 if step is None else step])
        for table, group in zip(expected, crosstab.groups, strict=True):
            table[tuple(cell[column] for column in group)] += 1
    found = crosstab.counts(batches)
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))
    again = crosstab.dense(*crosstab.sparse(batches))
    assert all((one == other).all() for one, other in zip(found, again, strict=True))


def test_long_batches_are_counted_whole():
    rows = pyarrow.record_batch({"steps": np.arange(2 * BLOCK + 1) % 3})
    (found,) = Crosstab((Coder(None, None, np.arange(3)),), ((0,),)).counts([rows])
    assert found.tolist() == [(2 * BLOCK + 1 + place) // 3 for place in (2, 1, 0)]
