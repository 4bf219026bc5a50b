"""The law of steps that pass a gate: light at every tilt, where the whole law is not.

A sampled step can lose more than any tilt tolerates, however small its loss usually is: e^{cL} is dominated by steps
that never happen. Behind gates those are gone, and the line can be tilted as steeply as δ asks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..losses.cuts import Gate
from ..losses.law import UNIT, Complexes, Floats, waves, waves_error
from .delta import Finite
from .line import Line, choose_grid
from .mix import Mix, best_tilt
from .rare import LOWEST, lowest, rare_laws

GOAL = 1e-5  # the relative width aimed at
MARGIN = 1.02  # gates are made for an ε so much larger than the one asked for
SHUT = 20.0  # widths between where a step lifts the loss above ε and where its gate shuts


class Near:
    """The measure of compositions whose every step passes its gate; it stands where a `Mix` does on the line."""

    largest = math.inf
    mass = 1.0

    def __init__(self, mix: Mix, gates: list[Gate], scale: float) -> None:
        """Gate each sampled law of the mix; `scale` is the size of the losses that matter."""
        self.mean = scale**2 / 2
        sampled = rare_laws(mix)
        self.gates = list(zip(gates, (n for _, n in sampled), strict=True))
        self.others = mix.without(sampled)
        self.reach = self.others.reach

    def log_mgf(self, x: Floats | float) -> Floats:
        """Return the log of the measure's moment generating function at real x."""
        return np.array([self._log_mgf(float(c)) for c in np.atleast_1d(x)]).reshape(np.shape(x))

    @lru_cache(maxsize=256)  # noqa: B019 - a measure lives for one question
    def _log_mgf(self, c: float) -> float:
        return float(self.others.log_mgf(c)) + math.fsum(n * gate.log_passed(c) for gate, n in self.gates)

    def log_mgf_error(self, c: float) -> float:
        return self.others.log_mgf_error(c) + sum(n * UNIT * 64 for _, n in self.gates) + 1e-12

    def work(self, c: float) -> int:
        return sum(int(gate.passed(c)[0].size) for gate, _ in self.gates) + self.others.work(c)

    def log_decay(self, c: float, t: Floats) -> Floats:
        total = self.others.log_decay(c, t)
        for gate, n in self.gates:
            total = total + n * gate.log_decay(c, t)
        return total

    def ratios(self, c: float, step: float, count: int, whisper: float) -> tuple[Complexes, float]:
        """Return the transform on the line over its value at c, and a bound on each error."""
        values, noise = self.others.ratios(c, step, count, whisper)
        size, turn = np.zeros(count + 1), np.zeros(count + 1)
        for gate, n in self.gates:
            losses, logs = gate.passed(c)
            weights = np.exp(logs - gate.log_passed(c))
            gated = waves(losses, weights, step, count)
            size += n * np.log(np.maximum(np.abs(gated), 1e-300))
            turn += n * np.angle(gated)
            tilt = 4 * UNIT * c * float(np.sum(np.abs(weights) * np.abs(losses)))
            noise += n * (2 * waves_error(np.abs(losses), np.abs(weights), step * count) + 2 * tilt + 8 * UNIT)
        return values * np.exp(np.minimum(size, 0.0) + 1j * np.mod(turn, 2 * math.pi)), noise

    def stopped_mass(self, c: float) -> float:
        """The mass, of P (c = 0) or Q (c = -1), of compositions in which some step is stopped.

        Of Q the others have the mass M(-1): one, unless Q has outcomes that P has not.
        """
        stopped = -math.expm1(math.fsum(n * math.log1p(-math.exp(gate.log_stopped(c))) for gate, n in self.gates))
        return stopped * math.exp(float(self.others.log_mgf(c))) if c else stopped


class Gated:
    """Two-sided bounds on δ(ε): what passes by its line, what is stopped in closed form.

    A composition with a stopped step loses more than ε, so its share of δ is P of it less e^ε times Q of it, plus at
    most `leak`, the mean of (e^{ε-L} - 1)_+ where a step is stopped and the loss is under ε all the same. That mean
    grows with ε: it holds up to the ε that the gates were made for, and beyond it all of P is counted.
    """

    method = "gated line"

    def __init__(self, near: Near, line: Line, leak: float, tuned: float) -> None:
        self.line, self.work, self.asked, self.leak, self.tuned = line, line.work, line.asked, leak, tuned
        self.p, self.q = near.stopped_mass(0.0), near.stopped_mass(-1.0)

    def _far(self, epsilon: float) -> float:
        return self.p - math.exp(min(epsilon, 700.0)) * self.q

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        stopped = self._far(epsilon) + self.leak if epsilon <= self.tuned else self.p
        return Finite(self.line.upper(epsilon) + stopped + 1e-12 * self.p)

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        return Finite(self.line.lower(epsilon) + self._far(epsilon) - 1e-12 * self.p)

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε: what is left of δ for the line."""
        left = math.exp(log_delta) - self._far(start)
        return self.line.guess(math.log(left), start) if left > 0 else start


def gated_at(mix: Mix, epsilon: float, log_delta: float) -> Gated | None:
    """Shut the gates where one step alone lifts the loss above ε; None if others can pull it back without limit."""
    if not math.isfinite(mix.smallest):
        return None
    room = epsilon * MARGIN + lowest(mix)
    laws = rare_laws(mix)
    near = Near(mix, [Gate.sharp(loss, room, SHUT) for loss, _ in laws], epsilon / 5)
    early = math.fsum(n * math.exp(gate.log_stopped_before(0.0, gate.loss.where(room))) for gate, n in near.gates)
    stopped = math.fsum(n * math.exp(gate.log_stopped(0.0)) for gate, n in near.gates)
    leak = math.expm1(min(epsilon * MARGIN - mix.smallest, 700.0)) * (early + math.exp(-LOWEST) * stopped)
    c = best_tilt(near, log_delta)
    grid = choose_grid(near, c, epsilon, log_delta, GOAL, slope=-log_delta / epsilon)
    return Gated(near, Line(near, grid), leak, epsilon * MARGIN)
