"""What is protected: the relation between neighbouring data sets (THEORY 1.1)."""

from __future__ import annotations

from typing import Literal

from .errors import IncompatibleAdjacency

Adjacency = Literal["add_remove", "replace_one"]
ADJACENCIES: tuple[Adjacency, ...] = ("add_remove", "replace_one")


def join(first: Adjacency | None, second: Adjacency | None) -> Adjacency | None:
    """Return the one adjacency that both statements speak of.

    `None` means "the relation its sensitivity was measured in" and joins with anything.

    Raises:
        IncompatibleAdjacency: One speaks of `add_remove`, the other of `replace_one`.

    Privacy: Refusing is the safe side: a `replace_one` curve is no function of the `add_remove` one (THEORY 1.1).

    Example:
        >>> join(None, "add_remove")
        'add_remove'
    """
    if first is not None and second is not None and first != second:
        raise IncompatibleAdjacency(
            f"an event under {first!r} and one under {second!r} cannot be composed.",
            why="their guarantees speak of different neighbours; the sum would protect neither.",
            do="state both for the same adjacency (Poisson sampling fixes 'add_remove').",
        )
    return first if first is not None else second
