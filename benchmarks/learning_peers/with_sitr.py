"""Our steps, by what a run does in each of them: clip and sum, draw noise, divide by the batch, update.

They need NumPy, SciPy and PyTorch. A machine with a GPU may have these and nothing of ours: then it is our source that
is imported.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch
from process import CLIP, NOISE, Losses, Step, serve
from torch import Tensor, nn

if importlib.util.find_spec("sitr") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from sitr.learning.clipping import Clipper
from sitr.learning.noise import StepNoise
from sitr.learning.plan import plan


def exact(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    """Sums and noise on a grid: the default."""
    return _step(model, optimizer, x, y, cast, "exact")


def floats(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    """Sums and noise in floats: for large models and for GPUs."""
    return _step(model, optimizer, x, y, cast, "float")


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any, noise: Any) -> Step:
    made = plan(
        n=100 * len(x), batch=len(x), steps=100, max_grad_norm=CLIP, noise_multiplier=NOISE, delta=1e-6, noise=noise
    )
    clipper = Clipper(model, CLIP, exact_sums=noise == "exact")
    drawn = StepNoise(made, clipper.sensitivity, clipper.grid)
    losses = Losses("none")

    def step() -> None:
        clipper.clear()
        with clipper:
            with cast():
                each = losses(model(x), y)
            clipper.backward(each)
        noisy = drawn.on_sums(clipper.sums)
        torch._foreach_mul_(list(noisy.values()), 1 / made.batch)
        for name, weight in clipper.parameters.items():
            weight.grad = noisy[name].to(weight.dtype)
        optimizer.step()

    return step


if __name__ == "__main__":
    serve({"sitr": exact, "sitr, float noise": floats})
