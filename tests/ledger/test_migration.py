"""Books are for ever: those that earlier versions made are opened, verified and gone on with.

The books in `golden` were made by the version of their form: budgets of each kind, shares, blocks, and operations in
every state.
"""

import json
import sqlite3

import pytest
from sqlalchemy import NullPool, create_engine, text

from sitr.accounting import Laplace, PureDP
from sitr.errors import AlreadySpent, LedgerDamaged, NotPermitted
from sitr.ledger import Budget, Ledger, migration
from sitr.ledger.postgres import FOR_ANALYSTS
from sitr.ledger.schema import SCHEMA_VERSION
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared
from tests.ledger.old_books import ENTRIES, GOLDEN, restored

LATER = ("declared(text, text[])", "has_terms()", "mine()")  # functions that older forms did not have
# What its tables say in units of 2^-60 of the limits, so far as that is not told by the events alone.
TAX = 24031000872920915 / 2**60 * 1.5351343280228522
SPENT = {1: {"clinic": 0.375, "school": 0.00125, "tax": TAX}, 2: {"clinic": 0.25, "school": 1 / 3200}}


@pytest.fixture(params=[1, 2])
def form(request):
    return request.param


@pytest.fixture
def old(fresh_durable, form):
    """The address of a book in an older form."""
    return restored(fresh_durable(), form)


def test_an_old_book_says_what_it_said(old, form):
    with Ledger.open(old) as ledger:
        told, last = ledger.verify(), ENTRIES[form] + 1
        assert told.valid, told
        assert told.head.seq == last  # what it had, and that it was brought to the form of today
        assert {name: ledger.spent(name).value for name in SPENT[form]} == pytest.approx(SPENT[form], rel=1e-6)
        assert ledger.store.identity().schema_version == SCHEMA_VERSION
        entries = list(ledger.entries())
        assert entries[-1].record["from"] == form
        assert all("cost" in due for entry in entries for due in entry.record.get("budgets", {}).values())
    with Ledger.open(old) as ledger:
        assert ledger.head.seq == last


def test_a_book_of_the_first_form_goes_on(fresh_durable):
    with Ledger.open(restored(fresh_durable(), 1)) as ledger:
        assert all("nonce" not in entry.record for entry in list(ledger.entries())[:17])
        assert ledger.answer("q-1", analyst="amina").value == {"n": 41}
        reserved = {"event": PureDP(epsilon=0.125), "analyst": "amina", "operation": "q-3"}
        with ledger.reserve("clinic", **reserved) as grant:  # reserved then, without a nonce
            grant.commit("a")
        with pytest.raises(AlreadySpent):
            ledger.reserve("tax", Laplace(noise_multiplier=50), analyst="badr", operation="q-5")
        ledger.reserve("clinic", PureDP(epsilon=0.125), analyst="badr", operation="q-6")
        ledger.raise_budget("clinic", Budget(epsilon=3.0, disjoint_by="ward"), reason="third year")
        ledger.refund("q-6", reason="never ran")
        assert ledger.spent("clinic").value == pytest.approx(SPENT[1]["clinic"])
        assert ledger.verify().valid


# Books that do not hold


def changed(url, statement):
    """Change a book of an older form, which the ledger has not opened yet."""
    if url.startswith("postgresql"):
        shared().sql(f"ALTER TABLE sitr.entry DISABLE TRIGGER ALL; {statement}", database_of(url))
        return
    connection = sqlite3.connect(stores.file_of(url))
    connection.executescript(f"DROP TRIGGER entry_no_update; {statement.replace('sitr.', '')}")
    connection.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE sitr.budget SET cost = cost - 1 WHERE name = 'tax'", "the running total of the budget 'tax'"),
        ("UPDATE sitr.block SET cost = cost + 1", "totals of blocks"),
        ("UPDATE sitr.entry SET body = replace(body, '0.1', '0.01') WHERE operation = 't1'", "was changed"),
    ],
)
def test_a_book_that_does_not_hold_gains_nothing_and_is_told_as_before(second, statement, problem):
    changed(second, statement)
    with Ledger.open(second) as ledger:
        assert "joined" not in list(ledger.entries())[-1].record
        assert {len(total.whole) for total in ledger.store.all_totals()} == {2}
        assert problem in ledger.verify().problem


def test_a_book_that_does_not_hold_after_it_was_brought_forward_stays_as_it_was(second, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(migration, "_write", lambda *_: None)
        with pytest.raises(LedgerDamaged, match=r"could not be brought to form 3(.|\n)*nothing was changed"):
            Ledger.open(second)
    with Ledger.open(second) as ledger:
        assert [entry.kind for entry in ledger.entries()].count("migrate") == 1
        assert ledger.verify().valid


def test_entries_are_read_in_their_order_whatever_the_order_of_their_rows(tmp_path, form):
    engine = create_engine(restored(f"sqlite:///{tmp_path / 'book.db'}", form), poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text("PRAGMA reverse_unordered_selects = ON"))
        assert connection.execute(text("SELECT seq, body FROM entry")).first().seq == ENTRIES[form]
        reading = migration._read(connection)
    assert not reading.wrong
    assert reading.head.seq == ENTRIES[form]


# Who brings it forward


def test_the_owner_brings_a_book_forward_and_analysts_are_told_so(tmp_path, form):
    url = restored(stores.fresh("postgresql", tmp_path)(), form)
    analyst = f"late_{form}_{database_of(url)}"
    allowed = [f"EXECUTE ON FUNCTION sitr.{function}" for function in FOR_ANALYSTS if function not in LATER]
    granted = "; ".join(f"GRANT {right} TO {analyst}" for right in ["USAGE ON SCHEMA sitr", *allowed])
    shared().sql(f"CREATE ROLE {analyst} LOGIN; {granted}", database_of(url))
    with pytest.raises(NotPermitted, match=rf"has form {form}(.|\n)*let its owner open it"):
        Ledger.open(shared().url(database_of(url), analyst))
    Ledger.open(url).close()
    with Ledger.open(shared().url(database_of(url), analyst)) as ledger:
        with ledger.reserve("clinic", PureDP(epsilon=0.125), analyst=analyst, operation="new") as grant:
            grant.commit("a")
        assert ledger.answer("new", analyst=analyst).value == "a"
        assert ledger.terms("clinic", ["clinic"]) == {}  # by a function that came later, and was granted with the form
        assert not ledger.has_terms


def test_tables_that_were_brought_forward_are_those_of_a_new_book(fresh_durable, form):
    shapes = [shape(url) for url in (restored(fresh_durable(), form), fresh_durable())]
    assert shapes[0] == shapes[1]


def shape(url):
    """The columns, rules and functions of a book."""
    with Ledger.open(url) as ledger, ledger.store.connection() as connection:
        if not url.startswith("postgresql"):
            made = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
            return sorted(" ".join(row.sql.split()) for row in connection.execute(text(made)))
        columns = (
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
            "WHERE table_schema = 'sitr' ORDER BY table_name, ordinal_position"
        )
        rules = (
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'sitr'::regnamespace ORDER BY 1, 2"
        )
        functions = (
            "SELECT oid::regprocedure::text, prosrc FROM pg_proc WHERE pronamespace = 'sitr'::regnamespace ORDER BY 1"
        )
        return [[tuple(row) for row in connection.execute(text(asked))] for asked in (columns, rules, functions)]


def test_golden_books_are_as_they_were_made(form):
    """Nobody brought one of them forward by mistake."""
    connection = sqlite3.connect(":memory:")
    connection.executescript((GOLDEN / f"v{form}-sqlite.sql").read_text())
    assert connection.execute("SELECT schema_version FROM book").fetchall() == [(form,)]
    assert connection.execute("SELECT max(seq) FROM entry").fetchall() == [(ENTRIES[form],)]
    bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM entry WHERE kind = 'reserve'")]
    assert all({"cost", "delta", "version"} == set(due) for body in bodies for due in body["budgets"].values())
    connection.close()
