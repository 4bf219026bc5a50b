"""A small model, its data, and the loop, for tests of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sitr.learning import Run, TrainingPlan, attach, plan

N = 40


def made(**options: Any) -> TrainingPlan:
    base = {"n": N, "batch": 10, "max_grad_norm": 1.0, "delta": 1e-5, "steps": 6, "noise_multiplier": 2.0}
    return plan(**{**base, **options})


def model_and_optimizer(width: int = 3) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(width, 4), nn.Tanh(), nn.Linear(4, 2))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def data(n: int = N, width: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, width, generator=generator), torch.randint(0, 2, (n,), generator=generator)


def attached(plan_: TrainingPlan | None = None, **options: Any) -> Run:
    return attach(*model_and_optimizer(), plan_ or made(), **options)


def trained(run: Run, examples: Any = None, *, after: Callable[[Run], None] | None = None, **options: Any) -> Run:
    """Go through the loop as a user would."""
    for step in run.steps(data(run.plan.n) if examples is None else examples, **options):
        for x, y in step:
            step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
        if after is not None:
            after(run)
    return run
