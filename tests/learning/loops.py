"""A small model, its data, and the loop, for tests of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.stats import norm
from torch import Tensor, nn

from sitr.learning import Run, TrainingPlan, attach, plan

N = 40
FALSE_ALARM = 1e-9


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


def off_white(noise: NDArray[np.float64], coefficients: Sequence[int]) -> tuple[float, list[float]]:
    """Statistics of w = M⁻¹z that are near N(0, 1) where z is white, and a limit that one passes by chance of 1e-9.

    Args:
        noise: w over the deviation of z; steps, then numbers.
        coefficients: Of M. If Mw is white, w has the covariance M⁻¹M⁻ᵀ, and no other w has.

    One statistic is of the squares, whose sum is χ² (Wilson and Hilferty make it normal); the others are of products of
    numbers 1, 2, ... bands + 2 steps apart, whose mean over so many is normal.
    """
    steps, width = len(noise), len(coefficients)
    column = np.zeros(steps)
    column[:width] = coefficients
    white = np.tril(toeplitz(column)) @ noise
    spread = 2 / (9 * white.size)
    found = [(float((white**2).mean()) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)]
    for lag in range(1, min(width + 3, steps)):
        both = white[lag:] * white[:-lag]
        found.append(float(both.sum()) / math.sqrt(both.size))
    return float(norm.isf(FALSE_ALARM / 2 / len(found))), found
