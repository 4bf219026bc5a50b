"""What is counted for a budget: whole numbers of any size, one for each limit of its filters.

A place that is None is dead for ever: something was charged that has no guarantee in that filter's notion, and neither
a refund nor a raise brings it back. The history is admissible while at least one way holds, and a way holds if all its
places do (THEORY 5.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from ..accounting.filters import MOST

# In units of 2^-60 of each limit, rounded up (decision 0006) and never clamped: a total far over a limit is what it is.
Vector = tuple[int | None, ...]
Ways = tuple[tuple[int, ...], ...]


def plus(one: Vector, other: Vector) -> Vector:
    """Add place by place; what is dead in either is dead.

    Example:
        >>> plus((1, 2, None), (3, None, 4))
        (4, None, None)
    """
    return tuple([None if a is None or b is None else a + b for a, b in zip(one, other, strict=True)])


def less(one: Vector, other: Vector) -> Vector:
    """Take away place by place; what is dead stays dead.

    Example:
        >>> less((5, None), (2, 1))
        (3, None)
    """
    return tuple([None if a is None or b is None else a - b for a, b in zip(one, other, strict=True)])


def peak(first: Vector, others: Iterable[Vector]) -> Vector:
    """Return the most of each place by itself; what is dead in one is dead.

    Example:
        >>> peak((0, 0, 0), [(5, 1, None), (2, 9, 3)])
        (5, 9, None)
    """
    return reduce(_higher, others, first)


def _higher(one: Vector, other: Vector) -> Vector:
    return tuple([None if a is None or b is None else max(a, b) for a, b in zip(one, other, strict=True)])


def holds(used: Vector, ways: Ways) -> bool:
    """Return whether a history that used so much is admissible (THEORY 5.4).

    Example:
        >>> [
        ...     holds(used, ((0, 1), (2, 1)))
        ...     for used in ((9, 0, MOST), (MOST + 1, 0, 5), (9, MOST + 1, 9), (None, 0, None))
        ... ]
        [True, True, False, False]
    """
    for way in ways:
        for place in way:
            spent = used[place]
            if spent is None or spent > MOST:
                break
        else:
            return True
    return False


class Charge(NamedTuple):
    """What one budget is charged.

    Attributes:
        name: Of the budget.
        version: That the charge was worked out for.
        units: How much, in each place.
        ways: The places that hold together in that budget.
        blocks: Those that it is charged to, where blocks count apart; otherwise none, and it is charged to the whole.
    """

    name: str
    version: int
    units: Vector
    ways: Ways
    blocks: tuple[str, ...]


class Exceeded(Exception):
    """A budget has not enough left: its name, and what those whom the release touches have used."""

    def __init__(self, name: str, used: Vector) -> None:
        super().__init__(name)
        self.name, self.used = name, used


class Total(NamedTuple):
    """A budget as stored.

    Attributes:
        name: Of the budget.
        version: How often it was defined.
        body: Its definition.
        whole: What was spent on the whole dataset.
        peak: The most of each place that any block spent besides.
    """

    name: str
    version: int
    body: str
    whole: Vector
    peak: Vector

    @property
    def used(self) -> Vector:
        """What the most spent part of the data has used: the whole and the block that spent most."""
        return plus(self.whole, self.peak)

    def after(self, charge: Charge, blocks: Sequence[Vector]) -> Total:
        """Return the total with a charge added, if the promise then still holds.

        Args:
            charge: What is charged.
            blocks: What each of its blocks spent before, in their order.

        Raises:
            Exceeded: It would not hold.

        Privacy: what is spent on the whole adds to every block, so one way has to hold for all of them; of a charge to
            some blocks, each of these needs a way of its own (THEORY 4.9, 5.4).
        """
        if not charge.blocks:
            made = self._replace(whole=plus(self.whole, charge.units))
            if not holds(made.used, charge.ways):
                raise Exceeded(self.name, self.used)
            return made
        spent = [plus(block, charge.units) for block in blocks]
        if not all(holds(plus(self.whole, block), charge.ways) for block in spent):
            raise Exceeded(self.name, plus(self.whole, peak(blocks[0], blocks)))
        return self._replace(peak=peak(self.peak, spent))
