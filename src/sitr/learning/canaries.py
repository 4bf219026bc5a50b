"""Scores of canaries: how much each of some examples seems to be among those that a run was trained on.

Put each canary into the data, or leave its place empty, by a fair coin of its own, before the run; the run then scores
all of them, and `sitr.audit.audit_one_run(scores, included)` certifies how much the run gave away at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InvalidArgument


class Canaries:
    """Scores of canaries, step by step: the product of the noisy gradient with each canary's own gradient.

    A canary that is in a step has its own gradient in the sum, so that its score is higher (Steinke, Nasr and Jagielski
    2023). All products are one derivative, of the canaries' losses along the noisy gradient: no gradient of a single
    canary is kept.

    Args:
        losses: Returns one loss for each canary, computed from the model that is trained.

    Attributes:
        scores: Of each canary, over the steps so far.

    Raises:
        InvalidArgument: There is not one loss for each canary, or none has a gradient.

    Privacy: weights and noisy gradients are released, so for canaries that are nobody's data scores cost nothing
    (THEORY 7.1). For examples of people they tell of these people, and are NOT PRIVATE.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(3))
        >>> canaries = Canaries(lambda: torch.eye(3)[:2] @ weight)
        >>> weight.grad = torch.tensor([1.0, -0.5, 2.0])  # as a step leaves it
        >>> canaries.add({"w": weight})
        >>> canaries.scores
        array([ 1. , -0.5])
    """

    def __init__(self, losses: Callable[[], Tensor]) -> None:
        self._losses = losses
        with torch.enable_grad():
            found: Any = losses()
        if not isinstance(found, Tensor) or found.ndim != 1 or not found.requires_grad:
            raise InvalidArgument(
                "canaries do not have one loss each, with a gradient.",
                do='canaries=lambda: F.cross_entropy(model(x), y, reduction="none").',
            )
        self.scores: NDArray[np.float64] = np.zeros(len(found))

    def add(self, weights: Mapping[str, Tensor]) -> None:
        """Add the scores of one step, whose noisy gradient the weights hold, before they are updated by it."""
        with torch.enable_grad():
            losses = self._losses()
            along = torch.zeros_like(losses, requires_grad=True)
            own = torch.autograd.grad(losses, list(weights.values()), along, create_graph=True, materialize_grads=True)
            noisy = [weight.grad for weight in weights.values() if weight.grad is not None]
            parts = [(one * other).sum() for one, other in zip(own, noisy, strict=True)]
            (found,) = torch.autograd.grad(torch.stack(parts).sum(), along)
        self.scores = self.scores + found.cpu().double().numpy()
