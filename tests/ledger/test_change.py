"""Changes of a promise: which entries make one, and how a report tells it."""

import pytest

from sitr.ledger import Budget, Ledger
from sitr.ledger.change import LONGEST, Change, changed_terms, is_change
from tests.ledger.declared import ROWS, TERMS, other

AT = "2026-03-01T09:00:00.000000+00:00"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("raise", "raised on 2026-03-01 to ε = 2: second wave"),
        ("replace", "replaced on 2026-03-01 by ε = 2: second wave"),
        ("declare", "redeclared on 2026-03-01 (ε = 2): second wave"),
    ],
)
def test_a_change_says_what_was_done_when_to_what_and_why(kind, text):
    change = Change(AT, kind, "ε = 2", "second wave")
    assert str(change) == text
    assert text == f"{change.verb} {change.text}"


def test_what_is_promised_first_changes_nothing():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1))
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
    ledger.declare(TERMS)
    ledger.declare(other(settings={"delta": "1e-9"}))  # which no promise depends on
    assert not any(map(is_change, ledger.entries()))
    ledger.raise_budget("clinic", Budget(epsilon=2), reason="a")
    ledger.replace_share("clinic", Budget(epsilon=0.25), analyst="amina", reason="b")
    ledger.declare(other(promise=ROWS), reason="c")
    assert [(entry.kind, entry.record["reason"]) for entry in ledger.entries() if is_change(entry)] == [
        ("raise", "a"),
        ("replace", "b"),
        ("declare", "c"),
    ]


def test_very_many_differences_are_told_in_short():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1))
    ledger.declare(TERMS)
    ledger.declare(other(promise={f"tables.t{number}.unit": "named by x" for number in range(200)}), reason="all")
    *_, last = ledger.entries()
    change = changed_terms(last)
    assert len(last.record["changes"]) == 202
    assert len(change.what) < LONGEST + 50 < len("; ".join(last.record["changes"]))
    assert (change.at, change.reason) == (last.at, "all")
