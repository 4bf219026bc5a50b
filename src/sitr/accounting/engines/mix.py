"""The composed law of one order: several laws with counts, all Gaussians merged into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from ..losses.law import FAINT, UNIT, Complexes, Floats, Loss
from ..losses.rounding import ROUNDED, rounded_up, sum_above
from .delta import NEVER, Failure
from .measure import Measure


@dataclass(frozen=True, eq=False)
class Mix:
    """Independent losses that add: `parts` with their counts, and one Gaussian of variance `m2` = Σ m_i².

    Discrete Gaussians on a fine grid are in `m2` as well: up to `gaussian_reach` along the line their transform is a
    Gaussian's to a relative error of `fineness`.
    """

    parts: tuple[tuple[Loss, int], ...]
    m2: float = 0.0
    gaussian_reach: float = math.inf
    fineness: float = 0.0

    @classmethod
    def of(cls, parts: Iterable[tuple[Loss, int]]) -> Mix:
        others, variances, reach, fine = [], [], math.inf, 0.0
        for loss, count in parts:
            if isinstance(loss, GaussianLoss):
                variances.append(count * loss.m**2)
            elif isinstance(loss, DiscreteGaussianLoss) and loss.is_fine:
                variances.append(count * loss.m**2)
                reach, fine = min(reach, loss.reach), fine + count * loss.fineness
            else:
                others.append((loss, count))
        return cls(tuple(others), math.fsum(variances), reach, fine)

    def without(self, laws: Sequence[tuple[Loss, int]]) -> Mix:
        """Return what is left when some laws are taken out."""
        left = tuple(part for part in self.parts if part not in laws)
        return Mix(left, self.m2, self.gaussian_reach, self.fineness)

    def log_mgf(self, x: Floats | float) -> Floats:
        """Return K(x) = ln E e^{xL} of the composed law, given that every loss is finite."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore"):
            total = self.m2 * x * (x + 1) / 2
            for loss, count in self.parts:
                total = total + count * loss.log_mgf(x)
        return total

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of order α > 1, given that every loss is finite."""
        x = np.float64(alpha - 1)
        return math.fsum([self.m2 * alpha / 2, *(n * float(loss.log_mgf(x)) / (alpha - 1) for loss, n in self.parts)])

    def log_mgf_error(self, c: float) -> float:
        """Bound the rounding error of K(c) by the model: a few units for each law, and its own size."""
        total = UNIT * 4 * abs(float(self.log_mgf(c))) + self.fineness
        return total + sum(n * UNIT * (8 + 4 * abs(float(loss.log_mgf(np.float64(c))))) for loss, n in self.parts)

    @property
    def events(self) -> int:
        """How many losses add, Gaussians apart."""
        return sum(count for _, count in self.parts)

    @cached_property
    def failure(self) -> Failure:
        """The chance that some loss is infinite: exact where one event states it, else rounded."""
        failing = [(loss, n) for loss, n in self.parts if loss.infinite_mass > 0]
        if not failing:
            return NEVER
        alone = len(failing) == 1 and failing[0][1] == 1
        faint = any(loss.infinite_mass < FAINT and not loss.stated for loss, _ in failing)
        return Failure.about(self.infinite_mass, stated=alone and failing[0][0].stated, faint=faint)

    @cached_property
    def infinite_mass(self) -> float:
        """1 - Π (1 - δ_i): the chance that some loss is infinite."""
        masses = [(loss.infinite_mass, n) for loss, n in self.parts if loss.infinite_mass > 0]
        if any(mass >= 1 for mass, _ in masses):
            return 1.0
        if len(masses) == 1 and masses[0][1] == 1:
            return masses[0][0]
        return abs(math.expm1(math.fsum(n * math.log1p(-mass) for mass, n in masses)))

    @cached_property
    def largest(self) -> float:
        """No loss is above it: what the largest ones add up to, rounded up."""
        if self.m2 or any(math.isinf(loss.largest) for loss, _ in self.parts):
            return math.inf
        return sum_above(rounded_up(n * loss.bound) for loss, n in self.parts)

    @cached_property
    def smallest(self) -> float:
        """No loss is under it."""
        if self.m2 or any(math.isinf(loss.smallest) for loss, _ in self.parts):
            return -math.inf
        return -sum_above(rounded_up(-n * Fraction(loss.smallest)) for loss, n in self.parts)

    @cached_property
    def largest_below(self) -> float:
        """What some loss reaches."""
        if math.isinf(self.largest):
            return math.inf
        terms = [n * loss.largest_below for loss, n in self.parts]
        return terms[0] if self.events == 1 else math.fsum(terms) * (1 - ROUNDED)

    @cached_property
    def log_top_mass(self) -> float:
        """The log of the mass at the largest loss."""
        if self.m2 or any(loss.top_mass <= 0 for loss, _ in self.parts):
            return -math.inf
        return math.fsum(n * math.log(loss.top_mass) for loss, n in self.parts)

    @cached_property
    def mean(self) -> float:
        return math.fsum([self.m2 / 2, *(n * loss.mean() for loss, n in self.parts)])

    @cached_property
    def reach(self) -> float:
        return min([self.gaussian_reach, *(loss.reach for loss, _ in self.parts)])

    @cached_property
    def tilt_limit(self) -> float:
        """The steepest tilt at which K is exact, and not only bounded."""
        return min((loss.tilt_limit for loss, _ in self.parts), default=math.inf)

    @cached_property
    def tuning(self) -> float:
        """About how many multiplications it takes to find a tilt of large groups, beyond what any takes."""
        return math.fsum(loss.tuning for loss, _ in self.parts)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Tilts at which a claimed Rényi curve has a corner, where its best bound often lies."""
        return tuple(order - 1 for loss, _ in self.parts for order in loss.orders)

    @property
    def mass(self) -> float:
        """The total mass of the measure: one, for a law."""
        return 1.0

    def work(self, c: float) -> int:
        """About how many multiplications one node of the line costs."""
        return sum(loss.work(c) for loss, _ in self.parts) + 4

    def ratios(self, c: float, step: float, count: int, whisper: float) -> tuple[Complexes, float]:
        """Return e^{K(z_k) - K(c)} on z_k = c + i k step, smoothed by a whisper, and a bound on each error."""
        t = step * np.arange(count + 1)
        smooth = self.m2 + whisper**2
        size, turn = -smooth * t**2 / 2, smooth * t * (2 * c + 1) / 2
        noise = UNIT * (32 + 4 * float(turn[-1])) + self.fineness
        for loss, n in self.parts:
            values, error = loss.ratios(c, step, count)
            size = size + n * np.log(np.maximum(np.abs(values), 1e-300))
            turn = turn + n * np.angle(values)
            noise += n * (2 * error + 8 * UNIT)
        return np.exp(np.minimum(size, 0.0) + 1j * np.mod(turn, 2 * math.pi)), noise

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Bound ln |M(c+it')| / M(c) for every t' from t to `reach`."""
        total = -self.m2 * t**2 / 2
        for loss, count in self.parts:
            total = total + count * loss.log_decay(c, t)
        return total


MODEL = 1e-9  # by how much Chernoff's bound is raised for its rounding
FINE = 1e-5  # tolerance of a tilt whose Chernoff bound is itself the answer


def always(c: float) -> bool:
    """Whatever tilt it is."""
    return True


def log_kappa(c: float | Floats) -> Floats:
    """Return ln sup_x (1 - e^{-x}) e^{-cx} = c ln c - (1+c) ln(1+c), the constant of Chernoff's bound on δ."""
    c = np.asarray(c, dtype=np.float64)
    return -c * np.log1p(1 / c) - np.log1p(c)


def chernoff_epsilon(mix: Measure, c: float, log_delta: float) -> float:
    """Return the ε that Chernoff's bound at order 1+c gives for δ: RDP by the better conversion (THEORY 3.2)."""
    return (float(mix.log_mgf(c)) + float(log_kappa(c)) - log_delta) / c


def raised_epsilon(mix: Measure, c: float, log_delta: float) -> float:
    """Return `chernoff_epsilon` with what rounding may take from it."""
    bound = chernoff_epsilon(mix, c, log_delta)
    return bound + MODEL * abs(bound) + mix.log_mgf_error(c) / c


def chernoff_delta(
    mix: Measure, epsilon: float, enough: float = -math.inf, pays: Callable[[float], bool] = always
) -> float:
    """Return ln of Chernoff's bound on δ(ε), for the best order: the profile that a Rényi curve implies.

    What rounding may take from it is added: near the largest loss the best order is steep, and K(c) - cε cancels. A
    bound that is `enough` is not improved, nor one for which no more tilts are paid for.
    """

    def log_bound(c: float) -> float:
        return float(mix.log_mgf(c)) + float(log_kappa(c)) - c * epsilon

    spread = math.sqrt(2 * max(mix.mean, 1e-300))
    c = minimise(log_bound, max((epsilon - mix.mean) / spread**2, 1 / spread), FINE, enough, pays)
    return log_bound(c) + mix.log_mgf_error(c) + 8 * UNIT * (c * abs(epsilon) + abs(float(mix.log_mgf(c))) + 1)


def best_tilt(mix: Measure, log_delta: float, tolerance: float = 0.02, enough: float = -math.inf) -> float:
    """Return a c near the minimum of `chernoff_epsilon`, by golden section on ln c; or one at which it is `enough`."""
    return minimise(lambda c: chernoff_epsilon(mix, c, log_delta), _typical_tilt(mix, log_delta), tolerance, enough)


def saddle_tilt(mix: Measure, epsilon: float) -> float:
    """Return a c near the minimum of K(c) - cε - ln c(1+c), where the integrand of δ(ε) is flattest."""

    def height(c: float) -> float:
        return float(mix.log_mgf(c)) - c * epsilon - math.log(c) - math.log1p(c)

    spread = math.sqrt(2 * max(mix.mean, 1e-300))
    return minimise(height, max((epsilon - mix.mean) / spread**2, 1 / (spread + 1e-12)))


def _typical_tilt(mix: Measure, log_delta: float) -> float:
    """What the best tilt would be if the loss were Gaussian."""
    spread = math.sqrt(2 * max(mix.mean, 1e-300))
    return min(max(math.sqrt(-2 * log_delta + 1) / spread, 1e-6), 1e12)


def minimise(
    height: Callable[[float], float],
    start: float,
    tolerance: float = 0.02,
    enough: float = -math.inf,
    pays: Callable[[float], bool] = always,
) -> float:
    """Return the c where a function that falls and then rises is least, within `tolerance` of ln c.

    Golden section over ln c; the best point seen is returned, so a cliff on either side does no harm. A point at which
    the function is at most `enough` is the last. Once something is known, a point that nobody `pays` for is not asked.
    """
    seen: dict[float, float] = {}

    def at(u: float) -> float:
        known = any(map(math.isfinite, seen.values()))
        seen[u] = height(math.exp(u)) if pays(math.exp(u)) or not known else math.inf
        return seen[u]

    u, step = 0.0 if math.isnan(start) else math.log(min(max(start, 1e-20), 1e20)), 0.7
    here = at(u)
    while math.isinf(here) and u > -60:  # tilts so steep that nothing is known of them
        u -= step
        here = at(u)
    if here > enough:
        _close_in(at, *_straddle(at, u, here, step), tolerance, enough)
    return math.exp(min(seen, key=lambda u: seen[u]))


def _close_in(at: Callable[[float], float], low: float, high: float, tolerance: float, enough: float) -> None:
    """Ask by golden section, until the interval is narrow or a value is `enough`."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = at(a), at(b)
    while high - low > tolerance and min(fa, fb) > enough:
        if fa <= fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = at(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = at(b)


def _straddle(at: Callable[[float], float], u: float, here: float, step: float) -> tuple[float, float]:
    """Walk downhill from u in growing steps until the function rises; return an interval around its minimum."""
    direction = -1.0 if at(u - step) < here else 1.0
    before = u - direction * step
    while abs(u) < 60:
        there = at(u + direction * step)
        if not there < here:
            break
        before, u, here, step = u, u + direction * step, there, 1.5 * step
    after = u + direction * step
    return min(before, after), max(before, after)
