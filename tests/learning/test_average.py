"""Moving averages of weights: beside a second computation, kept in checkpoints, and free."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from sitr.errors import InvalidArgument
from sitr.learning import attach
from sitr.learning.average import Average
from tests.learning.loops import attached, data, made, trained
from tests.learning.test_checkpoint import crashed, some_steps


def averaged(history: list[list[Tensor]], decay: float) -> list[Tensor]:
    """The average of the weights behind each step, the first of which are those before any."""
    found = [one.clone() for one in history[0]]
    for done, weights in enumerate(history[1:]):
        stays = min(decay, (1 + done) / (10 + done))
        found = [stays * old + (1 - stays) * new for old, new in zip(found, weights, strict=True)]
    return found


def weights_of(model: nn.Module) -> list[Tensor]:
    return [weight.detach().clone() for weight in model.parameters()]


@pytest.mark.parametrize("decay", [0.15, 0.99])
def test_is_that_of_the_weights_behind_each_step(decay: float) -> None:
    run = attached(average=decay)
    history = [weights_of(run.model)]
    trained(run, after=lambda run: history.append(weights_of(run.model)))
    found = run.averaged()
    for one, wanted in zip(found.parameters(), averaged(history, decay), strict=True):
        assert torch.allclose(one, wanted, atol=1e-6)


def test_leaves_the_model_and_its_price_alone() -> None:
    run = trained(attached(average=0.9))
    before = weights_of(run.model)
    found = run.averaged()
    assert type(found) is type(run.model)
    assert found.state_dict().keys() == run.model.state_dict().keys()
    assert all(one.grad is None and one.requires_grad for one in found.parameters())
    with torch.no_grad():
        next(found.parameters()).zero_()
    assert all(torch.equal(one, old) for one, old in zip(run.model.parameters(), before, strict=True))
    assert run.plan.event == made().event
    assert "Average  of the weights is kept, 0.9 of it at each step; it costs nothing." in run.explain()


def test_frozen_tied_and_narrow_weights_are_copied() -> None:
    """In bf16 an average would stand still: 0.999 of 1 and 0.001 of 1.1 is 1. It is kept in fp32."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)).bfloat16()
    model[1].weight = model[0].weight
    model[2].requires_grad_(False)
    run = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made(), average=0.9)
    trained(run, (data()[0].bfloat16(), data()[1]))
    found = run.averaged()
    assert found[1].weight is found[0].weight
    assert torch.equal(found[2].weight, model[2].weight)
    assert found[0].weight.dtype == torch.bfloat16
    assert run.average is not None
    assert {one.dtype for one in run.average.values.values()} == {torch.float32}
    slow = Average({"w": torch.ones(1, dtype=torch.bfloat16)}, 0.999)
    slow._weights["w"].fill_(1.1)
    for done in range(10_000, 10_100):
        slow.update(done)
    assert 1.005 < float(slow.values["w"]) < 1.015


@pytest.mark.parametrize("killed", [False, True])
def test_goes_on_from_a_checkpoint(tmp_path: Path, killed: bool) -> None:
    """From where the loop was left; or, where the process was killed a step later, from the same file."""
    first = attached(checkpoint=tmp_path / "run", every=1, average=0.9)
    some_steps(first, 2)
    assert first.average is not None
    wanted = {name: value.clone() for name, value in first.average.values.items()}
    if killed:
        crashed(first, 3)
    again = attached(checkpoint=tmp_path / "run", every=1, average=0.9)
    loop = again.steps(data())
    next(loop)
    assert again.average is not None
    assert again.done == 2
    for name, value in again.average.values.items():
        assert torch.equal(value, wanted[name])
        assert not torch.equal(value, again.clipper.parameters[name])


def test_of_another_run_is_refused(tmp_path: Path) -> None:
    crashed(attached(checkpoint=tmp_path / "run", average=0.9), 3)
    for options in ({}, {"average": 0.99}):
        with pytest.raises(InvalidArgument, match=r"has average=0\.9"):
            trained(attached(checkpoint=tmp_path / "run", **options))
    crashed(attached(checkpoint=tmp_path / "other"), 3)
    with pytest.raises(InvalidArgument, match="has average=None"):
        trained(attached(checkpoint=tmp_path / "other", average=0.9))


def test_bad_use_is_refused() -> None:
    for decay in (0, 1, -0.5, "0.9"):
        with pytest.raises(InvalidArgument, match="average"):
            attached(average=decay)
    with pytest.raises(InvalidArgument, match="no average"):
        attached().averaged()
    run = attached(made(batch=40), average=0.9)
    for step in run.steps(data()):
        for _ in step:
            with pytest.raises(InvalidArgument, match="within a step"):
                run.averaged()
            break
        break
