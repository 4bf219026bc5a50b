"""Several rows for each person: one gradient each, clipped once, beside a loop over people."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sitr.errors import InvalidArgument, NotAllowed
from sitr.learning import Views, attach
from sitr.learning.clipping import Clipper
from tests.learning.loops import made

PEOPLE, VIEWS = 6, 4

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), (5,)),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
        ),
        (2, 6, 6),
    ),
    "attention": (
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0, batch_first=True),
            nn.Flatten(),
            nn.Linear(20, 3),
        ),
        (5, 4),
    ),
}


def losses_of(out: Tensor, y: Tensor) -> Tensor:
    """One for each person: the mean over views."""
    each = F.cross_entropy(out.flatten(0, 1), y.repeat_interleave(out.shape[1]), reduction="none")
    return each.view(out.shape[:2]).mean(1)


def one_by_one(model: nn.Module, x: Tensor, y: Tensor, bound: float) -> dict[str, Tensor]:
    """The sum of clipped gradients of people's mean losses, a person at a time."""
    weights = dict(model.named_parameters())
    total = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for views, label in zip(x, y, strict=True):
        loss = F.cross_entropy(model(views), label.expand(len(views)))
        found = torch.autograd.grad(loss, list(weights.values()))
        norm = math.sqrt(sum(float((part**2).sum()) for part in found))
        for name, part in zip(weights, found, strict=True):
            total[name] += min(1, bound / norm) * part
    return total


def made_of(kind: str) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(3)
    model, shape = MODELS[kind][0](), MODELS[kind][1]
    return model, torch.randn(PEOPLE, VIEWS, *shape), torch.randint(0, 3, (PEOPLE,))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("bound", [0.05, 100.0])
def test_is_the_sum_of_a_loop_over_people(kind: str, exact: bool, bound: float) -> None:
    model, x, y = made_of(kind)
    wanted = one_by_one(model, x, y, bound)
    with Clipper(Views(model), bound, exact_sums=exact) as clipper:
        for part in (slice(0, 4), slice(4, PEOPLE)):
            clipper.backward(losses_of(clipper.model(x[part]), y[part]))
    largest = max(float(one.abs().max()) for one in wanted.values())
    for name, total in clipper.gradients().items():
        assert torch.allclose(total, wanted[name.removeprefix("model.")], atol=1e-5 * largest + (clipper.grid or 0))


def test_a_person_adds_one_clipped_gradient_whatever_the_views_are() -> None:
    """Eight times the views, all the same, and huge: the sum is no longer than the bound."""
    model, x, y = made_of("linear")
    huge = 1e3 * x[:1].repeat(1, 8, 1)
    with Clipper(Views(model), 1.0, exact_sums=True) as clipper:
        clipper.backward(losses_of(clipper.model(huge), y[:1]))
    assert math.sqrt(sum(float((one**2).sum()) for one in clipper.gradients().values())) <= 1.0


def test_in_a_run_the_model_itself_is_trained() -> None:
    """The loop of docs/learning.md: a step's views are drawn once, and each micro-batch has the same."""
    model, x, y = made_of("linear")
    x, y = x[:, 0].repeat(7, 1)[:40], y.repeat(7)[:40]
    before = [weight.detach().clone() for weight in model.parameters()]
    run = attach(Views(model), torch.optim.SGD(model.parameters(), lr=0.1), made())
    for step in run.steps((x, y), microbatch=4):
        shifts = torch.randn(VIEWS, 5) / 10
        for inputs, labels in step:
            step.backward(losses_of(run.model(inputs[:, None] + shifts), labels))
    assert run.done == 6
    assert all(not torch.equal(weight, old) for weight, old in zip(model.parameters(), before, strict=True))
    assert model(x).shape == (40, 3)


def test_several_tensors_and_outputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return self.layer(x), self.layer(x + y)

    one, other = Views(Two())(torch.randn(5, 2, 3), torch.randn(5, 2, 3))
    assert one.shape == other.shape == (5, 2, 2)


def test_recurrent_layers_are_refused() -> None:
    """Their first state is the same for all rows: whose row is whose cannot be seen in it."""

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(3, 4, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.layer(x)[0][:, -1]
            return found

    clipper = Clipper(Views(Last()), 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match="cannot be told apart by person"):
        clipper.model(torch.randn(PEOPLE, VIEWS, 5, 3))


def test_what_mixes_people_is_refused() -> None:
    """Views are averaged within a person; a mean over people, or one loss for each view, is refused."""
    model, x, y = made_of("linear")
    with Clipper(Views(model), 1.0, exact_sums=True) as clipper:
        out = clipper.model(x)
        each = F.cross_entropy(out.flatten(0, 1), y.repeat_interleave(VIEWS), reduction="none")
        with pytest.raises(InvalidArgument, match="as many losses as people"):
            clipper.backward(each)
        mixed = F.cross_entropy(clipper.model(x).flatten(0, 1), y.repeat_interleave(VIEWS), reduction="none")
        with pytest.raises(NotAllowed, match="depends on what the model says of others"):
            clipper.backward(mixed.view(VIEWS, PEOPLE).mean(0))
