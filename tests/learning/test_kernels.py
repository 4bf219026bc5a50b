"""The kernels against plain PyTorch: patches unfolded in 64 bits, and normalisation layers by autograd."""

import os

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sitr.learning import kernels

# Triton's interpreter runs the same code on a CPU, for whoever installs Triton and has no GPU; it is slow.
INTERPRETED = kernels.triton is not None and os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = pytest.mark.skipif(not (torch.cuda.is_available() or INTERPRETED), reason="no CUDA device")

DEVICE = "cpu" if INTERPRETED else "cuda"
TYPES = (torch.float32, torch.bfloat16) if not INTERPRETED else (torch.float32,)

# channels, outputs, image, kernel, stride, padding, dilation, groups
CONVOLUTIONS = {
    "first layer": (3, 8, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "products": (70, 20, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "Grams": (80, 70, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "Grams in tiles": (64, 160, (9, 10), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "stride": (5, 7, (11, 8), (3, 2), (2, 3), (1, 0), (1, 1), 1),
    "dilation": (5, 7, (12, 11), (3, 2), (1, 2), (2, 1), (2, 3), 1),
    "groups": (6, 8, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), 2),
    "depthwise": (6, 12, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), 6),
    "one place": (66, 34, (6, 5), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "patches": (3, 20, (16, 16), (8, 8), (8, 8), (0, 0), (1, 1), 1),
    "wide padding": (4, 5, (3, 3), (2, 2), (1, 1), (4, 3), (1, 1), 1),
}


@pytest.fixture(autouse=True)
def _whole_products(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def reference(a: Tensor, g: Tensor, kernel, stride, padding, dilation, groups) -> Tensor:
    patches = F.unfold(a.double(), kernel, dilation, padding, stride)
    patches = patches.view(len(a), groups, -1, patches.shape[2])
    gradients = g.double().reshape(len(a), groups, -1, patches.shape[3])
    return (gradients @ patches.transpose(2, 3)).square().sum((1, 2, 3))


def tensors(case, batch: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    channels, outputs, image, kernel, stride, padding, dilation, _ = case
    made = torch.Generator().manual_seed(7)
    after = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(image, kernel, stride, padding, dilation, strict=True)
    ]
    a = torch.randn(batch, channels, *image, generator=made)
    g = torch.randn(batch, outputs, *after, generator=made)
    return a.to(DEVICE, dtype), g.to(DEVICE, dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["positions", "channels"])
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_norms_of_convolutions_are_those_of_unfolded_patches(case, layout, dtype):
    a, g = tensors(case, 3, dtype)
    a, g = a.contiguous(memory_format=layout), g.contiguous(memory_format=layout)
    names = ("kernel", "stride", "padding", "dilation", "groups")
    found, _ = kernels.conv_norms(a, g, **dict(zip(names, case[3:], strict=True)))
    torch.testing.assert_close(found.double(), reference(a, g, *case[3:]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("case", ["products", "Grams", "Grams in tiles"])
def test_norms_do_not_depend_on_the_layout_that_is_read(case):
    rest = CONVOLUTIONS[case][3:]
    a, g = tensors(CONVOLUTIONS[case], 2, torch.float32)
    window = kernels.Window(*rest[:4], g.shape[3])
    inputs = a, g.flatten(2), window, 1, "ieee"  # as they are: positions contiguous
    found = kernels._products(*inputs) if case == "products" else kernels._grams(*inputs)[0]
    torch.testing.assert_close(found.double(), reference(a, g, *rest), rtol=1e-5, atol=0)


def test_norms_of_tf32_are_near(monkeypatch):
    if INTERPRETED:
        pytest.skip("no CUDA device")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    case = CONVOLUTIONS["products"]
    a, g = tensors(case, 3, torch.float32)
    found, _ = kernels.conv_norms(a, g, kernel=case[3], stride=1, padding=1, dilation=1, groups=1)
    torch.testing.assert_close(found.double(), reference(a, g, *case[3:]), rtol=2e-3, atol=0)


def test_the_same_input_has_the_same_norm_to_the_last_bit():
    case = CONVOLUTIONS["products"]
    a, g = tensors(case, 5, torch.float32)
    first, *others = [
        kernels.conv_norms(a, g, kernel=(3, 3), stride=1, padding=1, dilation=1, groups=1)[0] for _ in "123"
    ]
    assert all(torch.equal(first, other) for other in others)


def test_a_sample_does_not_change_the_norm_of_another():
    a, g = tensors(CONVOLUTIONS["groups"], 4, torch.float32)
    options = {"kernel": (3, 3), "stride": 1, "padding": 1, "dilation": 1, "groups": 2}
    together, _ = kernels.conv_norms(a, g, **options)
    a[0], g[1] = float("nan"), float("inf")
    assert torch.equal(kernels.conv_norms(a, g, **options)[0][2:], together[2:])
    assert torch.equal(kernels.conv_norms(a[3:], g[3:], **options)[0], together[3:])


def test_one_dimension_is_an_image_of_one_row():
    a, g = tensors((5, 6, (1, 20), (1, 3), (1, 2), (0, 2), (1, 2), 1), 3, torch.float32)
    image, _ = kernels.conv_norms(a, g, kernel=(1, 3), stride=(1, 2), padding=(0, 2), dilation=(1, 2), groups=1)
    line, _ = kernels.conv_norms(
        a[:, :, 0], g[:, :, 0], kernel=(3,), stride=(2,), padding=(2,), dilation=(2,), groups=1
    )
    assert torch.equal(line, image)


def test_an_empty_batch_has_no_norms():
    a, g = torch.empty(0, 3, 8, 8, device=DEVICE), torch.empty(0, 5, 8, 8, device=DEVICE)
    assert kernels.conv_norms(a, g, kernel=(3, 3), stride=1, padding=1, dilation=1, groups=1)[0].shape == (0,)
    assert kernels.group_norm_sums(a, a, groups=3, eps=1e-5)[0].shape == (0, 3)
    assert kernels.layer_norm_sums(a[:, 0], a[:, 0], eps=1e-5)[0].shape == (0, 8)


def per_sample(normalise, a: Tensor, g: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias by autograd, sample by sample, in 64 bits."""
    found = []
    for one, of_one in zip(a.double(), g.double(), strict=True):
        weight = torch.ones(width, dtype=torch.float64, device=a.device, requires_grad=True)
        bias = torch.zeros_like(weight, requires_grad=True)
        (normalise(one[None], weight, bias) * of_one).sum().backward()
        found.append((weight.grad, bias.grad))
    return tuple(torch.stack(both) for both in zip(*found, strict=True))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 33, 40), (2, 1, 300)], ids=str)
@pytest.mark.parametrize("centred", [True, False], ids=["layer norm", "RMS norm"])
def test_sums_of_layer_norms_are_those_of_autograd(shape, centred, dtype):
    a = (torch.randn(shape, generator=torch.Generator().manual_seed(1)) + 3).to(DEVICE, dtype)
    g = torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(DEVICE, dtype)
    width = shape[2]
    if centred:
        expected = per_sample(lambda x, w, b: F.layer_norm(x, (width,), w, b, 1e-5), a, g, width)
    else:
        expected = per_sample(lambda x, w, b: F.rms_norm(x, (width,), w, 1e-5) + b, a, g, width)
    found = kernels.layer_norm_sums(a, g, eps=1e-5, centred=centred)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("groups", [1, 2, 6], ids=lambda groups: f"{groups} groups")
@pytest.mark.parametrize("image", [(5, 5), (2, 1), (40, 50), (3000,)], ids=str)
def test_sums_of_group_norms_are_those_of_autograd(image, groups, dtype):
    a = (torch.randn((2, 6, *image), generator=torch.Generator().manual_seed(1)) + 100).to(DEVICE, dtype)
    g = torch.randn((2, 6, *image), generator=torch.Generator().manual_seed(2)).to(DEVICE, dtype)
    expected = per_sample(lambda x, w, b: F.group_norm(x, groups, w, b, 1e-5), a, g, 6)
    found = kernels.group_norm_sums(a, g, groups=groups, eps=1e-5)
    # An offset of 100 standard deviations leaves five digits of what it is added to.
    scale = g.double().square().sum().sqrt().item()
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=2e-5 * scale)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_norms_of_matrices_are_those_of_products(dtype):
    torch.manual_seed(5)
    a, g = (torch.randn(3, 37, width).to(DEVICE, dtype) for width in (20, 70))
    squares, spread = kernels.linear_norms(a, g)
    products = torch.bmm(g.double().transpose(1, 2), a.double())
    torch.testing.assert_close(squares, products.square().sum((1, 2)), rtol=1e-5, atol=0)
    lengths = (a.double().norm(dim=2) * g.double().norm(dim=2)).sum(1)
    torch.testing.assert_close(spread, lengths, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [1, 300, 20_000])
def test_inner_products_and_weighted_sums(size, dtype):
    torch.manual_seed(6)
    x, y = (torch.randn(5, size).to(DEVICE, dtype) for _ in "12")
    products = x.double() * y.double()
    error = (kernels.inner(x, y) - products.sum(1)).abs()
    assert (error <= 64 * 2.0**-24 * products.abs().sum(1)).all()
    factors = torch.tensor([1.0, 0.5, 0.0, 2.0, 0.25], device=DEVICE)
    wanted = (x.double() * factors.double()[:, None]).sum(0)
    x[2] = torch.nan  # whose factor is 0
    torch.testing.assert_close(kernels.weighted_sum(x, factors).double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["positions", "channels"])
@pytest.mark.parametrize("case", [name for name, case in CONVOLUTIONS.items() if case[-1] == 1])
def test_sums_of_convolutions_are_those_of_unfolded_patches(case, layout, dtype):
    case = CONVOLUTIONS[case]
    channels, outputs, _, kernel, stride, padding, dilation, _ = case
    a, g = (t.contiguous(memory_format=layout) for t in tensors(case, 4, dtype))
    factors = torch.tensor([1.0, 0.5, 0.0, 0.25], device=DEVICE)
    patches = F.unfold(a.double(), kernel, dilation, padding, stride)
    each = torch.bmm(g.double().flatten(2), patches.transpose(1, 2))
    wanted = (each * factors.double()[:, None, None]).sum(0).view(outputs, channels, *kernel)
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    kept = kernels.conv_gradients(a, g, **window).permute(0, 1, 4, 2, 3)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(kept.double(), each.view(4, outputs, channels, *kernel), **near)
    a[2] = torch.nan
    found = kernels.conv_sums(a, g, factors, **window)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)
