"""The weights of a run as its optimizer holds them, and the one noisy sum that becomes their gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ..errors import InvalidArgument
from .clipping import Clipper
from .ranks import Ranks

Noisy = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]


class Weights:
    """Weights that every process has whole.

    Args:
        model: Whose trainable weights they are.
        optimizer: Of all of them, and of no others.
        ranks: The processes that train them together.

    Attributes:
        held: The trainable weights by name, as the optimizer holds them.
        in_shards: Whether each process holds a part of them only.

    Raises:
        InvalidArgument: The optimizer has others, or not all.
    """

    in_shards = False

    def __init__(self, model: nn.Module, optimizer: Optimizer, ranks: Ranks) -> None:
        self.model, self.optimizer, self.ranks = model, optimizer, ranks
        self.held = {name: one for name, one in model.named_parameters() if one.requires_grad}
        _check_covered(optimizer, self.held)

    @property
    def alike(self) -> Iterable[Tensor]:
        """What has to be the same in every process."""
        return self.held.values()

    def gather(self) -> None:
        """Let this process have all weights, for the forward passes of a step; all processes do so together."""

    def release(self) -> None:
        """Keep of the weights what this process holds between steps."""

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """Have all weights for a while."""
        self.gather()
        try:
            yield
        finally:
            self.release()

    def overwrite(self, clipper: Clipper, noisy: Noisy, beside: Callable[[], Any]) -> Any:
        """Put the noisy sum over all processes in the place of gradients, and return what was measured beside it.

        Args:
            clipper: Which holds this process's share of the sum.
            noisy: Adds noise to sums, and makes gradients of them.
            beside: Is called first, by the first process: it starts what was charged, and measures.

        Privacy: the first process adds the noise, once, to the whole sum, and the others are told the result alone.
        """
        if self.ranks.size > 1:
            self.ranks.add_up(clipper.totals)

        def drawn() -> tuple[dict[str, Tensor], Any]:
            told = beside()
            return noisy(clipper.sums), told

        gradients, told = self.ranks.spread(drawn, self.held)
        self._take(gradients)
        return told

    def _take(self, gradients: Mapping[str, Tensor]) -> None:
        for group in self.optimizer.param_groups:
            for weight in group["params"]:
                weight.grad = None
        for name, weight in self.held.items():
            weight.grad = gradients[name]


def weights_of(model: nn.Module, optimizer: Optimizer, ranks: Ranks) -> Weights:
    """Return the weights of a model: whole, or in shards."""
    if any(hasattr(one, "placements") for one in model.parameters()):
        from .shards import Shards  # what it imports takes long

        return Shards(model, optimizer, ranks)
    return Weights(model, optimizer, ranks)


def _check_covered(optimizer: Optimizer, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that would be trained without noise, or take noise and not be trained."""
    covered = {id(weight): name for name, weight in weights.items()}
    held = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    trained = [weight for group in optimizer.param_groups for weight in group["params"] if weight.requires_grad]
    if any(id(weight) not in covered for weight in trained):
        raise InvalidArgument(
            "the optimizer has trainable weights that are not of the model.",
            why="their gradients would be neither clipped nor noisy.",
            do="make the optimizer from model.parameters().",
        )
    missing = [name for where, name in covered.items() if where not in held]
    if missing:
        raise InvalidArgument(
            f"the optimizer does not have {missing[0]!r}, which is trainable.",
            why="its gradients would take a part of max_grad_norm for nothing.",
            do="freeze it by requires_grad_(False), or give it to the optimizer.",
        )
