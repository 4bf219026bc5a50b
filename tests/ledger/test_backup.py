"""Copies of a book: whole, beside nothing that was there, and never put back where they would forget a charge."""

import itertools
import os
import stat

import psycopg
import pytest

from sitr.accounting import PureDP
from sitr.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable, MissingExtra, WrongLedger
from sitr.ledger import Budget, Ledger
from sitr.ledger.answer import LARGE
from sitr.ledger.backup import back_up, restore
from tests.ledger import stores
from tests.ledger.cluster import database_of

EVENT = PureDP(epsilon=0.125)
LARGE_ANSWER = b"x" * (LARGE + 1)
NAMES = itertools.count(1)


@pytest.fixture
def ledger(fresh_durable, tmp_path):
    """A book with an answer of either size."""
    with Ledger.open(fresh_durable(), answers=tmp_path / "answers") as made:
        made.create_budget("clinic", Budget(epsilon=1.0))
        for name, answer in (("small", 42), ("large", LARGE_ANSWER)):
            with made.reserve("clinic", EVENT, analyst="amina", operation=name) as grant:
                grant.commit(answer)
        yield made


def test_a_copy_is_whole_and_put_back_it_is_the_book(ledger, fresh_durable, tmp_path):
    copy = back_up(ledger, tmp_path / "copy")
    assert (copy.ledger, copy.head, copy.answers) == (ledger.id, ledger.head, 1)
    assert f"after entry {ledger.head.seq} are not in it" in copy.warning
    for path in (tmp_path / "copy", next((tmp_path / "copy.answers").iterdir())):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    elsewhere, folder = fresh_durable(), tmp_path / "put back"
    made = restore(copy.place, elsewhere, expect=ledger.id, answers=folder)
    assert (made.ledger, made.head, made.answers) == (ledger.id, ledger.head, 1)
    with Ledger.open(elsewhere, create=False, answers=folder) as again:
        assert list(again.entries()) == list(ledger.entries())
        assert again.answer("large", analyst="amina").content == LARGE_ANSWER
        assert again.spent("clinic") == ledger.spent("clinic")
        again.reserve("clinic", EVENT, analyst="amina")
        assert again.verify()
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_copy_is_made_while_others_write(ledger, tmp_path):
    grant = ledger.reserve("clinic", EVENT, analyst="amina", operation="open")
    grant.start()
    copy = back_up(ledger, tmp_path / "copy")
    grant.commit("later")
    assert ledger.head.seq == copy.head.seq + 1
    assert ledger.verify()


def test_nothing_is_overwritten(ledger, fresh_durable, tmp_path):
    copy = back_up(ledger, tmp_path / "copy")
    before = (tmp_path / "copy").read_bytes()
    with pytest.raises(InvalidArgument, match="is there already"):
        back_up(ledger, tmp_path / "copy")
    (tmp_path / "other.answers").mkdir()
    with pytest.raises(InvalidArgument, match=r"other\.answers is there already"):
        back_up(ledger, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "copy").read_bytes() == before
    url = fresh_durable()
    Ledger.open(url).close()
    with pytest.raises(InvalidArgument, match="there is a book at"):
        restore(copy.place, url)
    with Ledger.open(url) as there:
        assert there.id != ledger.id


def test_a_folder_that_another_makes_meanwhile_is_theirs(ledger, fresh_durable, tmp_path, monkeypatch):
    """Whoever is second is refused, and takes nothing away with it."""
    inner, outer = [], back_up

    def copied(path):
        if not inner:
            inner.append("once")
            with pytest.raises(InvalidArgument, match=r"copy\.answers is there already"):
                outer(ledger, tmp_path / "copy")  # a second program, in the middle of the first
        return whole(path)

    whole = ledger.store.copy_to
    monkeypatch.setattr(ledger.store, "copy_to", copied)
    copy = back_up(ledger, tmp_path / "copy")
    assert (inner, copy.answers) == (["once"], 1)
    assert restore(copy.place, fresh_durable(), answers=tmp_path / "put back").answers == 1


def test_a_copy_that_fails_at_its_end_leaves_no_answers_behind(ledger, tmp_path, monkeypatch):
    whole = ledger.store.copy_to

    def overtaken(path):
        whole(path)
        (tmp_path / "copy").write_bytes(b"of another")

    monkeypatch.setattr(ledger.store, "copy_to", overtaken)
    with pytest.raises(InvalidArgument, match="copy is there already"):
        back_up(ledger, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"of another"
    assert not (tmp_path / "copy.answers").exists()


def test_an_answer_that_is_being_written_is_no_part_of_a_copy(ledger, tmp_path):
    whole = next((tmp_path / "answers").iterdir())
    whole.with_suffix(".4711").write_bytes(b"half")
    assert back_up(ledger, tmp_path / "copy").answers == 1
    assert [one.name for one in (tmp_path / "copy.answers").iterdir()] == [whole.name]


def test_answers_of_other_books_stay_as_they_are(tmp_path):
    """Books on servers may share a folder: what is there is not written over, not even with the same."""
    fresh, folder = stores.fresh("postgresql", tmp_path), tmp_path / "shared"
    with Ledger.open(fresh(), answers=folder) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        with ledger.reserve("clinic", EVENT, analyst="amina", operation="large") as grant:
            grant.commit(LARGE_ANSWER)
        copy = back_up(ledger, tmp_path / "copy")
    (there,) = folder.iterdir()
    before = there.stat()
    restore(copy.place, fresh(), answers=folder)
    assert [one.name for one in folder.iterdir()] == [there.name]
    assert (there.stat().st_ino, there.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_copy_that_forgot_charges_is_not_put_back(ledger, fresh_durable, tmp_path):
    anchor = tmp_path / "anchor"
    ledger.write_anchor(anchor)
    copy = back_up(ledger, tmp_path / "copy")
    restore(copy.place, fresh_durable(), anchor=anchor, answers=tmp_path / "a1")
    ledger.reserve("clinic", EVENT, analyst="amina")
    ledger.write_anchor(anchor)
    url = fresh_durable()
    with pytest.raises(LedgerDamaged, match=r"the copy ends at entry (.|\n)*look for a newer copy"):
        restore(copy.place, url, anchor=anchor, answers=tmp_path / "a2")
    if url.startswith("sqlite"):
        assert not stores.file_of(url).exists()
    with pytest.raises(LedgerDamaged):  # whatever was put back is refused, and no new book is begun
        Ledger.open(url, anchor=anchor)
    restore(copy.place, fresh_durable(), answers=tmp_path / "a3")  # by its place alone: its owner charges what was lost


def test_another_book_is_not_put_back(ledger, fresh_durable, tmp_path):
    copy = back_up(ledger, tmp_path / "copy")
    url = fresh_durable()
    with pytest.raises(WrongLedger):
        restore(copy.place, url, expect="0" * 32, answers=tmp_path / "a")
    assert not (url.startswith("sqlite") and stores.file_of(url).exists())


def test_a_copy_that_is_not_whole_is_of_no_use(fresh_durable, tmp_path):
    """A file is verified when it is copied, and again when it is put back; a dump where it is put back."""
    url, elsewhere = fresh_durable(), fresh_durable()
    on_server = not url.startswith("sqlite")
    with Ledger.open(url) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        ledger.reserve("clinic", EVENT, analyst="amina")
        forged = "sitr.budget SET whole = '{0,0}'" if on_server else "budget SET whole = '[0,0]'"
        with ledger.store.connection() as connection:
            connection.exec_driver_sql(f"UPDATE {forged}")
        if on_server:
            copy = back_up(ledger, tmp_path / "copy").place
        else:
            with pytest.raises(LedgerDamaged, match="is not whole: the running total"):
                back_up(ledger, tmp_path / "copy")
            assert not (tmp_path / "copy").exists()
            copy = stores.file_of(url)
    with pytest.raises(LedgerDamaged, match="is not whole: the running total") as refused:
        restore(copy, elsewhere)
    assert ("DROP SCHEMA sitr CASCADE" in refused.value.do) == on_server
    assert on_server or not stores.file_of(elsewhere).exists()


def test_a_log_that_is_left_is_not_written_over(tmp_path):
    with Ledger.open(tmp_path / "book.db") as ledger:
        copy = back_up(ledger, tmp_path / "copy.db")
    (tmp_path / "again.db-wal").touch()
    with pytest.raises(InvalidArgument, match="or a part of one"):
        restore(copy.place, tmp_path / "again.db")


def test_what_cannot_be_copied_says_so(ledger, tmp_path, monkeypatch):
    with pytest.raises(InvalidArgument, match="in memory"):
        back_up(Ledger.open("memory://"), tmp_path / "copy")
    with pytest.raises(LedgerUnavailable, match="cannot be written"):
        back_up(ledger, tmp_path / "no such folder" / "copy")
    if ledger.store.separates:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(MissingExtra, match="pg_dump is not installed"):
            back_up(ledger, tmp_path / "copy")
        (tmp_path / "pg_dump").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        os.chmod(tmp_path / "pg_dump", 0o700)
        with pytest.raises(LedgerUnavailable, match="pg_dump failed at postgresql://owner@"):
            back_up(ledger, tmp_path / "copy")
        (tmp_path / "pg_dump").write_text("#!/bin/sh\necho half\n", encoding="utf-8")
        with pytest.raises(InvalidArgument, match="no complete dump"):
            back_up(ledger, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_dump_is_no_file_of_sqlite_and_the_other_way_round(tmp_path):
    with Ledger.open(tmp_path / "book.db") as ledger:
        copy = back_up(ledger, tmp_path / "copy.db")
    with pytest.raises(InvalidArgument, match="no complete dump of PostgreSQL"):
        restore(copy.place, stores.fresh("postgresql", tmp_path)())


def test_analysts_of_a_dumped_book_are_analysts_of_the_restored_one(tmp_path):
    """Rights are part of a dump: nobody gets more than they had."""
    fresh = stores.fresh("postgresql", tmp_path)
    url, elsewhere = fresh(), fresh()
    role = f"copied_{database_of(url)}_{next(NAMES)}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {role} LOGIN")
    with Ledger.open(url) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        ledger.allow(role)
        copy = back_up(ledger, tmp_path / "copy.sql")
    restore(copy.place, elsewhere)
    asked = "SELECT has_function_privilege(%s, 'sitr.{}', 'EXECUTE')"
    with psycopg.connect(elsewhere) as server:
        allowed = [
            server.execute(asked.format(function), [role]).fetchone()[0]
            for function in ("identity()", "append_entry(text, text, text, text)")
        ]
    assert allowed == [True, False]
