"""Profiles: rows of units and bounds of columns, found privately and used from then on."""

import pytest

import sitr
from sitr.errors import InvalidArgument
from sitr.session.profile import EDGES, SIZES
from tests.tables import clinic


def test_a_profile_finds_rows_of_units_and_bounds():
    with clinic.database(visits=clinic.visits(2000, 3)) as database:
        visits = database.table("visits")
        before = database.ledger.remaining("clinic").value
        assert len(visits.profile("cost").explain(epsilon=4.0)) == 2
        assert database.ledger.remaining("clinic").value == before
        found = visits.profile("cost").release(epsilon=4.0)
        assert database.ledger.remaining("clinic").value < before
        assert found.facts.units == pytest.approx(2000, rel=0.1)
        assert found.facts.rows == pytest.approx(6000, rel=0.1)
        low, high = found.bounds["cost"]
        assert (low < 50, 512 <= high <= 2048) == (True, True)
        assert "units with" in str(found)
        explained = visits.aggregate(n=sitr.count()).explain(epsilon=1.0)
        assert explained.facts == found.facts
        assert explained.kept > 0.9


def test_what_cannot_be_profiled():
    with clinic.database() as database:
        with pytest.raises(InvalidArgument, match="ward is no number"):
            database.table("visits").profile("ward")
        with pytest.raises(InvalidArgument, match="nothing to profile"):
            database.table("labs").profile()
        with pytest.raises(InvalidArgument, match="there is no column"):
            database.table("visits").profile("cots")


def test_the_edges_rise():
    assert sorted(set(SIZES)) == SIZES
    assert sorted(set(EDGES)) == EDGES
    assert (SIZES[0], SIZES[-1]) == (1, 10**6)
