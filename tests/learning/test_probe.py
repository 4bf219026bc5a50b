"""What a probe sees: people who meet, forwards or backwards, and models that keep something of them."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sitr.errors import NotAllowed
from sitr.learning import clipping
from sitr.learning import probe as probing
from sitr.learning.clipping import Clipper
from sitr.learning.oracle import clipped_by_loop, gradients_by_loop
from sitr.learning.probe import Inputs
from tests.learning.models import Beside, length, zero


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


class Asleep(nn.Module):
    """Has layers that return 0 until they are trained, beside others.

    Args:
        run: What it does behind its first layer.
    """

    def __init__(self, run: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.last, self.run = nn.Linear(4, 4), nn.Linear(4, 2), run
        self.norm, self.zero, self.up = zero(nn.LayerNorm(4)), zero(nn.Linear(4, 4)), nn.Parameter(torch.zeros(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.run(self, self.layer(x)))
        return found


def noised(model: nn.Module) -> None:
    """Add noise to all weights, as a step does."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) / 100)


def shown_by_another_use(m: Any, h: Tensor) -> Tensor:
    found: Tensor = m.norm(h)
    return h + found + m.zero(found.flip(0))


@pytest.mark.parametrize(
    "run",
    [
        lambda m, h: h + m.zero(m.norm(h).flip(0)),
        lambda m, h: h + m.zero((h * m.norm.weight).mean(0, keepdim=True) + h * 0),
        lambda m, h: h + m.zero(m.norm(h).flip(0).detach()),
        shown_by_another_use,
    ],
    ids=["turned", "mean", "detached", "shown_by_another_use"],
)
def test_people_who_meet_between_layers_that_return_0_are_refused_once_these_do_not(
    run: Callable[[Any, Tensor], Tensor],
) -> None:
    """Neither data nor gradients show it at first, as neither gets through: that was taken for a proof."""
    torch.manual_seed(1)
    model = Asleep(run)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(model(torch.randn(4, 4)).sum(1))
        before = clipper.sums
        noised(model)
        with pytest.raises(NotAllowed, match="mixes people"):
            model(torch.randn(4, 4))
    assert all(torch.equal(before[name], value) for name, value in clipper.sums.items())


class Nothing(nn.Module):
    """Adds a parameter to what has no columns, so that nothing moves there, and no gradient arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.shift = nn.Linear(4, 2), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x) + (x[:, :0] + self.shift).sum(1, keepdim=True)
        return found


def test_where_there_is_nothing_to_move_nobody_is_waited_for(probes: list[int]) -> None:
    model = Nothing()
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for _ in range(3):
            clipper.backward(model(torch.randn(4, 4)).sum(1))
    assert len(probes) == 1


def lora(m: Any, h: Tensor) -> Tensor:
    return h + h @ m.last.weight.T @ m.up.T


def frozen(model: Asleep) -> Asleep:
    model.up.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("make", "settled"),
    [
        (lambda: Asleep(lambda m, h: h + m.norm(m.zero.bias + h.tanh())), True),
        (lambda: Asleep(lambda m, h: h + m.last(m.norm(h)).sum(1, keepdim=True)), True),
        (lambda: Asleep(lambda m, h: h + m.up[:1, 0] * m.zero(h.tanh())), False),
        (lambda: Asleep(lora), True),
        (lambda: frozen(Asleep(lora)), True),
        (lambda: Asleep(lambda m, h: h + m.zero(m.norm(h))), False),
        (lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), zero(nn.Linear(4, 2))), False),
        (lambda: nn.Sequential(nn.Linear(4, 4), Beside(zero(nn.LayerNorm(4))), zero(nn.Linear(4, 2))), False),
    ],
    ids=["norm_at_an_end", "norm", "scale_and_layer", "lora", "frozen", "two", "head", "norm_and_head"],
)
def test_layers_that_return_0_are_probed_again_until_there_is_noise_on_them_at_most(
    make: Callable[[], nn.Module], settled: bool, probes: list[int]
) -> None:
    """A single one hides nothing: data are seen before it, and gradients behind it."""
    torch.manual_seed(1)
    model = make()
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for _ in range(3):
            clipper.backward(model(torch.randn(4, 4)).sum(1))
        assert len(probes) == (1 if settled else 3)
        noised(model)
        for _ in range(3):
            clipper.backward(model(torch.randn(4, 4)).sum(1))
    assert len(probes) == (1 if settled else 4)


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


class Twofold(nn.Module):
    """Returns its features too where it is asked to, by an argument or by an attribute."""

    def __init__(self, mixing: float = math.inf) -> None:
        super().__init__()
        self.layer, self.head, self.asked, self.mixing = nn.Linear(3, 2), nn.Linear(2, 2), False, mixing

    def forward(self, x: Tensor, features: bool = False) -> Any:
        h = self.layer(x)
        if not (features or self.asked):
            return self.head(h)
        return h, h.tanh() - h.mean(0) if len(h) >= self.mixing else h.tanh()


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many people each probe was of."""
    made: list[int] = []

    def counted(model: nn.Module, names: dict[int, str], inputs: Inputs) -> probing.Findings:
        made.append(inputs.people)
        return probing.probe(model, names, inputs)

    monkeypatch.setattr(clipping, "probe", counted)
    return made


@pytest.mark.parametrize("by", ["argument", "attribute"])
def test_a_model_may_be_called_in_two_ways(by: str, probes: list[int]) -> None:
    """It was refused, as if it mixed people, since more tensors came out than in the probe."""
    torch.manual_seed(2)
    model = Twofold()

    def losses(x: Tensor, asked: bool) -> Tensor:
        model.asked = asked and by == "attribute"
        out = model(x, features=asked) if by == "argument" else model(x)
        assert isinstance(out, tuple) == asked
        return (out[1] if asked else out).sum(1)

    for people in (4, 4, 7, 3, 9):
        for asked in (False, True):
            x, clipper = torch.randn(people, 3), Clipper(model, 1.0, exact_sums=False)
            wanted = clipped_by_loop(gradients_by_loop(model, lambda m, x=x, asked=asked: losses(x, asked)), 1.0)
            with clipper:
                clipper.backward(losses(x, not asked))
                clipper.clear()
                clipper.backward(losses(x, asked))
            for name, value in clipper.gradients().items():
                torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5)
    probes.clear()
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for people in (4, 3, 6, 2):
            for asked in (False, True):
                clipper.backward(losses(torch.randn(people, 3), asked))
    assert len(probes) == 2 if by == "argument" else len(probes) <= 8  # an attribute is seen by what comes out only


@pytest.mark.parametrize("mixing", [1, 5])
@pytest.mark.parametrize("by", ["argument", "attribute"])
def test_people_who_meet_in_one_of_two_ways_are_refused(by: str, mixing: int) -> None:
    model = Twofold(mixing)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(model(torch.randn(7, 3)).sum(1))
        before = clipper.sums
        for people in (5, 7, 8):
            model.asked = by == "attribute"
            with pytest.raises(NotAllowed, match="mixes people"):
                model(torch.randn(people, 3), **({"features": True} if by == "argument" else {}))
            model.asked = False
    assert all(torch.equal(before[name], value) for name, value in clipper.sums.items())


def test_a_pass_that_is_not_like_the_probe_of_its_way_is_refused() -> None:
    """As many tensors come out, made of other calls."""
    model = Twofold()

    def forward(x: Tensor) -> Any:
        ways.append(1)
        h = model.layer(x)
        return (h, h) if len(ways) == 1 else (model.head(h), h)

    with Clipper(model, 1.0, exact_sums=True):
        model(torch.randn(4, 3))
        ways: list[int] = []
        model.forward = forward  # type: ignore[method-assign,assignment]
        with pytest.raises(NotAllowed, match="mixes people"):
            model(torch.randn(4, 3))


class Deep(nn.Module):
    """Goes through a second layer, or not, by an attribute; one tensor comes out either way."""

    def __init__(self, deep: Callable[[Tensor], Tensor], flat: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.head, self.is_deep = nn.Linear(3, 2), nn.Linear(2, 2), True
        self.deep, self.flat = deep, flat

    def forward(self, x: Tensor) -> Tensor:
        self.features = h = self.layer(x)
        return self.deep(self.head(h)) if self.is_deep else self.flat(h)


def same(h: Tensor) -> Tensor:
    return h


def centred(h: Tensor) -> Tensor:
    return h - h.mean(0)


def centred_if_many(h: Tensor) -> Tensor:
    return h - h.mean(0) if len(h) >= 5 else h


@pytest.mark.parametrize("run", [centred, centred_if_many])
@pytest.mark.parametrize("deep_first", [True, False], ids=["fewer_calls", "more_calls"])
def test_people_who_meet_where_other_calls_are_made_are_refused(
    run: Callable[[Tensor], Tensor], deep_first: bool
) -> None:
    """A pass of fewer calls was taken for one like the probe, and one of more was not checked at full size."""
    model = Deep(same, run) if deep_first else Deep(run, same)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for people in (7, 6, 8):
            model.is_deep = deep_first
            clipper.backward(model(torch.randn(7, 3)).sum(1))
            before = clipper.sums
            model.is_deep = not deep_first
            with pytest.raises(NotAllowed, match="mixes people"):
                model(torch.randn(people, 3))
            assert all(torch.equal(before[name], value) for name, value in clipper.sums.items())


def test_a_model_may_make_fewer_calls_and_more(probes: list[int]) -> None:
    torch.manual_seed(2)
    model = Deep(torch.tanh, torch.sin)
    with Clipper(model, 1.0, exact_sums=False) as clipper:
        for people in (4, 7, 3, 7):
            for model.is_deep in (True, False, False):
                x = torch.randn(people, 3)
                clipper.clear()
                clipper.backward(model(x).sum(1))
                clipper.detach()
                wanted = clipped_by_loop(gradients_by_loop(model, lambda m, x=x: m(x).sum(1)), 1.0)
                clipper.attach()
                for name, value in clipper.gradients().items():
                    torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5)
        probes.clear()
        for _ in range(3):
            clipper.backward(model(torch.randn(7, 3)).sum(1))
    assert not probes


def test_losses_are_checked_again_where_other_calls_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    reached, asked = Clipper._reached, []

    def counted(self: Clipper, losses: Tensor, person: int) -> Tensor:
        asked.append(person)
        return reached(self, losses, person)

    monkeypatch.setattr(Clipper, "_reached", counted)
    model = Deep(same, same)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for model.is_deep, times in ((True, 2), (True, 2), (False, 4), (False, 4), (True, 6)):
            clipper.backward(model(torch.randn(4, 3)).sum(1))
            assert len(asked) == times


class Turned(nn.Module):
    """Takes times for people, by an attribute, in which case it goes through a second layer too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head, self.turned = nn.Linear(3, 3), nn.Linear(3, 3), False

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.layer(x.transpose(0, 1))).transpose(0, 1) if self.turned else self.layer(x)
        return found


def test_calls_before_a_probe_is_made_are_taken_apart_as_it_found() -> None:
    """There are as many times as people: gradients of the first layer were taken apart by time."""
    torch.manual_seed(2)
    model, x = Turned(), torch.randn(4, 4, 3)
    with Clipper(model, 1.0, exact_sums=False) as clipper:
        clipper.backward(model(x).sum((1, 2)))
        model.turned = True
        with pytest.raises(NotAllowed, match="did not in the probe"):
            model(x)
        clipper.clear()
        clipper.attach()
        clipper.backward(model(x).sum((1, 2)))  # the probe knows now
    wanted = clipped_by_loop(gradients_by_loop(model, lambda m: m(x).sum((1, 2))), 1.0)
    for name, value in clipper.gradients().items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-5)


class Task(Enum):
    OWN, PAIRS = 1, 2


class Chosen(nn.Module):
    """Mixes people where what it is told beside their data says so."""

    def __init__(self, mixing: Callable[[Any], bool]) -> None:
        super().__init__()
        self.layer, self.mixing = nn.Linear(3, 2), mixing

    def forward(self, x: Tensor, told: Any) -> Tensor:
        h: Tensor = self.layer(x)
        return h - h.mean(0) if self.mixing(told) else h


@pytest.mark.parametrize(
    ("mixing", "own", "pairs"),
    [
        (lambda told: told == "pairs", "own", "pairs"),
        (lambda told: told is Task.PAIRS, Task.OWN, Task.PAIRS),
        (lambda told: told["task"][1] == "pairs", {"task": [1, "own"]}, {"task": [1, "pairs"]}),
        (lambda told: told[0]["pairs"], ({"pairs": False}, 2), ({"pairs": True}, 2)),
        (lambda told: told.count, lambda: Out(None, False), lambda: Out(None, True)),
        (lambda told: "pairs" in told, {"own": None}, {"pairs": None}),
    ],
    ids=["text", "enumeration", "dict", "nested", "dataclass", "key"],
)
def test_people_who_meet_where_a_text_or_a_nest_in_the_call_says_so_are_refused(
    mixing: Callable[[Any], bool], own: Any, pairs: Any
) -> None:
    model = Chosen(mixing)
    own, pairs = (told() if callable(told) and not isinstance(told, Enum) else told for told in (own, pairs))
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(model(torch.randn(4, 3), own).sum(1))
        before = clipper.sums
        with pytest.raises(NotAllowed, match="mixes people"):
            model(torch.randn(4, 3), pairs)
        with pytest.raises(NotAllowed, match="mixes people"):
            model(torch.randn(4, 3), told=pairs)
    assert all(torch.equal(before[name], value) for name, value in clipper.sums.items())


def test_numbers_in_the_call_are_no_other_way(probes: list[int]) -> None:
    """They may change at every call, as may the length of a list that has one for each person."""
    model = Chosen(lambda told: False)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for told in ([1, 2, 3], [4, 5], [], [[1], [2, 3]], [2.5]):
            clipper.backward(model(torch.randn(4, 3), told).sum(1))
    assert len(probes) == 1


def test_ways_to_call_a_model_are_forgotten_some_time(monkeypatch: pytest.MonkeyPatch, probes: list[int]) -> None:
    """A text may be another in each call."""
    monkeypatch.setattr(clipping, "MOST_WAYS", 3)
    model = Chosen(lambda told: False)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        for told in ("a", "b", "c", "b", "d", "e", "e", "a"):
            clipper.backward(model(torch.randn(4, 3), told).sum(1))
            assert len(clipper._tried) <= 3
    assert len(probes) == 6


def test_another_number_of_tensors_for_more_people_is_refused() -> None:
    model = Saying(lambda h: (h, h) if len(h) > 5 else h)
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="mixes people"):
        model(torch.randn(6, 3))


@dataclass
class Out:
    logits: Any
    count: int = 0


class Saying(nn.Module):
    """Says what a function makes of its features, which are also left on it."""

    def __init__(self, say: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.say = nn.Linear(3, 2), say

    def forward(self, x: Tensor) -> Any:
        self.features = self.layer(x)
        return self.say(self.features)


@pytest.mark.parametrize(
    "say", [lambda h: Out(h - h.mean(0)), lambda h: [Out({"h": h - h.mean(0)})]], ids=["dataclass", "nested"]
)
def test_people_who_meet_in_a_dataclass_are_refused(say: Callable[[Tensor], Any]) -> None:
    model = Saying(say)
    with Clipper(model, 1.0, exact_sums=True) as clipper, pytest.raises(NotAllowed, match="mixes people"):
        model(torch.randn(4, 3))
    assert length(clipper.sums) == 0


def test_a_dataclass_is_taken_and_its_losses_are_checked() -> None:
    model = Saying(Out)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(model(torch.randn(4, 3)).logits.sum(1))
        assert length(clipper.sums) > 0
        logits = model(torch.randn(5, 3)).logits
        with pytest.raises(NotAllowed, match="depends on what the model says of others"):
            clipper.backward((logits - logits.mean(0)).square().sum(1))


def test_people_who_meet_in_what_is_no_field_are_refused() -> None:
    def say(h: Tensor) -> Out:
        out = Out(h)
        out.probs = h * h.detach().mean(0)  # type: ignore[attr-defined]
        return out

    model = Saying(say)
    with Clipper(model, 1.0, exact_sums=True) as clipper, pytest.raises(NotAllowed, match="mixes people"):
        model(torch.randn(4, 3))
    assert length(clipper.sums) == 0


class Columns(nn.Module):
    """One column is the index of a category."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(3, 2), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(torch.cat([x[:, :1], self.table(x[:, 1].long())], 1))
        return found[:, 0]


@pytest.mark.parametrize("people", [1, 6])
def test_a_model_that_fails_on_numbers_that_are_made_up_says_so(people: int) -> None:
    """It was a bare IndexError, which the user's own numbers do not raise."""
    model = Columns()
    x = torch.cat([torch.randn(people, 1), 2.0 - torch.arange(people)[:, None] % 3], 1)
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        with pytest.raises(NotAllowed, match="failed on numbers that were made up") as caught:
            model(x)
        assert "integer tensor" in str(caught.value)
        assert isinstance(caught.value.__cause__, IndexError)
        with pytest.raises(IndexError):  # the user's own number
            model(torch.full((3, 2), 7.0))
    assert length(clipper.sums) == 0


class Taking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, rows: Out) -> Tensor:
        found: Tensor = self.layer(rows.logits - rows.logits.mean(0) * rows.count)
        return found


def test_people_in_a_dataclass_are_given_other_data() -> None:
    model = Taking()
    with Clipper(model, 1.0, exact_sums=True) as clipper:
        clipper.backward(model(Out(torch.randn(4, 3))).sum(1))
        assert length(clipper.sums) > 0
        with pytest.raises(NotAllowed, match="mixes people"):
            model(Out(torch.randn(5, 3), count=1))


@pytest.mark.parametrize("people", [1, 4])
@pytest.mark.parametrize("coupled", [False, True])
def test_what_comes_out_in_something_closed_is_refused(people: int, coupled: bool) -> None:
    model = Saying(lambda h: SimpleNamespace(h=h - h.mean(0) if coupled else h))
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="returns a SimpleNamespace"):
        model(torch.randn(people, 3))


def test_what_comes_out_in_something_closed_only_after_the_probe_is_refused() -> None:
    model = Saying(lambda h: h)
    with Clipper(model, 1.0, exact_sums=True):
        model(torch.randn(4, 3))
        for say, words in (
            (lambda h: SimpleNamespace(h=h), "returns a SimpleNamespace"),
            (lambda h: (h, h - h.mean(0)), "mixes people"),
            (lambda h: h.T.contiguous(), "mixes people"),
        ):
            model.say = say
            with pytest.raises(NotAllowed, match=words):
                model(torch.randn(3, 3))
            model.say = lambda h: h


@pytest.mark.parametrize("say", [lambda h: None, lambda h: {}, lambda h: [torch.ones(3)]])
def test_a_model_of_which_nothing_comes_out_for_anybody_is_refused(say: Callable[[Tensor], Any]) -> None:
    model = Saying(say)
    with Clipper(model, 1.0, exact_sums=True) as clipper, pytest.raises(NotAllowed, match="belongs to people"):
        model(torch.randn(4, 3))
    assert length(clipper.sums) == 0


class Unbound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.randn(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.p.expand(len(x), 2).unbind(0)[0]


def test_another_number_of_results_is_refused() -> None:
    """It was a bare ValueError of zip."""
    model = Unbound()
    with Clipper(model, 1.0, exact_sums=True), pytest.raises(NotAllowed, match="another number of tensors"):
        model(torch.randn(4, 2))


def test_copies_are_let_go_before_the_backward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as large as all that the model computes of a few rows, in each run."""
    held: list[weakref.ref[Tensor]] = []
    seen, check, checked = probing._seen, probing._check_backward, []

    def spied(*args: Any) -> probing.Run:
        run = seen(*args)
        held.extend(weakref.ref(x) for sight in run.sightings for x in sight.all if x is not None)
        return run

    def checked_then(*args: Any) -> None:
        checked.append(sum(ref() is not None for ref in held))
        check(*args)

    monkeypatch.setattr(probing, "_seen", spied)
    monkeypatch.setattr(probing, "_check_backward", checked_then)
    model = Between(torch.tanh)
    with Clipper(model, 1.0, exact_sums=True):
        model(torch.randn(4, 3))
    assert held
    assert checked == [0]
