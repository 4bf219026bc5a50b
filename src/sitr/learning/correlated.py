"""Noise that is correlated over steps, so that running sums of gradients have less of it (decision 0034).

With x_t the clipped sum of step t, what is released is y_t = m_0 x_t + m_1 x_{t-1} + ... + m_{b-1} x_{t-b+1} + z_t,
where the noise z_t is independent; in matrices, y = Mx + z with M lower triangular, banded and Toeplitz. That alone has
to be private. Training uses M⁻¹y = x + M⁻¹z, which is post-processing: later steps take back part of the noise.

The m_i are whole numbers. So on a grid of whole numbers Mx is exact, and what one person does to it is known exactly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .. import _validate
from ..accounting import Event, Gaussian, PoissonSampled, ShuffledEpochs
from ..errors import InvalidArgument
from ..mechanisms.additive import above

Floats = NDArray[np.float64]
Vector = Any  # an array of NumPy or a tensor of PyTorch: the arithmetic is the same

UNIT = 256  # m_0: coefficients as multiples of 1/256 lose less than 1e-4 of the accuracy, and the grid only 8 bits
MOST_BANDS = 1024
MOST_STEPS = 10**6
MOST_PEOPLE = 10**12
WORST = 1e300  # what stands for an error past all numbers, so that a search turns round
ROOM = 2**62  # sums of whole numbers stay under it


@dataclass(frozen=True)
class BandedNoise:
    """How the noise of a run is correlated: the first column of M, which each later column repeats one row lower.

    Attributes:
        coefficients: m_0, m_1, ... m_{b-1}, whole numbers; m_0 is positive.
        steps: How many steps the run has.

    Privacy: a step of one person moves y in the next b rows and in no others, by at most √(Σ m_i²) times what it moves
    the sum by. Participations that are at least b steps apart move different rows, so k of them have the ℓ2 sensitivity
    √k √(Σ m_i²), whatever the gradients are; it is reached where k columns fit. Both ways of choosing who is in a step
    that `poisson_event` and `passes_event` are about keep people that far apart. Decision 0034 has the proofs, also for
    gradients that depend on all that was released before.

    Example:
        >>> noise = BandedNoise.best(bands=16, steps=1000)
        >>> noise.coefficients[:4], round(noise.ratio, 4)
        ((256, 171, 150, 140), 0.2806)
    """

    coefficients: tuple[int, ...]
    steps: int

    def __post_init__(self) -> None:
        steps = _validate.integer("steps", self.steps, 1, MOST_STEPS)
        first, *later = self.coefficients or (0,)
        checked = (
            _validate.integer("coefficients[0]", first, 1, 2**16),
            *(_validate.integer("coefficients", one, -(2**16), 2**16) for one in later),
        )
        _validate.integer("bands", len(checked), 1, min(MOST_BANDS, steps))
        object.__setattr__(self, "coefficients", checked)
        object.__setattr__(self, "steps", steps)

    @classmethod
    def best(cls, bands: int, steps: int) -> BandedNoise:
        """Return the correlation by which running sums over so many steps have the least mean squared error.

        Args:
            bands: Over how many steps noise is correlated: as many vectors are kept, less one. 1 is independent noise.
            steps: How many steps the run has.

        The search begins at the coefficients of (1-x)^{-1/2}, which are best without bands (Fichtenberger et al. 2023).

        Privacy: public numbers in, public numbers out; any coefficients are private, these are accurate.

        Example:
            >>> BandedNoise.best(bands=1, steps=10), BandedNoise.best(bands=2, steps=10)
            (BandedNoise(coefficients=(256,), steps=10), BandedNoise(coefficients=(256, 141), steps=10))
        """
        steps = _validate.integer("steps", steps, 1, MOST_STEPS)
        bands = _validate.integer("bands", bands, 1, min(MOST_BANDS, steps))
        found = _least_error(bands, steps)
        return cls(tuple(round(UNIT * float(one)) for one in found), steps)

    @property
    def bands(self) -> int:
        """How many steps one step's sum is in."""
        return len(self.coefficients)

    @property
    def norm_squared(self) -> int:
        """Σ m_i², exactly: the squared norm of the first column of M, and no other has a larger one."""
        return sum(one * one for one in self.coefficients)

    def variance(self, noise_multiplier: float, sensitivity: Fraction | float) -> Fraction:
        """Return the variance that each coordinate of z needs, exactly.

        Args:
            noise_multiplier: Noise over sensitivity, as `poisson_event` and `passes_event` are told.
            sensitivity: How far one person moves the sum of a step in ℓ2, by being in it or not; in grid steps.

        Privacy: (noise_multiplier · sensitivity)² Σ m_i²: a step of one person moves y by sensitivity · √(Σ m_i²).

        Example:
            >>> BandedNoise((256, 128), steps=10).variance(2.0, 10)
            Fraction(32768000, 1)
        """
        multiplier = Fraction(_validate.real("noise_multiplier", noise_multiplier, 0, 1e12, open_low=True))
        _validate.real("sensitivity", sensitivity, 0, 1e15, open_low=True)
        return (multiplier * Fraction(sensitivity)) ** 2 * self.norm_squared

    @property
    def error(self) -> float:
        """The root mean squared error of a coordinate of the running sums, over noise_multiplier · sensitivity.

        With B = AM⁻¹ and A that of running sums it is √(Σ m_i²) ‖B‖_F/√steps; independent noise has √((steps+1)/2).

        Example:
            >>> round(BandedNoise((1,), steps=1000).error, 3), round(BandedNoise.best(16, 1000).error, 3)
            (22.372, 6.278)
        """
        shape = np.array(self.coefficients, np.float64) / self.coefficients[0]
        return float(np.sqrt(_squared_error(shape, self.steps)))

    @property
    def ratio(self) -> float:
        """`error` beside that of independent noise with the same noise multiplier.

        For passes this is all there is to it, as both cost the same. In cyclic Poisson sampling the banded noise costs
        more at the same noise multiplier, and what is gained is less.
        """
        return self.error / float(np.sqrt((self.steps + 1) / 2))

    def group(self, step: int) -> int:
        """Return which of the `bands` groups of people a step samples from, in cyclic Poisson sampling.

        Privacy: steps are numbered through the whole run, also after a resumption: a group's turns stay `bands` apart.

        Example:
            >>> [BandedNoise((256, 128, 100), steps=10).group(step) for step in range(5)]
            [0, 1, 2, 0, 1]
        """
        return _validate.integer("step", step, 0, self.steps - 1) % self.bands

    def rate(self, n: int, batch: int) -> Fraction:
        """Return the chance of each person of a step's group to be in it, for `batch` people on average: batch·bands/n.

        Raises:
            InvalidArgument: It would be more than 1: a group has fewer people than a batch.

        Example:
            >>> BandedNoise((256, 128), steps=10).rate(n=1000, batch=10)
            Fraction(1, 50)
        """
        n = _validate.integer("n", n, 1, MOST_PEOPLE)
        batch = _validate.integer("batch", batch, 1, n)
        if batch * self.bands > n:
            raise InvalidArgument(
                f"batch={batch} is more than there are in one of {self.bands} groups of n={n}.",
                why="with banded noise a step samples from one group only.",
                do=f"use {n // batch} bands at most, or smaller batches.",
            )
        return Fraction(batch * self.bands, n)

    def poisson_event(
        self, noise_multiplier: float, n: int, batch: int, *, first: int = 0, last: int | None = None
    ) -> Event:
        """Return what cyclic Poisson sampling costs: step t takes each person of group t mod bands with chance `rate`.

        Args:
            noise_multiplier: √variance of z over sensitivity · √(Σ m_i²); see `variance`.
            n: How many people there are, publicly: only the rate is made of it.
            batch: How many a step takes on average.
            first: The steps from here
            last: up to, and without, this one; all of them unless told.

        Privacy: under `add_remove`, PoissonSampled(Gaussian(noise_multiplier), rate) once for each turn of a group
        (Choquette-Choo et al. 2023, section 5; proved in decision 0034), THEORY 2.7 and 4.5. The group of a person must
        depend on that person alone, such as on their place in a numbering that everybody keeps when one is missing.
        Steps that are made again after a resumption cost what they cost before, provided that their noise is new and
        begins a `Stream` of its own.

        Example:
            >>> noise = BandedNoise.best(bands=16, steps=1000)
            >>> event = noise.poisson_event(2.0, n=60_000, batch=600)
            >>> round(float(event.epsilon(1e-5)), 3)
            3.083
        """
        turns = -(-self._length(first, last) // self.bands)
        return PoissonSampled(Gaussian(noise_multiplier), above(self.rate(n, batch))) * turns

    def passes_event(
        self, noise_multiplier: float, n: int, batch: int, *, first: int = 0, last: int | None = None
    ) -> Event:
        """Return what passes over the people cost, in an order that is the same in each pass and that no data decides.

        Args:
            noise_multiplier: √variance of z over sensitivity · √(Σ m_i²), the sensitivity still that of being in a step
                or not: who is replaced moves a sum twice as far, and is charged for it.
            n: How many people there are, publicly.
            batch: How many are in a step; in the last one of a pass there may be fewer.
            first: The steps from here
            last: up to, and without, this one; all of them unless told.

        Raises:
            InvalidArgument: A pass has fewer steps than there are bands, so that one person could be in two steps that
                the noise connects.

        Privacy: under `replace_one`, Gaussian noise on a release that each of k participations moves by at most
        2 sensitivity √(Σ m_i²), in rows of its own (THEORY 1.1, 2.3; decision 0034). This is the curve of
        `ShuffledEpochs`; but the order must not change between passes.

        Example:
            >>> noise = BandedNoise.best(bands=100, steps=1000)
            >>> round(float(noise.passes_event(8.0, n=60_000, batch=600).epsilon(1e-5)), 3)
            3.341
        """
        n = _validate.integer("n", n, 1, MOST_PEOPLE)
        batch = _validate.integer("batch", batch, 1, n)
        period = -(-n // batch)
        if period < self.bands:
            raise InvalidArgument(
                f"a pass of {period} steps is shorter than {self.bands} bands.",
                why="one person would be in two steps that the noise connects, and move the release further.",
                do=f"use {period} bands at most, or smaller batches.",
            )
        half = _validate.real("noise_multiplier", noise_multiplier, 0, 1e12, open_low=True) / 2
        step = Gaussian(half, adjacency="replace_one")
        return ShuffledEpochs(step, -(-self._length(first, last) // period))

    def _length(self, first: int, last: int | None) -> int:
        first = _validate.integer("first", first, 0, self.steps - 1)
        return _validate.integer("last", self.steps if last is None else last, first + 1, self.steps) - first


class Stream(Iterator[Vector]):
    """Correlated noise w = M⁻¹z, one vector for each vector z_t of independent noise that it is given.

    Args:
        noise: How it is correlated.
        drawn: The independent noise, of variance `BandedNoise.variance`; it is asked for when it is due.

    Whole numbers stay whole numbers: w_t = ⌊(z_t - Σ_{i≥1} m_i w_{t-i})/m_0 + ½⌋. Adding x_t, a whole number, before or
    after such a rounding is the same, so x_t + w_t is a function of y_1, ..., y_t alone: no rounding is left out of the
    proof (decision 0034). Of floats this is true up to their rounding only.

    `bands - 1` vectors are kept. They are never saved, since they and x_t + w_t together tell x_t: after a resumption a
    new stream begins, with new noise. That costs accuracy, and no privacy beyond that of the steps that are made again.

    Privacy: post-processing of y, where the noise is new in every step and the variance is that of `variance`.

    Example:
        >>> noise = BandedNoise((2, 1), steps=4)
        >>> [int(w[0]) for w in Stream(noise, (np.array([z]) for z in (100, 0, 0, 0)))]
        [50, -25, 13, -6]
    """

    def __init__(self, noise: BandedNoise, drawn: Iterable[Vector]) -> None:
        self._noise, self._drawn, self._made = noise, iter(drawn), 0
        self._past: deque[Vector] = deque(maxlen=noise.bands - 1)  # the latest first
        self._largest: deque[int] = deque(maxlen=noise.bands - 1)

    def __next__(self) -> Vector:
        if self._made == self._noise.steps:
            raise StopIteration
        rest = next(self._drawn)
        kind = str(rest.dtype).removeprefix("torch.")
        _validate.choice("the dtype of noise", kind, ("int64", "float32", "float64"))
        if self._past and (rest.shape != self._past[0].shape or rest.dtype != self._past[0].dtype):
            raise InvalidArgument(
                "the noise of two steps differs in shape or in dtype.", do="draw as many numbers in each step."
            )
        whole = kind == "int64" and self._fits(rest)
        unit, *later = self._noise.coefficients
        for coefficient, past in zip(later, self._past, strict=False):
            rest = rest - coefficient * past
        made = (2 * rest + unit) // (2 * unit) if whole else rest / unit
        self._made += 1
        self._past.appendleft(made)
        self._largest.appendleft(_largest(made) if whole else 0)
        return made

    def _fits(self, drawn: Vector) -> bool:
        """Whether no sum overflows, or an error; it knows noise only, so it tells nothing of anyone."""
        reach = _largest(drawn) + sum(map(abs, self._noise.coefficients)) * max(self._largest, default=0)
        if 2 * reach >= ROOM:
            raise InvalidArgument("the noise is too large for whole numbers of 64 bits.", do="use a coarser grid.")
        return True


def _largest(whole: Vector) -> int:
    return 0 if 0 in whole.shape else max(int(whole.max()), -int(whole.min()))  # shards may have no rows of a weight


def _least_error(bands: int, steps: int) -> Floats:
    """Return 1, c_1, ... c_{b-1} of the least error; between 0 and 1, which holds the search where it may go."""
    half = np.arange(1, bands)
    start = np.cumprod((2 * half - 1) / (2 * half))  # of (1-x)^{-1/2}
    if bands == 1:
        return np.ones(1)
    found = minimize(
        _logarithm_and_gradient, start, args=(steps,), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * (bands - 1)
    )
    return np.concatenate([[1.0], found.x])


def _squared_error(shape: Floats, steps: int) -> float:
    """‖c‖² ‖AC⁻¹‖_F²/steps, of the first column c of C."""
    sums = np.cumsum(_inverse(shape, np.eye(1, steps)[0]))
    return float((shape @ shape) * (np.arange(steps, 0, -1) @ sums**2) / steps)


def _logarithm_and_gradient(free: Floats, steps: int) -> tuple[float, Floats]:
    """The logarithm of steps · squared error, with its gradient: that of AC⁻¹ by c_i is -AC⁻² moved down by i."""
    shape = np.concatenate([[1.0], free])
    with np.errstate(over="ignore", invalid="ignore"):  # of correlations that explode
        sums = np.cumsum(_inverse(shape, np.eye(1, steps)[0]))
        weighted, moved = np.arange(steps, 0, -1) * sums, _inverse(shape, sums)
        error, size = float(weighted @ sums), float(shape @ shape)
        slopes = np.array([-2 * (weighted[i:] @ moved[: steps - i]) for i in range(1, len(shape))])
    if not (np.isfinite(error) and np.isfinite(slopes).all()):
        return float(np.log(WORST)), np.zeros_like(free)
    return float(np.log(error * size)), slopes / error + 2 * free / size


def _inverse(shape: Floats, column: Floats) -> Floats:
    """C⁻¹ times a column."""
    from scipy.signal import lfilter  # which takes longer to load than all of the rest: plans without bands need none

    return np.asarray(lfilter([1.0], shape, column), np.float64)
