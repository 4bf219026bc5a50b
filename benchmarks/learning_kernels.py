"""The kernels for convolutions and normalisation layers on a GPU, shape by shape: right, and how fast.

python benchmarks/learning_kernels.py           beside unfolding and beside the ordinary weight gradient
python benchmarks/learning_kernels.py --tiles   the products in tiles of other sizes, to choose from

`ours` is what `conv_norms` takes, with the copy to another layout where it makes one, and by Grams where they
are cheaper; `direct` are the products from the layout that is there. A time is the median of what
`triton.testing.do_bench` measures. `off by` is the largest relative distance of a norm from that of unfolded patches in
64 bits; of bf16, from that of the same rounded numbers.
"""

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BATCH = 512
# channels, outputs, image, kernel, stride, padding: the layers of ResNet-18 on 32 × 32, and of ViT-S/16 its first
SHAPES = (
    (3, 64, 32, 3, 1, 1),
    (64, 64, 32, 3, 1, 1),
    (64, 128, 32, 3, 2, 1),
    (64, 128, 32, 1, 2, 0),
    (128, 128, 16, 3, 1, 1),
    (128, 256, 16, 3, 2, 1),
    (256, 256, 8, 3, 1, 1),
    (256, 512, 8, 3, 2, 1),
    (512, 512, 4, 3, 1, 1),
    (3, 384, 224, 16, 16, 0),
)
LAYER_NORMS = ((256, 197, 384), (16, 1024, 768))
GROUP_NORMS = ((512, 64, 1024, 32), (512, 128, 256, 32), (512, 256, 64, 32), (512, 512, 16, 32))
TYPES = {"tf32": torch.float32, "bf16": torch.bfloat16}
LAYOUTS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}


def median(call: Callable[[], Any]) -> float:
    """Milliseconds."""
    import triton

    return float(triton.testing.do_bench(call, warmup=20, rep=60, return_mode="median"))


def tensors(shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format) -> tuple[Tensor, Tensor]:
    channels, outputs, size, kernel, stride, padding = shape
    after = (size + 2 * padding - kernel) // stride + 1
    a = torch.randn(BATCH, channels, size, size, device="cuda").to(dtype, memory_format=layout)
    g = torch.randn(BATCH, outputs, after, after, device="cuda").to(dtype, memory_format=layout)
    return a, g


def unfolded(a: Tensor, g: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
    patches = F.unfold(a, kernel, 1, padding, stride)
    return torch.bmm(g.flatten(2), patches.transpose(1, 2)).square().sum((1, 2))


def window_of(kernels: Any, g: Tensor, shape: tuple[int, ...]) -> Any:
    return kernels.Window(*((value, value) for value in (*shape[3:], 1)), g.shape[3])


def direct(kernels: Any, a: Tensor, g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The products from the layout that is there, without a copy."""
    return kernels._products(a, g.flatten(2), window_of(kernels, g, shape), 1, "tf32")


def ordinary(a: Tensor, g: Tensor, kernel: int, stride: int, padding: int) -> Callable[[], Any]:
    """What autograd would call for the weight's gradient of the whole batch."""
    size = (g.shape[1], a.shape[1], kernel, kernel)
    weight = torch.empty(size, device=a.device, dtype=a.dtype)
    rest = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [False, True, False])
    return lambda: torch.ops.aten.convolution_backward(g, a, weight, None, *rest)


def convolutions(kernels: Any) -> list[dict[str, Any]]:
    titles = "".join(f"{word:>10}" for word in ("ours", "direct", "unfolded", "ordinary", "off by"))
    print(f"\n{'convolution':<28}{'type':<6}{'layout':<6}{titles}  ms")
    rows = []
    for shape, (kind, dtype), (name, layout) in itertools.product(SHAPES, TYPES.items(), LAYOUTS.items()):
        a, g = tensors(shape, dtype, layout)
        kernel, stride, padding = shape[3:]
        options = {"kernel": (kernel, kernel), "stride": stride, "padding": padding, "dilation": 1, "groups": 1}
        found, _ = kernels.conv_norms(a, g, **options)
        true = unfolded(a[:8].double(), g[:8].double(), kernel, stride, padding)
        row = {
            "convolution": "{}→{} at {}², {}², stride {}".format(*shape[:5]),
            "type": kind,
            "layout": name,
            "ours": median(lambda a=a, g=g, options=options: kernels.conv_norms(a, g, **options)),
            "direct": median(lambda a=a, g=g, shape=shape: direct(kernels, a, g, shape)),
            "unfolded": median(lambda a=a, g=g, rest=shape[3:]: unfolded(a, g, *rest)),
            "ordinary": median(ordinary(a, g, kernel, stride, padding)),
            "off": float(((found[:8].double() - true) / true).abs().max()),
        }
        rows.append(row)
        times = "".join(f"{row[word]:>10.3f}" for word in ("ours", "direct", "unfolded", "ordinary"))
        print(f"{row['convolution']:<28}{kind:<6}{name:<6}{times}{row['off']:>10.1e}", flush=True)
    return rows


def normalisations(kernels: Any) -> list[dict[str, Any]]:
    print(f"\n{'normalisation':<28}{'type':<6}{'ours':>8}{'eager':>10}{'off by':>10}  ms")
    rows = []
    cases = [("layer norm", shape, None) for shape in LAYER_NORMS]
    cases += [("group norm", shape[:3], shape[3]) for shape in GROUP_NORMS]
    for (word, shape, groups), (kind, dtype) in itertools.product(cases, TYPES.items()):
        a, g = (torch.randn(shape, device="cuda").to(dtype) for _ in range(2))
        if groups is None:
            call = lambda a=a, g=g: kernels.layer_norm_sums(a, g, eps=1e-5)  # noqa: E731
            plain = lambda a=a, g=g: ((F.layer_norm(a, a.shape[2:]) * g).sum(1), g.sum(1))  # noqa: E731
        else:
            call = lambda a=a, g=g, n=groups: kernels.group_norm_sums(a, g, groups=n, eps=1e-5)  # noqa: E731
            plain = lambda a=a, g=g, n=groups: ((F.group_norm(a, n) * g).sum(2), g.sum(2))  # noqa: E731
        exact = plain(a.double(), g.double())[0]
        off = float((call()[0].double() - exact).norm() / exact.norm())
        row = {
            "normalisation": f"{word} {shape}",
            "type": kind,
            "ours": median(call),
            "eager": median(plain),
            "off": off,
        }
        rows.append(row)
        print(f"{row['normalisation']:<28}{kind:<6}{row['ours']:>8.3f}{row['eager']:>10.3f}{off:>10.1e}", flush=True)
    return rows


def tiles(kernels: Any) -> None:
    """Products of the shapes that need them, in every tile that is worth a try."""
    choices = [
        {"BLOCK_T": t, "width": width, "num_warps": warps, "num_stages": stages}
        for t, width, warps, stages in itertools.product((32, 64), (64, 128), (4, 8), (2, 3, 4))
    ]
    chosen = kernels.tiles
    for shape, (kind, dtype), (name, layout) in itertools.product(SHAPES[1:5], TYPES.items(), LAYOUTS.items()):
        a, g = tensors(shape, dtype, layout)
        times = []
        for choice in choices:
            kernels.tiles = lambda c, p, choice=choice: kernels.Tiles(
                choice["BLOCK_T"],
                min(choice["width"], chosen(c, p).c),
                min(choice["width"], chosen(c, p).p),
                choice["num_warps"],
                choice["num_stages"],
            )
            try:
                times.append((median(lambda a=a, g=g, shape=shape: direct(kernels, a, g, shape)), choice))
            except Exception as error:  # a tile that does not fit into a multiprocessor
                print(f"   {choice}: {type(error).__name__}", flush=True)
        kernels.tiles = chosen
        standing = median(lambda a=a, g=g, shape=shape: direct(kernels, a, g, shape))
        print(f"{shape} {kind} {name}: chosen {standing:.3f} ms; best", flush=True)
        for time, choice in sorted(times, key=lambda pair: pair[0])[:3]:
            print(f"   {time:.3f} ms {choice}", flush=True)


def load() -> Any:
    if importlib.util.find_spec("sitr") is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return importlib.import_module("sitr.learning.kernels")


def run() -> list[dict[str, Any]]:
    kernels = load()
    return convolutions(kernels) + normalisations(kernels)


if __name__ == "__main__":
    tiles(load()) if "--tiles" in sys.argv else run()
