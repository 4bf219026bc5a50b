"""How a book of an older form becomes one of this form; there was none before 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ..errors import LedgerDamaged
from . import schema
from .entry import Entry
from .reading import Reading, Wrong
from .replay import Account
from .totals import Total, Vector

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


def keep_vectors(connection: Connection) -> dict[str, Any]:
    """From form 2 to 3: two totals of 64 bits become whole numbers of any size, one for each limit.

    Where one Rényi order keeps (ε,δ), a filter on pure ε joins it and counts all of the budget's history. A book that
    does not hold gains nothing: it is carried over as it is, for `verify` to say what is wrong.
    """
    totals, blocks = _old_totals(connection)
    reading = _read(connection)
    reading.note(lambda: reading.check_totals(totals, blocks))
    joined = {} if reading.wrong else reading.replay.joining()
    if connection.dialect.name == "postgresql":
        connection.connection.driver_connection.execute(TO_VECTORS)  # type: ignore[union-attr]
    else:
        _make_anew(connection, totals, blocks)
    for name, due in joined.items():
        account = reading.replay.accounts[name]
        account.join(due)
        _write(connection, name, account)
    if not reading.wrong:
        _check_written(connection, reading)
    return {"joined": joined} if joined else {}


def _old_totals(connection: Connection) -> tuple[list[Total], dict[tuple[str, str], Vector]]:
    place = "sitr." if connection.dialect.name == "postgresql" else ""
    names = "name, version, body, cost, delta, peak_cost, peak_delta"
    totals = [
        Total(name, version, body, (cost, delta), (peak_cost, peak_delta))
        for name, version, body, cost, delta, peak_cost, peak_delta in connection.exec_driver_sql(
            f"SELECT {names} FROM {place}budget"
        )
    ]
    rows = connection.exec_driver_sql(f"SELECT budget, block, cost, delta FROM {place}block")
    return totals, {(row.budget, row.block): (row.cost, row.delta) for row in rows}


def _read(connection: Connection) -> Reading:
    reading = Reading(connection.execute(select(schema.book.c.id)).scalar_one())
    entries = select(schema.entry).order_by(schema.entry.c.seq)
    with connection.execute(entries, execution_options={"yield_per": 1000}) as rows:
        for row in rows:
            try:
                reading.take(Entry(**row._mapping))
            except Wrong as found:  # the chain is broken: no more is read
                reading.wrong.append(found)
                break
    return reading


def _make_anew(connection: Connection, totals: list[Total], blocks: dict[tuple[str, str], Vector]) -> None:
    for table in (schema.block, schema.budget):
        table.drop(connection)
    schema.metadata.create_all(connection, tables=[schema.budget, schema.block])
    rows = [{"budget": budget, "block": block, "used": used} for (budget, block), used in blocks.items()]
    for table, made in ((schema.budget, [total._asdict() for total in totals]), (schema.block, rows)):
        if made:
            connection.execute(insert(table), made)


def _write(connection: Connection, name: str, account: Account) -> None:
    changed = {"version": account.version, "body": account.keeper.to_json()}
    changed |= {"whole": account.whole, "peak": account.peak}
    connection.execute(update(schema.budget).where(schema.budget.c.name == name), changed)
    of_budget = update(schema.block).where(schema.block.c.budget == name)
    for block, used in account.blocks.items():
        connection.execute(of_budget.where(schema.block.c.block == block), {"used": used})


def _check_written(connection: Connection, reading: Reading) -> None:
    """Read the new totals again: what they say must be what the entries add up to."""
    totals = [Total(*row) for row in connection.execute(select(schema.budget))]
    blocks = {(row.budget, row.block): row.used for row in connection.execute(select(schema.block))}
    try:
        reading.check_totals(totals, blocks)
    except Wrong as found:
        raise LedgerDamaged(
            f"the book could not be brought to form {schema.SCHEMA_VERSION}: {found.what}; nothing was changed.",
            do="keep the version of sitr that it was used with, and tell us.",
        ) from None


# From a version to the next: each changes the tables in the transaction that it is given, and returns what the entry of
# the migration says besides.
MIGRATIONS: dict[int, Callable[[Connection], dict[str, Any] | None]] = {1: keep_tables, 2: keep_vectors}
