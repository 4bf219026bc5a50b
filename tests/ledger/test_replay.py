"""The book read again: every rule of it, at the last charge that keeps it and at the first that does not."""

import dataclasses

import pytest

from sitr.accounting import PureDP, ZeroConcentrated, choose_filter
from sitr.accounting.filters import MOST, WHOLE
from sitr.errors import InvalidRecord, LedgerDamaged
from sitr.ledger import Budget
from sitr.ledger.entry import Entry, canonical, sha256
from sitr.ledger.keeper import Keeper
from sitr.ledger.replay import Fault, Replay, event_of
from tests.ledger.acts import joined

BOTH = Budget(rho=8.0, delta=2.0**-10)
APART = dataclasses.replace(BOTH, disjoint_by="ward")
EVENT = ZeroConcentrated(rho=1.0, delta=2.0**-13)  # an eighth of either limit
EIGHTH = WHOLE // 8


def entry(kind, operation=None, analyst=None, *, seq=2, **record):
    return Entry(seq, "2026-01-01T00:00:00.000000+00:00", kind, operation, analyst, canonical(record), "")


def budget(name="clinic", promise=BOTH, kind="budget", keeper=None):
    return entry(kind, name=name, definition=(keeper or Keeper.of(promise)).to_json())


def reserve(operation, cost=0, delta=0, *, blocks=(), datasets=("clinic",), budgets=None, version=1, **about):
    due = about.pop("due", {"units": about.pop("units", [cost, delta]), "version": version})
    record = {"blocks": list(blocks), "datasets": list(datasets), "event": EVENT.to_dict(), "purpose": None}
    return entry(
        "reserve",
        operation,
        about.pop("analyst", "amina"),
        **{**record, "budgets": dict.fromkeys(budgets or datasets, due), "request": "0", **about},
    )


def replayed(*entries, recount=False):
    replay = Replay(recount=recount)
    for one in entries:
        replay.apply(one)
    return replay


def refused(replay, one, why):
    with pytest.raises(Fault, match=why):
        replay.apply(one)


LIMITS = pytest.mark.parametrize("limit", ["cost", "delta"])


@LIMITS
def test_the_whole_may_use_all_that_there_is_and_no_unit_more(limit):
    replay = replayed(budget(), reserve("q1", **{limit: MOST - 7}))
    refused(replayed(budget(), reserve("q1", **{limit: MOST - 7})), reserve("q2", **{limit: 8}), "takes more")
    replay.apply(reserve("q2", **{limit: 7}))
    assert max(replay.accounts["clinic"].used) == MOST
    other = "delta" if limit == "cost" else "cost"
    replay.apply(reserve("q3", **{other: MOST}))  # the other limit is one of its own


@LIMITS
def test_of_blocks_the_one_that_used_most_decides(limit):
    entries = [budget(promise=APART), reserve("q1", blocks=["a"], **{limit: MOST - 7})]
    for blocks in (["a"], ["b", "a"], ["a", "b"], []):
        replayed(*entries, reserve("q2", blocks=blocks, **{limit: 7}))
        refused(replayed(*entries), reserve("q2", blocks=blocks, **{limit: 8}), "takes more")
    replay = replayed(*entries, reserve("q2", blocks=["b"], **{limit: MOST}))
    assert max(replay.accounts["clinic"].used) == MOST
    refused(replay, reserve("q3", **{limit: 1}), "takes more")


@LIMITS
def test_what_the_whole_used_every_block_has_used(limit):
    entries = [budget(promise=APART), reserve("q1", **{limit: MOST - 7}), reserve("q2", blocks=["a"], **{limit: 7})]
    refused(replayed(*entries), reserve("q3", blocks=["a"], **{limit: 1}), "takes more")
    replayed(*entries, reserve("q3", blocks=["b"], **{limit: 7}))


def test_what_was_used_is_that_of_the_whole_and_of_the_blocks_that_used_most():
    replay = replayed(
        budget(promise=APART),
        reserve("q1", 10, 20),
        reserve("q2", 5, 1, blocks=["a"]),
        reserve("q3", 2, 9, blocks=["b"]),
        reserve("q4", 1, 1, blocks=["b", "a"]),
    )
    account = replay.accounts["clinic"]
    assert (account.whole, account.blocks) == ((10, 20), {"a": (6, 2), "b": (3, 10)})
    assert (account.peak, account.used) == ((6, 10), (16, 30))


@LIMITS
def test_a_charge_is_what_its_event_costs(limit):
    paid = {"cost": EIGHTH, "delta": EIGHTH}
    replay = replayed(budget(), recount=True)
    replay.apply(reserve("q1", **paid))
    replay.apply(reserve("q2", **{**paid, limit: EIGHTH - EIGHTH // 10**13}))  # as another machine rounds
    for less in (EIGHTH - EIGHTH // 10**6, 0):
        refused(replayed(budget(), recount=True), reserve("q3", **{**paid, limit: less}), "less than its event costs")
    replayed(budget(), reserve("q4", **{**paid, limit: 0}))  # whoever only reads takes charges as they stand


@pytest.mark.parametrize("units", [-1, 1.0, True, "1", None])
@LIMITS
def test_a_charge_is_a_whole_number(limit, units):
    with pytest.raises(Fault):
        replayed(budget()).apply(reserve("q1", **{limit: units}))


@pytest.mark.parametrize("units", [[5], [5, 0, 0], [], 5, "50", {"a": 5}, None])
def test_a_charge_has_a_number_for_each_limit(units):
    with pytest.raises(Fault):
        replayed(budget()).apply(reserve("q1", units=units))


@pytest.mark.parametrize("recount", [True, False])
def test_charges_of_older_forms_are_read_as_they_are(recount):
    old = {"cost": EIGHTH, "delta": EIGHTH, "version": 1}
    replay = replayed(budget(), reserve("q1", due=old), recount=recount)
    assert replay.accounts["clinic"].used == (EIGHTH, EIGHTH)
    replay.apply(entry("refund", "q1", "amina", reason="x"))
    assert replay.accounts["clinic"].used == (0, 0)
    with pytest.raises(Fault):
        replayed(budget(keeper=TWO)).apply(reserve("q1", due=old))  # which has three places


TWO = joined(Budget(epsilon=1.0, delta=1e-6))
WARDS = joined(Budget(epsilon=1.0, delta=1e-6, disjoint_by="ward"))


def test_of_two_ways_one_is_enough_and_every_place_is_charged():
    replay = replayed(budget(keeper=TWO), reserve("q1", units=[10, MOST + 5, 7]))
    assert replay.accounts["clinic"].used == (10, MOST + 5, 7)
    replay.apply(reserve("q2", units=[MOST - 10, None, 0]))
    assert replay.accounts["clinic"].used == (MOST, None, 7)
    refused(replay, reserve("q3", units=[1, 0, 0]), "takes more")
    refused(replayed(budget(keeper=TWO)), reserve("q1", units=[0, 0, MOST + 1]), "takes more")  # parts, of both
    refused(replayed(budget(keeper=TWO)), reserve("q1", units=[None, None, 0]), "takes more")


def test_what_is_dead_is_not_given_back():
    replay = replayed(budget(keeper=TWO), reserve("q1", units=[None, 5, 0]), entry("refund", "q1", "amina", reason="x"))
    assert replay.accounts["clinic"].used == (None, 0, 0)


def test_each_block_has_a_way_and_the_whole_has_one_for_all():
    asked = [
        budget(keeper=WARDS),
        reserve("q1", blocks=["a"], units=[None, MOST, 0]),
        reserve("q2", blocks=["b"], units=[MOST - 5, MOST + 1, 0]),
    ]
    replay = replayed(*asked, reserve("q3", blocks=["b"], units=[5, 1, 0]))
    account = replay.accounts["clinic"]
    assert (account.peak, account.used) == ((None, MOST + 2, 0), (None, MOST + 2, 0))
    refused(replay, reserve("q4", blocks=["a"], units=[0, 1, 0]), "takes more")
    refused(replayed(*asked), reserve("q4", units=[1, 0, 0]), "takes more")  # a holds by one way, b by the other
    refused(replayed(*asked), reserve("q4", blocks=["b", "a"], units=[1, 1, 0]), "takes more")
    replayed(*asked[:2], reserve("q4", units=[1, 0, 0]))
    assert replayed(*asked[:2]).accounts["clinic"].dearest == "a"


def test_a_raise_keeps_a_filter_that_joined_and_lowers_no_limit():
    higher = TWO.raised(Budget(epsilon=2.0, delta=1e-6))
    replay = replayed(budget(keeper=TWO), reserve("q1", units=[518 * WHOLE, 5, 0]), budget(kind="raise", keeper=higher))
    assert replay.accounts["clinic"].whole[0] == 259 * WHOLE
    promise = Budget(epsilon=2.0, delta=1e-6)
    for keeper in (Keeper.of(promise, choose_filter(2.0, 1e-6)), Keeper.of(promise), joined(promise)):
        refused(replayed(budget(keeper=TWO)), budget(kind="raise", keeper=keeper), "another filter")
    assert all(now >= before for before, now in zip(TWO.filter.limits, higher.filter.limits, strict=True))


@pytest.mark.parametrize("blocks", [[], ["a"], ["a", "b"]])
def test_a_refund_gives_back_what_was_charged_and_no_more(blocks):
    asked = [reserve("q1", 1000, 300, blocks=["b"]), reserve("q2", 501, 101, blocks=blocks)]
    replay = replayed(budget(promise=APART), *asked, entry("refund", "q2", "amina", reason="x"))
    assert replay.accounts["clinic"].used == (1000, 300)
    refused(replay, entry("refund", "q2", "amina", reason="x"), "was not reserved")
    refused(replay, entry("start", "q2", "amina", holder="x"), "was not reserved")


@pytest.mark.parametrize("promise", [BOTH, APART])
def test_after_a_raise_what_is_used_rounds_up_and_what_is_given_back_rounds_down(promise):
    blocks = ["a"] if promise is APART else []
    higher = dataclasses.replace(promise, rho=24.0, delta=3 * 2.0**-10)
    asked = [budget(promise=promise), reserve("q1", 100, 50, blocks=blocks), reserve("q2", 1, 2, blocks=blocks)]
    replay = replayed(*asked, budget(promise=higher, kind="raise"))
    account = replay.accounts["clinic"]
    assert (account.version, account.keeper.budget.rho) == (2, 24.0)
    assert account.used == (34, 18)  # thirds of 101 and 52, up
    assert [charge[1:3] for charge in replay.refunds("q1")] == [(2, (33, 16))]  # thirds of 100 and 50, down
    replay.apply(entry("refund", "q1", "amina", reason="x"))
    assert account.used == (1, 2)
    refused(replay, reserve("q3", 1, 1, blocks=blocks), "another version")
    replay.apply(reserve("q3", 1, 1, blocks=blocks, version=2))


def test_a_raise_raises_and_keeps_its_kind():
    gaussian = Budget(epsilon=1.0, delta=1e-6)
    twice = dataclasses.replace(gaussian, epsilon=2.0)
    kept = Keeper.of(gaussian).raised(twice)
    assert replayed(budget(promise=gaussian), budget(kind="raise", keeper=kept)).accounts["clinic"].version == 2
    more = tuple((name, 1.01 * most if name == "epsilon" else most) for name, most in kept.limits)
    for keeper in (Keeper.of(twice), dataclasses.replace(kept, limits=more)):  # another order, a wider limit
        refused(replayed(budget(promise=gaussian)), budget(kind="raise", keeper=keeper), "another filter")
    for lower in (gaussian, dataclasses.replace(gaussian, epsilon=0.5), Budget(epsilon=2.0)):
        with pytest.raises(Fault):
            replayed(budget(promise=gaussian)).apply(budget(kind="raise", promise=lower))


def test_a_budget_is_created_once_keeps_its_promise_and_has_its_dataset_before_its_shares():
    share = budget("clinic/analyst/amina", dataclasses.replace(BOTH, rho=1.0))
    replay = replayed(budget(), share)
    assert sorted(replay.accounts) == ["clinic", "clinic/analyst/amina"]
    refused(replay, budget(), "was created before")
    refused(replay, share, "was created before")
    refused(replayed(), share, "lacks something")
    refused(replayed(budget()), budget("clinic/analyst/amina", dataclasses.replace(BOTH, unit="visit")), "unit")
    wider = dataclasses.replace(Keeper.of(BOTH), limits=(("rho", 8.1), ("delta", 2.0**-10)))
    refused(replayed(), budget(keeper=wider), "allows more than it promises")


def test_all_budgets_that_a_release_falls_under_are_charged_and_no_other():
    made = [budget(), budget("school"), budget("clinic/analyst/amina"), budget("clinic/purpose/report")]
    names = ["clinic", "clinic/analyst/amina"]
    replayed(*made, reserve("q1", 1, budgets=names))
    replayed(*made, reserve("q1", 1, budgets=[*names, "clinic/purpose/report"], purpose="report"))
    replayed(*made, reserve("q1", 1, budgets=[*names, "school"], datasets=["school", "clinic"]))
    replayed(*made, reserve("q1", 1, budgets=["clinic"], analyst="badr"))
    why = "does not charge all"
    for budgets in (["clinic"], ["clinic/analyst/amina"], [*names, "school"]):
        refused(replayed(*made), reserve("q1", 1, budgets=budgets), why)
    refused(replayed(*made), reserve("q1", 1, budgets=names, purpose="report"), why)
    refused(replayed(*made), reserve("q1", 1, datasets=["tax"], budgets=["clinic"]), why)
    refused(replayed(*made), reserve("q1", 1, datasets=["clinic", "tax"], budgets=names), why)
    refused(replayed(*made), reserve("q1", 1, datasets=[], budgets=names), why)
    refused(replayed(*made), reserve("q1", 1, datasets=["clinic", "clinic"], budgets=names), "twice")
    with pytest.raises(Fault):  # a share is no dataset
        replayed(*made).apply(reserve("q1", 1, datasets=["clinic/analyst/amina"], analyst="badr"))


def test_names_of_old_books_are_read_as_they_are():
    replayed(budget("clinic\u3164"), reserve("q1", 1, datasets=["clinic\u3164"], budgets=["clinic\u3164"]))


def test_blocks_stand_once_and_are_of_one_kind():
    other = budget("school", dataclasses.replace(BOTH, per="month"))
    made = [budget(promise=APART), other, budget("tax", APART), budget("lake", BOTH)]
    refused(replayed(*made), reserve("q1", 1, blocks=["a", "a"]), "twice")
    refused(replayed(*made), reserve("q1", 1, blocks=["a"], datasets=["clinic", "school"]), "two kinds")
    replayed(*made, reserve("q1", 1, datasets=["clinic", "school"]))
    replayed(*made, reserve("q1", 1, blocks=["a"], datasets=["clinic", "lake", "tax"]))


def test_an_operation_goes_one_way_in_the_hands_of_one_analyst_and_one_holder():
    asked = [budget(), reserve("q1", 1)]
    start, commit = entry("start", "q1", "amina", holder=sha256(b"h")), entry("commit", "q1", "amina", holder="h")
    replay = replayed(*asked, start, commit)
    assert (replay.operations["q1"].state, replay.operations["q1"].committed) == ("committed", commit)
    refused(replayed(*asked), reserve("q1", 1), "was reserved before")
    refused(replayed(*asked), commit, "was not started")
    refused(replayed(*asked, start), start, "was not reserved")
    refused(replayed(*asked, start), entry("refund", "q1", "amina", reason="x"), "was not reserved")
    refused(replayed(*asked, start, commit), commit, "was not started")
    refused(replayed(*asked, start), entry("commit", "q1", "amina", holder="other"), "another holder")
    for kind, before in (("start", asked), ("refund", asked), ("commit", [*asked, start])):
        refused(replayed(*before), entry(kind, "q1", "badr", holder="h"), "by 'badr'")
        refused(replayed(*before), entry(kind, "q2", "amina", holder="h"), "'q2' was not")
    for operation, analyst in (("q9", None), (None, "amina")):
        refused(replayed(*asked), reserve(operation, 1, analyst=analyst), "names no operation, or no analyst")


def test_a_book_is_opened_by_its_first_entry():
    replayed(entry("open", seq=1), entry("migrate", seq=2))
    refused(replayed(), entry("open", seq=2), "opened once")
    for kind in ("gift", "apply", "read", "keepers_of"):
        refused(replayed(), entry(kind), "nothing is known of the kind")


def test_whoever_only_reads_is_told_that_the_book_is_damaged():
    replay = Replay()
    replay.read(budget())
    with pytest.raises(LedgerDamaged, match="entry 2 breaks the rules"):
        replay.read(budget())


@pytest.mark.parametrize("record", [{"type": float("nan")}, {"type": {1, 2}}, {"type": "Nothing"}, {}])
def test_an_event_that_cannot_be_read_is_an_invalid_record(record):
    with pytest.raises(InvalidRecord):
        event_of(record)


@pytest.mark.parametrize("recount", [True, False])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("limits", [{"epsilon": 8.0}, {"epsilon": 8.0, "delta": 1e-6}, {"rho": 8.0, "delta": 1e-3}])
def test_a_charge_of_other_neighbours_is_found_however_much_it_pays(limits, adjacency, recount):
    """What is enough for the one relation may be half of what the other needs."""
    promise = Budget(**limits, adjacency=adjacency)
    much = [WHOLE // 4] * len(Keeper.of(promise).nothing)
    for relation in ("add_remove", "replace_one", None):
        event = PureDP(epsilon=1e-3, adjacency=relation)
        replay, charge = (
            replayed(budget(promise=promise), recount=recount),
            reserve("q", units=much, event=event.to_dict()),
        )
        if recount and relation not in (adjacency, None):
            refused(replay, charge, "add_remove|replace_one|neighbours")
        else:
            replay.apply(charge)
        assert "q" in replay.operations  # it was charged all the same, and what follows is read
