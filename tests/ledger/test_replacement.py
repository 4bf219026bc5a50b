"""Shares that get other limits: what was spent under them stays spent, and the dataset's promise stays as it is."""

import pytest

from sitr.accounting import ApproximateDP, Gaussian, PureDP
from sitr.errors import BudgetExceeded, InvalidArgument, UnknownName
from sitr.ledger import Budget
from sitr.ledger.entry import Entry, canonical
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Fault, Replay
from sitr.ledger.store import Stale

WHOLE = Budget(epsilon=4.0, delta=1e-5)
EVENT = PureDP(epsilon=0.25)


@pytest.fixture
def shared(ledger):
    """A dataset with a pure share, of which a half is spent."""
    ledger.create_budget("clinic", WHOLE)
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
    with ledger.reserve("clinic", EVENT, analyst="amina", operation="q-1") as grant:
        grant.commit(1)
    return ledger


def test_a_share_gets_another_kind_and_keeps_what_was_spent(shared):
    spent = shared.spent("clinic")
    with pytest.raises(BudgetExceeded, match="δ-parts"):
        shared.reserve("clinic", ApproximateDP(epsilon=0.01, delta=1e-8), analyst="amina")
    share = Budget(epsilon=1.0, delta=1e-5)
    shared.replace_share("clinic", share, reason="groups are to be found", analyst="amina")
    assert shared.budget("clinic", analyst="amina") == share
    after = shared.spent("clinic", analyst="amina")
    assert after.share > 0
    shared.reserve("clinic", ApproximateDP(epsilon=0.01, delta=1e-8), analyst="amina", operation="q-2")
    assert shared.verify()
    told = shared.statement("clinic", analyst="amina")
    assert [(change.kind, change.reason) for change in told.changes] == [("replace", "groups are to be found")]
    rows = dict(told.rows())
    assert rows["limit"].startswith("ε = 1 at δ = 1e-05")
    assert rows["within"] == "the promise of clinic: it is no promise of its own"
    assert "promise" not in rows
    assert "by ε = 1 at δ = 1e-05: groups are to be found" in rows["replaced"]
    assert "promise" in dict(shared.statement("clinic").rows())
    assert shared.spent("clinic").value > spent.value  # by q-2 alone


def test_a_share_is_lowered_below_what_was_spent(shared):
    shared.replace_share("clinic", Budget(epsilon=0.125), reason="less", analyst="amina")
    assert shared.remaining("clinic", analyst="amina").value == 0
    with pytest.raises(BudgetExceeded, match="its limit within the promise of the dataset"):
        shared.reserve("clinic", PureDP(epsilon=0.01), analyst="amina")
    shared.reserve("clinic", PureDP(epsilon=0.01), analyst="badr")  # whom it does not limit
    shared.replace_share("clinic", Budget(epsilon=0.5), reason="as before", analyst="amina")
    assert shared.remaining("clinic", analyst="amina").value == 0.25
    shared.raise_budget("clinic", Budget(epsilon=1.0), reason="more", analyst="amina")
    assert shared.remaining("clinic", analyst="amina").value == 0.75
    assert shared.verify()


def test_what_was_spent_before_is_refunded_to_the_dataset_alone(shared):
    shared.reserve("clinic", EVENT, analyst="amina", operation="open")
    shared.replace_share("clinic", Budget(epsilon=1.0), reason="more", analyst="amina")
    whole = shared.spent("clinic").value
    shared.refund("open", reason="never ran")
    assert shared.spent("clinic").value < whole
    assert shared.spent("clinic", analyst="amina").value == 0.5
    shared.reserve("clinic", EVENT, analyst="amina", operation="again")
    shared.refund("again", reason="never ran")
    assert shared.spent("clinic", analyst="amina").value == 0.5
    shared.replace_share("clinic", Budget(epsilon=2.0), reason="counted again", analyst="amina")
    assert shared.spent("clinic", analyst="amina").value == 0.25
    assert shared.verify()


def test_blocks_are_counted_again(ledger):
    ledger.create_budget("clinic", Budget(epsilon=8.0, disjoint_by="ward"))
    ledger.create_budget("clinic", Budget(epsilon=2.0, disjoint_by="ward"), purpose="audit")
    for blocks in (["a"], ["b"], ["b"], []):
        ledger.reserve("clinic", EVENT, analyst="amina", purpose="audit", blocks=blocks)
    ledger.replace_share("clinic", Budget(epsilon=1.0, disjoint_by="ward"), reason="less", purpose="audit")
    assert ledger.spent("clinic", purpose="audit").value == 0.75
    ledger.reserve("clinic", EVENT, analyst="amina", purpose="audit", blocks=["b"])
    with pytest.raises(BudgetExceeded):
        ledger.reserve("clinic", EVENT, analyst="amina", purpose="audit", blocks=["b"])
    ledger.reserve("clinic", EVENT, analyst="amina", purpose="audit", blocks=["a"])
    assert ledger.verify()


def test_what_is_no_share_is_not_replaced(shared):
    with pytest.raises(InvalidArgument, match="is the budget of a dataset, and no share"):
        shared.replace_share("clinic", Budget(epsilon=9.0, delta=1e-5), reason="more")
    with pytest.raises(UnknownName, match="no share 'clinic/analyst/badr'"):
        shared.replace_share("clinic", Budget(epsilon=9.0), reason="more", analyst="badr")
    with pytest.raises(InvalidArgument, match="differs from the budget of its dataset in unit"):
        shared.replace_share("clinic", Budget(epsilon=1.0, unit="visit"), reason="more", analyst="amina")
    with pytest.raises(InvalidArgument, match="a reason is"):
        shared.replace_share("clinic", Budget(epsilon=1.0), reason="", analyst="amina")
    shared.replace_share("clinic", WHOLE, reason="all of it", analyst="amina")
    shared.reserve("clinic", Gaussian(noise_multiplier=30), analyst="amina")
    with pytest.raises(InvalidArgument, match="has no cost in ε = 1"):
        shared.replace_share("clinic", Budget(epsilon=1.0), reason="pure again", analyst="amina")
    assert shared.verify()


def test_what_is_charged_meanwhile_is_counted(shared, monkeypatch):
    replace, times = shared.store.replace_budget, []

    def late(*arguments):
        if not times:
            shared.reserve("clinic", PureDP(epsilon=0.125), analyst="amina")
        times.append(1)
        return replace(*arguments)

    monkeypatch.setattr(shared.store, "replace_budget", late)
    shared.replace_share("clinic", Budget(epsilon=2.0), reason="more", analyst="amina")
    assert len(times) == 2
    assert shared.spent("clinic", analyst="amina").value == 0.375
    monkeypatch.setattr(shared.store, "replace_budget", lambda *_: (_ for _ in ()).throw(Stale))
    with pytest.raises(Exception, match="faster than it can be replaced"):
        shared.replace_share("clinic", Budget(epsilon=2.0), reason="more", analyst="amina")


def entry(kind, seq, operation=None, analyst=None, **record):
    return Entry(seq, "2026-01-01T00:00:00.000000+00:00", kind, operation, analyst, canonical(record), "")


def begun(recount=True):
    """A share of ε = 1 in all of which a quarter was spent."""
    replay, share = Replay(recount=recount), "clinic/analyst/amina"
    replay.apply(entry("budget", 2, name="clinic", definition=Keeper.of(Budget(epsilon=4.0)).to_json()))
    replay.apply(entry("budget", 3, name=share, definition=Keeper.of(Budget(epsilon=1.0)).to_json()))
    due = {"clinic": {"units": [2**56, 0], "version": 1}, share: {"units": [2**58, 0], "version": 1}}
    about = {"blocks": [], "datasets": ["clinic"], "event": EVENT.to_dict(), "purpose": None, "request": "0"}
    replay.apply(entry("reserve", 4, "q", "amina", budgets=due, **about))
    return replay


GOOD = {
    "name": "clinic/analyst/amina",
    "definition": Keeper.of(Budget(epsilon=2.0)).to_json(),
    "reason": "more",
    "whole": [2**57, 0],
    "blocks": {},
}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"whole": [2**57 - 2**30, 0]}, "counts less than was charged"),
        ({"whole": [0, 0]}, "counts less than was charged"),
        ({"whole": [-1, 0]}, "less than nothing"),
        ({"whole": [2.0**57, 0]}, "no whole number"),
        ({"whole": [2**57]}, "in other places"),
        ({"blocks": {"a": [0, 0]}}, "other blocks"),
        ({"reason": ""}, "with a reason"),
        ({"name": "clinic", "definition": Keeper.of(Budget(epsilon=9.0)).to_json()}, "is only raised"),
        ({"definition": Keeper.of(Budget(epsilon=2.0, unit="visit")).to_json()}, "differs from the budget"),
        ({"definition": GOOD["definition"].replace('"epsilon":2.0,"filter"', '"epsilon":1.0,"filter"')},
         "allows more than it says"),
        ({"name": "clinic/analyst/badr"}, "lacks something"),
    ],
)  # fmt: skip
def test_a_replacement_that_breaks_the_rules_is_found(changed, fault):
    begun().apply(entry("replace", 5, **GOOD))
    with pytest.raises(Fault, match=fault):
        begun().apply(entry("replace", 5, **{**GOOD, **changed}))
