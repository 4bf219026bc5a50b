"""From a proposed ε to a certified bracket: only two inequalities carry the claim."""

from __future__ import annotations

import math
from typing import Protocol


class Bounds(Protocol):
    """Something that bounds δ(ε) from both sides."""

    def upper(self, epsilon: float) -> float: ...
    def lower(self, epsilon: float) -> float: ...


def certify(bounds: Bounds, delta: float, proposed: float, slope: float) -> tuple[float, float]:
    """Return ε_low with lower(ε_low) ≥ δ (or 0) and ε_high with upper(ε_high) ≤ δ (or infinity).

    Args:
        bounds: The two-sided bounds on δ(ε).
        delta: The target.
        proposed: An ε near the answer; not trusted.
        slope: About -d ln δ / dε; sets the first step only.
    """
    proposed = max(proposed, 0.0)
    return _walk_down(bounds, delta, proposed, slope), _walk_up(bounds, delta, proposed, slope)


def _walk_up(bounds: Bounds, delta: float, proposed: float, slope: float) -> float:
    # The first step covers the excess of the bound over δ as the slope tells it.
    excess = max(bounds.upper(proposed) / delta - 1, 0.0)
    step = max(1.05 * min(excess, 1.0) / slope, 2e-14 * proposed, 1e-300)
    epsilon = proposed if bounds.upper(proposed) <= delta else proposed + step
    for _ in range(90):
        if bounds.upper(epsilon) <= delta:
            return epsilon
        step *= 1.5
        epsilon = proposed + step
        if not math.isfinite(epsilon):
            break
    return math.inf


def _walk_down(bounds: Bounds, delta: float, proposed: float, slope: float) -> float:
    missing = max(1 - bounds.lower(proposed) / delta, 0.0)
    step = max(1.05 * min(missing, 1.0) / slope, 2e-14 * proposed, 1e-300)
    epsilon = proposed if missing == 0 else proposed - step
    for _ in range(90):
        if epsilon <= 0:
            return 0.0
        if bounds.lower(epsilon) >= delta:
            return epsilon
        step *= 1.5
        epsilon = proposed - step
    return 0.0
