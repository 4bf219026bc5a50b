"""Storage that fails, or lies: full, read-only, torn, restored from a backup, exchanged, with a clock set back."""

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from sitr.errors import (
    AlreadySpent,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    NotPermitted,
    UnknownName,
    WrongLedger,
)
from sitr.ledger import Budget, Ledger, sqlite
from sitr.ledger.anchor import hold_to
from tests.faults import harness
from tests.faults.harness import Outcome
from tests.faults.worker import ANALYST, DATASET, EVENT
from tests.ledger.stores import file_of

BESIDE = ("", "-wal", "-shm")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/book.db"


def ask(ledger, operation, answer="a"):
    with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=operation) as grant:
        grant.commit(answer)


def make(url, count, **options):
    """Begin a book with so many answers, and return it open."""
    ledger = Ledger.open(url, **options)
    ledger.create_budget(DATASET, Budget(epsilon=1024))
    for number in range(count):
        ask(ledger, f"q{number}")
    return ledger


def copied(path, folder):
    """Copy a book and what is beside it, as a crash would leave them, and return the copy's path."""
    folder.mkdir()
    for end in BESIDE:
        if path.with_name(path.name + end).exists():
            shutil.copy2(path.with_name(path.name + end), folder / f"{path.name}{end}")
    return folder / path.name


def in_fork(act):
    """Run something in a fork, and return its exit code."""
    child = os.fork()
    if not child:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Full


def limited(size):
    """No file may grow beyond so many bytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_full_disk_grants_nothing_and_the_book_goes_on_when_there_is_room(url, tmp_path):
    make(url, 2).close()
    side = str(tmp_path / "side")

    def fill():
        from tests.faults.worker import Side

        with Ledger.open(url) as ledger:
            ask(ledger, "warm")  # the files are there
            used = ledger.spent(DATASET).value
            beside, granted, refused = Side(side), 0, 0
            limited(60_000)
            for turn in range(60):
                try:
                    with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=f"full{turn}") as grant:
                        beside.write(operation=f"full{turn}", answer="a")
                        granted += 1
                        grant.commit("a")
                except LedgerUnavailable as error:
                    refused += 1
                    if "is full or fails; nothing was granted" not in error.what:
                        return 1
            limited(resource.RLIM_INFINITY)
            if not granted or not refused or not used + granted <= ledger.spent(DATASET).value <= used + 60:
                return 2
            ask(ledger, "room again")
            for turn in range(60):  # what was refused may be asked again under its id
                try:
                    ask(ledger, f"full{turn}")
                except LedgerError:
                    continue
            return 0 if ledger.verify().valid else 3

    assert in_fork(fill) == 0
    with Ledger.open(url) as ledger:
        outcome = Outcome()
        harness.check(ledger, side, 1024, outcome)
        assert outcome, outcome


def test_a_full_disk_at_every_size(url, tmp_path):
    """The limit is met at every write of a round: whatever fails, no answer leaves without a charge."""
    make(url, 1).close()
    path = file_of(url)

    def attempt(size, copy):
        ledger = Ledger.open(f"sqlite:///{copy}")
        before = ledger.spent(DATASET).value
        limited(size)
        left = 0
        try:
            with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="new") as grant:
                left = 1
                grant.commit("a")
        except LedgerUnavailable:
            pass
        limited(resource.RLIM_INFINITY)
        if ledger.spent(DATASET).value < before + left or not ledger.verify().valid:
            return 1
        with contextlib.suppress(LedgerError):
            ask(ledger, "new")
        return 0 if ledger.spent(DATASET).value == before + 1 and ledger.verify().valid else 2

    for turn, size in enumerate(range(0, 45_000, 1500)):
        copy = copied(path, tmp_path / str(turn))
        assert in_fork(lambda: attempt(size, copy)) == 0, size  # noqa: B023


def test_a_full_disk_takes_no_large_answer(url):
    make(url, 0).close()

    def attempt():
        with Ledger.open(url) as ledger, ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q") as grant:
            limited(1_000_000)
            try:
                grant.commit(bytes(3_000_000))
            except LedgerUnavailable:
                limited(resource.RLIM_INFINITY)
                grant.commit(bytes(3_000_000))
                return 0 if ledger.verify().valid else 1
        return 2

    assert in_fork(attempt) == 0


# Read-only


def test_a_file_that_cannot_be_written_grants_nothing(url, tmp_path):
    make(url, 1).close()
    path, nobody = file_of(url), 65534
    if os.geteuid() == 0:  # modes do not bind root: the file and its folder are another's
        for folder in (tmp_path, *tmp_path.parents[:-2]):
            mode = folder.stat().st_mode
            if mode & 0o005 != 0o005:  # one that all may enter, as /dev/shm, is also written to by servers of the tests
                folder.chmod(mode | 0o055)
        os.chown(path, nobody, nobody)
    path.chmod(0o400)
    tmp_path.chmod(0o555)

    def attempt():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(nobody)
            os.setuid(nobody)
        try:
            with Ledger.open(url) as ledger:
                ask(ledger, "new")
        except LedgerUnavailable as error:
            return 0 if "cannot be written; nothing was changed" in error.what else 1
        return 2

    try:
        assert in_fork(attempt) == 0
    finally:
        tmp_path.chmod(0o700)
        path.chmod(0o600)
        os.chown(path, os.geteuid(), os.getegid())
    with Ledger.open(url) as ledger:
        assert ledger.spent(DATASET).value == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LedgerUnavailable, match="cannot be made"):
        Ledger.open(f"sqlite:///{tmp_path}/none/book.db")


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_others_may_use_is_refused(url, mode):
    make(url, 1).close()
    file_of(url).chmod(mode)
    with pytest.raises(NotPermitted, match="may be used by others"):
        Ledger.open(url)


def test_files_are_for_their_owner_only(url, tmp_path):
    before = os.umask(0)
    try:
        with make(url, 1) as ledger, ledger.reserve(DATASET, EVENT, analyst=ANALYST) as grant:
            grant.commit(bytes(2**20 + 1))
        ledger.write_anchor(tmp_path / "anchor")
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "book.db.answers").stat().st_mode & 0o777 == 0o700


# Torn


def frames_of(wal):
    """Where the frames of a write-ahead log begin, and where it ends."""
    content = wal.read_bytes()
    page = struct.unpack(">I", content[8:12])[0]
    return list(range(32, len(content), page + 24)), len(content)


def opened(path, **options):
    """Open a copy: its entries if it is a valid prefix, or the error."""
    try:
        with Ledger.open(f"sqlite:///{path}", create=False, **options) as ledger:
            found = ledger.verify()
            assert found.valid, found
            if ledger.budgets():
                ask(ledger, "goes on")
            assert ledger.verify().valid
            return [entry.hash for entry in ledger.entries(0)][: found.head.seq]
    except LedgerError as error:
        return error


def test_a_log_cut_at_every_byte_of_its_last_frame(url, tmp_path):
    """What was synced and is lost all the same: a valid prefix opens, and the anchor knows better."""
    anchor = tmp_path / "anchor"
    with make(url, 3, anchor=anchor) as ledger:
        hashes = [entry.hash for entry in ledger.entries()]
        ledger.write_anchor(anchor)
        path = file_of(url)
        frames, size = frames_of(path.with_name("book.db-wal"))
        kept = copied(path, tmp_path / "kept")
    # Nothing is synced there: thousands of copies would take the disk a while.
    work = (Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path) / f"sitr-cut-{os.getpid()}"
    seen = set()
    for cut in range(frames[-1], size + 1):
        shutil.rmtree(work, ignore_errors=True)
        copy = copied(kept, work)
        copy.with_name("book.db-shm").unlink(missing_ok=True)
        os.truncate(copy.with_name("book.db-wal"), cut)
        if cut % 64 == 0 and cut < size:
            with pytest.raises(LedgerDamaged, match="behind its anchor"):
                Ledger.open(f"sqlite:///{copy}", anchor=anchor)
        with Ledger.open(f"sqlite:///{copy}", create=False) as ledger:
            found = [entry.hash for entry in ledger.entries()]
            if cut < size:  # what opening with the anchor asks, of the book that is open already
                with pytest.raises(LedgerDamaged, match="behind its anchor"):
                    hold_to(anchor, ledger.store, ledger.id)
        if cut % 64 == 0 or cut == size:
            assert opened(copy) == found  # it goes on, and stays valid
        assert found == hashes[: len(found)]
        seen.add(len(found))
    shutil.rmtree(work)
    assert seen == {len(hashes) - 1, len(hashes)}


def test_a_log_cut_anywhere(url, tmp_path):
    with make(url, 3) as ledger:
        hashes = [entry.hash for entry in ledger.entries()]
        path = file_of(url)
        frames, size = frames_of(path.with_name("book.db-wal"))
        kept = copied(path, tmp_path / "kept")
    seen = []
    for turn, cut in enumerate([0, 1, 31, *frames[::3], *(frame + 100 for frame in frames[::3])]):
        copy = copied(kept, tmp_path / f"cut{turn}")
        copy.with_name("book.db-shm").unlink(missing_ok=True)
        os.truncate(copy.with_name("book.db-wal"), min(cut, size))
        found = opened(copy)
        if not isinstance(found, LedgerError):
            assert found == hashes[: len(found)], cut
        seen.append(found)
    assert any(isinstance(found, list) for found in seen)


@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_files_beside_it_that_are_deleted(url, tmp_path, gone):
    anchor = tmp_path / "anchor"
    with make(url, 3, anchor=anchor) as ledger:
        ledger.write_anchor(anchor)
        hashes = [entry.hash for entry in ledger.entries()]
        copy = copied(file_of(url), tmp_path / "copy")
    for end in gone:
        copy.with_name(f"book.db{end}").unlink()
    found = opened(copy, anchor=anchor)
    if "-wal" in gone:
        assert isinstance(found, LedgerDamaged)
        assert "behind its anchor" in found.what
        found = opened(copy)
        assert not isinstance(found, LedgerError)
        assert found == hashes[: len(found)]
    else:
        assert found == hashes


def test_random_bytes_in_pages(url, tmp_path):
    """A page that was overwritten is found: when it is opened, when it is read, or by verify."""
    make(url, 40).close()
    path, chance = file_of(url), random.Random(5)
    pages = path.stat().st_size // 4096
    for turn in range(pages):
        copy = copied(path, tmp_path / str(turn))
        with copy.open("r+b") as file:
            file.seek(turn * 4096)
            file.write(chance.randbytes(4096))
        try:
            with Ledger.open(f"sqlite:///{copy}") as ledger:
                found = ledger.verify()
                problem = found.problem
        except LedgerDamaged as error:
            problem = error.what
        assert problem, turn


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short(url, tmp_path, share):
    make(url, 40).close()
    path = file_of(url)
    os.truncate(path, int(path.stat().st_size * share))
    try:
        with Ledger.open(url) as ledger:
            found = ledger.verify()
            problem = found.problem
    except LedgerDamaged as error:
        problem = error.what
    assert problem


def test_a_file_that_is_cut_to_nothing_is_no_new_book(url, tmp_path):
    anchor = tmp_path / "anchor"
    make(url, 3, anchor=anchor).close()
    os.truncate(file_of(url), 0)
    for about in ({"anchor": anchor}, {"create": False}, {}):
        with pytest.raises(LedgerDamaged, match="it is empty: what was charged in it is lost"):
            Ledger.open(url, **about)
    file_of(url).unlink()
    with pytest.raises(LedgerDamaged, match="knows a ledger, and there is none"):
        Ledger.open(url, anchor=anchor)
    with pytest.raises(UnknownName, match="there is no ledger"):
        Ledger.open(url, create=False)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no database at all\n" * 100, "that is a text file, not a book"),
        (bytes(8192), "is damaged"),
        (b"SQLite format 3\0" + bytes(4080), "is damaged"),
    ],
)
def test_a_file_that_is_no_database(url, content, told):
    path = file_of(url)
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LedgerDamaged, match=told):
        Ledger.open(url)
    assert path.read_bytes() == content


def test_a_database_that_is_no_ledger(url):
    path = file_of(url)
    path.touch(mode=0o600)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE guests (name TEXT)")
    connection.close()
    with pytest.raises(LedgerDamaged, match="but no ledger"):
        Ledger.open(url)


# Restored, exchanged


def test_a_copy_that_is_restored_from_a_backup(url, tmp_path):
    """Without an anchor an old copy is a valid book; the anchor tells what is missing."""
    anchor = tmp_path / "anchor"
    make(url, 3, anchor=anchor).close()
    backup = copied(file_of(url), tmp_path / "backup")
    with Ledger.open(url, anchor=anchor) as ledger:
        ask(ledger, "later")
        head = ledger.head
        assert ledger.verify().valid
    shutil.copy2(backup, file_of(url))
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        Ledger.open(url, anchor=anchor)
    with Ledger.open(url) as ledger:
        found = ledger.verify()
        assert found.valid
        assert "not anchored" in str(found)
        told = ledger.verify(anchor=anchor)
        assert not told.valid
        assert "its end was lost" in told.problem
        ask(ledger, "another history")  # as many entries as before, and others
        assert ledger.head.seq == head.seq
        assert "is not what the anchor says it was" in ledger.verify(anchor=anchor).problem
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        Ledger.open(url, anchor=anchor)


def test_two_books_that_are_exchanged(tmp_path):
    first, second = (f"sqlite:///{tmp_path}/{name}.db" for name in ("first", "second"))
    anchors = tmp_path / "anchor 1", tmp_path / "anchor 2"
    with make(first, 5, anchor=anchors[0]) as one, make(second, 1, anchor=anchors[1]) as two:
        ids = one.id, two.id
    a, b = file_of(first), file_of(second)
    a.rename(tmp_path / "aside")
    b.rename(a)
    (tmp_path / "aside").rename(b)
    with pytest.raises(WrongLedger, match="two books were exchanged"):
        Ledger.open(first, anchor=anchors[0])
    with pytest.raises(WrongLedger, match="was asked for"):
        Ledger.open(first, expect=ids[0])
    with Ledger.open(first, expect=ids[1], anchor=anchors[1]) as ledger:
        assert ledger.verify().valid


# Time


def test_a_clock_that_is_set_back_is_a_remark(url, monkeypatch):
    with make(url, 2) as ledger:
        monkeypatch.setattr(sqlite, "now", lambda: "2001-01-01T00:00:00.000000+00:00")
        ask(ledger, "then")
        found = ledger.verify()
        assert found.valid
        assert any("a clock was set back" in remark for remark in found.remarks)
        assert ledger.spent(DATASET).value == 3
        with pytest.raises(LedgerError, match="was answered on 2001-01-01"):
            ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="then")


def test_a_clock_that_runs_ahead_frees_nothing(url, monkeypatch):
    with make(url, 2) as ledger:
        monkeypatch.setattr(sqlite, "now", lambda: "2999-01-01T00:00:00.000000+00:00")
        grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="then")
        grant.start()
        monkeypatch.undo()
        with pytest.raises(AlreadySpent):
            ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="then")
        assert ledger.spent(DATASET).value == 3


def test_python_that_optimises_checks_all_the_same(url):
    """No check of the ledger is an assert."""
    code = (
        "import sys; from sitr.accounting import PureDP; from sitr.ledger import *; from sitr.errors import *\n"
        "ledger = Ledger.open(sys.argv[1]); ledger.create_budget('d', Budget(epsilon=1))\n"
        "ledger.reserve('d', PureDP(epsilon=1), analyst='a', operation='q')\n"
        "try: ledger.reserve('d', PureDP(epsilon=1), analyst='a')\n"
        "except BudgetExceeded: print('refused')\n"
    )
    said = subprocess.run(
        [sys.executable, "-O", "-c", code, url], capture_output=True, text=True, cwd=harness.ROOT, check=True
    )
    assert said.stdout == "refused\n"
