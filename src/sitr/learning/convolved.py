"""The gradient of a convolution's weight on a GPU: norms by a kernel, the sum by one ordinary weight gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from . import kernels
from .pieces import HIDDEN, SHORT, SMALLEST, Kept, Permuted, Piece, as_squares, gamma, is_short, left_out, scaled

Sizes = tuple[int, ...]

TRANSFORMED = 2.0**-12  # rounding of a sum in 24 bits: libraries may transform images first (Winograd), and lose some


@dataclass
class Convolved:
    """A use of a convolution's weight in two dimensions, of which neither gradients nor patches are kept.

    Attributes:
        images: Its inputs: people × channels × height × width.
        outputs: The gradient of what came out: people × rows × height × width.
        kernel: Its size.
        stride: Of the convolution; so are the next three.
        padding: By zeros, on both sides.
        dilation: Between the numbers of a patch.
        groups: Of channels.

    Privacy: `bound` is an upper bound of the norm of what `summed` sums, in exact arithmetic, whether products have
    factors of 8, 11 or 24 bits: both multiply the same numbers but for their rounding, which Σₜ|aₜ||gₜ| bounds
    (decision 0031).
    """

    images: Tensor
    outputs: Tensor
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    @property
    def _columns(self) -> int:
        return self.images.shape[1] // self.groups

    @property
    def _window(self) -> dict[str, Sizes]:
        """What kernels are told of the convolution."""
        return {"kernel": self.kernel, "stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    @property
    def shape(self) -> torch.Size:
        """Of the weight."""
        return torch.Size((self.outputs.shape[1], self._columns, *self.kernel))

    @cached_property
    def spread(self) -> Tensor:
        """Σ_t |a_t| |g_t| over positions, a_t being a patch: no partial sum of the product is larger."""
        pixels = torch.linalg.vector_norm(self.images, dim=1, keepdim=True, dtype=torch.float32).square_()
        patches = self._windowed(self._padded(pixels))[:, 0] + self._columns * self._places * kernels.PADDING
        g = torch.linalg.vector_norm(self.outputs, dim=1, dtype=torch.float32).square_()
        lengths = patches.sqrt_() * (g + self.outputs.shape[1] * kernels.PADDING).sqrt_()
        found: Tensor = lengths.sum((1, 2), dtype=torch.float64) * (1 + SHORT)
        return found + HIDDEN * self._positions

    def _padded(self, images: Tensor) -> Tensor:
        down, right = self.padding
        return F.pad(images, (right, right, down, down))

    def _windowed(self, padded: Tensor) -> Tensor:
        """Sum padded images over the places of the kernel, at each position."""
        if self.dilation == (1, 1):
            return F.avg_pool2d(padded, self.kernel, self.stride, divisor_override=1)
        ones = padded.new_ones(1, 1, *self.kernel)
        return F.conv2d(padded, ones, stride=self.stride, dilation=self.dilation)

    def settle(self) -> Piece:
        """Write the gradients out where they are smaller than what they are made of: then that is let go."""
        if self.groups == 1 and len(self.images) * self.shape.numel() <= self.numbers():
            return Permuted(Kept(kernels.conv_gradients(self.images, self.outputs, **self._window)), (0, 2, 3, 1))
        if self.images.dtype == torch.bfloat16 and self.images.shape[1] >= kernels.FOLDED:
            self.outputs = self.outputs.contiguous(memory_format=torch.channels_last)  # once, for norms and for the sum
        return self

    def bound(self) -> Tensor:  # noqa: D102
        squares, spread = kernels.conv_norms(self.images, self.outputs, groups=self.groups, **self._window)
        short = SHORT if is_short(self.images, tf32=kernels.takes_tf32("conv")) else TRANSFORMED
        if spread is None:
            found, spread = (squares + SMALLEST * self.shape.numel()).sqrt(), self.spread
        else:
            terms = self._columns * self._places + self.outputs.shape[1] // self.groups
            spread = spread * (1 + 2 * short + 2 * gamma(terms + 64)) + HIDDEN * self._positions
            found = (as_squares(squares) + gamma(terms + 64) * spread.square()).sqrt()
        return found * (1 + gamma(64)) + (gamma(self._positions + 64) + short) * spread

    @property
    def _places(self) -> int:
        return math.prod(self.kernel)

    @property
    def _positions(self) -> int:
        return self.outputs.shape[2] * self.outputs.shape[3]

    def slack(self) -> float:  # noqa: D102
        return math.sqrt(self.shape.numel()) / 2

    def add(self, total: Tensor, factors: Tensor) -> None:  # noqa: D102
        raise NotImplementedError  # exact sums take pieces that do not depend on the size of a batch

    def masks(self) -> bool:  # noqa: D102
        return self.images.dtype == torch.bfloat16 and self.groups == 1

    def summed(self, factors: Tensor, *, masked: bool) -> Tensor:  # noqa: D102
        images, outputs = self.images, self.outputs
        if self.masks():
            # In 32 bits: an ordinary weight gradient of 16 bits would round its sum to 16.
            return kernels.conv_sums(images, outputs, factors, **self._window)
        if masked:
            images, outputs = left_out(factors, images), left_out(factors, outputs)
        weight = images.new_empty(self.shape, dtype=torch.float32)
        rest = (self.stride, self.padding, self.dilation, False, (0, 0), self.groups, (False, True, False))
        outputs = scaled(outputs.float(), factors)
        found: Tensor = torch.ops.aten.convolution_backward(outputs, images.float(), weight, None, *rest)[1]
        return found

    def _patches(self, images: Tensor) -> Tensor:
        """Write patches out: people × positions × places of the kernel × channels."""
        padded = self._padded(images).permute(0, 2, 3, 1).contiguous()
        people, channels = padded.shape[0], padded.shape[3]
        of_person, of_row, of_pixel, _ = padded.stride()
        sizes = (people, *self.outputs.shape[2:], *self.kernel, channels)
        strides = (
            of_person,
            of_row * self.stride[0],
            of_pixel * self.stride[1],
            of_row * self.dilation[0],
            of_pixel * self.dilation[1],
            1,
        )
        return padded.as_strided(sizes, strides).reshape(people, self._positions, self._places, channels)

    def dense(self) -> Tensor:  # noqa: D102
        seen = self._patches(self.images).unflatten(3, (self.groups, -1))
        outputs = self.outputs.flatten(2).unflatten(1, (self.groups, -1))
        found = torch.einsum("btkgc,bgpt->bgpck", seen, outputs)
        return found.reshape(len(found), *self.shape)

    def numbers(self) -> int:  # noqa: D102
        return self.images.numel() + self.outputs.numel()

    def work(self) -> int:  # noqa: D102
        return self.outputs.numel() * self.shape[1:].numel()
