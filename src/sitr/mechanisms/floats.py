"""Floating-point Gaussian noise: fast, and no proof of every last bit.

It is keyed from the operating system's bits, a new key for every call, so it follows no seed of a program's, and no two
calls share a stream. What is not covered: floats have holes and roundings that whole numbers do not have (decision
0008), and the generators are not cryptographic: Philox under a key of 128 bits here, of 64 bits on a device that draws
for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .randomness import Source


def float_normals(count: int, source: Source, *, double: bool = False) -> NDArray[Any]:
    """Return independent draws from N(0, 1), in single precision by default.

    Privacy: scaled, that of the Gaussian mechanism (THEORY 2.3), as far as floats are reals and nobody knows the key.

    Example:
        >>> from sitr.mechanisms.randomness import Seeded
        >>> drawn = float_normals(10_000, Seeded(1))
        >>> drawn.dtype, bool(0.95 < drawn.std() < 1.05)
        (dtype('float32'), True)
    """
    key = np.frombuffer(source.bytes(16), dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key))
    return generator.standard_normal(count, dtype=np.float64 if double else np.float32)


def device_key(source: Source) -> int:
    """Return a key for the generator of a device, to be used for one call: 64 bits, as a signed number.

    Example:
        >>> from sitr.mechanisms.randomness import SYSTEM
        >>> -(2**63) <= device_key(SYSTEM) < 2**63
        True
    """
    return int.from_bytes(source.bytes(8), "little", signed=True)
