"""δ(ε) with rare steps cut off: the line over the rare measure, and Chernoff over the body."""

from __future__ import annotations

import math

import numpy as np

from ..losses.cuts import cut_width
from .line import Line, choose_grid, period_of
from .mix import Mix, best_tilt
from .rare import LOWEST, Rare, lowest, rare_laws

SHARES = (0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.12, 0.07)  # of ε: where to try the cut
BODY = math.log(1e-8)  # what the body may add to δ, as a share of it
GOAL = 2e-6  # the relative width aimed at
SLOW = 0.5  # a tilt times ε under this makes the plain line long: far steps are then summed apart


class Split:
    """Two-sided bounds on δ(ε): the rare measure by its line, the body by Chernoff at a fixed tilt."""

    def __init__(self, line: Line, tilt: float, body: float, leak: float) -> None:
        """Take the body's log bound at ε = 0, which falls with slope `tilt`."""
        self.line, self.tilt, self.body, self.leak = line, tilt, body, leak

    def _body(self, epsilon: float) -> float:
        return math.exp(min(self.body - self.tilt * epsilon, 0.0)) * (1 + 1e-3) + self.leak * (1 + 1e-9)

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε)."""
        return self.line.upper(epsilon) + self._body(epsilon)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε)."""
        return self.line.lower(epsilon)

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε; nothing is claimed of it."""
        return self.line.guess(log_delta, start)


class FarSplit(Split):
    """The same without far steps on the line: a short period, whose aliases from below are subtracted exactly.

    Below its smallest loss the measure's δ is V(0) - e^ε V(-1), so the aliases at ε - mT form two geometric series.
    Far steps lift the loss above ε by themselves, and their share of δ is a closed form.
    """

    def __init__(self, line: Line, tilt: float, body: float, leak: float, above: tuple[float, float, float]) -> None:
        super().__init__(line, tilt, body, leak)
        assert isinstance(line.mix, Rare)
        self.rare = line.mix
        self.above = above
        self.far = self.rare.far_part(-math.inf)
        self.zero, self.minus = (math.exp(float(self.rare.log_mgf(x))) for x in (0.0, -1.0))

    def _below(self, epsilon: float) -> float:
        c, period = self.line.grid.c, self.line.grid.period
        first = self.zero * math.exp(-c * period) / -math.expm1(-c * period)
        return first - math.exp(min(epsilon, 700.0)) * self.minus * math.exp(-(c + 1) * period) / -math.expm1(
            -(c + 1) * period
        )

    def _slack(self, epsilon: float) -> float:
        """Rounding of the closed forms, each a difference of sums near `zero`."""
        scale = self.zero / -math.expm1(-self.line.grid.c * self.line.grid.period) + self.far
        # Where the others fall lower than they do, a far step does not lift the loss above ε.
        fallen = math.expm1(min(epsilon - self.rare.smallest, 700.0)) * math.exp(-LOWEST) * self.far
        return 1e-12 * scale + 4 * self.leak + fallen

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε)."""
        known = self.rare.far_part(epsilon) - self._below(epsilon)
        return self.line.upper(epsilon) + known + self._slack(epsilon) + self._body(epsilon)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε)."""
        tilt, log_bound, leak = self.above
        c, period = self.line.grid.c, self.line.grid.period
        beyond = math.exp(min(log_bound - tilt * epsilon, 0.0)) / -math.expm1(-(tilt - c) * period)
        beyond += leak * math.exp(c * period) / (c * period) * 10
        known = self.rare.far_part(epsilon) - self._below(epsilon) - beyond
        return self.line.lower_without_aliases(epsilon) + known - self._slack(epsilon)

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε by bisection on the middle of both bounds."""
        delta = math.exp(log_delta)
        low, high = start / 4, start * 4
        for _ in range(60):
            middle = (low + high) / 2
            above = self.upper(middle) + self.lower(middle) > 2 * delta
            low, high = (middle, high) if above else (low, middle)
        return (low + high) / 2


def split_at(mix: Mix, epsilon: float, log_delta: float) -> Split | None:
    """Cut where the body alone cannot reach ε, and put the rest on a line; None if no cut does."""
    laws = [loss for loss, _ in rare_laws(mix)]
    for share in SHARES:
        edges = [loss.where(share * epsilon) for loss in laws]
        rare = Rare(mix, edges, epsilon / 5)
        tilt, log_bound, leak = rare.body_bound(epsilon)
        if log_bound <= log_delta + BODY and (leak == 0 or math.log(leak) <= log_delta + BODY):
            break
    else:
        return None
    body = log_bound + tilt * epsilon
    steepest = best_tilt(rare, log_delta)
    if steepest * epsilon < SLOW and math.isfinite(rare.smallest):
        return _without_far(mix, edges, epsilon, log_delta, steepest, (tilt, body, leak))
    c = _roomy_tilt(rare, steepest, epsilon, log_delta)
    return Split(Line(rare, choose_grid(rare, c, epsilon, log_delta, GOAL)), tilt, body, leak)


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
    mix: Mix, edges: list[float], epsilon: float, log_delta: float, steepest: float, body: tuple[float, float, float]
) -> FarSplit | None:
    """Leave out steps that lift the loss to three times what is needed, and choose the period by what is left."""
    laws = [loss for loss, _ in rare_laws(mix)]
    room = epsilon + lowest(mix)
    far = [loss.where(3 * room) + cut_width(loss) * 6 for loss in laws]
    rare = Rare(mix, edges, epsilon / 5, far)
    for factor in (6, 9, 14, 20, 30, 45, 70):
        period = factor * room
        tilt, log_bound, leak = rare.far_bound(epsilon + period)
        if log_bound <= log_delta + BODY:
            break
    else:
        return None
    c = min(0.6 * steepest, 4 / period)
    grid = choose_grid(rare, c, epsilon, log_delta, GOAL, period, 8 / epsilon)
    return FarSplit(Line(rare, grid), *body, (tilt, log_bound + tilt * epsilon, leak))
