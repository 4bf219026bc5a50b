"""Runs: one draw, one noisy update; what is wrong is refused, and what is refused early costs nothing."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chi2
from torch import Tensor, nn

from sitr.accounting import Event, Laplace
from sitr.errors import AlreadyAnswered, AlreadySpent, BudgetExceeded, InvalidArgument, NotAllowed, UnknownName
from sitr.learning import Run, Views, attach
from sitr.learning import run as run_module
from sitr.learning.noise import CELLS
from sitr.learning.pieces import Kept
from sitr.ledger import Budget, Ledger
from tests.learning.loops import FALSE_ALARM, N, attached, data, made, model_and_optimizer, off_white, trained


class Fixed:
    """Draws the same examples in every step."""

    def __init__(self, places: Any) -> None:
        self.places = np.array(places, dtype=np.int64)

    def draw(self, step: int) -> Any:
        return self.places


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets a test say who is drawn."""

    def draw(places: Any) -> None:
        monkeypatch.setattr(run_module, "sampler_of", lambda *args, **more: Fixed(places))

    return draw


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("memory://") as opened:
        opened.create_budget("clinic", Budget(epsilon=3.0, delta=1e-4))
        yield opened


def charged(ledger: Ledger, plan: Any = None, operation: str = "model-1", **more: Any) -> Run:
    return attached(plan, ledger=ledger, dataset="clinic", analyst="amina", operation=operation, **more)


def clipped_sum(model: nn.Module, x: Tensor, y: Tensor, bound: float) -> list[Tensor]:
    """The sum of clipped gradients, one example at a time."""
    total = [torch.zeros_like(weight) for weight in model.parameters()]
    for one, label in zip(x, y, strict=True):
        loss = F.cross_entropy(model(one[None]), label[None])
        found = torch.autograd.grad(loss, list(model.parameters()))
        norm = math.sqrt(sum(float((part**2).sum()) for part in found))
        total = [part + min(1, bound / norm) * other for part, other in zip(total, found, strict=True)]
    return total


class TestLoop:
    def test_leaves_model_and_optimizer_the_objects_they_are(self) -> None:
        model, optimizer = model_and_optimizer()
        kinds, names = (type(model), type(optimizer)), list(model.state_dict())
        run = trained(attach(model, optimizer, made()))
        assert (run.model, run.optimizer) == (model, optimizer)
        assert (type(model), type(optimizer)) == kinds
        assert list(model.state_dict()) == names
        assert all(weight.requires_grad for weight in model.parameters())
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        assert run.done == 6

    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_is_the_clipped_sum_over_the_expected_batch(self, drawn: Any, noise: str) -> None:
        """Three examples are drawn and ten expected; noise of 0.01 a coordinate, of which none is beyond seven σ."""
        drawn([3, 1, 4])
        x, y = data()
        model, _ = model_and_optimizer()
        wanted = clipped_sum(model, x[[3, 1, 4]], y[[3, 1, 4]], 0.3)
        run = attach(
            model,
            torch.optim.SGD(model.parameters(), lr=0.0),
            made(noise_multiplier=0.01, max_grad_norm=0.3, noise=noise),
        )
        for step in run.steps((x, y)):
            for inputs, labels in step:
                step.backward(F.cross_entropy(model(inputs), labels, reduction="none"))
            break
        for weight, total in zip(model.parameters(), wanted, strict=True):
            assert weight.grad is not None
            assert torch.allclose(weight.grad, total / 10, atol=7 * 0.01 * 0.3 / 10 + 1e-6)

    def test_overwrites_gradients(self, drawn: Any) -> None:
        """A gradient that somebody left is not mixed with the noisy one, nor does a frozen weight keep one."""
        drawn([])
        model, _ = model_and_optimizer()
        frozen = model[0].bias
        frozen.requires_grad_(False)
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), made(noise_multiplier=0.01))
        for weight in model.parameters():
            weight.grad = torch.full_like(weight, 1e6)
        trained(run)
        assert frozen.grad is None
        assert all(float(weight.grad.abs().max()) < 1 for weight in run.clipper.parameters.values())

    @pytest.mark.parametrize("microbatch", [1, 3, 7, 100])
    def test_micro_batches_change_nothing(self, drawn: Any, monkeypatch: pytest.MonkeyPatch, microbatch: int) -> None:
        """T20: the sums of one step, whole and in parts."""
        drawn(range(20))
        found: list[dict[str, Tensor]] = []
        model, _ = model_and_optimizer()
        noisy = run_module.StepNoise.on_sums

        def seen(self: Any, sums: dict[str, Tensor]) -> dict[str, Tensor]:
            found.append(dict(sums))
            return noisy(self, sums)

        monkeypatch.setattr(run_module.StepNoise, "on_sums", seen)
        for most in (None, microbatch):
            run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), made(steps=1))
            trained(run, microbatch=most)
        for name, whole in found[0].items():
            assert (whole - found[1][name]).abs().max() * run.clipper.grid <= 1e-5

    def test_empty_draws_are_steps(self, drawn: Any) -> None:
        """T15: nobody is drawn, and the model is updated by noise alone."""
        drawn([])
        run = attached()
        before = [weight.detach().clone() for weight in run.model.parameters()]
        seen = []
        for step in run.steps(data()):
            seen.extend(step)
        assert run.done == 6
        assert seen == []
        assert all(not torch.equal(weight, old) for weight, old in zip(run.model.parameters(), before, strict=True))

    @pytest.mark.statistical
    @pytest.mark.parametrize("options", [{}, {"noise": "float"}, {"sampling": "shuffle"}])
    def test_noise_of_a_step_is_that_of_the_plan(self, drawn: Any, options: dict[str, Any]) -> None:
        """Gradients of empty draws are noise: Σ (g batch/σC)² over 26 weights and 100 steps is χ²."""
        drawn([])
        values: list[Tensor] = []
        for _ in range(100 // 4):
            run = attached(made(steps=4, **options))
            trained(run, after=lambda run: values.extend(weight.grad.flatten() for weight in run.model.parameters()))
        flat = torch.cat(values).double() * 10 / 2.0
        total = float((flat**2).sum())
        assert chi2.ppf(FALSE_ALARM / 2, flat.numel()) < total < chi2.isf(FALSE_ALARM / 2, flat.numel())

    def test_noise_does_not_follow_the_seed_of_torch(self) -> None:
        """T11: two runs of one seed, from the same weights, end apart."""
        ends = []
        for _ in range(2):
            torch.manual_seed(7)
            ends.append(trained(attached()).model[0].weight.detach().clone())
        assert not torch.equal(ends[0], ends[1])

    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_sums_and_noise_are_wider_than_the_weights(
        self, drawn: Any, noise: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """T12: weights in bf16, of which gradients take the type behind the noise."""
        drawn([1, 2, 3])
        kinds: set[torch.dtype] = set()
        noisy = run_module.StepNoise.on_sums

        def seen(self: Any, sums: dict[str, Tensor]) -> dict[str, Tensor]:
            found = noisy(self, sums)
            kinds.update(one.dtype for one in (*sums.values(), *found.values()))
            return found

        monkeypatch.setattr(run_module.StepNoise, "on_sums", seen)
        model = model_and_optimizer()[0].bfloat16()
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made(noise=noise))
        trained(run, (data()[0].bfloat16(), data()[1]))
        assert kinds == ({torch.int64, torch.float64} if noise == "exact" else {torch.float32})
        assert {weight.grad.dtype for weight in model.parameters() if weight.grad is not None} == {torch.bfloat16}

    def test_is_repeatable_only_where_it_says_so(self) -> None:
        ends = []
        for _ in range(2):
            torch.manual_seed(7)
            run = attached(unsafe_seed=3)
            assert not run.private
            assert "NOT PRIVATE" in run.explain()
            ends.append(trained(run).model[0].weight.detach().clone())
        assert torch.equal(ends[0], ends[1])

    @pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
    def test_datasets_are_collated(self, sampling: str) -> None:
        x, y = data()
        pairs = [(x[place], int(y[place])) for place in range(N)]
        for examples in (pairs, torch.utils.data.TensorDataset(x, y), [x, y]):
            assert trained(attached(made(steps=4, sampling=sampling)), examples, microbatch=4).done == 4

    def test_shuffled_passes_see_everyone_once(self) -> None:
        run, seen = attached(made(steps=8, sampling="shuffle")), []
        x = torch.arange(N).float()[:, None].repeat(1, 3)
        for step in run.steps((x, data()[1]), microbatch=4):
            for inputs, labels in step:
                seen.extend(inputs[:, 0].tolist())
                step.backward(F.cross_entropy(run.model(inputs / N), labels, reduction="none"))
        assert sorted(seen[:N]) == sorted(seen[N:]) == list(range(N))

    def test_may_be_left_between_steps(self) -> None:
        run = attached()
        for step in run.steps(data()):
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
            if run.done == 2:
                break
        assert run.done == 2
        assert trained(run).done == 6
        assert list(run.steps(data())) == []

    def test_scheduler_steps_behind_the_optimizer(self) -> None:
        model, optimizer = model_and_optimizer()
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        trained(attach(model, optimizer, made()), after=lambda run: scheduler.step())
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01 * 0.1**6)


class TestBadUse:
    def test_batches_that_sums_do_not_hold_are_refused_before_any_is_drawn(self) -> None:
        """Else an error would tell how many were drawn, or that there are so many."""
        for batch in (16_000, 14_600):
            large = made(n=10**6, batch=batch, noise="float", steps=1000)
            with pytest.raises(InvalidArgument, match="more than 16,384 people"):
                attached(large)
        attached(made(n=10**6, batch=14_400, noise="float", steps=1000))

    def fails(self, use: Any, match: str, run: Run | None = None, examples: Any = None) -> Run:
        run = run or attached(made(batch=N))
        with pytest.raises(InvalidArgument, match=match):  # noqa: PT012
            for step in run.steps(data() if examples is None else examples, microbatch=20):
                use(run, step)
        assert not any(module._forward_hooks for module in run.model.modules())
        return run

    def test_backward_is_not_called(self) -> None:
        self.fails(lambda run, step: list(step), "without step.backward")

    def test_backward_is_called_twice(self) -> None:
        def twice(run: Run, step: Any) -> None:
            for x, y in step:
                for _ in range(2):
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))

        self.fails(twice, "called twice")

    def test_backward_is_called_outside(self) -> None:
        self.fails(lambda run, step: step.backward(torch.ones(20, requires_grad=True)), "outside of one")

    @pytest.mark.parametrize(
        ("losses", "match"),
        [
            (lambda out, y: F.cross_entropy(out, y), "reduced to one number"),
            (lambda out, y: F.cross_entropy(out, y, reduction="none")[:-1], "not one loss for each"),
            (lambda out, y: F.cross_entropy(out, y)[None], "not one loss for each"),
            (lambda out, y: out, "not one loss for each"),
            (lambda out, y: F.cross_entropy(out, y, reduction="none").detach(), "no gradient"),
            (lambda out, y: F.cross_entropy(out, y, reduction="none").tolist(), "no tensor"),
            (lambda out, y: y, "no tensor of real numbers"),
        ],
    )
    def test_losses_are_wrong(self, losses: Any, match: str) -> None:
        def wrong(run: Run, step: Any) -> None:
            for x, y in step:
                step.backward(losses(run.model(x), y))

        self.fails(wrong, match)

    def test_step_is_left_early(self) -> None:
        def left(run: Run, step: Any) -> None:
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                break

        run = self.fails(left, "left before its last micro-batch")
        assert run.done == 1, "it is paid for, and counts as made"
        assert trained(run).done == 6

    def test_step_is_not_gone_through(self) -> None:
        self.fails(lambda run, step: None, "left before its last micro-batch")

    def test_step_is_gone_through_twice(self) -> None:
        def twice(run: Run, step: Any) -> None:
            for _ in range(2):
                for x, y in step:
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))

        self.fails(twice, "gone through twice")

    @pytest.mark.parametrize(
        ("examples", "match"),
        [
            (data(N - 1), "do not have n=40"),
            ((data()[0], data(N + 1)[1]), "do not have n=40"),
            (torch.tensor(1.0), "do not have n=40"),
            (torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data())), "says itself which examples"),
            (iter([]), "cannot be read by number"),
            ("examples", "cannot be read by number"),
        ],
    )
    def test_data_are_others(self, examples: Any, match: str) -> None:
        self.fails(lambda run, step: None, match, examples=examples)

    def test_loops_are_nested(self) -> None:
        run = attached()
        for _ in run.steps(data()):
            with pytest.raises(InvalidArgument, match="in its loop already"):
                run.steps(data())
            break
        first, second = run.steps(data()), run.steps(data())
        next(first)
        with pytest.raises(InvalidArgument, match="in its loop already"):
            next(second)

    def test_loop_was_broken_after_a_second_was_asked_for(self) -> None:
        run = attached()
        first, second = run.steps(data()), run.steps(data())
        run.optimizer.step = lambda: 1 / 0  # type: ignore[method-assign,assignment]
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            for step in first:
                for x, y in step:
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
        first.close()  # type: ignore[attr-defined]
        with pytest.raises(InvalidArgument, match="interrupted while"):
            next(second)

    @pytest.mark.parametrize("use", ["backward", "next", "iter"])
    def test_step_was_left_before_another(self, drawn: Any, use: str) -> None:
        """Nobody comes into the sum of a later step by an earlier one, nor is an update made by it."""
        drawn(range(8))
        run = attached(made(batch=N))
        for old in run.steps(data(), microbatch=4):
            begun = iter(old)
            if use != "iter":
                x, y = next(begun)
                old.backward(F.cross_entropy(run.model(x), y, reduction="none"))
            break
        begun.close() if use == "backward" else None  # type: ignore[attr-defined]
        done = run.done
        for step in run.steps(data(), microbatch=4):
            for x, y in step:
                losses = F.cross_entropy(run.model(x), y, reduction="none")
                with pytest.raises(InvalidArgument, match="was left"):
                    old.backward(losses) if use == "backward" else next(begun)
                break
            break
        assert run._people == 0
        assert run.done == done + 1

    def test_another_run_is_within_a_step_of_the_model(self, drawn: Any) -> None:
        drawn(range(8))
        model, optimizer = model_and_optimizer()
        first, second = (attach(model, optimizer, made(batch=N)) for _ in range(2))
        for step in first.steps(data()):
            for _ in step:
                with pytest.raises(InvalidArgument, match="a step of another run"):
                    trained(second)
                break
            break
        assert trained(second).done == 6

    @pytest.mark.parametrize("moment", ["within", "behind", "outside"])
    def test_process_is_another(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
    ) -> None:
        """As in the child of a fork: it makes no step, and leaves the charge and the checkpoint as they are."""
        run = charged(ledger, checkpoint=tmp_path / "run")
        loop = run.steps(data())
        for step in loop:
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
            if run.done == 2:
                break
        if moment == "outside":
            loop.close()  # type: ignore[attr-defined]
        step = next(loop, None)  # type: ignore[assignment]
        before, model = (tmp_path / "run").read_bytes(), [weight.detach().clone() for weight in run.model.parameters()]
        with monkeypatch.context() as child:
            child.setattr(run_module.os, "getpid", lambda: 1)
            with pytest.raises(InvalidArgument, match="another process"):  # noqa: PT012
                if moment == "within":
                    for x, y in step:
                        step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                if moment == "behind":
                    step.state = "done"
                    next(loop)
                trained(run)
            loop.close()  # type: ignore[attr-defined]
        assert (run.done, (tmp_path / "run").read_bytes()) == (2, before)
        assert all(torch.equal(weight, old) for weight, old in zip(run.model.parameters(), model, strict=True))

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_run_is_copied(self, copied: Any) -> None:
        with pytest.raises(InvalidArgument, match="cannot be copied"):
            copied(attached())

    def test_optimizer_has_others(self) -> None:
        model, _ = model_and_optimizer()
        other = nn.Linear(2, 2)
        both = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
        with pytest.raises(InvalidArgument, match="not of the model"):
            attach(model, both, made())
        with pytest.raises(InvalidArgument, match=r"does not have '0\.weight'"):
            attach(model, torch.optim.SGD(model[2].parameters(), lr=0.1), made())

    def test_nothing_is_trainable(self) -> None:
        model, optimizer = model_and_optimizer()
        model.requires_grad_(False)
        with pytest.raises(InvalidArgument, match="trainable"):
            attach(model, optimizer, made())

    def test_arguments_are_others(self) -> None:
        model, optimizer = model_and_optimizer()
        with pytest.raises(InvalidArgument, match="is no TrainingPlan"):
            attach(model, optimizer, {"epsilon": 1.0})  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="is no Module"):
            attach(optimizer, model, made())  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="LBFGS"):
            attach(model, torch.optim.LBFGS(model.parameters()), made())
        with pytest.raises(InvalidArgument, match="no ledger"):
            attach(model, optimizer, made(), dataset="clinic")

    def test_examples_mix(self, ledger: Ledger) -> None:
        """Batch coupling is found in the first step, before noise is drawn, and what was charged is given back."""
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(NotAllowed):  # noqa: PT012
            plan = made(batch=N, noise_multiplier=5.0)
            run = attach(model, optimizer, plan, ledger=ledger, dataset="clinic", analyst="a", operation="m")
            trained(run)
        assert ledger.spent("clinic").value == 0

    def test_values_are_not_finite(self) -> None:
        """T13: an example that is no number adds nothing, and the model stays finite."""
        x, y = data()
        x[3], x[5] = math.nan, math.inf
        run = trained(attached(made(batch=N)), (x, y))
        assert all(bool(weight.isfinite().all()) for weight in run.model.parameters())

    def test_a_micro_batch_that_failed_halfway_is_not_added_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who takes a smaller graph and tries again after "out of memory" added what was added already."""
        run, tried = attached(), []

        def failing(piece: Kept, sums: Tensor, factors: Tensor) -> None:
            tried.append(piece)
            if len(tried) == 2:
                raise RuntimeError("out of memory")
            add(piece, sums, factors)

        add = Kept.add
        monkeypatch.setattr(Kept, "add", failing)
        for step in run.steps(data()):
            for x, y in step:
                with pytest.raises(RuntimeError, match="out of memory"):
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                with pytest.raises(InvalidArgument, match="failed halfway"):
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                break
            break
        assert len(tried) == 2

    def test_losses_that_are_refused_count_for_nothing(self) -> None:
        run, other = attached(made(loss_bound=1.0)), nn.Linear(3, 2)
        for step in run.steps(data()):
            for x, y in step:
                with pytest.raises(InvalidArgument):
                    step.backward(F.cross_entropy(other(x), y, reduction="none"))
                assert (run._people, run._loss_cells) == (0, 0)
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                assert run._people == len(x)
            break


class TestLedger:
    def test_attach_spends_nothing(self, ledger: Ledger) -> None:
        run = charged(ledger)
        assert "before the first step" in run.explain()
        run.steps(data())
        assert ledger.spent("clinic").value == 0
        assert run.charged == "not charged yet"

    def test_the_plan_is_one_entry(self, ledger: Ledger) -> None:
        """ε of the run is that of the accountant on what the ledger holds."""
        run = trained(charged(ledger))
        kinds = [entry.kind for entry in ledger.entries() if entry.operation == "model-1"]
        assert kinds == ["reserve", "start", "commit"]
        reserved = next(entry for entry in ledger.entries() if entry.kind == "reserve")
        event = Event.from_dict(reserved.record["event"])
        assert event == run.plan.event
        assert float(run.spent().whole) == float(event.epsilon(1e-5)) == float(run.spent().so_far)
        assert ledger.name_of(reserved) in str(run.spent())
        assert ledger.verify().valid
        (line,) = ledger.releases()
        assert line.question == "train a model: 6 steps on batches of 10 of 40 examples (poisson), each for one person"

    def test_without_one_it_is_stamped(self) -> None:
        run = trained(attached())
        assert "not charged" in repr(run)
        assert "not charged" in run.explain()
        assert run.spent().charged == "not charged"

    def test_what_does_not_fit_is_refused(self, ledger: Ledger) -> None:
        run = charged(ledger, made(noise_multiplier=0.3, batch=N))
        before = [weight.detach().clone() for weight in run.model.parameters()]
        with pytest.raises(BudgetExceeded):
            trained(run)
        assert ledger.spent("clinic").value == 0
        assert all(torch.equal(weight, old) for weight, old in zip(run.model.parameters(), before, strict=True))

    def test_training_and_questions_share_a_budget(self, ledger: Ledger) -> None:
        """A plan, then questions, then a refusal."""
        trained(charged(ledger, made(steps=20)))
        asked = 0
        with pytest.raises(BudgetExceeded):  # noqa: PT012
            for _ in range(100):
                with ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina") as grant:
                    grant.commit(42)
                asked += 1
        assert asked >= 1
        with pytest.raises(BudgetExceeded):
            trained(charged(ledger, made(steps=20), operation="model-2"))
        assert ledger.verify().valid
        assert float(ledger.statement("clinic").exact.upper) <= 3.0

    def test_questions_may_come_between_steps(self, ledger: Ledger) -> None:
        def ask(run: Run) -> None:
            with ledger.reserve("clinic", Laplace(noise_multiplier=50), analyst="omar") as grant:
                grant.commit(run.done)

        trained(charged(ledger), after=ask)
        assert ledger.verify().valid
        assert len(ledger.releases()) == 7

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda step, losses: step.backward(losses.mean()),
            lambda step, losses: step.backward(losses[:-1]),
            lambda step, losses: None,
            lambda step, losses: 1 / 0,
        ],
    )
    def test_what_is_wrong_before_any_noise_is_given_back(self, ledger: Ledger, wrong: Any) -> None:
        run = charged(ledger, made(batch=N, noise_multiplier=5.0))
        with pytest.raises((InvalidArgument, ZeroDivisionError)):  # noqa: PT012
            for step in run.steps(data()):
                for x, y in step:
                    wrong(step, F.cross_entropy(run.model(x), y, reduction="none"))
        assert ledger.spent("clinic").value == 0
        assert [line.state for line in ledger.releases()] == ["refunded"]
        with pytest.raises(AlreadySpent, match="refunded before"):
            trained(run)
        assert trained(charged(ledger, operation="model-2")).done == 6

    def test_what_is_wrong_later_is_not(self, ledger: Ledger) -> None:
        run = charged(ledger, made(batch=N, noise_multiplier=5.0))
        with pytest.raises(InvalidArgument, match="reduced"):  # noqa: PT012
            for step in run.steps(data()):
                for x, y in step:
                    losses = F.cross_entropy(run.model(x), y, reduction="none")
                    step.backward(losses if run.done < 2 else losses.mean())
        assert run.done == 3, "two steps, and one that counts as made"
        assert [line.state for line in ledger.releases()] == ["started"]
        assert trained(run).done == 6
        assert [line.state for line in ledger.releases()] == ["committed"]

    def test_an_operation_runs_once(self, ledger: Ledger) -> None:
        trained(charged(ledger))
        with pytest.raises(AlreadyAnswered, match="is over"):
            trained(charged(ledger))
        run = charged(ledger, operation="model-2")
        for step in run.steps(data()):
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
            break
        with pytest.raises(AlreadySpent, match="started before"):
            trained(charged(ledger, operation="model-2"))

    def test_two_runs_of_one_operation_have_one_charge(self, ledger: Ledger) -> None:
        """Both are let in before any noise is drawn; then the charge is of the first that draws some."""
        first, second = charged(ledger), charged(ledger)
        loops = first.steps(data()), second.steps(data())
        steps = [next(loop) for loop in loops]
        for x, y in steps[0]:
            steps[0].backward(F.cross_entropy(first.model(x), y, reduction="none"))
        before = [weight.detach().clone() for weight in second.model.parameters()]
        for _ in range(2):
            with pytest.raises(AlreadySpent):  # noqa: PT012
                for step in loops[1] if _ else [steps[1]]:
                    for x, y in step:
                        step.backward(F.cross_entropy(second.model(x), y, reduction="none"))
            loops[1].close()  # type: ignore[attr-defined]
            loops = loops[0], second.steps(data())
        assert (first.done, second.done) == (1, 0)
        assert all(torch.equal(weight, old) for weight, old in zip(second.model.parameters(), before, strict=True))
        assert [line.state for line in ledger.releases()] == ["started"]

    def test_names_are_checked_first(self, ledger: Ledger) -> None:
        with pytest.raises(UnknownName):
            attached(ledger=ledger, dataset="lab", operation="model-1")
        with pytest.raises(InvalidArgument, match="a dataset and an operation"):
            attached(ledger=ledger, dataset="clinic")


class TestAdaptive:
    def trained(self, drawn: Any, places: Any, *, start: float, microbatch: int | None = None, **options: Any) -> Run:
        drawn(places)
        plan = made(clipping="adaptive", batch=N, n=N, noise_multiplier=0.5, max_grad_norm=start, steps=60, **options)
        model, _ = model_and_optimizer()
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), plan)
        return trained(run, microbatch=microbatch)

    @pytest.mark.parametrize("start", [0.01, 100.0])
    @pytest.mark.parametrize("microbatch", [None, 7])
    def test_norm_goes_towards_the_quantile(self, drawn: Any, start: float, microbatch: int | None) -> None:
        """T14: all micro-batches count. A step moves it by e^{±0.1} at most, but for noise of a tenth of that."""
        run = self.trained(drawn, range(N), start=start, microbatch=microbatch)
        assert (run.norm > 20 * start) if start < 1 else (run.norm < start / 20)

    def test_norm_stays_where_it_is_right(self, drawn: Any) -> None:
        x, y = data()
        torch.manual_seed(5)
        run = self.trained(drawn, range(N), start=0.7)
        norms = []
        for place in range(N):
            (loss,) = F.cross_entropy(run.model(x[[place]]), y[[place]], reduction="none")
            found = torch.autograd.grad(loss, list(run.model.parameters()))
            norms.append(math.sqrt(sum(float((part**2).sum()) for part in found)))
        middle = float(np.median(norms))
        assert middle / 1.6 < run.norm < 1.6 * middle

    def test_empty_draws_say_one_half(self, drawn: Any) -> None:
        """T14: nobody is drawn; 60 steps of noise alone, each of deviation 0.2 · 0.05, which add up to ln C."""
        run = self.trained(drawn, [], start=1.0)
        assert abs(math.log(run.norm)) < 7 * 0.2 * 0.5 * 0.1 * math.sqrt(60)

    def test_divides_by_the_expected_batch(self, drawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """T14: ten of forty examples, all under the bound: the share is (1 + 10/40)/2, not 1."""
        monkeypatch.setattr(run_module.StepNoise, "on_number", lambda self, cells: cells / CELLS)
        drawn(range(10))
        run = attached(made(clipping="adaptive", batch=N, max_grad_norm=1e3, steps=1))
        trained(run)
        assert run.norm / 1e3 == pytest.approx(math.exp(-0.2 * (0.625 - 0.5)))

    def test_gradients_are_clipped_at_the_norm_of_the_step(self, drawn: Any) -> None:
        """Sums stay on the grid of the first norm, and come back in the units of the present one."""
        drawn([3])
        x, y = data()
        model, _ = model_and_optimizer()
        plan = made(clipping="adaptive", batch=N, noise_multiplier=0.01, max_grad_norm=1.0, steps=2)
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), plan)
        run._position = run_module.replace(run._position, norm=0.05)
        (wanted,) = [clipped_sum(model, x[[3]], y[[3]], 0.05)]
        for step in run.steps((x, y)):
            for inputs, labels in step:
                step.backward(F.cross_entropy(model(inputs), labels, reduction="none"))
            break
        for weight, total in zip(model.parameters(), wanted, strict=True):
            assert torch.allclose(weight.grad * N, total, atol=7 * 0.011 * 0.05 + 1e-6)


class TestCorrelated:
    @pytest.mark.statistical
    @pytest.mark.parametrize("options", [{}, {"noise": "float"}, {"sampling": "shuffle"}, {"loss_bound": 1.0}])
    def test_noise_over_steps_is_that_of_the_matrix(self, drawn: Any, options: dict[str, Any]) -> None:
        """Gradients of empty draws are w = M⁻¹z: 24 steps of 182 weights, of four runs, which are side by side."""
        drawn([])
        columns = []
        for _ in range(4):
            steps: list[Tensor] = []
            model, _ = model_and_optimizer(20)
            run = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made(bands=4, steps=24, **options))
            for step in run.steps(data(width=20)):
                list(step)
                steps.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
            columns.append(torch.stack(steps).double().numpy() * run.plan.batch / run.noise.scale)
        assert run.plan.correlation is not None
        limit, statistics = off_white(np.concatenate(columns, axis=1), run.plan.correlation.coefficients)
        assert all(abs(one) < limit for one in statistics)
        charged = run.plan.noise_multiplier * math.sqrt(run.plan.correlation.norm_squared)
        assert 1 - 1e-12 <= run.noise.scale / charged < 1.04, "more where a loss is measured, and on the coarser grid"

    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_is_the_clipped_sum_over_the_expected_batch(self, drawn: Any, noise: str) -> None:
        """As without bands; noise of the first step is larger by ‖m‖/m_0, and sums are rounded to a coarser grid."""
        drawn([3, 1, 4])
        x, y = data()
        model, _ = model_and_optimizer()
        wanted = clipped_sum(model, x[[3, 1, 4]], y[[3, 1, 4]], 0.3)
        plan = made(noise_multiplier=0.01, max_grad_norm=0.3, noise=noise, bands=4)
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), plan)
        for step in run.steps((x, y)):
            for inputs, labels in step:
                step.backward(F.cross_entropy(model(inputs), labels, reduction="none"))
            break
        assert plan.correlation is not None
        larger = math.sqrt(plan.correlation.norm_squared) / plan.correlation.coefficients[0]
        for weight, total in zip(model.parameters(), wanted, strict=True):
            assert weight.grad is not None
            assert torch.allclose(weight.grad, total / 10, atol=7 * 0.01 * larger * 0.3 / 10 + 1e-5)

    @pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
    def test_steps_that_the_noise_connects_have_no_example_in_common(self, sampling: str) -> None:
        run = attached(made(steps=24, bands=4, sampling=sampling))
        x, last = torch.arange(N).float()[:, None].repeat(1, 3), np.full(N, -24)
        for number, step in enumerate(run.steps((x, data()[1]), microbatch=4)):
            for inputs, labels in step:
                places = inputs[:, 0].long().numpy()
                assert (number - last[places] >= 4).all()
                last[places] = number
                step.backward(F.cross_entropy(run.model(inputs / N), labels, reduction="none"))
        assert (last >= 0).sum() > N / 2

    def test_goes_on_where_the_loop_was_left_between_steps_and_begins_anew_where_within(self, drawn: Any) -> None:
        """A stream has no row for a step that was left, so that the rows of later ones would be nearer than bands."""
        drawn(range(8))
        run = attached(made(bands=3))

        def go(steps: int, *, within: bool) -> None:
            for step in run.steps(data(), microbatch=4):
                for x, y in step:
                    step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
                    if within and run.done == steps:
                        return
                if run.done == steps:
                    return

        go(2, within=False)
        streams = dict(run.noise._streams)
        assert len(streams) == 4
        go(3, within=False)
        assert all(run.noise._streams[name] is stream for name, stream in streams.items())
        go(3, within=True)
        assert (run.done, run.noise._streams) == (4, {})

    def test_numbers_beside_gradients_cost_nothing_more(self, ledger: Ledger) -> None:
        """Decision 0034: they are coordinates of a block, as they are of a step without bands."""
        plan = made(bands=2, clipping="adaptive", loss_bound=2.0)
        run = trained(charged(ledger, plan))
        assert run.plan.event == made(bands=2).event
        assert len(run.losses) == 6
        assert run.norm != 1.0
        assert float(run.spent().so_far) == float(made(bands=2).epsilon())


class TestPeople:
    """The unit is a person with several examples."""

    def people(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of 40 people some have three examples, some two, and the last has none."""
        return *data(100), torch.arange(100) % (N - 1)

    def losses(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none").view(y.shape).mean(1)

    def test_a_drawn_person_adds_one_clipped_gradient_of_the_mean_loss(self, drawn: Any) -> None:
        """One has three examples, one two: six are each of them equally often. One has none, and adds nothing."""
        drawn([3, 38, N - 1])
        x, y, owners = self.people()
        model, _ = model_and_optimizer()
        wanted = [torch.zeros_like(weight) for weight in model.parameters()]
        for person in (3, 38):
            own = owners == person
            found = torch.autograd.grad(F.cross_entropy(model(x[own]), y[own]), list(model.parameters()))
            norm = math.sqrt(sum(float((part**2).sum()) for part in found))
            wanted = [one + min(1, 0.3 / norm) * part for one, part in zip(wanted, found, strict=True)]
        plan = made(noise_multiplier=0.01, max_grad_norm=0.3)
        run = attach(Views(model), torch.optim.SGD(model.parameters(), lr=0.0), plan)
        for step in run.steps((x, y), people=owners, each=6, microbatch=1):
            for rows, labels in step:
                assert rows.shape == (1, 6, 3)
                step.backward(self.losses(run.model, rows, labels))
            break
        for weight, total in zip(model.parameters(), wanted, strict=True):
            assert weight.grad is not None
            assert torch.allclose(weight.grad, total / 10, atol=7 * 0.01 * 0.3 / 10 + 1e-6)

    def test_a_person_moves_the_sum_by_the_bound_however_many_examples_there_are(
        self, drawn: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Everybody is drawn; then all 21 examples of one are removed. Others have one, so that nothing is chosen."""
        drawn(range(N))
        x, y = data(N + 20)
        owners = torch.cat([torch.arange(N), torch.full((20,), 7)])
        found: list[dict[str, Tensor]] = []
        noisy = run_module.StepNoise.on_sums

        def seen(self: Any, sums: dict[str, Tensor]) -> dict[str, Tensor]:
            found.append({name: one.clone() for name, one in sums.items()})
            return noisy(self, sums)

        monkeypatch.setattr(run_module.StepNoise, "on_sums", seen)
        torch.manual_seed(1)  # one in 25 networks is saturated by all of the first three people alike, and refused
        model, _ = model_and_optimizer()
        for kept in (torch.ones(N + 20, dtype=torch.bool), owners != 7):
            run = attach(Views(model), torch.optim.SGD(model.parameters(), lr=0.0), made(steps=1, batch=N))
            for step in run.steps((100 * x[kept], y[kept]), people=owners[kept], each=5):
                for rows, labels in step:
                    step.backward(self.losses(run.model, rows, labels))
        moved = sum(float(((found[0][name] - found[1][name]).double() ** 2).sum()) for name in found[0])
        assert run.clipper.grid is not None
        assert 0.1 < math.sqrt(moved) * run.clipper.grid <= 1 + 1e-5, "but for last bits of others (decision 0031)"

    def test_owners_that_are_wrong_are_refused_before_anything_is_charged(self, ledger: Ledger) -> None:
        x, y, owners = self.people()
        run = charged(ledger)
        for options in ({"people": owners[:-1]}, {"people": owners + 2}, {"each": 2}, {"people": owners, "each": 0}):
            with pytest.raises(InvalidArgument):
                run.steps((x, y), **options)
        with pytest.raises(InvalidArgument, match="do not have n=40"):
            run.steps((x, y))
        assert ledger.spent("clinic").value == 0


class TestLosses:
    def test_are_measured_privately(self, drawn: Any) -> None:
        """The mean of losses clamped to [0, 1], with noise of a tenth of the batch."""
        drawn(range(N))
        model, _ = model_and_optimizer()
        run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), made(batch=N, loss_bound=1.0))
        trained(run, unsafe_losses=True)
        x, y = data()
        exact = F.cross_entropy(model(x), y, reduction="none").clamp(0, 1).mean().item()
        assert len(run.losses) == len(run.unsafe_losses) == 6
        noise = run.plan.beside_multiplier / N
        assert all(abs(loss - exact) < 7 * noise + 1e-3 for loss in run.losses)
        assert len(set(run.losses)) > 1
        assert run.trace().losses_label == "mean loss, measured privately"

    def test_that_are_not_private_say_so(self) -> None:
        run = trained(attached(), unsafe_losses=True)
        trace = run.trace()
        assert trace.losses.shape == (6,)
        assert trace.losses_label == "mean loss, NOT PRIVATE"
        assert trained(attached()).trace().losses.size == 0
