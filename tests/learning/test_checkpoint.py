"""Checkpoints: runs go on where they were, whatever killed them, and no step is free."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn

from sitr.accounting import Event, compose
from sitr.errors import AlreadyAnswered, AlreadySpent, InvalidArgument, InvalidRecord
from sitr.learning import Run, attach
from sitr.learning.account import Account, Span
from sitr.learning.checkpoint import Checkpoint, Position, State, digest_of, restored, structure_of
from sitr.learning.noise import StepNoise
from sitr.ledger import Budget, Ledger
from tests.learning.killed import STEPS, campaign, collected, faults, tried
from tests.learning.loops import attached, data, made, model_and_optimizer, trained


@pytest.fixture
def ledger() -> Ledger:
    opened = Ledger.open("memory://")
    opened.create_budget("clinic", Budget(epsilon=10.0, delta=1e-4))
    return opened


def charged(ledger: Ledger, path: Path, plan: Any = None, **more: Any) -> Run:
    options = {"dataset": "clinic", "analyst": "amina", "operation": "model", "every": 2, **more}
    return attached(plan, ledger=ledger, checkpoint=path, **options)


def crashed(run: Run, steps: int) -> None:
    """Make some steps, and stop as a process that is killed does: nothing is tidied up."""
    loop = run.steps(data(run.plan.n))
    for step in loop:
        for x, y in step:
            step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
        if run.done == steps:
            break
    run._leave = lambda step: None  # type: ignore[method-assign]
    loop.close()  # type: ignore[attr-defined]


def some_steps(run: Run, steps: int) -> None:
    """Leave the loop in order, after some steps."""
    for step in run.steps(data(run.plan.n)):
        for x, y in step:
            step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
        if run.done == steps:
            break


def read(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer, plan: Any) -> Position:
    return restored(model, optimizer, *checkpoint.read(structure_of(model, optimizer), plan))


def same_state(first: torch.optim.Optimizer, second: torch.optim.Optimizer) -> bool:
    one, other = first.state_dict(), second.state_dict()
    assert one["param_groups"] == other["param_groups"]
    assert one["state"].keys() == other["state"].keys()
    for index, state in one["state"].items():
        assert state.keys() == other["state"][index].keys()
        for name, value in state.items():
            same = other["state"][index][name]
            assert torch.equal(value, same) if isinstance(value, torch.Tensor) else value == same
    return True


class TestFile:
    def test_brings_everything_back(self, tmp_path: Path) -> None:
        checkpoint = Checkpoint(tmp_path / "run")
        run = trained(attached())
        position = Position(4, 6, 123, 0.5, (Span(0, 6), Span(2, 4)), "model")
        checkpoint.write(State.of(run.model, run.optimizer), run.plan, position)
        model, optimizer = model_and_optimizer()
        assert read(checkpoint, model, optimizer, run.plan) == position
        assert digest_of(model) == digest_of(run.model)
        assert same_state(run.optimizer, optimizer)

    @pytest.mark.parametrize(
        "make",
        [
            lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
            lambda weights: torch.optim.AdamW(weights, lr=0.1, betas=(0.8, 0.99)),
            lambda weights: torch.optim.RMSprop(weights, lr=0.1),
            lambda weights: torch.optim.Adagrad(weights, lr=0.1),
        ],
    )
    def test_of_other_optimizers(self, tmp_path: Path, make: Any) -> None:
        model, _ = model_and_optimizer()
        run = trained(attach(model, make(model.parameters()), made()))
        Checkpoint(tmp_path / "run").write(State.of(run.model, run.optimizer), run.plan, Position(4, 6, 1, 1.0))
        again = make(model.parameters())
        read(Checkpoint(tmp_path / "run"), model, again, run.plan)
        assert same_state(run.optimizer, again)

    def test_holds_no_code_and_nothing_of_noise(self, tmp_path: Path, ledger: Ledger) -> None:
        trained(charged(ledger, tmp_path / "run"))
        with safe_open(tmp_path / "run", framework="pt") as file:
            about = json.loads(file.metadata()["sitr"])
            names = set(file.keys())
        assert set(about) == {"groups", "plan", "position", "structure", "values"}
        assert set(about["position"]) == {"done", "until", "order", "norm", "paid", "operation"}
        assert {name.split(".")[0] for name in names} == {"model", "optimizer"}
        assert not (tmp_path / "run.new").exists()

    def test_tied_weights_are_kept(self, tmp_path: Path) -> None:
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        Checkpoint(tmp_path / "run").write(State.of(model, optimizer), made(), Position(0, 1, 1, 1.0))
        before = digest_of(model)
        with torch.no_grad():
            model[0].weight.zero_()
        read(Checkpoint(tmp_path / "run"), model, optimizer, made())
        assert digest_of(model) == before
        assert model[1].weight is model[0].weight

    @pytest.mark.parametrize("content", [b"", b"{}", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", b"PK\x03\x04"])
    def test_that_is_none_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "run").write_bytes(content)
        with pytest.raises(InvalidRecord):
            read(Checkpoint(tmp_path / "run"), *model_and_optimizer(), made())

    def test_needs_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument, match="no file in a folder"):
            Checkpoint(tmp_path / "none" / "run")
        with pytest.raises(InvalidArgument, match="no file in a folder"):
            Checkpoint(tmp_path)

    def test_optimizers_that_cannot_be_kept_are_refused_before_anything_is_spent(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        run = charged(ledger, tmp_path / "run")
        run.optimizer.param_groups[0]["more"] = object()
        with pytest.raises(InvalidArgument, match="cannot be kept"):
            trained(run)
        assert ledger.spent("clinic").value == 0


class TestStructure:
    def test_tells_models_apart(self) -> None:
        model, optimizer = model_and_optimizer()
        same = structure_of(*model_and_optimizer())
        assert structure_of(model, optimizer) == same
        assert structure_of(*model_and_optimizer(4)) != same
        assert structure_of(model, torch.optim.SGD(model.parameters(), lr=0.1)) != same
        model[1] = nn.ReLU()
        assert structure_of(model, optimizer) != same
        model, optimizer = model_and_optimizer()
        model[0].weight.requires_grad_(False)
        assert structure_of(model, optimizer) != same

    def test_numbers_without_dimensions_are_digested(self) -> None:
        model = nn.Linear(2, 2)
        model.register_buffer("count", torch.tensor(3))
        before = digest_of(model)
        model.count += 1  # type: ignore[operator]
        assert digest_of(model) != before

    @pytest.mark.parametrize("change", ["model", "plan", "operation"])
    def test_another_one_is_refused_before_anything_is_spent(self, tmp_path: Path, ledger: Ledger, change: str) -> None:
        crashed(charged(ledger, tmp_path / "run"), 3)
        spent = ledger.spent("clinic").value
        path, before = tmp_path / "run", (tmp_path / "run").read_bytes()
        if change == "model":
            model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
            options = {"dataset": "clinic", "analyst": "amina", "operation": "model", "checkpoint": path}
            run = attach(model, torch.optim.Adam(model.parameters(), lr=0.01), made(), ledger=ledger, **options)
        elif change == "plan":
            run = charged(ledger, path, made(noise_multiplier=3.0))
        else:
            run = charged(ledger, path, operation="other")
        with pytest.raises(InvalidArgument, match=r"is of another|is of operation"):
            trained(run)
        assert ledger.spent("clinic").value == spent
        assert path.read_bytes() == before


class TestResumption:
    def test_charges_what_may_have_run(self, tmp_path: Path, ledger: Ledger) -> None:
        """Checkpoints before steps 0, 2 and 4; killed behind step 5: steps 4 and 5 may have run."""
        first = charged(ledger, tmp_path / "run")
        crashed(first, 5)
        again = charged(ledger, tmp_path / "run")
        made_again: list[int] = []
        trained(again, after=lambda run: made_again.append(run.done))
        assert made_again == [5, 6]
        assert again.paid == (Span(0, 6), Span(4, 6))
        lines = {line.operation: line for line in ledger.releases()}
        assert {name: line.state for name, line in lines.items()} == {
            "model": "started",
            "model/resumed-1": "committed",
        }
        assert lines["model/resumed-1"].question.startswith("train a model again, steps 5 to 6")
        events = [Event.from_dict(entry.record["event"]) for entry in ledger.entries() if entry.kind == "reserve"]
        assert events == [again.plan.event, again.plan.event_between(4, 6)]
        assert float(again.spent().whole) == float(compose(*events).epsilon(1e-5))
        assert ledger.verify().valid

    def test_relies_on_no_file_that_could_not_be_written(self, tmp_path: Path, ledger: Ledger) -> None:
        """The disk is full before step 3, and then is not: no step is made that the file does not know may have run."""
        run = charged(ledger, tmp_path / "run")
        assert run.checkpoint is not None
        write = run.checkpoint.write

        def full(*given: Any) -> None:
            if run.done == 2:
                raise OSError("no space left")
            write(*given)

        run.checkpoint.write = full  # type: ignore[method-assign]
        with pytest.raises(OSError, match="no space"):
            trained(run)
        assert run.done == 2
        run.checkpoint.write = write  # type: ignore[method-assign]
        for step in run.steps(data()):
            kept = run.checkpoint.position()
            assert kept is not None
            assert kept.done <= run.done < kept.until
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
        assert run.done == 6

    def test_goes_on_with_the_same_weights(self, tmp_path: Path, ledger: Ledger) -> None:
        first, digests = charged(ledger, tmp_path / "run"), []
        for step in first.steps(data()):
            for x, y in step:
                step.backward(F.cross_entropy(first.model(x), y, reduction="none"))
            digests.append(digest_of(first.model))
            if first.done == 3:
                break
        again = charged(ledger, tmp_path / "run")
        loop = again.steps(data())
        next(loop)
        assert digest_of(again.model) == digests[2], "it was left between two steps, and kept there"
        assert again.paid == (Span(0, 6), Span(3, 4)), "which costs one step"

    def test_killed_before_any_noise_it_costs_nothing(self, tmp_path: Path, ledger: Ledger) -> None:
        first = charged(ledger, tmp_path / "run")
        loop = first.steps(data())
        next(loop)
        first._leave = lambda step: None  # type: ignore[method-assign]
        loop.close()  # type: ignore[attr-defined]
        assert [line.state for line in ledger.releases()] == ["reserved"]
        again = trained(charged(ledger, tmp_path / "run"))
        assert again.paid == (Span(0, 6),)
        assert [line.state for line in ledger.releases()] == ["committed"]

    def test_goes_on_with_no_ledger_that_does_not_know_it(self, tmp_path: Path, ledger: Ledger) -> None:
        """A run that was resumed once, and then another book: nothing is charged to that, not even the resumption."""
        for _ in range(2):
            crashed(charged(ledger, tmp_path / "run", every=5), 3)
        other = Ledger.open("memory://")
        other.create_budget("clinic", ledger.budget("clinic"))
        with pytest.raises(InvalidArgument, match=r"does not know that operation 'model' was started"):
            trained(charged(other, tmp_path / "run", every=5))
        assert not other.releases()

    def test_killed_twice_it_pays_twice(self, tmp_path: Path, ledger: Ledger) -> None:
        for _ in range(3):
            crashed(charged(ledger, tmp_path / "run", made(steps=20), every=10), 5)
        last = trained(charged(ledger, tmp_path / "run", made(steps=20), every=10))
        assert last.paid == (Span(0, 20), Span(0, 10), Span(0, 10), Span(0, 10))

    def test_wrong_before_any_noise_it_stays_where_it_was(self, tmp_path: Path, ledger: Ledger) -> None:
        """What was charged for the resumption is kept for the next one, in this process and in another."""
        plan = made(batch=40, noise_multiplier=8.0)
        crashed(charged(ledger, tmp_path / "run", plan), 3)
        for run in (charged(ledger, tmp_path / "run", plan), charged(ledger, tmp_path / "run", plan)):
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):  # noqa: PT012
                    for step in run.steps(data()):
                        for _ in step:
                            1 / 0  # noqa: B018
            assert run.done == 2
            assert run.paid == (Span(0, 6), Span(2, 4))
        states = [line.state for line in ledger.releases()]
        assert states == ["started", "reserved"]
        assert trained(charged(ledger, tmp_path / "run", plan)).paid == (Span(0, 6), Span(2, 4))

    def test_of_an_old_copy_is_refused(self, tmp_path: Path, ledger: Ledger) -> None:
        crashed(charged(ledger, tmp_path / "run"), 3)
        old = (tmp_path / "run").read_bytes()
        crashed(charged(ledger, tmp_path / "run"), 5)
        (tmp_path / "run").write_bytes(old)
        spent = ledger.spent("clinic").value
        with pytest.raises(AlreadySpent, match="went on elsewhere"):
            trained(charged(ledger, tmp_path / "run"))
        assert ledger.spent("clinic").value == spent

    def test_of_a_finished_run_is_refused(self, tmp_path: Path, ledger: Ledger) -> None:
        crashed(charged(ledger, tmp_path / "run"), 3)
        old = (tmp_path / "run").read_bytes()
        run = charged(ledger, tmp_path / "run")
        trained(run)
        assert list(charged(ledger, tmp_path / "run").steps(data())) == []
        (tmp_path / "run").write_bytes(old)
        with pytest.raises((AlreadyAnswered, AlreadySpent)):
            trained(charged(ledger, tmp_path / "run"))

    def test_with_another_ledger_is_refused(self, tmp_path: Path, ledger: Ledger) -> None:
        crashed(charged(ledger, tmp_path / "run"), 3)
        other = Ledger.open("memory://")
        other.create_budget("clinic", Budget(epsilon=10.0, delta=1e-4))
        with pytest.raises(InvalidArgument, match="does not know that operation"):
            trained(charged(other, tmp_path / "run"))
        assert other.spent("clinic").value == 0
        with pytest.raises(InvalidArgument, match="is of operation 'model'"):
            trained(attached(checkpoint=tmp_path / "run"))

    @pytest.mark.parametrize("resumed", [False, True])
    @pytest.mark.parametrize(
        ("state", "kind"),
        [("reserved", InvalidArgument), ("refunded", AlreadySpent), ("committed", AlreadyAnswered)],
    )
    def test_with_an_operation_that_is_not_under_way_says_how_it_is(
        self, ledger: Ledger, state: str, kind: type[Exception], resumed: bool
    ) -> None:
        """It said of all of them that the ledger does not know that they were started."""
        plan, account = made(), Account.of(ledger, "clinic", "amina", "model", None)
        paid = account.charge(plan, "none")
        if state == "committed":
            account.start()
            account.commit({})
        elif state == "refunded":
            account.give_back()
        before = (*paid, Span(2, 4)) if resumed else paid
        told = "is over" if state == "committed" and not resumed else state
        with pytest.raises(kind, match=told):
            Account.of(ledger, "clinic", "amina", "model", None).resume(plan, "none", before, Span(4, 6))

    def test_leaves_a_charge_that_only_the_checkpoint_knows_to_be_used(self, tmp_path: Path) -> None:
        """The ledger was put back to before the first step: it would have refunded what steps were made of."""
        path, book = tmp_path / "run", tmp_path / "book.db"
        with Ledger.open(book) as ledger:
            ledger.create_budget("clinic", Budget(epsilon=10.0, delta=1e-4))
            first = charged(ledger, path)
            loop = first.steps(data())
            next(loop)
            first._leave = lambda step: None  # type: ignore[method-assign]
            loop.close()  # type: ignore[attr-defined]
        old = book.read_bytes()
        with Ledger.open(book) as ledger:
            crashed(charged(ledger, path), 3)
        book.write_bytes(old)
        kept = path.read_bytes()
        with Ledger.open(book) as ledger:
            spent = ledger.spent("clinic").value
            run = charged(ledger, path)
            for _ in range(2):
                with pytest.raises(InvalidArgument, match="there it was reserved"):
                    trained(run)
            assert [line.state for line in ledger.releases()] == ["reserved"]
            assert ledger.spent("clinic").value == spent > 0
            assert run.charged == "not charged yet"
        assert path.read_bytes() == kept

    @pytest.mark.parametrize("copied", [False, True])
    def test_ends_the_run_that_it_was_left_by(self, tmp_path: Path, ledger: Ledger, copied: bool) -> None:
        """Two steps, then the rest by another run, from the file or from a copy of it: the first has none left."""
        first = charged(ledger, tmp_path / "run")
        some_steps(first, 2)
        path = tmp_path / ("copy" if copied else "run")
        path.write_bytes((tmp_path / "run").read_bytes())
        assert trained(charged(ledger, path)).paid == (Span(0, 6), Span(2, 3))
        kept, before = path.read_bytes(), digest_of(first.model)
        with pytest.raises(AlreadySpent, match="went on elsewhere"):
            trained(first)
        assert (first.done, digest_of(first.model), path.read_bytes()) == (2, before, kept)

    def test_from_a_copy_ends_a_run_that_goes_on(self, tmp_path: Path, ledger: Ledger) -> None:
        """What the first still makes, up to where it writes its checkpoint, the second has paid for."""
        first = charged(ledger, tmp_path / "run")
        with pytest.raises(AlreadySpent, match="went on elsewhere"):  # noqa: PT012
            for step in first.steps(data()):
                for x, y in step:
                    step.backward(F.cross_entropy(first.model(x), y, reduction="none"))
                if first.done == 3:
                    (tmp_path / "copy").write_bytes((tmp_path / "run").read_bytes())
                    again = trained(charged(ledger, tmp_path / "copy"))
        assert first.done == 4
        assert again.paid == (Span(0, 6), Span(2, 4))

    def test_without_a_ledger_ends_the_run_that_it_was_left_by(self, tmp_path: Path) -> None:
        first = attached(checkpoint=tmp_path / "run")
        some_steps(first, 2)
        trained(attached(checkpoint=tmp_path / "run"))
        with pytest.raises(AlreadySpent, match="the run went on elsewhere"):
            trained(first)

    def test_left_behind_the_last_step_it_is_over(self, tmp_path: Path, ledger: Ledger) -> None:
        run = charged(ledger, tmp_path / "run")
        some_steps(run, 6)
        assert list(run.steps(data())) == []
        assert [line.state for line in ledger.releases()] == ["committed"]

    def test_beside_a_run_that_goes_on_is_refused(self, tmp_path: Path, ledger: Ledger) -> None:
        for _ in charged(ledger, tmp_path / "run").steps(data()):
            with pytest.raises(InvalidArgument, match="another run goes on"):
                trained(charged(ledger, tmp_path / "run"))
            break

    def test_of_shuffled_passes_keeps_their_order(self, tmp_path: Path, ledger: Ledger) -> None:
        plan = made(steps=8, sampling="shuffle", noise_multiplier=8.0)
        first = charged(ledger, tmp_path / "run", plan, every=1, dataset="clinic")
        ledger.create_budget("shuffled", Budget(epsilon=10.0, delta=1e-4, adjacency="replace_one"))
        first.account = replace(first.account, dataset="shuffled")  # type: ignore[type-var]
        crashed(first, 2)
        again = charged(ledger, tmp_path / "run", plan, every=1, dataset="shuffled")
        next(again.steps(data()))
        assert again._position.order == first._position.order
        assert again.paid[-1] == Span(1, 2)

    @pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
    def test_of_correlated_noise_begins_a_stream_and_pays_for_the_turns_made_again(
        self, tmp_path: Path, ledger: Ledger, sampling: str
    ) -> None:
        """Decision 0034: groups and places go on, nothing of the noise is kept; four steps are two turns, or a pass."""
        plan = made(steps=12, bands=3, sampling=sampling, noise_multiplier=8.0)
        ledger.create_budget("shuffled", Budget(epsilon=10.0, delta=1e-4, adjacency="replace_one"))
        options = {"every": 4, "dataset": "clinic" if sampling == "poisson" else "shuffled"}
        first = charged(ledger, tmp_path / "run", plan, **options)
        crashed(first, 6)
        assert first.noise._streams
        with safe_open(tmp_path / "run", framework="pt") as file:
            assert {name.split(".")[0] for name in file.keys()} == {"model", "optimizer"}  # noqa: SIM118
        again = charged(ledger, tmp_path / "run", plan, **options)
        loop = again.steps(data())
        next(loop)
        assert again._position.order == first._position.order
        assert again.noise._streams == {}
        assert again.paid == (Span(0, 12), Span(4, 8))
        events = [Event.from_dict(entry.record["event"]) for entry in ledger.entries() if entry.kind == "reserve"]
        as_many = made(steps=6 if sampling == "poisson" else 4, bands=3, sampling=sampling, noise_multiplier=8.0)
        assert events == [plan.event, as_many.event]

    def test_without_a_ledger(self, tmp_path: Path) -> None:
        crashed(attached(checkpoint=tmp_path / "run", every=2), 3)
        again = trained(attached(checkpoint=tmp_path / "run", every=2))
        assert again.done == 6
        assert again.paid == (Span(0, 6), Span(2, 4)), "what was made twice is told, charged or not"
        both = compose(again.plan.event, again.plan.event_between(2, 4)).epsilon(1e-5)
        assert float(again.spent().so_far) == float(both)
        assert again.charged == "not charged"

    def test_adaptive_norm_is_kept(self, tmp_path: Path) -> None:
        first = attached(made(clipping="adaptive"), checkpoint=tmp_path / "run", every=1)
        crashed(first, 3)
        norms = first.norm
        again = attached(made(clipping="adaptive"), checkpoint=tmp_path / "run", every=1)
        next(again.steps(data()))
        assert again.norm != 1.0
        assert again.norm != norms, "the checkpoint is of the step before"


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment_no_step_is_free(tmp_path: Path, seed: int) -> None:
    """Each step was made at most as often as it was charged, and no noise was drawn twice."""
    told = campaign(tmp_path, 5, seed)
    assert told["killed"] >= 3
    assert faults(told) == []


@pytest.fixture
def told() -> dict[str, Any]:
    """A run without a fault: killed once, so that steps 5 to 9 were charged twice, and step 6 was made twice."""
    plan = made(steps=STEPS, noise_multiplier=4.0)
    return {
        "made": [[step, f"{k}"] for k, step in enumerate([*range(7), *range(6, STEPS)])],
        "charged": [
            ["model", "started", plan.event.to_dict()],
            ["model/resumed-1", "committed", plan.event_between(5, 10).to_dict()],
        ],
        "paid": [[0, STEPS], [5, 10]],
        "killed": 1,
        "valid": True,
    }


class TestFaults:
    def test_are_none_where_none_is(self, told: dict[str, Any]) -> None:
        assert faults(told) == []

    def test_are_steps_that_were_free_though_others_were_paid_for_in_vain(self, told: dict[str, Any]) -> None:
        """Step 2 twice, and as many steps in all as were charged."""
        told["made"].append([2, "again"])
        assert faults(told) == ["a step was made more often than it was charged"]

    def test_are_charges_that_were_given_back(self, told: dict[str, Any]) -> None:
        told["charged"][0][1] = "refunded"
        assert faults(told) == ["a step was made more often than it was charged"]

    def test_are_told_where_nothing_was_charged(self, told: dict[str, Any]) -> None:
        told["charged"] = []
        found = faults(told)
        assert "charges are not those of the run" in found
        assert "a step was made more often than it was charged" in found

    def test_are_told_where_a_price_is_none_of_the_plan(self, told: dict[str, Any]) -> None:
        told["charged"][1][2] = made(noise_multiplier=5.0).event.to_dict()
        assert faults(told) == ["a charge is not the price of its steps"]

    def test_are_noise_that_was_drawn_twice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Beside sums of other draws, where all that is released differs."""
        drawn, kept = StepNoise._drawn, {}

        def again(self: StepNoise, like: Tensor) -> Tensor:
            return kept.setdefault(like.shape, drawn(self, like))

        monkeypatch.setattr(StepNoise, "_drawn", again)
        monkeypatch.setattr(StepNoise, "on_sums", StepNoise.on_sums)  # `tried` changes it, and is no process here
        monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
        with Ledger.open(tmp_path / "book.db") as ledger:
            ledger.create_budget("clinic", Budget(epsilon=100.0, delta=1e-3))
        tried(tmp_path, None, 0)
        assert faults(collected(tmp_path)) == ["noise was drawn twice"]
