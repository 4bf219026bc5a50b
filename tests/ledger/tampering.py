"""Changes that only one who owns the database can make to a book, and what is then found."""

import json
from dataclasses import replace

from sqlalchemy import select, text, update

from sitr.ledger import Ledger
from sitr.ledger.entry import BEFORE_ALL, Entry, canonical, entry_hash


def tamper(url, *statements):
    """Change a book as one who owns the database can: with triggers out of the way."""
    with Ledger.open(url) as ledger, ledger.store.engine.connect() as connection:
        if "postgresql" in url:
            connection.execute(text("SET search_path = sitr"))
            for table in ("entry", "answer"):
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER ALL"))
        else:
            for row in connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
                connection.execute(text(f"DROP TRIGGER {row.name}"))
        for statement in statements:
            if isinstance(statement, str):
                connection.exec_driver_sql(statement)
            else:
                connection.execute(text(statement[0]), statement[1])


def retotal(url, table, column, change, **where):
    """Change running totals by hand; `where` says of which rows."""
    with Ledger.open(url) as ledger, ledger.store.transaction() as connection:
        chosen = [table.c[name] == value for name, value in where.items()]
        for row in connection.execute(select(table).where(*chosen)).all():
            this = [key == row._mapping[key] for key in table.primary_key]
            connection.execute(update(table).where(*this), {column: change(row._mapping[column])})


def column_of(url, table, column, **where):
    """What one row says."""
    with Ledger.open(url) as ledger, ledger.store.connection() as connection:
        chosen = [table.c[name] == value for name, value in where.items()]
        return connection.execute(select(table.c[column]).where(*chosen)).scalar_one()


def nothing(used):
    """A total that was set back."""
    return (0,) * len(used)


def found(url, **options):
    """What the book says of itself."""
    with Ledger.open(url) as ledger:
        return ledger.verify(**options)


def rewritten(url, change):
    """Change entries and chain them anew: what one who knows the source would do."""
    with Ledger.open(url) as ledger:
        entries, id = list(ledger.entries()), ledger.id
    changed, previous = [], BEFORE_ALL
    for seq, entry in enumerate(change(entries), start=1):
        fields = {**{name: getattr(entry, name) for name in Entry.__dataclass_fields__}, "seq": seq}
        fields["hash"] = entry_hash(id, previous, Entry(**fields))
        previous = fields["hash"]
        changed.append(fields)
    insert = "INSERT INTO entry VALUES (:seq, :at, :kind, :operation, :analyst, :body, :hash)"
    tamper(url, "DELETE FROM entry", *((insert, row) for row in changed))


def with_body(entry, **changes):
    """An entry that says something else."""
    return replace(entry, body=canonical({**json.loads(entry.body), **changes}))
