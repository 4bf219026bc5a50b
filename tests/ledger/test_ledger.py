"""The book: what is charged to whom, what may be asked again, what is given back, and what is refused."""

import os
import threading

import pytest

from sitr.accounting import ApproximateDP, Gaussian, Laplace, PoissonSampled, PureDP, ZeroConcentrated
from sitr.errors import (
    AlreadyAnswered,
    AlreadySpent,
    BudgetExceeded,
    IncompatibleAdjacency,
    InvalidArgument,
    LedgerDamaged,
    NoSuchGuarantee,
    NotPermitted,
    OperationTaken,
    UnknownName,
    WrongLedger,
)
from sitr.ledger import Budget, Ledger, migration, schema
from sitr.ledger import answer as answer_module
from sitr.ledger import grant as grant_module
from sitr.release import Release

ONE = PureDP(epsilon=1.0)
NEXT_FORM = schema.SCHEMA_VERSION + 1


def ask(ledger, datasets="clinic", event=ONE, analyst="amina", answer="a", **about):
    with ledger.reserve(datasets, event, analyst=analyst, **about) as grant:
        grant.commit(answer)
    return grant


def spent(ledger, name="clinic", **share):
    return ledger.spent(name, **share).value


@pytest.fixture
def clinic(ledger):
    """A book with a budget of ε = 8."""
    ledger.create_budget("clinic", Budget(epsilon=8))
    return ledger


def test_a_book_is_opened_by_its_path(tmp_path):
    with Ledger.open(tmp_path / "book.db") as ledger, Ledger.open(str(tmp_path / "book.db")) as same:
        assert ledger.id == same.id


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


def test_a_raise_keeps_what_was_spent(clinic):
    for _ in range(3):
        ask(clinic)
    clinic.raise_budget("clinic", Budget(epsilon=10), reason="ethics board")
    assert spent(clinic) == pytest.approx(3)
    assert spent(clinic) >= 3
    assert clinic.budget("clinic").epsilon == 10
    for _ in range(7):
        ask(clinic)
    with pytest.raises(BudgetExceeded):
        ask(clinic)
    for wrong in (Budget(epsilon=10), Budget(epsilon=9), Budget(rho=20), Budget(epsilon=12, unit="visit")):
        with pytest.raises(InvalidArgument):
            clinic.raise_budget("clinic", wrong, reason="no")
    with pytest.raises(UnknownName):
        clinic.raise_budget("school", Budget(epsilon=9), reason="none")
    assert clinic.verify().valid


def test_a_raise_keeps_the_order_that_was_fixed_in_advance(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6))
    ask(ledger, event=Gaussian(noise_multiplier=20))
    before = ledger.spent("clinic")
    ledger.raise_budget("clinic", Budget(epsilon=2, delta=1e-6), reason="more")
    after = ledger.spent("clinic")
    assert after.value == pytest.approx(before.value)
    assert after.value >= before.value * (1 - 1e-12)
    assert ledger.verify().valid


@pytest.mark.parametrize("blocks", [[], ["a"], ["a", "b"]])
def test_a_refund_gives_back_what_never_started(ledger, blocks):
    ledger.create_budget("clinic", Budget(epsilon=4, disjoint_by="ward"))
    ask(ledger, blocks=["b"])
    ledger.reserve("clinic", ONE, analyst="amina", operation="q", blocks=blocks)
    ledger.raise_budget("clinic", Budget(epsilon=6, disjoint_by="ward"), reason="more")
    ledger.refund("q", reason="the table was renamed")
    assert spent(ledger) == pytest.approx(1)
    assert spent(ledger) >= 1
    with pytest.raises(AlreadySpent, match="was refunded"):
        ledger.reserve("clinic", ONE, analyst="amina", operation="q", blocks=blocks)
    with pytest.raises(NotPermitted):
        ledger.refund("q", reason="again")
    with pytest.raises(UnknownName):
        ledger.refund("none", reason="none")
    assert ledger.verify().valid


def test_a_grant_that_was_refunded_does_not_start(clinic):
    grant = clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    clinic.refund("q", reason="wrong")
    with pytest.raises(AlreadySpent, match="or refunded"):
        grant.start()
    assert spent(clinic) == 0


# The same again


def test_asked_again_before_it_started_it_goes_on(clinic):
    first = clinic.reserve("clinic", ONE, analyst="amina", operation="q", request={"sql": "x"})
    again = clinic.reserve("clinic", ONE, analyst="amina", operation="q", request={"sql": "x"})
    assert (first.entry, spent(clinic)) == (again.entry, 1)
    with again:
        again.commit("a")
    with pytest.raises(AlreadySpent, match="another holder"):
        first.start()
    assert spent(clinic) == 1


def test_asked_again_with_an_empty_budget_it_still_goes_on(clinic):
    clinic.reserve("clinic", PureDP(epsilon=8), analyst="amina", operation="q")
    assert clinic.reserve("clinic", PureDP(epsilon=8), analyst="amina", operation="q").operation == "q"


def test_asked_again_after_the_answer_the_answer_is_free(clinic):
    ask(clinic, operation="q", answer={"n": 3})
    with pytest.raises(AlreadyAnswered, match="was answered on"):
        ask(clinic, operation="q")
    answer = clinic.answer("q", analyst="amina")
    assert (answer.value, spent(clinic)) == ({"n": 3}, 1)
    assert clinic.once("clinic", ONE, pytest.fail, analyst="amina", operation="q") == answer


@pytest.mark.parametrize(
    "other",
    [
        {"analyst": "badr"},
        {"event": PureDP(epsilon=0.5)},
        {"request": {"sql": "other"}},
        {"purpose": "p"},
        {"blocks": ["b"]},
        {"datasets": ["clinic", "school"]},
    ],
)
def test_an_id_stands_for_one_request(clinic, other):
    clinic.create_budget("school", Budget(epsilon=8))
    clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    with pytest.raises(OperationTaken):
        ask(clinic, **{"operation": "q", **other})
    assert (spent(clinic), spent(clinic, "school")) == (1, 0)


def test_a_second_answer_is_refused_and_the_same_again_is_not(clinic):
    grant = clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    with pytest.raises(AlreadySpent, match="is not started"):
        grant.commit("a")
    with grant:
        grant.commit("a")
        grant.commit("a")
        with pytest.raises(AlreadyAnswered):
            grant.commit("b")
    with pytest.raises(AlreadySpent, match="was started before"):
        grant.start()


# Answers


@pytest.mark.parametrize("value", [b"\0\xff", "ε", 3, 2.5, None, [1, [2]], {"a": {"b": 1}}])
def test_answers_come_back_as_they_were(clinic, value):
    ask(clinic, operation="q", answer=value)
    assert clinic.answer("q", analyst="amina").value == value


def test_answers_that_cannot_be_kept(clinic):
    with clinic.reserve("clinic", ONE, analyst="amina", operation="q") as grant:
        deep: list = []
        for _ in range(2000):
            deep = [deep]
        holding = [1]
        holding.append(holding)
        for wrong in (object(), float("nan"), {"x": {1, 2}}, 1j, deep, holding, "\ud800"):
            with pytest.raises(InvalidArgument):
                grant.commit(wrong)
        with pytest.raises(InvalidArgument, match="NOT PRIVATE"):
            grant.commit(Release(1, None, ONE, private=False))
        with pytest.raises(InvalidArgument, match="was paid for"):
            grant.commit(Release(1, None, PureDP(epsilon=2.0)))
        grant.commit(Release(1, 2.0, ONE, entry=grant.entry))
    assert clinic.answer("q", analyst="amina").value["value"] == 1


def test_answers_are_their_analysts(clinic):
    ask(clinic, operation="q")
    with pytest.raises(NotPermitted, match="another analyst's"):
        clinic.answer("q", analyst="badr")
    with pytest.raises(UnknownName, match="no answer"):
        clinic.answer("none", analyst="amina")


def test_large_answers_are_in_files_that_are_watched(fresh_durable, tmp_path):
    with Ledger.open(fresh_durable(), answers=tmp_path / "answers") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
        large = bytes(2**20 + 7)
        ask(ledger, operation="large", answer=large)
        assert ledger.answer("large", analyst="amina").content == large
        assert ledger.verify().valid
        (file,) = (tmp_path / "answers").iterdir()
        file.write_bytes(bytes(2**20 + 6) + b"9")
        with pytest.raises(LedgerDamaged, match="was changed"):
            ledger.answer("large", analyst="amina")
        assert not ledger.verify().valid
        file.unlink()
        with pytest.raises(LedgerDamaged, match="was moved or lost"):
            ledger.answer("large", analyst="amina")
        told = ledger.verify()
        assert told.valid
        assert "1 large answers are in files that are not here" in told.remarks[0]


@pytest.mark.parametrize("size", [4, 2**20 + 7])
def test_of_a_file_a_copy_is_kept(ledger, tmp_path, size):
    ledger.create_budget("clinic", Budget(epsilon=8))
    own = tmp_path / "own.csv"
    own.write_bytes(bytes(size))
    ask(ledger, operation="own", answer=own)
    own.write_bytes(b"something else")
    assert ledger.answer("own", analyst="amina").content == bytes(size)
    assert ledger.verify().valid


@pytest.mark.parametrize("wrong", ["", "missing", "fifo"])
def test_what_is_no_file_cannot_be_kept(clinic, tmp_path, wrong):
    os.mkfifo(tmp_path / "fifo")
    with clinic.reserve("clinic", ONE, analyst="amina", operation="q") as grant:
        with pytest.raises(InvalidArgument, match="can still commit"):
            grant.commit(tmp_path / wrong)
        grant.commit("a")


def test_an_answer_that_is_too_large_stays_charged_and_a_smaller_one_is_kept(fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(grant_module, "LARGE", 10)
    monkeypatch.setattr(grant_module, "LARGEST", 100)
    monkeypatch.setattr(answer_module, "LARGEST", 100)
    (tmp_path / "large").write_bytes(bytes(101))
    with Ledger.open(fresh(), answers=tmp_path / "answers") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
        with ledger.reserve("clinic", ONE, analyst="amina", operation="q") as grant:
            for answer in ("x" * 101, tmp_path / "large"):
                with pytest.raises(InvalidArgument, match=r"more than 100 bytes(.|\n)*stays charged"):
                    grant.commit(answer)
            ledger.answers = None
            if not ledger.in_memory:
                with pytest.raises(InvalidArgument, match=r"keeps up to 10(.|\n)*stays charged"):
                    grant.commit("x" * 11)
            grant.commit("x" * 10)
        assert spent(ledger) == 1
        assert ledger.verify().valid


def test_a_request_that_is_too_large_is_not_charged(clinic):
    many = [f"{number:0200}" for number in range(6000)]
    deep = ONE
    for _ in range(60):
        deep = PoissonSampled(deep, 1.0)
    for about in ({"event": ONE, "blocks": many}, {"event": deep}):
        with pytest.raises(InvalidArgument, match=r"too large for an entry(.|\n)*nothing was charged"):
            clinic.reserve("clinic", analyst="amina", **about)
    assert spent(clinic) == 0


# Opening


def test_a_book_that_must_be_there(fresh_durable):
    url = fresh_durable()
    with pytest.raises(UnknownName, match="there is no ledger"):
        Ledger.open(url, create=False)
    with Ledger.open(url) as made:
        pass
    with Ledger.open(url, create=False, expect=made.id) as ledger:
        assert ledger.id == made.id
    with pytest.raises(WrongLedger, match="was asked for"):
        Ledger.open(url, expect="0" * 32)


@pytest.mark.parametrize("url", ["", "a:b", "mysql://x", "sqlite://", "sqlite:///", "memory://x", 3, None])
def test_addresses_that_are_none(url):
    with pytest.raises(InvalidArgument, match=r"sqlite:///book\.db"):
        Ledger.open(url)


def test_a_newer_form_is_refused_and_an_older_one_is_brought_forward(fresh_durable, monkeypatch):
    url, ran = fresh_durable(), []
    with Ledger.open(url) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
        ask(ledger)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT_FORM)
    monkeypatch.setattr(migration, "MIGRATIONS", {NEXT_FORM - 1: lambda connection: ran.append(1)})
    for _ in range(2):
        with Ledger.open(url) as ledger:
            assert ledger.verify().valid
            assert spent(ledger) == 1
            assert [entry.kind for entry in ledger.entries()][-1] == "migrate"
    assert ran == [1]
    monkeypatch.undo()
    with pytest.raises(WrongLedger, match=f"has form {NEXT_FORM}"):
        Ledger.open(url)


def test_a_migration_that_fails_changes_nothing(fresh_durable, monkeypatch):
    url = fresh_durable()
    Ledger.open(url).close()

    def fails(connection):
        raise ZeroDivisionError

    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT_FORM)
    monkeypatch.setattr(migration, "MIGRATIONS", {NEXT_FORM - 1: fails})
    with pytest.raises(ZeroDivisionError):
        Ledger.open(url)
    monkeypatch.undo()
    with Ledger.open(url) as ledger:
        assert ledger.verify().head.seq == 1


def test_a_closed_ledger_opens_again_by_itself(fresh_durable):
    with Ledger.open(fresh_durable()) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
    ask(ledger)
    assert spent(ledger) == 1
    ledger.close()


def test_a_book_in_memory_is_one_for_all_threads():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=8))
    threads = [threading.Thread(target=ask, args=(ledger,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(ledger) == 8
    assert ledger.verify().valid


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
    monkeypatch.setattr("sitr.ledger.ledger.RECENT", 3)
    assert clinic.asked_before("clinic", ONE, **same) is None


def test_a_question_without_an_answer_is_not_worth_asking_again(clinic):
    clinic.reserve("clinic", ONE, analyst="amina")
    assert clinic.asked_before("clinic", ONE, analyst="amina") is None
