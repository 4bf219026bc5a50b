"""Databases with a table for each of some sources: what tests of sources begin with."""

import pyarrow
import pytest

from sitr.errors import InvalidDeclaration
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration

COLUMNS = {"who": {"type": "integer"}, "x": {"type": "integer"}}
ROWS = pyarrow.table({"who": [1, 2], "x": [3, 4]})
ANOTHER_BUDGET, ANOTHER_UNIT = {"dataset": "other"}, {"unit": "x"}
BUDGETS = "read one source and have different budgets"
UNITS = "read one source and have different units"
NO_LONGER = "the source of t0 is no longer what was opened"
JSON = '{"who": 1, "x": 3}\n'


def database(folder, *sources, frames=None, second=None, **connection):
    """A database with a table for each source; the second may have settings of its own."""
    plain = {"unit": "who", "max_rows_per_unit": 2, "columns": COLUMNS}
    tables = {f"t{place}": plain | {"source": source} for place, source in enumerate(sources)}
    if second:
        tables["t1"] = tables["t1"] | second
    content = {"sitr": 1, "name": "d", "connection": connection, "tables": tables}
    content["budgets"] = {"d": {"epsilon": 10.0}, "other": {"epsilon": 10.0}}
    return opened(Declaration.of(content, folder), ledger="memory://", analyst="amina", frames=frames)


def same(folder, first, others, **connection):
    """Whether each of other names is of the same table as the first; all of them are opened together."""
    with database(folder, first, *others, **connection) as one:
        found = [one.source.seen(table).origins for table in one.declared.tables.values()]
    return [bool(found[0] & origins) for origins in found[1:]]


def refused(folder, one, other, **connection):
    """Two names of one table do not get two budgets, nor two units."""
    for settings, refusal in ((ANOTHER_BUDGET, BUDGETS), (ANOTHER_UNIT, UNITS)):
        with pytest.raises(InvalidDeclaration, match=refusal):
            database(folder, one, other, second=settings, **connection)
    return True
