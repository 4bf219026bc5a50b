"""Gradients of convolutions as a GPU takes them, where that needs no GPU; `test_gpu.py` has the rest."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sitr.learning.convolved import Convolved

# channels, rows, image, kernel, stride, padding, dilation, groups
CASES = {
    "plain": (3, 4, (7, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "stride": (2, 5, (9, 8), (3, 2), (2, 3), (1, 0), (1, 1), 1),
    "dilation": (2, 3, (9, 9), (3, 2), (1, 2), (2, 1), (2, 3), 1),
    "groups": (4, 6, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1), 2),
    "patches": (3, 4, (8, 8), (4, 4), (4, 4), (0, 0), (1, 1), 1),
}


def piece_and_gradients(name: str) -> tuple[Convolved, Tensor]:
    """A use of a weight, and each person's gradient by autograd."""
    torch.manual_seed(3)
    channels, rows, image, kernel, *rest, groups = CASES[name]
    x = torch.randn(3, channels, *image)
    weight = torch.randn(rows, channels // groups, *kernel, requires_grad=True)
    out = F.conv2d(x, weight, None, *rest, groups)
    g = torch.randn_like(out)
    each = [torch.autograd.grad(out[i], weight, g[i], retain_graph=True)[0] for i in range(3)]
    return Convolved(x, g, kernel, *rest, groups), torch.stack(each)


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_their_sum_are_those_of_autograd(name: str) -> None:
    piece, each = piece_and_gradients(name)
    assert piece.shape == each.shape[1:]
    torch.testing.assert_close(piece.dense(), each, rtol=1e-4, atol=1e-5)
    factors = torch.tensor([1.0, 0.25, 0.5], dtype=torch.float64)
    wanted = (each * factors.float().view(-1, 1, 1, 1, 1)).sum(0)
    torch.testing.assert_close(piece.summed(factors, masked=False), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_no_gradient_is_longer_than_its_spread(name: str) -> None:
    """Σ |a_t| |g_t|, by patches that are written out."""
    piece, each = piece_and_gradients(name)
    patches = piece._patches(piece.images).flatten(2)
    lengths = patches.norm(dim=2) * piece.outputs.flatten(2).norm(dim=1)
    assert (piece.spread >= lengths.sum(1)).all()
    assert (piece.spread <= lengths.sum(1) * 1.01).all()
    assert (piece.spread >= each.flatten(1).norm(dim=1)).all()


def test_people_who_are_left_out_may_hold_anything() -> None:
    piece, each = piece_and_gradients("plain")
    piece.images[1], piece.outputs[1] = torch.inf, torch.nan
    factors = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(piece.summed(factors, masked=True), each[0] + each[2], rtol=1e-4, atol=1e-5)
