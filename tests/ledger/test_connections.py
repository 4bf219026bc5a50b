"""Connections: lent to one step at a time, kept while they are whole, given up when they may not be."""

import sqlite3
import threading

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from sitr.ledger import Budget, Ledger, connections
from sitr.ledger.connections import Connections, Unreached
from tests.ledger.acts import ask, spent


def test_a_closed_ledger_has_no_connection_open(fresh_durable):
    used = []
    with Ledger.open(fresh_durable()) as ledger:
        ledger.store._with_driver(used.append)
        used[0].execute("SELECT 1")
    with pytest.raises(ledger.store.engine.dialect.loaded_dbapi.Error, match="closed"):
        used[0].execute("SELECT 1")


def test_a_closed_ledger_opens_again_by_itself(fresh_durable):
    with Ledger.open(fresh_durable()) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
    ask(ledger)
    assert spent(ledger) == 1
    ledger.close()


def test_a_book_in_memory_is_one_for_all_threads():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=8))
    threads = [threading.Thread(target=ask, args=(ledger,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(ledger) == 8
    assert ledger.verify().valid


@pytest.fixture
def lent(tmp_path):
    """Connections to an empty database."""
    made = Connections(create_engine(f"sqlite:///{tmp_path / 'db'}", poolclass=NullPool), alone=False)
    yield made
    made.close()


def used(driver):
    driver.execute("SELECT 1")
    return driver


def test_a_connection_is_lent_again(lent):
    assert lent.lend(used) is lent.lend(used)
    first = lent.lend(lambda outer: (outer, lent.lend(used)))
    assert first[0] is not first[1]  # two at once are two


def test_what_the_driver_failed_on_is_given_up_and_what_we_raise_is_not(lent):
    first = lent.lend(used)
    with pytest.raises(ZeroDivisionError):
        lent.lend(lambda driver: 1 / 0)
    assert lent.lend(used) is first
    with pytest.raises(sqlite3.OperationalError):
        lent.lend(lambda driver: driver.execute("SELECT nothing FROM nowhere"))
    assert lent.lend(used) is not first
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")


def test_what_is_interrupted_is_given_up(lent):
    def interrupted(driver):
        raise KeyboardInterrupt

    first = lent.lend(used)
    with pytest.raises(KeyboardInterrupt):
        lent.lend(interrupted)
    assert lent.lend(used) is not first


def test_a_connection_that_nobody_used_for_a_while_is_tried_first(lent, monkeypatch):
    first = lent.lend(used)
    monkeypatch.setattr(connections, "IDLE", -1.0)
    assert lent.lend(used) is first  # it answers
    first.close()
    assert lent.lend(used) is not first


def test_a_database_that_is_out_of_reach_is_told_with_its_reason(tmp_path):
    away = Connections(create_engine(f"sqlite:///{tmp_path / 'no' / 'db'}", poolclass=NullPool), alone=False)
    with pytest.raises(Unreached) as told:
        away.lend(used)
    assert isinstance(told.value.reason, sqlite3.OperationalError)
    assert not away.gate.inside()
