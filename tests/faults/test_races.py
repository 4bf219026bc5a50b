"""Many at once: processes and threads that race, one that is stopped while it writes, owners who change budgets."""

import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from sitr.errors import (
    AlreadySpent,
    LedgerUnavailable,
    SitrError,
)
from sitr.ledger import Budget, Ledger
from tests.faults import harness
from tests.faults.acts import ask
from tests.faults.harness import ROOT, Outcome
from tests.faults.worker import ANALYST, DATASET, EVENT, Job

RACERS = 8


def race(nursery, jobs, barrier):
    """Run jobs at the same time, and return what became of every operation."""
    children = [nursery.fork(job) for job in jobs]
    time.sleep(0.3)  # most have opened the book by then; whoever comes later finds the barrier open
    barrier.touch()
    assert [nursery.wait(child) for child in children] == [0] * len(jobs)


# Processes


def test_eight_processes_race_for_the_last_budget(fresh, nursery, tmp_path):
    url, side, barrier = fresh(), str(tmp_path / "side"), tmp_path / "go"
    harness.prepare(url, 100)
    jobs = [
        Job(url, side, [f"{number}-{turn}" for turn in range(101)], barrier=str(barrier)) for number in range(RACERS)
    ]
    race(nursery, jobs, barrier)
    refused = Counter(line["refused"] for line in harness.lines(side) if "refused" in line)
    assert refused == {"BudgetExceeded": RACERS}
    with Ledger.open(url) as ledger:
        outcome = Outcome()
        states = harness.check(ledger, side, 100, outcome)
        assert outcome, outcome
        assert Counter(states.values()) == {"commit": 100}
        assert ledger.remaining(DATASET).value == 0


def test_eight_processes_race_for_one_operation(fresh, nursery, tmp_path):
    url, side, barrier = fresh(), str(tmp_path / "side"), tmp_path / "go"
    names = [f"q{turn}" for turn in range(10)]
    harness.prepare(url, 100)
    race(nursery, [Job(url, side, names, barrier=str(barrier)) for _ in range(RACERS)], barrier)
    with Ledger.open(url) as ledger:
        outcome = Outcome()
        states = harness.check(ledger, side, 100, outcome)  # no operation is answered twice
        assert outcome, outcome
        assert states == dict.fromkeys(names, "commit")
        assert ledger.spent(DATASET).value == pytest.approx(len(names))
    refused = Counter(line["refused"] for line in harness.lines(side) if "refused" in line)
    assert set(refused) <= {"AlreadySpent", "AlreadyAnswered"}
    assert sum(refused.values()) == len(names) * (RACERS - 1)


def test_eight_processes_make_one_book(fresh, nursery, tmp_path):
    side = str(tmp_path / "side")
    for _ in range(3):
        url = fresh()
        children = [nursery.fork(Job(url, side, [])) for _ in range(RACERS)]
        assert [nursery.wait(child) for child in children] == [0] * RACERS
        with Ledger.open(url) as ledger:
            assert [entry.kind for entry in ledger.entries()] == ["open"]
            assert ledger.verify().valid


def test_a_lock_holder_that_is_stopped_blocks_others_with_a_clear_error(fresh):
    url = fresh()
    harness.prepare(url, 10)
    code = (
        "import sys, time; from sitr.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "with ledger.store.transaction() as connection:\n"
        "    print('holds', flush=True); time.sleep(1)\n"
        "print('done', flush=True)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert holder.stdout.readline() == "holds\n"
        holder.send_signal(signal.SIGSTOP)
        with Ledger.open(url, wait=0.3) as ledger:
            began = time.monotonic()
            with pytest.raises(LedgerUnavailable, match="another process holds the ledger"):
                ask(ledger, "q1")
            assert 0.2 < time.monotonic() - began < 5
            assert ledger.spent(DATASET).value == pytest.approx(0)
            holder.send_signal(signal.SIGCONT)
            assert holder.stdout.readline() == "done\n"
            ask(ledger, "q1")
            assert ledger.spent(DATASET).value == pytest.approx(1)
            assert ledger.verify().valid
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_book_is_verified_while_others_write(fresh, nursery, tmp_path):
    """What is charged meanwhile makes no valid book look broken."""
    url, side = fresh(), str(tmp_path / "side")
    harness.prepare(url, 1000)
    child = nursery.fork(Job(url, side, [f"q{turn}" for turn in range(1000)]))
    until = time.monotonic() + 60
    while not harness.lines(side) and time.monotonic() < until:  # the other one is at work
        time.sleep(0.01)
    with Ledger.open(url) as ledger:
        found = [ledger.verify() for _ in range(40)]
        reports = [ledger.statement(DATASET) for _ in range(5)]
    nursery.signal(child, signal.SIGKILL)
    nursery.wait(child)
    assert {told.problem for told in found} == {""}
    assert len({told.head for told in found}) > 1  # something was written meanwhile
    with Ledger.open(url) as ledger:
        kinds = {entry.seq: entry.kind for entry in ledger.entries()}
    for report in reports:  # a statement speaks of the book up to the head that it names
        assert round(report.spent.value, 9) == sum(kinds[seq] == "reserve" for seq in range(1, report.head.seq + 1))


# Owners who change a budget while it is charged. The other one acts between two steps of ours.


def between(monkeypatch, store, step, act):
    """Do something once, just before the next `step` of a store."""
    original = getattr(store, step)

    def first_act(*arguments, **options):
        monkeypatch.setattr(store, step, original)
        act()
        return original(*arguments, **options)

    monkeypatch.setattr(store, step, first_act)


def test_a_budget_that_is_raised_while_another_raises_it(fresh, monkeypatch):
    url = fresh()
    harness.prepare(url, 4)
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        ask(ledger, "q1")
        between(
            monkeypatch,
            ledger.store,
            "raise_budget",
            lambda: other.raise_budget(DATASET, Budget(epsilon=16.0), reason="first"),
        )
        with pytest.raises(LedgerUnavailable, match="was raised by another"):
            ledger.raise_budget(DATASET, Budget(epsilon=32.0), reason="second")
        assert ledger.spent(DATASET).value == pytest.approx(1.0)
        found = ledger.verify()
        assert found.valid, found


def test_a_refund_while_the_budget_is_raised(fresh, monkeypatch):
    url = fresh()
    harness.prepare(url, 4)
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        for name in ("q1", "q2", "q3", "q4"):
            ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name)
        between(
            monkeypatch,
            ledger.store,
            "refund",
            lambda: other.raise_budget(DATASET, Budget(epsilon=16.0), reason="more"),
        )
        ledger.refund("q1", reason="never ran")
        assert ledger.spent(DATASET).value == pytest.approx(3.0)
        found = ledger.verify()
        assert found.valid, found


def test_a_share_that_is_created_while_its_analyst_asks(fresh, monkeypatch):
    url = fresh()
    harness.prepare(url, 4)
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        between(
            monkeypatch,
            ledger.store,
            "reserve",
            lambda: other.create_budget(DATASET, Budget(epsilon=2.0), analyst=ANALYST),
        )
        ask(ledger, "q1")
        assert ledger.spent(DATASET, analyst=ANALYST).value == pytest.approx(1.0)
        found = ledger.verify()
        assert found.valid, found


def test_a_budget_that_is_raised_while_it_is_charged(fresh, monkeypatch):
    url = fresh()
    harness.prepare(url, 4)
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        between(
            monkeypatch,
            ledger.store,
            "reserve",
            lambda: other.raise_budget(DATASET, Budget(epsilon=8.0), reason="more"),
        )
        ask(ledger, "q1")
        assert ledger.spent(DATASET).share == pytest.approx(1 / 8)
        assert ledger.verify().valid


def test_two_processes_bring_a_book_to_a_new_form_once(fresh, monkeypatch):
    from sitr.ledger import migration, schema

    url, made = fresh(), []
    harness.prepare(url, 4)
    with Ledger.open(url) as old, Ledger.open(url) as older:
        form = schema.SCHEMA_VERSION
        monkeypatch.setattr(schema, "SCHEMA_VERSION", form + 1)
        monkeypatch.setattr(migration, "MIGRATIONS", {form: lambda connection: made.append(1)})
        old.store.migrate()
        older.store.migrate()
        assert made == [1]
        assert [entry.kind for entry in old.entries()].count("migrate") == 1


# Threads


def test_threads_share_a_ledger(fresh):
    url, said = fresh(), []
    harness.prepare(url, 20)

    def work(ledger, number):
        for turn in range(6):
            try:
                ask(ledger, f"{number}-{turn}")
                said.append("granted")
            except SitrError as error:
                said.append(type(error).__name__)

    with Ledger.open(url) as ledger:
        threads = [threading.Thread(target=work, args=(ledger, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(said) == {"granted": 20, "BudgetExceeded": 16}
        assert ledger.verify().valid


def test_threads_share_a_grant_and_one_of_them_runs_it(fresh):
    url, said = fresh(), []
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1")

        def work():
            try:
                grant.start()
                said.append("started")
            except AlreadySpent:
                said.append("refused")

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Counter(said) == {"started": 1, "refused": 5}
