"""The noise of a step: on the sums of clipped gradients, and on the numbers that are measured beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from ..errors import InvalidArgument
from ..mechanisms.floats import device_key, float_normals
from ..mechanisms.randomness import EXPANDED, Source
from ..mechanisms.samplers.draws import LARGEST_SIGMA, Variance, discrete_gaussian
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

    Privacy: on a grid, discrete Gaussian noise of variance (σK)² + 4, K the sensitivity in grid steps: it passes for
    Gaussian noise of multiplier σ, but for a chance of 1e-50 over all coordinates that one example moves (THEORY 3.5).
    Float noise is that of `float_noise_like`. Noise is independent over numbers, tensors and steps, and follows no
    seed of torch.

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

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise InvalidArgument("what clips gradients states no sensitivity.")
        if (self.grid is None) != (self.plan.noise == "float"):
            raise InvalidArgument(f"the plan has noise={self.plan.noise!r}, and sums are not of that kind.")
        if self.grid is not None:
            cells, scale = Fraction(self.sensitivity) / Fraction(self.grid), math.sqrt(self.variance)
            if cells > MOST_CELLS or not LEAST_SCALE <= scale <= LARGEST_SIGMA:
                raise InvalidArgument(
                    f"the noise would be {scale:.3g} steps of the grid, outside [{LEAST_SCALE:g}, {LARGEST_SIGMA:g}].",
                    do='choose another noise_multiplier, or noise="float".',
                )

    @property
    def variance(self) -> Variance:
        """Of exact noise on gradients, in squared steps of the grid."""
        assert self.grid is not None
        return discrete_variance(self.plan.gradient_multiplier, Fraction(self.sensitivity) / Fraction(self.grid))

    @property
    def scale(self) -> float:
        """The standard deviation of the noise on each number of a sum, in its own units."""
        if self.grid is None:
            return self.plan.gradient_multiplier * self.sensitivity
        return math.sqrt(self.variance) * self.grid

    def on_sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return sums with noise, in the units of gradients and at least in fp32."""
        return {name: self._on_sum(total) for name, total in sums.items()}

    def _on_sum(self, total: Tensor) -> Tensor:
        if self.grid is None:
            if not total.dtype.is_floating_point or total.dtype.itemsize < 4:
                raise InvalidArgument(f"gradients were summed in {total.dtype}, which holds less than fp32.")
            return total + float_noise_like(total, self.source) * self.scale
        if total.dtype != torch.int64:
            raise InvalidArgument(f"exact sums are whole numbers, and these are {total.dtype}.")
        drawn = discrete_gaussian(self.variance, total.numel(), self.source)
        return (total + torch.from_numpy(drawn).view(total.shape).to(total.device)).double().mul_(self.grid)

    def on_number(self, cells: int) -> float:
        """Return a number that is measured beside gradients, of 1024 grid steps an example, with noise, in examples."""
        variance = discrete_variance(self.plan.beside_multiplier, Fraction(CELLS))
        return (cells + int(discrete_gaussian(variance, 1, self.source)[0])) / CELLS

    def next_norm(self, norm: float, people: int, under: int) -> float:
        """Return the next bound: lower, where more gradients than the quantile lie under it (Andrew et al. 2021).

        Each example of the step counts +1 where it is under the bound, else -1, so an empty draw says one half.
        """
        assert self.plan.quantile is not None
        balance = self.on_number(CELLS * (2 * under - people))
        share = (1 + balance / self.plan.batch) / 2
        return min(max(norm * math.exp(-QUANTILE_RATE * (share - self.plan.quantile)), LEAST_NORM), MOST_NORM)


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


def discrete_variance(multiplier: float, cells: Fraction) -> Variance:
    """Return the variance of discrete noise that passes for a Gaussian's of (multiplier × cells)² (THEORY 3.5).

    Example:
        >>> discrete_variance(2.0, Fraction(50))
        Fraction(10004, 1)
    """
    exact = (Fraction(multiplier) * cells) ** 2 + Fraction(SMOOTHING)
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
