"""Terms of a promise: written down once, compared in words, changed with a reason only."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.ledger import Budget
from sitr.ledger.entry import LONGEST_BODY, canonical, chained
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Fault, Replay
from sitr.ledger.terms import Recorded, Terms, changed
from tests.ledger.declared import ROWS, TERMS, other

words = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=4)


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
