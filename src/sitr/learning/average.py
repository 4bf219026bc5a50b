"""A moving average of the weights: post-processing of what a run releases, and free."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn

from .. import _validate


class Average:
    """An exponential moving average of the weights of a run, behind each of its updates.

    Args:
        weights: The trained weights, by name.
        decay: How much of the average stays at an update, in (0, 1): 0.999 is an average over about 1,000 steps. In the
            first steps less of it stays, (1 + t)/(10 + t) behind t of them, so that the beginning is soon forgotten.

    Attributes:
        decay: As given.
        values: The average of each weight, at least in fp32.

    Privacy: a function of weights that are released with noise (THEORY 7.1): it costs nothing.

    Example:
        >>> weight = nn.Parameter(torch.tensor([1.0]))
        >>> average = Average({"w": weight}, decay=0.999)
        >>> weight.data.fill_(2.0)
        tensor([2.])
        >>> average.update(done=0)
        >>> average.values["w"]
        tensor([1.9000])
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = _validate.real("average", decay, 0, 1, open_low=True, open_high=True)
        self._weights = weights
        self.values = {name: _wide(weight).clone() for name, weight in weights.items()}

    def update(self, done: int) -> None:
        """Take in the weights behind the next update, `done` steps after the first."""
        stays = min(self.decay, (1 + done) / (10 + done))
        for name, weight in self._weights.items():
            self.values[name].lerp_(_wide(weight).to(self.values[name].device), 1 - stays)

    def load(self, values: Mapping[str, Tensor]) -> None:
        """Go on from an average that was kept."""
        for name, value in self.values.items():
            value.copy_(values[name])

    @torch.no_grad()
    def copied(self, model: nn.Module) -> nn.Module:
        """Return a copy of a model that has the average for its weights."""
        found = deepcopy(model)
        for name, weight in found.named_parameters():
            weight.grad = None
            if name in self.values:
                weight.copy_(self.values[name])
        return found


def _wide(weight: Tensor) -> Tensor:
    kept = weight.detach()
    return kept.float() if kept.dtype.itemsize < 4 else kept
