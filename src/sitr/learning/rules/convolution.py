"""Convolutions: matrices applied to patches. Padding modes other than zeros come as F.pad before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..pieces import Applied, Kept, Piece, in_single
from ..watch import Call, Function
from .linear import Receive

LONG_ROW = 8  # of a kernel: then patches are copied row by row of the kernel, else row by row of the image (measured)


def convolution(call: Call) -> tuple[Tensor, Receive] | None:
    """F.conv1d, conv2d and conv3d."""
    return _rule(call, transposed=False)


def transposed_convolution(call: Call) -> tuple[Tensor, Receive] | None:
    """F.conv_transpose1d, 2d and 3d: what comes out and what goes in change places."""
    return _rule(call, transposed=True)


def _rule(call: Call, *, transposed: bool) -> tuple[Tensor, Receive] | None:
    x, weight, bias = call.argument(0, "input"), call.argument(1, "weight"), call.argument(2, "bias")
    spatial = weight.dim() - 2
    owner = call.owners.get(id(x))
    shared = all(p is None or call.like(p) or call.owners.get(id(p)) is None for p in (weight, bias))
    if call.like(x) or owner is None or owner.dim != 0 or x.dim() != spatial + 2 or not shared:
        return None
    stride = _each(call.argument(3, "stride", 1), spatial)
    padding = call.argument(4, "padding", 0)
    groups = call.argument(6, "groups", 1)
    dilation = _each(call.argument(7 if transposed else 5, "dilation", 1), spatial)
    kernel = tuple(weight.shape[2:])
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        around = [(t // 2, t - t // 2) for t in total]
    else:
        around = [(p, p) for p in _each(0 if padding == "valid" else padding, spatial)]

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        found: list[tuple[Tensor, Piece]] = []
        outer, inner = in_single(gradient), in_single(x.detach())
        if bias is not None and call.like(bias):
            found.append((bias, Kept(call.split(outer.flatten(2).sum(2), owner).sum(1))))
        if call.like(weight):
            image, values = (outer, inner) if transposed else (inner, outer)
            patched = patches(image, kernel, stride, dilation, around, groups)  # rows, groups, positions, columns
            rows = values.unflatten(1, (groups, -1)).flatten(3).transpose(2, 3)
            found.append((weight, _grouped(call, patched, rows, weight.shape)))
        return found

    return call.plain(), receive


def _grouped(call: Call, inputs: Tensor, outputs: Tensor, shape: torch.Size) -> Piece:
    """The gradient of a convolution's weight: of each group a matrix, all positions and images of a person together."""
    groups, owner = inputs.shape[1], call.step.results[0]  # type: ignore[index]
    if groups == 1:
        a, g = (call.split(t.squeeze(1), owner).flatten(1, 2) for t in (inputs, outputs))
        return Applied(a, g, shape, call.whole)
    people = [call.split(t, owner).transpose(1, 2).flatten(2, 3).flatten(0, 1) for t in (inputs, outputs)]
    gradients = torch.bmm(people[1].transpose(1, 2), people[0])
    return Kept(gradients.view(call.people, *shape))


def patches(
    image: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    around: list[tuple[int, int]],
    groups: int,
) -> Tensor:
    """Return what each position of a convolution sees: rows × groups × positions × (channels of a group · kernel)."""
    pad = [width for sides in reversed(around) for width in sides]
    if any(pad):
        image = F.pad(image, pad)
    spatial = len(kernel)
    for dim, (size, step, spread) in enumerate(zip(kernel, stride, dilation, strict=True)):
        image = image.unfold(2 + dim, spread * (size - 1) + 1, step)[..., ::spread]
    image = image.unflatten(1, (groups, -1))  # rows, groups, channels, positions…, kernel…
    positions, offsets = range(3, 3 + spatial), range(3 + spatial, 3 + 2 * spatial)
    if kernel[-1] >= LONG_ROW:
        return image.permute(0, 1, *positions, 2, *offsets).flatten(2 + spatial).flatten(2, 1 + spatial)
    columns = image.permute(0, 1, 2, *offsets, *positions).flatten(3 + spatial).flatten(2, 2 + spatial)
    return columns.transpose(2, 3)


def _each(value: Any, spatial: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * spatial
    return tuple(value) if len(value) == spatial else tuple(value) * spatial


RULES: dict[Function, Callable[[Call], tuple[Tensor, Receive] | None]] = {
    F.conv1d: convolution,
    F.conv2d: convolution,
    F.conv3d: convolution,
    F.conv_transpose1d: transposed_convolution,
    F.conv_transpose2d: transposed_convolution,
    F.conv_transpose3d: transposed_convolution,
}
