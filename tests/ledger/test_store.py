"""What stores have in common: pages of entries, one moment for all that is read, and no step on what was changed."""

import pytest
from sqlalchemy import delete, event, insert

from sitr.accounting import PureDP
from sitr.errors import LedgerUnavailable
from sitr.ledger import Budget, Ledger, schema
from sitr.ledger.entry import Head
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Replay
from sitr.ledger.store import PAGE_SIZE, Stale, Unfit
from sitr.ledger.totals import Total

ONE = PureDP(epsilon=1.0)


def _rows(last):
    """Entries from the second to the last, in the order in which a table should not tell them."""
    return [
        {"seq": seq, "at": "", "kind": "open", "operation": None, "analyst": None, "body": "{}", "hash": str(seq)}
        for seq in range(last, 1, -1)
    ]


def test_a_snapshot_tells_entries_in_their_order_however_they_were_stored(ledger):
    with ledger.store.transaction() as connection:
        connection.execute(insert(schema.entry), _rows(9))
    with ledger.store.snapshot() as snapshot:
        assert [entry.seq for entry in snapshot.entries()] == list(range(1, 10))


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_every_entry_is_read_once_and_in_order_however_many_pages_there_are(beyond):
    ledger = Ledger.open("memory://")
    last = 2 * PAGE_SIZE + beyond
    with ledger.store.transaction() as connection:
        connection.execute(insert(schema.entry), _rows(last))
    assert [entry.seq for entry in ledger.store.entries()] == list(range(1, last + 1))
    assert [entry.seq for entry in ledger.store.entries(after=last - 3)] == [last - 2, last - 1, last]
    assert ledger.store.heads([2, 5, last + 1]) == {Head(2, "2"), Head(5, "5")}


@pytest.mark.parametrize("place", ["memory://", "sqlite:///{}/book.db"])
def test_nothing_is_told_in_the_order_in_which_a_table_happens_to_give_it(place, tmp_path):
    """SQLite can be told to turn whatever no statement puts in order."""
    turned = "PRAGMA reverse_unordered_selects = ON"
    ledger = Ledger.open(place.format(tmp_path))
    store = ledger.store
    event.listen(store.engine, "connect", lambda driver, _: driver.execute(turned))
    ledger.close()
    store._with_driver(lambda driver: driver.execute(turned))  # in memory, the connection is the one before
    for name in ("a", "b", "c"):
        ledger.create_budget(name, Budget(epsilon=8))
    with ledger.reserve("b", ONE, analyst="amina", operation="q") as grant:
        grant.commit(1)
    places = list(range(1, 8))
    assert [entry.seq for entry in store.entries()] == places
    with store.snapshot() as snapshot:
        assert [entry.seq for entry in snapshot.entries()] == places
        assert [total.name for total in snapshot.totals()] == ["a", "b", "c"]
    assert [total.name for total in store.totals(["c", "a", "b"])] == ["a", "b", "c"]
    with store.transaction() as connection:
        assert [total.name for total in store._totals(connection, ["c", "a", "b"])] == ["a", "b", "c"]
        assert [entry.kind for entry in store._operation(connection, "q")] == ["reserve", "start", "commit"]
    assert [entry.kind for entry in store.operation("q")] == ["reserve", "start", "commit"]


def test_a_book_of_this_form_is_not_brought_forward_again(ledger):
    before = list(ledger.entries())
    ledger.store.migrate()
    assert list(ledger.entries()) == before


def test_what_is_read_together_is_of_one_moment(fresh_durable):
    url = fresh_durable()
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        ledger.create_budget("clinic", Budget(epsilon=8, disjoint_by="ward"))
        with other.store.snapshot() as snapshot:
            entries = list(snapshot.entries())
            ledger.reserve("clinic", ONE, analyst="amina", blocks=["a"])
            assert [total.used for total in snapshot.totals()] == [(0, 0)]
            assert snapshot.blocks() == {}
            assert len(list(snapshot.entries())) == len(entries)
        assert [total.used[0] for total in other.store.all_totals()] == [2**57]


def test_whoever_reads_no_further_leaves_nothing_open(fresh_durable):
    """Of many entries one is read, as by whoever finds a fault; then the book goes on, and its tables can change."""
    with Ledger.open(fresh_durable()) as ledger:
        with ledger.store.transaction() as connection:
            for _ in range(1100):  # more than are fetched at once
                ledger.store._append(connection, "migrate", None, None, "{}")
        with ledger.store.snapshot() as snapshot:
            assert next(snapshot.entries()).seq == 1
        ledger.create_budget("school", Budget(epsilon=8))
        with ledger.store.transaction() as connection:
            schema.block.drop(connection)


def _written_and_failed(store):
    with store.transaction() as connection:
        store._append(connection, "migrate", None, None, "{}")
        raise ZeroDivisionError


def test_a_step_that_fails_is_undone_and_the_next_one_is_made(clinic):
    """In every store: nothing of it is left, and no transaction is left open."""
    before = list(clinic.store.entries())
    with pytest.raises(Unfit):
        clinic.store.create_budget(Total("clinic", 1, "{}", (0, 0), (0, 0)), "{}")
    with pytest.raises(ZeroDivisionError):
        _written_and_failed(clinic.store)
    assert list(clinic.store.entries()) == before
    clinic.create_budget("school", Budget(epsilon=8))
    assert len(list(clinic.store.entries())) == len(before) + 1


def test_nothing_is_given_back_to_a_block_that_is_lost(ledger):
    """It would have used less than nothing, and could be charged for more than its limit."""
    ledger.create_budget("clinic", Budget(epsilon=8, disjoint_by="ward"))
    ledger.reserve("clinic", ONE, analyst="amina", operation="q", blocks=["a"])
    charges = Replay.of(ledger.entries()).refunds("q")
    with ledger.store.transaction() as connection:
        connection.execute(delete(schema.block))
    with pytest.raises(LedgerUnavailable):
        ledger.store.refund("q", "{}", charges)
    with ledger.store.snapshot() as snapshot:
        assert snapshot.blocks() == {}


def test_a_budget_that_is_raised_leaves_the_blocks_of_others_alone(ledger):
    for name in ("clinic", "school"):
        ledger.create_budget(name, Budget(epsilon=8, disjoint_by="ward"))
        ledger.reserve(name, ONE, analyst="amina", blocks=["a", name])
    with ledger.store.snapshot() as snapshot:
        before = snapshot.blocks()
    ledger.raise_budget("clinic", Budget(epsilon=16, disjoint_by="ward"), reason="more")
    with ledger.store.snapshot() as snapshot:
        after = snapshot.blocks()
    assert after == {key: (used[0] // 2, 0) if key[0] == "clinic" else used for key, used in before.items()}


def test_budgets_are_told_by_name_in_order_and_no_others(clinic):
    for name in ("tax", "school"):
        clinic.create_budget(name, Budget(epsilon=8))
    assert [total.name for total in clinic.store.all_totals()] == ["clinic", "school", "tax"]
    assert [total.name for total in clinic.store.totals(["tax", "none", "clinic"])] == ["clinic", "tax"]
    assert [total.version for total in clinic.store.all_totals()] == [1, 1, 1]


def test_a_step_on_a_budget_that_was_changed_meanwhile_changes_nothing(clinic):
    (known,) = clinic.store.totals(["clinic"])
    clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    (charge,) = Replay.of(clinic.entries()).refunds("q")
    clinic.raise_budget("clinic", Budget(epsilon=16), reason="more")
    before = clinic.store.all_totals()
    definition = Keeper.of(Budget(epsilon=32)).to_json()
    with pytest.raises(Stale):
        clinic.store.raise_budget(known, definition, "{}", lambda used: used)
    with pytest.raises(Stale):
        clinic.store.refund("q", "{}", [charge])
    with pytest.raises(Unfit):
        clinic.store.create_budget(known._replace(body=definition), "{}")
    with pytest.raises(Unfit):
        clinic.store.refund("none", "{}", [])
    assert clinic.store.all_totals() == before
    assert [total.version for total in before] == [2]
    assert clinic.verify().valid


def test_a_refund_is_of_its_own_budgets_and_blocks(ledger):
    for name in ("clinic", "school"):
        ledger.create_budget(name, Budget(epsilon=8, disjoint_by="ward"))
        for blocks in (["a"], ["b"], []):
            ledger.reserve(name, ONE, analyst="amina", operation=f"{name}{blocks}", blocks=blocks)
    ledger.refund("clinic[]", reason="not run")
    ledger.refund("clinic['a']", reason="not run")
    assert [ledger.spent(name).value for name in ("clinic", "school")] == [1, 2]
    ledger.refund("clinic['b']", reason="not run")
    assert [ledger.spent(name).value for name in ("clinic", "school")] == [0, 2]
    assert [entry.analyst for entry in ledger.entries() if entry.kind == "refund"] == ["amina"] * 3
    assert ledger.verify().valid


def test_of_questions_that_are_alike_the_latest_of_this_analyst_is_found(clinic):
    for operation, analyst in (("first", "amina"), ("latest", "amina"), ("other", "badr")):
        with clinic.reserve("clinic", ONE, analyst=analyst, operation=operation, request={"q": 1}) as grant:
            grant.commit("a")
    digest = next(entry.record["request"] for entry in clinic.entries() if entry.operation == "first")
    assert clinic.store.reserved("amina", digest, 100) == "latest"
    assert clinic.store.reserved("badr", digest, 100) == "other"
    assert clinic.store.reserved("carla", digest, 100) is None
    assert clinic.store.reserved("amina", "0" * 64, 100) is None
    last = clinic.head.seq
    place = next(entry.seq for entry in clinic.entries() if (entry.operation, entry.kind) == ("latest", "reserve"))
    assert clinic.store.reserved("amina", digest, last - place + 1) == "latest"
    assert clinic.store.reserved("amina", digest, last - place) is None
