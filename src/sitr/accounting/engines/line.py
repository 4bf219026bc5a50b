"""δ(ε) as a trapezoid sum on one vertical line, certified from both sides.

With K = Σ n_j ln M_j, z_k = c + i k D and D = 2π/T, Poisson summation gives, exactly,

    S(ε) = (D/π) e^{K(c)-cε} [ g_0/2 + Σ_{k≥1} Re(g_k e^{-ikDε}) ] = Σ_m δ(ε + mT) e^{cmT},
    g_k = e^{K(z_k)-K(c)} / z_k(z_k+1).

Every term on the right is at least 0, so S is an upper bound by itself; what it exceeds δ by is bounded by δ ≤ 1 on
one side and Chernoff on the other. The sum is cut at N; where the laws themselves do not make |M| fall, a whisper of
Gaussian noise with m = w is composed with them: that can only raise δ, by at most w² C f_w(ε), f_w the density of the
smoothed loss, which the same nodes give. docs/decisions/0003 has the proofs, 0004 the model of rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from ..losses.law import UNIT, Complexes
from .delta import Finite
from .measure import Measure
from .mix import log_kappa

ALIAS = 1e-9  # what aliases and truncation may each add to δ, as a share of it
GOAL = 3e-7  # the relative width of ε that smoothing aims at
STEEPER = np.array([1.01, 1.03, 1.1, 1.3, 2.0, 3.0])  # tilts, over that of the line, that bound its aliases
NODES = 6_000  # up to here a line without smoothing is preferred
LEAST_NODES, MOST_NODES = 64, 400_000
NODE = 500.0  # multiplications that a node takes besides those of its laws: logarithms, angles, exponentials
ASKED = 24.0  # and that each question of it takes
MOST_WORK = 3e8  # multiplications along the line: a few tenths of a second on one core


@dataclass(frozen=True)
class Grid:
    """Where the line is evaluated: abscissa c, period T, number of nodes N, and the whisper w."""

    c: float
    period: float
    count: int
    whisper: float

    @property
    def step(self) -> float:
        return 2 * math.pi / self.period


def choose_grid(
    mix: Measure,
    c: float,
    epsilon: float,
    log_delta: float,
    goal: float = GOAL,
    period: float | None = None,
    slope: float = 0.0,
    most_work: float = MOST_WORK,
) -> Grid:
    """Choose T so that aliases are a share ALIAS of δ, and N (and w) so that truncation is.

    A whisper w moves ε by about w² times the slope -d ln δ/dε, which is near 1 + c unless stated steeper.
    """
    log_main = _log_main(mix, c, epsilon, log_delta)
    period = period or period_of(mix, c, epsilon, log_delta)
    needed = log_main + math.log(ALIAS)
    most = max(min(MOST_NODES, most_work / (mix.work(c) + NODE)), LEAST_NODES)
    limit = min(min(NODES, most) * 2 * math.pi / period, mix.reach)
    least = math.sqrt(-2 * needed + 40) / mix.reach  # beyond `reach` only a whisper is known to fall
    plain = _cut(mix, c, needed, 4 / period, limit, least)
    if plain <= limit:
        return Grid(c, period, max(math.ceil(plain * period / (2 * math.pi)), 8), least)
    most = min(most * 2 * math.pi / period, mix.reach)
    whisper = max(math.sqrt(goal * max(epsilon, 1e-12) / max(1 + c, slope)), math.sqrt(-2 * needed + 40) / most)
    end = min(_cut(mix, c, needed, 4 / period, most, whisper), most)
    return Grid(c, period, max(math.ceil(end * period / (2 * math.pi)), 8), min(whisper, 1.0))


def _cut(mix: Measure, c: float, needed: float, start: float, limit: float, whisper: float) -> float:
    """Return a t, within √2 of the least, from which on the dropped nodes weigh less than e^needed."""

    def enough(power: int) -> bool:
        t = start * 2 ** (power / 2)
        fall = float(mix.log_decay(c, np.array([t]))[0]) - (whisper * t) ** 2 / 2
        return fall - math.log(math.pi * t) <= needed

    low, high = 0, max(math.ceil(2 * math.log2(limit / start)), 1) if limit > start else 1
    if not enough(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return min(start * 2 ** (high / 2), max(limit, start))


def _log_main(mix: Measure, c: float, epsilon: float, log_delta: float) -> float:
    """Ln of δ over e^{K(c) - cε}, which Chernoff bounds."""
    return min(log_delta + c * epsilon - float(mix.log_mgf(c)), float(log_kappa(c)))


def period_of(mix: Measure, c: float, epsilon: float, log_delta: float) -> float:
    """Return a period T whose aliases, above and below, are at most a share ALIAS of δ."""
    log_main = _log_main(mix, c, epsilon, log_delta)
    below = (math.log(mix.mass) - log_delta - math.log(ALIAS)) / c
    others = c * STEEPER
    excess = mix.log_mgf(others) - float(mix.log_mgf(c)) - (others - c) * epsilon + log_kappa(others) - log_main
    above = float(np.fmin.reduce((excess - math.log(ALIAS)) / (others - c)))
    if math.isfinite(mix.largest):
        above = min(above, mix.largest - epsilon)
    return 1.02 * max(below, above)


class _Nodes(NamedTuple):
    """K along the line: what is summed for δ, for its slope and for the density, in rows; and how rough that is."""

    weighted: Complexes
    sloped: Complexes
    dense: Complexes
    noise: float
    rough: tuple[float, float]
    rough_density: tuple[float, float]


class Line:
    """One evaluation of K along the line, made when first asked; it then answers for every ε."""

    def __init__(self, mix: Measure, grid: Grid) -> None:
        self.mix, self.grid = mix, grid
        self.base = float(mix.log_mgf(grid.c)) + grid.whisper**2 * grid.c * (grid.c + 1) / 2
        self.end = grid.step * grid.count
        short = math.isqrt(grid.count) + 1
        self.places = short * np.arange(grid.count // short + 1), np.arange(short)

    @property
    def method(self) -> str:
        return "vertical line" if self.grid.whisper == 0 else "vertical line, smoothed"

    @property
    def work(self) -> float:
        """About how many multiplications its nodes take."""
        return self.grid.count * (self.mix.work(self.grid.c) + NODE)

    @property
    def asked(self) -> float:
        """About how many multiplications both bounds take at one ε: three sums of complex numbers."""
        return ASKED * self.grid.count

    @cached_property
    def _nodes(self) -> _Nodes:
        c, w, count = self.grid.c, self.grid.whisper, self.grid.count
        t = self.grid.step * np.arange(count + 1)
        z = c + 1j * t
        values, noise = self.mix.ratios(c, self.grid.step, count, w)
        values[0] *= 0.5  # the node on the real axis counts once, the others with their conjugates
        kernel = 1 / (z * (z + 1))
        weight, smoothing = np.abs(kernel), np.exp(-(w**2) * t**2 / 2)
        return _Nodes(
            self._rows(values * kernel),
            self._rows(values * kernel * z),
            self._rows(values),
            noise + self.mix.log_mgf_error(c) + 4 * UNIT * abs(self.base),
            (float(np.sum(weight)), float(np.sum(weight * t))),
            (float(np.sum(smoothing)), float(np.sum(smoothing * t))),
        )

    def _scale(self, epsilon: float) -> float:
        """Ln of (D/π) e^{K(c) - cε}."""
        return math.log(self.grid.step / math.pi) + self.base - self.grid.c * epsilon

    def _rows(self, values: Complexes) -> Complexes:
        """Lay the nodes out in rows, so that `_real_sum` needs two short tables of phases."""
        rows = np.zeros((self.places[0].size, self.places[1].size), dtype=np.complex128)
        rows.flat[: values.size] = values
        return rows

    def sums(self, epsilon: float) -> tuple[float, float]:
        """Return S(ε) and its slope, both over the scale."""
        return self._real_sum(self._nodes.weighted, epsilon), -self._real_sum(self._nodes.sloped, epsilon)

    def _real_sum(self, rows: Complexes, epsilon: float) -> float:
        """Return the real part of the sum of values e^{-itε}: e^{-itε} is a product, by row and by place in it."""
        starts, ends = (np.exp(-1j * epsilon * self.grid.step * places) for places in self.places)
        return float(np.real(starts @ (rows @ ends)))

    def density(self, epsilon: float) -> float:
        """Return the density of the smoothed loss at ε, over the scale."""
        return self._real_sum(self._nodes.dense, epsilon)

    def _rounding(self, epsilon: float, rough: tuple[float, float]) -> float:
        model = self._nodes.noise + 4 * UNIT * (self.grid.c * abs(epsilon) + 8 + math.sqrt(self.places[1].size))
        return model * rough[0] + 8 * UNIT * abs(epsilon) * rough[1]

    @cached_property
    def _truncation(self) -> tuple[float, float]:
        """Bound what the nodes beyond N would add to the sums for δ and for the density, over the scale.

        There |g| ≤ decay(t) e^{-w²t²/2}, over t² for δ: the integral from t_N bounds the sum of what falls.
        """
        end, w, step = self.end, self.grid.whisper, self.grid.step
        falls = math.exp(float(self.mix.log_decay(self.grid.c, np.array([end]))[0]) - w**2 * end**2 / 2)
        delta, density = falls / end, falls * _gaussian_tail(w, end)
        if self.mix.reach < math.inf:  # beyond `reach` only the whisper is known to fall
            late = math.exp(-((w * self.mix.reach) ** 2) / 2)
            delta, density = delta + late / self.mix.reach, density + late * _gaussian_tail(w, self.mix.reach)
        return delta / step, density / step

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        value = self._real_sum(self._nodes.weighted, epsilon)
        total = value + self._rounding(epsilon, self._nodes.rough) + self._truncation[0]
        return Finite(_exp(self._scale(epsilon)) * max(float(total), 0.0))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        return Finite(self.lower_without_aliases(epsilon) - self._aliases(epsilon))

    def lower_without_aliases(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε) plus its aliases, for measures that know those."""
        value = self._real_sum(self._nodes.weighted, epsilon)
        total = value - self._rounding(epsilon, self._nodes.rough) - self._truncation[0] - self._excess(epsilon)
        return _exp(self._scale(epsilon)) * float(total)

    def _excess(self, epsilon: float) -> float:
        """Bound, over the scale, what the whisper added: w² (1 + wR(-w/2)/2) e^{w²/8} f_w(ε)."""
        w = self.grid.whisper
        if w == 0:
            return 0.0
        density = self.density(epsilon) + self._rounding(epsilon, self._nodes.rough_density) + self._truncation[1]
        constant = (1 + w / 2 * math.sqrt(math.pi / 2) * float(erfcx(-w / 2 / math.sqrt(2)))) * math.exp(w**2 / 8)
        return w**2 * constant * max(density, 0.0)

    def _aliases(self, epsilon: float) -> float:
        c, period, w = self.grid.c, self.grid.period, self.grid.whisper
        below = self.mix.mass * math.exp(-c * period) / -math.expm1(-c * period)
        if w == 0 and epsilon + period >= self.mix.largest:
            return below
        others = c * STEEPER
        logs = self.mix.log_mgf(others) + w**2 * others * (others + 1) / 2 + log_kappa(others) - others * epsilon
        gap = (others - c) * period
        above = np.exp(np.minimum(logs - gap - np.log(-np.expm1(-gap)), 700.0))
        return below + float(np.min(above)) * (1 + 1e-9)

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε with S(ε) = δ, by safeguarded Newton on ln S; nothing is claimed of it."""
        epsilon, low, high = start, -math.inf, math.inf
        floor = 3 * (self._rounding(start, self._nodes.rough) + self._truncation[0])
        for _ in range(60):
            value, slope = self.sums(epsilon)
            if value <= floor:
                high = min(high, epsilon)
                epsilon = epsilon - 0.5 / self.grid.c if math.isinf(low) else (low + high) / 2
                continue
            gap = math.log(value) + self._scale(epsilon) - log_delta
            low, high = (epsilon, high) if gap > 0 else (low, epsilon)
            move = -gap * value / (slope if slope < 0 else -self.grid.c * value)
            new = epsilon + max(min(move, 3 / self.grid.c), -3 / self.grid.c)
            if abs(new - epsilon) <= 1e-13 * abs(new) or abs(gap) < 1e-13:
                return new
            if not low < new < high and low > -math.inf and high < math.inf:
                new = (low + high) / 2
            epsilon = new
        return epsilon


def _gaussian_tail(w: float, start: float) -> float:
    """Bound the integral of e^{-w²(t² - start²)/2} from start on; infinite where w is 0."""
    return min(1 / (w**2 * start), math.sqrt(math.pi / 2) / w) if w > 0 else math.inf


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))
