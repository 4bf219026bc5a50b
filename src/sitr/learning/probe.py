"""Who owns what inside a model: found by running it on few rows, with one person changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from ..errors import InvalidArgument, NotAllowed, SitrError
from . import kernels
from .forward import Tap
from .ownership import Entangled, Owned, Owner, Probed, Untold, differs
from .pieces import whole_products
from .rules import COMPOSITES
from .watch import Comparison, Observer, Quiet, Sighting, Step, mixes_people, name_of, replaced, said, tensors, untold

MOST_ROWS = 3
LOUD = 1e4  # no number in a probe is larger
BACKWARD_TOLERANCE = 1e-4  # of the largest: some backward kernels of a GPU add in any order
FULL_SIZE_TOLERANCE = 1e-3
# In 16 bits what differs in the last of 24 may differ in the last of 8, and grows from layer to layer. The short probes
# multiply with all bits on a GPU; at full size that might not fit into its memory.
SHORT_BACKWARD_TOLERANCE = 0.1
SHORT_FULL_SIZE_TOLERANCE = 2e-2
COMPARED = 2**24  # numbers that are compared at once
Graph = tuple[object, ...]
Junction = tuple[Step, Owned, int]  # a call, and the owner of one of its tensors: which of its arguments, then results


@dataclass(frozen=True)
class Inputs:
    """What a model is called with; the first tensor has one row for each person, and so has every other of its length.

    Attributes:
        args: Positional arguments.
        kwargs: Named ones.
        people: How many rows.
        made_up: Some numbers are nobody's.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    people: int
    made_up: bool = False

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        """Find the number of people."""
        for x in tensors(args, kwargs):
            if x.dim():
                return cls(args, kwargs, len(x))
        raise InvalidArgument(
            "the model is called with no tensor of people's rows.", do="pass a batch as first argument."
        )

    def _mapped(self, new: Callable[[Tensor], Tensor], *, made_up: bool = True) -> Inputs:
        def rows(x: Tensor) -> Tensor:
            return new(x) if x.dim() and len(x) == self.people else x

        return replace(Inputs.of(*replaced((self.args, self.kwargs), rows)), made_up=made_up)

    def first(self, rows: int) -> Inputs:
        """Return the first rows."""
        return self._mapped(lambda x: x[:rows].detach().clone(), made_up=self.made_up)

    def tame(self) -> Inputs:
        """Return rows of moderate numbers: beside a NaN or an infinity no change would be seen."""

        def change(x: Tensor) -> Tensor:
            return torch.nan_to_num(x).clamp(-LOUD, LOUD) if x.is_floating_point() else x

        return self._mapped(change, made_up=self.made_up)

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
        settled: Each person's change was seen in what came out for that person, and that change or the gradient of what
            came out at each call that sees parameters: there was something to see.
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
        NotAllowed: The model mixes people, keeps something of them, or returns nothing that belongs to them.
    """
    inputs = inputs.tame()
    if inputs.people == 1:
        inputs = inputs.doubled()
    rows = min(MOST_ROWS, inputs.people)
    fewer, base = (_seen(model, names, inputs.first(count)) for count in (rows - 1, rows))
    inside, outside = Comparison(fewer.sightings, base.sightings), _Outputs(fewer, base)
    del fewer
    changed = []
    for person in range(rows):
        run = _seen(model, names, inputs.with_another(person, rows))
        inside.compare(run.sightings)
        outside.compare(run.outputs)
        run.let_go()
        changed.append(run)
    steps, owners, settled = inside.steps(), outside.owners(), outside.settled()
    if not any(owners):
        raise NotAllowed(
            "nothing that comes out of the model belongs to people.",
            why="whether a person's loss depends on others is seen in what it is computed from.",
            do="return tensors with one row for each person, and compute losses from them.",
        )
    quiet = inside.quiet(steps)
    base.let_go()
    del inside, outside  # they hold the same copies
    tolerance = SHORT_BACKWARD_TOLERANCE if _is_short(model) else BACKWARD_TOLERANCE
    awake = _check_backward(steps, owners, base, changed, quiet, tolerance)
    return Findings(steps, owners, settled and awake)


def is_checked_at_full_size(model: nn.Module, found: Findings, inputs: Inputs) -> bool:
    """Change the first row of a micro-batch to loud numbers: what comes out for the others has to stay.

    What depends on the number of rows, or sleeps at the numbers that occur, is not seen by `probe`.

    Returns:
        Whether it could be checked: as many tensors came out as in the probe.

    Raises:
        NotAllowed: The model mixes people.
    """
    inputs = inputs.tame()
    with torch.no_grad():  # it would hold all that a backward pass needs
        base, changed = (_seen(model, {}, run).outputs for run in (inputs.first(inputs.people), inputs.loud()))
    if len(base) != len(changed):
        raise mixes_people("what comes out")
    if len(base) != len(found.outputs):
        return False
    tf32 = kernels.takes_tf32("matmul") or kernels.takes_tf32("conv")
    short = _is_short(model) or (tf32 and any(x.is_cuda for x in base))
    tolerance = SHORT_FULL_SIZE_TOLERANCE if short else FULL_SIZE_TOLERANCE
    for x, y, owner in zip(base, changed, found.outputs, strict=True):
        fits = x.shape == y.shape and (owner is None or owner.fits(x, inputs.people))
        if not fits or not _stays(x, y, owner, 0, inputs.people, tolerance):
            raise mixes_people("what comes out of a full micro-batch")
    return True


@dataclass
class Run:
    """One run of the model on few rows.

    Attributes:
        sightings: The calls that saw parameters.
        outputs: What came out.
        public: Which of that nobody's data, and no gradient, can ever reach.
    """

    sightings: list[Sighting]
    outputs: list[Tensor]
    public: list[bool]

    def edge(self, junction: Junction) -> GradientEdge:
        """Return where gradients reach a tensor that needs one."""
        step, _, k = junction
        found = self.sightings[step.place].edges[k]
        assert found is not None
        return found

    def let_go(self) -> None:
        """Hold no copies of what was seen inside; gradients can still be asked for."""
        for sight in self.sightings:
            sight.let_go()


def _seen(model: nn.Module, names: dict[int, str], inputs: Inputs) -> Run:
    """Run the model, and leave it and torch's random numbers as they were."""
    state = {name: x.detach().clone() for name, x in kept(model)}
    devices = cuda_devices(inputs, model.parameters())
    with torch.random.fork_rng(devices=devices), torch.set_grad_enabled(bool(names)):
        numbers = random_state(devices)
        observer = Observer(names, (inputs.args, inputs.kwargs), COMPOSITES)
        with observer:
            out = _called(model, inputs)
        drawn = changed_state(numbers, random_state(devices))
    _restore(model, state)
    if drawn:
        raise draws_random_numbers()
    outputs = said(out)
    return Run(observer.sightings, outputs, [observer.is_public(x) for x in outputs])


def _called(model: nn.Module, inputs: Inputs) -> Any:
    """Call the model; with numbers that are nobody's it may fail where it does not with the user's own."""
    try:
        return model(*inputs.args, **inputs.kwargs)
    except (SitrError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if not inputs.made_up:
            raise
        raise NotAllowed(
            f"the model failed on numbers that were made up to try it: {type(error).__name__}.",
            why="whose row is whose is found by giving each person other numbers: any in a floating-point tensor, "
            "those that occur in an integer tensor.",
            do="pass whole numbers, such as the index of a category, as an integer tensor.",
        ) from error


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


class _Outputs:
    """What comes out of the runs of a probe.

    Args:
        fewer: Of the run with one person less.
        base: Of the run that the others are compared with.
    """

    def __init__(self, fewer: Run, base: Run) -> None:
        self._spoilt = any(bool(x.isnan().any()) for x in base.outputs)
        self._count, self._people, self._public = len(base.outputs), 0, base.public
        self._check(fewer.outputs)
        self._probed = [Probed(x, y.detach()) for x, y in zip(fewer.outputs, base.outputs, strict=True)]

    def compare(self, changed: list[Tensor]) -> None:
        """See the run in which the input of one person, the next one, is another."""
        self._check(changed)
        self._people += 1
        for probed, x in zip(self._probed, changed, strict=True):
            probed.compare(x.detach())

    def owners(self) -> tuple[Owner, ...]:
        """Return whose each tensor is."""
        try:
            return tuple(probed.owner() for probed in self._probed)
        except Untold:
            raise untold("what comes out") from None
        except Entangled:
            raise mixes_people("what comes out") from None

    def settled(self) -> bool:
        """Say whether each person's change moved what came out for that person, and nothing is assumed or hidden.

        Of what nobody's data can move it is assumed for ever whose it is, and means nothing.
        """
        told = zip(self._probed, self.owners(), self._public, strict=True)
        owned = [(probed, owner) for probed, owner, public in told if owner and not (owner.assumed and public)]
        everybody = range(self._people)
        hidden = self._spoilt or any(owner.assumed for _, owner in owned)
        return not hidden and all(any(each.shows(owner, i) for each, owner in owned) for i in everybody)

    def _check(self, run: list[Tensor]) -> None:
        if len(run) != self._count:
            raise mixes_people("what comes out")


def _check_backward(
    steps: tuple[Step, ...], owners: tuple[Owner, ...], base: Run, changed: list[Run], quiet: Quiet, tolerance: float
) -> bool:
    """Give each person in turn other data and another gradient: at each junction only that person's may move.

    Where an arrangement was assumed, all of that person's have to: then no other arrangement fits. Outputs of which it
    was assumed give no gradients meanwhile, since they would arrive as they were sent; they are tried afterwards.

    Returns:
        Whether the gradients of all who were quiet somewhere arrived there: behind what returns 0, and before what
        returns 0 as well, people may meet, and nothing shows it before both are trained.
    """
    results = [(step, owner, k) for step, owner, k in _places(steps) if k >= len(step.owners)]
    if not results:
        return True
    assumed = {place: owner for place, owner in enumerate(owners) if owner is not None and owner.assumed}
    known = {place: owner for place, owner in enumerate(owners) if place not in assumed}
    edges = [*results, *_quiet_arguments(steps, [base, *changed], quiet)]
    asleep = {place: set(people) for place, people in quiet.items()}
    for person, (step, owner, k), x, y in _changes(base, changed, known, edges):
        where, is_result = f"the gradient of {name_of(step.func)} with {step.names()}", k >= len(step.owners)
        if not _is_own(x, y, owner, person, len(changed), tolerance):
            raise mixes_people(where)
        silent = asleep.get((step.place, k), set())
        if (owner.assumed and is_result) or person in silent:
            if _arrives(x, y, owner, person, len(changed), tolerance):
                silent.discard(person)
            elif owner.assumed and is_result:
                raise untold(where)
    for place, owner in assumed.items():
        if base.outputs[place].requires_grad and not _is_told(place, owner, results, base, changed, tolerance):
            raise untold("what comes out")
    return not any(asleep.values())


def _places(steps: tuple[Step, ...]) -> Iterator[Junction]:
    """Yield all that belongs to people in calls that see parameters."""
    for step in steps:
        for k, owner in enumerate(step.all):
            if owner is not None:
                yield step, owner, k


def _quiet_arguments(steps: tuple[Step, ...], runs: list[Run], quiet: Quiet) -> Iterator[Junction]:
    """Yield arguments that somebody's data did not move: the others are known, and their gradients take memory."""
    for step, owner, k in _places(steps):
        reached = all(run.sightings[step.place].edges[k] is not None for run in runs)
        if k < len(step.owners) and (step.place, k) in quiet and reached:
            yield step, owner, k


def _is_told(place: int, owner: Owned, edges: list[Junction], base: Run, changed: list[Run], tolerance: float) -> bool:
    """Say whether gradients of an output reach their own person inside, and would not in the other arrangement."""

    def fits(owner: Owned) -> bool:
        changes = _changes(base, changed, {place: owner}, edges)
        return all(_is_own(x, y, mine, person, len(changed), tolerance) for person, (_, mine, _), x, y in changes)

    return fits(owner) and not fits(replace(owner, minor=True))


def _changes(
    base: Run, changed: list[Run], ends: dict[int, Owner], edges: list[Junction]
) -> Iterator[tuple[int, Junction, Tensor | None, Tensor | None]]:
    """Yield for each person and each junction the gradient, and what it is after that person has changed."""
    first = _gradients(base, ends, edges, None, len(changed))
    for person, run in enumerate(changed):
        for edge, x, y in zip(edges, first, _gradients(run, ends, edges, person, len(changed)), strict=True):
            yield person, edge, x, y


def _gradients(
    run: Run, ends: dict[int, Owner], edges: list[Junction], person: int | None, people: int
) -> Sequence[Tensor | None]:
    """Return the gradients that arrive at junctions, from the same gradients of what came out for all but `person`.

    Args:
        run: Of the model.
        ends: Of which outputs, by place, and whose these are.
        edges: The junctions.
        person: Who is given another gradient.
        people: How many there are.
    """
    starts = {place: torch.arange(x.numel(), device=x.device).cos().view(x.shape).to(x.dtype)
              for place, x in enumerate(run.outputs) if place in ends and x.requires_grad}  # fmt: skip
    if not starts:
        return [None] * len(edges)
    for place, gradient in starts.items():
        owner = ends[place]
        if owner is not None and person is not None:
            rows = owner.split(gradient, people).clone()
            rows[person] *= -8
            starts[place] = owner.join(rows)
    wanted = [run.edge(junction) for junction in edges]
    outputs = [run.outputs[place] for place in starts]
    return torch.autograd.grad(outputs, wanted, list(starts.values()), retain_graph=True, allow_unused=True)


def _is_own(x: Tensor | None, y: Tensor | None, owner: Owned, person: int, people: int, tolerance: float) -> bool:
    """Say whether a gradient moved in one person's rows only; None where there is none."""
    if x is None or y is None:
        return x is y
    return _stays(x, y, owner, person, people, tolerance)


def _arrives(x: Tensor | None, y: Tensor | None, owner: Owned, person: int, people: int, tolerance: float) -> bool:
    """Say whether a gradient moved in a person's rows: in each of them, where it is assumed which they are."""
    if x is None or y is None or not x.numel():
        return False
    size = x.abs().nan_to_num(0, 0, 0).amax()
    moved = owner.split((x - y).abs() > tolerance * size, people)[person].movedim(owner.dim, 0)
    rows = moved.reshape(len(moved), -1).any(1)
    return bool(rows.all() if owner.assumed else rows.any())


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


def whose(gradient: Tensor, owner: Owned, people: int) -> Tensor:
    """Say for each person whether there is something in that person's part of a gradient."""
    if not owner.fits(gradient, people):
        raise mixes_people("what the model computes")
    rows = owner.split(gradient, people).flatten(1)
    few = max(1, COMPARED // max(1, rows.shape[1]))
    # 0 times somebody's infinite derivative is NaN, which says nothing about a dependence.
    return torch.cat([some.nan_to_num(nan=0.0).any(1) for some in rows.split(few)]).cpu()


def graph_of(losses: Tensor, outputs: list[GradientEdge]) -> Graph:
    """Return what operations losses are made of, down to the outputs of the model or the junctions inside.

    Of shapes it says only which dimensions may be people's, so that it is the same for any number of people.
    """
    ends, told = {edge.node for edge in outputs}, []
    seen, ahead = set(), [losses.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)  # held, so that no other takes its place in memory
        told.append((node.name(), *(_kinds(made.shape, len(losses)) for made in node._input_metadata)))
        if node not in ends and getattr(node, "_forward_cls", None) is not Tap:
            ahead += [before for before, _ in node.next_functions]
    return tuple(told)


def _kinds(shape: torch.Size, people: int) -> tuple[str, ...]:
    return tuple("one" if size == 1 else "people" if size % people == 0 else "other" for size in shape)


def cuda_devices(inputs: Inputs, parameters: Iterable[Tensor]) -> list[int]:
    """Return the GPUs whose random numbers a forward pass may draw."""
    places = [x.device for x in (*tensors(inputs.args, inputs.kwargs), *parameters) if x.is_cuda]
    return sorted({place.index for place in places})


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
