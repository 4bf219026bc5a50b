"""Books for benchmarks/ledger.py: long ones, mixed ones, and pairs of a ledger and the bare transactions it needs."""

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

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
from sitr.accounting.filters import Filter, choose_filter
from sitr.ledger import Budget, Entry, Ledger
from sitr.ledger.entry import canonical, entry_hash, sha256
from sitr.ledger.keeper import Keeper
from sitr.ledger.request import Request

ENTRY = "INSERT INTO entry (seq, at, kind, operation, analyst, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
ANSWER = "INSERT INTO answer (operation, media, content, path) VALUES (?, ?, ?, ?)"
AT = "2026-01-01T00:00:00.000000+00:00"
EVENT = Laplace(noise_multiplier=1e6)

Step = Callable[[int], None]


def long_book(path: Path, length: int) -> None:
    """Write a valid book of so many entries, all at once: one by one they would take as many syncs of the disk."""
    driver, used = _filled(path, length, Budget(epsilon=5.0), (EVENT,), canonical)
    driver.execute("UPDATE budget SET whole = ?", (canonical(used),))
    _closed(driver)


def old_book(path: Path, length: int) -> None:
    """The same in the second form: of a hundred events, in a budget of (ε,δ)."""
    events = [Laplace(noise_multiplier=1e6 + turn) for turn in range(100)]
    with mock.patch.object(Budget, "filter", _one_order):
        driver, used = _filled(path, length, Budget(epsilon=5.0, delta=1e-6), events, _in_form_2)
    ((name, version, body),) = driver.execute("SELECT name, version, body FROM budget").fetchall()
    for statement in FORM_2:
        driver.execute(statement)
    driver.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?, 0, 0)", (name, version, body, *used))
    _closed(driver)


# The tables of the second form that the third has otherwise.
FORM_2 = (
    "DROP TABLE block",
    "DROP TABLE budget",
    "CREATE TABLE budget (name TEXT PRIMARY KEY, version INTEGER, body TEXT, "
    "cost INTEGER, delta INTEGER, peak_cost INTEGER, peak_delta INTEGER) STRICT",
    "CREATE TABLE block (budget TEXT, block TEXT, cost INTEGER, delta INTEGER) STRICT",
    "UPDATE book SET schema_version = 2",
)


def _one_order(budget: Budget) -> Filter:
    """What kept a budget of (ε,δ) before there were several filters at once."""
    assert budget.epsilon is not None
    return choose_filter(budget.epsilon, budget.delta)


def _in_form_2(record: dict[str, Any]) -> str:
    """A reservation as the second form says it: two numbers by name."""
    budgets = {
        name: {"cost": due["units"][0], "delta": due["units"][1], "version": due["version"]}
        for name, due in record["budgets"].items()
    }
    return canonical({**record, "budgets": budgets})


def _filled(
    path: Path, length: int, promise: Budget, events: Sequence[Event], said: Callable[[dict[str, Any]], str]
) -> tuple[sqlite3.Connection, list[int]]:
    """A book with so many entries in an open transaction, and what they add up to; its total is not written yet."""
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.create_budget("clinic", promise)
        head, id, (total,) = ledger.head, ledger.id, ledger.store.totals(["clinic"])
    keeper = Keeper.from_json(total.body)
    operations = (length - head.seq) // 3
    asked = [events[turn % len(events)] for turn in range(operations)]
    driver = sqlite3.connect(path, isolation_level=None)
    driver.execute("BEGIN IMMEDIATE")
    driver.executemany(ENTRY, _entries(id, head.hash, head.seq, asked, keeper, said))
    driver.executemany(ANSWER, ((f"q-{i}", "text/plain", b"42", None) for i in range(operations)))
    return driver, [sum(units) for units in zip(*map(keeper.units, asked), strict=True)]


def _closed(driver: sqlite3.Connection) -> None:
    driver.execute("COMMIT")
    driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    driver.close()


def _entries(
    id: str, previous: str, seq: int, events: Sequence[Event], keeper: Keeper, said: Callable[[dict[str, Any]], str]
) -> Iterator[tuple[Any, ...]]:
    for turn, event in enumerate(events):
        request = Request("clinic", event, "amina", f"q-{turn}", None, (), None)
        reserve = said(json.loads(request.body(request.charges({"clinic": (1, keeper)}))))
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


def new_events(draw: random.Random) -> dict[str, Event]:
    """An event of each kind that no ledger has seen before, small enough for all of them to fit into (1, 1e-6)."""
    noise = draw.uniform(1000, 2000)
    sampled = PoissonSampled(Gaussian(noise_multiplier=draw.uniform(3, 4)), draw.uniform(0.002, 0.003))
    return {
        "Laplace": Laplace(noise_multiplier=noise),
        "Gaussian": Gaussian(noise_multiplier=noise),
        "Gaussian on a fine grid": DiscreteGaussian(scale=2**20 * noise, sensitivity=2**20),
        "Laplace on a fine grid": DiscreteLaplace(scale=2**20 * noise, sensitivity=2**20),
        "sampled plan of 1,000 steps": sampled * 1000,
        "sampled plan of rare steps": PoissonSampled(Gaussian(draw.uniform(1.0, 1.2)), 2e-4) * 100,
        "composed of three": Laplace(noise) + Gaussian(noise) * 3 + DiscreteGaussian(scale=draw.uniform(3000, 4000)),
        "composed with a plan": Laplace(noise) + Gaussian(noise) * 3 + sampled * 100,
    }


def granting(ledger: Ledger, events: Sequence[Event] = (EVENT,)) -> Step:
    """Reserve, start and commit, one event after the other."""

    def step(turn: int) -> None:
        event = events[turn % len(events)]
        with ledger.reserve("clinic", event, analyst="amina", operation=f"q-{turn}") as grant:
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
    return granting(ledgers[0]), _bare_sqlite(driver)


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
    return granting(analyst), _bare_postgres(psycopg.ClientCursor(psycopg.connect(bare, autocommit=True)))


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
