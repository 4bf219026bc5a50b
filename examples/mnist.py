"""Handwritten digits, learnt privately: a small network, or a linear model on features that nobody's data made.

The data are four files in IDX format, as MNIST's (http://yann.lecun.com/exdb/mnist), gzipped or not; other images in
such files, of Fashion-MNIST for one, go the same way.

    python examples/mnist.py PATH_TO/mnist --epsilon 3
    python examples/mnist.py PATH_TO/mnist --epsilon 3 --features scattering --runs 3

What is protected is one training image with its label: ε at δ = 1e-5, images drawn by Poisson sampling. How many
training images there are is public. The test images are not protected; they only tell the accuracy.

What was tuned: the numbers in `SETTINGS`, by hand, on MNIST's training images themselves, 50,000 of which were trained
on and 10,000 judged by. That search was not private, and the ε that is printed does not cover it: it is the ε of
someone who is handed the settings. The network is that of Papernot et al. 2021 (tanh instead of ReLU); normalising the
scattering features of each image by groups of channels, and without a look at any other image, is from Tramèr and Boneh
2021. Both were found on MNIST too. The test images were used for nothing but the accuracy that is printed.

It needs PyTorch, and a few minutes on two cores.
"""

from __future__ import annotations

import argparse
import gzip
import math
import statistics
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sitr.learning import attach, plan

DELTA = 1e-5
ANGLES = 8  # of the scattering's wavelets
GROUPS = 27  # of its 81 channels that are normalised together
AT_ONCE = 1024  # images: what fits into memory, and changes no result


@dataclass(frozen=True)
class Settings:
    """What was tuned for one ε.

    Attributes:
        batch: Images in a step, on average.
        steps: Updates.
        norm: What gradients are clipped to.
        rate: The learning rate of SGD, with momentum 0.9.
        average: The decay of the moving average of weights that is judged in the end.
    """

    batch: int
    steps: int
    norm: float
    rate: float
    average: float


SETTINGS = {
    "pixels": {
        0.5: Settings(batch=1024, steps=250, norm=0.1, rate=2.0, average=0.95),
        1.2: Settings(batch=1024, steps=500, norm=0.1, rate=2.0, average=0.95),
        2.0: Settings(batch=1024, steps=600, norm=0.1, rate=2.0, average=0.95),
        3.0: Settings(batch=1024, steps=800, norm=0.1, rate=3.0, average=0.97),
        8.0: Settings(batch=1024, steps=800, norm=0.1, rate=3.0, average=0.97),
    },
    "scattering": {
        0.5: Settings(batch=8192, steps=80, norm=0.1, rate=10.0, average=0.9),
        1.2: Settings(batch=8192, steps=120, norm=0.1, rate=12.0, average=0.9),
        3.0: Settings(batch=8192, steps=360, norm=0.1, rate=12.0, average=0.9),
    },
}


@dataclass(frozen=True)
class Images:
    """Training and test images (one channel, from 0 to 1), and what they show."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor


def read(folder: Path) -> Images:
    """Read the four files."""
    kinds = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    train, train_labels, test, test_labels = (_idx(folder, name) for name in kinds)
    return Images(_scaled(train), train_labels.long(), _scaled(test), test_labels.long())


def _idx(folder: Path, name: str) -> Tensor:
    """An IDX file: two zeros, a type (8 for bytes), the number of dimensions, their sizes, and the numbers."""
    packed, plain = folder / f"{name}.gz", folder / name
    if not packed.exists() and not plain.exists():
        raise SystemExit(f"There is no {name}, gzipped or not, in {folder}.")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    zeros, kind, dimensions = struct.unpack(">HBB", content[:4])
    if (zeros, kind) != (0, 8):
        raise SystemExit(f"{name} is no IDX file of bytes.")
    begin = 4 + 4 * dimensions
    sizes = struct.unpack(f">{dimensions}I", content[4:begin])
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=begin).reshape(sizes).copy())


def _scaled(images: Tensor) -> Tensor:
    return images.float().div_(255)[:, None]


# Scattering: |·| of wavelets, once and twice, then averaged (Bruna and Mallat 2013; two scales, eight angles)


def scattering(images: Tensor) -> Tensor:
    """Return 81 channels at a quarter of the size: means of an image, of 16 wavelets' moduli, and of 64 of these.

    Every image is transformed by itself, and the wavelets are fixed: this spends nothing.
    """
    fine, coarse = wavelets(0), wavelets(1)
    size = images.shape[2]
    once = _modulus(images, fine, stride=1)
    coarser = _modulus(images, coarse, stride=2)
    twice = _modulus(once.flatten(0, 1)[:, None], coarse, stride=2).view(len(images), -1, *coarser.shape[2:])
    whole, half = _averages(size, 1), _averages(size, 2)
    parts = ((images, whole), (once, whole), (coarser, half), (twice, half))
    return torch.cat([averages @ part @ averages.T for part, averages in parts], 1)


def wavelets(scale: int) -> Tensor:
    """Morlet wavelets of one scale at all angles, real and imaginary parts in turn, as filters of a convolution."""
    width, frequency, elongation = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 4 / ANGLES
    reach = math.ceil(4 * width)
    y, x = torch.meshgrid(*[torch.arange(-reach, reach + 1, dtype=torch.float64)] * 2, indexing="ij")
    found = []
    for angle in torch.arange(ANGLES, dtype=torch.float64) * math.pi / ANGLES:
        along, across = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
        bell = torch.exp(-(along**2 + (elongation * across) ** 2) / (2 * width**2))
        wave = torch.polar(bell / bell.sum(), frequency * along)
        wave = wave - bell / bell.sum() * wave.sum()  # so that it sums to zero
        found += [wave.real, wave.imag]
    return torch.stack(found)[:, None].float()


def _modulus(images: Tensor, filters: Tensor, stride: int) -> Tensor:
    reach = filters.shape[2] // 2
    filtered = F.conv2d(F.pad(images, [reach] * 4, mode="reflect"), filters, stride=stride)
    return torch.hypot(filtered[:, 0::2], filtered[:, 1::2])


def _averages(size: int, step: int) -> Tensor:
    """The matrix that averages every `step`-th of `size` pixels by a bell of width 3.2, around each fourth pixel."""
    places, centres = torch.arange(0, size, step), torch.arange(size // 4) * 4 + 1.5
    bells = torch.exp(-((places - centres[:, None]) ** 2) / (2 * 3.2**2))
    return bells / bells.sum(1, keepdim=True)


def features(images: Tensor, kind: str) -> Tensor:
    """Return what a model is given of images: pixels from -1 to 1, or normalised scattering features."""
    if kind == "pixels":
        return images * 2 - 1
    return torch.cat([F.group_norm(scattering(some), GROUPS).flatten(1) for some in images.split(AT_ONCE)])


def model_for(kind: str, example: Tensor, classes: int) -> nn.Module:
    """Return a linear model of features, or a network of 26,010 weights of pixels (at 28 × 28)."""
    if kind == "scattering":
        linear = nn.Linear(example.numel(), classes)
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
        return linear
    network = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
    )
    width = network(example[None]).numel()
    return network.extend([nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, classes)])


def train(examples: Tensor, labels: Tensor, kind: str, epsilon: float, chosen: Settings, classes: int) -> nn.Module:
    """Train a model by a plan of its own, and return the moving average of its weights."""
    model = model_for(kind, examples[0], classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=chosen.rate, momentum=0.9)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(chosen.average))
    made = plan(
        epsilon=epsilon,
        delta=DELTA,
        n=len(examples),
        batch=min(chosen.batch, len(examples)),
        steps=chosen.steps,
        max_grad_norm=chosen.norm,
    )
    run = attach(model, optimizer, made)
    for step in run.steps((examples, labels), microbatch=AT_ONCE, progress=True):
        for x, y in step:
            step.backward(F.cross_entropy(model(x), y, reduction="none"))
        averaged.update_parameters(model)  # of what was released: it costs nothing
    print(f"  {run.spent()}")
    return averaged


@torch.no_grad()
def accuracy(model: nn.Module, examples: Tensor, labels: Tensor) -> float:
    """The share of labels that a model says right."""
    right = [
        (model(x).argmax(1) == y).sum() for x, y in zip(examples.split(AT_ONCE), labels.split(AT_ONCE), strict=True)
    ]
    return float(sum(right)) / len(labels)


def main(folder: Path, epsilon: float = 3.0, kind: str = "pixels", runs: int = 1, classes: int = 10) -> list[float]:
    """Train once or several times, and say how many test images each model tells."""
    images = read(folder)
    known = SETTINGS[kind]
    chosen = known[min(known, key=lambda one: abs(math.log(one / epsilon)))]
    print(f"{kind}, ε = {epsilon:g} at δ = {DELTA:g}, {len(images.train)} images; tuned, outside of ε: {chosen}")
    examples, tests = features(images.train, kind), features(images.test, kind)
    found = []
    for number in range(1, runs + 1):
        model = train(examples, images.train_labels, kind, epsilon, chosen, classes)
        found.append(accuracy(model, tests, images.test_labels))
        print(f"  run {number}: {found[-1]:.2%} of the test images", flush=True)
    if runs > 1:  # each is a release of its own: whoever publishes all of them pays for all of them
        print(f"mean of {runs} runs: {statistics.mean(found):.2%}, each alone at ε = {epsilon:g}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the four files are")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--features", choices=tuple(SETTINGS), default="pixels")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--classes", type=int, default=10, help="how many labels there are, publicly: 0 to one less")
    options = parser.parse_args()
    main(options.folder, options.epsilon, options.features, options.runs, options.classes)
