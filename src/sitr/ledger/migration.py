"""How a book of an older form becomes one of this form; there was none before 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, insert

from . import schema

OLD_TOTALS = "SELECT name, version, body, cost, delta, peak_cost, peak_delta FROM budget"
OLD_BLOCKS = "SELECT budget, block, cost, delta FROM block"
# In place: analysts keep their right to execute what returns a row of these tables, and officers theirs to read them.
TO_VECTORS = """
DROP FUNCTION IF EXISTS sitr.charged(sitr.budget, json, text[]), sitr.whole(json);
ALTER TABLE sitr.budget
    ADD COLUMN whole numeric[] CHECK (0 <= ALL (whole)),
    ADD COLUMN peak numeric[] CHECK (0 <= ALL (peak));
ALTER TABLE sitr.block ADD COLUMN used numeric[] CHECK (0 <= ALL (used));
UPDATE sitr.budget SET whole = ARRAY[cost, delta], peak = ARRAY[peak_cost, peak_delta];
UPDATE sitr.block SET used = ARRAY[cost, delta];
ALTER TABLE sitr.budget ALTER COLUMN whole SET NOT NULL, ALTER COLUMN peak SET NOT NULL,
    DROP COLUMN cost, DROP COLUMN delta, DROP COLUMN peak_cost, DROP COLUMN peak_delta;
ALTER TABLE sitr.block ALTER COLUMN used SET NOT NULL, DROP COLUMN cost, DROP COLUMN delta;
"""


def keep_tables(connection: Connection) -> None:
    """From form 1 to 2: the tables stay; PostgreSQL has stricter functions, which are installed after every step."""


def keep_vectors(connection: Connection) -> None:
    """From form 2 to 3: two totals of 64 bits become whole numbers of any size, one for each limit."""
    if connection.dialect.name == "postgresql":
        connection.connection.driver_connection.execute(TO_VECTORS)  # type: ignore[union-attr]
        return
    totals = [
        {"name": row.name, "version": row.version, "body": row.body}
        | {"whole": (row.cost, row.delta), "peak": (row.peak_cost, row.peak_delta)}
        for row in connection.exec_driver_sql(OLD_TOTALS)
    ]
    blocks = [
        {"budget": row.budget, "block": row.block, "used": (row.cost, row.delta)}
        for row in connection.exec_driver_sql(OLD_BLOCKS)
    ]
    for table in (schema.block, schema.budget):
        table.drop(connection)
    schema.metadata.create_all(connection, tables=[schema.budget, schema.block])
    for table, rows in ((schema.budget, totals), (schema.block, blocks)):
        if rows:
            connection.execute(insert(table), rows)


# From a version to the next: each changes the tables in the transaction that it is given, and returns what the entry of
# the migration says besides.
MIGRATIONS: dict[int, Callable[[Connection], dict[str, Any] | None]] = {1: keep_tables, 2: keep_vectors}
