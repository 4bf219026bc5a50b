"""Tables that are looked up: F.embedding, and bags of embeddings."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from ...errors import NotAllowed
from ..pieces import Piece, Scatter, in_single
from ..watch import Call, Function, name_of
from .linear import Receive


def embedding(call: Call) -> tuple[Tensor, Receive] | None:
    """F.embedding(input, weight, padding_idx, …)."""
    ids, weight, padding = call.argument(0, "input"), call.argument(1, "weight"), call.argument(2, "padding_idx")
    _refuse_coupling(call, max_norm=call.argument(3, "max_norm"), by_frequency=call.argument(5, "scale_grad_by_freq"))
    owner = call.owners.get(id(ids))
    if not call.like(weight) or owner is None:
        return None

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        rows = call.split(ids, owner).flatten(1)
        values = call.split(gradient, owner).flatten(1, -2)
        return [(weight, _looked_up(rows, values, weight, padding))]

    return call.plain(), receive


def embedding_bag(call: Call) -> tuple[Tensor, Receive] | None:
    """F.embedding_bag(input, weight, offsets, …): sums and means of each person's bag of rows."""
    ids, weight = call.argument(0, "input"), call.argument(1, "weight")
    mode, weights = call.argument(6, "mode", "mean"), call.argument(8, "per_sample_weights")
    padding = call.argument(10, "padding_idx")
    _refuse_coupling(call, max_norm=call.argument(3, "max_norm"), by_frequency=call.argument(5, "scale_grad_by_freq"))
    owner = call.owners.get(id(ids))
    if mode not in ("sum", "mean") or call.like(weights):
        raise _no_rule(call, "use mode 'sum' or 'mean', with weights that are no parameters")
    if not call.like(weight) or owner is None or owner.dim != 0 or ids.dim() != 2:
        raise _no_rule(call, "pass one row of ids for each person, padded, with padding_idx")

    def receive(gradient: Tensor) -> list[tuple[Tensor, Piece]]:
        values = in_single(gradient)[:, None, :].expand(-1, ids.shape[1], -1)
        if weights is not None:
            values = values * in_single(weights.detach())[:, :, None]
        if mode == "mean":
            full = ids.new_full((len(ids),), ids.shape[1])
            counted = full if padding is None else (ids != padding % weight.shape[0]).sum(1)
            values = values / counted.clamp_min(1)[:, None, None]
        rows, values = call.split(ids, owner).flatten(1), call.split(values, owner).flatten(1, 2)
        return [(weight, _looked_up(rows, values, weight, padding))]

    return call.plain(), receive


def _looked_up(rows: Tensor, values: Tensor, weight: Tensor, padding: int | None) -> Piece:
    if padding is not None:
        padding = padding % weight.shape[0]
        values = values.masked_fill((rows == padding)[:, :, None], 0)
    return Scatter(rows, values, weight.shape)


def _refuse_coupling(call: Call, *, max_norm: object, by_frequency: object) -> None:
    if max_norm is not None:
        raise _no_rule(call, "leave out max_norm, which changes the table in the forward pass")
    if by_frequency:
        raise _no_rule(call, "leave out scale_grad_by_freq, which counts ids over all people")


def _no_rule(call: Call, do: str) -> NotAllowed:
    return NotAllowed(
        f"{name_of(call.step.func)} with {call.step.names()} is used in a way that has no rule.",
        why="its gradients cannot be told apart by person.",
        do=f"{do}.",
    )


RULES: dict[Function, Callable[[Call], tuple[Tensor, Receive] | None]] = {
    F.embedding: embedding,
    F.embedding_bag: embedding_bag,
}
