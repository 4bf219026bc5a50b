"""Who owns what inside a model: found by running it on few rows, with one person changed at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument, NotAllowed
from .ownership import Entangled, Owner, find_owner
from .rules import COMPOSITES
from .watch import Observer, Sighting, Step, mixes_people, replaced, steps_of, tensors

MOST_ROWS = 3


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

    def with_another(self, person: int) -> Inputs:
        """Return the rows with the next person's data in one person's place, and other numbers where they are equal."""

        def change(x: Tensor) -> Tensor:
            x = x.clone()
            after = x[(person + 1) % len(x)].clone()
            if x.is_floating_point():
                after = torch.where(after == x[person], after + 1, after)
            elif torch.equal(after, x[person]):
                after = after.flatten().roll(1).view(after.shape)  # numbers that the model surely takes
            x[person] = after
            return x

        return self._mapped(change)


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
        inputs: Of at least two people.

    Raises:
        NotAllowed: The model mixes people, or keeps something of them.
    """
    rows = min(MOST_ROWS, inputs.people)
    base = inputs.first(rows)
    runs = [inputs.first(rows - 1), base, *(base.with_another(person) for person in range(rows))]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    sightings: list[list[Sighting]] = []
    outputs: list[list[Tensor]] = []
    devices = sorted({x.device.index for x in tensors(inputs.args, inputs.kwargs) if x.is_cuda})
    for run in runs:
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            observer = Observer(names, (run.args, run.kwargs), COMPOSITES)
            with observer:
                out = model(*run.args, **run.kwargs)
        sightings.append(observer.sightings)
        outputs.append([x.detach() for x in tensors(out)])
        _restore(model, buffers)
    steps = steps_of(sightings[0], sightings[1], sightings[2:])
    return Findings(steps, _output_owners(outputs))


def _output_owners(outputs: list[list[Tensor]]) -> tuple[Owner, ...]:
    if len({len(out) for out in outputs}) != 1:
        raise mixes_people("what comes out")
    try:
        return tuple(find_owner(fewer, base, changed) for fewer, base, *changed in zip(*outputs, strict=True))
    except Entangled:
        raise mixes_people("what comes out") from None


def _restore(model: nn.Module, buffers: dict[str, Tensor]) -> None:
    moved = []
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            before = buffers.get(name)
            if before is None or before.shape != buffer.shape or not torch.equal(before, buffer):
                moved.append(name)
                if before is not None and before.shape == buffer.shape:
                    buffer.copy_(before)
    if moved:
        raise keeps_something(moved[0])


def keeps_something(buffer: str) -> NotAllowed:
    """Return the error for a model that remembers people outside its parameters."""
    return NotAllowed(
        f"the forward pass changes the buffer {buffer!r}.",
        why="it would keep something of people's data without noise.",
        do="use layers without running statistics; sitr.learning.fix(model) replaces batch normalisation.",
    )
