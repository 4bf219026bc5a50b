"""Several rows for each person: views of one example, or examples of one person, who counts once."""

from __future__ import annotations

from typing import Any

from torch import nn

from .watch import replaced


class Views(nn.Module):
    """Calls a model on several rows of each person.

    It takes tensors of shape (people, rows, ...), calls the model on all rows, and returns what that says as (people,
    rows, ...). Average the losses over rows: then a person's gradient is the mean over that person's rows, and it is
    clipped once. Attach a run to `Views(model)`; `model` itself is trained, and used as it is afterwards.

    Args:
        model: Takes single rows.

    Privacy: a person adds one gradient of norm at most `max_grad_norm`, however many rows it is the mean of (THEORY
    7.1). Rows may depend on their own person and on public numbers only: random numbers of views have to be drawn once
    for a step, for all people alike, as otherwise one person more would give all others other views.

    Example:
        >>> import torch
        >>> views = Views(nn.Linear(3, 2))
        >>> views(torch.zeros(5, 4, 3)).shape  # five people, four views each
        torch.Size([5, 4, 2])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any, *more: Any) -> Any:
        """Return what the model says of each row."""
        shape = x.shape[:2]
        rows = replaced((x, *more), lambda one: one.flatten(0, 1))
        return replaced(self.model(*rows), lambda one: one.unflatten(0, shape))
