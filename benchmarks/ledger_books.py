"""Books for benchmarks/ledger.py: long ones, mixed ones, and pairs of a ledger and the bare transactions it needs."""

import hashlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sitr.accounting import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
)
from sitr.ledger import Budget, Entry, Ledger
from sitr.ledger.entry import canonical, entry_hash, sha256
from sitr.ledger.request import Request

ENTRY = "INSERT INTO entry (seq, at, kind, operation, analyst, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
ANSWER = "INSERT INTO answer (operation, media, content, path) VALUES (?, ?, ?, ?)"
AT = "2026-01-01T00:00:00.000000+00:00"
EVENT = Laplace(noise_multiplier=1e6)

Step = Callable[[int], None]


def long_book(path: Path, length: int) -> None:
    """Write a valid book of so many entries, all at once: one by one they would take as many syncs of the disk."""
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=5.0))
        head, id, (total,) = ledger.head, ledger.id, ledger.store.totals(["clinic"])
        keeper = ledger._keepers(Request("clinic", EVENT, "amina", None, None, (), None))["clinic"][1]
    operations = (length - head.seq) // 3
    used = canonical([operations * units for units in keeper.units(EVENT)])
    driver = sqlite3.connect(path, isolation_level=None)
    driver.execute("BEGIN IMMEDIATE")
    driver.executemany(ENTRY, _entries(id, head.hash, head.seq, operations, total.version, keeper))
    driver.executemany(ANSWER, ((f"q-{i}", "text/plain", b"42", None) for i in range(operations)))
    driver.execute("UPDATE budget SET whole = ?", (used,))
    driver.execute("COMMIT")
    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    driver.close()


def _entries(id: str, previous: str, seq: int, operations: int, version: int, keeper: Any) -> Iterator[tuple[Any, ...]]:
    for turn in range(operations):
        request = Request("clinic", EVENT, "amina", f"q-{turn}", None, (), None)
        reserve = request.body(request.charges({"clinic": (version, keeper)}))
        commit = canonical({"bytes": 2, "holder": "h", "media": "text/plain", "sha256": sha256(b"42")})
        for kind, body in (("reserve", reserve), ("start", canonical({"holder": sha256(b"h")})), ("commit", commit)):
            seq += 1
            entry = Entry(seq, AT, kind, request.operation, "amina", body, "")
            previous = entry_hash(id, previous, entry)
            yield (seq, AT, kind, request.operation, "amina", body, previous)


def mixed_events(count: int) -> Iterator[Event]:
    """Events of seven kinds, some thousand of them different."""
    draw = random.Random(20260101)
    for turn in range(count):
        yield (
            Laplace(noise_multiplier=draw.choice([50, 100, 200])),
            Gaussian(noise_multiplier=draw.uniform(200, 400)),
            DiscreteLaplace(scale=draw.choice([100, 150])),
            DiscreteGaussian(scale=draw.choice([300, 500])),
            PoissonSampled(Gaussian(noise_multiplier=draw.choice([2.0, 3.0])), 0.001) * draw.choice([10, 20]),
            RandomizedResponse(p=draw.choice([0.501, 0.502])),
            PureDP(epsilon=draw.choice([0.001, 0.002])),
        )[turn % 7]


def _ours(ledger: Ledger) -> Step:
    def step(turn: int) -> None:
        with ledger.reserve("clinic", EVENT, analyst="amina", operation=f"q-{turn}") as grant:
            grant.commit(42)

    return step


def sqlite_pair(folder: Path) -> tuple[Step, Step]:
    """A ledger in SQLite, and its three transactions by the driver alone."""
    books = folder / "ours.db", folder / "bare.db"
    ledgers = [Ledger.open(f"sqlite:///{path}") for path in books]
    for ledger in ledgers:
        ledger.create_budget("clinic", Budget(epsilon=5.0))
    driver = sqlite3.connect(books[1], isolation_level=None)
    driver.execute("PRAGMA synchronous = FULL")
    return _ours(ledgers[0]), _bare_sqlite(driver)


def _bare_sqlite(driver: sqlite3.Connection) -> Step:
    operation_entries = "SELECT * FROM entry WHERE operation = ? ORDER BY seq"
    grant = "UPDATE budget SET whole = ? WHERE name = ? AND version = ? AND whole = ? AND peak = ?"

    def append(kind: str, operation: str, size: int) -> None:
        seq, before = driver.execute("SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1").fetchone()
        after = hashlib.sha256(before.encode()).hexdigest()
        driver.execute(ENTRY, (seq + 1, AT, kind, operation, "amina", "x" * size, after))

    def step(turn: int) -> None:
        operation = f"q-{turn}"
        driver.execute("BEGIN IMMEDIATE")
        budgets = ("clinic", "clinic/analyst/amina")
        ((whole, peak),) = driver.execute("SELECT whole, peak FROM budget WHERE name IN (?, ?)", budgets).fetchall()
        driver.execute(grant, (f"[{10 * turn},0]", "clinic", 1, whole, peak))
        append("reserve", operation, 310)
        driver.execute("COMMIT")
        driver.execute("BEGIN IMMEDIATE")
        driver.execute(operation_entries, (operation,)).fetchall()
        append("start", operation, 45)
        driver.execute("COMMIT")
        driver.execute("BEGIN IMMEDIATE")
        driver.execute(operation_entries, (operation,)).fetchall()
        driver.execute(ANSWER, (operation, "application/json", b"42", None))
        append("commit", operation, 180)
        driver.execute("COMMIT")

    return step


def postgres_pair(ours: str, bare: str) -> tuple[Step, Step]:
    """An analyst's ledger in PostgreSQL, and its three transactions, each as one statement that the server prepared."""
    import psycopg

    ledgers = [Ledger.open(url) for url in (ours, bare)]
    for ledger in ledgers:
        ledger.create_budget("clinic", Budget(epsilon=5.0))
    with psycopg.connect(ours, autocommit=True) as driver:
        driver.execute("CREATE ROLE amina LOGIN")
    ledgers[0].allow("amina")
    analyst = Ledger.open(ours.replace("owner@", "amina@"))
    return _ours(analyst), _bare_postgres(psycopg.ClientCursor(psycopg.connect(bare, autocommit=True)))


def _bare_postgres(driver: Any) -> Step:
    # The head is read by a statement of its own, after the lock: in the same one it could be that of before the wait.
    lock = "SELECT id FROM sitr.book FOR UPDATE"
    state = "SELECT kind FROM sitr.entry WHERE operation = %s ORDER BY seq"
    grant = (
        "UPDATE sitr.budget SET whole[1] = whole[1] + 10 "
        "WHERE name = 'clinic' AND version = 1 AND whole[1] + 10 + peak[1] <= 1152921504607895552"
    )
    append = (
        "INSERT INTO sitr.entry SELECT seq + 1, %s, %s, %s, 'amina', %s, encode(sha256(hash::bytea), 'hex') "
        "FROM (SELECT seq, hash FROM sitr.entry ORDER BY seq DESC LIMIT 1) AS last"
    )
    keep = "INSERT INTO sitr.answer VALUES (%s, 'application/json', '42'::bytea, NULL)"

    def transaction(*statements: tuple[str, tuple[Any, ...]]) -> None:
        # One text with its values in it: once to the server and back, which was faster than its pipeline mode.
        values = tuple(value for _, given in statements for value in given)
        text = "; ".join(["BEGIN", lock, *(statement for statement, _ in statements), "COMMIT"])
        driver.execute(text, values)

    def step(turn: int) -> None:
        operation = f"q-{turn}"
        transaction((grant, ()), (append, (AT, "reserve", operation, "x" * 310)))
        transaction((state, (operation,)), (append, (AT, "start", operation, "x" * 45)))
        transaction((state, (operation,)), (keep, (operation,)), (append, (AT, "commit", operation, "x" * 180)))

    return step
