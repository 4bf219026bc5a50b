"""Books are for ever: those that earlier versions made are opened, verified and gone on with.

The books in `golden` were made by the version of their form: budgets of each kind, a share, blocks, and operations in
every state.
"""

import sqlite3
from pathlib import Path

import pytest

from sitr.accounting import Laplace, PureDP
from sitr.errors import AlreadySpent, NotPermitted
from sitr.ledger import Budget, Ledger
from sitr.ledger.postgres import FOR_ANALYSTS
from sitr.ledger.schema import SCHEMA_VERSION
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared

GOLDEN = Path(__file__).parent / "golden"
# What its tables say in units of 2^-60 of the limits, so far as that is not told by the events alone.
SPENT = {"clinic": 0.375, "school": 0.00125, "tax": 24031000872920915 / 2**60 * 1.5351343280228522}
LATER = ("declared(text, text[])", "mine()")  # functions that the first form did not have
REQUEST = {"event": PureDP(epsilon=0.125), "analyst": "amina", "operation": "q-3"}


@pytest.fixture(params=stores.DURABLE)
def old(request, tmp_path):
    """The address of a book in the first form."""
    url = stores.fresh(request.param, tmp_path)()
    script = (GOLDEN / f"v1-{request.param}.sql").read_text()
    if request.param == "postgresql":
        shared().restore(url, script)
    else:
        stores.file_of(url).touch(0o600)
        connection = sqlite3.connect(stores.file_of(url))
        connection.executescript(script)
        connection.close()
    return url


def test_an_old_book_says_what_it_said(old):
    with Ledger.open(old) as ledger:
        told = ledger.verify()
        assert told.valid, told
        assert told.head.seq == 18  # 17 entries, and that it was brought to the form of today
        assert {name: ledger.spent(name).value for name in SPENT} == pytest.approx(SPENT, rel=1e-6)
        assert ledger.answer("q-1", analyst="amina").value == {"n": 41}
        assert ledger.store.identity().schema_version == SCHEMA_VERSION
        assert all("nonce" not in entry.record for entry in list(ledger.entries())[:17])
    with Ledger.open(old) as ledger:
        assert ledger.head.seq == 18


def test_an_old_book_goes_on(old):
    with Ledger.open(old) as ledger:
        with ledger.reserve("clinic", **REQUEST) as grant:  # reserved then, without a nonce
            grant.commit("a")
        with pytest.raises(AlreadySpent):
            ledger.reserve("tax", Laplace(noise_multiplier=50), analyst="badr", operation="q-5")
        ledger.reserve("clinic", PureDP(epsilon=0.125), analyst="badr", operation="q-6")
        ledger.raise_budget("clinic", Budget(epsilon=3.0, disjoint_by="ward"), reason="third year")
        ledger.refund("q-6", reason="never ran")
        assert ledger.spent("clinic").value == pytest.approx(SPENT["clinic"])
        assert ledger.verify().valid


def test_the_owner_brings_a_book_forward_and_analysts_are_told_so(tmp_path):
    url = stores.fresh("postgresql", tmp_path)()
    shared().restore(url, (GOLDEN / "v1-postgresql.sql").read_text())
    analyst = f"late_{database_of(url)}"
    allowed = [f"EXECUTE ON FUNCTION sitr.{function}" for function in FOR_ANALYSTS if function not in LATER]
    granted = "; ".join(f"GRANT {right} TO {analyst}" for right in ["USAGE ON SCHEMA sitr", *allowed])
    shared().sql(f"CREATE ROLE {analyst} LOGIN; {granted}", database_of(url))
    with pytest.raises(NotPermitted, match=r"has form 1(.|\n)*let its owner open it"):
        Ledger.open(shared().url(database_of(url), analyst))
    Ledger.open(url).close()
    with Ledger.open(shared().url(database_of(url), analyst)) as ledger:
        with ledger.reserve("clinic", PureDP(epsilon=0.125), analyst=analyst, operation="new") as grant:
            grant.commit("a")
        assert ledger.answer("new", analyst=analyst).value == "a"
        assert ledger.terms("clinic", ["clinic"]) == {}  # by a function that came later, and was granted with the form
