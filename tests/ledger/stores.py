"""The stores that tests run on: a way to make an address of a new, empty book in each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ledger import cluster

# Those that outlive a process, and all.
DURABLE = ["sqlite", "postgresql"]
ALL = ["memory", *DURABLE]

NUMBERS = itertools.count(1)  # never twice, also in the same folder
Fresh = Callable[[], str]


def fresh(store: str, folder: Path) -> Fresh:
    """Return a function that makes the address of a new book at every call."""
    if store == "memory":
        return lambda: "memory://"
    if store == "sqlite":
        return lambda: f"sqlite:///{folder}/book{next(NUMBERS)}.db"
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    return cluster.shared().fresh_database


def file_of(url: str) -> Path:
    """The file of a book in SQLite."""
    return Path(url.removeprefix("sqlite:///"))
