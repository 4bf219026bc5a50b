"""Attacks that once worked, or nearly: on files, on requests, on anchors, and by analysts of PostgreSQL."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import psycopg
import pytest

from sitr.accounting import Laplace, PureDP
from sitr.errors import (
    AlreadySpent,
    InvalidArgument,
    LedgerDamaged,
    LedgerUnavailable,
    NotPermitted,
    OperationTaken,
    SitrError,
    UnknownName,
)
from sitr.ledger import Budget, Ledger, sqlite
from sitr.ledger.anchor import read_marks
from sitr.ledger.entry import canonical, sha256
from sitr.ledger.request import Request
from sitr.release import Release
from tests.ledger.tampering import found, rewritten, tamper, with_body
from tests.ledger.test_separation import EVENT, Team, body


@pytest.fixture
def team(tmp_path):
    from tests.ledger import stores

    return Team(stores.fresh("postgresql", tmp_path)())


@pytest.fixture
def path(tmp_path):
    """A book in SQLite with one charge of a quarter."""
    path = tmp_path / "book.db"
    with opened(path) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        ask(ledger, "first")
    return path


def opened(path, **about):
    return Ledger.open(f"sqlite:///{path}", **about)


def ask(ledger, operation, event=EVENT):
    with ledger.reserve("clinic", event, analyst="amina", operation=operation) as grant:
        grant.commit("a")


# Files


def test_a_file_that_is_replaced_while_it_is_open(path, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    with opened(path) as ledger:
        ask(ledger, "second")
        os.replace(copy, path)
        for act in (lambda: ask(ledger, "third"), lambda: ledger.spent("clinic"), lambda: ledger.head):
            with pytest.raises(LedgerDamaged, match="put back to an older copy, or exchanged"):
                act()
        assert "put back to an older copy" in ledger.verify().problem


def test_a_file_that_is_removed_while_it_is_open(path):
    with opened(path) as ledger:
        path.unlink()
        with pytest.raises(LedgerDamaged, match="put back to an older copy, or exchanged"):
            ask(ledger, "second")


def test_a_book_that_is_put_back_in_place(path, tmp_path):
    """The same file, with the bytes of an older one: the process that knows more refuses it."""
    before = path.read_bytes()
    anchor = tmp_path / "anchor"
    with opened(path) as ledger:
        ledger.write_anchor(anchor)
        ask(ledger, "second")
        ledger.write_anchor(anchor)
        ledger.store.close()
        path.write_bytes(before)
        with pytest.raises(LedgerDamaged, match="put back to an older copy"):
            ask(ledger, "third")
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        opened(path, anchor=anchor)


def test_another_book_at_the_same_place(path, tmp_path):
    other = tmp_path / "other.db"
    with opened(other) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=5.0))
    with opened(path) as ledger:
        ask(ledger, "second")
        ledger.store.close()
        path.write_bytes(other.read_bytes())
        with pytest.raises(LedgerDamaged, match="or exchanged"):
            ask(ledger, "third")


def test_a_second_name_of_a_file(path, tmp_path):
    os.link(path, tmp_path / "second.db")
    for name in ("book.db", "second.db"):
        with pytest.raises(LedgerUnavailable, match="has a second name"):
            opened(tmp_path / name)
    (tmp_path / "second.db").unlink()
    assert opened(path).verify()


def test_the_name_under_which_a_book_was_made_goes(path):
    """A process that died between giving a new book its name and taking the old one away."""
    beside = path.with_name(f".{path.name}.{'0123' * 8}")
    os.link(path, beside)
    assert opened(path).verify()
    assert not beside.exists()


def test_a_symbolic_link_is_the_file_that_it_names(path, tmp_path):
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with opened(link) as ledger:
        ask(ledger, "second")
        with ledger.reserve("clinic", EVENT, analyst="amina", operation="large") as grant:
            grant.commit(b"x" * (2**20 + 1))
    assert [name.name for name in link.parent.iterdir()] == ["link.db"]
    assert opened(path).verify()


@pytest.mark.parametrize("log", ["-wal", "-shm", "-journal"])
def test_a_log_without_its_book(path, log):
    path.unlink()
    path.with_name(path.name + log).write_bytes(b"")
    with pytest.raises(LedgerDamaged, match="its log is there, and the file itself is gone"):
        opened(path)


@pytest.mark.parametrize(
    ("mount", "told"),
    [
        ("server:/x {folder} nfs4 rw 0 0", "network file system"),
        ("user@host {folder} fuse.sshfs rw 0 0", "network file system"),
        ("/dev/sda1 {folder}/book.db ext4 rw 0 0", "mounted as a file of its own"),
    ],
)
def test_disks_on_which_locks_do_not_hold(path, tmp_path, monkeypatch, mount, told):
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/root / ext4 rw 0 0\n" + mount.format(folder=tmp_path) + "\n")
    monkeypatch.setattr(sqlite, "MOUNTS", mounts)
    with pytest.raises(LedgerUnavailable, match=told):
        opened(path)
    mounts.write_text(mounts.read_text() + f"/dev/sdb1 {tmp_path} ext4 rw 0 0\n" if "fuse" in mount else "")
    assert opened(path).verify()


def test_a_book_that_went_on_from_an_older_copy(path):
    """Put back in place, and longer again by now: what this process knows is not in it."""
    before = path.read_bytes()
    with opened(path) as ledger:
        ask(ledger, "second")
        ledger.store.close()
        path.write_bytes(before)
        with opened(path) as other:
            for turn in range(2):
                ask(other, f"other {turn}", PureDP(epsilon=0.01))
        with pytest.raises(LedgerDamaged, match="put back to an older copy"):
            ask(ledger, "third", PureDP(epsilon=0.01))


# Requests


def test_blocks_of_two_kinds_in_one_release(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0, disjoint_by="hospital"))
    ledger.create_budget("lab", Budget(epsilon=1.0, disjoint_by="month"))
    ledger.create_budget("tax", Budget(epsilon=1.0))
    with pytest.raises(InvalidArgument, match="hospital and of month"):
        ledger.reserve(["clinic", "lab"], EVENT, analyst="amina", blocks=["north"])
    ledger.reserve(["clinic", "lab"], EVENT, analyst="amina")
    for block in ("north", "south"):  # of no kind in one, it is all of that one
        ledger.reserve(["clinic", "tax"], EVENT, analyst="amina", blocks=[block])
    assert [ledger.spent(name).value for name in ("clinic", "lab", "tax")] == [0.5, 0.25, 0.5]
    assert ledger.verify()


def test_a_purpose_that_looks_like_an_analysts_share(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.create_budget("clinic", Budget(epsilon=0.5), purpose="a/analyst/b")
    ledger.reserve("clinic", EVENT, analyst="amina", purpose="a/analyst/b")
    assert ledger.spent("clinic", purpose="a/analyst/b").value == 0.25


FORGED = {
    "a share as a dataset": {"datasets": ["clinic/analyst/amina"], "budgets": {}},
    "a dataset twice": {"datasets": ["clinic", "clinic"]},
    "a block twice": {"blocks": ["a", "a"]},
    "true for a number": {"budgets": {"clinic": {"units": [True, 0], "version": 1}}},
    "a text for a number": {"budgets": {"clinic": {"units": ["1", 0], "version": 1}}},
    "no dataset": {"datasets": [], "budgets": {}},
}


@pytest.mark.parametrize("what", FORGED)
def test_requests_that_are_chained_anew(path, what):
    def change(entries):
        return [with_body(e, **FORGED[what]) if (e.kind, e.operation) == ("reserve", "first") else e for e in entries]

    rewritten(f"sqlite:///{path}", change)
    assert found(f"sqlite:///{path}").bad_entry == 3


@pytest.mark.parametrize("limit", [("pure", {"epsilon": 100.0, "delta": 0.0}), ("zcdp", {"rho": 1000.0, "delta": 0.0})])
def test_a_filter_that_allows_more_than_is_promised(path, limit):
    kind, limits = limit

    def change(entries):
        for entry in entries:
            if entry.kind == "budget":
                definition = json.loads(entry.record["definition"])
                entry = with_body(entry, definition=canonical({**definition, "filter": {"type": kind, **limits}}))
            yield entry

    rewritten(f"sqlite:///{path}", change)
    assert "allows more than it promises" in found(f"sqlite:///{path}").problem


def test_a_body_that_is_nested_too_deeply(path):
    deep = '{"a":' + "[" * 5000 + "]" * 5000 + "}"
    rewritten(
        f"sqlite:///{path}",
        lambda entries: [replace(e, body=deep) if e.kind == "start" else e for e in entries],
    )
    assert found(f"sqlite:///{path}").bad_entry == 4


def test_what_an_answer_is_cannot_be_changed(path):
    tamper(f"sqlite:///{path}", "UPDATE answer SET media = 'application/json'")
    assert not found(f"sqlite:///{path}")
    with opened(path) as ledger, pytest.raises(LedgerDamaged):
        ledger.answer("first", analyst="amina")


@pytest.mark.parametrize("what", ["/dev/zero", "fifo"])
def test_an_answer_is_read_from_a_file_that_has_an_end(path, tmp_path, what):
    if what == "fifo":
        what = str(tmp_path / "fifo")
        os.mkfifo(what)
    tamper(f"sqlite:///{path}", f"UPDATE answer SET content = NULL, path = '{what}'")
    assert "was changed" in found(f"sqlite:///{path}").problem


def test_a_second_row_that_says_which_book_it_is(path):
    tamper(f"sqlite:///{path}", "INSERT INTO book VALUES ('another', 1)")
    with pytest.raises(LedgerDamaged, match="says twice which book it is"):
        opened(path)


def test_a_release_of_another_event_is_found_wherever_it_is(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    paid, dear = Release(1, None, Laplace(noise_multiplier=100)), Release(1, None, Laplace(noise_multiplier=0.01))
    with ledger.reserve("clinic", paid.event, analyst="amina") as grant:
        for answer in (dear, [dear], {"a": [dear]}, np.array([dear], dtype=object), replace(paid, value=dear)):
            with pytest.raises(InvalidArgument, match="was paid for"):
                grant.commit(answer)
        with pytest.raises(InvalidArgument, match="cannot be kept"):
            grant.commit({1: "a", "1": "b"})
        grant.commit({"a": paid})


# Anchors


def test_an_anchor_that_knows_an_entry_in_two_ways(path, tmp_path):
    """Two copies that went on apart, and both wrote to the anchor by hand."""
    anchor = tmp_path / "anchor"
    with opened(path) as ledger:
        ledger.write_anchor(anchor)
        mark = read_marks(anchor)[0]
        forged = {"at": mark.at, "hash": "0" * 64, "ledger": mark.ledger, "seq": mark.head.seq}
        anchor.write_text(canonical(forged) + "\n" + anchor.read_text())
        assert not ledger.verify(anchor=anchor)
        with pytest.raises(LedgerDamaged, match="behind its anchor"):
            ledger.write_anchor(anchor)
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        opened(path, anchor=anchor)


@pytest.mark.parametrize("line", ['{"seq":1e400}', "[" * 100_000, '{"seq":"x"}', "\x00", '{"ledger":1}'])
def test_lines_of_an_anchor_that_are_none(path, tmp_path, line):
    anchor = tmp_path / "anchor"
    with opened(path) as ledger:
        ledger.write_anchor(anchor)
        anchor.write_text(anchor.read_text() + line + "\n")
        assert ledger.verify(anchor=anchor)


def test_an_anchor_that_was_lost_is_not_begun_anew(path, tmp_path):
    for anchor in (tmp_path / "missing", tmp_path / "empty"):
        (tmp_path / "empty").write_bytes(b"")
        with pytest.raises(LedgerDamaged, match="is missing or empty"):
            opened(path, anchor=anchor)


# Addresses


@pytest.mark.parametrize(
    "url", ["amina:s3cret@host/db", "postgresql:/amina:s3cret@host/db", "postgresql://amina:s3@cret@host/db"]
)
def test_a_password_is_in_no_message(url):
    with pytest.raises(SitrError) as caught:
        Ledger.open(url)
    told = f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
    assert "s3" not in told
    assert "cret" not in told


def test_a_driver_says_nothing_through_the_context_of_an_error(team):
    with psycopg.connect(team.owner, autocommit=True) as connection:
        connection.execute("ALTER TABLE sitr.budget RENAME TO hidden")
    with pytest.raises(SitrError) as caught:
        team.ledger.spent("clinic")
    assert caught.value.__context__ is None


# Analysts of PostgreSQL


@pytest.mark.parametrize("gateway", [True, False])
def test_a_cheap_reservation_by_hand_is_not_a_dear_grant(team, gateway):
    """The digest of a dear request on a cheap event, before the program that is trusted asks for it."""
    dear = Request("clinic", Laplace(noise_multiplier=1.5), team.amina, "q", None, (), None)
    cheap = json.loads(body(clinic={"units": [2**40, 0]})) | {
        "event": PureDP(epsilon=1e-6).to_dict(),
        "request": dear.digest,
    }
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, json.dumps(cheap)])
    with team.ledger if gateway else team.open(team.amina) as ledger, pytest.raises(OperationTaken):
        ledger.reserve("clinic", dear.event, analyst=team.amina, operation="q")


def test_a_reservation_by_hand_that_is_too_cheap_is_not_gone_on_with(team):
    asked = Request("clinic", EVENT, team.amina, "q", None, (), None)
    cheap = {**by_hand(), **asked.about, "request": asked.digest}
    cheap["budgets"] = {"clinic": {"units": [1, 0], "version": 1}}
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, json.dumps(cheap)])
    for ledger in (team.ledger, team.open(team.amina)):
        with pytest.raises(AlreadySpent, match="charged otherwise"):
            ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q")


def by_hand(**changes):
    return {**json.loads(body(clinic={"units": [2**40, 0]})), **changes}


POISON = {
    "a dataset that is null": by_hand(datasets=["clinic", None]),
    "a block that is null": by_hand(blocks=[None]),
    "a block of two lines": by_hand(blocks=["a\nspent 0 %"]),
    "a purpose of two lines": by_hand(purpose="a\nb"),
    "no purpose": {k: v for k, v in by_hand().items() if k != "purpose"},
    "no event": {k: v for k, v in by_hand().items() if k != "event"},
    "something more": by_hand(more=1),
    "a share as a dataset": by_hand(datasets=["clinic/analyst/amina"]),
    "a dataset twice": by_hand(datasets=["clinic", "clinic"]),
    "a block twice": by_hand(blocks=["a", "a"]),
    "a number for a block": by_hand(blocks=[1]),
    "a text for a cost": by_hand(budgets={"clinic": {"units": ["10", 0], "version": 1}}),
    "true for a cost": by_hand(budgets={"clinic": {"units": [True, 0], "version": 1}}),
    "an event that is none": by_hand(event="laplace"),
    "a purpose that is a list": by_hand(purpose=["x"]),
}


RAW = {
    "a cost with an exponent": (str(2**40), "1.00000000000000001e17"),
    "a number of thousands of digits": ('"event": {', '"event": {"x": ' + "9" * 5000 + ", "),
    "an event that is nested deeply": ('"event": {', '"event": {"x": ' + "[" * 1200 + "]" * 1200 + ", "),
}


@pytest.mark.parametrize("what", [*POISON, *RAW])
def test_an_entry_by_hand_cannot_spoil_the_book(team, what):
    team.ledger.create_budget("clinic", Budget(epsilon=0.5), analyst=team.amina)
    if what in POISON:
        text = json.dumps(POISON[what])
    else:
        text = json.dumps(by_hand()).replace(*RAW[what])
    with pytest.raises(psycopg.Error):
        team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, text])
    assert team.ledger.verify()


def test_what_an_analyst_states_falsely_is_named_and_hides_nothing_else(team):
    text = json.dumps(by_hand(event={"schema_version": 1, "type": "no such event"}))
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, text])
    team.as_amina("SELECT sitr.reserve('p', %s, %s)", [team.amina, json.dumps(by_hand())])
    ask(team.ledger, "honest")
    told = team.ledger.verify()
    assert told.bad_entry == 3
    assert len(told.others) == 1
    assert "entry 4" in told.others[0]
    assert "less than its event costs" in told.others[0]
    statement = team.ledger.statement("clinic")
    assert statement.unreadable == 1
    assert "UNREADABLE" in str(statement)
    team.ledger.refund("q", reason="no event")


def test_a_number_that_json_cannot_hold_is_an_event_that_cannot_be_read(team):
    event = json.dumps(EVENT.to_dict()).replace("0.25", "1e400")
    text = json.dumps(by_hand(event="here")).replace('"here"', event)
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, text])
    assert team.ledger.verify().bad_entry == 3
    assert team.ledger.statement("clinic").unreadable == 1


def test_a_bad_answer_hides_no_lost_end(team, tmp_path):
    file, anchor = tmp_path / ("0" * 64), tmp_path / "anchor"
    file.write_bytes(b"x")
    team.ledger.answers = tmp_path
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, body(clinic={"units": [2**58, 0]})])
    team.as_amina("SELECT sitr.start('q', %s, %s)", [team.amina, json.dumps({"holder": sha256(b"h")})])
    done = json.dumps({"holder": "h", "sha256": "0" * 64, "bytes": 1, "media": "text/plain"})
    commit = "SELECT sitr.commit('q', %s, 'h', %s, 'text/plain', NULL, %s)"
    with pytest.raises(psycopg.Error):
        team.as_amina(commit, [team.amina, done, f"{file}\nvalid: 7 entries"])
    team.as_amina(commit, [team.amina, done, file.name])
    team.ledger.write_anchor(anchor)
    mark = read_marks(anchor)[0]
    lost = {"at": mark.at, "hash": "0" * 64, "ledger": mark.ledger, "seq": 999}
    anchor.write_text(anchor.read_text() + canonical(lost) + "\n")
    told = team.ledger.verify(anchor=anchor)
    assert "its end was lost" in told.problem
    assert any("was changed" in other for other in told.others)


def test_nobody_commits_in_the_place_of_who_started(team):
    grant = team.ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q")
    grant.start()
    ((seen,),) = team.as_amina("SELECT body FROM sitr.operation('q') WHERE kind = 'start'")
    holder = json.loads(seen)["holder"]
    forged = {"holder": holder, "sha256": sha256(b"x"), "bytes": 1, "media": "text/plain"}
    with pytest.raises(psycopg.Error, match="not started by this holder"):
        team.as_amina(
            "SELECT sitr.commit('q', %s, %s, %s, 'text/plain', 'x', NULL)", [team.amina, holder, json.dumps(forged)]
        )
    grant.commit("the answer")
    assert team.ledger.verify()


def test_the_hash_of_anothers_entry_is_not_shown(team):
    team.ledger.reserve("clinic", EVENT, analyst=team.badr, operation="q")
    assert team.as_amina("SELECT body, hash FROM sitr.operation('q')") == [("{}", "")]


def test_a_function_of_the_same_name_does_not_run_as_the_owner(team):
    """Where analysts may create in `public`, as in old databases."""
    database = team.owner.split("@/")[1].split("?")[0]
    from tests.ledger.cluster import shared

    shared().sql("GRANT CREATE ON SCHEMA public TO PUBLIC", database)
    nine = ", ".join(["text"] * 9)
    team.as_amina(
        f"CREATE FUNCTION public.concat_ws({nine}) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$"
    )
    team.ledger.create_budget("other", Budget(epsilon=1.0))
    with psycopg.connect(team.owner, autocommit=True) as connection:  # an owner without our settings
        connection.execute("SELECT sitr.append_entry('migrate', NULL, NULL, '{}')")
    assert team.ledger.verify()


@pytest.mark.parametrize("role", ["public", "PUBLIC", "x" * 64])
def test_some_names_are_no_role(team, role):
    with pytest.raises(InvalidArgument, match="is no role"):
        team.ledger.allow(role)


@pytest.mark.parametrize("role", ["a%b", "a :b", 'a"b', "Layla"])
def test_odd_names_are_roles(team, role):
    quoted = '"' + role.replace('"', '""') + '"'
    team.sql(team.owner, f"DO $$ BEGIN CREATE ROLE {quoted} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
    team.ledger.allow(role)


def test_a_schema_that_others_made_is_not_used(tmp_path):
    from tests.ledger import stores

    url = stores.fresh("postgresql", tmp_path)()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA sitr")
    with pytest.raises(NotPermitted, match="a schema sitr that is no ledger"):
        Ledger.open(url)
    with pytest.raises(UnknownName):
        Ledger.open(url, create=False)
