"""kill -9 at every statement of the protocol, while a book is made, and at random: nothing leaves without a charge."""

import signal
import time

import pytest

from sitr.ledger import Ledger
from sitr.ledger.anchor import read_marks
from tests.faults import harness
from tests.faults.harness import KILLED, Outcome
from tests.faults.worker import ANALYST, DATASET, EVENT, Job
from tests.ledger import cluster
from tests.ledger.old_books import restored

RANDOM_KILLS = 30


def points_of(nursery, job):
    """The points that a worker passes if it lives."""
    assert nursery.run(job) == 0
    return harness.lines(job.side)[-1]["points"]


def test_at_every_statement_of_a_round(fresh, nursery, tmp_path):
    url, side, budget = fresh(), str(tmp_path / "side"), 120
    harness.prepare(url, budget)
    points = points_of(nursery, Job(url, side, ["whole"]))
    assert [points.count(name) for name in ("reserved", "started", "left", "committed")] == [1, 1, 1, 1]
    assert len(points) >= 10
    outcome, ended = Outcome(), set()
    with Ledger.open(url) as ledger:
        for at, point in enumerate(points, start=1):
            assert nursery.run(Job(url, side, [f"q{at}"], die_at=at)) == KILLED, point
            outcome.kills += 1
            states = harness.check(ledger, side, budget, outcome)
            harness.ask_again(ledger, f"q{at}", states.get(f"q{at}"), harness.left(side), outcome)
            assert outcome, (point, outcome)
            ended.add(states.get(f"q{at}"))
        assert harness.check(ledger, side, budget, outcome)
    assert outcome, outcome
    assert ended == {None, "reserve", "start", "commit"}
    assert outcome.resumed
    assert outcome.refused
    assert outcome.repeated


def test_while_a_book_is_made(fresh, nursery, tmp_path):
    side = str(tmp_path / "side")
    points = points_of(nursery, Job(fresh(), side, [], from_open=True))
    assert len(points) >= 10
    for at, point in enumerate(points, start=1):
        if point.startswith("after") and at < len(points):
            continue  # the same as before the next
        url = fresh()
        assert nursery.run(Job(url, side, [], die_at=at, from_open=True)) == KILLED, point
        with Ledger.open(url) as ledger:
            found = ledger.verify()
            assert (found.valid, found.head.seq) == (True, 1), (point, found)


def test_while_a_book_is_brought_to_a_new_form(fresh, nursery, tmp_path):
    """At every statement of it: the book is as it was, or whole in the new form, and opens."""
    side = str(tmp_path / "side")
    points = points_of(nursery, Job(restored(fresh(), 2), side, [], from_open=True))
    assert len(points) >= 10
    for at, point in enumerate(points, start=1):
        if point.startswith("after") and at < len(points):
            continue  # the same as before the next
        url = restored(fresh(), 2)
        assert nursery.run(Job(url, side, [], die_at=at, from_open=True)) == KILLED, point
        with Ledger.open(url) as ledger:
            found, kinds = ledger.verify(), [entry.kind for entry in ledger.entries()]
            assert (found.valid, kinds.count("migrate"), kinds[-1]) == (True, 1, "migrate"), (point, found)


def test_at_random(fresh, nursery):
    outcome = harness.campaign(fresh, RANDOM_KILLS, seed=1, nursery=nursery)
    assert outcome, outcome
    assert outcome.kills == RANDOM_KILLS
    assert outcome.answers


def test_nothing_leaves_before_the_anchor_knows_of_it(fresh, nursery, tmp_path):
    """A crash between a charge and its line in the anchor: who asks again writes the line first."""
    url, side, anchor = fresh(), str(tmp_path / "side"), tmp_path / "anchor"
    harness.prepare(url, 60, anchor=anchor)
    options = {"anchor": str(anchor)}
    points = points_of(nursery, Job(url, side, ["whole"], options=options))
    for at, point in enumerate(points[: points.index("reserved") + 1], start=1):
        assert nursery.run(Job(url, side, [f"q{at}"], die_at=at, options=options)) == KILLED
        with Ledger.open(url, anchor=anchor) as ledger:
            grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=f"q{at}")
            charged = int(grant.entry.rsplit("/")[1])
            assert max(mark.head.seq for mark in read_marks(anchor)) >= charged, point


@pytest.mark.parametrize("kill", [False, True])
def test_a_server_that_crashes_keeps_what_it_promised(kill, nursery, tmp_path):
    server, budget = cluster.Cluster(synced=True), 400
    try:
        url, side = server.fresh_database(), str(tmp_path / "side")
        harness.prepare(url, budget)
        for turn in range(3):
            names = [[f"{turn}-{number}-{n}" for n in range(60)] for number in range(2)]
            children = [nursery.fork(Job(url, side, operations)) for operations in names]
            wanted, until = len(harness.left(side)) + 5, time.monotonic() + 30
            while len(harness.left(side)) < wanted and time.monotonic() < until:
                time.sleep(0.005)
            server.crash(kill=kill)
            for child in children:
                nursery.signal(child, signal.SIGKILL)
                nursery.wait(child)
            server.start()
            with Ledger.open(url) as ledger:
                outcome = Outcome()
                harness.check(ledger, side, budget, outcome)
                assert outcome, outcome
                assert outcome.answers >= wanted
    finally:
        server.remove()
