"""Jobs: whoever asks may be interrupted at any moment, and the engine is given back all the same."""

import linecache
import random
import signal
import sys
import threading
import time

import pytest

from sitr.errors import Cancelled
from sitr.tables import job, source
from sitr.tables.job import Job
from tests.tables import clinic
from tests.tables.test_source import COUNTED

FILES = {job.__file__, source.__file__}


class Interrupted:
    """Raises KeyboardInterrupt, in the thread that asks, before the lines of these numbers from now on.

    Not before the end of a `with`, to which a trace returns: Python lets no signal in between its last call and that.
    """

    def __init__(self, *places):
        self.places, self.seen = places, 0

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in FILES:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.strip().startswith("with "):
            self.seen += 1
            if self.seen in self.places:
                raise KeyboardInterrupt
        return self


def asked(engine, traced):
    """Ask while a trace is on; return what came."""
    before = sys.gettrace()
    sys.settrace(traced)
    try:
        return engine.run(COUNTED).column("sum0").to_pylist()
    except (Cancelled, KeyboardInterrupt) as error:
        return type(error)
    finally:
        sys.settrace(before)


def idle(engine):
    """Wait until nobody works in the engine; nothing that was begun stays there."""
    assert engine._turn.acquire(timeout=30)
    engine._turn.release()


@pytest.mark.parametrize("again", [None, 1, 7])
def test_an_interrupt_before_any_line_gives_the_engine_back(again):
    """Once, or twice shortly after one another: in each case the next question is answered as if nothing had been."""
    engine = clinic.source()
    engine.run(COUNTED)
    fetch, inside, most = engine.fetch, [], []

    def fetched(statement):
        inside.append(1)
        most.append(len(inside))
        try:
            return fetch(statement)
        finally:
            inside.pop()

    engine.fetch = fetched
    place, found = 1, []
    while True:
        traced = Interrupted(place, *([place + again] if again else []))
        found.append(asked(engine, traced))
        idle(engine)
        assert not inside
        if traced.seen < place:
            break
        place += 1
    assert found[-1] == [300]
    assert Cancelled in found
    assert place > 20
    assert engine.run(COUNTED).column("sum0").to_pylist() == [300]
    assert max(most) == 1  # never two at a time


def test_three_hundred_interrupts_at_random_moments_leave_nothing_behind():
    engine, chance = clinic.source(), random.Random(7)
    engine.run(COUNTED)
    stopped = 0
    for _ in range(300):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 4e-3))
                engine.run(COUNTED)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except (Cancelled, KeyboardInterrupt):
            stopped += 1
    assert stopped > 30
    idle(engine)
    assert engine.run(COUNTED).column("sum0").to_pylist() == [300]
    assert threading.active_count() < 10


def test_ctrl_c_that_breaks_a_lock_of_threading_is_ctrl_c(monkeypatch):
    """It comes while `Thread.start` waits, whose lock was given back and not taken again: a RuntimeError over it."""
    begin, engine = Job.begin, clinic.source()

    def broken(job):
        begin(job)
        monkeypatch.setattr(Job, "begin", begin)
        try:
            raise KeyboardInterrupt
        finally:
            threading.Lock().release()

    monkeypatch.setattr(Job, "begin", broken)
    with pytest.raises(Cancelled):
        engine.run(COUNTED)
    idle(engine)
    assert engine.run(COUNTED).column("sum0").to_pylist() == [300]


@pytest.fixture(autouse=True)
def alarm_is_ctrl_c():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_who_waits_for_the_engine_can_stop_waiting_and_stops_nobody_else():
    engine, go, stops = threading.Lock(), threading.Event(), []
    first = Job(lambda: go.wait(30), engine, lambda: stops.append("first"))
    second = Job(lambda: "never", engine, lambda: stops.append("second"))
    first.begin()
    while not engine.locked():
        time.sleep(0.001)
    second.begin()
    second.stop()
    assert second.ended.wait(30)
    assert (second.done, stops) == ([], [])
    assert engine.locked()
    first.stop()
    assert stops == ["first"]
    go.set()
    assert first.ended.wait(30)
    assert not engine.locked()
    first.stop()
    assert stops == ["first"]


def test_what_was_stopped_before_it_began_never_runs():
    made = Job(lambda: "never", threading.Lock(), lambda: None)
    made.stop()
    made.begin()
    assert made.ended.wait(30)
    assert made.done == []
