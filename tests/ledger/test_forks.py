"""Gates: who is inside is never wrong, wherever Ctrl-C comes, and nothing that is open passes to a fork."""

import contextlib
import gc
import itertools
import os
import signal
import sqlite3
import sys
import threading
import time
from weakref import WeakSet

import pytest

from sitr.errors import LedgerUnavailable
from sitr.ledger import Ledger, connections, forks
from sitr.ledger.disk import open_files
from sitr.ledger.forks import Gate
from tests.faults import harness
from tests.faults.acts import ask, in_fork
from tests.faults.worker import DATASET
from tests.ledger import stores

FILES = {forks.__file__, connections.__file__}


@pytest.fixture(params=stores.DURABLE)
def ledger(request, tmp_path):
    url = stores.fresh(request.param, tmp_path)()
    harness.prepare(url, 4000)
    with Ledger.open(url) as opened:
        ask(opened, "first")
        yield opened


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Python tells of what is raised in a hook or a destructor, and forgets it.

    That may be the interrupt itself, or psycopg, which tells that a connection was lost by one.
    """
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: found.append(raised.exc_type))
    yield
    assert set(found) <= {KeyboardInterrupt, ResourceWarning}


@pytest.fixture(autouse=True)
def small_garbage():
    """What was there before is no garbage: to look through it after every interrupt takes most of the time."""
    gc.freeze()
    yield
    gc.unfreeze()


class Interrupted:
    """Raises KeyboardInterrupt at one of the places where Python lets a signal in.

    Those are the beginning of a function, and the end of a call to one that is not written in Python: what it did is
    done by then, and what it returned is lost.
    """

    def __init__(self, place, files=None):
        self.place, self.files, self.seen = place, files, 0

    def __call__(self, frame, event, argument):
        if event in ("call", "c_return") and (self.files is None or frame.f_code.co_filename in self.files):
            self.seen += 1
            if self.seen == self.place:
                raise KeyboardInterrupt

    def during(self, act):
        """Return what came of an act, the traceback of an interrupt with all its frames."""
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            return act()
        except KeyboardInterrupt as error:
            return error
        finally:
            sys.setprofile(before)


def interrupted(act, files=None):
    """Yield what came of an act that was interrupted at its first place, at its second, and so on to its end.

    It keeps nothing of that, as `enumerate` would.
    """
    for place in itertools.count(1):
        profile = Interrupted(place, files)
        yield profile.during(lambda: act(place))  # noqa: B023
        if profile.seen < place:
            return


def granted(ledger, count):
    """A child would be granted the ledger, by all that it looks at; now and then one asks."""
    held = ledger.store._connections
    held.close()
    assert not held.gate.inside()
    assert getattr(ledger.store, "_file", None) not in open_files()
    if count % 8 == 1:
        assert in_fork(lambda: ask(ledger, f"child {count}")).startswith(ledger.id)


def test_an_interrupt_at_any_place_of_a_step_leaves_nobody_inside(ledger):
    """Though a notebook keeps the traceback, and all that its frames hold."""
    gate, stopped = ledger.store._connections.gate, 0
    for came in interrupted(lambda place: ask(ledger, f"q{place}")):
        stopped += isinstance(came, KeyboardInterrupt)
        assert not gate.inside()
    assert stopped > 300
    del came
    gc.collect()
    assert in_fork(lambda: ask(ledger, "child")).startswith(ledger.id)
    assert ledger.verify().valid


def test_forks_are_granted_the_ledger_wherever_a_step_was_interrupted(ledger):
    count = 0
    for came in interrupted(lambda place: ask(ledger, f"q{place}"), FILES):
        count += 1
        del came
        gc.collect()
        granted(ledger, count)
    assert count > 40
    assert ledger.verify().valid


def test_forks_are_granted_the_ledger_wherever_an_owner_was_interrupted(ledger):
    """What a traceback keeps of a transaction is in use until it goes, and not longer."""
    count = 0
    for came in interrupted(lambda _: ledger.store.all_totals(), {forks.__file__, contextlib.__file__}):
        count += 1
        del came
        gc.collect()
        granted(ledger, count)
    assert count > 20
    assert ledger.verify().valid


@pytest.fixture
def only_two(ledger, monkeypatch):
    """A fork asks this ledger and one other: those of earlier tests that live on would each add all its places."""
    with Ledger.open("memory://") as other:
        held = [one.store._connections for one in (ledger, other)]
        monkeypatch.setattr(forks, "FORKING", WeakSet(held))
        yield


@pytest.mark.usefixtures("only_two")
def test_an_interrupt_at_any_place_of_a_fork_leaves_the_gate_open(ledger):
    """A hook that fails is told of and forgotten by Python: the parent goes on, and a child that was passed nothing."""
    said, whole = [], 2
    for place in itertools.count(1):
        profile = Interrupted(place, FILES)
        sys.setprofile(profile)
        child = os.fork()
        sys.setprofile(None)
        if not child:
            try:
                ask(ledger, f"child {place}")
                os._exit(whole if profile.seen < place else 0)
            except LedgerUnavailable:
                os._exit(1)
            finally:
                os._exit(3)
        said.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread = threading.Thread(target=ask, args=(ledger, f"after {place}"), daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        if said[-1] == whole:
            break
    assert set(said) == {0, 1, whole}
    assert len(said) > 10
    assert ledger.verify().valid


def test_two_hundred_signals_at_random_moments_leave_nobody_inside(ledger):
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    stopped, began = 0, time.perf_counter()
    for turn in range(5):
        ask(ledger, f"timed{turn}")
    usual = (time.perf_counter() - began) / 5  # on a fast disk a tenth of what it takes on a slow one
    try:
        for turn in range(200):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 + turn / 200 * usual)
                    ask(ledger, f"q{turn}")
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            assert not ledger.store._connections.gate.inside()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stopped > 20
    gc.collect()
    assert in_fork(lambda: ask(ledger, "child")).startswith(ledger.id)
    assert ledger.verify().valid


def test_a_gate_knows_who_is_inside():
    gate, outer, inner = Gate(), threading.Lock(), threading.Lock()
    me = threading.get_ident()
    with outer:
        assert gate.inside() == set()
        gate.admit(outer)
        with inner:
            gate.admit(inner)
            assert gate.inside() == {me}
        assert gate.inside() == {me}
    assert gate.inside() == set()
    with inner:
        gate.admit(inner)
        assert list(gate._threads) == [inner]  # what was left is forgotten


def test_whoever_is_inside_may_go_in_again_while_another_forks(monkeypatch):
    """The fork waits for it: to let it wait for the fork would be the end of both."""
    monkeypatch.setattr(forks, "FORK_WAITS", 30.0)
    gate, waits, order = Gate(), threading.Event(), []

    def work():
        outer, inner = threading.Lock(), threading.Lock()
        with outer:
            gate.admit(outer)
            waits.wait(30)
            time.sleep(0.05)  # the other one is at the gate by now
            with inner:
                gate.admit(inner)
                order.append("again")
        late = threading.Lock()
        with late:
            gate.admit(late)
            order.append("late")

    thread = threading.Thread(target=work)
    thread.start()
    while not gate.inside():
        time.sleep(0.001)
    with forks._forking:
        waits.set()
        gate.clear()
        time.sleep(0.05)
        order.append("cleared")
    thread.join(30)
    assert order == ["again", "cleared", "late"]


def test_what_others_have_open_is_not_passed_to_a_fork(tmp_path):
    """SQLite would take their locks for the child's own, and write its charges to a log that others delete."""
    path = tmp_path / "book.db"
    harness.prepare(f"sqlite:///{path}", 16)
    with Ledger.open(path) as ledger:
        ask(ledger, "before")
        other = sqlite3.connect(path)
        other.execute("SELECT count(*) FROM entry").fetchone()
        assert in_fork(lambda: ask(ledger, "child")) == "LedgerUnavailable"
        assert in_fork(lambda: Ledger.open(path)) == "LedgerUnavailable"
        assert in_fork(lambda: in_fork(lambda: Ledger.open(path))) == "LedgerUnavailable"
        other.close()
        assert in_fork(lambda: ask(ledger, "child")).startswith(ledger.id)
        assert in_fork(lambda: in_fork(lambda: ask(ledger, "grandchild"))).startswith(ledger.id)
        assert ledger.spent(DATASET).value == pytest.approx(3)
        assert ledger.verify().valid


def test_a_fork_in_the_middle_of_a_step_is_refused_for_good(ledger):
    """Its own thread is inside as well: a signal may come, and fork."""
    said = []

    def use(driver):
        said.append(in_fork(lambda: ledger.store.identity()))
        said.append(in_fork(lambda: in_fork(lambda: ledger.store.identity())))

    ledger.store._with_driver(use)
    assert said == ["LedgerUnavailable"] * 2
    assert ledger.verify().valid


def test_a_refused_child_closes_nothing_of_its_parents(ledger, monkeypatch):
    monkeypatch.setattr(Gate, "clear", lambda gate: (_ for _ in ()).throw(KeyboardInterrupt))

    def close():
        ledger.close()
        with pytest.raises(LedgerUnavailable, match="forked while its parent"):
            ask(ledger, "child")
        return len(ledger.store._connections._idle)

    assert in_fork(close) == "1"
    monkeypatch.undo()
    ask(ledger, "after")
