"""A profile finds rows of units and bounds of columns, and takes no noise for them."""

import numpy as np
import pytest

import sitr
from sitr.accounting import PureDP
from sitr.errors import AccuracyWarning, InvalidArgument, UselessQuestion
from sitr.query.answer import Additive, Answer
from sitr.session.profile import SIZES as BINS
from sitr.session.profile import _facts
from tests.session.clinic import ROWS, SIZES, opened


@pytest.mark.statistical
def test_a_profile_finds_how_many_rows_units_have():
    """At ε = 5 the noise has a scale of 0.2: beyond 8 in one of 111 bins with a chance of 111 e^-40, under 1e-9."""
    with opened() as clinic:
        found = clinic.table("visits").profile().release(epsilon=5).facts
    assert [size for size, part in found.sizes if part > 0.01] == list(SIZES)
    assert abs(found.units - sum(SIZES.values())) <= 8 * 8
    assert abs(found.rows - ROWS) <= 8 * 8 * 8


@pytest.mark.statistical
def test_noise_is_not_taken_for_units_with_a_million_rows():
    """At ε = 0.02 the noise has a scale of 50, and a profile takes noise for units with a chance of 0.01 at most.

    Else units have 8 rows at most. Eight wrong ones of ten have a chance of at most 45 · 0.01^8, under 1e-9.
    """
    wrong = 0
    for _ in range(10):
        with opened() as clinic:
            found = clinic.table("visits").profile().release(epsilon=0.02).facts
        wrong += found.rows / found.units > 100
    assert wrong < 8


@pytest.mark.statistical
def test_a_profile_finds_bounds_that_hold_nearly_all_values():
    """20 rows of each of 500 units at ε = 50: scale 0.4, against thousands of rows in a bin."""
    with opened() as clinic:
        found = clinic.table("visits").profile("cost").release(epsilon=100)
    assert found.bounds["cost"] == (1.0, 128.0)
    assert "cost: bounds = [1, 128]" in str(found)


def test_a_profile_with_an_operation_is_charged_once():
    with opened() as clinic:
        profile = clinic.table("visits").profile("cost")
        first = profile.release(epsilon=1, operation="profile")
        spent = clinic.ledger.spent("clinic").value
        again = profile.release(epsilon=1, operation="profile")
        assert clinic.ledger.spent("clinic").value == spent
    assert [one.raw for one in first.answers] == [one.raw for one in again.answers]
    assert [one.operation for one in again.answers] == ["profile", "profile cost"]


def test_what_a_profile_finds_is_used_with_or_without_more_columns():
    with opened() as clinic:
        visits = clinic.table("visits")
        found = visits.derive(more=visits["urgent"].choose(2, 1)).profile("more").release(epsilon=10).facts
        assert clinic.facts(visits.relation) == found
        visits.filter(visits["urgent"]).profile().release(epsilon=10)
        assert clinic.facts(visits.relation) == found


def test_only_numbers_have_bounds():
    with opened() as clinic, pytest.raises(InvalidArgument, match="no number"):
        clinic.table("visits").profile("region")


@pytest.mark.statistical
def test_few_units_with_many_rows_are_found_together():
    """Units of 100 to 900 rows, 30 in each bin or less: none stands out alone at ε = 0.5, which has a scale of 2.

    Without them units would have one row on average, 0.01 of what they have. The noise has fixed seeds.
    """
    sizes = np.array([1] * 1000 + [100 + 800 * place // 240 for place in range(240)])
    counts = np.histogram(sizes, BINS)[0]
    for seed in range(50):
        noisy = counts + np.random.default_rng(seed).laplace(0, 2, len(counts)).round()
        answer = Answer(
            {"units": list(noisy)}, {}, PureDP(epsilon=0.5), raw={"units": list(noisy)},
            additive={"units": Additive((1.0,), 2.0, "laplace", True)},
        )  # fmt: skip
        found = _facts(answer)
        assert abs(found.units - 1240) < 200
        assert 0.25 < found.rows / sizes.sum() < 1.2


def test_what_a_profile_would_cost_is_told_in_a_few_lines():
    with opened() as clinic:
        profile = clinic.table("visits").profile("cost")
        found = profile.explain(epsilon=1.0)
        assert list(found.questions) == ["", "cost"]
        assert len(repr(found)) < 1000
        assert str(found).splitlines() == [
            "This would cost ε = 1, in equal parts. Nothing has been read.",
            "rows of a unit, in bins of units: 95 % of the time, noise is within ± 6",
            "cost, in bins of rows: 95 % of the time, noise is within ± 6",
            "budget clinic: 100 % of ε = 1000 left, 99.9 % after this.",
        ]
        profile.release(epsilon=1.0)
        assert clinic.ledger.remaining("clinic").share == pytest.approx(0.999)


def test_a_profile_of_no_row_is_made_only_where_that_is_said():
    with opened() as clinic:
        visits = clinic.table("visits")
        profile = visits.filter(visits["region"] == "nroth").profile("cost")
        with pytest.raises(UselessQuestion, match="Did you mean 'north'") as refused:
            profile.release(epsilon=1.0)
        assert "anyway=True" in refused.value.do
        assert clinic.ledger.spent("clinic").value == 0
        assert profile.release(epsilon=1.0, anyway=True).bounds
        assert clinic.ledger.spent("clinic").value == pytest.approx(1.0)


def test_what_a_profile_is_warned_of_points_at_its_user():
    with opened() as clinic:
        visits = clinic.table("visits")
        for table in (visits.filter(visits["region"] != "nroth"), visits[visits["region"].isin(["north", "x"])]):
            with pytest.warns(AccuracyWarning, match="is no declared category") as caught:
                table.profile("cost").release(epsilon=1.0)
            assert {one.filename for one in caught} == {__file__}
        with pytest.warns(AccuracyWarning, match="is no declared category") as caught:
            table.aggregate(n=sitr.count()).release(epsilon=1.0)
        assert {one.filename for one in caught} == {__file__}
