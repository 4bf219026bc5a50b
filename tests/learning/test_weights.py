"""Weights: the optimizer has all of them and no others, and their gradients are the noisy sum and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sitr.errors import InvalidArgument
from sitr.learning.clipping import Clipper
from sitr.learning.ranks import Ranks
from sitr.learning.weights import Weights, weights_of
from tests.learning.loops import model_and_optimizer


def weights() -> Weights:
    model, optimizer = model_and_optimizer()
    return weights_of(model, optimizer, Ranks.of(None, model))


def test_are_the_objects_that_the_optimizer_holds() -> None:
    found = weights()
    held = [weight for group in found.optimizer.param_groups for weight in group["params"]]
    assert [id(one) for one in found.held.values()] == [id(one) for one in held]
    with found.gathered():
        assert [id(one) for one in found.model.parameters()] == [id(one) for one in held]


def test_gradients_are_what_noise_made_of_the_sums() -> None:
    """What is charged is started first; what was left in a gradient is gone; what was measured comes back."""
    found, order = weights(), []
    clipper = Clipper(found.model, 1.0, exact_sums=True)
    for weight in found.held.values():
        weight.grad = torch.full_like(weight, 1e6)

    def noisy(sums: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        order.append("noise")
        assert all(one.dtype == torch.int64 for one in sums.values())
        return {name: one.float() + 2 for name, one in sums.items()}

    told = found.overwrite(clipper, noisy, lambda: order.append("start") or (1.0, []))  # type: ignore[arg-type]
    assert told == (1.0, [])
    assert order == ["start", "noise"]
    assert all(torch.equal(one.grad, torch.full_like(one, 2)) for one in found.held.values())


def test_that_the_optimizer_does_not_have_are_refused() -> None:
    model, _ = model_and_optimizer()
    other = nn.Linear(2, 2)
    with pytest.raises(InvalidArgument, match="not of the model"):
        Weights(
            model,
            torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1),
            Ranks.of(None, model),
        )
    with pytest.raises(InvalidArgument, match="does not have"):
        Weights(model, torch.optim.SGD(model[2].parameters(), lr=0.1), Ranks.of(None, model))
