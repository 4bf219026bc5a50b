"""The histogram of seed 001 on a database: counted by the engine, charged once, and drawn from for nothing."""

import numpy as np
import pytest

from sitr.accounting import DiscreteLaplace
from sitr.errors import BudgetExceeded, InvalidArgument
from sitr.tables.source import Source
from tests.synthesis.visits import DECLARED, PEOPLE, visits
from tests.tables import engines


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


@pytest.mark.parametrize(
    "engine", ["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_on_every_engine(engine):
    with engines.asked(engine, {"visits": visits()}, DECLARED) as database:
        found = database.table("visits").histogram("region", "smokes").release(epsilon=8)
    frame = visits().to_pandas()
    cells = found.to_pandas().set_index(["region", "smokes"])["rows"]
    for region in ("north", "south"):
        for smokes in (False, True):
            real = ((frame["region"] == region) & (frame["smokes"] == smokes)).sum()
            assert abs(cells[region, str(smokes)] - real) <= 30  # noise of scale 1/2: thirty is e^-60
    assert found.value.counts.shape == (3, 2)


def test_a_number_is_cut_into_cells_and_drawn_within_them(clinic):
    found = clinic.table("visits").histogram("age", cells=20, max_rows_per_unit=2).release(epsilon=4)
    assert found.value.counts.size <= 22
    rows = found.sample(2000, seed=1).to_pandas()
    assert rows["age"].between(0, 99).all()
    assert abs(rows["age"].mean() - visits().to_pandas()["age"].mean()) < 4
    assert list(found.to_pandas().columns) == ["age", "rows", "measured"]


def test_what_is_charged_follows_from_the_rows_of_a_unit(clinic):
    table = clinic.table("visits")
    one, several = (table.histogram("age", max_rows_per_unit=most).explain(epsilon=0.5).plan for most in (1, 4))
    assert one.event == DiscreteLaplace(2.0, adjacency="add_remove") * 1
    assert several.event == DiscreteLaplace(8.0, 4, adjacency="add_remove")
    assert several.event.pure() == pytest.approx(0.5)


def test_the_bill_reads_nothing(clinic, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    text = str(clinic.table("visits").histogram("age", "smokes").explain(epsilon=0.5))
    assert "This would cost ε = 0.500, once. Nothing has been read." in text
    assert "200 cells: age in 100 cells, smokes in 2 cells." in text
    assert "Of a unit, 4 rows at most will be counted." in text


def test_it_is_kept(clinic):
    asked = clinic.table("visits").histogram("smokes")
    first = asked.release(epsilon=0.5, operation="smokers")
    again = asked.release(epsilon=0.5, operation="smokers")
    assert again.kept
    assert (again.value.noisy == first.value.noisy).all()
    assert "nothing was charged" in str(again)
    assert f"rows in 2 cells of {first.columns[0]}" in str(first)


def test_rows_without_a_value_are_cells_of_their_own(clinic):
    found = clinic.table("visits").histogram("cost", cells=4).release(epsilon=8).to_pandas()
    missing = np.isnan(visits().to_pandas()["cost"]).sum()
    assert abs(found.loc[found["cost"].isna(), "rows"].iloc[0] - missing) < 40
    assert abs(found["rows"].sum() - 2 * PEOPLE) < 150


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ((), {}, "names none"),
        (("age", "age"), {}, "twice"),
        (("ages",), {}, "ages"),
        (("patient",), {}, "patient: the values have no bounds"),
        (("diagnosis",), {}, "diagnosis: the values have no bounds"),
        (("age", "cost", "price", "day", "at"), {}, "is too large"),
        (("age",), {"max_rows_per_unit": 5}, "max_rows_per_unit=5"),
    ],
)
def test_what_cannot_be_counted_is_refused(clinic, columns, options, said):
    with pytest.raises(InvalidArgument, match=said):
        clinic.table("visits").histogram(*columns, **options).explain(epsilon=1)


def test_what_does_not_fit_is_refused(clinic):
    with pytest.raises(BudgetExceeded):
        clinic.table("visits").histogram("age").release(epsilon=100)
