"""A book in one file: how it is made, who may read it, and what SQLite is told about durability."""

import errno
import os
import sqlite3
import stat
from contextlib import closing

import pytest
from sqlalchemy.exc import OperationalError

from sitr.accounting import PureDP
from sitr.errors import LedgerDamaged, LedgerUnavailable, NotPermitted, WrongLedger
from sitr.ledger import Budget, Ledger, sqlite
from sitr.ledger.entry import canonical, sha256
from sitr.ledger.sqlite import SQLite, _check_disk
from sitr.ledger.store import Kept, Unfit

ONE = PureDP(epsilon=1.0)


@pytest.fixture
def path(tmp_path):
    """A book with a budget of ε = 8, closed."""
    path = tmp_path / "book.db"
    with Ledger.open(path) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
    return path


def test_a_new_book_is_one_file_of_its_owner(path, tmp_path):
    assert {name.name for name in tmp_path.iterdir()} <= {"book.db", "book.db-wal", "book.db-shm"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_nlink == 1


def test_a_book_is_not_made_over_another(path):
    with Ledger.open(path) as ledger:
        path.with_name("book.db-journal").touch()  # the log of a process that made it just now
        ledger.store.make("0" * 32, "{}")
        assert ledger.store.identity().id == ledger.id != "0" * 32
        assert ledger.spent("clinic").value == 0


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LedgerUnavailable, match="cannot be made: No such file"):
        Ledger.open(tmp_path / "none" / "book.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_a_file_that_others_may_use_is_refused(path, mode):
    path.chmod(mode)
    with pytest.raises(NotPermitted, match=f"mode {mode:o}"):
        Ledger.open(path)
    path.chmod(0o600)
    assert Ledger.open(path).verify().valid


def test_every_commit_is_on_the_disk_and_the_schema_is_not_trusted(path):
    with Ledger.open(path) as ledger, ledger.store.connection() as connection:
        settings = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
        told = [connection.exec_driver_sql(f"PRAGMA {setting}").scalar() for setting in settings]
    assert told == ["wal", 2, 1, 0]


def test_files_that_hold_no_book(tmp_path):
    empty, other = tmp_path / "empty.db", tmp_path / "other.db"
    for file in (empty, other):
        file.touch(mode=0o600)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(LedgerDamaged, match="what was charged in it is lost"):
        Ledger.open(empty)
    with pytest.raises(LedgerDamaged, match="an SQLite file, but no ledger"):
        Ledger.open(other)


@pytest.mark.parametrize("lost", ["entry", "book"])
def test_a_book_that_lost_its_first_lines(path, lost):
    with Ledger.open(path) as ledger, ledger.store.transaction() as connection:
        connection.exec_driver_sql(f"DROP TRIGGER {lost}_no_delete")
        connection.exec_driver_sql(f"DELETE FROM {lost}")
    with pytest.raises(LedgerDamaged, match="has no first entry, or says twice which book it is"):
        Ledger.open(path)


def test_a_book_of_a_newer_form_is_not_written_to_by_whoever_has_it_open(path):
    with Ledger.open(path) as ledger:
        with ledger.store.transaction() as connection:
            connection.exec_driver_sql("UPDATE book SET schema_version = 99")
        with pytest.raises(WrongLedger, match="has form 99"):
            ledger.reserve("clinic", ONE, analyst="amina")
        assert ledger.spent("clinic").value == 0


def test_whoever_only_reads_is_told_that_the_book_was_put_back(path):
    before = path.read_bytes()
    with Ledger.open(path) as ledger:
        ledger.reserve("clinic", ONE, analyst="amina")
        known = ledger.store.identity()
        ledger.store.close()
        path.write_bytes(before)
        with pytest.raises(LedgerDamaged, match="put back to an older copy"):
            ledger.store.identity()
    assert Ledger.open(path).store.identity().head.seq == known.head.seq - 1


def test_a_book_that_is_put_back_before_a_step_of_this_process_is_refused(path):
    """Each step remembers its own entry: whoever reads nothing in between would make it a second time."""
    started = canonical({"holder": sha256(b"h")})
    with Ledger.open(path) as ledger:
        ledger.reserve("clinic", ONE, analyst="amina", operation="q")
        ledger.store.close()
        before = path.read_bytes()
        ledger.store.start("q", "amina", started)
        ledger.store.close()
        path.write_bytes(before)
        with pytest.raises(LedgerDamaged, match="put back to an older copy"):
            ledger.store.start("q", "amina", started)


def test_only_the_holder_of_an_operation_goes_on_with_it(path):
    """Whatever is asked of the store itself, step by step, each by the wrong hands first."""
    with Ledger.open(path) as ledger:
        store, kept, started = ledger.store, Kept("text/plain", b"a", None), canonical({"holder": sha256(b"h")})
        ledger.reserve("clinic", ONE, analyst="amina", operation="q")
        for operation, analyst in (("q", "badr"), ("none", "amina")):
            with pytest.raises(Unfit):
                store.start(operation, analyst, started)
        with pytest.raises(Unfit):
            store.commit("q", "amina", "h", "{}", kept)  # not started
        store.start("q", "amina", started)
        with pytest.raises(Unfit):
            store.start("q", "amina", started)
        for analyst, holder in (("badr", "h"), ("amina", "other")):
            with pytest.raises(Unfit):
                store.commit("q", analyst, holder, "{}", kept)
        assert store.kept("q", "amina") is None
        store.commit("q", "amina", "h", canonical({"holder": "h"}), kept)
        assert store.kept("q", "amina") == kept
        with pytest.raises(Unfit):
            store.commit("q", "amina", "h", "{}", kept)
        assert [entry.kind for entry in store.operation("q")] == ["reserve", "start", "commit"]
        assert [entry.operation for entry in store.entries() if entry.operation] == ["q"] * 3


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        (["/dev/a / ext4", "server:/x /data nfs"], True),
        (["/dev/a / ext4", "server:/x /data nfs", "/dev/b /data ext4"], False),  # the last one mounted there
        (["/dev/a / ext4", "/dev/b /data ext4", "server:/x /data cifs"], True),
        (["server:/x / nfs", "/dev/b /data ext4"], False),  # the nearest one
        (["/dev/b /data ext4", "server:/x / nfs"], False),
        (["/dev/a / ext4", "server:/x /other nfs", "server:/y /dat nfs"], False),
        (["/dev/a / ext4", "host:/x /data fuse.sshfs"], True),
        (["/dev/a / ext4", "host:/x /data fuse"], False),  # of this machine alone
        ([], False),
    ],
)
def test_the_file_system_that_a_book_lies_on(tmp_path, monkeypatch, mounts, refused):
    table = tmp_path / "mounts"
    table.write_text("".join(f"{line.replace(' /data', chr(32) + str(tmp_path))} rw 0 0\n" for line in mounts))
    monkeypatch.setattr("sitr.ledger.sqlite.MOUNTS", table)
    book = tmp_path / "book.db"
    if refused:
        with pytest.raises(LedgerUnavailable, match="network file system"):
            _check_disk(book)
    else:
        _check_disk(book)


def test_a_name_with_a_space_is_found_among_the_mounts(tmp_path, monkeypatch):
    table, folder = tmp_path / "mounts", tmp_path / "two words"
    table.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path}/two\\040words nfs rw 0 0\n")
    monkeypatch.setattr("sitr.ledger.sqlite.MOUNTS", table)
    with pytest.raises(LedgerUnavailable, match="network file system"):
        _check_disk(folder / "book.db")
    monkeypatch.setattr("sitr.ledger.sqlite.MOUNTS", tmp_path / "none")
    _check_disk(folder / "book.db")


def test_whoever_waits_for_the_lock_in_vain_is_told_so(path):
    holder, other = SQLite(path, 1.0), SQLite(path, 0.05)
    with (
        holder.transaction(),
        pytest.raises(LedgerUnavailable, match="another process holds the ledger"),
        other.transaction(),
    ):
        pytest.fail("the lock was had twice")
    for store in (holder, other):
        store.close()


def test_a_book_that_cannot_have_its_name_leaves_nothing(tmp_path, monkeypatch):
    """A disk without hard links, say."""

    def fails(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fails)
    with pytest.raises(LedgerUnavailable, match="cannot be made: Operation not permitted"):
        Ledger.open(tmp_path / "book.db")
    assert not [name for name in tmp_path.iterdir() if not name.name.endswith(("-wal", "-shm"))]


def test_a_book_that_went_on_from_an_older_copy_is_refused_however_often_it_is_asked(path, tmp_path):
    """Put back in place, and written to by another process, past the end that this one knows."""
    book = Ledger.open(path)
    _copied(path, tmp_path / "older.db")
    book.once("clinic", PureDP(7.0), lambda: 1, analyst="amina", operation="large")
    _copied(tmp_path / "older.db", path)
    other = Ledger.open(path)
    for operation in ("a", "b"):
        other.once("clinic", PureDP(0.01), lambda: 2, analyst="badr", operation=operation)
    for ask in (lambda: book.reserve("clinic", PureDP(7.0), analyst="amina"), lambda: book.head) * 2:
        with pytest.raises(LedgerDamaged, match="older copy"):
            ask()


def _copied(source, target):
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as two:
        one.backup(two)


def test_prepared_statements_take_their_values_by_place():
    """A value that is named, and given by its place, is deprecated from Python 3.12 on, and refused by 3.14."""
    texts = [text for text in vars(sqlite).values() if isinstance(text, str)]
    prepared = [text for text in texts if text.startswith(("SELECT ", "UPDATE ", "INSERT "))]
    assert sqlite.GRANT in prepared
    assert sqlite.GRANT.count("?") == 6
    assert not any(":" in text for text in prepared)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM])
@pytest.mark.parametrize("extended", [0, 2 << 8])
def test_a_book_that_may_not_be_written_says_so(path, code, extended):
    error = sqlite3.OperationalError()
    error.sqlite_errorcode = code | extended
    with Ledger.open(path) as ledger:
        told = ledger.store._explained(error)
    assert isinstance(told, LedgerUnavailable)
    assert "cannot be written; nothing was changed" in told.what


@pytest.mark.parametrize("place", ["memory://", "sqlite:///{}/book.db"])
def test_a_statement_that_fails_does_not_end_its_transaction(place, tmp_path):
    """Whoever catches its error goes on in the same one: what comes later is not written without what was before."""
    store = Ledger.open(place.format(tmp_path)).store
    before = list(store.entries())

    def halfway():
        with store.transaction() as connection:
            store._append(connection, "outside", None, None, "{}")
            with pytest.raises(OperationalError, match="nowhere"):
                connection.exec_driver_sql("SELECT nothing FROM nowhere")
            assert connection.connection.driver_connection.in_transaction
            store._append(connection, "outside", None, None, "{}")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        halfway()
    assert list(store.entries()) == before


def test_a_step_that_fails_while_it_reads_leaves_its_connection_able_to_write(path):
    """Though a notebook keeps the traceback, and the cursor with it, and another process writes meanwhile."""

    def step(cursor):
        cursor.execute("SELECT seq FROM entry").fetchone()
        raise ZeroDivisionError

    with Ledger.open(path) as ledger:
        with pytest.raises(ZeroDivisionError) as kept:
            ledger.store._step(step)
        with Ledger.open(path) as other:
            other.once("clinic", ONE, lambda: 1, analyst="amina", operation="p")
        ledger.once("clinic", ONE, lambda: 1, analyst="amina", operation="q")
        assert kept.value.__traceback__ is not None
        assert ledger.verify().valid


def test_a_form_that_never_was_is_damage(path):
    with closing(sqlite3.connect(path)) as driver:
        driver.execute("UPDATE book SET schema_version = 0")
        driver.commit()
    with pytest.raises(LedgerDamaged, match="never was"):
        Ledger.open(path)


def test_an_answer_without_its_charge_or_its_date_is_damage(path):
    ledger = Ledger.open(path)
    ledger.once("clinic", ONE, lambda: 1, analyst="amina", operation="q")
    with closing(sqlite3.connect(path)) as driver:
        driver.executescript("DROP TRIGGER entry_no_update; UPDATE entry SET at = 'x' WHERE kind = 'commit'")
    with pytest.raises(LedgerDamaged, match="date"):
        ledger.answer("q", analyst="amina")
    with closing(sqlite3.connect(path)) as driver:
        driver.executescript("DROP TRIGGER entry_no_delete; DELETE FROM entry WHERE kind = 'reserve'")
    with pytest.raises(LedgerDamaged, match="never charged"):
        ledger.answer("q", analyst="amina")


def test_delta_that_a_budget_never_had_is_damage(path):
    ledger = Ledger.open(path)
    with closing(sqlite3.connect(path)) as driver:
        driver.execute("UPDATE budget SET whole = '[0,5]'")
        driver.commit()
    with pytest.raises(LedgerDamaged, match="without δ"):
        ledger.raise_budget("clinic", Budget(epsilon=16), reason="more")
