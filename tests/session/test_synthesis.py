"""A synthetic table of a database, on every engine."""

import pytest

from sitr.errors import InvalidArgument
from tests.synthesis.visits import DECLARED, PEOPLE, visits
from tests.tables import engines


@pytest.mark.parametrize(
    "engine", ["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_on_every_engine(engine):
    with engines.asked(engine, {"visits": visits()}, DECLARED) as database:
        table = database.table("visits").synthesize(["age", "smokes", "diagnosis"])
        found = table.release(epsilon=4).to_pandas(seed=1)
    assert abs(len(found) - 2 * PEOPLE) < 200
    assert abs(found["smokes"].mean() - 0.4) < 0.05
    assert found.loc[found["smokes"], "age"].mean() - found.loc[~found["smokes"], "age"].mean() > 20
    assert found.loc[found["smokes"], "diagnosis"].eq("flu").mean() > 0.7
    assert set(found["diagnosis"].dropna()) == {"flu", "cold", "cough"}


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


def test_it_needs_a_delta(clinic):
    with pytest.raises(InvalidArgument, match="needs a δ"):
        clinic.table("visits").synthesize().explain(epsilon=1, delta=0)
