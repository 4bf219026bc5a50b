"""Total and finite δ: one bridge, on the safe side in both directions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from sitr.accounting.engines.delta import NEVER, Failure, Finite, Found, Total
from sitr.accounting.engines.mix import Mix
from sitr.accounting.losses.atoms import nothing, two_point
from sitr.accounting.losses.law import UNIT
from tests.accounting.helpers import law

shares = st.floats(0, 1, exclude_max=True)


@law(200)
@given(shares, shares, st.booleans())
def test_the_total_holds_the_exact_one(mass, finite, stated):
    found = Failure.about(mass, stated=stated).total(Found(Finite(finite), Finite(finite), "known"))
    with mp.workdps(60):
        truth = mpf(mass) + (1 - mpf(mass)) * mpf(finite)
    assert found.lower <= truth <= found.upper <= 1
    assert found.upper <= (1 + 1e-14) * float(truth) + 1e-320
    assert found.lower >= (1 - 1e-14) * float(truth) - 1e-320


@law(200)
@given(shares, shares, st.booleans())
def test_what_is_left_of_a_total_holds_the_exact_rest(mass, total, stated):
    least, most = Failure.about(mass, stated=stated).left(Total(total))
    with mp.workdps(60):
        truth = (mpf(total) - mpf(mass)) / (1 - mpf(mass))
    assert least <= max(truth, 0) <= most or truth < 0
    assert 0 <= least <= most
    if stated:
        assert most - least <= 32 * UNIT * total / (1 - mass)


def test_a_stated_mass_is_exact_and_a_computed_one_is_not():
    once, twice = (Mix.of([(two_point(1.0, 0.001).forward, n)]).failure for n in (1, 2))
    assert once == Failure(0.001, 0.001)
    with mp.workdps(40):
        assert twice.lower < 1 - (1 - mpf(0.001)) ** 2 < twice.upper
    assert Mix.of([(nothing().forward, 1)]).failure == Failure(1.0, 1.0)


def test_a_mass_near_the_smallest_number_is_rounded_by_more():
    computed = Failure.about(1e-15 * 1e-300, stated=False)
    with mp.workdps(40):
        assert computed.lower < mpf(1e-15) * mpf(1e-300) < computed.upper
    assert Failure.about(5e-324, stated=False).lower == 0


def test_two_brackets_that_exclude_each_other_are_joined(caplog):
    joined = Found(1.0, 2.0, "a").meet(Found(3.0, 4.0, "b"))
    assert (joined.lower, joined.upper, joined.method) == (1.0, 4.0, "disagreement")
    assert "two engines disagree" in caplog.text


@pytest.mark.parametrize("kind", ["lower", "upper"])
def test_what_is_no_number_proves_nothing(kind):
    ends = {"lower": 1.0, "upper": 2.0, kind: float("nan")}
    found = Found(ends["lower"], ends["upper"], "a")
    assert getattr(found, kind) == {"lower": 0.0, "upper": float("inf")}[kind]


def test_a_bracket_is_narrow_beside_its_value_or_beside_nothing():
    assert Found(1.0, 1.0009, "a").within(1e-3)
    assert not Found(1.0, 1.002, "a").within(1e-3)
    assert Found(0.0, 9e-11, "a").within(1e-3)
    assert not Found(0.0, 2e-10, "a").within(1e-3)
    assert not Found(0.0, float("inf"), "a").within(1e-3)


def test_ends_that_cross_by_rounding_meet_in_one_point():
    """As far as the larger of them goes, which is safe for both."""
    beyond = 2.0 * (1 + 5e-13)
    met = Found(1.0, 2.0, "a").meet(Found(beyond, 3.0, "b"))
    assert (met.lower, met.upper) == (beyond, beyond)


def test_what_is_exact_stays_exact():
    assert Failure.about(0.0, stated=False) == NEVER
    assert NEVER.total(Found(Finite(0.25), Finite(0.5), "known")) == Found(0.25, 0.5, "known")
    assert Failure(0.001, 0.001).total(Found(Finite(0.0), Finite(0.0), "none")) == Found(0.001, 0.001, "none")
    assert NEVER.left(Total(0.3)) == (0.3, 0.3)
    assert Failure(1.0, 1.0).left(Total(1.0)) == (0.0, 0.0)
    assert Failure.about(1 - 2.0**-53, stated=False).upper == 1
