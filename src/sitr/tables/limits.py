"""How much may be asked at once; what is beyond is refused where it is written, before anything is charged.

An extent is that of what an engine reads, in which what is used twice stands twice. It is known as soon as an
expression or a relation is made, and none is made beyond the limits: whatever walks down one ends, and soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import NotAllowed

# What is planned within five seconds, and answered within two gigabytes, on one core of a small machine.
NODES = 4000  # of a question; each takes about a third of a millisecond to be written for an engine
DEPTH = 100  # below one another; each takes up to eight of the thousand calls that Python lets stand open
COLUMNS = 100  # of an answer
NUMBERS = 4_000_000  # in an answer; each takes up to 400 bytes, with its interval


@dataclass(frozen=True)
class Extent:
    """How large a part of a question is.

    Args:
        nodes: Columns, constants and operations, as often as the engine reads them.
        depth: How many of them stand below one another at most.

    Raises:
        NotAllowed: It is beyond the limits.
    """

    nodes: int
    depth: int

    def __post_init__(self) -> None:
        if self.nodes > NODES:
            raise NotAllowed(
                f"the question has more than {NODES:,} parts.",
                why="each column, constant and operation is one, as often as it is used: e + e has all of e twice.",
                do="ask in several questions, with shorter expressions, lists and steps.",
            )
        if self.depth > DEPTH:
            raise NotAllowed(
                f"the question is nested more than {DEPTH} levels deep.",
                why="each operation, and each filter or other step, is a level above what it is made of.",
                do="use x.isin([1, 2, 3]), in SQL x IN (1, 2, 3), in place of many conditions, and one step in place "
                "of many; a long chain of cases is better a public table to join with.",
            )


def around(parts: Iterable[Extent], *, nodes: int = 1, depth: int = 1) -> Extent:
    """Return the extent of what is made of parts: theirs, with so many nodes and levels more.

    Example:
        >>> around([Extent(3, 2), Extent(1, 1)])
        Extent(nodes=5, depth=3)
    """
    made = list(parts)
    return Extent(nodes + sum(one.nodes for one in made), depth + max((one.depth for one in made), default=0))


def check_columns(keys: int, aggregates: int) -> None:
    """Refuse an answer with too many columns.

    Raises:
        NotAllowed: It has.
    """
    if keys + aggregates > COLUMNS:
        raise NotAllowed(
            f"the answer would have {keys + aggregates:,} columns, more than {COLUMNS}.",
            do="ask in several questions; each has its own price.",
        )


def check_numbers(groups: int, cells: int, aggregates: int) -> None:
    """Refuse an answer with too many numbers.

    Raises:
        NotAllowed: It has.
    """
    if groups * cells * aggregates > NUMBERS:
        parts = [f"{groups:,} groups", *([f"{cells:,} bins"] if cells > 1 else [])]
        parts += [f"{aggregates:,} aggregates"] if aggregates > 1 else []
        raise NotAllowed(
            f"the answer would have {groups * cells * aggregates:,} numbers ({' x '.join(parts)}), "
            f"more than {NUMBERS:,}.",
            do="group by fewer or coarser keys, or ask in several questions.",
        )
