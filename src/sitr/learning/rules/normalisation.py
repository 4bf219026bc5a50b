"""Scales and shifts after a normalisation of each example by itself: layer, group, instance and RMS norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import kernels
from ..pieces import Kept, Piece, in_single
from ..watch import Call, Function
from .linear import Receive

WIDEST = 2**14  # numbers of one position that a kernel holds
Sums = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def layer_norm(call: Call) -> tuple[Tensor, Receive] | None:
    """F.layer_norm(input, normalized_shape, weight, bias, eps)."""
    shape, eps = call.argument(1, "normalized_shape"), call.argument(4, "eps", 1e-5)
    weight, bias = call.argument(2, "weight"), call.argument(3, "bias")

    def sums(x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return kernels.layer_norm_sums(x, gradient, eps=eps)

    return _last(call, weight, bias, len(shape), lambda x: F.layer_norm(x, shape, eps=eps), sums)


def rms_norm(call: Call) -> tuple[Tensor, Receive] | None:
    """F.rms_norm(input, normalized_shape, weight, eps)."""
    shape, eps = call.argument(1, "normalized_shape"), call.argument(3, "eps")

    def sums(x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        least = torch.finfo(x.dtype).eps if eps is None else eps
        return kernels.layer_norm_sums(x, gradient, eps=least, centred=False)

    return _last(call, call.argument(2, "weight"), None, len(shape), lambda x: F.rms_norm(x, shape, eps=eps), sums)


def group_norm(call: Call) -> tuple[Tensor, Receive] | None:
    """F.group_norm(input, num_groups, weight, bias, eps)."""
    groups, eps = call.argument(1, "num_groups"), call.argument(4, "eps", 1e-5)
    weight, bias = call.argument(2, "weight"), call.argument(3, "bias")
    return _channels(call, weight, bias, lambda x: F.group_norm(x, groups, eps=eps), _group_sums(groups, eps))


def instance_norm(call: Call) -> tuple[Tensor, Receive] | None:
    """F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)."""
    if call.argument(1, "running_mean") is not None:
        return None
    weight, bias, eps = call.argument(3, "weight"), call.argument(4, "bias"), call.argument(7, "eps", 1e-5)
    groups = call.argument(0, "input").shape[1]
    return _channels(call, weight, bias, lambda x: F.instance_norm(x, eps=eps), _group_sums(groups, eps))


def _group_sums(groups: int, eps: float) -> Sums:
    return lambda x, gradient: kernels.group_norm_sums(x, gradient, groups=groups, eps=eps)


def _last(
    call: Call,
    weight: Tensor | None,
    bias: Tensor | None,
    dims: int,
    normalised: Callable[[Tensor], Tensor],
    sums: Sums,
) -> tuple[Tensor, Receive] | None:
    """Scales of the last dimensions."""
    x = call.argument(0, "input")
    owner = call.owners.get(id(x))
    if call.like(x) or owner is None or owner.dim >= x.dim() - dims:
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        if _by_kernel(call, x, gradient) and math.prod(x.shape[x.dim() - dims :]) <= WIDEST:
            a, g = (call.split(t, owner).flatten(1, -1 - dims).flatten(2) for t in (x.detach(), gradient))
            return _kept(call, (weight, bias), sums(a, g))
        outer, found = call.split(in_single(gradient), owner), []
        if weight is not None and call.like(weight):
            scaled = outer * call.split(normalised(in_single(x.detach())), owner)
            found.append((weight, Kept(scaled.flatten(1, -1 - dims).sum(1))))
        if bias is not None and call.like(bias):
            found.append((bias, Kept(outer.flatten(1, -1 - dims).sum(1))))
        return found  # type: ignore[return-value]

    return call.plain(), receive


def _channels(
    call: Call, weight: Tensor | None, bias: Tensor | None, normalised: Callable[[Tensor], Tensor], sums: Sums
) -> tuple[Tensor, Receive] | None:
    """Scales of the channels, which come after the rows."""
    x = call.argument(0, "input")
    owner = call.owners.get(id(x))
    if call.like(x) or owner is None or owner.dim != 0:
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        if _by_kernel(call, x, gradient):
            found_by_row = sums(x.detach(), gradient)
            return _kept(call, (weight, bias), [call.split(each, owner).sum(1) for each in found_by_row])
        outer, found = in_single(gradient), []
        if weight is not None and call.like(weight):
            scaled = outer * normalised(in_single(x.detach()))
            found.append((weight, Kept(call.split(_positions(scaled), owner).sum(1))))
        if bias is not None and call.like(bias):
            found.append((bias, Kept(call.split(_positions(outer), owner).sum(1))))
        return found  # type: ignore[return-value]

    return call.plain(), receive


def _by_kernel(call: Call, x: Tensor, gradient: Tensor) -> bool:
    """Say whether one reading makes both sums; exact sums take none whose rounding depends on the batch's size."""
    return not call.whole and kernels.available(x) and kernels.available(gradient)


def _kept(call: Call, parameters: Sequence[Tensor | None], sums: Sequence[Tensor]) -> list[tuple[Tensor, Piece]]:
    return [
        (p, Kept(each.view(call.people, *p.shape)))
        for p, each in zip(parameters, sums, strict=True)
        if p is not None and call.like(p)
    ]


def _positions(x: Tensor) -> Tensor:
    return x.flatten(2).sum(2) if x.dim() > 2 else x


RULES: dict[Function, Callable[[Call], tuple[Tensor, Receive] | None]] = {
    F.layer_norm: layer_norm,
    F.rms_norm: rms_norm,
    F.group_norm: group_norm,
    F.instance_norm: instance_norm,
}
