"""What a probe sees: people who meet, forwards or backwards, and models that keep something of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sitr.errors import NotAllowed
from sitr.learning.clipping import Clipper
from sitr.learning.probe import Inputs
from tests.learning.models import length


class Codebook(nn.Module):
    """Keeps a running mean of people in a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.book = nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.book.mul_(0.9).add_(x.mean(0))
        found: Tensor = self.layer(x)
        return found


@pytest.mark.parametrize("people", [1, 4])
@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.BatchNorm1d(2)),
        nn.Sequential(nn.Embedding(20, 4, max_norm=0.1), nn.Flatten(), nn.Linear(12, 2)),
        Codebook(),
    ],
    ids=["running_statistics", "max_norm", "frozen"],
)
def test_models_that_keep_something_are_refused_and_left_as_they_were(model: nn.Module, people: int) -> None:
    before = copy.deepcopy(model.state_dict())
    words = isinstance(model, nn.Sequential) and isinstance(model[0], nn.Embedding)
    x = torch.randint(20, (people, 3)) if words else torch.randn(people, 3) + 7
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match=r"changes|mixes"):
        clipper.backward(model(x).sum(1))
    assert length(clipper.sums) == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_a_model_begins_to_keep_after_the_probe_is_refused() -> None:
    class Late(Codebook):
        keeping = False

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) if self.keeping else self.layer(x)

    model = Late()
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper:
        clipper.backward(model(torch.randn(3, 3)).sum(1))
        model.keeping = True
        with pytest.raises(NotAllowed, match="cannot be undone"):
            model(torch.randn(1, 3))


def test_rows_of_a_probe_differ() -> None:
    """Also equal ones, whole ones and a single one; whole numbers are such as occur."""
    for rows in (torch.full((3, 2), 1e9), torch.tensor([[5, 5], [5, 5], [5, 5], [2, 5]]), torch.ones(3).bool()):
        inputs = Inputs.of((rows,), {})
        for person in range(3):
            (other,) = inputs.with_another(person, 3).args
            assert torch.equal(other[person], rows[person]) == (rows.dtype == torch.bool)  # there is no other value
            assert set(other.flatten().tolist()) <= set(rows.flatten().tolist()) or rows.is_floating_point()
    (both,) = Inputs.of((torch.tensor([[4, 9]]),), {}).doubled().args
    assert both.tolist() == [[4, 9], [9, 4]]
    (tame,) = Inputs.of((torch.tensor([math.nan, math.inf, 1.0]),), {}).tame().args
    assert torch.isfinite(tame).all()


class Between(nn.Module):
    """Does something between two layers."""

    def __init__(self, run: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.first, self.second, self.run = nn.Linear(3, 4), nn.Linear(4, 2), run

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(self.run(self.first(x)))
        return found


def hooked(h: Tensor) -> Tensor:
    h.register_hook(lambda g: g / g.norm())
    return h


class Backwards(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor) -> Tensor:
        return h.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g / g.abs().max()


@pytest.mark.parametrize(
    "run",
    [
        lambda h: h - h.mean(0) if len(h) >= 8 else h,
        lambda h: h * (1 + 9 * (h.abs().sum(0) > 60)),
        lambda h: h + F.relu(h - 50).mean(0),
        hooked,
        Backwards.apply,
    ],
    ids=["many_rows", "threshold", "sleeping", "hook", "custom"],
)
def test_people_who_meet_only_sometimes_or_only_backwards_are_refused(run: Callable[[Tensor], Any]) -> None:
    torch.manual_seed(1)
    model = Between(run)
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match="mixes people"):
        clipper.backward(model(torch.randn(12, 3) * 0.1).sum(1))
    assert length(clipper.sums) == 0


@pytest.mark.parametrize("first", [torch.full((3, 3), 1e9), torch.full((3, 3), math.nan), torch.zeros(1, 3)])
def test_rows_that_are_equal_or_not_finite_hide_nothing(first: Tensor) -> None:
    model = Between(lambda h: h - h.mean(0))
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="mixes people"):
        model(first)


def test_equal_words_hide_nothing() -> None:
    model = nn.Sequential(nn.Embedding(9, 3), Between(lambda h: h - h.mean(0)))
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="mixes people"):
        model(torch.tensor([1, 1, 1, 0, 1]))


def test_a_probe_that_saw_nothing_is_made_again() -> None:
    """All words were the same, so that nobody could be given another."""
    model = nn.Sequential(nn.Embedding(9, 3), Between(lambda h: 2 * h - h.detach().mean(0)))
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper:
        model(torch.ones(4, dtype=torch.int64))
        with pytest.raises(NotAllowed, match="mixes people"):
            model(torch.tensor([1, 2, 1, 1]))


@pytest.mark.parametrize("how", ["mode", "autocast"])
def test_other_circumstances_are_probed_again(how: str) -> None:
    def run(h: Tensor) -> Tensor:
        return h - h.mean(0) if (model.training if how == "mode" else torch.is_autocast_enabled("cpu")) else h

    model = Between(run).eval()
    with Clipper(model, 1.0, exact_sums=True):
        model(torch.randn(4, 3))
        model.train(how == "mode")
        with (
            torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"),
            pytest.raises(NotAllowed, match="mixes people"),
        ):
            model(torch.randn(4, 3))
