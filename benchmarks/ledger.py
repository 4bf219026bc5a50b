"""The ledger: how long a release takes, whether that grows with the book, and what thousands of crashes leave of it.

No other library keeps a durable account, so each step is put beside the bare transactions that it needs: the same rows,
read and written by the driver alone, on the same disk, in the same run. It ends with 1 if a crash lost a charge, a
budget was overdrawn, a history disagreed with its model, or a book did not verify.

    make bench ROOM=ledger
    python benchmarks/ledger.py --quick --json results.json
"""

import argparse
import json
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy

sys.path.insert(0, str(Path(__file__).parents[1]))  # the fault harness and the model are those of the tests

import ledger_books

import sitr
from sitr.accounting import Laplace
from sitr.ledger import Budget, Ledger
from tests.faults.harness import Nursery, campaign
from tests.ledger import cluster, stores
from tests.ledger.model import run_history

EVENT = Laplace(noise_multiplier=1e6)


def durable_stores() -> list[str]:
    """The stores that can be measured here."""
    return [store for store in stores.DURABLE if store == "sqlite" or cluster.installed()]


def latency(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Reserve, start and commit beside the bare transactions, turn by turn, so that both see the same disk."""
    rows = [_measured("SQLite", ledger_books.sqlite_pair(folder), rounds)]
    if cluster.installed():
        server = cluster.Cluster(synced=True)
        try:
            pair = ledger_books.postgres_pair(server.fresh_database(), server.fresh_database())
            rows.append(_measured("PostgreSQL", pair, rounds))
        finally:
            server.remove()
    return rows


def _measured(store: str, pair: tuple[Callable[[int], None], Callable[[int], None]], rounds: int) -> dict[str, Any]:
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for step, found in zip(pair, times, strict=True):
            started = time.perf_counter()
            step(turn)
            found.append(time.perf_counter() - started)
    ours, bare = (statistics.median(found) * 1e3 for found in times)
    print(
        f"{store:<11} reserve + start + commit {ours:6.3f} ms, bare {bare:6.3f} ms, ratio {ours / bare:.2f} (aim: 1.5)"
    )
    return {"store": store, "ours_ms": ours, "bare_ms": bare, "ratio": ours / bare}


def grants(count: int) -> list[dict[str, Any]]:
    """All three steps in a book in memory, where no disk is synced: of one event, and of a hundred."""
    rows = []
    for different, aim in ((1, 2.0), (100, 4.0)):
        ledger = Ledger.open("memory://")
        ledger.create_budget("clinic", Budget(epsilon=5.0, delta=1e-6))
        step = ledger_books.granting(ledger, [Laplace(noise_multiplier=1e6 + turn) for turn in range(different)])
        started = time.perf_counter()
        for turn in range(count):
            step(turn)
        seconds = time.perf_counter() - started
        print(f"{count:,} grants of {different} events in memory: {seconds:.2f} s (aim: {aim * count / 10_000:.2f})")
        rows.append({"grants": count, "events": different, "seconds": seconds})
    return rows


def first_grants(count: int) -> list[dict[str, Any]]:
    """All three steps of an event that was never asked for before: its costs for every filter are worked out."""
    draw, found = random.Random(20260101), defaultdict[str, list[float]](list)
    for turn in range(count + 1):
        ledger = Ledger.open("memory://")
        ledger.create_budget("clinic", Budget(epsilon=1.0, delta=1e-6))
        ledger.reserve("clinic", EVENT, analyst="amina")
        for kind, event in ledger_books.new_events(draw).items():
            started = time.perf_counter()
            with ledger.reserve("clinic", event, analyst="amina") as grant:
                grant.commit(42)
            if turn:  # the first one of all makes what every later one uses
                found[kind].append((time.perf_counter() - started) * 1e3)
    rows = [
        {"kind": kind, "median_ms": statistics.median(times), "worst_ms": max(times)} for kind, times in found.items()
    ]
    for row in rows:
        print(
            f"first grant of a new event, {row['kind'] + ':':<30} median {row['median_ms']:5.1f} ms, "
            f"at worst {row['worst_ms']:5.1f} ms (aim: 30)"
        )
    return rows


def migration(folder: Path, length: int) -> dict[str, Any]:
    """A book of the second form that is opened: read, brought forward, and verified again."""
    path = folder / "old.db"
    ledger_books.old_book(path, length)
    started = time.perf_counter()
    with Ledger.open(f"sqlite:///{path}") as ledger:
        opened = time.perf_counter() - started
        valid = bool(ledger.verify())
        (last,) = ledger.entries(after=ledger.head.seq - 1)
        joined = last.record.get("joined", {})
    verified = time.perf_counter() - started - opened
    print(
        f"{length:,} entries of form 2: brought forward in {opened:.1f} s, verified in {verified:.1f} s, "
        f"valid: {valid}, filters joined: {len(joined)}"
    )
    return {"entries": length, "opened": opened, "verified": verified, "valid": valid and len(joined) == 1}


def growth(folder: Path, lengths: list[int]) -> list[dict[str, Any]]:
    """Opening a book and admitting one more event, by the length of the book."""
    rows = []
    for length in lengths:
        path = folder / f"{length}.db"
        ledger_books.long_book(path, length)
        found = []
        for turn in range(7):
            started = time.perf_counter()
            with Ledger.open(f"sqlite:///{path}") as ledger:
                ledger.reserve("clinic", EVENT, analyst="amina", operation=f"one more {turn}")
                found.append((time.perf_counter() - started) * 1e3)
        started = time.perf_counter()
        with Ledger.open(f"sqlite:///{path}") as ledger:
            valid = bool(ledger.verify())
        verified = time.perf_counter() - started
        row = {"entries": length, "median_ms": statistics.median(found), "worst_ms": max(found), "valid": valid}
        rows.append(row)
        print(
            f"{length:>9,} entries, {path.stat().st_size / 2**20:.0f} MiB: open and admit one "
            f"{row['median_ms']:.1f} ms, at worst {row['worst_ms']:.1f} ms (aim: 50); "
            f"verify {verified:.1f} s, valid: {valid}"
        )
    return rows


def exact(count: int) -> dict[str, Any]:
    """The exact bracket of a book of mixed entries."""
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=50.0, delta=1e-6))
    for event in ledger_books.mixed_events(count):
        ledger.reserve("clinic", event, analyst="amina")
    started = time.perf_counter()
    statement = ledger.statement("clinic")
    seconds = time.perf_counter() - started
    width = statement.exact.upper / statement.exact.lower - 1
    print(f"{count:,} mixed entries: statement with its exact bracket in {seconds:.2f} s (aim: 5), width {width:.1e}")
    return {"entries": count, "seconds": seconds, "width": width}


def crashes(folder: Path, kills: int) -> list[dict[str, Any]]:
    """Kill processes at random moments; half of them on each store."""
    rows = []
    with Nursery() as nursery:
        for store in durable_stores():
            found = campaign(stores.fresh(store, folder), kills // 2, 20260101, nursery=nursery, longest=0.1)
            rows.append({"store": store, **vars(found), "passed": bool(found)})
            print(
                f"{store:<11} {found.kills} kills, {found.answers} answers left: {found.under_counts} without a charge "
                f"or over the budget, {found.over_counts} charged in vain, {len(found.faults)} faults; "
                f"{found.seconds:.0f} s"
            )
            for fault in found.faults[:10]:
                print(f"  {fault}")
    return rows


def histories(folder: Path, steps: int) -> list[dict[str, Any]]:
    """Random histories beside the reference model of the tests; a disagreement raises."""
    rows = []
    for store in durable_stores():
        started = time.perf_counter()
        run_history(stores.fresh(store, folder), steps, 20260101)
        seconds = time.perf_counter() - started
        print(f"{store:<11} {steps:,} steps agree with the model, {seconds:.0f} s")
        rows.append({"store": store, "steps": steps, "seconds": seconds})
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller books and fewer kills, about a minute")
    parser.add_argument(
        "--only",
        choices=("latency", "growth", "exact", "grants", "first", "migration", "crashes", "histories"),
        help="one part",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    started = time.perf_counter()
    quick = options.quick
    print(f"sitr {sitr.__version__}, Python {platform.python_version()}, SQLAlchemy {sqlalchemy.__version__}, ", end="")
    print(f"SQLite {sqlite3.sqlite_version}, PostgreSQL {'15' if cluster.installed() else 'not installed'}\n")
    parts: dict[str, Callable[[Path], Any]] = {
        "latency": lambda folder: latency(folder, 100 if quick else 1000),
        "growth": lambda folder: growth(folder, [1000, 10_000] if quick else [1000, 30_000, 1_000_000]),
        "exact": lambda folder: exact(1000 if quick else 10_000),
        "grants": lambda folder: grants(1000 if quick else 10_000),
        "first": lambda folder: first_grants(5 if quick else 30),
        "migration": lambda folder: migration(folder, 10_000 if quick else 100_000),
        "crashes": lambda folder: crashes(folder, 60 if quick else 2000),
        "histories": lambda folder: histories(folder, 300 if quick else 100_000),
    }
    results = {}
    for name, part in parts.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="sitr-bench-") as folder:
                results[name] = part(Path(folder))
            print()
    print(f"The whole run took {time.perf_counter() - started:.0f} s.")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    valid = all(row["valid"] for row in [*results.get("growth", []), *filter(None, [results.get("migration")])])
    return int(not valid or not all(row["passed"] for row in results.get("crashes", [])))


if __name__ == "__main__":
    sys.exit(main())
