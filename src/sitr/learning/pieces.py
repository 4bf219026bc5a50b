"""What one use of a parameter adds to each person's gradient, its norm, and the clipped sum of it over people.

Every piece states an upper bound of the norm of what it will sum for one person, in exact arithmetic, whatever way that
was computed: the same rounded numbers enter the bound and the sum (THEORY 7.3, decision 0031).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

UNIT = 2.0**-24  # half the distance of float32 numbers at 1
FACTOR_BITS = 18  # of the inputs of a product of whole numbers
SUM_BITS = 42  # the clipping bound in fine steps: a person's contribution is a vector of whole numbers of this size
SPREAD_BITS = 4  # a person's product may be cancelled by so many bits
PEOPLE_AT_ONCE = 2 ** (53 - SUM_BITS - SPREAD_BITS)  # so that float64 adds their whole numbers without rounding
FEW_POSITIONS = 16  # up to here one product in float64 costs less than rounding each person's gradient
SMALLEST = 1e-30  # what underflow may hide of a square
READING = (
    10.0  # multiplications that take as long as reading and writing one number of a kept gradient (measured: 0031)
)
HEAVIEST = 4.0  # a kept gradient holds at most so many times what the Gram matrices are made of
BLOCK = 64  # squares that are added in float32
CACHED = 1 << 18  # numbers that stay in a cache while they are rounded and added


class Piece(Protocol):
    """One parameter's gradient for each person, perhaps not written out."""

    def bound(self) -> Tensor:
        """Return for each person an upper bound of the norm of the gradient that `add` adds (float64)."""

    def slack(self) -> Tensor | float:
        """Return an upper bound of how far rounding to whole fine steps moves a contribution, in fine steps."""

    def add(self, total: Tensor, factors: Tensor) -> None:
        """Add the gradients times each person's factor to `total` (the parameter's shape).

        An int64 total counts fine steps: each person's contribution becomes a vector of whole numbers that does not
        depend on anybody else, and their sum is exact. A float total is an ordinary sum.
        """

    def dense(self) -> Tensor:
        """Return the gradients written out: people, then the parameter's shape."""

    def numbers(self) -> int:
        """Return how many numbers are held."""

    def work(self) -> int:
        """Return how many multiplications the norms took: what clipping costs beside an ordinary gradient."""


def gamma(terms: float) -> float:
    """Bound the relative error of a float32 sum of so many products, in any order: nu/(1 - nu)."""
    return terms * UNIT / (1 - terms * UNIT) if terms * UNIT < 0.5 else math.inf


def in_single(x: Tensor) -> Tensor:
    """Return x in float32, or in float64 where it is that: gradients of 16 bits are worked with in 32."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def norms(x: Tensor) -> Tensor:
    """Return an upper bound of the norm over all but the first dimension: blocks in float32, joined in float64."""
    flat = x.reshape(len(x), -1)
    count = flat.shape[1]
    hidden = math.sqrt(SMALLEST * max(1, count))
    if count % BLOCK or flat.dtype != torch.float32:
        whole: Tensor = torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
        return whole + hidden
    blocks = torch.linalg.vector_norm(flat.view(len(x), -1, BLOCK), dim=2)
    joined: Tensor = torch.linalg.vector_norm(blocks, dim=1, dtype=torch.float64)
    return joined * (1 + gamma(BLOCK / 2 + 4)) + hidden


def usable(factors: Tensor, x: Tensor) -> Tensor:
    """Return x with nothing of people whose factor is 0, since 0·inf is not 0."""
    if bool(factors.all()):
        return x
    return torch.where(
        (factors != 0).view(-1, *[1] * (x.dim() - 1)), x, torch.zeros((), dtype=x.dtype, device=x.device)
    )


@dataclass
class Kept:
    """Gradients that are written out: people, then the parameter's shape."""

    gradients: Tensor

    def __post_init__(self) -> None:
        self.gradients = in_single(self.gradients)

    def bound(self) -> Tensor:  # noqa: D102
        return norms(self.gradients)

    def slack(self) -> float:  # noqa: D102
        return math.sqrt(self.gradients[0].numel()) / 2

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        add_scaled(total, self.gradients, factors)

    def dense(self) -> Tensor:  # noqa: D102
        return self.gradients

    def numbers(self) -> int:  # noqa: D102
        return self.gradients.numel()

    def work(self) -> int:  # noqa: D102
        return self.gradients.numel()


def add_scaled(total: Tensor, gradients: Tensor, factors: Tensor) -> None:
    """Add Σ factor·gradient over people; for an int64 total each is rounded to whole numbers first."""
    flat = usable(factors, gradients).reshape(len(factors), -1)
    if total.dtype != torch.int64:
        total += (factors.to(flat.dtype) @ flat).view(total.shape).to(total.dtype)
        return
    scale = factors.to(flat.dtype)[:, None]
    step = min(PEOPLE_AT_ONCE, max(1, CACHED // max(1, flat.shape[1])))
    exact = torch.zeros(flat.shape[1], dtype=torch.float64, device=flat.device)
    since = 0
    for start in range(0, len(flat), step):
        some = slice(start, start + step)
        exact += (flat[some] * scale[some]).round_().double().sum(0)
        since += step
        if since + step > PEOPLE_AT_ONCE or start + step >= len(flat):
            total += exact.view(total.shape).to(torch.int64)
            exact.zero_()
            since = 0


class Product:
    """The gradient gᵀa of a matrix that was applied at several positions: its norm comes from two Gram matrices.

    Args:
        inputs: a: people, positions, columns of the matrix.
        outputs: g, the gradient of what came out: people, positions, rows of the matrix.
        shape: Of the parameter, if it is not (rows, columns).
        whole: The sum will be of whole numbers.
        integral: The sum may be one product of whole numbers, where that is cheaper.
    """

    def __init__(
        self, inputs: Tensor, outputs: Tensor, shape: torch.Size | None = None, *, whole: bool, integral: bool = True
    ) -> None:
        self.inputs, self.outputs, self.whole, self.kind = inputs, outputs, whole, outputs.dtype
        self.rows, self.columns = outputs.shape[2], inputs.shape[2]
        self.shape = shape or torch.Size((self.rows, self.columns))
        positions = inputs.shape[1]
        lost = positions * math.sqrt(self.rows * self.columns) * 2.0 ** (FACTOR_BITS - SUM_BITS - 1)
        self.integral = integral and whole and positions <= FEW_POSITIONS and lost <= 2.0**-6
        if self.integral:
            # Whole numbers, in steps of each position's own; the steps, powers of two, go over to the outputs exactly.
            largest = inputs.abs().amax(2, keepdim=True).double()
            exponent = torch.frexp(largest.clamp(2.0**-100, 2.0**100)).exponent
            step = torch.ldexp(torch.ones_like(largest), exponent - FACTOR_BITS)
            self.inputs, self.outputs = (inputs.double() / step).round_(), outputs.double() * step

    @cached_property
    def spread(self) -> Tensor:
        """Σ_t |a_t| |g_t|: no partial sum of the product is larger."""
        a: Tensor = torch.linalg.vector_norm(self.inputs, dim=2, dtype=torch.float64)
        g: Tensor = torch.linalg.vector_norm(self.outputs, dim=2, dtype=torch.float64)
        return (a * g).sum(1) * (1 + 2.0**-30) + SMALLEST

    def norm(self) -> Tensor:
        """Return an upper bound of the norm of the product of the numbers held, before any rounding of the product."""
        if self.inputs.shape[1] == 1:
            found = self.spread
        else:
            double = self.inputs.dtype == torch.float64
            error = gamma(self.rows + self.columns + 4) * (2.0**-28 if double else 1.0)
            outputs = self.outputs.double() if double else self.outputs
            squares = _gram(self.inputs).mul_(_gram(outputs)).sum((1, 2), dtype=torch.float64)
            found = (squares.clamp_min(0) + error * self.spread.square()).sqrt()
        if self.integral:
            # also: no partial sum beyond 2^SPREAD_BITS times the bound
            return torch.maximum(found, self.spread * 2.0**-SPREAD_BITS)
        return found

    def rounding(self) -> Tensor | float:
        """Return how far the float32 product of one person may be from the exact one."""
        if self.integral:
            return 0.0
        short = self.inputs.is_cuda and torch.backends.cuda.matmul.allow_tf32  # factors of 11 bits
        return (gamma(self.inputs.shape[1] + 2) + (2.0**-9 if short else 0.0)) * self.spread

    def bound(self) -> Tensor:  # noqa: D102
        return self.norm() + self.rounding()

    def slack(self) -> Tensor | float:  # noqa: D102
        if not self.integral:
            return math.sqrt(self.rows * self.columns) / 2
        error = math.sqrt(self.outputs[0].numel()) / 2  # of the gradients, which are rounded to whole numbers
        return error * norms(self.inputs)

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        outputs = usable(factors, self.outputs)
        inputs = usable(factors, self.inputs)
        if self.integral:
            self._add_whole(total, (outputs * factors[:, None, None]).round_(), inputs)
        elif self.whole:
            people = max(1, CACHED // (self.rows * self.columns))  # at once
            for start in range(0, len(factors), people):
                some = slice(start, start + people)
                gradients = torch.bmm(outputs[some].transpose(1, 2), inputs[some])
                add_scaled(total, gradients, factors[some])
        else:
            scaled = (outputs * factors.to(outputs.dtype)[:, None, None]).flatten(0, 1)
            total += (scaled.T @ inputs.flatten(0, 1)).view(self.shape).to(total.dtype)

    def _add_whole(self, total: Tensor, outputs: Tensor, inputs: Tensor) -> None:
        for start in range(0, len(outputs), PEOPLE_AT_ONCE):
            some = slice(start, start + PEOPLE_AT_ONCE)
            exact = outputs[some].flatten(0, 1).T @ inputs[some].flatten(0, 1)
            total += exact.view(self.shape).to(torch.int64)

    def dense(self) -> Tensor:  # noqa: D102
        found = torch.bmm(self.outputs.transpose(1, 2), self.inputs).view(-1, *self.shape)
        return found.to(self.kind)

    def numbers(self) -> int:  # noqa: D102
        return self.inputs.numel() + self.outputs.numel()

    def work(self) -> int:  # noqa: D102
        return len(self.inputs) * self.inputs.shape[1] ** 2 * (self.rows + self.columns)


def _gram(x: Tensor) -> Tensor:
    return torch.bmm(x, x.transpose(1, 2))


class Scatter:
    """Rows of a table that each person looked up, with their gradients; equal rows are added first.

    Args:
        rows: Which row, people × positions.
        gradients: People × positions × columns.
        shape: Of the table.
    """

    def __init__(self, rows: Tensor, gradients: Tensor, shape: torch.Size) -> None:
        self.shape = shape
        self.rows, order = rows.sort(dim=1)
        gradients = gradients.gather(1, order[:, :, None].expand_as(gradients))
        first = torch.ones_like(self.rows, dtype=torch.bool)
        first[:, 1:] = self.rows[:, 1:] != self.rows[:, :-1]
        segment = first.cumsum(1) - 1
        self.gradients = torch.zeros_like(gradients).scatter_add_(
            1, segment[:, :, None].expand_as(gradients), gradients
        )
        self.rows = torch.zeros_like(self.rows).scatter_(1, segment, self.rows)

    def bound(self) -> Tensor:  # noqa: D102
        return norms(self.gradients)

    def slack(self) -> float:  # noqa: D102
        return math.sqrt(self.gradients[0].numel()) / 2

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        found = usable(factors, self.gradients) * factors.to(self.gradients.dtype)[:, None, None]
        if total.dtype != torch.int64:
            total.index_add_(0, self.rows.flatten(), found.flatten(0, 1).to(total.dtype))
            return
        total.index_add_(0, self.rows.flatten(), found.round_().flatten(0, 1).to(torch.int64))

    def dense(self) -> Tensor:  # noqa: D102
        people = len(self.rows)
        dense = self.gradients.new_zeros(people, *self.shape)
        return dense.scatter_add_(1, self.rows[:, :, None].expand_as(self.gradients), self.gradients)

    def numbers(self) -> int:  # noqa: D102
        return self.rows.numel() + self.gradients.numel()

    def work(self) -> int:  # noqa: D102
        return self.gradients.numel()


@dataclass
class Tied:
    """A table that was looked up and also applied as a matrix (not integral), as heads of language models are.

    ‖E + H‖² = ‖E‖² + ‖H‖² + 2⟨E, H⟩, and row v of H is Σ_t g_t[v] a_t: only rows that were looked up are needed.
    """

    table: Scatter
    matrix: Product

    def bound(self) -> Tensor:  # noqa: D102
        inputs, outputs = self.matrix.inputs, self.matrix.outputs
        chosen = outputs.gather(2, self.table.rows[:, None, :].expand(-1, outputs.shape[1], -1))  # people, t, s
        inner = torch.bmm(inputs, self.table.gradients.transpose(1, 2))
        cross = (chosen * inner).sum((1, 2), dtype=torch.float64)
        looked_up, applied = self.table.bound(), self.matrix.norm()
        spread = norms(chosen) * norms(inputs) * looked_up
        error = gamma(inputs.shape[2] + 4) + UNIT
        squares = looked_up.square() + applied.square() + 2 * cross + 2 * error * spread
        return squares.clamp_min(0).sqrt() + self.matrix.rounding()

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.table.slack() + self.matrix.slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.table.add(total, factors)
        self.matrix.add(total, factors)

    def dense(self) -> Tensor:  # noqa: D102
        return self.table.dense() + self.matrix.dense()

    def numbers(self) -> int:  # noqa: D102
        return self.table.numbers() + self.matrix.numbers()

    def work(self) -> int:  # noqa: D102
        return self.table.work() + self.matrix.work() + self.matrix.inputs.numel() * self.table.rows.shape[1]


@dataclass
class Permuted:
    """A piece of a parameter whose dimensions are in another order.

    Attributes:
        piece: The piece.
        order: Which of the parameter's dimensions is each of the piece's.
    """

    piece: Piece
    order: tuple[int, ...]

    def settle(self) -> Piece:
        """Choose the cheaper way, if that is not done."""
        return Permuted(self.piece.settle(), self.order) if isinstance(self.piece, Applied) else self

    def bound(self) -> Tensor:  # noqa: D102
        return self.piece.bound()

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.piece.slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.piece.add(total.permute(self.order), factors)

    def dense(self) -> Tensor:  # noqa: D102
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return self.piece.dense().permute(0, *(1 + dim for dim in back))

    def numbers(self) -> int:  # noqa: D102
        return self.piece.numbers()

    def work(self) -> int:  # noqa: D102
        return self.piece.work()


@dataclass
class Applied:
    """A use of a matrix of which it is not yet decided how its norm is found: other uses may join it.

    Attributes:
        inputs: People × positions × columns.
        outputs: The gradient of what came out: people × positions × rows.
        shape: Of the parameter.
        whole: The sum will be of whole numbers.
    """

    inputs: Tensor
    outputs: Tensor
    shape: torch.Size
    whole: bool

    def settle(self) -> Piece:
        """Choose the cheaper way."""
        rows, columns = self.outputs.shape[2], self.inputs.shape[2]
        if keeps(self.inputs.shape[1], rows, columns, whole=self.whole):
            return Kept(self.dense())
        return Product(self.inputs, self.outputs, self.shape, whole=self.whole)

    def bound(self) -> Tensor:  # noqa: D102
        return self.settle().bound()

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.settle().slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.settle().add(total, factors)

    def dense(self) -> Tensor:  # noqa: D102
        return torch.bmm(self.outputs.transpose(1, 2), self.inputs).view(-1, *self.shape)

    def numbers(self) -> int:  # noqa: D102
        return self.inputs.numel() + self.outputs.numel()

    def work(self) -> int:  # noqa: D102
        return self.settle().work()

    def transposed(self) -> Applied:
        """Return the gradient of the transposed matrix."""
        return Applied(self.outputs, self.inputs, self.shape[::-1], self.whole)


def keeps(positions: int, rows: int, columns: int, *, whole: bool) -> bool:
    """Say whether a matrix's gradients are kept, by what either way costs in multiplications (decision 0031)."""
    if positions == 1:
        return False
    size = rows * columns
    if size > HEAVIEST * positions * (rows + columns):
        return False
    grams = 2 * positions**2 * (rows + columns)
    if whole and positions <= FEW_POSITIONS:
        return READING * 3 * size < grams + 2 * positions * size  # a product in float64 takes twice the time
    return READING * size < grams


def combine(pieces: list[Piece]) -> Piece:
    """Make one piece of all uses of a parameter, so that the norm is that of their sum."""
    applied = [piece for piece in pieces if isinstance(piece, Applied)]
    others = [piece for piece in pieces if not isinstance(piece, Applied)]
    if applied:
        first = applied[0]
        inputs = torch.cat([piece.inputs for piece in applied], 1) if applied[1:] else first.inputs
        outputs = torch.cat([piece.outputs for piece in applied], 1) if applied[1:] else first.outputs
        joined = Applied(inputs, outputs, first.shape, first.whole)
        if (
            len(others) == 1
            and isinstance(others[0], Scatter)
            and others[0].shape == outputs.shape[2:] + inputs.shape[2:]
        ):
            return Tied(others[0], Product(inputs, outputs, whole=first.whole, integral=False))
        others.append(joined.settle() if not others else joined)
    if len(others) == 1:
        return others[0].settle() if isinstance(others[0], Permuted) else others[0]
    total = others[0].dense().clone()
    for piece in others[1:]:
        total += piece.dense()
    return Kept(total)
