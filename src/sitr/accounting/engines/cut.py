"""δ(ε) with the largest steps cut off: so few that, counted whole, they are a small share of δ.

Where many moderate steps make the loss, no single one need reach far: behind a low gate the law is light, a line can
be tilted as steeply as δ asks, and what the gate stops is counted at its whole probability.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from ..losses.cuts import Gate
from ..losses.sampled import SampledGaussianLoss
from .delta import Finite
from .line import Line, choose_grid
from .mix import MODEL, Mix, best_tilt, raised_epsilon, saddle_tilt
from .near import Near
from .rare import rare_laws

SHARE = 1e-5  # of δ: what may be cut off and counted whole
GOAL = 1e-6  # the relative width aimed at
LEAST = -600.0  # ln of the least δ that is looked for
NEAR = 1e-6  # how closely the loss is found at which steps are cut off, relative to it


class Cut:
    """Two-sided bounds on δ(ε): the line of what passes the gates, and all that they stop."""

    method = "cut line"

    def __init__(self, near: Near, line: Line) -> None:
        self.line, self.work, self.asked = line, line.work, line.asked
        self.stopped = near.stopped_mass(0.0) * (1 + MODEL)

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        return Finite(self.line.upper(epsilon) + self.stopped)

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        return self.line.lower(epsilon)

    def guess(self, log_delta: float, start: float) -> float:
        """Propose an ε; nothing is claimed of it."""
        return self.line.guess(log_delta, start)


def cut_at(mix: Mix, epsilon: float, log_delta: float) -> Cut:
    """Cut off a share of δ and tilt the line of the rest for ε."""
    near = _cut_off(mix, SHARE * math.exp(log_delta))
    return Cut(near, Line(near, choose_grid(near, saddle_tilt(near, epsilon), epsilon, log_delta, GOAL)))


def truncated_epsilon(mix: Mix, delta: float) -> float:
    """Return an upper bound on ε: about half of δ for the largest steps, the rest for Chernoff's bound on the others.

    δ(ε) is at most the probability that some step is stopped, and δ of the measure in which none is.
    """
    near = _cut_off(mix, delta / 2)
    left = delta - near.stopped_mass(0.0) * (1 + MODEL)
    if left <= 0:
        return math.inf
    return max(raised_epsilon(near, best_tilt(near, math.log(left)), math.log(left)), 0.0)


def rough_log_delta(mix: Mix, epsilon: float, most: float) -> float | None:
    """Return the ln δ whose truncated ε this is, within a nat or so, if it is under `most`; nothing rests on it."""
    low, high = LEAST, most
    if high <= low or truncated_epsilon(mix, math.exp(high)) > epsilon:
        return None
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (middle, high) if truncated_epsilon(mix, math.exp(middle)) > epsilon else (low, middle)
    return low


def _cut_off(mix: Mix, mass: float) -> Near:
    """Gate every sampled law at one loss, so that about `mass` is stopped in all."""
    laws = rare_laws(mix)
    level = _level(laws, mass)
    return Near(mix, [Gate.steep(loss, level) for loss, _ in laws], level)


def _level(laws: list[tuple[SampledGaussianLoss, int]], mass: float) -> float:
    """Return the loss that steps exceed with probability `mass` in all, by bisection on its logarithm."""
    low, high = -40.0, 8.0
    while high - low > NEAR:
        middle = (low + high) / 2
        above = sum(n * _above(loss, loss.where(math.exp(middle))) for loss, n in laws)
        low, high = (middle, high) if above > mass else (low, middle)
    return math.exp(high)


def _above(loss: SampledGaussianLoss, x: float) -> float:
    """The probability, under the mixture, of what lies beyond x."""
    return math.fsum(weight * float(ndtr((j - x) / loss.sigma)) for j, weight in enumerate(loss.weights))
