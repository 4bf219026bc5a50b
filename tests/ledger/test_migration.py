"""Books are for ever: those that earlier versions made are opened, verified and gone on with.

The books in `golden` were made by the version of their form: budgets of each kind, shares, blocks, and operations in
every state.
"""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import text

from sitr.accounting import Gaussian, Laplace, PureDP
from sitr.accounting.filters import WHOLE
from sitr.errors import AlreadySpent, BudgetExceeded, LedgerDamaged, NotPermitted
from sitr.ledger import Budget, Ledger, migration
from sitr.ledger.postgres import FOR_ANALYSTS
from sitr.ledger.schema import SCHEMA_VERSION
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared
from tests.ledger.test_verification import found, rewritten, with_body

GOLDEN = Path(__file__).parent / "golden"
ENTRIES = {1: 17, 2: 51}
LATER = ("declared(text, text[])", "has_terms()", "mine()")  # functions that older forms did not have
# What its tables say in units of 2^-60 of the limits, so far as that is not told by the events alone.
TAX = 24031000872920915 / 2**60 * 1.5351343280228522
SPENT = {1: {"clinic": 0.375, "school": 0.00125, "tax": TAX}, 2: {"clinic": 0.25, "school": 1 / 3200}}
# Of form 2, by Rényi order: what those of its budgets had spent as a share, of which none has lost anything.
SHARES = {"tax": 0.20211278413414144, "lab": 0.0318046267014133, "wards": 0.6585400343059744}
# Of form 2: what the events of a budget add up to in pure ε, by hand, and its ε; where one has none, nothing joins.
PURE = {
    "tax": (0.1 + 0.05 + 0.125 + 0.0625 + 0.125, 2.0),
    "tax/analyst/badr": (0.05, 0.5),
    "wards": (0.0625, 1.0),
    "swaps": (0.375, 1.0),
    "idle": (0.0, 3.0),
}


def restored(url, form):
    """Put a golden book where there is none."""
    store = "postgresql" if url.startswith("postgresql") else "sqlite"
    script = (GOLDEN / f"v{form}-{store}.sql").read_text()
    if store == "postgresql":
        shared().restore(url, script)
    else:
        stores.file_of(url).touch(0o600)
        connection = sqlite3.connect(stores.file_of(url))
        connection.executescript(script)
        connection.close()
    return url


@pytest.fixture(params=[1, 2])
def form(request):
    return request.param


@pytest.fixture
def old(fresh_durable, form):
    """The address of a book in an older form."""
    return restored(fresh_durable(), form)


@pytest.fixture
def second(fresh_durable):
    """The address of a book in the second form."""
    return restored(fresh_durable(), 2)


def totals(ledger):
    return {total.name: total for total in ledger.store.all_totals()}


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


# Pure ε joins


def test_pure_epsilon_joins_a_renyi_order_and_counts_all_of_its_history(second):
    with Ledger.open(second) as ledger:
        joined = list(ledger.entries())[-1].record["joined"]
        found = totals(ledger)
        assert joined.keys() == PURE.keys()  # a Gaussian was released of all of the lab
        for name, (epsilon, limit) in PURE.items():
            counted = Fraction(limit) * found[name].whole[0] / WHOLE
            assert (
                Fraction(epsilon) * (1 - Fraction(1, 2**52)) <= counted <= Fraction(epsilon) * (1 + Fraction(1, 2**50))
            )
            assert found[name].version == (3 if name == "tax" else 2)
        with ledger.store.snapshot() as snapshot:
            blocks = {block: used for (name, block), used in snapshot.blocks().items() if name == "wards"}
        assert blocks["north"][0] == 3 * WHOLE // 8
        assert blocks["south"][0] is None  # a Gaussian was released of it
        assert found["wards"].peak[0] is None
        assert [len(found[name].whole) for name in ("lab", "school", "clinic")] == [2, 2, 2]
        shares = {name: max(found[name].used[-2:]) / WHOLE for name in SHARES}  # of the order and of δ-parts
        assert shares == pytest.approx(SHARES)


def test_what_pure_epsilon_still_admits_is_granted_and_the_first_filter_goes_on_counting(second):
    half = PureDP(epsilon=0.5)
    with Ledger.open(second) as ledger:
        assert ledger.remaining("swaps").value == 0.625
        assert ledger.remaining("swaps").measure == "epsilon"
        with ledger.reserve("swaps", half, analyst="amina", operation="new") as grant:
            grant.commit(1)
        total = totals(ledger)["swaps"]
        assert total.whole[1] > WHOLE  # one Rényi order would have refused it
        assert total.whole[0] == 7 * WHOLE // 8
        with pytest.raises(BudgetExceeded, match=r"ε: 0\.500 requested, 0\.125 left"):
            ledger.reserve("swaps", half, analyst="amina")
        with pytest.raises(BudgetExceeded):
            ledger.reserve("swaps", Gaussian(noise_multiplier=1000), analyst="amina")
        ledger.raise_budget("swaps", swaps(epsilon=2.0), reason="more")
        assert ledger.remaining("swaps").value == pytest.approx(1.125)
        ledger.reserve("swaps", PureDP(epsilon=1.0), analyst="amina", operation="newer")
        ledger.refund("newer", reason="never ran")
        assert ledger.remaining("swaps").value == pytest.approx(1.125)
        assert ledger.verify().valid
        assert ledger.statement("swaps").points[-4].kind == "reserve"


def swaps(**limits):
    return Budget(**{"epsilon": 1.0, "delta": 1e-6} | limits, disjoint_by="ward", adjacency="replace_one")


def test_each_block_has_a_way_of_its_own_and_the_whole_one_for_all(second):
    half = PureDP(epsilon=0.5)
    with Ledger.open(second) as ledger:
        ledger.reserve("wards", half, analyst="amina", operation="north", blocks=["north"])  # by pure ε
        assert totals(ledger)["wards"].peak[1] > WHOLE
        for blocks in (["south"], ["north", "south"], []):  # south has the Rényi order alone
            with pytest.raises(BudgetExceeded):
                ledger.reserve("wards", half, analyst="amina", blocks=blocks)
        small = PureDP(epsilon=0.0625)
        ledger.reserve("wards", small, analyst="amina", blocks=["north", "south"])  # each by its own
        with pytest.raises(BudgetExceeded):
            ledger.reserve("wards", small, analyst="amina")  # no way for both
        ledger.refund("north", reason="never ran")
        ledger.reserve("wards", small, analyst="amina")
        assert ledger.verify().valid


def test_what_was_reserved_before_gives_back_what_its_entry_says(second):
    """Which is nothing of the filter that joined since: its own rounding of that event is not on record."""
    with Ledger.open(second) as ledger:
        before = totals(ledger)["tax"].whole
        ledger.refund("t6", reason="never ran")
        after = totals(ledger)["tax"].whole
        assert after[1] < before[1]
        assert (after[0], after[2]) == (before[0], before[2])
        assert ledger.verify().valid


def test_what_was_reserved_before_may_go_on(second):
    with Ledger.open(second) as ledger:
        before = totals(ledger)["tax"]
        with ledger.reserve("tax", PureDP(epsilon=0.125), analyst="amina", operation="t6") as grant:
            grant.commit(1)
        assert totals(ledger)["tax"] == before
        assert ledger.verify().valid


def test_an_event_without_pure_epsilon_ends_that_filter_for_ever(second):
    with Ledger.open(second) as ledger:
        ledger.reserve("swaps", Gaussian(noise_multiplier=1000), analyst="amina", operation="q")
        assert totals(ledger)["swaps"].whole[0] is None
        ledger.refund("q", reason="never ran")
        ledger.raise_budget("swaps", swaps(epsilon=20.0), reason="more")
        assert totals(ledger)["swaps"].whole[0] is None
        assert ledger.remaining("swaps").measure == "rdp"
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


def told_of_joining(change):
    def changed(entries):
        *before, last = entries
        return [*before, with_body(last, joined=change(last.record["joined"]))]

    return changed


def with_tax(**changes):
    return lambda joined: {**joined, "tax": {**joined["tax"], **changes}}


def of_another_limit(joined):
    return with_tax(definition=joined["tax"]["definition"].replace('"epsilon":2.0', '"epsilon":20.0'))(joined)


WRONG = {
    "too little": (with_tax(whole=5), "less pure ε of the budget 'tax'"),
    "nothing of a block": (
        lambda joined: {**joined, "wards": {**joined["wards"], "blocks": {"north": 0, "south": None}}},
        "less pure ε of the budget 'wards'",
    ),
    "a block that has none": (
        lambda joined: {**joined, "wards": {**joined["wards"], "blocks": {"north": WHOLE, "south": 0}}},
        "less pure ε of the budget 'wards'",
    ),
    "another block": (with_tax(blocks={"north": 5}), "other blocks"),
    "less than nothing": (with_tax(whole=-1), "less than nothing"),
    "no whole number": (with_tax(whole=1.0), "no whole number"),
    "another limit": (of_another_limit, "another filter joined"),
    "a budget of another kind": (lambda joined: {**joined, "school": joined["tax"]}, "another filter joined"),
    "a budget that is not there": (lambda joined: {**joined, "none": joined["tax"]}, "lacks something"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_filter_that_joined_is_counted_again(second, what):
    change, problem = WRONG[what]
    Ledger.open(second).close()
    rewritten(second, told_of_joining(change))
    told = found(second)
    assert not told
    assert told.bad_entry == ENTRIES[2] + 1
    assert problem in told.problem


def test_a_filter_joins_once(second):
    Ledger.open(second).close()
    rewritten(second, lambda entries: [*entries, replace(entries[-1], seq=0)])
    assert "another filter joined" in found(second).problem


def test_a_filter_that_counts_more_than_is_due_is_as_good(second):
    Ledger.open(second).close()
    rewritten(second, told_of_joining(with_tax(whole=None)))
    told = found(second)  # of the entries; the totals say what they said
    assert "the running total of the budget 'tax'" in told.problem
    assert told.bad_entry is None


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
