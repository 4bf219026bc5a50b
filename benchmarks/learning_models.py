"""The models that steps are measured on, and batches for them: plain PyTorch, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Losses(nn.Module):
    """One loss for each example, or their mean: cross entropy, averaged over the positions of a sequence."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        every = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none").float()
        losses = every.view(len(targets), -1).mean(1)
        return losses if self.reduction == "none" else losses.mean()


def mnist_cnn() -> nn.Module:
    """The network of Opacus's MNIST example: 26,010 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inward(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.outward(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width, heads, causal)
        self.between = nn.LayerNorm(width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.wide(self.between(x))


class GPT(nn.Module):
    """A language model in the manner of GPT-2; `tied`: its head is the table of its words, as in GPT-2 itself."""

    def __init__(self, words: int, positions: int, width: int, layers: int, heads: int, tied: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        for embedding in (self.words, self.places):
            nn.init.normal_(embedding.weight, std=0.02)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device).repeat(len(x), 1)  # Opacus needs a row for each example
        return self.head(self.last(self.blocks(self.words(x) + self.places(places))))


class ViT(nn.Module):
    """A vision transformer (ViT-S/16): a learnt token of the whole image, and learnt positions."""

    def __init__(self, size: int, patch: int, width: int, layers: int, heads: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.whole = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(layers)))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.whole.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.last(self.blocks(x))[:, 0])


class Residual(nn.Module):
    def __init__(self, inward: int, outward: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inward, outward, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outward, outward, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(32, outward), nn.GroupNorm(32, outward)])
        self.short = nn.Sequential()
        if stride > 1 or inward != outward:
            self.short = nn.Sequential(nn.Conv2d(inward, outward, 1, stride, bias=False), nn.GroupNorm(32, outward))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(inner + self.short(x))


def resnet18() -> nn.Module:
    """ResNet-18 for images of 32 × 32, with group norms."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(32, 64), nn.ReLU()]
    before = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(before, width, stride), Residual(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


Batch = tuple[Tensor, Tensor]


def images(count: int, channels: int, size: int, classes: int) -> Batch:
    return torch.randn(count, channels, size, size), torch.randint(classes, (count,))


def words(count: int, positions: int, known: int) -> Batch:
    text = torch.randint(known, (count, positions + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


@dataclass(frozen=True)
class Case:
    """A model and its batch, where it is measured, and what was asked of ours.

    `slowest` is how long a step may take, in steps without privacy, by precision; `memory` likewise.
    """

    title: str
    device: str
    model: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    slowest: dict[str, float]
    memory: dict[str, float]


def _gpt2(positions: int, count: int, tied: bool, share: float) -> Case:
    title = f"GPT-2-small{'' if tied else ', untied'}, {positions} words, batch {count}"
    return Case(
        title,
        "cuda",
        lambda: GPT(50257, positions, 768, 12, 12, tied),
        lambda: words(count, positions, 50257),
        {"tf32": 1 / share, "bf16": 1 / share},
        {"tf32": 1.15, "bf16": 1.15},
    )


CASES = {
    "mnist": Case("MNIST CNN, batch 256", "cpu", mnist_cnn, lambda: images(256, 1, 28, 10), {"fp32": 1.3}, {}),
    "gpt": Case(
        "small GPT, 128 words, batch 32",
        "cpu",
        lambda: GPT(1000, 128, 256, 4, 4, tied=False),
        lambda: words(32, 128, 1000),
        {"fp32": 1.3},
        {},
    ),
    "gpt2-1024": _gpt2(1024, 16, True, 0.95),
    "gpt2-1024-untied": _gpt2(1024, 16, False, 0.95),
    "gpt2-512": _gpt2(512, 32, True, 0.90),
    "gpt2-512-untied": _gpt2(512, 32, False, 0.90),
    "vit": Case(
        "ViT-S/16, 224 × 224, batch 256",
        "cuda",
        lambda: ViT(224, 16, 384, 12, 6, 1000),
        lambda: images(256, 3, 224, 1000),
        {"tf32": 1 / 0.80, "bf16": 1 / 0.70},
        {"tf32": 1.15, "bf16": 1.15},
    ),
    "resnet": Case(
        "ResNet-18-GN, 32 × 32, batch 1024",
        "cuda",
        resnet18,
        lambda: images(1024, 3, 32, 10),
        {"tf32": 1 / 0.58, "bf16": 1 / 0.65},
        {"tf32": 1.15, "bf16": 1.25},
    ),
}
