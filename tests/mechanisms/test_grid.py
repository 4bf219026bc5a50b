"""The grid: the nearest point, whatever kind of number comes, and neighbours no farther apart than is charged."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms import gaussian, laplace
from sitr.mechanisms.grid import FARTHEST, FARTHEST_INTEGER, FINENESS, Grid
from tests.accounting.helpers import law, logs

exponents = st.integers(-80, 70)
whole = st.one_of(st.integers(-(2**70), 2**70), st.integers(-(2**53) - 8, 2**53 + 8), st.integers(-100, 100))
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(whole, floats)


def off(number, grid):
    """How far a placed number lies from where it should, in steps: the clamped number is the truth."""
    steps = Fraction(number) / grid.step
    return abs(int(grid.placed("value", number)[0]) - max(min(steps, FARTHEST), -FARTHEST))


@law(400)
@given(numbers, exponents)
@example(2**53 + 1, 1)
@example(2**63 - 1, 11)
@example(-(2**63), 11)
@example(2**64 - 1, 64)
@example(2**64 - 1, 66)
@example(-1, 64)
@example(1.7976931348623157e308, -80)
@example(5e-324, 70)
def test_a_number_goes_to_the_nearest_point(number, exponent):
    assert off(number, Grid(exponent, None)) <= Fraction(1, 2)


@law(200)
@given(st.lists(numbers, min_size=1, max_size=6), exponents)
@example([2**60 + 3, 0.5], 8)
def test_numbers_are_placed_each_by_itself(several, exponent):
    """A list that mixes whole numbers with floats, which NumPy would round, and one that it can hold."""
    grid = Grid(exponent, len(several))
    alone = [int(Grid(exponent, None).placed("value", number)[0]) for number in several]
    together = grid.placed("value", several)
    assert together.dtype == np.int64
    if exponent > 0:
        assert together.tolist() == alone
    steps = [max(min(Fraction(number) / grid.step, FARTHEST), -FARTHEST) for number in several]
    assert all(abs(int(found) - truth) <= Fraction(1, 2) for found, truth in zip(together, steps, strict=True))


@law(300)
@given(numbers, numbers, exponents)
def test_neighbours_move_apart_by_at_most_one_step(first, second, exponent):
    grid = Grid(exponent, None)
    apart = abs(int(grid.placed("value", first)[0]) - int(grid.placed("value", second)[0]))
    real = abs(Fraction(first) - Fraction(second)) / grid.step
    assert apart <= math.floor(real) + 1  # a whole number of steps, so the charge may be rounded down


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g"])
@pytest.mark.parametrize("exponent", [-70, -52, -3, 0, 2, 11])
def test_every_kind_of_array_is_placed_as_its_numbers_are(dtype, exponent):
    kind = np.dtype(dtype)
    ends = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    array = np.array([ends.min, ends.max, 0, 1, 3, 100], dtype=kind)
    grid = Grid(exponent, array.size)
    for found, number in zip(grid.placed("value", array).tolist(), array, strict=True):
        exact = Fraction(int(number)) if kind.kind in "iu" else Fraction(*number.as_integer_ratio())
        assert abs(found - max(min(exact / grid.step, FARTHEST), -FARTHEST)) <= Fraction(1, 2)


@law(200)
@given(st.lists(whole, min_size=1, max_size=5))
@example([2**63, -1])
@example([2**64, -1])
def test_whole_numbers_stay_as_they_are(several):
    placed = Grid(None, len(several)).placed("value", several).tolist()
    assert placed == [max(min(number, FARTHEST_INTEGER), -FARTHEST_INTEGER) for number in several]


@pytest.mark.parametrize("value", [[1.0, 2], [1, 2.5], [True, 2**64], [np.float64(1), 2**63]])
def test_floats_are_no_whole_numbers(value):
    with pytest.raises(InvalidArgument, match="whole numbers"):
        Grid(None, 2).placed("value", value)


@law(200)
@given(logs(1e-14, 1e14))
def test_a_grid_is_so_much_finer_than_the_noise(scale):
    step = Grid.below(Fraction(scale), None).step
    assert step * 2**FINENESS <= Fraction(scale) < step * 2 ** (FINENESS + 1)


@law(200)
@given(st.integers(-(2**53), 2**53), exponents)
def test_the_way_back_is_exact(steps, exponent):
    assert Fraction(Grid(exponent, None).value(np.array([steps]))) == steps * Fraction(2) ** exponent


lengths = st.integers(1, 5)
sensitivities = logs(1e-6, 1e6)


@law(150)
@given(st.data(), lengths, sensitivities, logs(0.01, 100))
def test_laplace_charges_for_at_least_the_movement_on_the_grid(data, length, sensitivity, epsilon):
    """Neighbours that differ by exactly the sensitivity, in ℓ1, wherever they lie."""
    mechanism = laplace(sensitivity=sensitivity, epsilon=epsilon, length=length)
    vector = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=length, max_size=length))
    shares = data.draw(st.lists(st.floats(-1, 1), min_size=length, max_size=length).filter(any))
    moved, budget = [], Fraction(sensitivity)
    for number, share in zip(vector, shares, strict=True):
        near = number + share * sensitivity / length
        allowed = abs(Fraction(near) - Fraction(number)) <= budget
        moved.append(near if allowed else number)
        budget -= abs(Fraction(moved[-1]) - Fraction(number))
    grid = mechanism.grid
    apart = np.abs(grid.placed("value", vector) - grid.placed("value", moved)).sum()
    assert apart <= mechanism.event.sensitivity
    assert mechanism.event.sensitivity <= Fraction(sensitivity) / grid.step + length
    assert mechanism.event.pure() <= epsilon * (1 + 1e-9)


@law(60)
@given(st.data(), lengths, sensitivities)
def test_gaussian_charges_for_at_least_the_movement_on_the_grid(data, length, sensitivity):
    """The same in ℓ2: ρ is at least that of the real movement."""
    mechanism = gaussian(sensitivity=sensitivity, rho=0.1, length=length)
    vector = np.array(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=length, max_size=length)))
    shares = np.array(data.draw(st.lists(st.integers(-100, 100), min_size=length, max_size=length).filter(any)))
    moved = vector + shares / np.linalg.norm(shares) * sensitivity * (1 - 1e-9)
    real = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(vector.tolist(), moved.tolist(), strict=True))
    grid = mechanism.grid
    apart = sum(int(step) ** 2 for step in grid.placed("value", vector) - grid.placed("value", moved))
    noise = Fraction(mechanism.scale) / grid.step
    if real <= Fraction(sensitivity) ** 2:  # adding has rounded it no farther
        assert apart / (2 * noise**2) <= Fraction(mechanism.event.rho)
    assert mechanism.event.rho <= 0.1 * (1 + 1e-9)


def test_ties_are_rounded_alike_whatever_stands_beside_them():
    """Else one person's number would move another's by a step, and monotone scores would not be."""
    grid = Grid(1, 2)
    for tie in (1, 3, 5, -1, -3):
        alone = grid.placed("value", np.array([tie, 2]))[0]
        assert alone == grid.placed("value", [tie, 2.0])[0] == grid.placed("value", [float(tie), 2.0])[0]
        assert alone == grid.placed("value", [tie, 2**70])[0] == round(tie / 2)
