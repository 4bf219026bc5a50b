"""What a column of totals holds, in either store, and what it refuses."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text, update

from sitr.errors import LedgerDamaged, SitrError
from sitr.ledger import Budget, Ledger, schema
from sitr.ledger.entry import canonical
from sitr.ledger.schema import vector, vector_text, whole_numbers
from tests.ledger.acts import ask

vectors = st.lists(st.one_of(st.none(), st.integers(0, 10**80)), min_size=1).map(tuple)


@given(vectors)
def test_a_total_comes_back_from_either_store_as_it_was(used):
    assert vector(vector_text(used)) == used
    assert vector_text(used) == canonical(list(used))
    assert whole_numbers([None if one is None else Decimal(one) for one in used]) == used


@pytest.mark.parametrize("stored", ["", "[]", "[1,]", "[x]", "[1,nul]", "[1.5]", "{}"])
def test_a_text_that_is_no_total_is_damage(stored):
    with pytest.raises(LedgerDamaged, match="a running total cannot be read"):
        vector(stored)


@pytest.mark.parametrize("stored", ["NaN", "Infinity", "1.5"])
def test_a_number_that_is_no_total_is_damage(stored):
    with pytest.raises(LedgerDamaged, match="a running total cannot be read"):
        whole_numbers([Decimal(1), Decimal(stored)])


@pytest.mark.parametrize("used", [(0, 0), (1, None), (10**60, 5)])
def test_totals_of_any_size_are_kept(ledger, used):
    ledger.create_budget("clinic", Budget(epsilon=8))
    with ledger.store.transaction() as connection:
        connection.execute(update(schema.budget), {"whole": used})
    (total,) = ledger.store.totals(["clinic"])
    assert total.whole == used
    assert ledger.store.all_totals() == [total]


def test_no_total_is_below_nothing(ledger):
    ledger.create_budget("clinic", Budget(epsilon=8, disjoint_by="ward"))
    ask(ledger, blocks=["a"])
    for table, column in ((schema.budget, "whole"), (schema.budget, "peak"), (schema.block, "used")):
        with pytest.raises(SitrError), ledger.store.transaction() as connection:
            connection.execute(update(table), {column: (5, -1)})
    assert ledger.verify().valid


@pytest.mark.parametrize("stored", ["[1.5,0]", "[1, 0]", '["1",0]', "[true,0]", "[1e3,0]"])
def test_sqlite_refuses_what_is_no_list_of_whole_numbers(tmp_path, stored):
    with Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=8))
        with pytest.raises(LedgerDamaged), ledger.store.transaction() as connection:
            connection.execute(text("UPDATE budget SET whole = :stored"), {"stored": stored})
