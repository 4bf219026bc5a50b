"""The bill of a synthetic table: what it costs, how wrong it will be and how long it takes, for nothing."""

import pyarrow
import pytest

from sitr.synthesis.bins import MOST_BINS
from sitr.tables.source import Source
from tests.synthesis.visits import DECLARED, PEOPLE, visits
from tests.tables import engines


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


def test_the_bill_reads_nothing_and_says_what_it_is_for(clinic, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    bill = clinic.table("visits").synthesize().explain(epsilon=0.5)
    text = str(bill)
    assert "This would cost ε = 0.500 at δ = 1e-08, once. Nothing has been read." in text
    assert "100 cells" in text
    assert "2 values or missing" in text
    assert "values shared by about" in text
    assert "28 pairs of columns" in text
    assert "budget test" in text
    assert bill.plan.rows_per_unit < 4  # by the declared sizes
    assert float(bill.epsilon) <= 0.5


def test_what_a_row_counts_for_is_said(clinic):
    """It was said to change one cell of each table by 1, and it changes all cells of an interaction."""
    table = clinic.table("visits")
    for most, said in (
        (1, "At most 1 row of a unit is used, and counts at most once in each table."),
        (3, "At most 3 rows of a unit are used, and count at most 3 times in each table."),
    ):
        assert said in str(table.synthesize(["age", "region"], max_rows_per_unit=most).explain(epsilon=1))


def test_there_are_no_more_bins_than_are_said():
    names = [f"c{place}" for place in range(40)]
    columns = {name: {"type": "integer", "bounds": [0, 199]} for name in names}
    declared = {"tables": {"wide": {"unit": "row", "expected_rows": 10**7, "columns": columns}}}
    table = pyarrow.table({name: [1, 2] for name in names})
    with engines.asked("duckdb", {"wide": table}, DECLARED | declared | {"privacy": {"delta": 1e-8}}) as database:
        bill = database.table("wide").synthesize().explain(epsilon=1)
    assert sum(bill.bins) <= MOST_BINS
    assert "Each row is a unit of its own, and counts once in each table." in str(bill)


def test_what_a_check_takes_is_said(clinic):
    table, asked = clinic.table("visits"), {"columns": ["age", "region"]}
    with_check, without = (str(table.synthesize(**asked, check=check).explain(epsilon=1)) for check in (0.2, 0.0))
    assert "20 % of the price goes into measuring how close the result is to the data" in with_check
    assert "goes into measuring" not in without


def test_one_column_has_no_pairs(clinic):
    assert "pair" not in str(clinic.table("visits").synthesize(["age"]).explain(epsilon=1))


def test_more_noise_than_rows_is_called_that(clinic):
    assert "more noise than rows" in str(clinic.table("visits").synthesize(["cost"]).explain(epsilon=0.001))


def test_what_is_not_declared_is_not_forecast():
    table = {name: one for name, one in DECLARED["tables"]["visits"].items() if not name.startswith("expected")}
    with engines.asked("duckdb", {"visits": visits()}, DECLARED | {"tables": {"visits": table}}) as database:
        bill = database.table("visits").synthesize(["age", "region"]).explain(epsilon=1)
    assert (bill.seconds, bill.megabytes, bill.bins) == (None, None, None)
    assert "declare expected_rows" in str(bill)
    assert "not known" in str(bill)


def test_the_expected_error_is_what_the_noise_does_to_a_column(clinic):
    bill = clinic.table("visits").synthesize(["age", "region"], max_rows_per_unit=4).explain(epsilon=1)
    age, facts = bill.lines[0], clinic.facts(clinic.table("visits").relation)
    kept = 2 * PEOPLE * facts.kept(4)  # of units with more rows, some are dropped
    assert age.error == pytest.approx(0.5 * 100 * 0.7979 * (age.noise / 1.96) / kept, rel=1e-3)
