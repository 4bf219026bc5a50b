"""What one use of a parameter adds to each person's gradient, its norm, and the clipped sum of it over people.

Every piece states an upper bound of the norm of what it will sum for one person, in exact arithmetic, whatever way that
was computed: the same rounded numbers enter the bound and the sum (THEORY 7.3, decision 0031).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from . import kernels

UNIT = 2.0**-24  # half the distance of float32 numbers at 1
FACTOR_BITS = 18  # of the inputs of a product of whole numbers
SUM_BITS = 42  # the clipping bound in fine steps: a person's contribution is a vector of whole numbers of this size
SPREAD_BITS = 4  # a person's product may be cancelled by so many bits
PEOPLE_AT_ONCE = 2 ** (53 - SUM_BITS - SPREAD_BITS)  # so that float64 adds their whole numbers without rounding
FEW_POSITIONS = 16  # up to here one product in float64 costs less than rounding each person's gradient
LOST = 2.0**-126  # a number of 32 bits that is smaller has fewer digits, or is taken for 0
WIDE_PADDING = 2.0**-960  # as `kernels.PADDING`, of 64 bits, in which what is under 2^-1022 vanishes (decision 0031)
SMALLEST = 1e-30  # what underflow may hide of a square,
HIDDEN = 2.0**-52  # and of Grams: as if the spread were so much more for each position
SHORT = 2.0**-8  # rounding of a product whose factors have 8 or 11 bits, those of its norm another way than of its sum
READING = 10.0  # multiplications in the time of writing and reading a number of a kept gradient (measured: 0031),
READING_ON_GPU = 700.0  # and on a GPU,
UNALIGNED = 4.0  # where products take so much longer if rows are no whole words
HEAVIEST = 4.0  # a kept gradient holds at most so many times what the Gram matrices are made of
BLOCK = 64  # squares that are added in float32
CACHED = 1 << 18  # numbers that stay in a cache while they are rounded and added
LONG = 1 << 15  # numbers of one person from which on people are added one by one
GRAMS = 1 << 26  # numbers in the Gram matrices that are made at once


class Piece(Protocol):
    """One parameter's gradient for each person, perhaps not written out."""

    def bound(self) -> Tensor:
        """Return for each person an upper bound of the norm of the gradient that `add` adds (float64)."""

    def slack(self) -> Tensor | float:
        """Return an upper bound of how far rounding to whole fine steps moves a contribution, in fine steps."""

    def add(self, total: Tensor, factors: Tensor) -> None:
        """Add the gradients times each person's factor to `total` (the parameter's shape), which counts fine steps.

        Each person's contribution becomes a vector of whole numbers that does not depend on anybody else, and their sum
        is exact.
        """

    def masks(self) -> bool:
        """Say whether `summed` leaves out people whose factor is 0 by itself, whatever their gradients are."""

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:
        """Return the sum of the gradients times each person's factor, in floats of 32 bits or more.

        Args:
            factors: One for each person.
            masked: People whose factor is 0 may hold what is not finite, and are left out.
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


def working(x: Tensor, *, whole: bool) -> Tensor:
    """Return x as pieces hold it: `in_single`, but of 16 bits where kernels add it in 32 and sums are floats."""
    short = x.dtype == torch.bfloat16 and not whole and kernels.available(x)
    return x if short else in_single(x)


def norms(x: Tensor) -> Tensor:
    """Return an upper bound of the norm over all but the first dimension: blocks in float32, joined in float64."""
    flat = x.reshape(len(x), -1)
    count = flat.shape[1]
    hidden = math.sqrt(SMALLEST * max(1, count))
    if kernels.available(flat):
        return kernels.inner(flat, flat).sqrt() * (1 + gamma(64)) + hidden
    if count % BLOCK or flat.dtype != torch.float32:
        whole: Tensor = torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
        return whole + hidden
    blocks = torch.linalg.vector_norm(flat.view(len(x), -1, BLOCK), dim=2)
    joined: Tensor = torch.linalg.vector_norm(blocks, dim=1, dtype=torch.float64)
    return joined * (1 + gamma(BLOCK / 2 + 4)) + hidden


def as_squares(sums: Tensor) -> Tensor:
    """Return sums that are squares but for rounding: 0 for less, and inf wherever a term overflowed, also downwards.

    Terms have signs. One of -inf is no small square, and whoever has it needs the factor 0.
    """
    return torch.where(sums.isfinite(), sums.clamp_min(0), math.inf)


def usable(factors: Tensor, x: Tensor) -> Tensor:
    """Return x with nothing of people whose factor is 0, since 0·inf is not 0."""
    return x if bool(factors.all()) else left_out(factors, x)


def left_out(factors: Tensor, x: Tensor) -> Tensor:
    """Return x with zeros for people whose factor is 0."""
    counted = (factors != 0).view(-1, *[1] * (x.dim() - 1))
    return torch.where(counted, x, torch.zeros((), dtype=x.dtype, device=x.device))


def scaled(x: Tensor, factors: Tensor) -> Tensor:
    """Return x times each person's factor, in the type of x; of 16 bits, by a factor that was rounded down."""
    if x.dtype == torch.bfloat16:
        factors = factors * (1 - 2.0**-8)
    return x * factors.to(x.dtype).view(-1, *[1] * (x.dim() - 1))


def multiplied(left: Tensor, right: Tensor) -> Tensor:
    """Return leftᵀ right of two matrices, in 32 bits or more."""
    if left.dtype == torch.bfloat16 and left.is_cuda:
        return torch.mm(left.T, right, out_dtype=torch.float32)
    return in_single(left).T @ in_single(right)


@contextmanager
def whole_products(*backends: str) -> Iterator[None]:
    """Multiply numbers of 32 bits with all 24 digits, also on a GPU that may take 11, and on a CPU that may take 8.

    What says nothing follows its parent: an operation its backend, a backend the root. So a backend is told, and of its
    operations those that say otherwise, and each has its own word again afterwards. The older settings (`allow_tf32`,
    `set_float32_matmul_precision`) are not touched, as they could not be put back; `allow_tf32` may refuse to be read
    meanwhile, on a GPU.

    Args:
        backends: "mkldnn" (a CPU) and "cuda"; both where nothing is said, if a GPU is in use.
    """
    read, tell = torch._C._get_fp32_precision_getter, torch._C._set_fp32_precision_setter
    chosen = backends or (("mkldnn", "cuda") if torch.cuda.is_initialized() else ("mkldnn",))
    before: list[tuple[str, str, str]] = []
    try:
        for backend in chosen:
            if read(backend, "all") != "ieee":
                root = read("generic", "all")
                tell("generic", "all", "ieee")  # for a moment: who follows says so too
                own = read(backend, "all")
                tell("generic", "all", root)
                before.append((backend, "all", "none" if own == "ieee" else own))
                tell(backend, "all", "ieee")
            for operation in ("matmul", "conv", "rnn"):
                if (own := read(backend, operation)) != "ieee":
                    before.append((backend, operation, own))
                    tell(backend, operation, "ieee")
        yield
    finally:
        for backend, operation, own in before:
            tell(backend, operation, own)


def is_short(x: Tensor, *, tf32: bool) -> bool:
    """Say whether products of such numbers have factors of fewer bits than 24."""
    return x.is_cuda and (x.dtype == torch.bfloat16 or (x.dtype == torch.float32 and tf32))


@dataclass
class Kept:
    """Gradients that are written out: people, then the parameter's shape."""

    gradients: Tensor

    def __post_init__(self) -> None:
        self.gradients = working(self.gradients, whole=False)

    def bound(self) -> Tensor:  # noqa: D102
        return norms(self.gradients)

    def slack(self) -> float:  # noqa: D102
        return math.sqrt(self.gradients[0].numel()) / 2

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        add_scaled(total, [(self.gradients, factors)])

    def masks(self) -> bool:  # noqa: D102
        return kernels.available(self.gradients)

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        if self.masks():
            return kernels.weighted_sum(self.gradients, factors).view(self.gradients.shape[1:])
        flat = (left_out(factors, self.gradients) if masked else self.gradients).reshape(len(factors), -1)
        weights = factors.to(flat.dtype)
        found = (flat * weights[:, None]).sum(0) if flat.is_cuda else weights @ flat  # a GPU may multiply in 11 bits
        return found.view(self.gradients.shape[1:])

    def dense(self) -> Tensor:  # noqa: D102
        return self.gradients

    def numbers(self) -> int:  # noqa: D102
        return self.gradients.numel()

    def work(self) -> int:  # noqa: D102
        return self.gradients.numel()


def add_scaled(total: Tensor, parts: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Add Σ factor·gradient over people, each rounded to whole numbers first.

    Args:
        total: What is added to.
        parts: Gradients of some people, and a factor for each of them.
    """
    exact = torch.zeros(total.numel(), dtype=torch.float64, device=total.device)
    since = 0
    for gradients, factors in parts:
        flat = in_single(usable(factors, gradients)).reshape(len(factors), -1)
        scale = factors.to(flat.dtype)[:, None]
        step = 1 if flat.shape[1] >= LONG else min(PEOPLE_AT_ONCE, max(1, CACHED // max(1, flat.shape[1])))
        for start in range(0, len(flat), step):
            whole = (flat[start : start + step] * scale[start : start + step]).round_()
            if since + len(whole) > PEOPLE_AT_ONCE:
                total += exact.view(total.shape).to(torch.int64)
                exact.zero_()
                since = 0
            exact += whole[0] if len(whole) == 1 else whole.double().sum(0)
            since += len(whole)
    total += exact.view(total.shape).to(torch.int64)


class Errors(NamedTuple):
    """How far numbers of a product may be from the truth; `spread` is Σ_t |a_t| |g_t|.

    Attributes:
        of_grams: Of the squared norm by Grams, in shares of the spread's square.
        of_product: Of the product that is summed, in shares of the spread.
        of_diagonals: By how many times the spread may be too small where Grams have it in their diagonals.
        hidden: What is added to the spread for all that may vanish where both Grams are multiplied.
    """

    of_grams: float
    of_product: float
    of_diagonals: float
    hidden: float


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
        """Σ_t |a_t| |g_t|: no partial sum of the product is larger.

        Lengths are padded, as by `kernels.PADDING` for each number of 32 bits: squares of small numbers vanish in one
        Gram, and may be needed beside a large other one. What may vanish is less than the share LOST/PADDING of the
        spread's square then, far less than what rounding may move (decision 0031).
        """
        if self.is_fused:
            return self.grams[1] * self.errors.of_diagonals + self.errors.hidden
        a, g = _length(self.inputs), _length(self.outputs)
        return (a * g).sum(1) * (1 + 2.0**-30) + self.errors.hidden

    @property
    def is_fused(self) -> bool:
        """Whether kernels make the Gram matrices, and with them the spread."""
        return self.inputs.shape[1] > 1 and kernels.available(self.inputs)

    @property
    def _is_short(self) -> bool:
        return is_short(self.inputs, tf32=kernels.takes_tf32("matmul"))

    @cached_property
    def grams(self) -> tuple[Tensor, Tensor]:
        """⟨aaᵀ, ggᵀ⟩, and `spread` from their diagonals, on a GPU, a few people at a time; both rounded."""
        if self.inputs.shape[1] % 8 and self._is_short:  # a library is slow at rows that are no whole words
            return kernels.linear_norms(self.inputs.contiguous(), self.outputs.contiguous())
        squares, spreads = [], []
        people = max(1, GRAMS // self.inputs.shape[1] ** 2)
        for a, g in zip(self.inputs.split(people), self.outputs.split(people), strict=True):
            of_a, of_g = _wide_gram(a), _wide_gram(g)
            squares.append(kernels.inner(of_a, of_g))
            lengths = _padded(of_a.diagonal(dim1=1, dim2=2), self.columns)
            lengths *= _padded(of_g.diagonal(dim1=1, dim2=2), self.rows)
            spreads.append(lengths.sum(1, dtype=torch.float64))
        return torch.cat(squares), torch.cat(spreads)

    @property
    def errors(self) -> Errors:
        """How far the numbers of this product may be from the truth."""
        short, terms, positions = SHORT if self._is_short else 0.0, self.rows + self.columns, self.inputs.shape[1]
        of_diagonals = 1 + 2 * short + 2 * gamma(terms + 68)
        return Errors(gamma(terms + 68), gamma(positions + 2) + short, of_diagonals, HIDDEN * positions)

    def norm(self) -> Tensor:
        """Return an upper bound of the norm of the product of the numbers held, before any rounding of the product."""
        if self.inputs.shape[1] == 1:
            found = self.spread
        elif self.is_fused:
            found = (as_squares(self.grams[0]) + self.errors.of_grams * self.spread.square()).sqrt()
        else:
            double = self.inputs.dtype == torch.float64
            error = gamma(self.rows + self.columns + 4) * (2.0**-28 if double else 1.0)
            outputs = self.outputs.double() if double else self.outputs
            squares = _gram(self.inputs).mul_(_gram(outputs)).sum((1, 2), dtype=torch.float64)
            found = (as_squares(squares) + error * self.spread.square()).sqrt()
        if self.integral:
            # also: no partial sum beyond 2^SPREAD_BITS times the bound
            return torch.maximum(found, self.spread * 2.0**-SPREAD_BITS)
        return found

    def rounding(self) -> Tensor | float:
        """Return how far the float32 product of one person may be from the exact one: inf where it may overflow."""
        if self.integral:
            return 0.0
        fits = self.spread < torch.finfo(self.outputs.dtype).max
        return torch.where(fits, self.errors.of_product * self.spread, math.inf)

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
            return
        people = max(1, CACHED // (self.rows * self.columns))  # at once
        parts = zip(outputs.split(people), inputs.split(people), factors.split(people), strict=True)
        add_scaled(total, ((torch.bmm(g.transpose(1, 2), a), each) for g, a, each in parts))

    def masks(self) -> bool:  # noqa: D102
        return False

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        inputs, outputs = self.inputs, self.outputs
        if masked:
            inputs, outputs = left_out(factors, inputs), left_out(factors, outputs)
        if self.rows <= self.columns:  # the smaller one is scaled
            outputs = scaled(outputs, factors)
        else:
            inputs = scaled(inputs, factors)
        return multiplied(outputs.flatten(0, 1), inputs.flatten(0, 1)).view(self.shape)

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


def _length(x: Tensor) -> Tensor:
    """Return the length of each row, in 64 bits, and padded by what vanishes in numbers of its type."""
    squares: Tensor = torch.linalg.vector_norm(x, dim=2, dtype=torch.float64).square_()
    return _padded(squares, x.shape[2], WIDE_PADDING if x.dtype == torch.float64 else kernels.PADDING)


def _padded(squares: Tensor, count: int, padding: float = kernels.PADDING) -> Tensor:
    """Return lengths of so many numbers each, from their squares."""
    return (squares + count * padding).sqrt_()


def _wide_gram(x: Tensor) -> Tensor:
    if x.dtype == torch.bfloat16:
        return torch.bmm(x, x.transpose(1, 2), out_dtype=torch.float32)
    return torch.bmm(x, x.transpose(1, 2))


class Scatter:
    """Rows of a table that each person looked up, with their gradients; equal rows are added first.

    Args:
        rows: Which row, people × positions.
        gradients: People × positions × columns.
        shape: Of the table.
    """

    def __init__(self, rows: Tensor, gradients: Tensor, shape: torch.Size) -> None:
        self.shape, gradients = shape, in_single(gradients)
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
        found = scaled(usable(factors, self.gradients), factors)
        total.index_add_(0, self.rows.flatten(), found.round_().flatten(0, 1).to(torch.int64))

    def masks(self) -> bool:  # noqa: D102
        return True

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        found = scaled(left_out(factors, self.gradients), factors)
        total = self.gradients.new_zeros(self.shape)
        return total.index_add_(0, self.rows.flatten(), found.flatten(0, 1))

    def dense(self) -> Tensor:  # noqa: D102
        return self.add_to(self.gradients.new_zeros(len(self.rows), *self.shape))

    def add_to(self, gradients: Tensor) -> Tensor:
        """Add each person's rows to gradients that are written out, in place."""
        added = self.gradients.to(gradients.dtype)
        return gradients.scatter_add_(1, self.rows[:, :, None].expand_as(added), added)

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
        inputs, outputs = in_single(self.matrix.inputs), self.matrix.outputs
        chosen = outputs.gather(2, self.table.rows[:, None, :].expand(-1, outputs.shape[1], -1))  # people, t, s
        with whole_products():
            inner = torch.bmm(inputs, self.table.gradients.transpose(1, 2))
        cross = (chosen * inner).sum((1, 2), dtype=torch.float64)
        looked_up, applied = self.table.bound(), self.matrix.norm()
        found = norms(chosen)
        vanished = LOST * (inputs.shape[2] * math.sqrt(chosen[0].numel()) * found + chosen[0].numel())
        spread = found * norms(inputs) * looked_up
        error = gamma(inputs.shape[2] + 4) + UNIT
        # The product that is summed is not that of `cross` to the last digit, nor on a GPU to the eleventh.
        rounding = self.matrix.rounding()
        off = error * spread + vanished + looked_up * rounding
        bound = as_squares(looked_up.square() + applied.square() + 2 * (cross + off)).sqrt() + rounding
        if not self.matrix.whole:
            return bound
        # They are added apart, and may cancel: no number of the matrix beyond 2^SPREAD_BITS times the bound.
        return torch.maximum(bound, (applied + rounding) * 2.0**-SPREAD_BITS)

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.table.slack() + self.matrix.slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.table.add(total, factors)
        self.matrix.add(total, factors)

    def masks(self) -> bool:  # noqa: D102
        return self.matrix.masks()

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        return self.matrix.summed(factors, masked=masked).add_(self.table.summed(factors, masked=masked))

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

    @property
    def is_made_at_once(self) -> bool:
        """Whether it is known before all uses are."""
        return isinstance(self.piece, Applied) and self.piece.is_made_at_once

    def settle(self) -> Piece:
        """Choose the cheaper way, if that is not done."""
        return Permuted(self.piece.settle(), self.order) if isinstance(self.piece, Applied) else self

    def bound(self) -> Tensor:  # noqa: D102
        return self.piece.bound()

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.piece.slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.piece.add(total.permute(self.order), factors)

    def masks(self) -> bool:  # noqa: D102
        return self.piece.masks()

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        return self.piece.summed(factors, masked=masked).permute(self._back)

    def dense(self) -> Tensor:  # noqa: D102
        return self.piece.dense().permute(0, *(1 + dim for dim in self._back))

    @property
    def _back(self) -> list[int]:
        return sorted(range(len(self.order)), key=self.order.__getitem__)

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

    @property
    def is_made_at_once(self) -> bool:
        """Whether gradients that will be kept are made before all uses are known: on a GPU, for its memory."""
        return self.inputs.is_cuda and self.is_kept

    def settle(self) -> Piece:
        """Choose the cheaper way."""
        if self.is_kept:
            return Kept(self.dense())
        return Product(self.inputs, self.outputs, self.shape, whole=self.whole)

    @property
    def is_kept(self) -> bool:
        """Whether writing the gradients out is cheaper."""
        rows, columns = self.outputs.shape[2], self.inputs.shape[2]
        slower = UNALIGNED if self.inputs.is_cuda and (rows % 8 or columns % 8) else 1.0
        return keeps(self.inputs.shape[1], rows, columns, whole=self.whole, reading=reading(self.inputs) / slower)

    def bound(self) -> Tensor:  # noqa: D102
        return self.settle().bound()

    def slack(self) -> Tensor | float:  # noqa: D102
        return self.settle().slack()

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        self.settle().add(total, factors)

    def masks(self) -> bool:  # noqa: D102
        return self.settle().masks()

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        return self.settle().summed(factors, masked=masked)

    def dense(self) -> Tensor:  # noqa: D102
        return torch.bmm(self.outputs.transpose(1, 2), self.inputs).view(-1, *self.shape)

    def numbers(self) -> int:  # noqa: D102
        return self.inputs.numel() + self.outputs.numel()

    def work(self) -> int:  # noqa: D102
        return self.settle().work()

    def transposed(self) -> Applied:
        """Return the gradient of the transposed matrix."""
        return Applied(self.outputs, self.inputs, self.shape[::-1], self.whole)


def bounds_of(pieces: Sequence[Piece]) -> Tensor:
    """Return the bounds of several pieces: pieces × people. Those of products on a GPU are finished all at once."""
    fused = [piece for piece in pieces if isinstance(piece, Product) and piece.is_fused]
    found = {id(piece): piece.bound() for piece in pieces if not any(piece is each for each in fused)}
    if fused:
        squares, spreads = (torch.stack(column) for column in zip(*(piece.grams for piece in fused), strict=True))
        errors = Errors(*_columns(tuple(piece.errors for piece in fused), spreads.device))  # type: ignore[arg-type]
        spreads = spreads * errors.of_diagonals + errors.hidden
        joint = (as_squares(squares) + errors.of_grams * spreads.square()).sqrt_() + errors.of_product * spreads
        found |= {id(piece): bound for piece, bound in zip(fused, joint.unbind(), strict=True)}
    return torch.stack([found[id(piece)] for piece in pieces])


@lru_cache(maxsize=64)
def _columns(rows: tuple[tuple[float, ...], ...], device: torch.device) -> tuple[Tensor, ...]:
    """Return rows as columns on a device; it is slow to be given them anew for every step."""
    columns: tuple[Tensor, ...] = torch.tensor(rows, dtype=torch.float64, device="cpu").to(device).split(1, dim=1)
    return columns


def reading(x: Tensor) -> float:
    """Return how many multiplications take as long as writing and reading one number of a kept gradient."""
    return READING_ON_GPU if x.is_cuda else READING


def keeps(positions: int, rows: int, columns: int, *, whole: bool, reading: float = READING) -> bool:
    """Say whether a matrix's gradients are kept, by what either way costs in multiplications (decision 0031)."""
    if positions == 1:
        return False
    size = rows * columns
    if size > HEAVIEST * positions * (rows + columns):
        return False
    grams = 2 * positions**2 * (rows + columns)
    if whole and positions <= FEW_POSITIONS:
        return reading * 3 * size < grams + 2 * positions * size  # a product in float64 takes twice the time
    return reading * size < grams


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
    base, *rest = sorted(others, key=lambda piece: not isinstance(piece, Kept))
    total = base.dense()
    if isinstance(base, Kept | Permuted):
        total = total.clone()  # what it keeps is autograd's, which may have given others the same memory
    for other in rest:
        if isinstance(other, Scatter):
            other.add_to(total)
        else:
            total += other.dense()
    return Kept(total)
