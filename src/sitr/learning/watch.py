"""Every torch function of a model's forward pass that sees a trainable parameter: observed in a probe, then ruled.

A tensor is *like a parameter* if it is one, or was computed from parameters and public numbers alone (a transposed
weight, a merged LoRA matrix, embeddings of positions). Where such a tensor meets people's data is a *junction*: there,
and only there, gradients are taken apart by person (decision 0031).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from numbers import Number
from types import MemberDescriptorType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.overrides import TorchFunctionMode, resolve_name

from ..errors import NotAllowed
from .ownership import SHARED, Entangled, Owner, Probed, Untold

Function = Callable[..., Any]
Quiet = dict[tuple[int, int], set[int]]  # people, by a call and the place of a tensor in it, as in `Sighting.all`
NESTED = (tuple, list, dict)
PLAIN = (type(None), bool, Number, str)  # holds no tensor
FLAGS = (type(None), bool, str, Enum)  # may say how a model is to work: numbers may be others in each call


def tensors(*trees: object) -> list[Tensor]:
    """Return the tensors in nested tuples, lists, dicts and dataclasses, and in what else was set on these."""
    found: list[Tensor] = []
    for tree in trees:
        if isinstance(tree, Tensor):
            found.append(tree)
        elif _is_nest(tree):
            found += tensors(*_parts(tree))
    return found


def replaced(tree: Any, new: Callable[[Tensor], Any]) -> Any:
    """Return a nested structure with `new` of each of its tensors."""
    if isinstance(tree, Tensor):
        return new(tree)
    if type(tree) is dict:
        return {key: replaced(value, new) for key, value in tree.items()} if tree else tree
    if not _is_nest(tree):
        return tree
    if isinstance(tree, dict) or not isinstance(tree, NESTED):
        return _record_replaced(tree, new)
    items = [new(x) if isinstance(x, Tensor) else replaced(x, new) if _is_nest(x) else x for x in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def said(out: object) -> list[Tensor]:
    """Return the tensors in what a model says.

    Raises:
        NotAllowed: There is something in it into which nobody can look.
    """
    if not isinstance(out, Tensor):
        _refuse_closed(out)
    return tensors(out)


def flags(tree: Any) -> object:
    """Return what in an argument may say how a model is to work, with its place in nests; of all else the type.

    How long a list of other things is says nothing: there may be one for each person.

    Example:
        >>> flags({"x": torch.zeros(2), "options": ["sum", 3]})
        (<class 'dict'>, ('options', (<class 'list'>, (0, 'sum'))))
    """
    if isinstance(tree, FLAGS):
        return tree
    if not _is_nest(tree):
        return type(tree)
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, NESTED) else ()
    known = [(name, flags(part)) for name, part in (*items, *_attributes(tree).items())]
    told = [(name, part) for name, part in known if not isinstance(part, type)]
    return (type(tree), *told) if told else type(tree)


def _is_nest(tree: object) -> bool:
    return isinstance(tree, NESTED) or hasattr(type(tree), "__dataclass_fields__")


def _parts(tree: Any) -> list[Any]:
    """Return what is in a nest, everything once: its items, and all that was set on it, fields or not."""
    items = list(tree.values()) if isinstance(tree, dict) else list(tree) if isinstance(tree, NESTED) else []
    if type(tree) in (*NESTED, torch.Size):
        return items
    known = {id(item) for item in items}
    return [*items, *(part for part in _attributes(tree).values() if id(part) not in known)]


def _attributes(record: Any) -> dict[str, Any]:
    """Return the fields of an object and all else that was set on it, also in slots."""
    slots = [n for kind in type(record).__mro__ for n, x in vars(kind).items() if isinstance(x, MemberDescriptorType)]
    names = (*getattr(type(record), "__dataclass_fields__", ()), *slots)
    return {name: getattr(record, name) for name in names if hasattr(record, name)} | getattr(record, "__dict__", {})


def _record_replaced(record: Any, new: Callable[[Tensor], Any]) -> Any:
    """Return a copy of a dataclass, which may be frozen, or of a kind of dict, with `new` of each tensor, once.

    What holds no tensor is returned as it is.
    """
    if not tensors(record):
        return record
    made, done = copy.copy(record), {id(x): new(x) for x in tensors(record)}
    for key in record if isinstance(record, dict) else ():
        made[key] = replaced(record[key], lambda x: done[id(x)])
    for name, part in _attributes(record).items():
        if tensors(part):
            object.__setattr__(made, name, replaced(part, lambda x: done[id(x)]))
    return made


def _refuse_closed(tree: object) -> None:
    if _is_nest(tree):
        for part in _parts(tree):
            _refuse_closed(part)
    elif not isinstance(tree, (Tensor, *PLAIN)):
        raise NotAllowed(
            f"the model returns a {type(tree).__name__}, into which cannot be looked.",
            why="whether one person's data move what it says of others is seen in the tensors that come out.",
            do="return tensors, or tuples, lists, dicts or dataclasses of them, and nothing else but numbers and text "
            "(models of Hugging Face: use_cache=False).",
        )


def name_of(func: Function) -> str:
    """Return how people call a torch function; of those that are equal, as torch.mm and torch.spmm, by its own name."""
    own = str(getattr(func, "__name__", ""))
    if getattr(torch, own, None) == func:
        return f"torch.{own}"
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
        edges: Where gradients reach the arguments, then the results; None where none does, or at a parameter.
    """

    func: Function
    origins: tuple[str | Token | None, ...]
    values: tuple[Tensor | None, ...]
    results: tuple[Tensor, ...]
    edges: tuple[GradientEdge | None, ...] = ()

    @property
    def all(self) -> tuple[Tensor | None, ...]:
        """The arguments, then what came out."""
        return (*self.values, *self.results)

    def let_go(self) -> None:
        """Hold no copies any more; gradients can still be asked for."""
        self.values = self.results = ()


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
    def all(self) -> tuple[Owner, ...]:
        """Whose each argument is, then each result, as in `Sighting`."""
        return (*self.owners, *(self.results or ()))

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
        if not self.parameters:  # nothing is recorded, so nothing is held
            return func(*args, **kwargs)
        given = tensors(args, kwargs)
        origins = tuple(self._origin(x) for x in given)
        seen = any(origins) and torch.is_grad_enabled()
        # Before the call, which may be in place.
        values: list[Tensor | None] = []
        sources: list[GradientEdge | None] = []
        for x, origin in zip(given, origins, strict=True) if seen else ():
            is_parameter = isinstance(origin, str)
            values.append(None if is_parameter else x.detach().clone())
            sources.append(None if is_parameter else _edge(x))
        out = func(*args, **kwargs)
        results = [x for x in tensors(out) if x.requires_grad] if seen else []
        if results:
            kept = tuple(x.detach().clone() for x in results)
            edges = (*sources, *map(_edge, results))
            self.sightings.append(Sighting(func, origins, tuple(values), kept, edges))
        if any(id(x) in self._private for x in given):
            for x in tensors(out):
                self._private[id(x)] = x
                self._made.pop(id(x), None)
        else:
            for place, x in enumerate(results):
                self._made[id(x)] = (x, Token(len(self.sightings) - 1, place))
        return out

    def is_public(self, x: Tensor) -> bool:
        """Say whether a tensor was made of nobody's data, and needs no gradient, as numbers of positions."""
        return not x.requires_grad and id(x) not in self._private

    def _origin(self, x: Tensor) -> str | Token | None:
        if id(x) in self.parameters:
            return self.parameters[id(x)]
        return self._made[id(x)][1] if id(x) in self._made else None


def _edge(x: Tensor) -> GradientEdge | None:
    return get_gradient_edge(x) if x.requires_grad else None


class Comparison:
    """The runs of a probe beside each other: what happens at each call, and whose each tensor is.

    Of one run, the base, all tensors are held, and of the others none.

    Args:
        fewer: The run with one person less.
        base: The run that the others are compared with.
    """

    def __init__(self, fewer: list[Sighting], base: list[Sighting]) -> None:
        self._base = base
        self._check(fewer)
        self._probed = [
            [
                Probed(x, y) if x is not None and y is not None else None
                for x, y in zip(small.all, large.all, strict=True)
            ]
            for small, large in zip(fewer, base, strict=True)
        ]

    def compare(self, changed: list[Sighting]) -> None:
        """See the run in which the input of one person, the next one, is another.

        Raises:
            NotAllowed: It calls other functions, or they return another number of tensors.
        """
        self._check(changed)
        for row, sight in zip(self._probed, changed, strict=True):
            for probed, x in zip(row, sight.all, strict=True):
                if probed is not None and x is not None:
                    probed.compare(x)

    def steps(self) -> tuple[Step, ...]:
        """Return what happens at each call.

        Raises:
            NotAllowed: The model mixes people.
        """
        made: set[Token] = set()
        steps = []
        for place, sight in enumerate(self._base):
            origins = tuple(o if isinstance(o, str) or o in made else None for o in sight.origins)
            if not any(origins):
                continue
            probed, given = self._probed[place], len(origins)
            owners = tuple(
                SHARED if origin else _owner(probed[k], sight, "the input") for k, origin in enumerate(origins)
            )
            results = tuple(_owner(each, sight, "the result") for each in probed[given:])
            if not _are_arranged_alike(owners, results):
                raise untold(f"{name_of(sight.func)} with {_names(sight)}")
            derived = not any(owners) and not any(results)
            if derived:
                made.update(Token(place, k) for k in range(len(results)))
            steps.append(Step(place, sight.func, origins, owners, None if derived else results))
        return tuple(steps)

    def quiet(self, steps: tuple[Step, ...]) -> Quiet:
        """Return whose change moved nothing that is theirs, at arguments and results that gradients may reach."""
        found = {}
        for step in (step for step in steps if step.junction):
            for k, owner in enumerate(step.all):
                probed = self._probed[step.place][k]
                if owner is not None and probed is not None and self._base[step.place].edges[k] is not None:
                    found[step.place, k] = probed.quiet(owner)
        return {place: people for place, people in found.items() if people}

    def _check(self, run: list[Sighting]) -> None:
        seen, wanted = ([(s.func, s.origins, len(s.results)) for s in sights] for sights in (run, self._base))
        if seen != wanted:
            raise NotAllowed(
                "for other people or other numbers of people the model calls other functions, or gets another number "
                "of tensors from them.",
                why="whose gradient is whose is found by running it on few rows, and holds for what was run.",
                do="make what the model calls independent of the data and of the batch size.",
            )


def _owner(probed: Probed | None, sight: Sighting, what: str) -> Owner:
    assert probed is not None  # only parameters are not copied, and whose they are is not asked
    where = f"{what} of {name_of(sight.func)} with {_names(sight)}"
    try:
        return probed.owner()
    except Untold:
        raise untold(where) from None
    except Entangled:
        raise mixes_people(where) from None


def _names(sight: Sighting) -> str:
    return ", ".join(repr(o) for o in sight.origins if isinstance(o, str)) or "tensors made of parameters"


def _are_arranged_alike(owners: tuple[Owner, ...], results: tuple[Owner, ...]) -> bool:
    """Say whether all of a call is as it was assumed of a part of it: each person has several rows, lying together."""
    everything = [owner for owner in (*owners, *results) if owner is not None]
    if not any(owner.assumed for owner in everything):
        return True
    return all(owner is not None and owner.several for owner in results) and not any(o.minor for o in everything)


def untold(where: str) -> NotAllowed:
    """Return the error for rows of which neither numbers nor gradients show whose they are."""
    return NotAllowed(
        f"nothing shows whose rows are whose in {where}: each person has several, which nobody's data or loss moves.",
        why="a gradient can be clipped for each person only if it is known whose it is.",
        do="initialise layers that return 0, such as a head of zeros or a norm whose weight is 0, with small random "
        "numbers; and return outputs of shape (people, rows, ...) instead of (people · rows, ...).",
    )


def mixes_people(where: str) -> NotAllowed:
    """Return the error for a model in which one person's data move another's numbers."""
    return NotAllowed(
        f"the model mixes people: rows of {where} cannot be told apart by person.",
        why="a gradient that depends on several people cannot be clipped for each of them.",
        do="use layers that treat each example by itself; sitr.learning.fix(model) replaces batch normalisation.",
    )


def unlike_trials() -> NotAllowed:
    """Return the error for a pass of other calls than those of the probe that was made for it."""
    return NotAllowed(
        "the model made other calls in this pass than when it was tried for it: nothing shows whether it mixes people.",
        why="whose gradient is whose is found by running it on few rows, and holds for what was run.",
        do="make what the model calls independent of the data, of the batch size and of how often it was called.",
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
