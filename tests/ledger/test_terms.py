"""Terms of a promise: written down once, compared in words, changed with a reason only."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import DeclarationChanged, InvalidArgument, InvalidDeclaration, UnknownName
from sitr.ledger import Budget
from sitr.ledger.entry import LONGEST_BODY, canonical, chained
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Fault, Replay
from sitr.ledger.store import Stale
from sitr.ledger.terms import PUBLIC, Recorded, Terms, changed

PROMISE = {"tables.visits.unit": "named by patient", "tables.visits.source": "visits.csv"}
TERMS = Terms("clinic", "clinic", 1, PROMISE, {"visits": "visits.csv"}, {"delta": "1e-08"})
ROWS = PROMISE | {"tables.visits.unit": "each row is one"}
words = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=4)


def other(terms=TERMS, **changes):
    return Terms(**{**{name: getattr(terms, name) for name in Terms.__dataclass_fields__}, **changes})


@given(words, words)
def test_what_changed_is_said_exactly_where_something_did(before, after):
    terms = [Terms("clinic", "clinic", 1, promise) for promise in (before, after)]
    said = Recorded(terms[0].record).changes(terms[1])
    assert bool(said) == (before != after)
    assert len(said) == len({place for place in before.keys() | after.keys() if before.get(place) != after.get(place)})
    assert said == changed(before, after)


@given(words, words)
def test_what_was_found_is_compared_where_both_looked(before, after):
    recorded = Recorded(Terms("clinic", "clinic", 1, {}, before).record)
    moved = {table for table in before.keys() & after.keys() if before[table] != after[table]}
    assert len(recorded.changes(Terms("clinic", "clinic", 1, {}, after))) == len(moved)


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


def test_what_an_entry_does_not_hold_is_told_by_its_digest(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    many = {f"tables.visits.columns.c{number}": "x" * 100 for number in range(20_000)}
    assert ledger.declare(other(settings=many))
    assert not ledger.declare(other(settings=many))
    assert ledger.declare(other(settings=many | {"delta": "0"}))
    assert ledger.verify()
    with pytest.raises(InvalidArgument, match=f"{LONGEST_BODY} bytes"):
        ledger.declare(other(promise=many), reason="all of it")


def entry(kind, seq, **record):
    return chained("b", "0" * 64, seq, "2026-01-01T00:00:00+00:00", kind, None, None, canonical(record))


def begun():
    replay = Replay()
    replay.apply(entry("budget", 2, name="clinic", definition=Keeper.of(Budget(epsilon=1.0)).to_json()))
    replay.apply(entry("declare", 3, **json.loads(TERMS.body([], None))))
    return replay


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        (other(promise=ROWS).record, "gives no reason"),
        (other(declaration="second").record, "gives no reason"),
        (other(dataset="school").record, "no dataset 'school'"),
        (other(dataset="clinic/analyst/amina").record, "no dataset"),
        ({**TERMS.record, "promise": ROWS}, "digests are not of what it says"),
        ({**TERMS.record, "found": {}}, "digests are not of what it says"),
        ({}, "no terms"),
        ({"name": "clinic", "declaration": "clinic", "digests": {"found": {}}}, "lacks something"),
    ],
)
def test_terms_that_break_the_rules_are_found(record, fault):
    with pytest.raises(Fault, match=fault):
        begun().apply(entry("declare", 4, **{"changes": [], **record}))


def test_terms_with_a_reason_are_allowed():
    replay = begun()
    replay.apply(entry("declare", 4, **json.loads(other(promise=ROWS).body(["x"], "the board"))))
    assert replay.terms["clinic", "clinic"].terms.promise == ROWS
