"""A profile finds rows of units and bounds of columns, and takes no noise for them."""

import pytest

from sitr.errors import InvalidArgument
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
    """At ε = 0.02 the noise has a scale of 50, and a bin is taken for one with units beyond 50 ln(111/1e-3) = 581.

    By noise alone some bin of a profile passes with a chance of 1e-3 at most. Else units have 8 rows at most. Four wrong
    ones of ten have a chance of at most 210 · 1e-12, under 1e-9.
    """
    wrong = 0
    for _ in range(10):
        with opened() as clinic:
            found = clinic.table("visits").profile().release(epsilon=0.02).facts
        wrong += found.rows / found.units > 100
    assert wrong < 4


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


def test_only_numbers_have_bounds():
    with opened() as clinic, pytest.raises(InvalidArgument, match="no number"):
        clinic.table("visits").profile("region")
