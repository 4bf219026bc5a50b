"""Domains: grids stay inside their bounds, are no finer than asked, and count whole numbers and decimals exactly."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.tables.domains import FARTHEST, FINE, Domain, number, power_of_two

finite = st.floats(-1e9, 1e9).map(lambda x: round(x, 6))
pairs = st.tuples(finite, finite).filter(lambda pair: pair[1] - pair[0] > 1e-3).map(tuple)
finests = st.one_of(st.integers(4, 2**20), st.sampled_from([4, 255, 2**20]))


def grid_holds(grid, bounds, finest):
    low, high = grid.ends
    least, most = (Domain("number").measure(end) for end in bounds)
    return least <= low < high <= most and grid.span[1] - grid.span[0] <= finest


@given(pairs, finests)
def test_a_grid_of_floats_is_a_power_of_two_inside_the_bounds(bounds, finest):
    grid = Domain("number", float=True).within(bounds, finest=finest)
    assert grid_holds(grid, bounds, finest)
    power = max(grid.step.numerator, grid.step.denominator)
    assert power & (power - 1) == 0
    assert 2 * (grid.span[1] - grid.span[0] + 2) > finest  # and not much coarser than it may be
    low, high = grid.ends
    assert low - Domain("number").measure(bounds[0]) < grid.step
    assert Domain("number").measure(bounds[1]) - high < grid.step


@given(st.integers(-(2**61), 2**61), st.integers(1, 2**61), finests)
def test_a_grid_of_whole_numbers_is_exact_where_it_may_be(low, width, finest):
    grid = Domain("number").within((low, low + width), finest=finest)
    assert grid_holds(grid, (low, low + width), finest)
    assert grid.step.denominator == 1
    if width <= finest:
        assert (grid.step, grid.span) == (1, (low, low + width))


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(0, 6), finests)
def test_a_grid_of_decimals_is_exact_where_it_may_be(low, width, scale, finest):
    step = Fraction(1, 10**scale)
    bounds = (Decimal(low).scaleb(-scale), Decimal(low + width).scaleb(-scale))
    grid = Domain("number", step).within(bounds, finest=finest)
    assert grid_holds(grid, bounds, finest)
    assert (grid.step / step).denominator == 1
    if width <= finest:
        assert (grid.step, grid.span) == (step, (low, low + width))


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_a_power_of_two_is_the_least(least):
    power = power_of_two(least)
    assert power / 2 < least <= power


@pytest.mark.parametrize(
    ("domain", "bounds", "message"),
    [
        (Domain("number"), None, "no bounds"),
        (Domain("number"), (1, 1), "not in order"),
        (Domain("number"), (2, 1), "not in order"),
        (Domain("number"), (0.2, 0.8), "no two steps"),
        (Domain("number"), (0.5, 1.5), "no two steps"),
        (Domain("number"), (0, float("inf")), "is not a number"),
        (Domain("number"), (float("nan"), 1), "is not a number"),
        (Domain("number"), (0, True), "is not a number"),
        (Domain("number"), ("a", "b"), "is not a number"),
        (Domain("date"), (0, 1), "is not a date"),
        (Domain("date"), (datetime(2024, 1, 1), datetime(2024, 1, 2)), "is not a date"),
        (Domain("number", Fraction(1, 100)), (10**18, 10**18 + 1), "64 bits"),
        (Domain("number", float=True), (1e18, 1e18 + 1024), "64 bits"),
        (Domain("number", float=True), (0, 5e-324), "64 bits"),
    ],
)
def test_what_is_no_grid_is_refused(domain, bounds, message):
    with pytest.raises(InvalidArgument, match=message):
        domain.within(bounds)


def test_written_numbers_are_read_as_written():
    assert Domain("number").measure(0.1) == Fraction(1, 10)
    assert Domain("number").measure(Decimal("0.30")) == Fraction(3, 10)
    assert Domain("date").measure(date(1969, 12, 31)) == -1
    assert Domain("timestamp").measure(datetime(1970, 1, 2)) == 86400
    assert Domain("timestamp").measure(date(1970, 1, 2)) == 86400


@given(st.dates(), st.datetimes(timezones=st.none()).map(lambda moment: moment.replace(microsecond=0)))
def test_a_moment_is_what_was_measured(day, moment):
    assert Domain("date").moment(int(Domain("date").measure(day))) == day
    assert Domain("timestamp").moment(int(Domain("timestamp").measure(moment))) == moment


def test_numbers_that_could_leave_64_bits_are_refused():
    assert number(Fraction(1), -FARTHEST, FARTHEST).span == (-FARTHEST, FARTHEST)
    for low, high in [(0, FARTHEST + 1), (-FARTHEST - 1, 0)]:
        with pytest.raises(InvalidArgument, match="64 bits"):
            number(Fraction(1), low, high)
    for step in (Fraction(2) ** 901, Fraction(2) ** -901):
        with pytest.raises(InvalidArgument, match="64 bits"):
            number(step, 0, 1)


def test_what_is_known_of_a_domain():
    assert not Domain("number").bounded
    assert Domain("number", lower=0, upper=1).bounded
    assert [Domain(kind).ordered for kind in ("number", "date", "timestamp", "string", "boolean")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    grid = Domain("number", categories=(1, 2), required=True, lower=0, upper=2 * FINE).within(None)
    assert grid.required
    assert grid.categories is None
