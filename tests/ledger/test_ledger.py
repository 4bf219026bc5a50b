"""The book: what is charged to whom, what is given back, and what is refused."""

import math

import pytest

from sitr.accounting import ApproximateDP, Gaussian, Laplace, LossDistribution, PureDP, ZeroConcentrated
from sitr.accounting.filters import MOST, WHOLE
from sitr.errors import (
    BudgetExceeded,
    IncompatibleAdjacency,
    InvalidArgument,
    NoSuchGuarantee,
    UnknownName,
)
from sitr.ledger import Budget, sqlite
from tests.ledger.acts import ONE, ask, create_joined, spent

# Budgets and shares


def test_a_share_limits_its_analyst_and_counts_in_the_whole(clinic):
    clinic.create_budget("clinic", Budget(epsilon=2), analyst="amina")
    ask(clinic)
    ask(clinic)
    with pytest.raises(BudgetExceeded, match="clinic/analyst/amina"):
        ask(clinic)
    ask(clinic, analyst="badr")
    assert spent(clinic) == 3
    assert spent(clinic, analyst="amina") == 2
    assert clinic.remaining("clinic", analyst="amina").value == 0
    assert clinic.verify().valid


def test_a_purpose_limits_what_is_asked_for_it(clinic):
    clinic.create_budget("clinic", Budget(epsilon=1), purpose="teaching")
    ask(clinic, purpose="teaching")
    with pytest.raises(BudgetExceeded, match="clinic/purpose/teaching"):
        ask(clinic, purpose="teaching")
    ask(clinic, purpose="research")
    ask(clinic)
    assert (spent(clinic), spent(clinic, purpose="teaching")) == (3, 1)


def test_several_datasets_are_charged_all_or_none(clinic):
    clinic.create_budget("school", Budget(epsilon=1))
    ask(clinic, ["clinic", "school"])
    with pytest.raises(BudgetExceeded, match="'school'"):
        ask(clinic, ["clinic", "school"])
    with pytest.raises(UnknownName, match="no budget 'tax'"):
        ask(clinic, ["clinic", "tax"])
    assert (spent(clinic), spent(clinic, "school")) == (1, 1)


def test_what_a_budget_may_not_be(clinic):
    with pytest.raises(InvalidArgument, match="there is a budget 'clinic' already"):
        clinic.create_budget("clinic", Budget(epsilon=1))
    with pytest.raises(UnknownName, match="no budget 'school'"):
        clinic.create_budget("school", Budget(epsilon=1), analyst="amina")
    with pytest.raises(InvalidArgument, match="differs from the budget of its dataset in unit"):
        clinic.create_budget("clinic", Budget(epsilon=1, unit="visit"), analyst="amina")
    with pytest.raises(InvalidArgument, match="is not a budget"):
        clinic.create_budget("school", 1.0)
    with pytest.raises(InvalidArgument, match="not both"):
        clinic.create_budget("clinic", Budget(epsilon=1), analyst="amina", purpose="p")
    assert list(clinic.budgets()) == ["clinic"]


def test_events_that_do_not_fit_the_kind_of_budget(clinic):
    with pytest.raises(NoSuchGuarantee):
        ask(clinic, event=Gaussian(noise_multiplier=5))
    with pytest.raises(BudgetExceeded):
        ask(clinic, event=ApproximateDP(epsilon=0.1, delta=1e-9))
    clinic.create_budget("swaps", Budget(epsilon=8, adjacency="replace_one"))
    with pytest.raises(IncompatibleAdjacency):
        ask(clinic, "swaps", event=Laplace(noise_multiplier=2, adjacency="add_remove"))
    with pytest.raises(InvalidArgument, match="costs nothing"):
        ask(clinic, event=PureDP(epsilon=0.0))
    with pytest.raises(InvalidArgument, match="is not an event"):
        ask(clinic, event=1.0)
    with pytest.raises(InvalidArgument, match="at least one dataset"):
        ask(clinic, [])
    assert spent(clinic) == 0


def test_a_batch_is_charged_its_joint_cost(ledger):
    ledger.create_budget("clinic", Budget(rho=1.0))
    ask(ledger, event=Gaussian(noise_multiplier=10) * 50)
    assert spent(ledger) == pytest.approx(50 / 200)
    with pytest.raises(BudgetExceeded, match="what fits into this budget: 150 of these 200"):
        ask(ledger, event=Gaussian(noise_multiplier=10) * 200)


# Blocks


@pytest.mark.parametrize("kind", [{"disjoint_by": "ward"}, {"per": "month"}])
def test_blocks_count_once_where_each_unit_is_in_one(ledger, kind):
    ledger.create_budget("clinic", Budget(epsilon=4, **kind))
    ask(ledger, blocks=["a"])
    ask(ledger, blocks=["b"])
    ask(ledger, blocks=["a", "b"])
    assert spent(ledger) == 2
    ask(ledger)  # all of the data
    assert spent(ledger) == 3
    ask(ledger, blocks=["c"])
    assert spent(ledger) == 3
    ask(ledger, blocks=["a"])
    with pytest.raises(BudgetExceeded):
        ask(ledger, blocks=["a"])
    with pytest.raises(BudgetExceeded):
        ask(ledger)
    ask(ledger, blocks=["c", "b"])
    assert spent(ledger) == 4
    assert ledger.verify().valid


@pytest.mark.parametrize("kind", [{}, {"disjoint_by": "ward", "adjacency": "replace_one"}])
def test_blocks_add_up_where_a_unit_may_be_in_two(ledger, kind):
    ledger.create_budget("clinic", Budget(epsilon=4, **kind))
    for block in "abc":
        ask(ledger, blocks=[block])
    assert spent(ledger) == 3
    assert ledger.verify().valid


SMALL = 2.0**-20
# Events that cost so many quarters of one limit of the budget below, and next to nothing of the other.
QUARTERS = {"ρ": lambda n: ZeroConcentrated(float(n)), "δ": lambda n: ZeroConcentrated(2.0**-30, delta=n * SMALL)}


@pytest.fixture(params=QUARTERS)
def quarter(request):
    return QUARTERS[request.param]


def two_limits(times=1, **about):
    return Budget(rho=4.0 * times, delta=4 * SMALL * times, disjoint_by="ward", **about)


def quarters(ledger):
    """What was spent of the limit that comes first, in quarters of four."""
    amount = ledger.spent("clinic")
    return max(round(amount.value, 6), round(amount.delta / SMALL, 6))


def test_of_several_blocks_the_one_that_spent_most_decides_of_either_limit(ledger, quarter):
    ledger.create_budget("clinic", two_limits())
    for blocks in ("a", "ab", "a", "b"):
        ask(ledger, event=quarter(1), blocks=list(blocks))
    assert quarters(ledger) == 3  # a has spent 3, b has spent 2
    for blocks in (["a", "b"], ["b", "a"], ["a", "new", "b"]):
        with pytest.raises(BudgetExceeded, match=r"(4\.00|3\.82e-06) requested, (1\.00|9\.5\de-07) left"):
            ask(ledger, event=quarter(4), blocks=blocks)
        with pytest.raises(BudgetExceeded):
            ask(ledger, event=quarter(2), blocks=blocks)
    ask(ledger, event=quarter(2), blocks=["b"])
    ask(ledger, event=quarter(4), blocks=["c"])
    assert quarters(ledger) == 4
    with pytest.raises(BudgetExceeded):
        ask(ledger, event=quarter(1))  # the whole, with c
    ask(ledger, event=quarter(1), blocks=["a"])
    with pytest.raises(BudgetExceeded):
        ask(ledger, event=quarter(1), blocks=["a"])
    assert ledger.verify().valid


def test_what_the_whole_spent_is_spent_in_every_block_of_either_limit(ledger, quarter):
    ledger.create_budget("clinic", two_limits())
    ask(ledger, event=quarter(3))
    ask(ledger, event=quarter(1), blocks=["a"])
    ask(ledger, event=quarter(1), blocks=["b"])
    for blocks in (["a"], ["b", "c"], []):
        with pytest.raises(BudgetExceeded, match=r", (0|\d\.\d*e-2\d) left"):
            ask(ledger, event=quarter(1), blocks=blocks)
    assert quarters(ledger) == 4
    assert ledger.verify().valid


# Raises and refunds


def test_a_raise_keeps_what_blocks_spent_and_a_refund_gives_it_back_of_either_limit(ledger, quarter):
    ledger.create_budget("clinic", two_limits())
    ask(ledger, event=quarter(3), blocks=["a"])
    ledger.reserve("clinic", quarter(1), analyst="amina", operation="blocks", blocks=["b", "a"])
    ask(ledger, event=quarter(3), blocks=["b"])
    ledger.raise_budget("clinic", two_limits(times=2), reason="more")
    assert quarters(ledger) == 4
    ledger.reserve("clinic", quarter(2), analyst="amina", operation="whole")
    assert quarters(ledger) == 6
    with pytest.raises(BudgetExceeded):
        ask(ledger, event=quarter(3), blocks=["a"])
    ledger.refund("whole", reason="not run")
    assert quarters(ledger) == 4
    ledger.refund("blocks", reason="not run")
    assert quarters(ledger) == 3
    with pytest.raises(BudgetExceeded):
        ask(ledger, event=quarter(6), blocks=["b"])
    ask(ledger, event=quarter(5), blocks=["b"])
    assert ledger.verify().valid


# Several filters


def rare(loss):
    """Next to nothing by a Rényi divergence of the orders that budgets have, and of a large pure ε."""
    chance = 1e-250
    return LossDistribution([loss, 0.0, -loss], [chance, 1.0, chance * math.exp(-loss)])


def test_what_is_far_over_one_limit_stays_so_after_a_raise(ledger):
    create_joined(ledger, "clinic", Budget(epsilon=1.0, delta=1e-6))
    ask(ledger, event=rare(20.0))  # the order admits it; of pure ε it is twenty times the limit
    assert ledger.spent("clinic").share < 1e-9
    ledger.raise_budget("clinic", Budget(epsilon=19.0, delta=1e-6), reason="more")
    (total,) = ledger.store.totals(["clinic"])
    assert total.used[0] == pytest.approx(20 / 19 * WHOLE, rel=1e-12)
    ledger.raise_budget("clinic", Budget(epsilon=40.0, delta=1e-6), reason="more still")
    (total,) = ledger.store.totals(["clinic"])
    assert total.used[0] == pytest.approx(WHOLE / 2, rel=1e-12)
    assert total.used[0] >= WHOLE // 2
    assert ledger.verify().valid


def test_of_two_filters_one_is_enough_and_both_go_on_counting(ledger):
    create_joined(ledger, "clinic", Budget(epsilon=1.0, delta=1e-6))
    fifth = PureDP(epsilon=0.2)
    for _ in range(5):
        ask(ledger, event=fifth)
    (total,) = ledger.store.totals(["clinic"])
    assert total.used[1] > MOST
    assert total.used[0] == pytest.approx(WHOLE)
    with pytest.raises(BudgetExceeded, match=r"ε: 0\.200 requested, [0-9.e-]+ left"):
        ask(ledger, event=fifth)
    ledger.raise_budget("clinic", Budget(epsilon=3.0, delta=1e-6), reason="more")
    ask(ledger, event=PureDP(epsilon=0.01) * 220)
    (total,) = ledger.store.totals(["clinic"])
    assert total.used[1] < MOST < total.used[0]  # by the order alone
    assert ledger.verify().valid
    told = ledger.statement("clinic")
    assert told.remaining == ledger.remaining("clinic")
    assert "THEORY 5.4" in told.theorem


def test_nothing_is_told_of_filters_that_do_not_hold(ledger):
    create_joined(ledger, "clinic", Budget(epsilon=1.0, delta=1e-6))
    ask(ledger, event=Gaussian(noise_multiplier=6))
    assert ledger.remaining("clinic").measure == "rdp"
    assert ledger.left_for("clinic", analyst="amina")["clinic"].remaining == ledger.remaining("clinic")
    with pytest.raises(BudgetExceeded, match="% of it requested"):
        ask(ledger, event=PureDP(epsilon=0.9))


# What was asked before


def test_the_same_question_is_known_again(clinic, monkeypatch):
    about = {"purpose": "report", "request": {"query": 1}}
    same = {"analyst": "amina", **about}
    assert clinic.asked_before("clinic", ONE, **same) is None
    first, latest = ask(clinic, **about), ask(clinic, **about)
    assert first.operation != latest.operation
    assert clinic.asked_before("clinic", ONE, **same) == latest.operation
    assert clinic.asked_before("clinic", ONE, **same | {"analyst": "badr"}) is None
    assert clinic.asked_before("clinic", ONE, **same | {"purpose": None}) is None
    assert clinic.asked_before("clinic", ONE, **same | {"request": {"query": 2}}) is None
    assert clinic.asked_before("clinic", PureDP(epsilon=0.5), **same) is None
    ask(clinic)
    monkeypatch.setattr("sitr.ledger.reservation.RECENT", 3)
    assert clinic.asked_before("clinic", ONE, **same) is None


def test_a_question_without_an_answer_is_not_worth_asking_again(clinic):
    clinic.reserve("clinic", ONE, analyst="amina")
    assert clinic.asked_before("clinic", ONE, analyst="amina") is None


def test_prepared_statements_take_their_values_by_place():
    """Python warns of names that are given values in order, and later refuses them."""
    for statement in (sqlite.GRANT, sqlite.APPEND, sqlite.KEEP, sqlite.TOTAL, sqlite.HASH):
        assert "?" in statement
        assert ":" not in statement
