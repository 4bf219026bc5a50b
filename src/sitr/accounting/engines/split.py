"""δ(ε) with rare steps split off: a line over the rare measure, and a steeper one over the body."""

from __future__ import annotations

import math

import numpy as np

from ..losses.cuts import Gate
from .delta import Finite
from .line import Line, choose_grid, period_of
from .mix import Mix, best_tilt, chernoff_delta, log_kappa
from .near import MARGIN, Near
from .rare import HIGHEST, LOWEST, Rare, lowest, rare_laws

SHARE = 0.5  # of ε: a step that loses so much is rare
NEGLIGIBLE = math.log(1e-8)  # a body whose Chernoff bound is under this share of δ needs no line
GOAL = 2e-6  # the relative width aimed at
SLOW = 0.5  # a tilt times ε under this makes the plain line long: far steps are then summed apart


class Body:
    """Bounds on what compositions without rare steps add to δ(ε): by Chernoff where negligible, else by a line."""

    def __init__(self, near: Near, epsilon: float, log_delta: float) -> None:
        self.near, self.tilt = near, best_tilt(near, log_delta + NEGLIGIBLE)
        self.height = float(near.log_mgf(self.tilt)) + float(log_kappa(self.tilt))
        self.line: Line | None = None
        if self.height - self.tilt * epsilon > log_delta + NEGLIGIBLE:
            c = best_tilt(near, max(log_delta, chernoff_delta(near, epsilon)))
            self.line = Line(near, choose_grid(near, c, epsilon, log_delta, GOAL))

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on the body's share of δ(ε)."""
        bound = math.exp(min(self.height - self.tilt * epsilon, 0.0)) * (1 + 1e-6)
        return bound if self.line is None else min(bound, self.line.upper(epsilon))

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on the body's share of δ(ε)."""
        return 0.0 if self.line is None else max(self.line.lower(epsilon), 0.0)


class Split:
    """Two-sided bounds on δ(ε): the rare measure by its line, and the body."""

    method = "split line"
    tuned = math.inf  # up to here what is said of far steps holds closely

    def __init__(self, line: Line, body: Body) -> None:
        self.line, self.body = line, body
        self.work = line.work + (body.line.work if body.line else 0.0)
        self.asked = line.asked + (body.line.asked if body.line else 0.0)

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        return Finite(self.line.upper(epsilon) + self.body.upper(epsilon))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        return Finite(self.line.lower(epsilon) + self.body.lower(epsilon))

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε by bisection on the middle of both bounds; nothing is claimed of it."""
        delta = math.exp(log_delta)
        low, high = start / 4, min(start * 4, 2 * self.tuned)
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            lower = self.lower(middle)
            above = lower + (self.upper(middle) if middle <= self.tuned else lower) > 2 * delta
            low, high = (middle, high) if above else (low, middle)
        return (low + high) / 2


class FarSplit(Split):
    """The same without far steps on the line: a short period, whose aliases from below are subtracted exactly.

    Below its smallest loss the measure's δ is V(0) - e^ε V(-1), so the aliases at ε - mT form two geometric series.
    Far steps lift the loss above ε by themselves, and their share of δ is a closed form.
    """

    def __init__(
        self, line: Line, body: Body, rare: Rare, above: tuple[float, float], early: float, tuned: float
    ) -> None:
        """Take the log of a bound on δ without far steps at ε = 0 and its slope; and what was called far too early."""
        super().__init__(line, body)
        self.rare, self.above, self.early, self.tuned = rare, above, early, tuned
        self.far = rare.far_part(-math.inf)
        self.zero, self.minus = (math.exp(float(rare.log_mgf(x))) for x in (0.0, -1.0))

    def _below(self, epsilon: float) -> float:
        c, period = self.line.grid.c, self.line.grid.period
        first = self.zero * math.exp(-c * period) / -math.expm1(-c * period)
        second = self.minus * math.exp(-(c + 1) * period) / -math.expm1(-(c + 1) * period)
        return first - math.exp(min(epsilon, 700.0)) * second

    def _leak(self, epsilon: float) -> float:
        """The mean of (e^{ε-L} - 1)_+ where a step is far and the loss is under ε all the same."""
        stopped = -math.log1p(-min(self.far, HIGHEST))  # at least Σ n P(far), as that of one is
        return math.expm1(min(epsilon - self.rare.smallest, 700.0)) * (self.early + math.exp(-LOWEST) * stopped)

    def _rounding(self) -> float:
        """Of the closed forms, each a difference of sums near `zero`."""
        return 1e-12 * (self.zero / -math.expm1(-self.line.grid.c * self.line.grid.period) + self.far)

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        # Beyond the ε that the gates were made for, all of P is counted of what is far.
        far = self.rare.far_part(epsilon) + self._leak(epsilon) if epsilon <= self.tuned else self.far
        return Finite(super().upper(epsilon) + far - self._below(epsilon) + self._rounding())

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        if epsilon > 2 * self.tuned:  # the aliases from below would no longer lie under every loss
            return Finite(0.0)
        height, tilt = self.above
        c, period = self.line.grid.c, self.line.grid.period
        if tilt <= c:  # then nothing bounds the aliases from above
            return Finite(0.0)
        beyond = math.exp(min(height - tilt * (epsilon + period) + c * period, 0.0)) / -math.expm1(-(tilt - c) * period)
        known = self.rare.far_part(epsilon) - self._below(epsilon) - beyond - self._rounding()
        return Finite(self.line.lower_without_aliases(epsilon) + self.body.lower(epsilon) + known)


def split_at(mix: Mix, epsilon: float, log_delta: float) -> Split | None:
    """Split at half of ε; and leave far steps out where no tilt that M tolerates is steep beside ε."""
    laws = [loss for loss, _ in rare_laws(mix)]
    gates = [Gate.soft(loss, SHARE * epsilon) for loss in laws]
    rare = Rare(mix, gates, epsilon / 5)
    body = Body(Near(mix, gates, epsilon / 5), epsilon, log_delta)
    steepest = best_tilt(rare, log_delta)
    if steepest * epsilon < SLOW and math.isfinite(mix.smallest):
        return _without_far(mix, gates, epsilon, log_delta, steepest, body)
    c = _roomy_tilt(rare, steepest, epsilon, log_delta)
    return Split(Line(rare, choose_grid(rare, c, epsilon, log_delta, GOAL)), body)


def _roomy_tilt(rare: Rare, steepest: float, epsilon: float, log_delta: float) -> float:
    """A tilt near the steepest leaves no room for the tilts that bound the aliases: take the shortest period.

    A lower one raises e^{V(c) - cε}, and with it what rounding weighs: by e² at most.
    """
    heights = [
        (c, float(rare.log_mgf(c)) - c * epsilon) for c in steepest * np.array([1.0, 0.85, 0.7, 0.55, 0.4, 0.25])
    ]
    tilts = [c for c, height in heights if height <= heights[0][1] + 2]
    return float(min(tilts, key=lambda c: period_of(rare, c, epsilon, log_delta)))


def _without_far(
    mix: Mix, gates: list[Gate], epsilon: float, log_delta: float, steepest: float, body: Body
) -> FarSplit | None:
    """Leave out steps that lift the loss well above ε, and choose the period by what is left."""
    room = epsilon * MARGIN + lowest(mix)
    far = [Gate.soft(gate.loss, 3 * room) for gate in gates]
    early = math.fsum(
        n * math.exp(gate.log_stopped_before(0.0, gate.loss.where(room)))
        for gate, (_, n) in zip(far, rare_laws(mix), strict=True)
    )
    rare, near = Rare(mix, gates, epsilon / 5, far), Near(mix, far, epsilon / 5)
    for factor in (6, 9, 14, 20, 30, 45, 70):
        period = factor * room
        tilt = best_tilt(near, log_delta + NEGLIGIBLE)
        height = float(near.log_mgf(tilt)) + float(log_kappa(tilt))
        if height - tilt * (epsilon + period) <= log_delta + NEGLIGIBLE:
            break
    else:
        return None
    c = min(0.6 * steepest, 4 / period)
    line = Line(rare, choose_grid(rare, c, epsilon, log_delta, GOAL, period, 8 / epsilon))
    return FarSplit(line, body, rare, (height, tilt), early, epsilon * MARGIN)
