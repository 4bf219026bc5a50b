"""From a proposed ε to a certified bracket: only two inequalities carry the claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from .delta import Finite


class Bounds(Protocol):
    """Something that bounds δ(ε), of finite losses, from both sides. It is evaluated when it is first asked.

    Before that, `work` says about what it will cost, in multiplications, and `asked` what each question costs then; no
    engine makes more nodes than it bounds.
    """

    @property
    def method(self) -> str: ...
    @property
    def work(self) -> float: ...
    @property
    def asked(self) -> float: ...
    def upper(self, epsilon: float) -> Finite: ...
    def lower(self, epsilon: float) -> Finite: ...


class Tuned(Bounds, Protocol):
    """Bounds that are best near one ε, and can propose another."""

    def guess(self, log_delta: float, start: float) -> float: ...


def certify(bounds: Bounds, delta: Finite, proposed: float, slope: float) -> tuple[float, float]:
    """Return ε_low with lower(ε_low) ≥ δ (or 0) and ε_high with upper(ε_high) ≤ δ (or infinity).

    Args:
        bounds: The two-sided bounds on δ(ε).
        delta: The target.
        proposed: An ε near the answer; not trusted.
        slope: About -d ln δ / dε; sets the first step only.
    """
    proposed = max(proposed, 0.0)
    excess = min(max(float(bounds.upper(proposed)) / delta - 1, 0.0), 1.0)
    missing = min(max(1 - float(bounds.lower(proposed)) / delta, 0.0), 1.0)
    up = _least_step(lambda step: bounds.upper(proposed + step) <= delta, proposed, 1.05 * excess / slope)
    down = _least_step(lambda step: _holds_below(bounds, delta, proposed - step), proposed, 1.05 * missing / slope)
    return max(proposed - down, 0.0), proposed + up


def _holds_below(bounds: Bounds, delta: Finite, epsilon: float) -> bool:
    return epsilon <= 0 or bounds.lower(epsilon) >= delta


def _least_step(holds: Callable[[float], bool], proposed: float, first: float) -> float:
    """Return a step at which the inequality holds: grown from the first one, then shrunk while it still holds."""
    if holds(0.0):
        return 0.0
    least = max(2e-14 * proposed, 1e-300)
    step = max(first, least)
    grown = 0
    while not holds(step):
        step *= 1.5
        grown += 1
        if grown > 90 or not math.isfinite(step):
            return math.inf
    while grown == 0 and step > 8 * least and holds(step / 8):
        step /= 8
    return step
