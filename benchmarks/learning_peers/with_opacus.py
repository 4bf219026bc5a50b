"""Steps by Opacus 1.6: per-sample gradients kept by hooks, which is its default, and ghost clipping.

Both by `PrivacyEngine.make_private`, as its documentation has it. The loader is only what the engine asks for: the same
batch is used in every step, as by all other methods.
"""

import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from process import CLIP, NOISE, Losses, Step, ordinary, serve
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
    return ordinary(model, optimizer, Losses("mean"), x, y, cast)


def ghost(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    model, optimizer, criterion, _ = _private(model, optimizer, x, y, "ghost")
    return ordinary(model, optimizer, criterion, x, y, cast)


if __name__ == "__main__":
    serve({"Opacus hooks": hooks, "Opacus ghost": ghost})
