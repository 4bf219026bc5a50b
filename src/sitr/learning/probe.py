"""Who owns what inside a model: found by running it on few rows, with one person changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgument, NotAllowed
from .ownership import Entangled, Owned, Owner, differs, find_owner
from .pieces import whole_products
from .rules import COMPOSITES
from .watch import Observer, Sighting, Step, mixes_people, name_of, replaced, steps_of, tensors

MOST_ROWS = 3
LOUD = 1e4  # no number in a probe is larger
BACKWARD_TOLERANCE = 1e-4  # of the largest: some backward kernels of a GPU add in any order
FULL_SIZE_TOLERANCE = 1e-3
# In 16 bits what differs in the last of 24 may differ in the last of 8, and grows from layer to layer. The short probes
# multiply with all bits on a GPU; at full size that might not fit into its memory.
SHORT_BACKWARD_TOLERANCE = 0.1
SHORT_FULL_SIZE_TOLERANCE = 2e-2
COMPARED = 2**24  # numbers that are compared at once


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

    def loud(self) -> Inputs:
        """Return all rows, with large numbers of both signs in the first person's place."""

        def change(x: Tensor) -> Tensor:
            changed = x.detach().clone()
            if x.is_floating_point():
                signs = torch.arange(x[0].numel(), device=x.device).add(1).cos().sign().view(x[0].shape)
                changed[0] = signs.to(x.dtype) * LOUD
            else:
                changed[0] = _another(x[0], x[1 % len(x)], x)
            return changed

        return self._mapped(change)

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
    """Return numbers that differ from one person's own: whole ones such as occur, which the model surely takes."""
    if own.is_floating_point() or own.is_complex():
        return torch.where(other == own, other + 1 + other.abs(), other)
    if not torch.equal(own, other):
        return other
    known, places = torch.unique(everybody, return_inverse=True)
    if len(known) == 1:
        return own
    row = places.view(everybody.shape)[(everybody == own).reshape(len(everybody), -1).all(1).nonzero()[0, 0]]
    found: Tensor = known[(row + 1) % len(known)]
    return found


@dataclass(frozen=True)
class Findings:
    """What a probe found.

    Attributes:
        steps: What happens at each call that sees parameters.
        outputs: Whose each tensor that comes out is.
        settled: Each person's change was seen in what came out for that person: there was something to see.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Owner, ...]
    settled: bool


@whole_products()
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
    seen = [_seen(model, names, run) for run in runs]
    sightings, outputs = [run.sightings for run in seen], [[x.detach() for x in run.outputs] for run in seen]
    steps = steps_of(sightings[0], sightings[1], sightings[2:])
    owners = _output_owners(outputs)
    tolerance = SHORT_BACKWARD_TOLERANCE if _is_short(model) else BACKWARD_TOLERANCE
    _check_backward(steps, owners, seen[1], seen[2:], tolerance)
    return Findings(steps, owners, _settled(owners, outputs[1], outputs[2:]))


def check_at_full_size(model: nn.Module, found: Findings, inputs: Inputs) -> None:
    """Change the first row of a micro-batch to loud numbers: what comes out for the others has to stay.

    What depends on the number of rows, or sleeps at the numbers that occur, is not seen by `probe`.

    Raises:
        NotAllowed: The model mixes people.
    """
    inputs = inputs.tame()
    with torch.no_grad():  # it would hold all that a backward pass needs
        base, changed = (_seen(model, {}, run).outputs for run in (inputs.first(inputs.people), inputs.loud()))
    if not len(base) == len(changed) == len(found.outputs):
        raise mixes_people("what comes out")
    tf32 = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
    short = _is_short(model) or (tf32 and any(x.is_cuda for x in base))
    tolerance = SHORT_FULL_SIZE_TOLERANCE if short else FULL_SIZE_TOLERANCE
    for x, y, owner in zip(base, changed, found.outputs, strict=True):
        fits = x.shape == y.shape and (owner is None or owner.fits(x, inputs.people))
        if not fits or not _stays(x, y, owner, 0, inputs.people, tolerance):
            raise mixes_people("what comes out of a full micro-batch")


@dataclass
class Run:
    """One run of the model on few rows.

    Attributes:
        sightings: The calls that saw parameters.
        outputs: What came out.
    """

    sightings: list[Sighting]
    outputs: list[Tensor]


def _seen(model: nn.Module, names: dict[int, str], inputs: Inputs) -> Run:
    """Run the model, and leave it and torch's random numbers as they were."""
    state = {name: x.detach().clone() for name, x in kept(model)}
    devices = cuda_devices(inputs, model.parameters())
    with torch.random.fork_rng(devices=devices), torch.set_grad_enabled(bool(names)):
        numbers = random_state(devices)
        observer = Observer(names, (inputs.args, inputs.kwargs), COMPOSITES)
        with observer:
            out = model(*inputs.args, **inputs.kwargs)
        drawn = changed_state(numbers, random_state(devices))
    _restore(model, state)
    if drawn:
        raise draws_random_numbers()
    return Run(observer.sightings, tensors(out))


def random_state(devices: list[int]) -> list[Tensor]:
    """Return where torch's random generators stand."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in devices)]


def changed_state(before: list[Tensor], after: list[Tensor]) -> bool:
    """Say whether random numbers were drawn in between."""
    return not all(torch.equal(x, y) for x, y in zip(before, after, strict=True))


def draws_random_numbers() -> NotAllowed:
    """Return the error for dropout and its like."""
    return NotAllowed(
        "the forward pass draws random numbers, as active dropout does.",
        why="they are drawn by position from a generator that is not private, so that one person's presence moves "
        "everybody's, by more than the clipping bound.",
        do="set the chance of dropout to 0 (the noise regularises too), or put those layers into eval mode.",
    )


def _settled(owners: tuple[Owner, ...], base: list[Tensor], changed: list[list[Tensor]]) -> bool:
    """Say whether each person's change moved what came out for that person, and nothing was hidden by NaN."""
    if any(bool(x.isnan().any()) for x in base):
        return False
    people = len(changed)
    return all(
        any(
            bool(owner.split(differs(x, y), people)[person].any())
            for x, y, owner in zip(base, run, owners, strict=True)
            if owner is not None
        )
        for person, run in enumerate(changed)
    )


def _check_backward(
    steps: tuple[Step, ...], owners: tuple[Owner, ...], base: Run, changed: list[Run], tolerance: float
) -> None:
    """Give each person in turn other data and another gradient: at each junction only that person's may move."""
    people = len(changed)
    edges = [(step, owner, k) for step in steps for k, owner in enumerate(step.results or ()) if owner is not None]
    if not edges:
        return
    first = _gradients(base, owners, edges, None, people)
    for person, run in enumerate(changed):
        for x, y, (step, owner, _) in zip(first, _gradients(run, owners, edges, person, people), edges, strict=True):
            if (x is None) != (y is None) or (
                x is not None and y is not None and not _stays(x, y, owner, person, people, tolerance)
            ):
                raise mixes_people(f"the gradient of {name_of(step.func)} with {step.names()}")


def _gradients(
    run: Run, owners: tuple[Owner, ...], edges: list[tuple[Step, Owned, int]], person: int | None, people: int
) -> Sequence[Tensor | None]:
    """Return the gradients that arrive at junctions, from the same gradients of what came out for all but `person`."""
    ends = [(x, owner) for x, owner in zip(run.outputs, owners, strict=True) if x.requires_grad]
    if not ends:
        return [None] * len(edges)
    starts = []
    for x, owner in ends:
        gradient = torch.arange(x.numel(), device=x.device).cos().view(x.shape).to(x.dtype)
        if owner is not None and person is not None:
            rows = owner.split(gradient, people).clone()
            rows[person] *= -8
            gradient = owner.join(rows)
        starts.append(gradient)
    wanted = [run.sightings[step.place].edges[k] for step, _, k in edges]
    return torch.autograd.grad([x for x, _ in ends], wanted, starts, allow_unused=True)


def _is_short(model: nn.Module) -> bool:
    """Say whether a model computes in 16 bits."""
    short = any(p.dtype.itemsize < 4 for p in model.parameters())
    return short or any(torch.is_autocast_enabled(kind) for kind in {p.device.type for p in model.parameters()})


def _stays(x: Tensor, y: Tensor, owner: Owner, person: int, people: int, tolerance: float) -> bool:
    """Say whether all but one person's rows are the same, up to a share of the largest of them."""
    if owner is None:
        return _alike(x.flatten(), y.flatten(), tolerance)
    others = torch.arange(people, device=x.device) != person
    return _alike(owner.split(x, people)[others], owner.split(y, people)[others], tolerance)


def _alike(x: Tensor, y: Tensor, tolerance: float) -> bool:
    """Say whether numbers are the same, up to a share of the largest: a few at a time, as they may fill a memory."""
    parts = list(zip(x.flatten().split(COMPARED), y.flatten().split(COMPARED), strict=True))
    if not x.is_floating_point():
        return not any(bool(differs(a, b).any()) for a, b in parts)
    size = max((float(a.detach().abs().nan_to_num(0, 0).amax()) for a, _ in parts if a.numel()), default=0.0)
    return not any(bool((differs(a, b) & ~((a - b).abs() <= tolerance * size)).any()) for a, b in parts)


def cuda_devices(inputs: Inputs, parameters: Iterable[Tensor]) -> list[int]:
    """Return the GPUs whose random numbers a forward pass may draw."""
    places = [x.device for x in (*tensors(inputs.args, inputs.kwargs), *parameters) if x.is_cuda]
    return sorted({place.index for place in places})


def _output_owners(outputs: list[list[Tensor]]) -> tuple[Owner, ...]:
    if len({len(out) for out in outputs}) != 1:
        raise mixes_people("what comes out")
    try:
        return tuple(find_owner(fewer, base, changed) for fewer, base, *changed in zip(*outputs, strict=True))
    except Entangled:
        raise mixes_people("what comes out") from None


def kept(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield all that a model keeps between calls: parameters, also frozen ones, and buffers."""
    for prefix, module in model.named_modules():
        for name, x in (*module._parameters.items(), *module._buffers.items()):
            if x is not None:
                yield f"{prefix}.{name}" if prefix else name, x


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
