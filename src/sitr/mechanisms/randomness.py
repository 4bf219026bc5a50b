"""The one source of random bits: the operating system's, or a seeded stream that marks all it touches as a test.

`os.urandom` is cryptographic, safe in threads and after a fork, and fast enough that no stream of our own earns its
place (docs/decisions/0008).
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _validate


class Source(Protocol):
    """Where bits come from; `private` says whether noise made of them may be relied on."""

    @property
    def private(self) -> bool:
        """Whether nobody can know the bits."""

    def bytes(self, count: int) -> bytes:
        """Return `count` random bytes."""


class System:
    """The operating system's generator.

    Example:
        >>> len(System().bytes(16)), System().private
        (16, True)
    """

    private = True

    def bytes(self, count: int) -> bytes:
        """Return bytes that nobody can know."""
        return os.urandom(count)


class Seeded:
    """A repeatable stream for tests: what it touches is stamped NOT PRIVATE.

    Example:
        >>> Seeded(7).bytes(4) == Seeded(7).bytes(4), Seeded(7).private
        (True, False)
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(_validate.integer("unsafe_seed", seed, 0, 2**63 - 1))

    def bytes(self, count: int) -> bytes:
        """Return the next bytes of the stream."""
        return self._generator.bytes(count)


class Expanded:
    """The operating system's bits, expanded by OpenSSL: for the millions of draws of a training step.

    AES-256 in counter mode (NIST SP 800-90A), seeded by the system, anew in a process that forks, and now and then:
    cryptographic as `System` is, and twenty times as fast (docs/decisions/0033). It holds a state in memory, which
    `System` does not, so it is used only where that much is drawn.

    Example:
        >>> len(Expanded().bytes(16)), Expanded().private
        (16, True)
    """

    private = True

    def bytes(self, count: int) -> bytes:
        """Return bytes that nobody can know."""
        from ssl import RAND_bytes

        return RAND_bytes(count)


SYSTEM = System()
EXPANDED = Expanded()


def source_of(unsafe_seed: int | None) -> Source:
    """Return the system's bits, or a seeded stream where a seed is given."""
    return SYSTEM if unsafe_seed is None else Seeded(unsafe_seed)


def words(source: Source, bits: int, count: int) -> NDArray[Any]:
    """Return `count` uniform unsigned integers of 8, 16, 32 or 64 bits.

    Example:
        >>> words(Seeded(1), 16, 3).dtype
        dtype('uint16')
    """
    return np.frombuffer(source.bytes(count * bits // 8), dtype=np.dtype(f"u{bits // 8}"))
