"""Budgets: what may be promised, which filter keeps it, and how a raise counts what was spent."""

import pytest

from sitr.accounting import PureFilter, RDPFilter, ZCDPFilter
from sitr.errors import InvalidArgument
from sitr.ledger import Budget
from sitr.ledger.budget import key, keys

BUDGETS = [
    Budget(epsilon=1),
    Budget(epsilon=1, delta=1e-6),
    Budget(rho=0.5),
    Budget(rho=0.5, delta=1e-9),
    Budget(epsilon=0.3, unit="patient", disjoint_by="ward"),
    Budget(epsilon=2, delta=1e-5, per="month", adjacency="replace_one"),
]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"rho": -1},
        {"epsilon": 1, "delta": 1.5},
        {"epsilon": 1, "delta": -1e-6},
        {"delta": 1e-6},
        {"epsilon": 1, "adjacency": "swap"},
        {"epsilon": 1, "unit": ""},
        {"epsilon": 1, "unit": "per\nson"},
        {"epsilon": 1, "disjoint_by": "ward", "per": "month"},
    ],
)
def test_what_cannot_be_promised(wrong):
    with pytest.raises(InvalidArgument):
        Budget(**wrong)


def test_each_kind_has_its_filter():
    kinds = [PureFilter, RDPFilter, ZCDPFilter, ZCDPFilter]
    assert [type(budget.filter()) for budget in BUDGETS[:4]] == kinds


def test_names_of_budgets():
    assert key("clinic", purpose="teaching") == "clinic/purpose/teaching"
    assert keys(["a", "b"], "x/y", "p") == ["a", "a/analyst/x/y", "a/purpose/p", "b", "b/analyst/x/y", "b/purpose/p"]
    for wrong in ("a/b", "", " a", "a\n", "a\u200b", "a\u3164", "a\ufe0f", "\u2800", "e\u0301", "x" * 201, 3):
        with pytest.raises(InvalidArgument):
            key(wrong)
