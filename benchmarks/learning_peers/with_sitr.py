"""Our steps, by what a run does in each of them: clip and sum, draw noise, divide by the batch, update.

A machine with a GPU may have PyTorch and little else, and the front doors of our rooms ask for the ledger and its
database. Where they cannot be imported, only the modules of a step are: they need NumPy, SciPy and PyTorch.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from process import CLIP, NOISE, Losses, Step, serve
from torch import Tensor, nn

SOURCE = Path(__file__).resolve().parents[2] / "src"
ROOMS = ("sitr.mechanisms", "sitr.learning")


def open_rooms() -> None:
    """Make our rooms importable: through their front door, or by their modules alone."""
    if importlib.util.find_spec("sitr") is None:
        sys.path.insert(0, str(SOURCE))
    for room in ROOMS:
        try:
            importlib.import_module(room)
        except ImportError:
            for name in [name for name in sys.modules if name.split(".")[:2] == room.split(".")]:
                del sys.modules[name]
            bare = ModuleType(room)
            bare.__path__ = [str(SOURCE.joinpath(*room.split(".")))]
            sys.modules[room] = bare


def exact(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    """Sums and noise on a grid: the default."""
    return _step(model, optimizer, x, y, cast, "exact")


def floats(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    """Sums and noise in floats: for large models and for GPUs."""
    return _step(model, optimizer, x, y, cast, "float")


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any, noise: Any) -> Step:
    from sitr.learning.clipping import Clipper
    from sitr.learning.noise import StepNoise
    from sitr.learning.plan import plan

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
        for name, weight in clipper.parameters.items():
            weight.grad = (noisy[name] / made.batch).to(weight.dtype)
        optimizer.step()

    return step


if __name__ == "__main__":
    open_rooms()
    serve({"sitr": exact, "sitr, float noise": floats})
