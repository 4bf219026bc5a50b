"""Promises: budgets that are raised keep what was spent, and nothing lowers or doubles them."""

import pytest

from sitr.accounting import Gaussian
from sitr.errors import BudgetExceeded, InvalidArgument, UnknownName
from sitr.ledger import Budget
from tests.ledger.acts import ask, spent


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
