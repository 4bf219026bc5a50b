"""Whose rows are whose: which part of a tensor inside a model belongs to which person of the micro-batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor


@dataclass(frozen=True)
class Owned:
    """A dimension whose entries belong to people, each of whom has equally many.

    Attributes:
        dim: The dimension.
        minor: People change fastest along it (row t·people + i is person i's), as in a flattened time-major tensor;
            else each person's rows lie together.
        several: People have more than one entry each.
        assumed: That each person's rows lie together was not seen, as nobody's data moved any; gradients must show it.
    """

    dim: int
    minor: bool = False
    several: bool = False
    assumed: bool = field(default=False, compare=False, repr=False)

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


class Untold(Entangled):
    """A tensor that nobody's data move, of which several parts belong to each person: which ones, nothing shows."""


class Probed:
    """One tensor in the runs of a probe: its shape with one person less, and where each person's change moved it.

    The dimension of people is the one that grows with their number, whatever its size: shapes of a single run are never
    believed, since a sequence may be as long as the batch. Then each person's change must move that person's rows only.
    Of a run that is compared nothing is held but where it moved along that dimension.

    Args:
        fewer: The tensor in a run with one person less.
        base: In the run that the others are compared with.

    Example:
        >>> import torch
        >>> x = torch.zeros(2, 3)
        >>> probed = Probed(x[:1], x)
        >>> probed.compare(x + torch.tensor([[1.0], [0.0]]))
        >>> probed.compare(x + torch.tensor([[0.0], [1.0]]))
        >>> probed.owner()
        Owned(dim=0, minor=False, several=False)
    """

    def __init__(self, fewer: Tensor, base: Tensor) -> None:
        self._base, self._fewer = base, fewer.shape
        self._moved: list[Tensor] = []
        self._alike = fewer.dim() == base.dim()
        sizes = zip(fewer.shape, base.shape, strict=False)
        self._growing = [dim for dim, (small, large) in enumerate(sizes) if small != large]

    def compare(self, changed: Tensor) -> None:
        """See the run in which the input of one person, the next one, is another."""
        self._alike = self._alike and changed.shape == self._base.shape
        if self._alike:
            still = tuple(dim for dim in range(changed.dim()) if dim not in self._growing)
            moved = differs(self._base, changed)
            self._moved.append(moved.any(dim=still) if still else moved)

    def owner(self) -> Owner:
        """Return whose rows are whose.

        Raises:
            Entangled: No split of the tensor fits what was seen; `Untold`, if nothing was.
        """
        if not self._alike or len(self._growing) > 1:
            raise Entangled
        somewhere = any(bool(moved.any()) for moved in self._moved)
        if not self._growing:
            if somewhere:
                raise Entangled
            return SHARED
        (dim,), people = self._growing, len(self._moved)
        size = self._base.shape[dim]
        if self._fewer[dim] * people != size * (people - 1):
            raise Entangled
        if size > people and not somewhere:
            return self._assumed(dim)
        owners = [Owned(dim, several=size > people)]
        if size > people:
            owners.append(Owned(dim, minor=True, several=True))
        fitting = [owner for owner in owners if self._is_confined(owner)]
        if len(fitting) != 1:
            raise Entangled
        return fitting[0]

    def shows(self, owner: Owned, person: int) -> bool:
        """Say whether a person's change moved something of that person's own."""
        return bool(self._by_person(owner, person)[person])

    def quiet(self, owner: Owned) -> set[int]:
        """Return the people whose change moved nothing of their own; nobody, if there is nothing to move."""
        everybody = range(len(self._moved)) if self._base.numel() else ()
        return {person for person in everybody if not self.shows(owner, person)}

    def _assumed(self, dim: int) -> Owned:
        """Return the arrangement of `Views`, if what all people have in it is the same."""
        owner = Owned(dim, several=True, assumed=True)
        rows = owner.split(self._base, len(self._moved))
        if bool(differs(rows, rows[:1]).any()):
            raise Untold
        return owner

    def _is_confined(self, owner: Owned) -> bool:
        """Say whether each person's change moved only that person's rows."""
        for person in range(len(self._moved)):
            rows = self._by_person(owner, person)
            rows[person] = False
            if bool(rows.any()):
                return False
        return True

    def _by_person(self, owner: Owned, person: int) -> Tensor:
        """Whose rows one person's change moved."""
        return replace(owner, dim=0).split(self._moved[person], len(self._moved)).flatten(1).any(1)


def differs(x: Tensor, y: Tensor) -> Tensor:
    """Where two tensors differ, NaN being equal to itself."""
    return (x != y) & ~((x != x) & (y != y))
