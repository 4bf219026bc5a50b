"""Canaries: scores beside a second computation, and what an audit of one run certifies, and catches, by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.stats import chi2
from torch import Tensor, nn

from sitr.audit import OneRunReport, audit_one_run
from sitr.errors import InvalidArgument
from sitr.learning import Run, TrainingPlan, attach
from sitr.learning import run as run_module
from sitr.learning.clipping import SUM_BITS, Clipper
from sitr.learning.noise import StepNoise
from sitr.learning.sampling import PoissonSampler, ShuffledSampler
from tests.learning.loops import FALSE_ALARM, N, attached, data, made, model_and_optimizer, trained

CANARIES = 60_000
NOBODY = CANARIES  # what stands in the place of a canary that was left out: it has no gradient
GUESSES = 2000
DELTA = 2e-5


class Table(nn.Module):
    """A weight for each canary, which no other moves: what it says of one is as much as a run can give away of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Embedding(CANARIES + 1, 1, padding_idx=NOBODY)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.weights(x)[:, 0]
        return 3 * found  # clipped to a third


def canary_run(plan: TrainingPlan) -> tuple[Run, NDArray[np.bool_], NDArray[np.int64]]:
    """A run on canaries alone, who of them was in, by fair coins, and how often each place was drawn."""
    model, everyone = Table(), torch.arange(CANARIES)
    included = np.random.default_rng().random(CANARIES) < 0.5
    placed = torch.where(torch.from_numpy(included), everyone, NOBODY)
    run = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), plan, canaries=lambda: model(everyone))
    counts = np.zeros(CANARIES, np.int64)
    for step in run.steps((placed, everyone)):
        for tokens, places in step:
            np.add.at(counts, places.numpy(), 1)
            step.backward(model(tokens))
    return run, included, counts


def audited(plan: TrainingPlan) -> OneRunReport:
    run, included, _ = canary_run(plan)
    return audit_one_run(run.scores, included, claimed=plan.event, delta=DELTA, guesses=GUESSES)


def everyone(**options: Any) -> TrainingPlan:
    """Four steps of everybody with noise 4: a canary's scores, with it and without, are half a deviation apart."""
    return made(**{"n": CANARIES, "batch": CANARIES, "steps": 4, "noise_multiplier": 4.0, **options})


class TestScores:
    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_are_products_of_gradients(self, noise: str) -> None:
        """Beside each canary's own gradient, one at a time, with the gradient that the optimizer had in that step."""
        model, _ = model_and_optimizer()
        x, y = data(7)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        wanted, before = np.zeros(7), [weight.detach().clone() for weight in model.parameters()]
        run = attach(
            model, optimizer, made(noise=noise), canaries=lambda: F.cross_entropy(model(x), y, reduction="none")
        )

        def add(run: Run) -> None:
            noisy = [weight.grad for weight in model.parameters()]
            after = [weight.detach().clone() for weight in model.parameters()]
            for weight, old in zip(model.parameters(), before, strict=True):
                weight.data.copy_(old)
            for canary in range(7):
                own = torch.autograd.grad(F.cross_entropy(model(x[[canary]]), y[[canary]]), list(model.parameters()))
                wanted[canary] += sum(float((one * other).sum()) for one, other in zip(own, noisy, strict=True))
            for weight, old, new in zip(model.parameters(), before, after, strict=True):
                weight.data.copy_(new)
                old.copy_(new)

        trained(run, after=add)
        np.testing.assert_allclose(run.scores, wanted, rtol=1e-4, atol=1e-5)

    def test_change_nothing_of_the_run(self) -> None:
        x, y = data(5)
        ends = []
        for canaries in (False, True):
            torch.manual_seed(7)
            model, optimizer = model_and_optimizer()
            losses = (lambda: F.cross_entropy(model(x), y, reduction="none")) if canaries else None  # noqa: B023
            ends.append(trained(attach(model, optimizer, made(), unsafe_seed=3, canaries=losses)))
        for one, other in zip(ends[0].model.parameters(), ends[1].model.parameters(), strict=True):
            assert torch.equal(one, other)
        assert ends[1].scores.shape == (5,)

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda model, x, y: F.cross_entropy(model(x), y),
            lambda model, x, y: F.cross_entropy(model(x), y, reduction="none").detach(),
            lambda model, x, y: F.cross_entropy(model(x), y, reduction="none").tolist(),
            lambda model, x, y: model(x),
        ],
    )
    def test_need_a_loss_for_each(self, wrong: Any) -> None:
        model, optimizer = model_and_optimizer()
        with pytest.raises(InvalidArgument, match="one loss each"):
            attach(model, optimizer, made(), canaries=lambda: wrong(model, *data()))

    def test_need_canaries(self) -> None:
        with pytest.raises(InvalidArgument, match="no canaries"):
            _ = trained(attached()).scores


class TestAudit:
    @pytest.mark.statistical
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"batch": CANARIES // 8, "steps": 16, "noise_multiplier": 1.0},
            {"batch": CANARIES // 2, "steps": 8, "bands": 2},
        ],
    )
    def test_of_a_correct_run_stays_under_its_promise(self, options: dict[str, Any]) -> None:
        """Of 2,000 guesses about 78.1 % are right, by the law of the scores; 88.9 % would have to be, which has a
        chance of 5e-36. For the second plan, of Poisson draws, about 77 % are right and 99.5 % would have to be. The
        third has correlated noise and two groups, each of which is drawn whole in four of eight steps: it costs as
        much as the first, and about 76 % are right. That the bound is over 0.5 takes 66 %, ten deviations less.
        """
        report = audited(everyone(**options))
        assert not report.violated
        assert report.claimed_epsilon is not None
        assert 0.5 < report.epsilon_lower < report.claimed_epsilon

    def test_catches_gradients_that_are_not_clipped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each adds three times its bound."""
        monkeypatch.setattr(
            Clipper, "_factors", lambda self, norms, slack, limit: torch.full_like(norms, 2.0**SUM_BITS)
        )
        assert audited(everyone()).verdict == "violation certified"

    def test_catches_half_of_the_noise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """About 93.7 % of the guesses are right, where 88.9 % break the promise: fewer have a chance of 2e-16."""
        drawn = StepNoise._drawn
        monkeypatch.setattr(StepNoise, "_drawn", lambda self, like: drawn(self, like) // 2)
        assert audited(everyone()).verdict == "violation certified"

    def test_catches_correlated_noise_without_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Everybody is in all of sixteen steps, where four are paid for: scores are over three times as far apart."""
        monkeypatch.setattr(run_module, "sampler_of", lambda plan, **more: PoissonSampler(plan.n, plan.rate))
        plan = everyone(batch=CANARIES // 4, steps=16, bands=4)
        assert audited(plan).verdict == "violation certified"

    @pytest.mark.statistical
    def test_shuffled_passes_that_are_charged_as_poisson_are_seen_by_their_draws(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The canaries do not see this, at this size nor at any that one run has: their scores have the same mean as
        with Poisson draws, where an example is in a step as often on average, and a one-run bound is far under what
        is charged. How often each was drawn does see it: Σ (count - Tq)²/Tq(1-q) is near χ² for Poisson draws, and 0
        for whole passes.
        """
        plan = everyone(batch=CANARIES // 8, steps=16, noise_multiplier=1.0)
        for shuffled in (False, True):
            if shuffled:
                monkeypatch.setattr(
                    run_module, "sampler_of", lambda plan, **more: ShuffledSampler(plan.n, plan.batch, seed=1)
                )
            _, _, counts = canary_run(plan)
            spread = float(((counts - 2) ** 2).sum() / (2 * (1 - 1 / 8)))
            # A count is binomial, of kurtosis 3 + 0.2: the sum of squares is a little wider than χ².
            wide = np.sqrt(1 + 0.2 / 2)
            low, high = chi2.ppf(FALSE_ALARM / 2, CANARIES) - CANARIES, chi2.isf(FALSE_ALARM / 2, CANARIES) - CANARIES
            as_poisson = low * wide < spread - CANARIES < high * wide
            assert as_poisson != shuffled


def test_example_of_the_guide_leaves_places_empty() -> None:
    """A canary that is left out is a row of NaN: it adds nothing, and the others are as they were."""
    x, y = data()
    left_out = x.clone()
    left_out[[3, 5]] = float("nan")
    sums = []
    model, _ = model_and_optimizer()
    for rows, places in ((left_out, range(N)), (x, [place for place in range(N) if place not in (3, 5)])):
        with Clipper(model, 1.0, exact_sums=False) as clipper:
            clipper.backward(F.cross_entropy(model(rows[list(places)]), y[list(places)], reduction="none"))
        sums.append(clipper.gradients())
    for name, total in sums[0].items():
        assert torch.allclose(total, sums[1][name], atol=1e-5)
