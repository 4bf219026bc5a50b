"""Books that earlier versions made (`golden`), put where there is none."""

import sqlite3
from pathlib import Path

from tests.ledger import stores
from tests.ledger.cluster import shared

GOLDEN = Path(__file__).parent / "golden"
ENTRIES = {1: 17, 2: 51}


def restored(url, form):
    """Put a golden book where there is none."""
    store = "postgresql" if url.startswith("postgresql") else "sqlite"
    script = (GOLDEN / f"v{form}-{store}.sql").read_text()
    if store == "postgresql":
        shared().restore(url, script)
    else:
        stores.file_of(url).touch(0o600)
        connection = sqlite3.connect(stores.file_of(url))
        connection.executescript(script)
        connection.close()
    return url


def totals(ledger):
    """All budgets by name, as they are stored."""
    return {total.name: total for total in ledger.store.all_totals()}
