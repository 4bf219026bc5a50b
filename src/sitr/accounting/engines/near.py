"""Steps of small loss at tiny rates: the law without far steps, which can be tilted as steeply as δ asks.

A sampled step can lose more than any tilt tolerates, however small its loss usually is: e^{cL} is dominated by steps
that never happen. A gate that shuts doubly exponentially keeps those out of the line; compositions in which some step
is kept out lose more than ε anyway, and their share of δ is P of them less e^ε times Q of them, in closed form.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..losses import cuts
from ..losses.law import UNIT, Complexes, Floats, waves, waves_error
from .line import Line, choose_grid
from .mix import Mix, best_tilt
from .rare import LOWEST, lowest, rare_laws

GOAL = 1e-5  # the relative width aimed at
SHUT = 20  # widths between where a step lifts the loss above ε and where its gate shuts


class Near:
    """The measure of compositions whose every step passed the gate; it stands where a `Mix` does on the line."""

    reach = math.inf
    largest = math.inf

    def __init__(self, mix: Mix, gates: list[float], scale: float) -> None:
        """Shut the gate of each sampled law at its own x; `scale` is the size of the losses that matter."""
        self.mean = scale**2 / 2
        self.sampled = rare_laws(mix)
        self.gates = gates
        self.others = Mix(tuple(part for part in mix.parts if part not in self.sampled), mix.m2)
        self.laws = list(zip(self.sampled, gates, strict=True))

    def log_mgf(self, x: Floats | float) -> Floats:
        """Return the log of the measure's moment generating function at real x."""
        return np.array([self._log_mgf(float(c)) for c in np.atleast_1d(x)]).reshape(np.shape(x))

    @lru_cache(maxsize=256)  # noqa: B019 - a measure lives for one question
    def _log_mgf(self, c: float) -> float:
        gated = math.fsum(n * cuts.log_near_moment(loss, c, gate) for (loss, n), gate in self.laws)
        return float(self.others.log_mgf(c)) + gated

    def log_mgf_error(self, c: float) -> float:
        return self.others.log_mgf_error(c) + sum(n * UNIT * 64 for _, n in self.sampled) + 1e-12

    @property
    def mass(self) -> float:
        return 1.0

    def work(self, c: float) -> int:
        return sum(int(cuts.near(loss, c, gate)[0].size) for (loss, _), gate in self.laws) + self.others.work(c)

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Bound each gated transform by the integral of absolute values on the moved line, for the best of several."""
        total = self.others.log_decay(c, t)
        for (loss, n), gate in self.laws:
            total = total + n * cuts.log_near_decay(loss, c, gate, t)
        return total

    def ratios(self, c: float, step: float, count: int, whisper: float) -> tuple[Complexes, float]:
        """Return the transform on the line over its value at c, and a bound on each error."""
        values, noise = self.others.ratios(c, step, count, whisper)
        size, turn = np.zeros(count + 1), np.zeros(count + 1)
        for (loss, n), gate in self.laws:
            losses, logs = cuts.near(loss, c, gate)
            weights = np.exp(logs - cuts.log_near_moment(loss, c, gate))
            gated = waves(losses, weights, step, count)
            size += n * np.log(np.maximum(np.abs(gated), 1e-300))
            turn += n * np.angle(gated)
            tilt = 4 * UNIT * c * float(np.sum(np.abs(weights) * np.abs(losses)))
            noise += n * (2 * waves_error(np.abs(losses), np.abs(weights), step * count) + 2 * tilt + 8 * UNIT)
        return values * np.exp(np.minimum(size, 0.0) + 1j * np.mod(turn, 2 * math.pi)), noise

    def kept_out(self, c: float) -> float:
        """The mass, of P (c = 0) or Q (c = -1), of compositions in which some step was kept out."""
        return -math.expm1(math.fsum(n * math.log1p(-cuts.beyond(loss, c, gate)) for (loss, n), gate in self.laws))


class Gated:
    """Two-sided bounds on δ(ε): the gated measure by its line, what was kept out in closed form."""

    def __init__(self, near: Near, line: Line, leak: float) -> None:
        self.line, self.leak = line, leak
        self.p, self.q = near.kept_out(0.0), near.kept_out(-1.0)

    def _far(self, epsilon: float) -> float:
        return self.p - math.exp(min(epsilon, 700.0)) * self.q

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε)."""
        return self.line.upper(epsilon) + self._far(epsilon) + 1e-12 * self.p + self.leak

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε)."""
        return self.line.lower(epsilon) + self._far(epsilon) - 1e-12 * self.p

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε: what is left of δ for the line."""
        left = math.exp(log_delta) - self._far(start)
        return self.line.guess(math.log(left), start) if left > 0 else start


def gated_at(mix: Mix, epsilon: float, log_delta: float) -> Gated | None:
    """Shut the gates where one step alone lifts the loss above ε; None if others can pull it back without limit."""
    if not math.isfinite(mix.smallest):
        return None
    room = epsilon + lowest(mix)
    levels = [loss.where(room) for loss, _ in rare_laws(mix)]
    gates = [level + SHUT * cuts.gate_width(loss) for level, (loss, _) in zip(levels, rare_laws(mix), strict=True)]
    near = Near(mix, gates, epsilon / 5)
    early = (n * cuts.beyond(loss, 0.0, g, x) for (loss, n), g, x in zip(near.sampled, gates, levels, strict=True))
    # (e^{ε-L} - 1)_+ where a step was kept out: it came early, or the others fell lower than they do.
    worst = math.expm1(min(epsilon - mix.smallest, 700.0))
    leak = worst * (math.fsum(early) + math.exp(-LOWEST) * near.kept_out(0.0))
    c = best_tilt(near, log_delta)
    slope = -log_delta / epsilon
    return Gated(near, Line(near, choose_grid(near, c, epsilon, log_delta, GOAL, slope=slope)), leak)
