"""Refunds: what never started is given back, once."""

import pytest

from sitr.errors import AlreadySpent, NotPermitted, UnknownName
from sitr.ledger import Budget
from tests.ledger.acts import ONE, ask, spent


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
