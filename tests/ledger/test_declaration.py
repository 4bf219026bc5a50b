"""A declaration in the book: written once, added to, and changed with a reason only."""

import pytest

from sitr.errors import DeclarationChanged, InvalidArgument, InvalidDeclaration, LedgerUnavailable, UnknownName
from sitr.ledger import Budget, Ledger, declaration
from sitr.ledger.store import Stale
from sitr.ledger.terms import PUBLIC
from tests.ledger.declared import PROMISE, ROWS, TERMS, other


def test_terms_are_written_once_and_changed_with_a_reason(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    assert ledger.declare(TERMS)
    assert not ledger.declare(TERMS)
    assert not ledger.declare(TERMS, reason="nothing is new")
    with pytest.raises(DeclarationChanged, match="each row is one, was named by patient"):
        ledger.declare(other(promise=ROWS))
    with pytest.raises(InvalidArgument, match="a reason"):
        ledger.declare(other(promise=ROWS), reason=" ")
    assert ledger.declare(other(promise=ROWS), reason="the board")
    with pytest.raises(DeclarationChanged):
        ledger.declare(TERMS)
    assert ledger.declare(other(promise=ROWS, settings={"delta": "1e-9"}, version=2))
    told = ledger.statement("clinic")
    assert [(change.kind, change.reason) for change in told.changes] == [("declare", "the board")]
    assert told.declared[0][:2] == ("clinic", 2)
    assert ledger.verify()
    with pytest.raises(UnknownName):
        ledger.declare(other(dataset="school"))


def test_what_was_found_once_stays_known(ledger):
    """An owner who begins again where the data cannot be reached does not forget where they were."""
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.declare(TERMS)
    assert not ledger.declare(other(found={}))
    assert ledger.declare(other(found={}, settings={}))
    with pytest.raises(DeclarationChanged, match=r"found as other.csv, was visits.csv"):
        ledger.declare(other(found={"visits": "other.csv"}))


def test_what_is_found_later_is_added(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.declare(other(found={}))
    assert ledger.declare(TERMS)
    assert ledger.verify()


def test_one_source_is_declared_alike_by_all(ledger):
    for dataset in ("clinic", "lab"):
        ledger.create_budget(dataset, Budget(epsilon=1.0))
    ledger.declare(TERMS)
    for terms in (
        other(declaration="second", dataset="lab"),
        other(declaration="second", dataset="lab", promise=PROMISE | {"tables.visits.unit": PUBLIC}),
        other(declaration="second", promise=ROWS),
    ):
        with pytest.raises(InvalidDeclaration, match=r"is tables.visits of the declaration 'clinic'"):
            ledger.declare(terms, reason="research")
    with pytest.raises(DeclarationChanged, match="declared by 'second' as well, and not only by 'clinic'"):
        ledger.declare(other(declaration="second"))
    assert ledger.declare(other(declaration="second"), reason="research")
    assert not ledger.declare(TERMS)
    assert set(ledger.terms("second", [])) == {("clinic", "second")}
    assert set(ledger.terms("x", ["clinic"])) == {("clinic", "clinic"), ("clinic", "second")}


def test_whoever_was_faster_is_looked_at(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.declare(TERMS)
    with pytest.raises(Stale):
        ledger.store.declare(other(promise=ROWS).body([], "late"), 0)


def test_whoever_is_overtaken_looks_again_and_gives_up_at_last(monkeypatch):
    """What another owner wrote meanwhile is compared as well."""
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    store, written = ledger.store, ledger.store.declare

    def overtaken(body, known):
        monkeypatch.setattr(store, "declare", written)
        assert ledger.declare(other(promise=ROWS))
        return written(body, known)

    monkeypatch.setattr(store, "declare", overtaken)
    with pytest.raises(DeclarationChanged, match="named by patient, was each row is one"):
        ledger.declare(TERMS)

    def always(body, known):
        raise Stale

    monkeypatch.setattr(store, "declare", always)
    with pytest.raises(LedgerUnavailable, match="change faster"):
        declaration.declare(store, TERMS, "the board")
    assert [entry.kind for entry in ledger.entries()] == ["open", "budget", "declare"]
