"""Bounds are above the truth, and whole sums are exact."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from sitr.learning import kernels
from sitr.learning.clipping import GRID_BITS, LEAST_FACTOR, Clipper
from sitr.learning.convolved import Convolved
from sitr.learning.pieces import (
    FEW_POSITIONS,
    LONG,
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
    bounds_of,
    combine,
    working,
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


@given(
    positions=st.integers(1, 20),
    whole=st.booleans(),
    of_inputs=st.integers(-140, 120),
    of_outputs=st.integers(-140, 120),
    uneven=st.integers(0, 80),
    seed=st.integers(0, 2**31),
)
def test_a_product_is_bounded_also_where_squares_vanish(
    positions: int, whole: bool, of_inputs: int, of_outputs: int, uneven: int, seed: int
) -> None:
    """Squares of 1e-23 are nothing in 32 bits, and beside a large gradient they were needed."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(columns: int, exponent: int) -> Tensor:
        some = torch.randn(1, positions, columns, generator=generator).double()
        rows = torch.randint(-uneven, uneven + 1, (1, positions, 1), generator=generator)
        return torch.ldexp(some, (exponent + rows).clamp(-148, 120)).float()

    inputs, outputs = numbers(3, of_inputs), numbers(2, of_outputs)
    piece = Product(inputs, outputs, whole=whole)
    bound = float(piece.bound())
    if not piece.integral and math.isfinite(bound):
        assert square(exactly(inputs[0], outputs[0])) <= Fraction(bound) ** 2
    if math.isfinite(bound) and not whole and 1e-3 / bound > LEAST_FACTOR:
        total = piece.summed(torch.tensor([1e-3 / bound], dtype=torch.float64), masked=False)
        assert float(total.double().norm()) <= 1e-3 * (1 + 1e-6)


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


@pytest.mark.parametrize("size", [2, LONG])
def test_kept_sums_of_many_people_are_exact(size: int) -> None:
    """Large contributions take turns with steps of one, which would be lost in a sum of all in float64."""
    gradients = torch.full((3 * PEOPLE_AT_ONCE + 1, size), 1.0)
    factors = torch.full((len(gradients),), 2.0 ** (SUM_BITS + SPREAD_BITS), dtype=torch.float64)
    factors[1::2] = 1.0
    total = torch.zeros(size, dtype=torch.int64)
    Kept(gradients).add(total, factors)
    assert total.unique().tolist() == [sum(map(int, factors.tolist()))]


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


# What a user may have said of precision before, in both ways to say it, and none of which can be unsaid.
SETTINGS = [
    "",
    "torch.set_float32_matmul_precision('highest')",
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cudnn.allow_tf32 = False",
    "torch.backends.fp32_precision = 'ieee'",
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'bf16'",
    "torch.backends.mkldnn.fp32_precision = 'bf16'",
    "torch.backends.cudnn.fp32_precision = 'tf32'",
    "tell('mkldnn', 'all', 'bf16')",
    "tell('mkldnn', 'all', 'ieee'); tell('mkldnn', 'conv', 'bf16')",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.cudnn.conv.fp32_precision = 'ieee'",
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "torch.backends.mkldnn.conv.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'ieee'; torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "torch.set_float32_matmul_precision('medium'); torch.backends.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'bf16'; torch.set_float32_matmul_precision('high')",
    "torch.backends.cudnn.allow_tf32 = False; torch.backends.cudnn.conv.fp32_precision = 'tf32'",
]
SAID = """
import json, os, sys, warnings
import torch
from sitr.learning.pieces import whole_products

OPERATIONS = [(backend, one) for backend in ("mkldnn", "cuda") for one in ("all", "matmul", "conv", "rnn")]
told, tell = torch._C._get_fp32_precision_getter, torch._C._set_fp32_precision_setter
warnings.simplefilter("error")


def heard(get):
    try:
        return get()
    except RuntimeError:
        return "refused"


def said():
    new = [told("generic", "all"), *(told(*one) for one in OPERATIONS)]
    old = torch.get_float32_matmul_precision, lambda: torch.backends.cuda.matmul.allow_tf32
    return [*new, *(heard(get) for get in (*old, lambda: torch.backends.cudnn.allow_tf32))]


def tried(setting, among):
    # All that can be heard: at first, within, afterwards, and if something is said that others follow later.
    exec(setting)
    found = [said()]
    if among is not None:
        with whole_products(*among), whole_products():
            found += [{"/".join(one): told(*one) for one in OPERATIONS}, said()]
    found += [said()]
    for later in ("ieee", "bf16", "none"):
        tell("generic", "all", later)
        found += [said()]
        for backend in ("mkldnn", "cuda"):
            tell(backend, "all", "none")
        found += [said()]
    return found


for setting in json.loads(sys.argv[1]):
    for among in (None, (), ("mkldnn",), ("cuda",), ("mkldnn", "cuda")):
        if not os.fork():
            try:
                found = tried(setting, among)
            except Exception as error:
                found = repr(error)
            print(json.dumps([setting, among, found]), flush=True)
            os._exit(0)
        if os.wait()[1]:
            sys.exit(1)
"""


@pytest.fixture(scope="module")
def heard() -> dict[tuple[str, tuple[str, ...] | None], Any]:
    """What torch says of precision, with each setting, around products that are made whole."""
    command = [sys.executable, "-c", SAID, json.dumps(SETTINGS)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert not found.returncode, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    return {(setting, None if among is None else tuple(among)): said for setting, among, said in lines}


@pytest.mark.xdist_group("precision")
@pytest.mark.parametrize("among", [(), ("mkldnn",), ("cuda",), ("mkldnn", "cuda")], ids=lambda among: "+".join(among))
@pytest.mark.parametrize("setting", SETTINGS)
def test_precision_is_whole_within_and_as_it_was_behind(heard: Any, setting: str, among: tuple[str, ...]) -> None:
    """Whatever the user said, and also if the user says more later: nothing stays that was copied from a parent."""
    untouched, found = heard[setting, None], heard[setting, among]
    assert not isinstance(found, str), "nothing is raised"
    first, within, inside, *after = found
    assert [first, *after] == untouched
    for backend in among or ("mkldnn",):  # no GPU is in use
        assert {within[f"{backend}/{one}"] for one in ("all", "matmul", "conv", "rnn")} == {"ieee"}
    for place, backend in ((1, "mkldnn"), (5, "cuda")):
        if backend not in (*among, "mkldnn"):
            assert inside[place : place + 4] == first[place : place + 4]


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


# ---- numbers of every size


KINDS = {torch.float32: 30.0, torch.bfloat16: 30.0, torch.float64: 300.0}  # and the largest power of ten that is tried
WORDS, WIDTH = 3, 2  # of the matrix and the table


def of_every_size(positions: int, columns: int, most: float, exponent: Tensor, generator: torch.Generator) -> Tensor:
    """Numbers of which some are 0, around one size, around one for each position, or around one and its inverse."""
    way = int(torch.randint(3, (1,), generator=generator))
    signs = 2 * torch.randint(2, (1, positions, 1), generator=generator) - 1
    others = most * (2 * torch.rand(1, positions, 1, dtype=torch.float64, generator=generator) - 1)
    numbers = torch.randn(1, positions, columns, dtype=torch.float64, generator=generator)
    numbers[torch.rand(numbers.shape, generator=generator) < torch.rand((), generator=generator) / 2] = 0
    return numbers * 10 ** [exponent, others, exponent * signs][way].clamp(-most, most)


def pieces_of_every_size(use: str, kind: torch.dtype, whole: bool, positions: int, seed: int) -> list[Piece]:
    """The uses of one matrix by a single person."""
    generator, shape, most = torch.Generator().manual_seed(seed), torch.Size((WORDS, WIDTH)), KINDS[kind]
    exponents = most * (2 * torch.rand(3, dtype=torch.float64, generator=generator) - 1)
    if seed % 3 == 0:  # a product of moderate numbers, of one that is tiny and one that is huge
        exponents[1] = exponents[2] / 15 - exponents[0]

    def numbers(columns: int, exponent: Tensor) -> Tensor:
        return working(of_every_size(positions, columns, most, exponent, generator).to(kind), whole=whole)

    matrix = Applied(numbers(WIDTH, exponents[0]), numbers(WORDS, exponents[1]), shape, whole)
    table = Scatter(torch.randint(WORDS, (1, positions), generator=generator), numbers(WIDTH, exponents[2]), shape)
    return {
        "product": [Product(matrix.inputs, matrix.outputs, whole=whole, integral=seed % 2 == 0)],
        "matrix": [matrix],
        "scatter": [table],
        "tied": [table, matrix],
        "convolution": [Permuted(matrix.transposed(), (1, 0))],
        "several": [Permuted(Kept(matrix.transposed().dense()), (1, 0)), table, matrix],
    }[use]


def gradient(piece: Piece) -> list[list[Fraction]]:
    """The gradient of the numbers that a piece of a single person holds, without any rounding."""
    if isinstance(piece, Permuted):
        return [list(row) for row in zip(*gradient(piece.piece), strict=True)]
    if isinstance(piece, Tied):
        parts = zip(gradient(piece.table), gradient(piece.matrix), strict=True)
        return [[x + y for x, y in zip(*rows, strict=True)] for rows in parts]
    if isinstance(piece, Product):
        return exactly(piece.inputs[0], piece.outputs[0])
    if isinstance(piece, Scatter):
        chosen = (piece.rows[0, :, None] == torch.arange(WORDS)).double()
        return exactly(piece.gradients[0], chosen)
    assert isinstance(piece, Kept)
    return [[Fraction(x) for x in row] for row in piece.gradients[0].tolist()]


def held(piece: Piece) -> list[Tensor]:
    """The numbers that a piece holds."""
    inside = [x for x in vars(piece).values() if not isinstance(x, Tensor)]
    return [x for x in vars(piece).values() if isinstance(x, Tensor)] + [
        x for part in inside if hasattr(part, "bound") for x in held(part)
    ]


def clipped_alone(piece: Piece, kind: torch.dtype, bound: float, *, exact: bool) -> Fraction:
    """The square of what a single person adds, in shares of the clipping bound, without any rounding."""
    model = torch.nn.Linear(WIDTH, WORDS, bias=False, dtype=kind)
    clipper = Clipper(model, bound, exact_sums=exact)
    clipper._add({"weight": piece}, 1)
    share = Fraction(2**GRID_BITS) if exact else Fraction(bound)
    return square([[Fraction(x) for x in row] for row in clipper.sums["weight"].tolist()]) / share**2


@settings(max_examples=400)
@given(
    use=st.sampled_from(["product", "matrix", "scatter", "tied", "tied", "convolution", "several"]),
    kind=st.sampled_from(list(KINDS)),
    whole=st.booleans(),
    positions=st.sampled_from([1, 2, 5, FEW_POSITIONS + 1]),
    bound=st.sampled_from([1e-10, 1e-3, 1.0, 1e3, 1e10]),
    seed=st.integers(0, 2**31),
)
@example("tied", torch.float32, True, 1, 1e3, 76021)
@example("tied", torch.float32, True, 2, 1e-3, 1010265)
@example("product", torch.bfloat16, True, 1, 1e10, 675825)
@example("product", torch.float64, False, 17, 1e-10, 1739109)
def test_nobody_gets_past_the_bound_by_numbers_of_any_size(
    use: str, kind: torch.dtype, whole: bool, positions: int, bound: float, seed: int
) -> None:
    """What overflows or vanishes on the way is neither small nor nothing: a person added 2,097,152 C by a -inf."""
    piece = combine(pieces_of_every_size(use, kind, whole, positions, seed))
    if isinstance(piece, Applied):
        piece = piece.settle()
    stated = float(piece.bound())
    if math.isfinite(stated) and all(bool(x.isfinite().all()) for x in held(piece)):
        assert square(gradient(piece)) <= Fraction(stated * (1 + 2.0**-20)) ** 2
    assert clipped_alone(piece, kind, bound, exact=whole) <= 1


def beyond_the_largest() -> tuple[Tensor, Tensor]:
    """A person of whom each |a|²|g|² is just under the largest number of 32 bits, and one product just over."""
    first, second = (float.fromhex(x) for x in ("0x1.1fd1080000000p+32", "0x1.7584460000000p+32"))
    of_first, of_second = (float.fromhex(x) for x in ("0x1.c766b60000000p+31", "0x1.5ee9d20000000p+31"))
    inputs, outputs = torch.tensor([first, -second, first]), torch.tensor([of_first, of_second, of_first])
    return inputs.view(1, 3, 1), outputs.view(1, 3, 1)


def test_kernels_that_overflow_downwards_bound_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they add in 32 bits, twice what is off the diagonal: where they say -inf, nothing is summed."""
    monkeypatch.setattr(kernels, "available", lambda tensor: True)
    monkeypatch.setattr(kernels, "inner", lambda x, y: (x * y).flatten(1).sum(1, dtype=torch.float64))
    a, g = beyond_the_largest()
    assert Product(a, g, whole=False).grams[0] == -math.inf
    assert Product(a, g, whole=False).norm() == math.inf
    assert bounds_of([Product(a, g, whole=False)]).flatten() == math.inf
    for squares in (-math.inf, math.nan):
        found = torch.tensor([squares]).double(), torch.ones(1).double()
        monkeypatch.setattr(kernels, "conv_norms", lambda *_, found=found, **__: found)
        piece = Convolved(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), (1, 1), (1, 1), (0, 0), (1, 1), 1)
        assert piece.bound() == math.inf
