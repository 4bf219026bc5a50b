"""A grant: started once, committed once, and what may be kept as an answer."""

import os

import pytest

from sitr.accounting import PureDP
from sitr.errors import AlreadyAnswered, AlreadySpent, InvalidArgument
from sitr.ledger import Budget, Ledger
from sitr.ledger import answer as answer_module
from sitr.ledger import grant as grant_module
from sitr.release import Release
from tests.ledger.acts import ONE, ask, spent


def test_a_grant_that_was_refunded_does_not_start(clinic):
    grant = clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    clinic.refund("q", reason="wrong")
    with pytest.raises(AlreadySpent, match="or refunded"):
        grant.start()
    assert spent(clinic) == 0


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
