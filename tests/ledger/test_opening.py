"""Opening a book: the one that was meant, and in the form of today."""

import pytest

from sitr.errors import UnknownName, WrongLedger
from sitr.ledger import Budget, Ledger, migration, schema
from tests.ledger.acts import ask, spent

NEXT_FORM = schema.SCHEMA_VERSION + 1


def test_a_book_that_must_be_there(fresh_durable):
    url = fresh_durable()
    with pytest.raises(UnknownName, match="there is no ledger"):
        Ledger.open(url, create=False)
    with Ledger.open(url) as made:
        pass
    with Ledger.open(url, create=False, expect=made.id) as ledger:
        assert ledger.id == made.id
    with pytest.raises(WrongLedger, match="was asked for"):
        Ledger.open(url, expect="0" * 32)


def test_a_book_that_was_known_and_is_gone_is_to_be_found_or_put_back(fresh_durable):
    with pytest.raises(UnknownName, match=f"where '{'0' * 32}' should be") as refused:
        Ledger.open(fresh_durable(), create=False, expect="0" * 32)
    assert "sitr ledger restore" in refused.value.do


def test_a_newer_form_is_refused_and_an_older_one_is_brought_forward(fresh_durable, monkeypatch):
    url, ran = fresh_durable(), []
    with Ledger.open(url) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
        ask(ledger)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT_FORM)
    monkeypatch.setattr(migration, "MIGRATIONS", {NEXT_FORM - 1: lambda connection: ran.append(1)})
    for _ in range(2):
        with Ledger.open(url) as ledger:
            assert ledger.verify().valid
            assert spent(ledger) == 1
            assert [entry.kind for entry in ledger.entries()][-1] == "migrate"
    assert ran == [1]
    monkeypatch.undo()
    with pytest.raises(WrongLedger, match=f"has form {NEXT_FORM}"):
        Ledger.open(url)


def test_a_migration_that_fails_changes_nothing(fresh_durable, monkeypatch):
    url = fresh_durable()
    Ledger.open(url).close()

    def fails(connection):
        raise ZeroDivisionError

    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT_FORM)
    monkeypatch.setattr(migration, "MIGRATIONS", {NEXT_FORM - 1: fails})
    with pytest.raises(ZeroDivisionError):
        Ledger.open(url)
    monkeypatch.undo()
    with Ledger.open(url) as ledger:
        assert ledger.verify().head.seq == 1
