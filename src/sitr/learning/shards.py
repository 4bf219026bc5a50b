"""Weights in shards (FSDP2, `fully_shard`): each process holds, updates and adds noise to a part of each weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Shard
from torch.optim import Optimizer

from ..errors import NotAllowed
from .clipping import Clipper
from .ranks import Ranks
from .weights import Noisy, Weights

# What a group of weights does by itself around a forward pass, none of which it may do within a step.
SETTINGS = ("post_forward_mesh_info", "reshard_after_backward", "reduce_grads", "all_reduce_grads")


class Shards(Weights):
    """Weights of which every process has a part, along their first dimension.

    They are gathered once a step, so that processes may have any number of micro-batches: within a step nothing is
    communicated. Sums of clipped gradients are of full size in each process, as gathered weights are; noise, gradients
    and the state of the optimizer are of the size of the shard.

    Args:
        model: To which `fully_shard` was applied, last of all to the model itself.
        optimizer: Of all of its trainable weights.
        ranks: The processes among which weights are sharded.

    Raises:
        NotAllowed: Weights are sharded in another way, or among other processes.
    """

    in_shards = True

    def __init__(self, model: nn.Module, optimizer: Optimizer, ranks: Ranks) -> None:
        super().__init__(model, optimizer, ranks)
        if not isinstance(model, FSDPModule):
            raise NotAllowed(
                "parts of the model are sharded, and the model itself is not.",
                why="then nothing gathers all of its weights.",
                do="apply fully_shard to parts first, and then to the model that you attach.",
            )
        for name, weight in self.held.items():
            self._check(name, weight)
        self._model = model
        self._parts = [part for part in model.modules() if isinstance(part, FSDPModule)]
        self._groups = [group for part in self._parts for group in part._get_fsdp_state()._fsdp_param_groups]
        self._settings: list[dict[str, Any]] = []

    def _check(self, name: str, weight: Tensor) -> None:
        along = weight.placements == (Shard(0),) if isinstance(weight, DTensor) else False
        if not along or weight.device_mesh.ndim != 1:  # type: ignore[attr-defined]
            raise NotAllowed(
                f"the weight {name!r} is not sharded along its first dimension, over one row of processes.",
                why="each number of it needs noise once, from the one process that holds it.",
                do="fully_shard(model) with a mesh of one dimension, and freeze what it ignores.",
            )
        if weight.device_mesh.mesh.tolist() != self.ranks.members:  # type: ignore[attr-defined]
            raise NotAllowed(
                f"the weight {name!r} is sharded among other processes than those of the run.",
                why="each process adds noise to its own shard.",
                do="attach with group=mesh.get_group().",
            )

    @property
    def alike(self) -> Iterable[Tensor]:
        """Nothing: no two processes hold the same."""
        return ()

    def gather(self) -> None:
        """Let this process have all weights, until they are released: all processes do so together."""
        self._settings = [{name: getattr(group, name) for name in SETTINGS} for group in self._groups]
        self._model.set_reshard_after_forward(False)
        self._model.set_reshard_after_backward(False)
        self._model.set_requires_gradient_sync(False)
        for part in self._parts:
            part.unshard()

    def release(self) -> None:
        """Keep this process's shards, and let forward passes gather by themselves again, as they were told to."""
        for part in self._parts:
            part.reshard()
        now = dict(self.model.named_parameters())
        if any(now[name] is not weight for name, weight in self.held.items()):  # a forward pass was left within
            self._model.reset_iter_state()
        for group, settings in zip(self._groups, self._settings, strict=False):
            vars(group).update(settings)
        self._settings = []

    def overwrite(self, clipper: Clipper, noisy: Noisy, beside: Callable[[], Any]) -> Any:
        """Put this process's shard of the noisy sum in the place of gradients, as `Weights.overwrite` does.

        Privacy: each number of the sum over all processes has noise from one process, which holds it, once. Bits are
        each process's own, from the operating system, so that noise is independent over shards too.
        """
        told = self.ranks.first(beside)
        sums = {name: clipper.rounded(self.ranks.scatter(total)) for name, total in clipper.totals.items()}
        gradients = noisy(sums)
        self.release()
        self._take({name: self._shard(weight, gradients[name]) for name, weight in self.held.items()})
        return told

    def _shard(self, weight: Any, part: Tensor) -> Tensor:
        return DTensor.from_local(
            part, weight.device_mesh, weight.placements, run_check=False, shape=weight.shape, stride=weight.stride()
        )
