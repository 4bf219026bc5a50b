"""Rare events: few steps at tiny sampling rates, or deep δ, where no tilt of the whole law peaks at ε.

There the loss of a sampled step is lognormal-like: one step of n makes the loss. A gate cuts its moment generating
function into a body and a rare part, M = M_b + M_r, and the line integrates what has at least one rare step,

    e^K - e^{K_b} = e^{K_b} expm1( Σ n_j ln(1 + M_r,j / M_b,j) ),

a positive measure, so that Poisson summation still gives an upper bound. The body, having no rare steps, has a line of
its own at a steeper tilt (`near.py`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..losses.cuts import Gate
from ..losses.law import UNIT, Complexes, Floats, complex_expm1, complex_log1p, waves, waves_error
from ..losses.sampled import SampledGaussianLoss
from .mix import Mix


class Rare:
    """The measure of compositions with at least one rare step; it stands where a `Mix` does on the line.

    With `far` gates, steps that those stop are left out of it as well (they are summed in closed form: `far_part`).
    """

    largest = math.inf

    def __init__(self, mix: Mix, gates: list[Gate], scale: float, far: list[Gate] | None = None) -> None:
        """Split each sampled law of the mix at its gate; `scale` is the size of the losses that matter."""
        self.mean = scale**2 / 2
        self.sampled = rare_laws(mix)
        self.others = mix.without(self.sampled)
        self.reach = self.others.reach
        beyond: list[Gate | None] = list(far) if far else [None] * len(gates)
        self.cuts = list(zip(self.sampled, gates, beyond, strict=True))
        self.smallest = mix.smallest

    @lru_cache(maxsize=256)  # noqa: B019 - a measure lives for one question
    def _shares(self, c: float) -> tuple[tuple[float, float], ...]:
        """Return M_r(c)/M(c), the far part included, and M_f(c)/M(c), of each sampled law."""
        found = []
        for (loss, _), gate, far in self.cuts:
            whole = float(loss.log_mgf(np.float64(c)))
            rare = min(math.exp(gate.log_stopped(c) - whole), HIGHEST)
            found.append((rare, min(math.exp(far.log_stopped(c) - whole), rare) if far else 0.0))
        return tuple(found)

    def _exponent(self, c: float) -> float:
        """Σ n ln(1 + M_m/M_b) at real c, M_m what lies between the gates."""
        pairs = zip(self.sampled, self._shares(c), strict=True)
        return math.fsum(n * math.log1p((rare - far) / (1 - rare)) for (_, n), (rare, far) in pairs)

    def _log_without_far(self, c: float) -> float:
        """Σ n ln(1 - M_f/M) at real c."""
        return math.fsum(n * math.log1p(-far) for (_, n), (_, far) in zip(self.sampled, self._shares(c), strict=True))

    def log_mgf(self, x: Floats | float) -> Floats:
        """Return the log of the measure's moment generating function at real x."""
        return np.array([self._log_mgf(float(c)) for c in np.atleast_1d(x)]).reshape(np.shape(x))

    @lru_cache(maxsize=256)  # noqa: B019 - see _shares
    def _log_mgf(self, c: float) -> float:
        if any(c > loss.steepest for loss, _ in self.sampled):
            return math.inf  # as a bound: never the best tilt
        whole = math.fsum(n * float(loss.log_mgf(np.float64(c))) for loss, n in self.sampled)
        exponent = self._exponent(c)
        if not exponent > 0:
            return -math.inf
        return float(self.others.log_mgf(c)) + whole + self._log_without_far(c) + math.log(-math.expm1(-exponent))

    def log_mgf_error(self, c: float) -> float:
        return self.others.log_mgf_error(c) + sum(n * UNIT * 64 for _, n in self.sampled) + 1e-12

    @property
    def mass(self) -> float:
        return math.exp(self._log_mgf(0.0))

    def far_part(self, epsilon: float) -> float:
        """Return E[1 - e^{ε-L}; some step is far]: P of it less e^ε times Q of it, in closed form.

        Where a far step alone lifts the loss above ε, whatever the others do, this is its whole share of δ(ε).
        """
        p, q = (-math.expm1(self._log_without_far(c)) for c in (0.0, -1.0))
        q *= math.exp(float(self.others.log_mgf(-1.0)))  # one, unless Q has outcomes that P has not
        return p - math.exp(min(epsilon, 700.0)) * q

    def work(self, c: float) -> int:
        rare = (2 * int(gate.stopped(c)[0].size) + loss.work(c) for (loss, _), gate, _ in self.cuts)
        return sum(rare) + self.others.work(c)

    def log_decay(self, c: float, t: Floats) -> Floats:
        """|Π(b+r)^n - Π b^n| ≤ Π(|b| + |r|)^n, with |b| ≤ (decay + share)/(1 - share) in units of M_b(c)."""
        total = self.others.log_decay(c, t) - math.log(math.expm1(min(self._exponent(c), 700.0)))
        for (loss, n), (share, _) in zip(self.sampled, self._shares(c), strict=True):
            total = total + n * np.log((np.exp(loss.log_decay(c, t)) + 2 * share) / (1 - share))
        return np.minimum(total, 0.0)

    def ratios(self, c: float, step: float, count: int, whisper: float) -> tuple[Complexes, float]:
        """Return the transform on the line over its value at c, and a bound on each error.

        With b = M_b(z)/M_b(c) and r = M_m(z)/M_b(c), so |b| ≤ 1 and |r| ≤ r(c), the transform is (b+r)^n - b^n. An
        error of b enters with n ((b+r)^{n-1} - b^{n-1}), at most n times the transform at c; an error of r with
        n (b+r)^{n-1}, at most n e^{exponent at c}.
        """
        values, noise = self.others.ratios(c, step, count, whisper)
        size, turn = np.zeros(count + 1), np.zeros(count + 1)
        exponent, rough = np.zeros(count + 1, dtype=np.complex128), 0.0
        for ((loss, n), gate, far), (share, _) in zip(self.cuts, self._shares(c), strict=True):
            unit = float(loss.log_mgf(np.float64(c))) + math.log1p(-share)
            whole, whole_error = loss.ratios(c, step, count)
            losses, logs, kept = gate.stopped(c, far)
            weights = np.exp(logs - unit)
            rare = waves(losses, weights, step, count)
            body = whole / (1 - share) - rare
            weights = weights * kept
            middle = waves(losses, weights, step, count) if far else rare
            rare_error = waves_error(np.abs(losses), np.abs(weights), step * count)
            size += n * np.log(np.maximum(np.abs(body), 1e-300))
            turn += n * np.angle(body)
            exponent += n * complex_log1p(middle / np.where(np.abs(body) > 0, body, 1.0))
            noise += n * (2 * (whole_error / (1 - share) + rare_error) + 8 * UNIT)
            rough += n * 2 * rare_error
        at_c = self._exponent(c)
        if at_c > 700:  # more than a double holds: no number, which proves nothing
            return values * math.nan, noise + math.nan
        moved = (
            np.exp(np.minimum(size, 0.0) + 1j * np.mod(turn, 2 * math.pi)) * complex_expm1(exponent) / math.expm1(at_c)
        )
        return moved * values, noise + rough * math.exp(at_c) / math.expm1(at_c)


LOWEST = 28.0  # nats: how improbable a sum of losses under `lowest` is


def lowest(mix: Mix) -> float:
    """Return a loss k such that all but one step fall under -k together with probability e^-LOWEST at most.

    Chernoff at negative tilts, where the step left out has ln M(-t) ≥ -t E L; and no sum is under the smallest one.
    """
    spread = math.sqrt(2 * max(mix.mean, 1e-300))
    tilts = np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32]) / spread
    left_out = max((loss.mean() for loss, _ in rare_laws(mix)), default=0.0)
    found = (mix.log_mgf(-tilts) + LOWEST) / tilts + left_out
    return max(min(float(np.min(found)), -mix.smallest), 0.0)


LARGEST_GROUP = 3  # whose steps are cut
HIGHEST = 0.999  # a share of the rare part above which the body is no longer seen


def rare_laws(mix: Mix) -> list[tuple[SampledGaussianLoss, int]]:
    """The laws of a mix that can be cut; where the noise is so low that both normals separate, none need be.

    Nor are those of large groups, each of whose sums has a term for every member: too slow for what it gains.
    """
    sampled = ((loss, n) for loss, n in mix.parts if isinstance(loss, SampledGaussianLoss) and loss.removes)
    return [(loss, n) for loss, n in sampled if loss.steps <= LARGEST_GROUP and not loss.separated(0.0)]


def single_jump(mix: Mix, delta: float, high: float) -> float:
    """Return the ε at which one step alone would make up δ: Σ n_j δ_j(ε) = δ; nothing rests on it."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        total = sum(n * float(loss.profile(np.float64(middle))) for loss, n in rare_laws(mix))
        low, high = (middle, high) if total > delta else (low, middle)
    return (low + high) / 2
