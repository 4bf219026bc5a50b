"""Entries and their chain."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from sitr.errors import LedgerDamaged
from sitr.ledger import Budget, Entry, Ledger
from sitr.ledger.entry import BEFORE_ALL, canonical, entry_hash, now

ENTRY = Entry(3, "2026-01-01T00:00:00.000000+00:00", "start", "q", "amina", '{"holder":"x"}', "")


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 4},
        {"at": "2026-01-01T00:00:00.000001+00:00"},
        {"kind": "commit"},
        {"operation": "r"},
        {"analyst": "badr"},
        {"body": '{"holder":"y"}'},
        {"operation": "q\namina", "analyst": ""},
    ],
)
def test_the_hash_covers_everything(change):
    assert entry_hash("id", BEFORE_ALL, replace(ENTRY, **change)) != entry_hash("id", BEFORE_ALL, ENTRY)


def test_the_hash_covers_the_ledger_and_what_came_before():
    one = entry_hash("id", BEFORE_ALL, ENTRY)
    assert one != entry_hash("other", BEFORE_ALL, ENTRY)
    assert one != entry_hash("id", "1" * 64, ENTRY)
    assert one == entry_hash("id", BEFORE_ALL, replace(ENTRY, hash="anything"))


@pytest.mark.parametrize("body", ["", "[]", "3", "{", "null"])
def test_a_body_that_is_no_object(body):
    with pytest.raises(LedgerDamaged, match="entry 3 cannot be read"):
        _ = replace(ENTRY, body=body).record


def test_canonical_is_one_form():
    assert canonical({"b": 1, "a": [1, 2]}) == canonical({"a": [1, 2], "b": 1}) == '{"a":[1,2],"b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_a_book_is_a_chain_without_gaps(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1))
    ledger.create_budget("school", Budget(epsilon=1))
    entries = list(ledger.entries())
    assert [entry.seq for entry in entries] == [1, 2, 3]
    for before, entry in pairwise(entries):
        assert entry.hash == entry_hash(ledger.id, before.hash, entry)
    assert (ledger.head.seq, ledger.head.hash) == (3, entries[-1].hash)
    assert [entry.seq for entry in ledger.entries(after=2)] == [3]
    assert entries[0].to_dict()["kind"] == "open"
    assert entries[0].time.tzinfo is not None


def test_two_books_differ_from_their_first_entry_on():
    one, two = Ledger.open("memory://"), Ledger.open("memory://")
    assert one.id != two.id
    assert one.head.hash != two.head.hash


@pytest.mark.parametrize(
    ("nanoseconds", "written"),
    [
        (0, "1970-01-01T00:00:00.000000+00:00"),
        (1_767_225_599_999_999_999, "2025-12-31T23:59:59.999999+00:00"),
        (1_767_225_600_000_001_000, "2026-01-01T00:00:00.000001+00:00"),
    ],
)
def test_times_are_written_in_one_form_to_the_microsecond(monkeypatch, nanoseconds, written):
    monkeypatch.setattr("time.time_ns", lambda: nanoseconds)
    assert now() == written
    assert replace(ENTRY, at=written).time.isoformat(timespec="microseconds") == written


def test_the_time_is_that_of_the_clock():
    before = datetime.now(UTC)
    written = replace(ENTRY, at=now()).time
    assert before <= written <= datetime.now(UTC)
