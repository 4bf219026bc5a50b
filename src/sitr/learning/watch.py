"""Every torch function of a model's forward pass that sees a trainable parameter: observed in a probe, then ruled.

A tensor is *like a parameter* if it is one, or was computed from parameters and public numbers alone (a transposed
weight, a merged LoRA matrix, embeddings of positions). Where such a tensor meets people's data is a *junction*: there,
and only there, gradients are taken apart by person (decision 0031).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.overrides import TorchFunctionMode, resolve_name

from ..errors import NotAllowed
from .ownership import SHARED, Entangled, Owner, find_owner

Function = Callable[..., Any]
NESTED = (tuple, list, dict)


def tensors(*trees: object) -> list[Tensor]:
    """Return the tensors in nested tuples, lists and dicts."""
    found: list[Tensor] = []
    for tree in trees:
        if isinstance(tree, Tensor):
            found.append(tree)
        elif isinstance(tree, NESTED):
            found += tensors(*(tree.values() if isinstance(tree, dict) else tree))
    return found


def replaced(tree: Any, new: Callable[[Tensor], Any]) -> Any:
    """Return a nested structure with `new` of each of its tensors."""
    if isinstance(tree, Tensor):
        return new(tree)
    if isinstance(tree, dict):
        return {key: replaced(value, new) for key, value in tree.items()} if tree else tree
    if not isinstance(tree, NESTED):
        return tree
    items = [new(x) if isinstance(x, Tensor) else replaced(x, new) if isinstance(x, NESTED) else x for x in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def name_of(func: Function) -> str:
    """Return how people call a torch function."""
    return resolve_name(func) or str(getattr(func, "__name__", func))


@dataclass(frozen=True)
class Token:
    """A tensor that a recorded call made: which call, and which of its tensors."""

    call: int
    place: int


@dataclass
class Sighting:
    """One call as an observer saw it.

    Attributes:
        func: What was called.
        origins: For each tensor among the arguments, the name of the parameter it is, the call that made it, or None.
        values: Copies of the arguments that are no parameters.
        results: Copies of the tensors that came out.
        edges: Where gradients reach those tensors.
    """

    func: Function
    origins: tuple[str | Token | None, ...]
    values: tuple[Tensor | None, ...]
    results: tuple[Tensor, ...]
    edges: tuple[GradientEdge, ...] = ()


@dataclass(frozen=True)
class Step:
    """What the watched forward pass has to do at one call.

    Attributes:
        func: The torch function.
        origins: As in `Sighting`, with only those tensors that are like parameters.
        owners: Whose each argument is, if it is not like a parameter.
        results: Whose each result is; None for a call whose results are like parameters.
        place: Which sighting it is.
    """

    place: int
    func: Function
    origins: tuple[str | Token | None, ...]
    owners: tuple[Owner, ...]
    results: tuple[Owner, ...] | None

    @property
    def junction(self) -> bool:
        """Whether people's data meet parameters here."""
        return self.results is not None

    def names(self) -> str:
        """Name the parameters in the call."""
        found = dict.fromkeys(o if isinstance(o, str) else "a tensor made of parameters" for o in self.origins if o)
        return ", ".join(repr(name) if not name.startswith("a tensor") else name for name in found)


class Observer(TorchFunctionMode):
    """Records the calls of a probe.

    Args:
        parameters: Names of the tracked parameters by their id.
        inputs: What the model is called with: people's data.
        composites: Functions that are replaced by others made of smaller ones.
    """

    def __init__(self, parameters: dict[int, str], inputs: object, composites: dict[Function, Function]) -> None:
        super().__init__()
        self.parameters, self.composites = parameters, composites
        self.sightings: list[Sighting] = []
        self._private = {id(x): x for x in tensors(inputs)}  # holds them, so that no id is used twice
        self._made: dict[int, tuple[Tensor, Token]] = {}

    def __torch_function__(self, func: Function, types: object, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.composites:
            with self:
                return self.composites[func](*args, **kwargs)
        given = tensors(args, kwargs)
        origins = tuple(self._origin(x) for x in given)
        seen = any(origins) and torch.is_grad_enabled()
        values = (
            tuple(None if isinstance(o, str) else x.detach().clone() for x, o in zip(given, origins, strict=True))
            if seen
            else ()
        )
        out = func(*args, **kwargs)
        results = [x for x in tensors(out) if x.requires_grad] if seen else []
        if results:
            kept = tuple(x.detach().clone() for x in results)
            edges = tuple(get_gradient_edge(x) for x in results)
            self.sightings.append(Sighting(func, origins, values, kept, edges))
        if any(id(x) in self._private for x in given):
            for x in tensors(out):
                self._private[id(x)] = x
                self._made.pop(id(x), None)
        else:
            for place, x in enumerate(results):
                self._made[id(x)] = (x, Token(len(self.sightings) - 1, place))
        return out

    def _origin(self, x: Tensor) -> str | Token | None:
        if id(x) in self.parameters:
            return self.parameters[id(x)]
        return self._made[id(x)][1] if id(x) in self._made else None


def steps_of(fewer: list[Sighting], base: list[Sighting], changed: Sequence[list[Sighting]]) -> tuple[Step, ...]:
    """Put the runs of a probe together: what happens at each call, and whose each tensor is.

    Args:
        fewer: The run with one person less.
        base: The run that the others are compared with.
        changed: For each person the run where that person's input is another.

    Raises:
        NotAllowed: The model mixes people, or calls other functions for other people.
    """
    runs = [fewer, base, *changed]
    if any([(s.func, s.origins) for s in run] != [(s.func, s.origins) for s in base] for run in runs):
        raise NotAllowed(
            "the model calls other functions for other people or other numbers of people.",
            why="whose gradient is whose is found by running it on few rows, and holds for what was run.",
            do="make what the model calls independent of the data and of the batch size.",
        )
    made: set[Token] = set()
    steps = []
    for place, sight in enumerate(base):
        origins = tuple(o if isinstance(o, str) or o in made else None for o in sight.origins)
        if not any(origins):
            continue
        seen = [run[place] for run in runs]
        owners = tuple(
            SHARED if origin else _owner([s.values[k] for s in seen], sight, "the input")
            for k, origin in enumerate(origins)
        )
        results = tuple(_owner([s.results[k] for s in seen], sight, "the result") for k in range(len(sight.results)))
        derived = not any(owners) and not any(results)
        if derived:
            made.update(Token(place, k) for k in range(len(results)))
        steps.append(Step(place, sight.func, origins, owners, None if derived else results))
    return tuple(steps)


def _owner(values: Sequence[Tensor | None], sight: Sighting, what: str) -> Owner:
    fewer, base, *changed = [x for x in values if x is not None]
    try:
        return find_owner(fewer, base, changed)
    except Entangled:
        names = ", ".join(repr(o) for o in sight.origins if isinstance(o, str)) or "tensors made of parameters"
        raise mixes_people(f"{what} of {name_of(sight.func)} with {names}") from None


def mixes_people(where: str) -> NotAllowed:
    """Return the error for a model in which one person's data move another's numbers."""
    return NotAllowed(
        f"the model mixes people: rows of {where} cannot be told apart by person.",
        why="a gradient that depends on several people cannot be clipped for each of them.",
        do="use layers that treat each example by itself; sitr.learning.fix(model) replaces batch normalisation.",
    )


@dataclass
class Call:
    """A junction in the watched forward pass, as a rule sees it.

    Attributes:
        step: What the probe found.
        args: Positional arguments, with parameters as they are.
        kwargs: Named ones.
        people: How many there are.
        whole: Sums will be of whole numbers.
        owners: The owner of each tensor among the arguments, by its id.
        likes: Ids of arguments that are like parameters.
    """

    step: Step
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    people: int
    whole: bool
    owners: dict[int, Owner] = field(default_factory=dict)
    likes: dict[int, Tensor] = field(default_factory=dict)

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """Return an argument by its place or name."""
        if len(self.args) > place:
            return self.args[place]
        return self.kwargs.get(name, default)

    def like(self, x: object) -> bool:
        """Say whether an argument is like a parameter."""
        return isinstance(x, Tensor) and id(x) in self.likes

    def plain(self) -> Any:
        """Call the function with parameters as constants."""

        def constant(x: Tensor) -> Tensor:
            return x.detach() if id(x) in self.likes else x

        return self.step.func(*replaced(self.args, constant), **replaced(self.kwargs, constant))

    def split(self, x: Tensor, owner: Owner) -> Tensor:
        """Return a tensor with people in front; what is shared is there for each of them."""
        if owner is None:
            return x.expand(self.people, *x.shape)
        return owner.split(x, self.people)
