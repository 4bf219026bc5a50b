"""Parts of a sampled Gaussian's moment generating function: before a gate in x, behind it, and between two.

The gate exp(-e^{(x - edge)/width}) is open left of its edge and shuts doubly exponentially right of it, so what passes
has light moments at every tilt. It is analytic, and on Im x = y its modulus is exp(-e^u cos(y/width)), which moves it
by less than a width: each part is a trapezoid sum on the moved line as M itself is (`sampled.py`; the proofs are in
docs/decisions/0003, points 4 and 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .law import Complexes, Floats, complex_expm1, log_sum_exp
from .sampled import DIGITS, ENDS, FAINT, SampledGaussianLoss

HEIGHT = 0.6  # how far the line is moved, in widths of the gate
GROWTH = 6.0  # nats that the gate's own growth off the real line may cost at least
MOST_GROWTH = 12.0  # beyond, what passes cancels on the moved line, and nothing is said
MOST_NODES = 100_000  # of one quadrature
SHUT = 8.0  # widths behind its edge, a gate has shut against any slope that is used


@dataclass(frozen=True)
class Gate:
    """A gate for the steps of one sampled law."""

    loss: SampledGaussianLoss
    edge: float
    width: float

    @classmethod
    def soft(cls, loss: SampledGaussianLoss, level: float) -> Gate:
        """A gate at the x where one step loses `level`, for a split of which both sides are summed."""
        return cls(loss, loss.where(level), min(0.06 * loss.sigma, _widest(loss)))

    @classmethod
    def sharp(cls, loss: SampledGaussianLoss, level: float, widths: float) -> Gate:
        """A gate so many widths behind the x where one step loses `level`: forty make a factor of three in the loss."""
        width = min(0.027 * loss.sigma**2, 0.15 * loss.sigma, _widest(loss))
        return cls(loss, loss.where(level) + widths * width, width)

    @classmethod
    def steep(cls, loss: SampledGaussianLoss, level: float) -> Gate:
        """A gate behind the x where one step loses `level`, that opens faster than the normal density grows there."""
        x = loss.where(level)
        width = min(loss.sigma / (2 * max(8.0, x / loss.sigma)), _widest(loss))
        return cls(loss, x + 2 * width, width)

    def passed(self, c: float) -> tuple[Complexes, Complexes]:
        """Return losses and log weights, on the moved line, of the part of M(c) that passes."""
        return self._passed_line(c, 1.0)

    def log_passed(self, c: float) -> float:
        """Return the log of the part of M(c) that passes, by a sum on the real line."""
        h = self._step(c, 2 * HEIGHT)
        x = self._passing_nodes(c, h)
        return float(log_sum_exp(self._logs(c, x, h) - np.exp((x - self.edge) / self.width)))

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Bound ln of what passes of |M(c + it')| over that of M(c), for every t' ≥ t (`Loss.log_decay`)."""
        lines = self._absolute(c)
        bounds = [min(float(np.sum(size * np.exp(-when * angle))) for size, angle in lines) for when in t]
        return np.minimum(np.log(np.array(bounds) + 1e-13), 0.0)

    @lru_cache(maxsize=32)  # noqa: B019 - gates are frozen and small
    def _absolute(self, c: float) -> list[tuple[Floats, Floats]]:
        """Return |integrand| over what passes of M(c), and arg r, on lines at a share of the usual height."""
        unit = self.log_passed(c)
        lines = (self._passed_line(c, 2.0**-k) for k in range(0, 12, 2))
        return [(np.exp(np.real(logs) - unit), np.imag(losses)) for losses, logs in lines]

    def stopped(self, c: float, before: Gate | None = None) -> tuple[Complexes, Complexes, Complexes]:
        """Return losses and log weights of the part that is stopped, and which share of each passes a later gate."""
        h = self._step(c, HEIGHT)
        line = self._stopping_nodes(c, h) + 1j * HEIGHT * self.width
        shut = _log_one_minus_exp(np.exp((line - self.edge) / self.width))
        logs = self._logs(c, line, h) + shut
        if before is None:
            return self.loss.log_ratio(line), logs, np.ones_like(logs)
        gone = _log_one_minus_exp(np.exp((line - before.edge) / before.width)) - shut
        return self.loss.log_ratio(line), logs, -complex_expm1(gone)

    def log_stopped(self, c: float) -> float:
        """Return the log of the part of M(c) that is stopped, by a sum on the real line."""
        h = self._step(c, 2 * HEIGHT)
        x = self._stopping_nodes(c, h)
        return float(log_sum_exp(self._logs(c, x, h) + _log_shut(x, self)))

    def log_stopped_before(self, c: float, x_end: float) -> float:
        """Bound the log of what is stopped though x ≤ x_end."""
        h = self._step(c, 2 * HEIGHT)
        x = self._stopping_nodes(c, h)
        x = np.append(x[x <= x_end], x_end)
        return float(log_sum_exp(self._logs(c, x, h) + _log_shut(x, self)))

    @lru_cache(maxsize=16)  # noqa: B019 - gates are frozen and small
    def _passed_line(self, c: float, share: float) -> tuple[Complexes, Complexes]:
        """What passes, on a line at a share of the usual height, with the usual step."""
        if self._growth(c) > MOST_GROWTH:
            raise OverflowError("the gate is too wide for so steep a tilt")
        h = self._step(c, HEIGHT)
        line = self._passing_nodes(c, h) + 1j * HEIGHT * self.width * share
        return self.loss.log_ratio(line), self._logs(c, line, h) - np.exp((line - self.edge) / self.width)

    def _step(self, c: float, height: float) -> float:
        """The trapezoid step: the strip reaches down to the real line, and as far up again."""
        y = height * self.width
        angle = 2 * y / self.loss.sigma**2
        return 2 * math.pi * y / (DIGITS + self.loss.stretch(c, angle) + max(GROWTH, self._growth(c)))

    def _growth(self, c: float) -> float:
        """Nats by which what passes may grow off the real line: there the gate is -ln cos θ widths farther out.

        That multiplies an integrand that rises by s nats a width by cos^-s θ; s is largest where the gate has shut.
        """
        end = self.edge + self.width * SHUT
        share = -math.expm1(float(self.loss.log_weights[0] - self.loss.log_ratio(np.float64(end))))
        rise = self.width * abs(self.loss.power(c)) * self.loss.steps / self.loss.sigma**2 * share
        return -math.log(math.cos(2 * HEIGHT)) * rise + 3.0

    def _logs(self, c: float, x: Complexes, h: float) -> Complexes:
        """The log integrand of M(c) times the step."""
        normal = -(x**2) / (2 * self.loss.sigma**2)
        return normal + self.loss.power(c) * self.loss.log_ratio(x) + self.loss.log_step(h)

    def _passing_nodes(self, c: float, h: float) -> Floats:
        """Nodes up to where the gate has shut against any slope of the integrand, without the faint ones."""
        low, high = self.loss.ends(c)
        slope = abs(self.loss.power(c)) * (abs(self.edge) + 1)
        high = min(high, self.edge + self.width * math.log(80 + slope))
        x = _between(low, high, h)
        logs = self._logs(c, x, h) - np.exp((x - self.edge) / self.width)
        return np.asarray(x[logs > np.max(logs) - FAINT])

    def _stopping_nodes(self, c: float, h: float) -> Floats:
        """Nodes to the end of M(c), without those at which too little is stopped to count."""
        low, high = self.loss.ends(c)
        high = max(high, self.edge + ENDS * self.loss.sigma)
        x = _between(low, high, h)
        logs = self._logs(c, x, h) + _log_shut(x, self)
        return np.asarray(x[logs > np.max(logs) - FAINT])


def _between(low: float, high: float, h: float) -> Floats:
    """Equidistant nodes from low to high; too many are not made."""
    if not (high - low) / h < MOST_NODES:
        raise OverflowError("too many nodes")
    return np.arange(math.floor(low / h), math.ceil(high / h) + 1) * h


def _widest(loss: SampledGaussianLoss) -> float:
    """The widest gate whose strip, 2 HEIGHT widths to each side, stays where the ratio has no zeros and one branch."""
    return 2.8 * loss.sigma**2 / (loss.steps * 4 * HEIGHT)


def _log_shut(x: Floats, gate: Gate) -> Floats:
    """The log of 1 - exp(-e^u) for real x; where e^u is large it is 0."""
    u = np.clip((x - gate.edge) / gate.width, -700.0, 50.0)
    return np.log(-np.expm1(-np.exp(u)))


def _log_one_minus_exp(z: Complexes) -> Complexes:
    """ln(1 - e^-z), accurate for small z and for large."""
    kept = np.where(np.real(z) < 700, z, 700.0)
    return np.log(-complex_expm1(-kept))
