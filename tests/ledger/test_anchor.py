"""Anchors: the end of the book, written down elsewhere."""

import pytest

from sitr.accounting import PureDP
from sitr.errors import LedgerDamaged, LedgerUnavailable, WrongLedger
from sitr.ledger import Budget, Head, Ledger
from sitr.ledger.anchor import read_marks, write_mark


@pytest.fixture
def anchor(tmp_path):
    return tmp_path / "anchor"


def test_every_charge_is_anchored_before_it_is_granted(fresh, anchor):
    with Ledger.open(fresh(), anchor=anchor) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=4))
        for _ in range(3):
            grant = ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina")
            assert read_marks(anchor)[-1].head.seq == int(grant.entry.split("/")[1])
        told = ledger.verify()
        assert told.valid
        assert "anchored up to entry 5" in told.anchored


def test_an_anchor_that_cannot_be_written_grants_nothing(fresh, tmp_path):
    anchor = tmp_path / "elsewhere" / "anchor"
    anchor.parent.mkdir()
    with Ledger.open(fresh(), anchor=anchor) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=4))
        anchor.unlink()
        anchor.parent.rmdir()
        with pytest.raises(LedgerUnavailable, match="cannot be written"):
            ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", operation="q")
        anchor.parent.mkdir()
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina", operation="q")
        assert ledger.spent("clinic").value == 1
        assert read_marks(anchor)[-1].head == ledger.head


def test_lines_that_a_crash_left_unfinished_prove_nothing(anchor):
    write_mark(anchor, "b7", Head(1, "aa"))
    with anchor.open("ab") as file:
        file.write(b'{"at":"2026')
    write_mark(anchor, "b7", Head(2, "bb"))
    assert [mark.head.seq for mark in read_marks(anchor)] == [1, 2]


def test_only_the_end_of_a_long_anchor_is_read(anchor):
    for seq in range(1, 1201):
        with anchor.open("ab") as file:
            file.write(b'\n{"at":"x","hash":"aa","ledger":"b7","seq":%d}\n' % seq + b" " * 60)
    last = read_marks(anchor, last=True)
    assert last[-1].head.seq == 1200
    assert len(last) < 1200


@pytest.mark.parametrize("content", [b"hello\n", b"[]\n[1]\n", bytes(100)])
def test_a_file_that_is_no_anchor(fresh, anchor, content):
    anchor.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="is no anchor"):
        Ledger.open(fresh(), anchor=anchor)
    assert anchor.read_bytes() == content


def test_an_anchor_of_another_ledger(fresh, anchor):
    with Ledger.open(fresh(), anchor=anchor):
        pass
    url = fresh()
    with Ledger.open(url) as other:
        told = other.verify(anchor=anchor)
        assert not told.valid
    if url != "memory://":
        with pytest.raises(WrongLedger, match="is of ledger"):
            Ledger.open(url, anchor=anchor)


def test_write_anchor_returns_the_head(ledger, anchor):
    head = ledger.write_anchor(anchor)
    assert head == ledger.head == read_marks(anchor)[-1].head
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        ledger.verify(anchor=anchor.with_name("none"))


def test_a_place_that_no_book_has_is_lost(fresh, anchor):
    with Ledger.open(fresh(), anchor=anchor) as ledger:
        write_mark(anchor, ledger.id, Head(2**63, "0" * 64))
        with pytest.raises(LedgerDamaged, match="lost"):
            ledger.write_anchor(anchor)
