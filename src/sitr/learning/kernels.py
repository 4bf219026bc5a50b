"""Per-sample gradient norms and sums on a GPU that store no per-sample gradient: Triton kernels.

A convolution is a linear layer on patches. With a patch matrix A (T positions × d numbers) and the gradient g of the
outputs (T × p), a sample's weight gradient is G = gᵀA, and its squared norm is found in one of two ways, whichever
needs fewer multiplications (THEORY 7.3):

- *products*: tiles of G are made in registers, squared and summed, 2·T·d·p operations;
- *Grams*: ‖G‖² = ⟨AAᵀ, ggᵀ⟩, tiles of both T × T matrices side by side, 2·T²·(d + p) operations.

Patches are read from the image as they are needed. Products are accumulated in 32 bits; every program writes one
number, and these are added in a fixed order, so that the same input gives the same norm, to the last bit.

Nothing here is needed without a GPU, and the module can be imported without Triton: ask `available` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

try:
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # a CPU has no use for it
    triton = tl = None

Pair = tuple[int, int]

FOLDED = 64  # channels: with fewer, a tile holds several places of the kernel, or most of it would be empty
CHUNK = 32  # channels that are multiplied at a time in a Gram, of 32 bits
GRAM_TILE = 128  # positions of its largest tile
PROGRAMS = 1024  # that a GPU is given at least, where there is as much to do
PADDING = 2.0**-88  # for each number, in squares of lengths, on CPUs too: what vanishes beside it is harmless
LENGTH = 8192  # products that one program adds: it may not depend on the batch, or a norm would


class Window(NamedTuple):
    """What a convolution sees from each position; `width` is how many positions are in a row."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    width: int

    @property
    def size(self) -> int:
        """How many places the kernel has."""
        return self.kernel[0] * self.kernel[1]


class Tiles(NamedTuple):
    """How a product is cut: positions at a time, columns and rows of a tile, and how it is put on a multiprocessor."""

    t: int
    c: int
    p: int
    warps: int
    stages: int


def tiles(columns: int, rows: int) -> Tiles:
    """Return the tiles for a matrix of so many columns and rows: the best of those tried on an H200."""
    c, p = (128 if n >= 128 else 64 if n > 32 else 32 if n > 16 else 16 for n in (columns, rows))
    return Tiles(32, c, p, 8 if c * p > 64 * 64 else 4, 3)


def _jit(function: Callable[..., Any]) -> Any:
    return function if triton is None else triton.jit(function)


def available(tensor: Tensor) -> bool:
    """Say whether the kernels run where a tensor is, in its type."""
    return triton is not None and tensor.is_cuda and tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)


def takes_tf32(operation: str) -> bool:
    """Say whether a GPU may multiply numbers of 32 bits with 11 digits, in a "matmul" or a "conv".

    `allow_tf32` does not answer where precision was said in the newer way.
    """
    return torch._C._get_fp32_precision_getter("cuda", operation) == "tf32"


def conv_norms(
    a: Tensor, g: Tensor, *, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Tensor, Tensor | None]:
    """Return the squared norm of each sample's gradient of a convolution's weight.

    In 32-bit types the products are TF32 where `takes_tf32` says so, as those of the ordinary
    weight gradient are.

    Args:
        a: Inputs, (B, C, H, W) or (B, C, L), in any layout; of 64 channels and more it may be copied to another.
        g: Gradients of the outputs, (B, P, H', W') or (B, P, L').
        kernel: The size of the kernel.
        stride: As the convolution had it: a number, or one for each dimension. So are the next two.
        padding: Zeros on both sides. What is padded in another way has to be padded in `a`.
        dilation: Between the numbers of a patch.
        groups: Of channels.

    Returns:
        (B,) in 64 bits; and Σ_t |A_t| |g_t| over positions, padded, where Grams have it in their diagonals.
    """
    if a.dim() == 3:
        a, g = a.unsqueeze(2), g.unsqueeze(2)
        kernel, stride, padding, dilation = (1, *kernel), _line(stride, 1), _line(padding, 0), _line(dilation, 1)
    window = Window(_pair(kernel), _pair(stride), _pair(padding), _pair(dilation), g.shape[3])
    batch, channels, columns, positions = (
        a.shape[0],
        a.shape[1] // groups,
        g.shape[1] // groups,
        g.shape[2] * g.shape[3],
    )
    if min(batch, positions) == 0:
        return a.new_zeros(batch, dtype=torch.float64), a.new_zeros(batch, dtype=torch.float64)
    grams = by_grams(channels, columns, positions, window.size)
    if channels >= FOLDED:
        # Inputs are read once for every place of the kernel, so a copy pays that lies along what is summed over:
        # channels in Grams, positions in products. Only of 16 bits do tensor cores take either way.
        last = grams or a.dtype.itemsize == 2
        a, g = (t.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format) for t in (a, g))
    precision = _precision(a, g, tf32=takes_tf32("conv"))
    if grams:
        return _grams(a, g.flatten(2), window, groups, precision)
    return _products(a, g.flatten(2), window, groups, precision), None


def conv_gradients(a: Tensor, g: Tensor, *, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> Tensor:
    """Return each sample's gradient of a convolution's weight, (B, P, *kernel, C); see `conv_norms`.

    It is added in 32 bits, and then rounded to the type of the inputs.
    """
    window = Window(_pair(kernel), _pair(stride), _pair(padding), _pair(dilation), g.shape[3])
    found = a.new_zeros((a.shape[0], g.shape[1], window.size, a.shape[1]))
    if found.numel() and g.numel():
        if a.shape[1] >= FOLDED:  # as in `conv_norms`
            layout = torch.channels_last if a.dtype.itemsize == 2 else torch.contiguous_format
            a, g = (t.contiguous(memory_format=layout) for t in (a, g))
        precision = _precision(a, g, tf32=takes_tf32("conv"))
        _products(a, g.flatten(2), window, 1, precision, found)
    return found.view(*found.shape[:2], *window.kernel, found.shape[3])


def linear_norms(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the squared norm of each sample's gradient of a matrix, by Grams, and Σ_t |a_t| |g_t|, padded, in 64 bits.

    Args:
        a: Inputs, (B, T, d), with the last dimension contiguous.
        g: Gradients of the outputs, (B, T, p), likewise.
    """
    window = Window((1, 1), (1, 1), (0, 0), (1, 1), a.shape[1])
    precision = _precision(a, g, tf32=takes_tf32("matmul"))
    return _grams(a.transpose(1, 2).unsqueeze(2), g.transpose(1, 2), window, 1, precision)


def by_grams(channels: int, columns: int, positions: int, places: int) -> bool:
    """Say whether norms of a convolution (of one group) are found by Grams, and not by products."""
    padded = -(-channels // CHUNK) * CHUNK  # a Gram takes channels by the chunk
    return positions * (padded * places + columns) < channels * places * columns


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Return each sample's inner product Σ x·y of two tensors of one shape (B, …): 32 bits by the block, then 64.

    The error is at most that of 64 additions in 32 bits, in shares of Σ |x·y|.
    """
    x, y = x.reshape(len(x), -1).contiguous(), y.reshape(len(y), -1).contiguous()
    batch, size = x.shape
    parts = x.new_zeros((batch, max(1, -(-size // LENGTH))), dtype=torch.float32)
    if x.numel():
        _inner_kernel[(parts.numel(),)](x, y, parts, size, parts.shape[1], LENGTH=LENGTH, BLOCK=1024)
    return parts.sum(1, dtype=torch.float64)


def weighted_sum(x: Tensor, factors: Tensor) -> Tensor:
    """Return Σ factor·x over samples, in 32 bits; whoever has the factor 0 adds nothing, infinities included.

    Args:
        x: (B, …).
        factors: (B,).

    Returns:
        As one row.
    """
    x, factors = x.reshape(len(x), -1).contiguous(), factors.float().contiguous()
    batch, size = x.shape
    block = 1024 if size >= 2**17 else 256
    across = max(1, -(-size // block))
    splits = max(1, min(-(-batch // 8), -(-PROGRAMS // across)))
    parts = x.new_zeros((splits, size), dtype=torch.float32)
    if x.numel():
        _weighted_kernel[(across * splits,)](x, factors, parts, batch, size, -(-batch // splits), across, BLOCK=block)
    return parts[0] if splits == 1 else parts.sum(0)


def layer_norm_sums(a: Tensor, g: Tensor, *, eps: float, centred: bool = True) -> tuple[Tensor, Tensor]:
    """Return each sample's gradients of the weight and of the bias of a layer norm: Σ g·â and Σ g, in 32 bits.

    Args:
        a: Inputs, (B, T, d): all but the normalised dimensions and the first are one.
        g: Gradients of the outputs, alike.
        eps: What was added to the variance.
        centred: Without it, of an RMS norm, which subtracts no mean.

    Returns:
        Two of (B, d).
    """
    a, g = a.contiguous(), g.contiguous()
    batch, positions, width = a.shape
    block = triton.next_power_of_2(width)
    rows = max(1, min(16, 4096 // block))
    parts = max(1, min(triton.cdiv(positions, rows), triton.cdiv(PROGRAMS, max(batch, 1))))
    sums = a.new_zeros((2, batch, parts, width), dtype=torch.float32)
    if a.numel():
        each = triton.cdiv(positions, parts)
        _layer_norm_kernel[(batch, parts)](
            a, g, sums, positions, each, width, eps, batch * parts * width, CENTRED=centred, ROWS=rows, BLOCK=block
        )
    return sums[0].sum(1), sums[1].sum(1)


def group_norm_sums(a: Tensor, g: Tensor, *, groups: int, eps: float) -> tuple[Tensor, Tensor]:
    """Return each sample's gradients of the weight and of the bias of a group norm: Σ g·â and Σ g, in 32 bits.

    An instance norm has as many groups as channels.

    Args:
        a: Inputs, (B, C, …).
        g: Gradients of the outputs, alike.
        groups: Of channels, each with a mean and a variance of its own.
        eps: What was added to the variance.

    Returns:
        Two of (B, C).
    """
    a, g = a.flatten(2).contiguous(), g.flatten(2).contiguous()
    batch, channels, positions = a.shape
    each = channels // groups
    block_t = min(1024, triton.next_power_of_2(max(positions, 1)))
    block_c = max(1, min(triton.next_power_of_2(each), 4096 // block_t))
    sums = a.new_zeros((2, batch, channels), dtype=torch.float32)
    if a.numel():
        _group_norm_kernel[(batch, groups)](
            a, g, sums, channels, each, positions, eps, batch * channels, BLOCK_C=block_c, BLOCK_T=block_t
        )
    return sums[0], sums[1]


def conv_sums(
    a: Tensor, g: Tensor, factors: Tensor, *, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any
) -> Tensor:
    """Return Σ factor·gradient over samples of a convolution's weight, in 32 bits; see `conv_norms`.

    Gradients of outputs are multiplied by the factor and rounded to their type; whoever has the factor 0 adds nothing.

    Args:
        a: Inputs, (B, C, H, W).
        g: Gradients of the outputs, (B, P, H', W').
        factors: (B,).
        kernel: The size of the kernel.
        stride: As the convolution had it, and so are the next two.
        padding: Zeros on both sides.
        dilation: Between the numbers of a patch.

    Returns:
        (P, C, *kernel).
    """
    window = Window(_pair(kernel), _pair(stride), _pair(padding), _pair(dilation), g.shape[3])
    channels, rows = a.shape[1], g.shape[1]
    if channels >= FOLDED:
        a, g = (t.contiguous(memory_format=torch.channels_last) for t in (a, g))
    fold = channels < FOLDED
    cut = tiles(channels * window.size if fold else channels, rows)
    across = triton.cdiv(channels * window.size, cut.c) if fold else triton.cdiv(channels, cut.c) * window.size
    down = triton.cdiv(rows, cut.p)
    positions = a.shape[0] * g.shape[2] * g.shape[3]
    splits = max(1, min(triton.cdiv(positions, 8 * cut.t), triton.cdiv(PROGRAMS, across * down)))
    each = triton.cdiv(triton.cdiv(positions, splits), cut.t) * cut.t
    parts = a.new_zeros((splits, rows, window.size, channels), dtype=torch.float32)
    g = g.flatten(2)
    if a.numel() and g.numel():
        _sums_kernel[(across * down, splits)](
            a,
            g,
            factors.float().contiguous(),
            parts,
            *_geometry(a, g, window),
            channels,
            rows,
            across,
            positions,
            each,
            FOLD=fold,
            ROWS=a.stride(1) == 1,
            PRECISION=_precision(a, g, tf32=takes_tf32("conv")),
            BLOCK_T=cut.t,
            BLOCK_C=cut.c,
            BLOCK_P=cut.p,
            num_warps=cut.warps,
            num_stages=cut.stages,
        )
    return parts.sum(0).view(rows, *window.kernel, channels).permute(0, 3, 1, 2)


def _pair(value: Any) -> Pair:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _line(value: Any, before: int) -> Pair:
    """What a one-dimensional convolution has, for an image of one row."""
    return before, value if isinstance(value, int) else value[0]


def _products(
    a: Tensor, g: Tensor, window: Window, groups: int, precision: str, gradients: Tensor | None = None
) -> Tensor:
    channels, columns = a.shape[1] // groups, g.shape[1] // groups
    fold = channels < FOLDED
    cut = tiles(channels * window.size if fold else channels, columns)
    across = triton.cdiv(channels * window.size, cut.c) if fold else triton.cdiv(channels, cut.c) * window.size
    parts = a.new_empty((a.shape[0], groups * across * triton.cdiv(columns, cut.p)), dtype=torch.float32)
    _products_kernel[(a.shape[0], parts.shape[1])](
        a,
        g,
        parts if gradients is None else gradients,
        *_geometry(a, g, window),
        channels,
        columns,
        across,
        KEEP=gradients is not None,
        FOLD=fold,
        ROWS=a.stride(1) == 1,
        PRECISION=precision,
        BLOCK_T=cut.t,
        BLOCK_C=cut.c,
        BLOCK_P=cut.p,
        num_warps=cut.warps,
        num_stages=cut.stages,
    )
    return parts.sum(1, dtype=torch.float64)


def _grams(a: Tensor, g: Tensor, window: Window, groups: int, precision: str) -> tuple[Tensor, Tensor]:
    channels, columns = a.shape[1] // groups, g.shape[1] // groups
    block = max(16, min(GRAM_TILE, triton.next_power_of_2(g.shape[2])))
    side = triton.cdiv(g.shape[2], block)
    parts = a.new_empty((2, a.shape[0], groups * side * (side + 1) // 2), dtype=torch.float32)
    _grams_kernel[(a.shape[0], parts.shape[2])](
        a,
        g,
        parts,
        *_geometry(a, g, window),
        channels,
        columns,
        side * (side + 1) // 2,
        parts[0].numel(),
        ROWS=a.stride(1) == 1,
        PRECISION=precision,
        PAD=PADDING,
        BLOCK_T=block,
        BLOCK_C=CHUNK if a.dtype.itemsize == 4 else 2 * CHUNK,
        num_warps=8 if block > 64 else 4,
        num_stages=3,
    )
    squares, spread = parts.sum(2, dtype=torch.float64)
    return squares, spread


def _precision(a: Tensor, g: Tensor, *, tf32: bool) -> str:
    return "tf32" if tf32 and torch.float32 in (a.dtype, g.dtype) else "ieee"


def _geometry(a: Tensor, g: Tensor, window: Window) -> tuple[int, ...]:
    """Sizes and strides, in the order in which the kernels take them."""
    return (*a.shape[2:], window.width, g.shape[2], window.kernel[1], window.size,
            *window.stride, *window.padding, *window.dilation, *a.stride(), *g.stride())  # fmt: skip


@_jit
def _products_kernel(  # type: ignore[no-untyped-def]
    a, g, out, H, W, WO, T, KW, KS, SH, SW, PH, PW, DH, DW, AB, AC, AH, AW, GB, GC, GT, C, P, ACROSS,
    KEEP: tl.constexpr, FOLD: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """One tile of one sample's gᵀA: kept, or squared and summed."""
    sample, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    down = tl.cdiv(P, BLOCK_P)
    group, rest = tile // (ACROSS * down), tile % (ACROSS * down)
    across = rest % ACROSS
    p = (rest // ACROSS) * BLOCK_P + tl.arange(0, BLOCK_P)
    if FOLD:  # columns run through channels, then through places of the kernel
        column = across * BLOCK_C + tl.arange(0, BLOCK_C)
        c, place, inside = column % C, column // C, column < C * KS
    else:  # one place, so that rows alone decide what lies outside the image
        tiles = tl.cdiv(C, BLOCK_C)
        c = (across % tiles) * BLOCK_C + tl.arange(0, BLOCK_C)
        place, inside = across // tiles, c < C
    a += sample * AB + group * C * AC
    g += sample * GB + group * P * GC
    total = tl.zeros((BLOCK_P, BLOCK_C), dtype=tl.float32)
    for begin in range(0, T, BLOCK_T):
        t = begin + tl.arange(0, BLOCK_T)
        gs = _gradients(g, t, p, T, P, GC, GT, ROWS)
        xs = _patches(a, t, c, place, inside, H, W, WO, T, KW, SH, SW, PH, PW, DH, DW, AC, AH, AW, FOLD, ROWS)
        if gs.dtype != xs.dtype:  # 32 bits hold both exactly
            gs, xs = gs.to(tl.float32), xs.to(tl.float32)
        total = tl.dot(tl.trans(gs), xs, total, input_precision=PRECISION)
    if KEEP:
        at = ((sample * P + p[:, None]) * KS + (place[None, :] if FOLD else place)) * C + c[None, :]
        tl.store(out + at, total.to(out.dtype.element_ty), mask=(p < P)[:, None] & inside[None, :])
    else:
        tl.store(out + sample * tl.num_programs(1) + tile, tl.sum(total * total))


@_jit
def _sums_kernel(  # type: ignore[no-untyped-def]
    a, g, factors, out, H, W, WO, T, KW, KS, SH, SW, PH, PW, DH, DW, AB, AC, AH, AW, GB, GC, GT, C, P, ACROSS, N, EACH,
    FOLD: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """One tile of Σ factor·gᵀA over some positions of some samples."""
    tile, part = tl.program_id(0), tl.program_id(1)
    across = tile % ACROSS
    p = (tile // ACROSS) * BLOCK_P + tl.arange(0, BLOCK_P)
    if FOLD:
        column = across * BLOCK_C + tl.arange(0, BLOCK_C)
        c, place, inside = column % C, column // C, column < C * KS
    else:
        tiles = tl.cdiv(C, BLOCK_C)
        c = (across % tiles) * BLOCK_C + tl.arange(0, BLOCK_C)
        place, inside = across // tiles, c < C
    total = tl.zeros((BLOCK_P, BLOCK_C), dtype=tl.float32)
    for begin in range(part * EACH, tl.minimum((part + 1) * EACH, N), BLOCK_T):
        n = begin + tl.arange(0, BLOCK_T)
        sample, t = (n // T).to(tl.int64), n % T
        factor = tl.load(factors + sample, mask=n < N, other=0.0)
        counted = factor != 0
        y, x = (t // WO) * SH - PH, (t % WO) * SW - PW
        if ROWS:
            gs = tl.load(
                g + (sample * GB + t * GT)[:, None] + p[None, :] * GC,
                mask=counted[:, None] & (p < P)[None, :],
                other=0.0,
            )
            gs = (gs.to(tl.float32) * factor[:, None]).to(gs.dtype)
        else:
            gs = tl.load(
                g + (sample * GB + t * GT)[None, :] + p[:, None] * GC,
                mask=counted[None, :] & (p < P)[:, None],
                other=0.0,
            )
            gs = tl.trans((gs.to(tl.float32) * factor[None, :]).to(gs.dtype))
        if ROWS:
            place_ = place[None, :] if FOLD else place
            ys, xs = y[:, None] + (place_ // KW) * DH, x[:, None] + (place_ % KW) * DW
            seen = counted[:, None] & (ys >= 0) & (ys < H) & (xs >= 0) & (xs < W) & inside[None, :]
            values = tl.load(a + (sample * AB)[:, None] + (ys * AH + xs * AW) + c[None, :] * AC, mask=seen, other=0.0)
        else:
            place_ = place[:, None] if FOLD else place
            ys, xs = y[None, :] + (place_ // KW) * DH, x[None, :] + (place_ % KW) * DW
            seen = counted[None, :] & (ys >= 0) & (ys < H) & (xs >= 0) & (xs < W) & inside[:, None]
            values = tl.trans(
                tl.load(a + (sample * AB)[None, :] + (ys * AH + xs * AW) + c[:, None] * AC, mask=seen, other=0.0)
            )
        if gs.dtype != values.dtype:
            gs, values = gs.to(tl.float32), values.to(tl.float32)
        total = tl.dot(tl.trans(gs), values, total, input_precision=PRECISION)
    at = out + ((part * P + p[:, None]).to(tl.int64) * KS + (place[None, :] if FOLD else place)) * C + c[None, :]
    tl.store(at, total, mask=(p < P)[:, None] & inside[None, :])


@_jit
def _grams_kernel(  # type: ignore[no-untyped-def]
    a, g, out, H, W, WO, T, KW, KS, SH, SW, PH, PW, DH, DW, AB, AC, AH, AW, GB, GC, GT, C, P, PAIRS, HALF,
    ROWS: tl.constexpr, PRECISION: tl.constexpr, PAD: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """One tile of the Gram of patches and the same tile of that of gradients, multiplied and summed.

    Both are symmetric: a tile off the diagonal counts twice. The second half of what is written are the lengths of
    positions, the roots of padded diagonals, multiplied and summed.
    """
    sample, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    group, pair = tile // PAIRS, tile % PAIRS
    row = 0
    while (row + 1) * (row + 2) // 2 <= pair:
        row += 1
    t = row * BLOCK_T + tl.arange(0, BLOCK_T)
    s = (pair - row * (row + 1) // 2) * BLOCK_T + tl.arange(0, BLOCK_T)
    a += sample * AB + group * C * AC
    g += sample * GB + group * P * GC
    of_g = tl.zeros((BLOCK_T, BLOCK_T), dtype=tl.float32)
    for begin in range(0, P, BLOCK_C):
        p = begin + tl.arange(0, BLOCK_C)
        left = _gradients(g, t, p, T, P, GC, GT, ROWS)
        right = _gradients(g, s, p, T, P, GC, GT, ROWS)
        of_g = tl.dot(left, tl.trans(right), of_g, input_precision=PRECISION)
    of_a = tl.zeros((BLOCK_T, BLOCK_T), dtype=tl.float32)
    for place in range(0, KS):
        for begin in range(0, C, BLOCK_C):
            c = begin + tl.arange(0, BLOCK_C)
            left = _patches(a, t, c, place, c < C, H, W, WO, T, KW, SH, SW, PH, PW, DH, DW, AC, AH, AW, False, ROWS)
            right = _patches(a, s, c, place, c < C, H, W, WO, T, KW, SH, SW, PH, PW, DH, DW, AC, AH, AW, False, ROWS)
            of_a = tl.dot(left, tl.trans(right), of_a, input_precision=PRECISION)
    total = tl.sum(of_a * of_g)
    on_diagonal = pair == row * (row + 3) // 2
    at = out + sample * tl.num_programs(1) + tile
    tl.store(at, tl.where(on_diagonal, total, 2 * total))
    place = tl.arange(0, BLOCK_T)
    equal = place[:, None] == place[None, :]
    lengths_a = tl.sqrt(tl.sum(tl.where(equal, of_a, 0.0), 1) + C * KS * PAD)
    lengths_g = tl.sqrt(tl.sum(tl.where(equal, of_g, 0.0), 1) + P * PAD)
    lengths = tl.sum(lengths_a * lengths_g)
    tl.store(at + HALF, tl.where(on_diagonal, lengths, 0.0))


@_jit
def _gradients(g, t, p, T, P, GC, GT, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Gradients of outputs, positions × columns, and zero beyond the last of either; see `_patches` for ROWS."""
    if ROWS:
        tile = tl.load(g + t[:, None] * GT + p[None, :] * GC, mask=(t < T)[:, None] & (p < P)[None, :], other=0.0)
    else:
        tile = tl.load(g + t[None, :] * GT + p[:, None] * GC, mask=(t < T)[None, :] & (p < P)[:, None], other=0.0)
        tile = tl.trans(tile)
    return tile


@_jit
def _patches(  # type: ignore[no-untyped-def]
    a, t, c, place, inside, H, W, WO, T, KW, SH, SW, PH, PW, DH, DW, AC, AH, AW, FOLD: tl.constexpr, ROWS: tl.constexpr
):
    """Inputs as positions read them, positions × columns, and zero outside the image.

    Threads that are neighbours read along channels where these are contiguous (ROWS), and else along positions.
    """
    if ROWS:
        down, right, t, c, inside = (t // WO)[:, None], (t % WO)[:, None], t[:, None], c[None, :], inside[None, :]
        if FOLD:
            place = place[None, :]
    else:
        down, right, t, c, inside = (t // WO)[None, :], (t % WO)[None, :], t[None, :], c[:, None], inside[:, None]
        if FOLD:
            place = place[:, None]
    y, x = down * SH - PH + (place // KW) * DH, right * SW - PW + (place % KW) * DW
    seen = (t < T) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    tile = tl.load(a + (y * AH + x * AW) + c * AC, mask=seen & inside, other=0.0)
    if not ROWS:
        tile = tl.trans(tile)
    return tile


@_jit
def _inner_kernel(x, y, out, SIZE, PARTS, LENGTH: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Some of one sample's products, added."""
    program = tl.program_id(0).to(tl.int64)
    sample, part = program // PARTS, program % PARTS
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for begin in range(0, LENGTH, BLOCK):
        at = part * LENGTH + begin + tl.arange(0, BLOCK)
        left = tl.load(x + sample * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
        right = tl.load(y + sample * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
        total += left * right
    tl.store(out + program, tl.sum(total))


@_jit
def _weighted_kernel(x, factors, out, BATCH, SIZE, EACH, ACROSS, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Some numbers of some samples, times their factors, added."""
    program = tl.program_id(0).to(tl.int64)
    part, across = program // ACROSS, program % ACROSS
    at = across * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for sample in range(part * EACH, tl.minimum((part + 1) * EACH, BATCH)):
        factor = tl.load(factors + sample)
        values = tl.load(x + sample * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
        total += tl.where(factor != 0, factor * values, 0.0)
    tl.store(out + part * SIZE + at, total, mask=at < SIZE)


@_jit
def _layer_norm_kernel(  # type: ignore[no-untyped-def]
    a, g, out, T, EACH, D, EPS, HALF, CENTRED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Some positions of one sample: each is read once, normalised in registers, multiplied and added up."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d = tl.arange(0, BLOCK)
    of_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    of_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    last = tl.minimum((part + 1) * EACH, T)
    for begin in range(part * EACH, last, ROWS):
        t = begin + tl.arange(0, ROWS)
        inside = (t[:, None] < last) & (d[None, :] < D)
        at = (sample * T + t[:, None]) * D + d[None, :]
        xs = tl.load(a + at, mask=inside, other=0.0).to(tl.float32)
        gs = tl.load(g + at, mask=inside, other=0.0).to(tl.float32)
        if CENTRED:
            xs = tl.where(inside, xs - (tl.sum(xs, 1) / D)[:, None], 0.0)
        xs = xs / tl.sqrt(tl.sum(xs * xs, 1) / D + EPS)[:, None]
        of_weight += tl.sum(gs * xs, 0)
        of_bias += tl.sum(gs, 0)
    at = (sample * tl.num_programs(1) + part) * D + d
    tl.store(out + at, of_weight, mask=d < D)
    tl.store(out + HALF + at, of_bias, mask=d < D)


@_jit
def _group_norm_kernel(  # type: ignore[no-untyped-def]
    a, g, out, C, EACH, T, EPS, HALF, BLOCK_C: tl.constexpr, BLOCK_T: tl.constexpr
):
    """One group of one sample: mean and variance tile by tile (Chan, Golub and LeVeque 1979), then the sums."""
    sample, group = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first = sample * C + group * EACH
    mean, squares, count = 0.0, 0.0, 0.0
    for begin in range(0, EACH, BLOCK_C):
        c = begin + tl.arange(0, BLOCK_C)
        for start in range(0, T, BLOCK_T):
            t = start + tl.arange(0, BLOCK_T)
            inside = (c[:, None] < EACH) & (t[None, :] < T)
            xs = tl.load(a + (first + c[:, None]) * T + t[None, :], mask=inside, other=0.0).to(tl.float32)
            more = (tl.minimum(BLOCK_C, EACH - begin) * tl.minimum(BLOCK_T, T - start)).to(tl.float32)
            here = tl.sum(xs) / more
            apart = tl.where(inside, xs - here, 0.0)
            shift = here - mean
            squares += tl.sum(apart * apart) + shift * shift * count * more / (count + more)
            mean += shift * more / (count + more)
            count += more
    scale = 1.0 / tl.sqrt(squares / count + EPS)
    for begin in range(0, EACH, BLOCK_C):
        c = begin + tl.arange(0, BLOCK_C)
        of_weight = tl.zeros((BLOCK_C,), dtype=tl.float32)
        of_bias = tl.zeros((BLOCK_C,), dtype=tl.float32)
        for start in range(0, T, BLOCK_T):
            t = start + tl.arange(0, BLOCK_T)
            inside = (c[:, None] < EACH) & (t[None, :] < T)
            at = (first + c[:, None]) * T + t[None, :]
            xs = tl.load(a + at, mask=inside, other=0.0).to(tl.float32)
            gs = tl.load(g + at, mask=inside, other=0.0).to(tl.float32)
            of_weight += tl.sum(gs * (xs - mean) * scale, 1)
            of_bias += tl.sum(gs, 1)
        tl.store(out + first + c, of_weight, mask=c < EACH)
        tl.store(out + HALF + first + c, of_bias, mask=c < EACH)
