"""Books for the tests of `sitr budget` and `sitr ledger`: files of SQLite in a temporary folder."""

import sqlite3
from pathlib import Path

from sitr.accounting import Laplace
from sitr.ledger import Budget, Ledger

BUDGET = "clinic"


def make_book(folder: Path) -> str:
    """A book with a budget, an analyst's share of it, and two operations: q-1 is answered, q-2 never started."""
    path = str(folder / "book.db")
    with Ledger.open(f"sqlite:///{path}") as book:
        book.create_budget(BUDGET, Budget(epsilon=1.0))
        book.create_budget(BUDGET, Budget(epsilon=0.75), analyst="amina")
        with book.reserve(BUDGET, Laplace(noise_multiplier=4), analyst="amina", operation="q-1") as grant:
            grant.commit(42)
        book.reserve(BUDGET, Laplace(noise_multiplier=10), analyst="badr", operation="q-2")
    return path


def tamper(path: str, change: str) -> None:
    """Do what an intruder does who can write the file."""
    connection = sqlite3.connect(path)
    for what in ("update", "delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS entry_no_{what}")
    connection.execute(change)
    connection.commit()
    connection.close()
