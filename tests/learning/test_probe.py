"""What a probe sees: people who meet, forwards or backwards, and models that keep something of them."""

from __future__ import annotations

import copy
import math

import pytest
import torch
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
    with clipper, pytest.raises(NotAllowed, match="changes|mixes"):
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
