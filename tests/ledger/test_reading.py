"""The book while it is read: an entry out of its chain, and a total that its entries do not add up to, are found."""

from dataclasses import replace

import pytest

from sitr.ledger import Ledger, schema
from sitr.ledger.anchor import Mark
from sitr.ledger.entry import Head
from sitr.ledger.reading import Reading, Wrong
from sitr.ledger.totals import plus
from tests.ledger.tampering import column_of, found, nothing, retotal, rewritten, tamper

EDITS = {
    "a body": "UPDATE entry SET body = replace(body, '\"version\":1', '\"version\":2') WHERE seq = 4",
    "a cost": "UPDATE entry SET body = replace(body, '\"units\":[', '\"units\":[1') WHERE seq = 4",
    "a time": "UPDATE entry SET at = '2020-01-01T00:00:00.000000+00:00' WHERE seq = 4",
    "an analyst": "UPDATE entry SET analyst = 'someone' WHERE seq = 4",
    "an operation": "UPDATE entry SET operation = 'other' WHERE seq = 4",
    "a kind": "UPDATE entry SET kind = 'refund' WHERE seq = 5",
    "a hash": "UPDATE entry SET hash = 'ff' || substr(hash, 3) WHERE seq = 4",
    "the last": "UPDATE entry SET at = '2020-01-01T00:00:00.000000+00:00' WHERE seq = (SELECT max(seq) FROM entry)",
}


@pytest.mark.parametrize("what", EDITS)
def test_an_entry_that_is_edited(url, what):
    tamper(url, EDITS[what])
    told = found(url)
    assert not told
    assert told.bad_entry is not None
    assert "NOT VALID" in str(told)


@pytest.mark.parametrize("seq", [1, 2, 5, 9])
def test_an_entry_that_is_taken_out(url, seq):
    tamper(url, f"DELETE FROM entry WHERE seq = {seq}")
    told = found(url)
    assert (told.valid, told.bad_entry) == (False, seq)
    assert f"entry {seq} is missing" in told.problem


def test_entries_that_change_places(url):
    tamper(
        url,
        "UPDATE entry SET seq = 1000 WHERE seq = 4",
        "UPDATE entry SET seq = 4 WHERE seq = 7",
        "UPDATE entry SET seq = 7 WHERE seq = 1000",
    )
    assert found(url).bad_entry == 4


def test_totals_that_are_set_back(url):
    retotal(url, schema.budget, "whole", nothing)
    assert "the running total of the budget" in found(url).problem


def test_totals_of_blocks_that_are_set_back(url):
    retotal(url, schema.block, "used", nothing)
    assert "totals of blocks" in found(url).problem
    tamper(url, "DELETE FROM block")
    assert "totals of blocks" in found(url).problem


def test_a_budget_that_is_widened(url):
    tamper(url, "UPDATE budget SET body = replace(body, '16.0', '99.0') WHERE name = 'clinic'")
    assert "defined otherwise than its entries say" in found(url).problem


def test_a_budget_that_is_taken_out(url):
    tamper(url, "DELETE FROM block", "DELETE FROM budget WHERE name = 'clinic/analyst/amina'")
    assert "budgets and entries disagree on 'clinic/analyst/amina'" in found(url).problem


def test_every_part_of_a_total_is_compared(url):
    """Of the budget and of its blocks, of either limit: nothing that a later charge would start from."""
    for column in ("whole", "peak"):
        for place in ((1, 0), (0, 1), (0, None)):
            before = column_of(url, schema.budget, column, name="clinic")
            retotal(url, schema.budget, column, lambda used, place=place: plus(used, place), name="clinic")
            assert "the running total of the budget 'clinic' is not" in found(url).problem
            retotal(url, schema.budget, column, lambda _, before=before: before, name="clinic")
    for place in ((1, 0), (0, 1), (None, 0)):
        before = column_of(url, schema.block, "used", budget="clinic")
        retotal(url, schema.block, "used", lambda used, place=place: plus(used, place), budget="clinic")
        assert "totals of blocks" in found(url).problem
        retotal(url, schema.block, "used", lambda _, before=before: before, budget="clinic")
    tamper(url, "UPDATE budget SET version = 2 WHERE name = 'clinic'")
    assert "the budget 'clinic' is defined otherwise" in found(url).problem
    tamper(url, "UPDATE budget SET version = 1 WHERE name = 'clinic'")
    assert found(url).valid


def test_a_clock_that_was_set_back_is_a_remark_and_one_that_stands_still_is_none(url):
    rewritten(url, lambda entries: [replace(entry, at=entries[0].at) for entry in entries])
    assert found(url).remarks == ()
    rewritten(url, lambda entries: [*entries[:-1], replace(entries[-1], at="2020" + entries[-1].at[4:])])
    told = found(url)
    assert told.valid
    assert [remark.split(":")[0] for remark in told.remarks] == [
        f"entry {told.head.seq} is dated before the one it follows"
    ]


def test_a_reading_stops_where_the_chain_breaks_and_goes_on_where_a_rule_does():
    with Ledger.open("memory://") as ledger:
        (first,) = ledger.entries()
        reading = Reading(ledger.id)
        reading.take(first)
        with pytest.raises(Wrong, match="entry 2 is missing"):
            reading.take(first)
        assert (reading.head, reading.wrong) == (first.head, [])
        reading.note(lambda: reading.check_totals([], {("clinic", "a"): (0, 0)}))
        assert [str(wrong) for wrong in reading.wrong] == [
            "the running totals of blocks are not what the entries add up to"
        ]


def test_a_mark_beyond_the_end_says_that_the_end_was_lost():
    with Ledger.open("memory://") as ledger:
        (first,) = ledger.entries()
        reading = Reading(ledger.id, [Mark(ledger.id, Head(place, "ab"), first.at) for place in (4, 7, 5)])
        reading.take(first)
        with pytest.raises(Wrong, match="the anchor knows entry 7, and the book ends at 1"):
            reading.check_end()
        reading = Reading(ledger.id, [Mark(ledger.id, Head(1, "ab"), first.at)])
        with pytest.raises(Wrong, match="entry 1 is not what the anchor says it was"):
            reading.take(first)
