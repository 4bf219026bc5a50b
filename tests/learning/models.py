"""Models as people write them, small, each with a batch; and the comparison with the per-sample loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sitr.learning.clipping import GRID_BITS, Clipper
from sitr.learning.oracle import clipped_by_loop, gradients_by_loop
from sitr.learning.pieces import SUM_BITS

PEOPLE = 5
Case = tuple[nn.Module, tuple[Any, ...], Callable[[Any], Tensor]]


def mnist_cnn() -> nn.Module:
    """The CNN of Opacus's and TensorFlow Privacy's MNIST examples."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """`positions`: how position embeddings are looked up; `tied`: the head is the table, used functionally."""

    def __init__(
        self, tied: bool = False, positions: str = "flat", words: int = 11, width: int = 8, time: int = 6
    ) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Embedding(time, width)
        self.blocks = nn.Sequential(Block(width, 2), Block(width, 2))
        self.norm = nn.LayerNorm(width)
        self.head = None if tied else nn.Linear(width, words, bias=False)
        self.positions = positions

    def forward(self, ids: Tensor) -> Tensor:
        place = torch.arange(ids.shape[1])
        if self.positions == "row":
            place = place[None]
        elif self.positions == "expanded":
            place = place[None].expand(ids.shape[0], -1)
        x = self.norm(self.blocks(self.token(ids) + self.place(place)))
        return F.linear(x, self.token.weight) if self.head is None else self.head(x)


class ViT(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, stride=4)
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 5, width))
        self.blocks, self.head = Block(width, 2), nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.blocks(x)[:, 0])


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(2, outer), nn.GroupNorm(2, outer)
        self.short = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


class Recurrent(nn.Module):
    def __init__(self, kind: str, batch_first: bool = True, **options: Any) -> None:
        super().__init__()
        self.table, self.batch_first = nn.Embedding(9, 4), batch_first
        self.core = getattr(nn, kind)(4, 5, batch_first=batch_first, **options)
        self.head = nn.Linear(10 if options.get("bidirectional") else 5, 4)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        out = self.core(x if self.batch_first else x.transpose(0, 1))[0]
        return self.head(out[:, -1] if self.batch_first else out[-1])


class Cells(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell, self.head = getattr(nn, kind)(3, 5), nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for time in range(x.shape[1]):
            state = self.cell(x[:, time], state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Attention(nn.Module):
    def __init__(self, batch_first: bool, cross: bool = False, weights: bool = False) -> None:
        super().__init__()
        self.core = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.inner, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
        self.batch_first, self.cross, self.weights = batch_first, cross, weights

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.batch_first else x.transpose(0, 1)
        memory = self.inner(x) if self.cross else x
        out, _ = self.core(x, memory, memory, need_weights=self.weights)
        return self.head(out.mean(1 if self.batch_first else 0))


class LoRA(nn.Module):
    """A frozen matrix with a trainable difference of low rank, applied beside it or merged into it."""

    def __init__(self, merged: bool) -> None:
        super().__init__()
        self.base, self.merged = nn.Linear(6, 4), merged
        self.base.requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        if self.merged:
            return F.linear(x, self.base.weight + self.up @ self.down, self.base.bias)
        return self.base(x) + x @ self.down.t() @ self.up.T


class HFConv1D(nn.Module):
    """The linear layer of GPT-2 of Hugging Face: a transposed weight, and all people's rows in one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], 4).mean(1)


class Scaled(nn.Module):
    """Bare parameters in arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(6)), nn.Parameter(torch.randn(1, 6))
        self.gain, self.temper = nn.Parameter(torch.randn(())), nn.Parameter(torch.rand(6) + 1)
        self.act, self.pair = nn.PReLU(6), nn.Bilinear(6, 6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = (self.scale * x - self.shift) / self.temper.exp() * torch.sigmoid(self.gain)
        return self.pair(self.act(x), x.tanh())


class Shared(nn.Module):
    """Bare parameters that are added in several places, so that autograd gives them the very same gradient."""

    def __init__(self, run: Callable[[Any, Tensor], Tensor], width: int = 16) -> None:
        super().__init__()
        self.place, self.kind = nn.Parameter(torch.randn(4, width)), nn.Parameter(torch.randn(4, width))
        self.layer, self.head, self.run = nn.Linear(width, width), nn.Linear(4 * width, 4), run

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.run(self, x).flatten(1))
        return found


class Reused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 4)
        self.norm = nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.norm(torch.tanh(self.layer(x)))
        return self.head(x)


class Bag(nn.Module):
    def __init__(self, mode: str, padding: int | None = None, weighted: bool = False) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(7, 5, mode=mode, padding_idx=padding)
        self.head, self.weighted = nn.Linear(5, 4), weighted

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.bag(ids, per_sample_weights=(ids + 1.0) / 7 if self.weighted else None))


class BagByHand(nn.Module):
    """Padding is counted from the end, as only the function takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Parameter(torch.randn(7, 5)), nn.Linear(5, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(F.embedding_bag(ids, self.table, mode="mean", padding_idx=-1))


def zero(layer: nn.Module) -> nn.Module:
    """A layer that returns 0, whatever it is given, until it is trained."""
    for weight in layer.parameters():
        nn.init.zeros_(weight)
    return layer


class Beside(nn.Module):
    """A branch beside what it branches from."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x + self.branch(x)
        return found


def classes(logits: Tensor) -> Tensor:
    """One loss for each row."""
    targets = torch.arange(len(logits)) % logits.shape[1]
    return F.cross_entropy(logits, targets, reduction="none")


def next_words(logits: Tensor) -> Tensor:
    targets = torch.arange(logits[..., 0].numel()).view(logits.shape[:2]) % logits.shape[2]
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(1)


def numbers(*shape: int) -> Tensor:
    return torch.randn(PEOPLE, *shape)


def words(most: int, *shape: int) -> Tensor:
    return torch.randint(most, (PEOPLE, *shape))


def conv(dims: int, **options: Any) -> nn.Module:
    kind = getattr(nn, f"Conv{dims}d")
    return nn.Sequential(
        kind(2, 4, 3, **options),
        nn.Tanh(),
        nn.AdaptiveAvgPool1d(1) if dims == 1 else nn.Flatten(),
        nn.Flatten(),
        nn.LazyLinear(4),
    )


def clipped(model: nn.Module, inputs: tuple[Any, ...], losses: Callable[[Any], Tensor], **options: Any) -> Clipper:
    """Run one micro-batch."""
    clipper = Clipper(model, **({"max_grad_norm": 1.0, "exact_sums": True} | options))
    with clipper:
        clipper.backward(losses(model(*inputs)))
    return clipper


def distance(case: Case, **options: Any) -> float:
    """How far, relatively, the clipped sum is from that of the loop, clipped as strictly."""
    model, inputs, losses = case
    clipper = clipped(model, inputs, losses, **options)
    bound, style = clipper.max_grad_norm, clipper.style
    by_loop = gradients_by_loop(model, lambda m: losses(m(*inputs)))
    found = clipper._totals.mapped(lambda flat: flat)
    if clipper.exact_sums and style != "per_layer":  # contributions give up what rounding the sum may add
        bound *= 1 - math.sqrt(sum(p.numel() for p in clipper.parameters.values())) / 2**GRID_BITS
    if clipper.exact_sums:
        found = {name: value.double() * (clipper.max_grad_norm / 2**SUM_BITS) for name, value in found.items()}
    wanted = clipped_by_loop(by_loop, bound, style)
    return relative(found, wanted)


def largest_norm(case: Case) -> float:
    model, inputs, losses = case
    found = gradients_by_loop(model, lambda m: losses(m(*inputs)))
    return max(math.sqrt(sum(float(g[i].square().sum()) for g in found.values())) for i in range(PEOPLE))


def relative(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    assert found.keys() == wanted.keys()
    error = sum(float((found[name].double() - wanted[name].double()).square().sum()) for name in wanted)
    size = sum(float(wanted[name].double().square().sum()) for name in wanted)
    return math.sqrt(error / size)


def length(sums: dict[str, Tensor]) -> float:
    """The ℓ2 norm of all sums together, exactly for whole numbers."""
    if next(iter(sums.values())).dtype == torch.int64:
        return math.sqrt(sum(int(x) ** 2 for total in sums.values() for x in total.flatten().tolist()))
    return math.sqrt(sum(float(total.double().square().sum()) for total in sums.values()))
