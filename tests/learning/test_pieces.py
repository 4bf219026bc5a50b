"""Bounds are above the truth, and whole sums are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sitr.learning.pieces import (
    FEW_POSITIONS,
    PEOPLE_AT_ONCE,
    SPREAD_BITS,
    SUM_BITS,
    Applied,
    Kept,
    Permuted,
    Piece,
    Product,
    Scatter,
    Tied,
    combine,
)


def exactly(inputs: Tensor, outputs: Tensor) -> list[list[Fraction]]:
    """The matrix gᵀa of one person, without any rounding."""
    a = [[Fraction(x) for x in row] for row in inputs.tolist()]
    g = [[Fraction(x) for x in row] for row in outputs.tolist()]
    rows, columns = len(g[0]), len(a[0])
    return [[sum((g[t][r] * a[t][c] for t in range(len(a))), Fraction()) for c in range(columns)] for r in range(rows)]


def square(matrix: list[list[Fraction]]) -> Fraction:
    return sum((x * x for row in matrix for x in row), Fraction())


@given(
    positions=st.integers(1, 20),
    whole=st.booleans(),
    cancelling=st.booleans(),
    size=st.sampled_from([1e-12, 1.0, 1e12]),
    seed=st.integers(0, 2**31),
)
def test_a_product_is_bounded_also_where_it_cancels(
    positions: int, whole: bool, cancelling: bool, size: float, seed: int
) -> None:
    """By exact arithmetic on what is held, and on what is summed."""
    torch.manual_seed(seed)
    inputs, outputs = torch.randn(1, positions, 3) * size, torch.randn(1, positions, 2)
    if cancelling and positions > 1:
        half = positions // 2
        inputs[:, half : 2 * half] = inputs[:, :half]
        outputs[:, half : 2 * half] = -outputs[:, :half] * (1 + 1e-6)
    piece = Product(inputs, outputs, whole=whole)
    bound = Fraction(float(piece.bound()))
    if not piece.integral:
        assert square(exactly(inputs[0], outputs[0])) <= bound**2
    total = torch.zeros(2, 3, dtype=torch.int64)
    factor = 1 / float(bound)
    if whole:
        room = 2.0**SUM_BITS - float(piece.slack())
        piece.add(total, torch.tensor([factor * room * (1 - 2.0**-20)], dtype=torch.float64))
    else:
        total = piece.summed(torch.tensor([factor], dtype=torch.float64), masked=False)
    length = math.sqrt(sum(int(x) ** 2 for x in total.flatten()) if whole else float(total.double().square().sum()))
    assert length <= (2**SUM_BITS if whole else 1 + 1e-6)


@pytest.mark.parametrize("positions", [1, FEW_POSITIONS, FEW_POSITIONS + 4])
def test_whole_sums_do_not_depend_on_the_order_or_the_company(positions: int) -> None:
    torch.manual_seed(1)
    people = PEOPLE_AT_ONCE + 3
    inputs, outputs = torch.randn(people, positions, 5), torch.randn(people, positions, 4)
    factors = torch.rand(people, dtype=torch.float64) * 2.0 ** (SUM_BITS - 8)

    def summed(order: Tensor) -> Tensor:
        total = torch.zeros(4, 5, dtype=torch.int64)
        Product(inputs[order], outputs[order], whole=True).add(total, factors[order])
        return total

    everybody = summed(torch.arange(people))
    assert torch.equal(everybody, summed(torch.arange(people).flip(0)))
    apart = sum((summed(torch.tensor([person])) for person in range(people)), torch.zeros(4, 5, dtype=torch.int64))
    assert torch.equal(everybody, apart)


def test_partial_sums_of_whole_products_stay_exact() -> None:
    """A float64 holds the sum of as many people as are added at once, each with the largest product let through."""
    assert PEOPLE_AT_ONCE * 2 ** (SUM_BITS + SPREAD_BITS) <= 2**53


def test_kept_sums_of_many_people_are_exact() -> None:
    gradients = torch.full((3 * PEOPLE_AT_ONCE + 1, 2), 1.0)
    total = torch.zeros(2, dtype=torch.int64)
    Kept(gradients).add(total, torch.full((len(gradients),), 2.0**SUM_BITS, dtype=torch.float64))
    assert total.tolist() == [len(gradients) * 2**SUM_BITS] * 2


@pytest.mark.parametrize("whole", [True, False])
def test_uses_of_one_parameter_are_added_before_the_norm(whole: bool) -> None:
    torch.manual_seed(2)
    people, words, width = 3, 7, 4
    shape = torch.Size((words, width))
    rows = torch.randint(3, (people, 6))

    def table() -> Scatter:
        return Scatter(rows, torch.randn(people, 6, width), shape)

    def matrix(positions: int) -> Applied:
        return Applied(torch.randn(people, positions, width), torch.randn(people, positions, words), shape, whole)

    cases: list[list[Piece]] = [
        [table(), matrix(5)],
        [table(), matrix(5), matrix(2)],
        [table(), table()],
        [matrix(3), matrix(4)],
        [Kept(torch.randn(people, *shape)), matrix(1), table()],
        [Permuted(Kept(torch.randn(people, width, words)), (1, 0)), matrix(1)],
    ]
    for pieces in cases:
        wanted = torch.stack([piece.dense() for piece in pieces]).sum(0)
        joined = combine(pieces)
        truth = wanted.double().flatten(1).norm(dim=1)
        assert (joined.bound() >= truth * (1 - 1e-6)).all()
        torch.testing.assert_close(joined.bound(), truth, rtol=1e-4, atol=1e-4)
        if not whole:
            total = joined.summed(torch.ones(people, dtype=torch.float64), masked=False)
            torch.testing.assert_close(total, wanted.sum(0), rtol=1e-4, atol=1e-4)
    assert isinstance(combine(cases[0]), Tied)
    assert isinstance(combine(cases[1]), Tied)


def test_equal_rows_of_a_table_are_added() -> None:
    """T2: 8 times the same row is 8 times its gradient, not once."""
    piece = Scatter(torch.zeros(1, 8, dtype=torch.int64), torch.ones(1, 8, 1), torch.Size((2, 1)))
    assert float(piece.bound()) == pytest.approx(8.0)
    assert piece.dense().flatten().tolist() == [8.0, 0.0]


def test_positions_of_different_scale_keep_their_precision() -> None:
    """The larger position has the smaller gradient: rounded to steps of the larger, the other's was off by 9 %."""
    torch.manual_seed(3)
    scale = torch.tensor([1e5, 1.0])[:, None]
    inputs, outputs = torch.randn(3, 2, 5) * scale, torch.randn(3, 2, 4) / scale * torch.tensor([1e-3, 1.0])[:, None]
    piece = Product(inputs, outputs, whole=True)
    assert piece.integral
    wanted = torch.bmm(outputs.double().transpose(1, 2), inputs.double())
    torch.testing.assert_close(piece.dense().double(), wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))
