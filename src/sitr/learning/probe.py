"""Who owns what inside a model: found by running it on few rows, with one person changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument, NotAllowed
from .ownership import Entangled, Owner, differs, find_owner
from .rules import COMPOSITES
from .watch import Observer, Sighting, Step, mixes_people, replaced, steps_of, tensors

MOST_ROWS = 3
LOUD = 1e4  # larger than any number in a probe


@dataclass(frozen=True)
class Inputs:
    """What a model is called with; the first tensor has one row for each person, and so has every other of its length.

    Attributes:
        args: Positional arguments.
        kwargs: Named ones.
        people: How many rows.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    people: int

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        """Find the number of people."""
        for x in tensors(args, kwargs):
            if x.dim():
                return cls(args, kwargs, len(x))
        raise InvalidArgument(
            "the model is called with no tensor of people's rows.", do="pass a batch as first argument."
        )

    def _mapped(self, new: Callable[[Tensor], Tensor]) -> Inputs:
        def rows(x: Tensor) -> Tensor:
            return new(x) if x.dim() and len(x) == self.people else x

        return Inputs.of(*replaced((self.args, self.kwargs), rows))

    def first(self, rows: int) -> Inputs:
        """Return the first rows."""
        return self._mapped(lambda x: x[:rows].detach().clone())

    def tame(self) -> Inputs:
        """Return rows of moderate numbers: beside a NaN or an infinity no change would be seen."""
        return self._mapped(lambda x: torch.nan_to_num(x).clamp(-LOUD, LOUD) if x.is_floating_point() else x)

    def doubled(self) -> Inputs:
        """Return a single row and another that differs from it."""
        return self._mapped(lambda x: torch.cat([x, _another(x[0], x[0], x)[None]]))

    def with_another(self, person: int, rows: int) -> Inputs:
        """Return the first rows with the next one's data in one person's place, and other numbers where it is equal."""

        def change(x: Tensor) -> Tensor:
            changed = x[:rows].detach().clone()
            changed[person] = _another(x[person], x[(person + 1) % rows], x)
            return changed

        return self._mapped(change)


def _another(own: Tensor, other: Tensor, everybody: Tensor) -> Tensor:
    """Return numbers that differ from one person's own: whole numbers only such as occur, which the model surely takes."""
    if own.is_floating_point() or own.is_complex():
        return torch.where(other == own, other + 1 + other.abs(), other)
    if not torch.equal(own, other):
        return other
    known, places = torch.unique(everybody, return_inverse=True)
    if len(known) == 1:
        return own
    row = places.view(everybody.shape)[(everybody == own).reshape(len(everybody), -1).all(1).nonzero()[0, 0]]
    return known[(row + 1) % len(known)]


@dataclass(frozen=True)
class Findings:
    """What a probe found.

    Attributes:
        steps: What happens at each call that sees parameters.
        outputs: Whose each tensor that comes out is.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Owner, ...]


def probe(model: nn.Module, names: dict[int, str], inputs: Inputs) -> Findings:
    """Run the model on two or three rows, and find at each junction whose row is whose.

    Random numbers are the same in all runs, and what the model had, it has again afterwards.

    Args:
        model: The model, in the mode (train or eval) it is in.
        names: Of the tracked parameters, by id.
        inputs: Of at least one person, whose row is doubled.

    Raises:
        NotAllowed: The model mixes people, or keeps something of them.
    """
    inputs = inputs.tame()
    if inputs.people == 1:
        inputs = inputs.doubled()
    rows = min(MOST_ROWS, inputs.people)
    runs = [inputs.first(rows - 1), inputs.first(rows), *(inputs.with_another(i, rows) for i in range(rows))]
    state = {name: x.detach().clone() for name, x in kept(model)}
    sightings: list[list[Sighting]] = []
    outputs: list[list[Tensor]] = []
    devices = cuda_devices(model, inputs)
    for run in runs:
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            observer = Observer(names, (run.args, run.kwargs), COMPOSITES)
            with observer:
                out = model(*run.args, **run.kwargs)
        sightings.append(observer.sightings)
        outputs.append([x.detach() for x in tensors(out)])
        _restore(model, state)
    steps = steps_of(sightings[0], sightings[1], sightings[2:])
    return Findings(steps, _output_owners(outputs))


def cuda_devices(model: nn.Module, inputs: Inputs) -> list[int]:
    """Return the GPUs whose random numbers a forward pass may draw."""
    places = [x.device for x in (*tensors(inputs.args, inputs.kwargs), *model.parameters()) if x.is_cuda]
    return sorted({torch.cuda.current_device() if place.index is None else place.index for place in places})


def _output_owners(outputs: list[list[Tensor]]) -> tuple[Owner, ...]:
    if len({len(out) for out in outputs}) != 1:
        raise mixes_people("what comes out")
    try:
        return tuple(find_owner(fewer, base, changed) for fewer, base, *changed in zip(*outputs, strict=True))
    except Entangled:
        raise mixes_people("what comes out") from None


def kept(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield all that a model keeps between calls: parameters, also frozen ones, and buffers."""
    yield from model.named_parameters()
    yield from model.named_buffers()


def _restore(model: nn.Module, state: dict[str, Tensor]) -> None:
    moved = []
    with torch.no_grad():
        for name, x in kept(model):
            before = state.get(name)
            if before is None or before.shape != x.shape or bool(differs(before, x).any()):
                moved.append(name)
                if before is not None and before.shape == x.shape:
                    x.copy_(before)
    if moved:
        raise keeps_something(moved[0])


def keeps_something(name: str, *, restored: bool = True) -> NotAllowed:
    """Return the error for a model that remembers people in other ways than by training."""
    return NotAllowed(
        f"the forward pass changes {name!r} of the model"
        + ("." if restored else ", which cannot be undone: the model now holds people's data."),
        why="it would keep something of people's data without noise.",
        do="use layers without running statistics or max_norm; sitr.learning.fix(model) replaces batch normalisation"
        + ("." if restored else ". Throw this model away, and build it anew."),
    )
