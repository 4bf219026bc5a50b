"""Clipping on a GPU: the same sums as those of the per-sample loop, in every precision nobody over the bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from sitr.learning.convolved import TRANSFORMED, Convolved
from sitr.learning.pieces import Product, bounds_of, combine, whole_products
from tests.learning.models import clipped, distance, length
from tests.learning.test_rules import CASES, built

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS", "ignore:Mismatch dtype between input and weight"),
]

PRECISIONS = ("fp32", "tf32", "bf16")


@pytest.fixture(autouse=True)
def _on_the_gpu() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with torch.device("cuda"):
        set_tf32(False)
        yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def set_tf32(allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


@pytest.mark.parametrize("name", CASES)
def test_the_clipped_sum_is_that_of_the_loop(name: str) -> None:
    """But for what the bound of a convolution leaves to a library that may transform images: of all that cancels."""
    near = 1e-4 + 4 * TRANSFORMED
    assert distance(built(name), exact_sums=False) < near
    assert distance(built(name), exact_sums=False, style="automatic") < near
    assert distance(built(name), exact_sums=False, style="per_layer") < near
    assert distance(built(name), exact_sums=True) < near


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", CASES)
def test_nobody_is_over_the_bound(name: str, precision: str) -> None:
    set_tf32(precision == "tf32")
    model, inputs, losses = built(name)
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        for person in range(len(inputs[0])):
            own = tuple(x[person : person + 1] for x in inputs)
            clipper = clipped(model, own, lambda out: losses(out) * 1e3, exact_sums=False, max_grad_norm=0.5)
            assert length(clipper.sums) <= 0.5


@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_are_bounded_where_they_cancel(precision: str) -> None:
    set_tf32(precision == "tf32")
    torch.manual_seed(3)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    for positions in (2, 64, 300):
        a, g = torch.randn(3, positions, 48).to(dtype), torch.randn(3, positions, 80).to(dtype)
        half = positions // 2
        a[:, half : 2 * half], g[:, half : 2 * half] = a[:, :half], -g[:, :half]
        piece = Product(a, g, whole=False)
        truth = torch.bmm(g.double().transpose(1, 2), a.double()).flatten(1).norm(dim=1)
        assert (piece.bound() >= truth).all()
        for person in range(3):
            factors = torch.zeros(3, dtype=torch.float64)
            factors[person] = 1 / piece.bound()[person]
            assert float(piece.summed(factors, masked=True).double().norm()) <= 1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("positions", [1, 17, 64])
@pytest.mark.parametrize(("of_inputs", "of_outputs"), [(1e-23, 3e17), (3e17, 1e-23), (1e-38, 1e36), (1e-20, 1e-20)])
def test_products_are_bounded_where_squares_vanish(
    of_inputs: float, of_outputs: float, positions: int, precision: str
) -> None:
    set_tf32(precision == "tf32")
    torch.manual_seed(5)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a = (torch.randn(2, positions, 48) * of_inputs).to(dtype)
    g = (torch.randn(2, positions, 80) * of_outputs).to(dtype)
    truth = torch.bmm(g.double().transpose(1, 2), a.double()).flatten(1).norm(dim=1)
    bound = Product(a, g, whole=False).bound()
    assert ((bound >= truth) | ~bound.isfinite()).all()  # whoever has no finite bound adds nothing
    images, outputs = a.transpose(1, 2).unsqueeze(2), g.transpose(1, 2).unsqueeze(2)
    bound = Convolved(images, outputs, (1, 1), (1, 1), (0, 0), (1, 1), 1).bound()  # the longest by products
    assert ((bound >= truth) | ~bound.isfinite()).all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("positions", [2, 17, 64])
@pytest.mark.parametrize("size", [4e18, 1e19, 3e19])
def test_products_are_bounded_where_norms_overflow_downwards(size: float, positions: int, precision: str) -> None:
    """Half of the positions are against the other half: what is off the diagonal is negative, and counts twice."""
    set_tf32(precision == "tf32")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, g = torch.full((2, positions, 1), size**0.5), torch.full((2, positions, 1), size**0.5)
    a[:, : positions // 2] *= -1
    a, g = (torch.cat([x, torch.zeros_like(x).expand(-1, -1, 7)], 2).to(dtype) for x in (a, g))
    truth = torch.bmm(g.double().transpose(1, 2), a.double()).flatten(1).norm(dim=1)
    bound = Product(a, g, whole=False).bound()
    assert ((bound >= truth) | ~bound.isfinite()).all()
    assert torch.equal(bounds_of([Product(a, g, whole=False)])[0].isfinite(), bound.isfinite())
    images, outputs = a.transpose(1, 2).unsqueeze(2), g.transpose(1, 2).unsqueeze(2)
    bound = Convolved(images, outputs, (1, 1), (1, 1), (0, 0), (1, 1), 1).bound()
    assert ((bound >= truth) | ~bound.isfinite()).all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(3, 8, 12, 3, 1), (64, 80, 9, 3, 2), (96, 64, 4, 3, 1), (3, 24, 16, 8, 8)], ids=str)
def test_convolutions_are_bounded_and_summed(shape: tuple[int, ...], precision: str) -> None:
    set_tf32(precision == "tf32")
    torch.manual_seed(4)
    channels, rows, size, kernel, stride = shape
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    layer = nn.Conv2d(channels, rows, kernel, stride, padding=1 if kernel < 8 else 0, bias=False)
    x = torch.randn(4, channels, size, size).to(dtype)
    g = torch.randn_like(layer(x.float())).to(dtype)
    pad = layer.padding[0]
    piece = Convolved(x, g, (kernel, kernel), (stride, stride), (pad, pad), (1, 1), 1)
    wide = Convolved(x.double(), g.double(), piece.kernel, piece.stride, piece.padding, piece.dilation, 1)
    truth = wide.dense()
    norms = truth.flatten(1).norm(dim=1)
    assert (piece.bound() >= norms).all()
    assert (piece.bound() <= norms * 1.2).all()
    factors = torch.rand(4, dtype=torch.float64)
    wanted = (truth * factors.view(-1, 1, 1, 1, 1)).sum(0)
    error = float((piece.summed(factors, masked=False) - wanted).norm() / wanted.norm())
    assert error < {"fp32": 1e-5, "tf32": 2e-3, "bf16": 1e-2}[precision]
    assert torch.allclose(combine([piece, piece]).bound(), 2 * norms, rtol=2e-2)


@pytest.mark.parametrize("name", ["gpt_tied", "vit", "resnet", "mnist_cnn"])
def test_infinite_gradients_add_nothing(name: str) -> None:
    model, inputs, losses = built(name)
    scale = torch.ones(len(inputs[0]))
    scale[1] = torch.inf
    found = clipped(model, inputs, lambda out: losses(out) * scale, exact_sums=False).gradients()
    others = clipped(model, inputs, lambda out: losses(out) * scale.isfinite(), exact_sums=False).gradients()
    for key, value in others.items():
        torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("allowed", [False, True])
def test_products_are_whole_where_they_have_to_be(allowed: bool) -> None:
    """Of normal numbers, products with 11 bits are off by more than 1e-4 of their size, those with 24 by 1e-6."""
    set_tf32(allowed)
    a, images, weight = torch.randn(512, 512), torch.randn(8, 64, 16, 16), torch.randn(64, 64, 3, 3)

    def errors() -> list[float]:
        pairs = [
            (a @ a, a.double() @ a.double()),
            (torch.conv2d(images, weight), torch.conv2d(images.double(), weight.double())),
        ]
        return [float((found - truth).norm() / truth.norm()) for found, truth in pairs]

    with whole_products():
        assert max(errors()) < 2e-5
    assert (min(errors()) > 5e-5) == allowed
    assert torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is allowed
