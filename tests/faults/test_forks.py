"""Forks: no connection and no grant passes to a child, and what it charges is not lost."""

import os
import threading
import time

import pytest

from sitr.errors import (
    SitrError,
)
from sitr.ledger import Budget, Ledger, forks
from tests.faults import harness
from tests.faults.acts import ask, in_fork
from tests.faults.worker import ANALYST, DATASET, EVENT


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


def test_a_fork_whose_preparation_is_interrupted_is_refused(fresh, monkeypatch):
    """Python forks all the same: a child that was not prepared for charges nothing."""
    url = fresh()
    harness.prepare(url, 8)
    with Ledger.open(url) as ledger:
        ask(ledger, "before")

        def interrupted(gate):
            raise KeyboardInterrupt

        monkeypatch.setattr(forks.Gate, "clear", interrupted)
        assert in_fork(lambda: ask(ledger, "child")) == "LedgerUnavailable"
        monkeypatch.undo()
        ask(ledger, "after")
        assert in_fork(lambda: ask(ledger, "another child")).startswith(ledger.id)
        assert ledger.spent(DATASET).value == 3
        assert ledger.verify().valid
