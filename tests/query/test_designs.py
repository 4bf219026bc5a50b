"""Designs: statistics are not negative, add up to the rows, are those of brute force, and hold the power sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.query import designs
from sitr.query.designs import Design, Total, moment

DEGREES = [(), (0,), (1,), (2,), (0, 0), (1, 1), (2, 2), (2, 1)]


def design_of(degrees, missing=False):
    return Design(tuple(f"x{at}" for at, _ in enumerate(degrees)), degrees, missing)


def moments_of(design, rows, total):
    """The sums that an engine gives, for one group; a row is a tuple of steps, or None where it lacks one."""
    made = {}
    for powers in design.sums:
        if powers:
            value = sum(math.prod(step**power for step, (_, power) in zip(row, powers, strict=True)) for row in rows)
        else:
            value = total if design.missing else len(rows)
        made[powers] = np.array([value], dtype=object if value >= 2**63 else np.int64)
    return made


def brute(design, rows, widths, lacking):
    wide = list(widths.values())
    found = []
    for place in itertools.product(*(range(degree + 1) for degree in design.degrees)):
        found.append(sum(math.prod(
            math.comb(degree, at) * step**at * (width - step) ** (degree - at)
            for at, degree, step, width in zip(place, design.degrees, row, wide, strict=True)
        ) for row in rows))  # fmt: skip
    return [*found, lacking * design.unit(widths)] if design.missing else found


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("missing", [False, True])
@given(data=st.data())
@settings(max_examples=25)
def test_statistics_are_those_of_brute_force(degrees, missing, data):
    design = design_of(degrees, missing and bool(degrees))
    widths = {name: data.draw(st.sampled_from([1, 2, 100, 2**20, 2**40])) for name in design.measures}
    row = st.tuples(*(st.integers(0, width) for width in widths.values()))
    rows, lacking = data.draw(st.lists(row, max_size=8)), data.draw(st.integers(0, 5))
    found = design.statistics(moments_of(design, rows, len(rows) + lacking), widths)[0].tolist()
    assert found == brute(design, rows, widths, lacking)
    assert len(found) == design.count
    assert min(found) >= 0
    assert sum(found) == design.unit(widths) * (len(rows) + lacking * design.missing)


@pytest.mark.parametrize("degrees", DEGREES)
@given(data=st.data())
@settings(max_examples=15)
def test_one_row_moves_them_by_exactly_one_row(degrees, data):
    """The reach of a plan counts rows: in ℓ1 a row moves the statistics by `unit`, in ℓ2 by no more."""
    design = design_of(degrees, True)
    widths = {name: data.draw(st.integers(1, 1000)) for name in design.measures}
    row = data.draw(st.tuples(*(st.integers(0, width) for width in widths.values())))
    moved = np.array(brute(design, [row], widths, 0), dtype=float)
    assert np.abs(moved).sum() == pytest.approx(design.unit(widths))
    assert np.linalg.norm(moved) <= design.unit(widths) * (1 + 1e-12)


@pytest.mark.parametrize("degrees", DEGREES)
def test_both_kinds_of_integers_give_the_same(degrees, monkeypatch):
    design = design_of(degrees, True)
    widths = dict.fromkeys(design.measures, 30)
    rows = [tuple(np.random.default_rng(at).integers(0, 31, len(degrees)).tolist()) for at in range(50)]
    moments = moments_of(design, rows, 60)
    plain = design.statistics(moments, widths)
    monkeypatch.setattr(designs, "WHOLE", 0)
    exact = design.statistics(moments, widths)
    assert exact.dtype == object
    assert plain.dtype == np.int64
    assert plain.tolist() == exact.tolist()


@pytest.mark.parametrize("degrees", [(1,), (2,), (1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("missing", [False, True])
def test_moments_are_the_power_sums(degrees, missing):
    design = design_of(degrees, missing)
    widths = dict(zip(design.measures, (10, 7), strict=False))
    rows = list(itertools.product(*(range(width + 1) for width in widths.values())))
    statistics = np.array(brute(design, rows, widths, 3), dtype=float) / design.unit(widths)
    places = [[Fraction(step, width) for step, width in zip(row, widths.values(), strict=True)] for row in rows]
    for powers in itertools.product(*(range(degree + 1) for degree in degrees)):
        wanted = sum(math.prod(place**power for place, power in zip(row, powers, strict=True)) for row in places)
        assert statistics @ moment(design, powers) == pytest.approx(float(wanted))


@given(
    st.lists(st.integers(0, 2**40), max_size=10),
    st.one_of(st.integers(-(2**60), 2**60), st.sampled_from([-(2**40), 0, -5])),
)
def test_a_total_is_the_sum_and_a_row_moves_it_by_its_larger_end(steps, low):
    design = Total(("x",), (low, low + 2**40))
    moments = {(("x", 0),): np.array([len(steps)]), (("x", 1),): np.array([sum(steps)])}
    assert design.statistics(moments, {}).tolist() == [[sum(low + one for one in steps)]]
    assert all(abs(low + one) <= design.unit({}) for one in steps)
    assert design.unit({}) in (abs(low), abs(low + 2**40))
    assert (design.count, design.missing) == (1, False)


def test_no_groups_and_empty_groups():
    design = design_of((2,), True)
    none = {powers: np.empty(0, dtype=np.int64) for powers in design.sums}
    assert design.statistics(none, {"x0": 5}).shape == (0, 4)
    zeros = {powers: np.zeros(2, dtype=np.int64) for powers in design.sums}
    assert design.statistics(zeros, {"x0": 5}).tolist() == [[0] * 4] * 2
