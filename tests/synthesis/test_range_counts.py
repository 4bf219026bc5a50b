"""Ranges on a database: any two values of a column, with intervals, from one release that is charged once."""

from datetime import date, timedelta

import numpy as np
import pyarrow
import pytest

from sitr.accounting import PureDP
from sitr.errors import BudgetExceeded, InvalidArgument
from sitr.synthesis.range_counts import range_plan
from sitr.tables.relations import Scan
from sitr.tables.source import Source
from tests.synthesis.visits import DAY, DECLARED, PEOPLE, visits
from tests.tables import engines

RELEASES, AT_LEAST = 2000, 1837  # of 95 in 100, fewer with a probability under 1e-9


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


@pytest.fixture(scope="module")
def ages(clinic):
    return clinic.table("visits").ranges("age", max_rows_per_unit=2).release(epsilon=4, operation="ages")


@pytest.mark.parametrize(
    "engine", ["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_on_every_engine(engine):
    with engines.asked(engine, {"visits": visits()}, DECLARED) as database:
        found = database.table("visits").ranges("age", max_rows_per_unit=2).release(epsilon=15)
    real = visits()["age"].to_numpy()
    for low, high in ((0, 99), (0, 40), (41, 99), (70, 70)):
        assert abs(found.count(low, high).value - ((low <= real) & (real <= high)).sum()) < 120


def test_what_is_charged_is_a_pure_epsilon_whatever_a_unit_has(clinic):
    table = clinic.table("visits")
    one, several = (table.ranges("age", max_rows_per_unit=most).explain(epsilon=0.5).plan for most in (1, 4))
    assert one.event == several.event == PureDP(0.5, adjacency="add_remove")
    assert several.mechanism.rate == one.mechanism.rate / 4
    assert several.mechanism.expected_error(0, 50) > 3 * one.mechanism.expected_error(0, 50)


@pytest.mark.statistical
@pytest.mark.parametrize(("low", "high"), [(20, 60), (0, 33), (13, 13), (18, 44)])
def test_intervals_hold_the_truth_also_where_cells_are_cut(clinic, low, high):
    plan = range_plan(Scan("visits"), clinic.declared, epsilon=0.5, column="age", max_rows_per_unit=2, cells=20)
    real = np.clip(visits()["age"].to_numpy(), 0, 99)
    counts = np.bincount(
        plan.coded.codes[0].numbers_of(visits()["age"].combine_chunks()), minlength=plan.mechanism.cells
    )
    truth, held = ((low <= real) & (real <= high)).sum(), 0
    made = clinic.table("visits").ranges("age", max_rows_per_unit=2, cells=20).release(epsilon=0.01)
    for seed in range(RELEASES):
        found = type(made)(
            value=plan.mechanism.release(counts, unsafe_seed=seed).value,
            error95=None,
            event=plan.event,
            rate=plan.mechanism.rate,
            codes=plan.coded.codes,
        ).count(low, high)
        held += found.low <= truth <= found.high
    assert held >= AT_LEAST


def test_a_range_that_cuts_a_cell_says_so(clinic):
    found = clinic.table("visits").ranges("age", cells=10).release(epsilon=1)
    whole, cut = found.count(5, 24), found.count(7, 24)
    assert not whole.notes
    assert "cuts a cell in two" in str(cut)
    assert cut.high - cut.low > whole.high - whole.low
    inside = found.count(7, 8)  # of one cell, and not all of it
    assert inside.low == 0
    assert inside.high > 0
    assert found.count(60, 20).value == 0


def test_quantiles_are_values_of_the_column(clinic, ages):
    median = ages.quantile(0.5)
    assert median.low <= median.estimate <= median.high
    assert abs(median.estimate - np.median(visits()["age"].to_numpy())) <= 5
    days = clinic.table("visits").ranges("day", max_rows_per_unit=2).release(epsilon=2)
    middle = days.quantile(0.5)
    assert isinstance(middle.estimate, date)
    assert DAY <= middle.low <= middle.estimate <= middle.high <= DAY + timedelta(days=365)
    assert abs(days.count(DAY, DAY + timedelta(days=400)).value - 2 * PEOPLE) < 600


def test_rows_without_a_value_lie_in_no_range(clinic):
    costs = clinic.table("visits").ranges("cost", max_rows_per_unit=2).release(epsilon=8)
    known = np.isfinite(visits()["cost"].to_numpy()).sum()
    assert abs(costs.count(0, 1000).value - known) < 150
    assert "Rows without a value" in str(clinic.table("visits").ranges("cost").explain(epsilon=1))


def test_the_bill_reads_nothing(clinic, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    bill = clinic.table("visits").ranges("age").explain(epsilon=0.5)
    assert "This would cost ε = 0.500, once. Nothing has been read." in str(bill)
    assert "age in 100 cells" in str(bill)
    assert "Of a unit, 4 rows at most will be counted." in str(bill)
    assert 0 < bill.errors[0] < bill.errors[1]


def test_it_is_kept(clinic, ages):
    again = clinic.table("visits").ranges("age", max_rows_per_unit=2).release(epsilon=4, operation="ages")
    assert again.kept
    assert "nothing was charged" in str(again)
    for low, high in ((0, 99), (30, 60), (18, 18)):
        assert again.count(low, high) == ages.count(low, high)
    assert again.quantile(0.25) == ages.quantile(0.25)
    frame = ages.to_pandas()
    assert list(frame.columns) == ["age", "measured", "up_to", "low", "high"]
    assert frame["up_to"].iloc[-1] == ages.count(0, 99).value


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("region", {}, "have no order"),
        ("patient", {}, "no bounds"),
        ("ages", {}, "ages"),
        ("age", {"max_rows_per_unit": 9}, "max_rows_per_unit=9"),
    ],
)
def test_what_has_no_ranges_is_refused(clinic, column, options, said):
    with pytest.raises(InvalidArgument, match=said):
        clinic.table("visits").ranges(column, **options).explain(epsilon=1)


def test_what_does_not_fit_is_refused(clinic):
    with pytest.raises(BudgetExceeded):
        clinic.table("visits").ranges("age").release(epsilon=100)


def test_what_lies_on_a_border_is_where_the_engine_counted_it():
    """Cells of 98: 147 is counted in the cell that exactly ends at 146, and was missed by ranges that begin there.

    Any noise at all has a probability under 1e-90 at ε = 500: it costs some cell, its block and the block around it.
    """
    content = {"tables": {"sums": {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 19_600]}}}}}
    with engines.asked("duckdb", {"sums": pyarrow.table({"x": [147] * 1000})}, content) as database:
        found = database.table("sums").ranges("x").release(epsilon=500)
    for low, high, truth in ((147, 19_600, 1000), (0, 146, 0), (0, 147, 1000), (148, 19_600, 0), (147, 147, 1000)):
        count = found.count(low, high)
        assert count.low - 3 <= truth <= count.high + 3, (low, high)
    assert found.quantile(0.5).low <= 147 <= found.quantile(0.5).high


def test_a_range_within_one_cell_is_not_said_to_be_empty(clinic):
    """Between two of the values that a float is drawn from there may be rows."""
    costs = clinic.table("visits").ranges("cost", max_rows_per_unit=2).release(epsilon=1)
    count = costs.count(100.0001, 100.0002)
    assert count.low == 0
    assert count.high > 0
    assert costs.count(2000, 3000).high == 0
