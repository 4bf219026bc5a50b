"""Pure ε joins the Rényi order of an older budget, and counts all of its history."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import Gaussian, PureDP, choose_filter
from sitr.accounting.filters import WHOLE
from sitr.errors import BudgetExceeded
from sitr.ledger import Budget, Ledger
from sitr.ledger.joining import Joining
from sitr.ledger.keeper import Keeper
from tests.ledger.old_books import ENTRIES, totals
from tests.ledger.tampering import found, rewritten, with_body

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


@given(st.lists(st.tuples(st.integers(1, 16), st.sets(st.sampled_from("ab"))), max_size=8))
def test_every_event_is_counted_where_it_was_charged(charged):
    """Of the whole dataset where it names no block, and of each block that it names; what is counted is accepted."""
    budget = Budget(epsilon=1.0, delta=1e-6, disjoint_by="ward")
    joining = Joining(Keeper.of(budget, choose_filter(1.0, 1e-6)), ["a", "b"])
    for sixteenths, blocks in charged:
        joining.add(PureDP(sixteenths / 16), sorted(blocks))
    record = joining.record
    assert record["whole"] == sum(cost for cost, blocks in charged if not blocks) * WHOLE // 16
    assert record["blocks"] == {
        block: sum(cost for cost, blocks in charged if block in blocks) * WHOLE // 16 for block in "ab"
    }
    assert joining.accepts(record)
    assert joining.accepts({**record, "whole": None})
    for block in "ab":
        fewer = {**record["blocks"], block: record["blocks"][block] - WHOLE // 32}
        assert not joining.accepts({**record, "blocks": fewer})


def test_where_a_unit_may_be_in_two_blocks_all_is_counted_for_the_whole():
    budget = Budget(epsilon=1.0, delta=1e-6, disjoint_by="ward", adjacency="replace_one")
    joining = Joining(Keeper.of(budget, choose_filter(1.0, 1e-6)), [])
    joining.add(PureDP(0.25), ["a"])
    joining.add(PureDP(0.25), ["b"])
    assert joining.record["whole"] == WHOLE // 2
