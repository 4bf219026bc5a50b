"""Clipping on a GPU: the same sums as those of the per-sample loop, in every precision nobody over the bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from sitr.learning.convolved import Convolved
from sitr.learning.pieces import Product, combine
from tests.learning.models import clipped, distance, length
from tests.learning.test_rules import CASES, built

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

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
    assert distance(built(name), exact_sums=False) < 1e-4
    assert distance(built(name), exact_sums=False, style="automatic") < 1e-4
    assert distance(built(name), exact_sums=False, style="per_layer") < 1e-4
    assert distance(built(name), exact_sums=True) < 1e-4


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
