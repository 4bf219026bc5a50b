"""Stored answers: as they were, to whom they belong, and watched."""

import pytest

from sitr.errors import LedgerDamaged, NotPermitted, UnknownName
from sitr.ledger import Budget, Ledger
from tests.ledger.acts import ask


@pytest.mark.parametrize("value", [b"\0\xff", "ε", 3, 2.5, None, [1, [2]], {"a": {"b": 1}}])
def test_answers_come_back_as_they_were(clinic, value):
    ask(clinic, operation="q", answer=value)
    assert clinic.answer("q", analyst="amina").value == value


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
