"""Many at once: processes and threads that race, one that is stopped while it writes, forks, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack

import psycopg
import pytest

from sitr.accounting import PureDP
from sitr.errors import (
    AlreadyAnswered,
    AlreadySpent,
    BudgetExceeded,
    LedgerUnavailable,
    NotPermitted,
    SitrError,
)
from sitr.ledger import Budget, Ledger, forks
from tests.faults import harness, points
from tests.faults.harness import ROOT, Outcome
from tests.faults.worker import ANALYST, DATASET, EVENT, Job
from tests.ledger import cluster, stores

RACERS = 8


def race(nursery, jobs, barrier):
    """Run jobs at the same time, and return what became of every operation."""
    children = [nursery.fork(job) for job in jobs]
    time.sleep(0.3)  # most have opened the book by then; whoever comes later finds the barrier open
    barrier.touch()
    assert [nursery.wait(child) for child in children] == [0] * len(jobs)


def in_fork(act):
    """Run something in a fork of this process, and return what it returned, or the name of what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = str(act())
        except BaseException as error:
            said = type(error).__name__
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def ask(ledger, operation, answer="a"):
    with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=operation) as grant:
        grant.commit(answer)
    return grant.entry


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
    from sitr.ledger import schema

    url, made = fresh(), []
    harness.prepare(url, 4)
    with Ledger.open(url) as old, Ledger.open(url) as older:
        monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
        monkeypatch.setattr(schema, "MIGRATIONS", {1: lambda connection: made.append(1)})
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


# Forks


def test_a_fork_goes_on_with_connections_of_its_own(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        ask(ledger, "parent")
        assert in_fork(lambda: ask(ledger, "child")) == f"{ledger.id}/6"
        ask(ledger, "parent again")
        assert ledger.spent(DATASET).value == pytest.approx(3)
        assert ledger.verify().valid


def test_what_a_fork_charges_outlives_the_connections_of_its_parent(fresh, tmp_path):
    """The parent closes its ledger while the child goes on; a third process must see all that the child charged."""
    url, go, done = fresh(), tmp_path / "go", tmp_path / "done"
    harness.prepare(url, 60)
    ledger = Ledger.open(url)
    ask(ledger, "parent")
    child = os.fork()
    if not child:
        try:
            ask(ledger, "child 1")
            done.touch()
            while not go.exists():
                time.sleep(0.001)
            for turn in range(2, 12):
                ask(ledger, f"child {turn}")
            os._exit(0)
        except BaseException:
            os._exit(1)
    while not done.exists():
        time.sleep(0.001)
    ledger.close()
    with Ledger.open(url) as other:  # the last connection but the child's: it must not think that it is the last
        ask(other, "other 1")
    go.touch()
    with Ledger.open(url) as other:
        for turn in range(2, 12):
            ask(other, f"other {turn}")
    assert os.waitpid(child, 0)[1] == 0
    with Ledger.open(url) as last:
        assert last.spent(DATASET).value == pytest.approx(23)
        assert last.verify().valid
        for name in ("child 1", "child 11", "other 1", "other 11"):
            assert last.answer(name, analyst=ANALYST).value == "a"


@pytest.mark.parametrize("finishes", [False, True])
def test_a_fork_while_a_thread_writes(fresh, monkeypatch, finishes):
    """A fork waits until threads have finished their steps; where they do not, the child is refused."""
    url = fresh()
    harness.prepare(url, 64)
    monkeypatch.setattr(forks, "FORK_WAITS", 30.0 if finishes else 0.05)
    inside, forked = threading.Event(), threading.Event()

    def hold():
        with ledger.store.transaction():
            inside.set()
            if finishes:
                time.sleep(0.2)
            else:
                forked.wait(60)

    with Ledger.open(url) as ledger:
        ask(ledger, "before")
        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait(30)
        said = in_fork(lambda: ask(ledger, "child")) if finishes else in_fork(lambda: ledger.spent(DATASET))
        forked.set()
        thread.join()
        granted = said != "LedgerUnavailable"
        assert granted == finishes
        ask(ledger, "after")
        assert ledger.spent(DATASET).value == 2 + granted
        assert ledger.verify().valid


def test_threads_ask_while_others_fork(fresh):
    url, said = fresh(), []
    harness.prepare(url, 128)
    with Ledger.open(url) as ledger:

        def work(number):
            for turn in range(8):
                ask(ledger, f"{number}-{turn}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(4):
            said.append(in_fork(lambda: ask(ledger, f"fork {turn}")))  # noqa: B023
        for thread in threads:
            thread.join()
        assert all(entry.startswith(ledger.id) for entry in said)
        assert ledger.spent(DATASET).value == 4 * 8 + 4
        assert ledger.verify().valid


def test_many_threads_hold_no_connections_that_others_wait_for(fresh):
    """More threads than a pool has connections, all alive after their first step."""
    url = fresh()
    harness.prepare(url, 64)
    together = threading.Barrier(24, timeout=60)
    failed = []
    with Ledger.open(url) as ledger:

        def work(number):
            try:
                ask(ledger, f"{number}")
            except SitrError as error:
                failed.append(error)
            together.wait()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert ledger.spent(DATASET).value == 24


def test_a_grant_does_not_pass_to_a_fork(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1")
        assert in_fork(grant.start) == "NotPermitted"
        grant.start()
        assert in_fork(lambda: grant.commit("a")) == "NotPermitted"
        grant.commit("b")
        assert ledger.answer("q1", analyst=ANALYST).value == "b"


def test_a_book_in_memory_stays_with_its_process():
    ledger = Ledger.open("memory://")
    ledger.create_budget(DATASET, Budget(epsilon=10))
    assert in_fork(lambda: ask(ledger, "q1")) == "LedgerUnavailable"
    assert in_fork(lambda: ledger.spent(DATASET)) == "LedgerUnavailable"
    ask(ledger, "q1")
    assert ledger.spent(DATASET).value == pytest.approx(1)


# Ctrl-C


def test_ctrl_c_within_the_block_leaves_it_spent(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        with pytest.raises(KeyboardInterrupt), ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1"):
            raise KeyboardInterrupt
        assert ledger.spent(DATASET).value == pytest.approx(1)
        with pytest.raises(AlreadySpent, match="was started and has no answer"):
            ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1")
        with pytest.raises(NotPermitted, match="was started"):
            ledger.refund("q1", reason="it was interrupted")
        ask(ledger, "q2")
        assert ledger.verify().valid


def test_to_leave_without_commit_is_spent(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1"):
            pass
        with pytest.raises(ZeroDivisionError), ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q2"):
            raise ZeroDivisionError
        assert ledger.spent(DATASET).value == pytest.approx(2)
        for name in ("q1", "q2"):
            with pytest.raises(AlreadySpent):
                ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name)


class Interrupt:
    """Raises KeyboardInterrupt at the n-th point from when it is armed."""

    left = 0

    def __call__(self, point):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("store", stores.ALL)
@pytest.mark.parametrize("step", ["reserve", "start", "commit", "create", "raise", "refund", "verify"])
def test_ctrl_c_at_every_statement_of_a_step(store, step, tmp_path):
    """Interrupted before or after any statement, the step is made or not made, and the ledger goes on."""
    url, count, interrupt = stores.fresh(store, tmp_path)(), 0, Interrupt()
    with points.watched(interrupt), Ledger.open(url, wait=1) as ledger, ExitStack() as stack:
        ledger.create_budget(DATASET, Budget(epsilon=128))
        other = ledger if store == "memory" else stack.enter_context(Ledger.open(url, wait=1))
        while True:
            count += 1
            name = f"q{count}"
            grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name) if step != "reserve" else None
            if step == "commit":
                grant.start()
            act = {
                "reserve": lambda: ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name),  # noqa: B023
                "start": grant and grant.start,
                "commit": grant and (lambda: grant.commit("a")),  # noqa: B023
                "create": lambda: ledger.create_budget(name, Budget(epsilon=1)),  # noqa: B023
                "raise": lambda: ledger.raise_budget(DATASET, Budget(epsilon=128.0 + count), reason="more"),  # noqa: B023
                "refund": lambda: ledger.refund(name, reason="not run"),  # noqa: B023
                "verify": ledger.verify,
            }[step]
            interrupt.left = count
            try:
                act()
            except KeyboardInterrupt as error:
                held = error  # as a notebook does, with all the frames that it passed through
            else:
                break  # it has fewer points than this
            finally:
                interrupt.left = 0
            kinds = {entry.kind for entry in other.store.operation(name)}
            ask(other, f"{name} of another process")
            found = ledger.verify()
            assert found.valid, (count, found)
            try:
                ask(ledger, name)
                assert kinds <= {"reserve"}
            except AlreadySpent:
                assert "commit" not in kinds
                assert kinds & {"start", "refund"}
            except AlreadyAnswered:
                assert "commit" in kinds
            assert held
        assert count >= 3
        charged = sum({"reserve": 1, "refund": -1}.get(entry.kind, 0) for entry in ledger.entries())
        assert ledger.spent(DATASET).value == pytest.approx(charged)


def test_ctrl_c_in_a_program_that_asks_in_a_loop(fresh, tmp_path):
    """A real SIGINT at some moment: the program ends by it, and the book is whole."""
    url, side = fresh(), str(tmp_path / "side")
    harness.prepare(url, 1000)
    code = (
        "import sys; from tests.faults import worker\n"
        "worker.work(worker.Job(sys.argv[1], sys.argv[2], [sys.argv[3] + str(n) for n in range(900)]))\n"
    )
    for turn in range(3):
        program = subprocess.Popen(
            [sys.executable, "-c", code, url, side, f"{turn}-"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        before, until = len(harness.left(side)), time.monotonic() + 30
        while len(harness.left(side)) < before + 3 + turn and time.monotonic() < until:
            time.sleep(0.003)
        program.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in program.communicate(timeout=30)[1]
        with Ledger.open(url) as ledger:
            outcome = Outcome()
            harness.check(ledger, side, 1000, outcome)
            assert outcome, outcome


# A server that goes away


class Breaks:
    """Ends all connections to a database before, or after, the next statement that has certain words."""

    def __init__(self, url, point):
        self.url, self.point, self.armed = url, point, False

    def __call__(self, point):
        if self.armed and self.point in point:
            self.armed = False
            assert cluster.shared().kill_backends(self.url) >= 1
            if point.startswith("after"):
                raise psycopg.OperationalError("server closed the connection unexpectedly")


def protocol(ledger, breaks, step):
    """Make the three steps, and yield each by its name."""
    breaks.armed = step == "reserve"
    grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1")
    breaks.armed = step == "start"
    grant.start()
    breaks.armed = step == "commit"
    grant.commit("a")


@pytest.mark.parametrize("step", ["reserve", "start", "commit"])
def test_a_backend_that_dies_between_commit_and_its_answer(step, tmp_path):
    """The answer to the step is lost: the ledger looks the operation up by a new connection, and goes on."""
    url = stores.fresh("postgresql", tmp_path)()
    harness.prepare(url, 16)
    breaks = Breaks(url, f"after SELECT * FROM sitr.{step}(")
    with points.watched(breaks), Ledger.open(url) as ledger:
        protocol(ledger, breaks, step)
        assert not breaks.armed
        assert ledger.spent(DATASET).value == 1
        assert ledger.answer("q1", analyst=ANALYST).value == "a"
        assert ledger.verify().valid


@pytest.mark.parametrize("step", ["reserve", "start", "commit"])
def test_a_backend_that_dies_before_a_step(step, tmp_path):
    """Nothing was changed: a clear error, and the same step may be made again."""
    url = stores.fresh("postgresql", tmp_path)()
    harness.prepare(url, 16)
    breaks = Breaks(url, f"before SELECT * FROM sitr.{step}(")
    with points.watched(breaks), Ledger.open(url) as ledger:
        with pytest.raises(LedgerUnavailable, match="the connection to the ledger"):
            protocol(ledger, breaks, step)
        assert not breaks.armed
        assert step not in {entry.kind for entry in ledger.store.operation("q1")}
        if step == "commit":
            with pytest.raises(AlreadySpent):
                ask(ledger, "q1")
        else:
            ask(ledger, "q1")
        assert ledger.spent(DATASET).value == 1
        assert ledger.verify().valid


def test_idle_connections_that_were_ended_are_made_anew(tmp_path):
    """A server that was restarted over night: at worst one clear error, nothing charged twice."""
    url = stores.fresh("postgresql", tmp_path)()
    harness.prepare(url, 16)
    with Ledger.open(url) as ledger:
        ask(ledger, "q1")
        assert cluster.shared().kill_backends(url) >= 1
        try:
            ask(ledger, "q2")
        except LedgerUnavailable:
            ask(ledger, "q2")
        assert ledger.spent(DATASET).value == 2
        assert ledger.verify().valid


def test_events_of_other_costs_race_too(fresh):
    """A budget of 10 for threads that ask for 3 at a time: three fit."""
    url, said = fresh(), []
    harness.prepare(url, 10)
    with Ledger.open(url) as ledger:

        def work(number):
            try:
                ledger.reserve(DATASET, PureDP(epsilon=3.0), analyst=ANALYST, operation=f"q{number}")
                said.append(number)
            except BudgetExceeded:
                pass

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(said) == 3
        assert ledger.spent(DATASET).value == pytest.approx(9.0)
