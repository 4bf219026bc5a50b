"""The book says what was asked: a line per release, for owners of all, and for an analyst of her own."""

import itertools

import psycopg

from sitr.accounting import Gaussian, PureDP
from sitr.ledger import Budget, Ledger
from sitr.ledger.asked import Asked
from sitr.ledger.journal import journal
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared

EVENT = PureDP(epsilon=0.25)
ASKED = Asked("SELECT COUNT(*) FROM visits", ("visits",), epsilon=0.25, declaration="clinic, version 1")
NAMES = itertools.count(1)


def test_each_release_has_a_line(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
    with ledger.reserve("clinic", EVENT, analyst="amina", operation="a", purpose="audit", asked=ASKED) as grant:
        grant.commit(1, left={"clinic": "much"})
    ledger.reserve("clinic", EVENT, analyst="badr", operation="b")
    ledger.refund("b", reason="never ran")
    ledger.reserve("clinic", EVENT, analyst="badr", operation="c").start()
    first, second, third = ledger.releases()
    assert (first.analyst, first.purpose, first.question, first.price) == ("amina", "audit", ASKED.text, "ε = 0.25")
    assert first.asked == ASKED
    assert first.left == {"clinic": "75.0 %", "clinic/analyst/amina": "50.0 %"}  # by the entries, not by what was said
    assert [line.state for line in (first, second, third)] == ["committed", "refunded", "started"]
    assert (second.question, second.price, second.refunded) == ("pure_dp(0.25)", "", "never ran")
    assert (second.left, third.left) == ({"clinic": "50.0 %"}, {"clinic": "50.0 %"})
    assert [line.seq for line in ledger.statement("clinic").releases] == [line.seq for line in ledger.releases()]
    assert [line.operation for line in ledger.statement("clinic", analyst="amina").releases] == ["a"]
    assert "by amina for audit: SELECT COUNT(*) FROM visits; ε = 0.25; 75.0 % left" in str(ledger.statement("clinic"))
    assert ledger.verify()


def test_words_do_not_tell_requests_apart(ledger):
    """A retry may say the same otherwise: the digest of the request decides."""
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ask = {"analyst": "amina", "operation": "q", "request": {"plan": 1}}
    ledger.reserve("clinic", EVENT, **ask, asked=ASKED)
    ledger.reserve("clinic", EVENT, **ask, asked=Asked("the same"))
    assert [line.question for line in ledger.releases()] == [ASKED.text]


def test_a_book_that_was_tampered_with_is_read_as_far_as_it_can_be(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    for name in ("a", "b"):
        ledger.reserve("clinic", EVENT, analyst="amina", operation=name)
    entries = list(ledger.entries())
    lines = journal([*entries[:2], *entries[3:], entries[2]])  # in another order
    assert [line.operation for line in lines] == ["b", "a"]
    lines = journal([entry for entry in entries if entry.kind != "budget"])
    assert [line.left for line in lines] == [{}, {}]


def test_an_analyst_of_a_server_sees_her_own(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    amina, badr = (f"{name}_journal{next(NAMES)}_{database_of(url)}" for name in ("amina", "badr"))
    with Ledger.open(url) as owner:
        owner.create_budget("clinic", Budget(epsilon=1.0, delta=1e-6))
        for name in (amina, badr):
            with psycopg.connect(url, autocommit=True) as server:
                server.execute(f"CREATE ROLE {name} LOGIN")
            owner.allow(name)
        for name in (amina, badr):
            with Ledger.open(shared().url(database_of(url), name), create=False) as ledger:
                asked = Asked(f"a question of {name}", epsilon=0.1)
                event = Gaussian(noise_multiplier=30)
                with ledger.reserve("clinic", event, analyst=name, operation=name, asked=asked) as grant:
                    grant.commit("noisy", left={"clinic": "95 %"})
                (line,) = ledger.releases()
                assert (line.question, line.left, line.state) == (asked.text, {"clinic": "95 %"}, "committed")
        assert [line.analyst for line in owner.releases()] == [amina, badr]
        assert "95 %" not in str(owner.releases())  # an analyst's word; the entries say it themselves
        assert owner.verify()
