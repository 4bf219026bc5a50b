"""Statements: rounded to the safe side, exact beside them, and what would fit."""

from sitr.accounting import Gaussian
from sitr.ledger import Budget


def test_a_statement_says_it_all(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6, unit="patient"))
    for number in range(3):
        with ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation=f"q{number}") as grant:
            grant.commit(1)
    ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation="open")
    ledger.reserve("clinic", Gaussian(noise_multiplier=20), analyst="amina", operation="back")
    ledger.refund("back", reason="not run")
    ledger.raise_budget("clinic", Budget(epsilon=2, delta=1e-6, unit="patient"), reason="ethics board 12")
    told = ledger.statement("clinic")
    assert told.operations == {"committed": 3, "refunded": 1, "reserved": 1}
    assert told.event == Gaussian(noise_multiplier=20) * 4
    assert told.spent == ledger.spent("clinic")
    assert told.exact.upper < 1
    assert told.head == ledger.head
    text = str(told)
    for words in ("patient", "ethics board 12", "for a fixed list of questions (for information only)", "3 committed"):
        assert words in text
    points = told.points
    assert [point.kind for point in points] == ["budget", *["reserve"] * 5, "refund", "raise"]
    assert points[0].left == 1.0
    assert points[-1].left > points[-2].left
