"""Any other operation: one copy of its parameters for each person, and the operation for each person by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ...errors import NotAllowed
from ..watch import Call, name_of, replaced, tensors

SIZED = {"expand", "repeat", "broadcast_to", "tile", "expand_as"}  # say the number of people in their arguments


def expanded(call: Call, leaves: list[tuple[Tensor, Tensor]]) -> Any:
    """Run an operation for each person with a copy of its parameters that is that person's own.

    The gradients of the copies are the gradients by person, whatever the operation is. Their price is the memory of so
    many copies, which is little for the parameters that come here: tokens, positions, scales.

    Args:
        call: The junction.
        leaves: Where the copies go, each with what it is a copy of.
    """
    name = getattr(call.step.func, "__name__", "")
    if name.startswith("__i") or name == "__setitem__" or (name.endswith("_") and not name.endswith("__")):
        raise NotAllowed(
            f"{name_of(call.step.func)} works in place, with {call.step.names()}.", do="use the one that does not."
        )
    owner = (call.step.results or (None,))[0]
    if owner is None or call.step.results != (owner,):
        raise NotAllowed(
            f"{name_of(call.step.func)} with {call.step.names()} has no rule.",
            why="its gradients cannot be told apart by person.",
            do="write it with operations that have one result for each person.",
        )
    given = tensors(call.args, call.kwargs)
    people = call.people
    places: dict[int, int] = {}
    inputs: list[Tensor] = []
    dims: list[int | None] = []
    for x in given:
        if id(x) in places:
            continue
        places[id(x)] = len(inputs)
        mine = call.owners.get(id(x))
        if call.like(x):
            leaf = x.detach().expand(people, *x.shape).clone().requires_grad_()
            leaves.append((x, leaf))
            inputs.append(leaf)
            dims.append(0)
        elif mine is None:
            inputs.append(x)
            dims.append(None)
        else:
            inputs.append(mine.split(x, people))
            dims.append(0)
    args, kwargs = call.args, call.kwargs
    if name in SIZED:
        args, kwargs = _for_one(call, owner.dim)

    def for_one(*own: Tensor) -> Any:
        filled, named = replaced((args, kwargs), lambda x: own[places[id(x)]])
        return call.step.func(*filled, **named)

    with quiet():
        out = torch.func.vmap(for_one, in_dims=tuple(dims), randomness="different")(*inputs)
    return owner.join(out)


@contextmanager
def quiet() -> Iterator[None]:
    """Say nothing of operations that vmap does one by one: they are slow, and right."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        yield


def _for_one(call: Call, dim: int) -> tuple[Any, Any]:
    """Return the arguments of `expand` and its kin with one person in place of all."""
    first, *sizes = call.args
    if sizes and isinstance(sizes[0], (tuple, list)):
        sizes = list(sizes[0])
    if not all(isinstance(size, int) for size in sizes) or call.kwargs:
        raise NotAllowed(f"{name_of(call.step.func)} with {call.step.names()} has no rule.", do="use x.expand(sizes).")
    if sizes[dim] % call.people:
        raise NotAllowed(f"{name_of(call.step.func)} with {call.step.names()} has no rule.", do="use x.expand(sizes).")
    sizes[dim] //= call.people
    return (first, *sizes), {}
