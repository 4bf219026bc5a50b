"""Matrices applied to the last dimension: F.linear, x @ W, and the addmm of GPT-2's Conv1D."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..ownership import Owner
from ..pieces import Applied, Kept, Piece, working
from ..watch import Call, Function

Receive = Callable[[Tensor], list[tuple[Tensor, Piece]]]


def linear(call: Call) -> tuple[Tensor, Receive] | None:
    """F.linear(input, weight, bias), with any leading dimensions."""
    x, weight, bias = call.argument(0, "input"), call.argument(1, "weight"), call.argument(2, "bias")
    owner = call.owners.get(id(x))
    if call.like(x) or owner is None or owner.dim == x.dim() - 1 or not _constant(call, weight, bias):
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        return _pieces(call, x, gradient, owner, weight, bias, transposed=False)

    return call.plain(), receive


def matmul(call: Call) -> tuple[Tensor, Receive] | None:
    """Rule x @ W for a matrix W."""
    x, weight = call.argument(0, "input"), call.argument(1, "other" if call.step.func is not torch.mm else "mat2")
    owner = call.owners.get(id(x))
    if not call.like(weight) or call.like(x) or weight.dim() != 2 or owner is None or owner.dim == x.dim() - 1:
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        return _pieces(call, x, gradient, owner, weight, None, transposed=True)

    return call.plain(), receive


def addmm(call: Call) -> tuple[Tensor, Receive] | None:
    """Rule bias + x @ W."""
    bias, x, weight = (call.argument(0, "input"), call.argument(1, "mat1"), call.argument(2, "mat2"))
    owner = call.owners.get(id(x))
    plain = len(call.args) <= 3 and not {"alpha", "beta", "out"} & set(call.kwargs)
    if (
        not plain
        or call.like(x)
        or owner is None
        or owner.dim != 0
        or bias.dim() != 1
        or not _constant(call, weight, bias)
    ):
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        return _pieces(call, x, gradient, owner, weight, bias, transposed=True)

    return call.plain(), receive


def _constant(call: Call, *values: Any) -> bool:
    """Say whether each is like a parameter, or the same for everybody."""
    return all(x is None or call.like(x) or call.owners.get(id(x)) is None for x in values)


def _pieces(
    call: Call, x: Tensor, gradient: Tensor, owner: Owner, weight: Tensor, bias: Tensor | None, *, transposed: bool
) -> list[tuple[Tensor, Piece]]:
    outputs = call.split(gradient, owner).flatten(1, -2)
    found: list[tuple[Tensor, Piece]] = []
    if call.like(weight):
        inputs = call.split(x.detach(), owner).flatten(1, -2)
        a, g = alike(working(inputs, whole=call.whole), working(outputs, whole=call.whole))
        applied = Applied(g, a, weight.shape, call.whole) if transposed else Applied(a, g, weight.shape, call.whole)
        found.append((weight, applied))
    if bias is not None and call.like(bias):
        summed = outputs.sum(1, dtype=torch.promote_types(outputs.dtype, torch.float32))
        found.append((bias, Kept(summed.view(call.people, *bias.shape))))
    return found


def alike(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in the wider of their types."""
    wider = torch.promote_types(a.dtype, g.dtype)
    return a.to(wider), g.to(wider)


def bilinear(left: Tensor, right: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute what F.bilinear does, as a linear layer on products."""
    return F.linear((left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(-2), weight.flatten(1), bias)


COMPOSITES: dict[Function, Function] = {F.bilinear: bilinear}

RULES: dict[Function, Callable[[Call], tuple[Tensor, Receive] | None]] = {
    F.linear: linear,
    torch.matmul: matmul,
    torch.mm: matmul,
    Tensor.matmul: matmul,
    Tensor.__matmul__: matmul,
    Tensor.mm: matmul,
    torch.addmm: addmm,
    Tensor.addmm: addmm,
}
