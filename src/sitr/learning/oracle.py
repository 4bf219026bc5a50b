"""Per-sample gradients without any cleverness: what clipping is tested against."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Losses = Callable[[nn.Module], Tensor]


def gradients_by_loop(model: nn.Module, losses: Losses) -> dict[str, Tensor]:
    """Return each person's gradient of each trainable parameter: people, then the parameter's shape.

    Args:
        model: The model, with nothing attached to it.
        losses: Runs the model and returns one loss for each person.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> gradients_by_loop(model, lambda m: m(torch.tensor([[3.0, 4.0]]))[:, 0])["weight"]
        tensor([[[3., 4.]]])
    """
    named: dict[str, Tensor] = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found: dict[str, list[Tensor]] = {name: [] for name in named}
    values = losses(model)
    for value in values:
        each = torch.autograd.grad(value, list(named.values()), retain_graph=True, materialize_grads=True)
        for name, gradient in zip(named, each, strict=True):
            found[name].append(gradient)
    return {
        name: torch.stack(each) if each else named[name].new_zeros(0, *named[name].shape)
        for name, each in found.items()
    }


def clipped_by_loop(gradients: dict[str, Tensor], max_grad_norm: float, style: str = "flat") -> dict[str, Tensor]:
    """Return the clipped sums of per-sample gradients, as written in the papers.

    Example:
        >>> clipped_by_loop({"w": torch.tensor([[3.0, 4.0], [0.0, 0.5]])}, 1.0)["w"]
        tensor([0.6, 1.3])
    """
    squares = {name: g.double().reshape(len(g), -1).square().sum(1) for name, g in gradients.items()}
    whole = torch.stack(list(squares.values())).sum(0).sqrt()
    found = {}
    for name, g in gradients.items():
        if style == "per_layer":
            factors = (max_grad_norm / len(gradients) ** 0.5 / squares[name].sqrt()).clamp(max=1)
        elif style == "automatic":
            factors = max_grad_norm / (whole + 0.01)
        else:
            factors = (max_grad_norm / whole).clamp(max=1)
        factors = torch.where(torch.isfinite(factors), factors, torch.ones_like(factors))
        found[name] = torch.einsum("b,b...->...", factors, g.double()).to(g.dtype)
    return found
