"""Steps by Opacus 1.6: per-sample gradients kept by hooks, which is its default, and ghost clipping.

Both by `PrivacyEngine.make_private`, as its documentation has it. The loader is only what the engine asks for: the same
batch is used in every step, as by all other methods.
"""

import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from process import CLIP, NOISE, Losses, Step, serve
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def _private(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, mode: str) -> Any:
    warnings.simplefilter("ignore")  # that its random numbers are not secure: neither slower nor faster
    return PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=Losses("mean"),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=len(x)),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )


def hooks(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    model, optimizer, _ = _private(model, optimizer, x, y, "hooks")
    return _step(model, optimizer, Losses("mean"), x, y, cast)


def ghost(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    model, optimizer, criterion, _ = _private(model, optimizer, x, y, "ghost")
    return _step(model, optimizer, criterion, x, y, cast)


def _step(model: nn.Module, optimizer: Any, criterion: Any, x: Tensor, y: Tensor, cast: Any) -> Step:
    def step() -> None:
        optimizer.zero_grad()
        with cast():
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    serve({"Opacus hooks": hooks, "Opacus ghost": ghost})
