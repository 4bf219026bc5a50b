"""Convolutions: matrices applied to patches. Padding modes other than zeros come as F.pad before them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import kernels
from ..convolved import Convolved
from ..ownership import Owned
from ..pieces import CACHED, Applied, Kept, Permuted, Piece, in_single, keeps, working
from ..watch import Call, Function
from .linear import Receive, alike

Sizes = tuple[int, ...]


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
    dilation = _each(call.argument(7 if transposed else 5, "dilation", 1), spatial)
    kernel = tuple(weight.shape[2:])
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        around = [(t // 2, t - t // 2) for t in total]
    else:
        around = [(p, p) for p in _each(0 if padding == "valid" else padding, spatial)]

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        found: list[tuple[Tensor, Piece]] = []
        if bias is not None and call.like(bias):
            summed = gradient.flatten(2).sum(2, dtype=torch.promote_types(gradient.dtype, torch.float32))
            found.append((bias, Kept(call.split(summed, owner).sum(1))))
        if call.like(weight) and not transposed and _has_kernel(call, x, gradient, around):
            images, outputs = alike(working(x.detach(), whole=False), working(gradient, whole=False))
            padding, groups = tuple(before for before, _ in around), x.shape[1] // weight.shape[1]
            piece = Convolved(images, outputs, kernel, stride, padding, dilation, groups)
            found.append((weight, piece.settle()))
        elif call.like(weight):
            outer, inner = in_single(gradient), in_single(x.detach())
            image, values = (outer, inner) if transposed else (inner, outer)
            windows = Windows.of(image, kernel, stride, dilation, around, tuple(values.shape[2:]))
            found.append((weight, windows.gradient(call, values, weight.shape)))
        return found

    return call.plain(), receive


def _has_kernel(call: Call, x: Tensor, gradient: Tensor, around: list[tuple[int, int]]) -> bool:
    """Say whether a kernel takes the norms: of two dimensions, one image a person, padded alike on both sides."""
    return (
        not call.whole
        and len(around) == 2
        and len(x) == call.people
        and call.step.results == (Owned(0),)
        and all(before == after for before, after in around)
        and kernels.available(x)
        and kernels.available(gradient)
    )


@dataclass(frozen=True)
class Windows:
    """What each position of a convolution sees of images.

    Attributes:
        pixels: Images, padded: rows × pixels × channels. Channels come last, since whole rows of them are copied.
        places: For each position and place in the kernel, which pixel: positions · places.
        kernel: Its size.
    """

    pixels: Tensor
    places: Tensor
    kernel: Sizes

    @classmethod
    def of(
        cls,
        image: Tensor,
        kernel: Sizes,
        stride: Sizes,
        dilation: Sizes,
        around: list[tuple[int, int]],
        positions: Sizes,
    ) -> Windows:
        """Lay windows over images (rows × channels × spatial dimensions), at so many positions along each."""
        pad = [width for sides in reversed(around) for width in sides]
        image = F.pad(image, pad) if any(pad) else image
        places = torch.zeros((), dtype=torch.int64)
        spatial = len(kernel)
        for dim in range(spatial):
            size = image.shape[2 + dim]
            starts = (torch.arange(positions[dim]) * stride[dim]).view(-1, *[1] * (2 * spatial - 1 - dim))
            offsets = (torch.arange(kernel[dim]) * dilation[dim]).view(-1, *[1] * (spatial - 1 - dim))
            places = places * size + starts + offsets
        pixels = image.flatten(2).transpose(1, 2).contiguous()
        return cls(pixels, places.flatten().to(image.device), kernel)

    def seen(self, some: slice) -> Tensor:
        """Return windows of some rows: rows × positions × places in the kernel × channels."""
        found = self.pixels[some].index_select(1, self.places)
        places = math.prod(self.kernel)
        return found.view(len(found), len(self.places) // places, places, -1)

    def gradient(self, call: Call, values: Tensor, shape: torch.Size) -> Piece:
        """Return the gradient of a weight of a shape (rows, channels of a group, *kernel), for g = `values`."""
        owner = call.step.results[0]  # type: ignore[index]
        channels, groups = self.pixels.shape[2], self.pixels.shape[2] // shape[1]
        layout = torch.Size((shape[0], *self.kernel, shape[1]))
        order = (0, *range(2, len(shape)), 1)
        rows = values.flatten(2)  # rows, channels, positions
        alone = len(rows) == call.people and groups == 1 and owner == Owned(0)
        if alone and keeps(rows.shape[2], rows.shape[1], math.prod(layout[1:]), whole=call.whole):
            return Permuted(Kept(self._each(rows).view(-1, *layout)), order)
        seen = call.split(self.seen(slice(None)).unflatten(3, (groups, -1)), owner)  # people, several, positions, …
        outputs = call.split(rows.unflatten(1, (groups, -1)), owner)  # people, several, groups, rows, positions
        if groups == 1:
            a = seen.squeeze(4).flatten(3).flatten(1, 2)
            return Permuted(Applied(a, outputs.squeeze(2).transpose(2, 3).flatten(1, 2), layout, call.whole), order)
        assert channels == groups * shape[1]
        found = torch.einsum("bstkgc,bsgpt->bgpkc", seen, outputs)
        return Permuted(Kept(found.reshape(call.people, *layout)), order)

    def _each(self, values: Tensor) -> Tensor:
        """Return each row's gradient, a few rows at a time, whose windows a cache holds."""
        found = values.new_empty(len(values), values.shape[1], math.prod(self.kernel) * self.pixels.shape[2])
        step = max(1, CACHED // (len(self.places) * self.pixels.shape[2]))
        for start in range(0, len(values), step):
            some = slice(start, start + step)
            torch.bmm(values[some], self.seen(some).flatten(2), out=found[some])
        return found


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
