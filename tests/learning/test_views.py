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
from sitr.learning.oracle import clipped_by_loop, gradients_by_loop
from sitr.learning.probe import Inputs, probe
from tests.learning.loops import made
from tests.learning.models import Beside, ViT, zero

PEOPLE, VIEWS = 6, 4


class Last(nn.Module):
    """What a recurrent layer says at last: in its first state, which is 0 for all rows, nobody moves anything."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.layer = nn.GRU(3, 4, batch_first=batch_first)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x)[0][:, -1]
        return found


class Positions(nn.Module):
    """Looks positions up for each row, which are the same for all."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x + self.table(torch.arange(5).expand(len(x), -1))).mean(1)
        return found


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), (5,)),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
        ),
        (2, 6, 6),
    ),
    "recurrent": (lambda: nn.Sequential(Last(), nn.Linear(4, 3)), (5, 3)),
    "vit": (lambda: ViT(), (3, 8, 8)),
    "positions": (lambda: Positions(), (5, 4)),
    "zero_head": (lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), zero(nn.Linear(8, 3))), (5,)),
    "zero_norm": (
        lambda: nn.Sequential(nn.Linear(5, 8), Beside(zero(nn.LayerNorm(8)), nn.Linear(8, 8)), nn.Linear(8, 3)),
        (5,),
    ),
    "from_zeros": (lambda: zero(nn.Linear(5, 3)), (5,)),
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


def test_recurrent_layers_that_take_rows_for_times_are_refused() -> None:
    clipper = Clipper(Views(Last(batch_first=False)), 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match="calls other functions"):
        clipper.model(torch.randn(PEOPLE, VIEWS, 5, 3))


def in_turns(people: int, views: int, seed: int) -> Tensor:
    """View by view instead of person by person."""
    return torch.arange(people * views).view(views, people).T.flatten()


def out_of_turns(people: int, views: int, seed: int) -> Tensor:
    """Person by person instead of view by view."""
    return torch.arange(people * views).view(people, views).T.flatten()


def mixed(people: int, views: int, seed: int) -> Tensor:
    return torch.randperm(people * views, generator=torch.Generator().manual_seed(seed))


def exchanged(people: int, views: int, seed: int) -> Tensor:
    """In a single view two people change places, the others stay."""
    order, view = torch.arange(people * views).view(people, views), seed % views
    order[[0, -1], view] = order[[-1, 0], view]
    return order.flatten()


def reversed_people(people: int, views: int, seed: int) -> Tensor:
    return torch.arange(people * views).view(people, views).flip(0).flatten()


def within(people: int, views: int, seed: int) -> Tensor:
    """Each person's rows stay that person's, in another order."""
    order = torch.randperm(views, generator=torch.Generator().manual_seed(seed))
    return torch.arange(people * views).view(people, views)[:, order].flatten()


class Arranged(nn.Module):
    """Rows that nobody moves yet are put into another order before they meet the others.

    Args:
        rows: token (a parameter for each row), zero, norm (layers that return 0), asleep (the order comes before such a
            layer), twice (one behind another), state (zeros behind a layer); or outputs that are not taken apart by
            person: head (which is 0), nothing (0 in another way) and sum (of a head and of what is 0 twice).
        order: Of all rows, by the numbers of people and of views and a seed.
        seed: For it.
    """

    def __init__(self, rows: str, order: Callable[[int, int, int], Tensor], seed: int = 0) -> None:
        super().__init__()
        self.rows, self.order, self.seed = rows, order, seed
        self.token, self.zero, self.norm = nn.Parameter(torch.randn(1, 4)), zero(nn.Linear(4, 4)), zero(nn.LayerNorm(4))
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        people, views = x.shape[:2]
        order = self.order(people, views, self.seed)
        if self.rows == "head":
            return self.zero(self.layer(x)).flatten(0, 1)[order]
        if self.rows == "nothing":
            return (self.layer(x) * 0).flatten(0, 1)[order]
        if self.rows == "sum":
            return self.zero(self.layer(x)).flatten(0, 1) + self.zero(self.norm(self.layer(x)).flatten(0, 1)[order])
        h = self.layer(x.flatten(0, 1))
        made = {
            "token": lambda: self.token.expand(len(h), -1)[order],
            "zero": lambda: self.zero(h)[order],
            "norm": lambda: self.last.weight.T @ self.last(self.norm(h)[order]).T,
            "asleep": lambda: self.zero(h[order]),
            "twice": lambda: self.zero(self.norm(h)[order])[order],
            "state": lambda: self.layer(torch.zeros_like(h))[order],
        }[self.rows]()
        h = h + (made.T if self.rows == "norm" else made)
        found: Tensor = self.last(h.tanh()).unflatten(0, (people, views))
        return found


def by_person(out: Tensor) -> Tensor:
    return out.reshape(PEOPLE, VIEWS, -1).square().add(out.reshape(PEOPLE, VIEWS, -1)).sum((1, 2))


@pytest.mark.parametrize("rows", ["token", "zero", "norm", "asleep", "twice", "state", "head", "nothing", "sum"])
@pytest.mark.parametrize("order", [in_turns, out_of_turns, mixed, exchanged, reversed_people])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_nobody_moves_are_not_taken_for_others(
    rows: str, order: Callable[[int, int, int], Tensor], seed: int
) -> None:
    torch.manual_seed(seed)
    model = Arranged(rows, order, seed)
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match=r"told apart by person|nothing shows whose"):
        clipper.backward(by_person(model(torch.randn(PEOPLE, VIEWS, 4))))
    assert all(not bool(total.any()) for total in clipper.sums.values())


@pytest.mark.parametrize("rows", ["token", "zero", "norm", "asleep", "state", "head"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_nobody_moves_are_their_persons_own(rows: str, seed: int) -> None:
    """Also when they are moved later, and no new probe is made."""
    torch.manual_seed(seed)
    model, x = Arranged(rows, within, seed), torch.randn(PEOPLE, VIEWS, 4)
    clipper = Clipper(model, 1.0, exact_sums=False)
    for trained in (False, True):
        if trained:
            with torch.no_grad():
                for weight in model.parameters():
                    weight.add_(torch.randn_like(weight))
        clipper.clear()
        with clipper:
            clipper.backward(by_person(model(x)))
        wanted = clipped_by_loop(gradients_by_loop(model, lambda m: by_person(m(x))), 1.0)
        for name, value in clipper.gradients().items():
            torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        Arranged("twice", within),
        Arranged("nothing", within),
        Arranged("sum", within),
        Views(nn.Sequential(nn.Linear(4, 4), Arranged("twice", within).zero, nn.Tanh(), zero(nn.Linear(4, 3)))),
    ],
    ids=["behind_another", "nothing", "sum", "two_zeros"],
)
def test_rows_that_neither_data_nor_losses_move_are_refused_with_advice(model: nn.Module) -> None:
    clipper = Clipper(model, 1.0, exact_sums=True)
    with clipper, pytest.raises(NotAllowed, match="nothing shows whose") as caught:
        clipper.model(torch.randn(PEOPLE, VIEWS, 4))
    assert "small random numbers" in str(caught.value)


def test_rows_of_which_only_one_of_each_person_reaches_a_loss_are_refused() -> None:
    """Of the others, which nobody moves, nothing shows whose they are."""
    model = Arranged("token", within)

    def forward(x: Tensor) -> Tensor:
        h = model.layer(x.flatten(0, 1)) + model.token.expand(x.shape[0] * x.shape[1], -1)
        found: Tensor = model.last(h).unflatten(0, x.shape[:2])[:, 0]
        return found

    model.forward = forward  # type: ignore[method-assign]
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="nothing shows whose"):
        model(torch.randn(PEOPLE, VIEWS, 4))


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


def test_outputs_of_which_it_was_assumed_whose_they_are_are_probed_again() -> None:
    """Until somebody moves them, though other outputs are moved."""
    model = Arranged("head", within)
    names = {id(weight): name for name, weight in model.named_parameters()}
    inputs = Inputs.of((torch.randn(PEOPLE, VIEWS, 4),), {})
    assert not probe(model, names, inputs).settled
    with_another = nn.ModuleList([model, nn.Linear(4, 2)])
    with_another.forward = lambda x: (with_another[0](x), with_another[1](x))  # type: ignore[method-assign]
    assert not probe(with_another, names, inputs).settled
    nn.init.ones_(model.zero.weight)
    assert probe(with_another, names, inputs).settled


class Labelled(nn.Module):
    """Returns beside its own rows, made flat, what else a function makes of them, for each row."""

    def __init__(self, say: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.say = nn.Linear(4, 3), say

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.layer(x.flatten(0, 1))
        return h.unflatten(0, x.shape[:2]), self.say(h)


@pytest.mark.parametrize(
    ("say", "settled"),
    [
        (lambda h: torch.arange(VIEWS).repeat(len(h) // VIEWS), True),
        (lambda h: (h * 0).argmax(1), False),
        (lambda h: (h * 0).detach(), False),
        (lambda h: torch.zeros_like(h), False),
    ],
    ids=["numbers", "best", "detached", "as_many"],
)
def test_outputs_that_nobody_ever_moves_are_not_probed_again(say: Callable[[Tensor], Tensor], settled: bool) -> None:
    """Of others nobody knows whose they are until they move, and then that may be in another order."""
    model = Labelled(say)
    names = {id(weight): name for name, weight in model.named_parameters()}
    assert probe(model, names, Inputs.of((torch.randn(PEOPLE, VIEWS, 4),), {})).settled == settled


class Shifted(nn.Module):
    """Adds a number to each row, of which there are as many as rows, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.shift = nn.Linear(4, 3), nn.Parameter(torch.randn(1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x.flatten(0, 1))
        return (h + self.shift.expand(len(h))[:, None]).unflatten(0, x.shape[:2])


def test_numbers_of_rows_that_nobody_moves_may_have_one_dimension() -> None:
    """It was an IndexError."""
    torch.manual_seed(3)
    model, x = Shifted(), torch.randn(PEOPLE, VIEWS, 4)
    with Clipper(model, 1.0, exact_sums=False) as clipper:
        clipper.backward(by_person(model(x)))
    wanted = clipped_by_loop(gradients_by_loop(model, lambda m: by_person(m(x))), 1.0)
    for name, value in clipper.gradients().items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [in_turns, mixed, exchanged])
def test_rows_that_are_shown_by_one_use_are_not_taken_for_others_in_another(order: Callable[..., Tensor]) -> None:
    """What returns 0 is used as it is, and in another order by a layer of zeros, of which nothing comes back."""
    torch.manual_seed(1)
    model, x = Arranged("token", within), torch.randn(PEOPLE, VIEWS, 4)

    def forward(x: Tensor) -> Tensor:
        h = model.layer(x.flatten(0, 1))
        asleep = model.norm(h)
        h = h + asleep + model.zero(asleep[order(len(x), VIEWS, 0)])
        found: Tensor = model.last(h.tanh()).unflatten(0, x.shape[:2])
        return found

    model.forward = forward  # type: ignore[method-assign]
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(by_person(model(x)))
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight))
        with pytest.raises(NotAllowed, match="mixes people"):
            model(x)
