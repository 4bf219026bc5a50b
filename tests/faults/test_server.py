"""A server that goes away in the middle of a step."""

import threading

import psycopg
import pytest

from sitr.accounting import PureDP
from sitr.errors import (
    AlreadySpent,
    BudgetExceeded,
    LedgerUnavailable,
)
from sitr.ledger import Ledger
from tests.faults import harness, points
from tests.faults.acts import ask
from tests.faults.worker import ANALYST, DATASET, EVENT
from tests.ledger import cluster, stores


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
