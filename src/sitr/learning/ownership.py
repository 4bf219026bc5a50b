"""Whose rows are whose: which part of a tensor inside a model belongs to which person of the micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Owned:
    """A dimension whose entries belong to people, each of whom has equally many.

    Attributes:
        dim: The dimension.
        minor: People change fastest along it (row t·people + i is person i's), as in a flattened time-major tensor;
            else each person's rows lie together.
        several: People have more than one entry each.
    """

    dim: int
    minor: bool = False
    several: bool = False

    def split(self, x: Tensor, people: int) -> Tensor:
        """Return x with people in front, then all its dimensions, `dim` with one person's entries only.

        Example:
            >>> import torch
            >>> Owned(0, several=True).split(torch.arange(6).view(6, 1), people=3)[:, :, 0]
            tensor([[0, 1], [2, 3], [4, 5]])
        """
        if self.dim == 0 and not self.minor:
            return x.reshape(people, x.shape[0] // people, *x.shape[1:])
        each = x.shape[self.dim] // people
        apart: Tensor = x.unflatten(self.dim, (each, people) if self.minor else (people, each))
        return apart.movedim(self.dim + self.minor, 0)

    def join(self, x: Tensor) -> Tensor:
        """Undo `split`."""
        place = self.dim + 1 if self.minor else self.dim
        return x.movedim(0, place).flatten(self.dim, self.dim + 1)

    def fits(self, x: Tensor, people: int) -> bool:
        """Say whether x can be split among so many people as it was in the probe."""
        if self.dim >= x.dim():
            return False
        return x.shape[self.dim] % people == 0 if self.several else x.shape[self.dim] == people


SHARED = None  # the owner of what is the same for everybody
Owner = Owned | None


class Entangled(Exception):
    """A tensor whose parts cannot be told apart by person."""


def find_owner(fewer: Tensor, base: Tensor, changed: Sequence[Tensor]) -> Owner:
    """Find which rows of a tensor belong to whom from probes of the model.

    The dimension of people is the one that grows with their number, whatever its size: shapes of a single run are never
    believed, since a sequence may be as long as the batch. Then each person's change must move that person's rows only.

    Args:
        fewer: The tensor in a run with one person less.
        base: In the run that the others are compared with.
        changed: For each person, in a run where only that person's input is another.

    Raises:
        Entangled: No such split exists.

    Example:
        >>> import torch
        >>> x = torch.zeros(2, 3)
        >>> find_owner(x[:1], x, [x + torch.tensor([[1.0], [0.0]]), x + torch.tensor([[0.0], [1.0]])])
        Owned(dim=0, minor=False, several=False)
    """
    people = len(changed)
    if fewer.dim() != base.dim() or any(run.shape != base.shape for run in changed):
        raise Entangled
    moved = [differs(base, run) for run in changed]
    growing = [dim for dim in range(base.dim()) if fewer.shape[dim] != base.shape[dim]]
    if not growing:
        if any(bool(m.any()) for m in moved):
            raise Entangled
        return SHARED
    if len(growing) > 1 or fewer.shape[growing[0]] * people != base.shape[growing[0]] * (people - 1):
        raise Entangled
    several = base.shape[growing[0]] > people
    owners = [Owned(growing[0], several=several)]
    if several:
        if not any(bool(m.any()) for m in moved):
            raise Entangled  # which of two arrangements it is cannot be seen
        owners.append(Owned(growing[0], minor=True, several=True))
    fitting = [owner for owner in owners if all(confined(owner, m, person, people) for person, m in enumerate(moved))]
    if len(fitting) != 1:
        raise Entangled
    return fitting[0]


def confined(owner: Owned, moved: Tensor, person: int, people: int) -> bool:
    """Say whether only one person's rows moved."""
    others = owner.split(moved, people).flatten(1).any(1)
    others[person] = False
    return not bool(others.any())


def differs(x: Tensor, y: Tensor) -> Tensor:
    """Where two tensors differ, NaN being equal to itself."""
    return (x != y) & ~((x != x) & (y != y))
