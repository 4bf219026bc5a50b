"""Running totals: whole numbers of any size, marks for what is dead, and the ways in which they hold.

Random charges, refunds and raises go through every store and beside them through a model of some forty lines, which
keeps what every block has borne by itself and knows nothing of peaks.
"""

import itertools
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sitr.accounting import PureDP
from sitr.accounting.filters import MOST
from sitr.ledger import Budget, Ledger
from sitr.ledger.entry import sealed
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Replay
from sitr.ledger.request import Request
from sitr.ledger.totals import Charge, Exceeded, Total, holds, less, peak, plus
from tests.ledger import stores

EVENT = PureDP(epsilon=0.25)  # whatever it costs: stores take charges as they are told
SIZES = [0, 1, 5, MOST // 3, MOST // 2, MOST, MOST + 1, 518 * MOST, 10**60, None]
BLOCKS = [(), ("a",), ("b",), ("a", "b"), ("c", "a")]
NUMBERS = itertools.count(1)

units = st.one_of(st.none(), st.integers(0, 2**70))
vectors = st.tuples(units, units, units)


@given(vectors, vectors, vectors)
def test_laws_of_totals(one, other, third):
    assert plus(one, other) == plus(other, one)
    assert plus(plus(one, other), third) == plus(one, plus(other, third))
    assert peak(one, [other, third]) == peak(third, [one, other])
    assert peak(one, [one]) == one
    assert plus(peak(one, [other]), third) == peak(plus(one, third), [plus(other, third)])
    back = less(plus(one, other), other)
    assert all(a == b or (a is None and None in pair) for a, b, *pair in zip(back, one, one, other, strict=True))


@given(vectors, vectors, st.sampled_from([((0, 1),), ((0, 1), (2, 1)), ((0,), (1, 2))]))
def test_more_holds_in_no_more_ways(used, more, ways):
    assert not holds(plus(used, more), ways) or holds(used, ways)
    chosen = [{used[place] for place in way} for way in ways]
    assert holds(used, ways) == any(None not in places and max(places) <= MOST for places in chosen)


class Model:
    """What every block has borne, of itself and of the whole, by the ways in which a budget may hold."""

    def __init__(self, keeper):
        self.keeper, self.whole, self.blocks, self.charged = keeper, keeper.nothing, {}, {}

    def used(self, block):
        return plus(self.whole, self.blocks.get(block, self.keeper.nothing))

    def reserve(self, operation, due, blocks):
        """A way for each block that it touches; or one for all of them, known or not, if it touches all."""
        if blocks:
            fits = all(self.holds(plus(self.used(block), due)) for block in blocks)
        else:
            everyone = [plus(self.used(block), due) for block in (*self.blocks, "one that nobody knows")]
            fits = any(all(holds(used, (way,)) for used in everyone) for way in self.keeper.ways)
        if fits:
            self.charged[operation] = due, blocks, self.keeper
            self.add(due, blocks, plus)
        return fits

    def refund(self, operation):
        due, blocks, keeper = self.charged.pop(operation)
        self.add(keeper.rescaled(due, self.keeper, up=False), blocks, less)

    def double(self):
        now = self.keeper.budget
        higher = self.keeper.raised(Budget(2 * now.epsilon, 2 * now.delta, disjoint_by=now.disjoint_by))
        self.whole = self.keeper.rescaled(self.whole, higher)
        self.blocks = {name: self.keeper.rescaled(used, higher) for name, used in self.blocks.items()}
        self.keeper = higher

    def add(self, due, blocks, sign):
        for block in blocks:
            self.blocks[block] = sign(self.blocks.get(block, self.keeper.nothing), due)
        self.whole = self.whole if blocks else sign(self.whole, due)

    def holds(self, used):
        return holds(used, self.keeper.ways)


class Pair:
    """A budget of two ways in a store, and its model."""

    def __init__(self, ledger):
        self.ledger, self.name, self.version = ledger, f"clinic {next(NUMBERS)}", 1
        self.model = Model(Keeper.of(Budget(epsilon=0.5, delta=1e-6, disjoint_by="ward")).joined())
        self.outcomes = set()
        keeper = self.model.keeper
        new = Total(self.name, 1, keeper.to_json(), keeper.nothing, keeper.nothing)
        ledger.store.create_budget(new, sealed({"definition": new.body, "name": self.name}))

    def step(self, kind, due, blocks):
        if kind == "raise" and self.version < 6:
            self.double()
        elif kind == "refund" and self.model.charged:
            operation = max(self.model.charged)
            self.ledger.refund(operation, reason="model")
            self.model.refund(operation)
            self.outcomes.add("refunded")
        elif any(units != 0 for units in due):
            self.reserve(due, blocks)
        self.compare()

    def reserve(self, due, blocks):
        operation = f"q{next(NUMBERS):08}"
        charge = Charge(self.name, self.version, due, self.model.keeper.ways, blocks)
        asked = Request(self.name, EVENT, "amina", operation, None, blocks, None)
        before = {block: self.model.used(block) for block in (*blocks, *self.model.blocks)}
        granted = self.model.reserve(operation, due, blocks)
        self.outcomes.add(granted)
        if granted:
            self.ledger.store.reserve(operation, "amina", asked.body([charge]), [charge], [self.name])
            return True
        with pytest.raises(Exceeded) as refused:
            self.ledger.store.reserve(operation, "amina", asked.body([charge]), [charge], [self.name])
        told = [before[block] for block in blocks or self.model.blocks] or [self.model.whole]
        assert (refused.value.name, refused.value.used) == (self.name, peak(told[0], told))
        return False

    def double(self):
        old = self.model.keeper
        self.model.double()
        new, self.version = self.model.keeper, self.version + 1
        body = sealed({"definition": new.to_json(), "name": self.name, "reason": "model"})
        (known,) = self.ledger.store.totals([self.name])
        self.ledger.store.raise_budget(known, new.to_json(), body, lambda used: old.rescaled(used, new))

    def compare(self):
        (total,) = self.ledger.store.totals([self.name])
        blocks = self.model.blocks
        assert (total.version, total.whole) == (self.version, self.model.whole)
        assert total.peak == peak(self.model.keeper.nothing, blocks.values())
        with self.ledger.store.snapshot() as snapshot:
            found = snapshot.blocks()
        assert {block: used for (name, block), used in found.items() if name == self.name} == blocks


def random_step(chance):
    due = tuple(chance.choice(SIZES) for _ in range(3))
    return chance.choice(["reserve"] * 8 + ["refund", "raise"]), due, chance.choice(BLOCKS)


@pytest.mark.parametrize("store", stores.ALL)
def test_histories_agree_with_the_model_and_with_their_entries(store, tmp_path):
    chance, outcomes = random.Random(54), set()
    with Ledger.open(stores.fresh(store, tmp_path)()) as ledger:
        pairs = [Pair(ledger) for _ in range(6)]
        for _ in range(150):
            pair = chance.choice(pairs)
            pair.step(*random_step(chance))
            outcomes |= pair.outcomes
        replay = Replay()
        for entry in ledger.entries():
            replay.read(entry)
        for total in ledger.store.all_totals():
            account = replay.accounts[total.name]
            assert (total.version, total.whole, total.peak) == (account.version, account.whole, account.peak)
    assert outcomes == {True, False, "refunded"}


steps = st.tuples(
    st.sampled_from(["reserve", "reserve", "reserve", "refund", "raise"]),
    st.tuples(*[st.sampled_from(SIZES)] * 3),
    st.sampled_from(BLOCKS),
)


@pytest.mark.parametrize("store", ["memory", "postgresql"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(steps, max_size=12))
def test_any_history_agrees_with_the_model(opened, history):
    pair = Pair(opened)
    for step in history:
        pair.step(*step)


@pytest.fixture
def opened(store, tmp_path):
    with Ledger.open(stores.fresh(store, tmp_path)()) as ledger:
        yield ledger


# What is far over a limit, and what is dead


@pytest.fixture
def pair(ledger):
    return Pair(ledger)


def test_a_total_far_over_its_limit_stays_what_it_was(pair):
    """A step of 518 times the limit is not of one unit more than the limit, and no raise makes little of it."""
    pair.reserve((1, 0, 518 * 2**60), ())
    for _ in range(3):
        pair.double()
    (total,) = pair.ledger.store.totals([pair.name])
    assert total.whole[2] == 518 * 2**57
    assert not holds(total.whole, ((2, 1),))
    for _ in range(7):
        pair.double()
    (total,) = pair.ledger.store.totals([pair.name])
    assert total.whole[2] == 518 * 2**50  # half of the limit by now
    pair.compare()


def test_what_is_dead_stays_dead_in_the_whole_in_blocks_and_in_their_peak(pair):
    pair.reserve((1, 0, None), ("a",))
    pair.reserve((1, 0, 5), ("b",))
    (total,) = pair.ledger.store.totals([pair.name])
    assert (total.whole, total.peak) == ((0, 0, 0), (1, 0, None))
    pair.reserve((MOST, 0, 7), ("b",))  # by the third place, which is alive in b
    assert not pair.reserve((MOST, 0, 7), ("a",))
    pair.step("refund", None, None)
    pair.step("refund", None, None)
    pair.step("refund", None, None)
    pair.double()
    (total,) = pair.ledger.store.totals([pair.name])
    assert (total.whole, total.peak) == ((0, 0, 0), (0, 0, None))
    pair.compare()


def test_entries_say_what_was_charged_in_each_place(pair):
    pair.reserve((1, 0, None), ("a",))
    *_, last = pair.ledger.entries()
    assert json.loads(last.body)["budgets"] == {pair.name: {"units": [1, 0, None], "version": 1}}
