"""Floating-point Gaussian noise for tensors: fast, on the device where they are, and no proof of every last bit.

It is keyed from the operating system's bits, a new key for every call, so it follows no seed of torch and no two calls
share a stream. What is not covered: floats have holes and roundings that whole numbers do not have (decision 0008), and
the generators are not cryptographic: Philox under a key of 128 bits on a CPU, of 64 bits on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .randomness import Source

if TYPE_CHECKING:
    from torch import Tensor


def float_noise_like(tensor: Tensor, scale: float, source: Source) -> Tensor:
    """Return independent N(0, scale²) for each number of a tensor, in its shape and on its device, at least in fp32.

    Privacy: that of the Gaussian mechanism (THEORY 2.3), as far as floats are reals and nobody knows the key.

    Example:
        >>> import torch
        >>> from sitr.mechanisms.randomness import SYSTEM
        >>> noise = float_noise_like(torch.zeros(10_000, dtype=torch.bfloat16), 3.0, SYSTEM)
        >>> noise.dtype, bool(2.8 < noise.std() < 3.2)
        (torch.float32, True)
    """
    import torch

    kind = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    if tensor.device.type == "cpu":
        key = np.frombuffer(source.bytes(16), dtype=np.uint64)
        # torch's own generator for CPUs keeps 32 bits of a seed, which can be tried out.
        drawn = np.random.Generator(np.random.Philox(key=key)).standard_normal(
            tensor.numel(), dtype=np.float64 if kind == torch.float64 else np.float32
        )
        return torch.from_numpy(drawn).view(tensor.shape).mul_(scale)
    generator = torch.Generator(device=tensor.device)
    generator.manual_seed(int.from_bytes(source.bytes(8), "little", signed=True))
    return torch.randn(tensor.shape, generator=generator, device=tensor.device, dtype=kind).mul_(scale)
