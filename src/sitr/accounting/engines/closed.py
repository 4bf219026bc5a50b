"""δ(ε) where a closed form is known: Gaussians, and single events."""

from __future__ import annotations

import math

import numpy as np

from ..losses.gaussian import log_profile
from ..losses.law import UNIT
from .certify import certify
from .delta import Finite, Found
from .mix import Mix

CLOSED = 1.6e-12  # four times the relative error of the closed forms, checked against 50 digits in the tests


class ClosedForm:
    """Two-sided bounds on δ(ε) that nothing but rounding separates."""

    method = "closed form"
    work = asked = 1.0

    def __init__(self, mix: Mix) -> None:
        self.mix = mix

    def log_delta(self, epsilon: float) -> float:
        if not self.mix.parts:
            return float(log_profile(math.sqrt(self.mix.m2), np.float64(epsilon))) if self.mix.m2 else -math.inf
        value = float(self.mix.parts[0][0].profile(np.float64(epsilon)))
        return math.log(value) if value > 0 else -math.inf

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        above = math.exp(self.log_delta(epsilon - self._shift(epsilon)))
        return Finite(above * (1 + CLOSED))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        beneath = math.exp(self.log_delta(epsilon + self._shift(epsilon)))
        return Finite(beneath * (1 - CLOSED))

    def _shift(self, epsilon: float) -> float:
        """The parameters are rounded: so the losses are, by a few units of the largest."""
        largest = self.mix.largest if math.isfinite(self.mix.largest) else 0.0
        return 8 * UNIT * max(abs(epsilon), largest) + sum(loss.blur(epsilon) for loss, _ in self.mix.parts)

    def epsilon(self, delta: Finite) -> Found[float]:
        """Invert by bisection on ln δ."""
        log_delta = math.log(delta)
        if self.upper(0.0) <= delta:
            return Found(0.0, 0.0, self.method)
        low, high = 0.0, 1.0
        while self.log_delta(high) > log_delta:
            low, high = high, 2 * high
        for _ in range(200):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self.log_delta(middle) > log_delta else (low, middle)
        slope = (self.log_delta(low * (1 - 1e-6)) - self.log_delta(high * (1 + 1e-6))) / (2e-6 * high)
        lower, upper = certify(self, delta, high, slope if 0 < slope < math.inf else 1 / high)
        return Found(lower, upper, self.method)


def closed_form(mix: Mix) -> ClosedForm | None:
    """Return the closed form of a mix that has one."""
    single = not mix.m2 and len(mix.parts) == 1 and mix.parts[0][1] == 1 and mix.parts[0][0].closed
    continuous = not mix.parts and math.isinf(mix.gaussian_reach)
    return ClosedForm(mix) if continuous or single else None
