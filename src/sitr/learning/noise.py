"""The noise of a step: on the sums of clipped gradients, and on the numbers that are measured beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..errors import InvalidArgument
from ..mechanisms.floats import device_key, float_normals
from ..mechanisms.randomness import EXPANDED, Source
from ..mechanisms.samplers.draws import LARGEST_SIGMA, Variance, discrete_gaussian
from .correlated import Stream
from .plan import LEAST_NORM, LEAST_SCALE, MOST_CELLS, MOST_NORM, SMOOTHING, TrainingPlan

CELLS = 1024  # grid steps of one example in a number that is measured beside gradients
QUANTILE_RATE = 0.2  # how fast an adaptive bound follows its quantile (Andrew et al. 2021)


@dataclass(frozen=True)
class StepNoise:
    """Noise for the steps of one plan.

    Attributes:
        plan: Which says how much.
        sensitivity: How far, in ℓ2, one example moves the sum of gradients: proved by what clips them.
        grid: The step of the grid that exact sums are counted in; None where sums are floats.
        source: Of bits.
        size: How many numbers the sums have in all: what correlated noise on a grid has to know.

    Privacy: on a grid, discrete Gaussian noise of variance (σK)² + 4, K the sensitivity in grid steps: it passes for
    Gaussian noise of multiplier σ, but for a chance of 1e-50 over all coordinates that one example moves (THEORY 3.5).
    Float noise is that of `float_noise_like`. Noise is independent over numbers, tensors and steps, and follows no
    seed of torch.

    Where the plan has bands, that is the noise z of decision 0034, with √(Σ m_i²) K for K, and what is added to a sum
    is w = M⁻¹z, a `Stream` for each tensor. As limits on K hold for √(Σ m_i²) K, sums are rounded to a coarser grid
    first: by that one example moves each number by less than a step more, so K grows by √size.

    Example:
        >>> from sitr.learning.plan import plan
        >>> made = plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=5, noise_multiplier=2.0)
        >>> noisy = StepNoise(made, sensitivity=1.0, grid=2.0**-16).on_sums(
        ...     {"w": torch.zeros(10_000, dtype=torch.int64)}
        ... )
        >>> bool(1.9 < noisy["w"].std() < 2.1)
        True
    """

    plan: TrainingPlan
    sensitivity: float
    grid: float | None
    source: Source = EXPANDED
    size: int = 1
    _streams: dict[str, Stream] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise InvalidArgument("what clips gradients states no sensitivity.")
        if (self.grid is None) != (self.plan.noise == "float"):
            raise InvalidArgument(f"the plan has noise={self.plan.noise!r}, and sums are not of that kind.")
        if self.grid is not None:
            scale = math.sqrt(self.variance)
            if self.cells > self._most_cells or scale < LEAST_SCALE:
                raise InvalidArgument(
                    f"the noise would be {scale:.3g} steps of the grid, outside [{LEAST_SCALE:g}, {LARGEST_SIGMA:g}].",
                    do='choose another noise_multiplier, or noise="float".',
                )

    @cached_property
    def norm_squared(self) -> int:
        """Σ m_i² of correlated noise: how much further a step moves what is released; 1 where it is independent."""
        return self.plan.correlation.norm_squared if self.plan.correlation else 1

    @cached_property
    def coarser(self) -> int:
        """How many steps of the grid of the sums make one of the grid that noise is on: as few as there is room for.

        Raises:
            InvalidArgument: Rounding to such a grid would cost half as much noise again.
        """
        if self.plan.correlation is None or self.grid is None or self._cells(1) <= self._most_cells:
            return 1
        left = self._most_cells - self._rounding
        if left < 2 * self._rounding:
            raise InvalidArgument(
                f"exact noise that is correlated over {self.plan.bands} steps has no room for so many weights.",
                why="their sums would have to be rounded to a grid that takes half as much noise again.",
                do='use noise="float", fewer bands or less noise.',
            )
        return math.ceil(self._cells(1) / left)

    @cached_property
    def cells(self) -> Fraction:
        """How far, in ℓ2 and in steps of the grid that noise is on, one example moves the sum of a step."""
        return self._cells(self.coarser)

    def _cells(self, coarser: int) -> Fraction:
        assert self.grid is not None
        return Fraction(self.sensitivity) / Fraction(self.grid) / coarser + (self._rounding if coarser > 1 else 0)

    @property
    def _rounding(self) -> int:
        """√size, rounded up: how far sums move beside their own movement, as each number goes less than a step more."""
        return math.isqrt(self.size - 1) + 1

    @property
    def _most_cells(self) -> int:
        """How many `cells` there may be, so that noise passes for Gaussian (`test_plan`), and can be drawn."""
        drawn = (Fraction(LARGEST_SIGMA) ** 2 - Fraction(SMOOTHING) - 1) / Fraction(self.plan.gradient_multiplier) ** 2
        return math.isqrt(math.floor(min(Fraction(MOST_CELLS) ** 2, drawn) / self.norm_squared))

    @cached_property
    def variance(self) -> Variance:
        """Of exact noise on gradients, in squared steps of the grid that it is on; before it is correlated."""
        return discrete_variance(self.plan.gradient_multiplier, self.cells, self.norm_squared)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on each number of a sum, in its own units; before it is correlated."""
        if self.grid is None:
            return self.plan.gradient_multiplier * self.sensitivity * math.sqrt(self.norm_squared)
        return math.sqrt(self.variance) * self.grid * self.coarser

    def on_sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return sums with noise, in the units of gradients and at least in fp32; of a run, once for each step."""
        if self.coarser > 1 and sum(total.numel() for total in sums.values()) > self.size:
            raise InvalidArgument(f"the sums have more than size={self.size} numbers, for which the noise is enough.")
        if self.grid is None and self.plan.correlation is None:
            return self._on_floats(sums)
        return {name: self._on_sum(name, total) for name, total in sums.items()}

    def forget(self) -> None:
        """Begin anew with noise that goes together with none before: a step was left out.

        Privacy: groups and passes keep an example's steps so far apart as steps are numbered. If the rows of a stream
        went on behind a step that has none, they would be nearer.
        """
        self._streams.clear()

    def _on_floats(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Add float noise: one draw for all sums that a device has in one type, as a GPU is slow to be asked often."""
        alike: dict[tuple[torch.device, torch.dtype], list[str]] = {}
        for name, total in sums.items():
            _refuse_short(total)
            alike.setdefault((total.device, total.dtype), []).append(name)
        found: dict[str, Tensor] = {}
        for (device, dtype), names in alike.items():
            totals = [sums[name] for name in names]
            sizes = [total.numel() for total in totals]
            drawn = self._drawn(torch.empty(sum(sizes), dtype=dtype, device=device))
            parts = [part.view_as(total) for part, total in zip(drawn.split(sizes), totals, strict=True)]
            torch._foreach_add_(parts, totals)
            found |= dict(zip(names, parts, strict=True))
        return {name: found[name] for name in sums}

    def _on_sum(self, name: str, total: Tensor) -> Tensor:
        if self.grid is None:
            _refuse_short(total)
            return total + self._noise(name, total)
        if total.dtype != torch.int64:
            raise InvalidArgument(f"exact sums are whole numbers, and these are {total.dtype}.")
        if self.coarser > 1:
            total = torch.floor_divide(total + self.coarser // 2, self.coarser)
        return (total + self._noise(name, total)).double().mul_(self.grid * self.coarser)

    def _noise(self, name: str, total: Tensor) -> Tensor:
        """Noise on the sum of one tensor, in its numbers."""
        if self.plan.correlation is None:
            return self._drawn(total)
        if name not in self._streams:
            like = total.new_zeros(()).expand(total.shape)  # nothing of a sum is kept
            self._streams[name] = Stream(self.plan.correlation, self._draws(like))
        noise: Tensor = next(self._streams[name])
        return noise

    def _draws(self, like: Tensor) -> Iterator[Tensor]:
        while True:
            yield self._drawn(like)

    def _drawn(self, like: Tensor) -> Tensor:
        """Independent noise, as many numbers as a tensor has."""
        if self.grid is None:
            return float_noise_like(like, self.source) * self.scale
        drawn = discrete_gaussian(self.variance, like.numel(), self.source)
        return torch.from_numpy(drawn).view(like.shape).to(like.device)

    def on_number(self, cells: int) -> float:
        """Return a number that is measured beside gradients, of 1024 grid steps an example, with noise, in examples."""
        variance = discrete_variance(self.plan.beside_multiplier, Fraction(CELLS))
        return (cells + int(discrete_gaussian(variance, 1, self.source)[0])) / CELLS

    def next_norm(self, norm: float, balance: int) -> float:
        """Return the next bound: lower, where more gradients than the quantile lie under it (Andrew et al. 2021).

        Args:
            norm: The bound.
            balance: Each example of the step counts +1 where it is under the bound, -1 where it is over it, and nothing
                where its gradient is not finite, as if it were not there. So an empty draw says one half.
        """
        assert self.plan.quantile is not None
        share = (1 + self.on_number(CELLS * balance) / self.plan.batch) / 2
        return min(max(norm * math.exp(-QUANTILE_RATE * (share - self.plan.quantile)), LEAST_NORM), MOST_NORM)


def _refuse_short(total: Tensor) -> None:
    if not total.dtype.is_floating_point or total.dtype.itemsize < 4:
        raise InvalidArgument(f"gradients were summed in {total.dtype}, which holds less than fp32.")


def float_noise_like(total: Tensor, source: Source) -> Tensor:
    """Return independent N(0, 1) for each number of a tensor, on its device and at least in fp32.

    A device draws for itself, keyed anew for every call. On a CPU torch would keep 32 bits of the key, which can be
    tried out one by one, so its own generator is not used there.

    Example:
        >>> float_noise_like(torch.zeros(3, dtype=torch.bfloat16), EXPANDED).dtype
        torch.float32
    """
    kind = torch.float64 if total.dtype == torch.float64 else torch.float32
    if total.device.type == "cpu":
        drawn = float_normals(total.numel(), source, double=kind == torch.float64)
        return torch.from_numpy(drawn).view(total.shape)
    generator = torch.Generator(device=total.device)
    generator.manual_seed(device_key(source))
    return torch.randn(total.shape, generator=generator, device=total.device, dtype=kind)


def discrete_variance(multiplier: float, cells: Fraction, norm_squared: int = 1) -> Variance:
    """Return the variance of discrete noise that passes for a Gaussian's of (multiplier × cells)² (THEORY 3.5).

    Args:
        multiplier: Noise over sensitivity.
        cells: The sensitivity of a sum, in grid steps.
        norm_squared: By how much the square of that grows where sums are in the release several times.

    Example:
        >>> discrete_variance(2.0, Fraction(50)), discrete_variance(2.0, Fraction(50), norm_squared=5)
        (Fraction(10004, 1), Fraction(50004, 1))
    """
    exact = (Fraction(multiplier) * cells) ** 2 * norm_squared + Fraction(SMOOTHING)
    return Variance(Fraction(math.ceil(exact * 2**20), 2**20))


def in_cells(values: Tensor, bound: float) -> int:
    """Return the sum of values in [0, bound], 1024 grid steps each where they are at their bound; others are clamped.

    Each value is rounded to whole steps by itself, so one example moves the sum by 1024 at most; what is no number
    counts as 0.

    Example:
        >>> in_cells(torch.tensor([0.5, 2.0, -1.0, float("nan")]), bound=1.0)
        1536
    """
    shares = torch.nan_to_num(values.detach().double() / bound, nan=0.0, posinf=0.0, neginf=0.0).clamp(0, 1)
    return int(np.rint(shares.cpu().numpy() * CELLS).astype(np.int64).sum())
