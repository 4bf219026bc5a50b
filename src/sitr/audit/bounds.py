"""What counts certify: bounds on probabilities that hold with a stated confidence, and what follows for ε and δ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

ROUNDING = 1e-12  # what scipy's inverse may be off, many times over


def probability_lower(count: ArrayLike, total: ArrayLike, error: ArrayLike) -> NDArray[np.float64]:
    """Return p such that `count` or more successes are at most `error` likely under p or less (Clopper–Pearson).

    Args:
        count: Successes, whole or expected; arrays give arrays.
        total: Trials.
        error: The probability that the bound may be wrong, on this side alone.

    Privacy: none is spent; exact for independent trials, whatever their number.

    Example:
        >>> round(float(probability_lower(8, 10, 0.05)), 4), float(probability_lower(0, 10, 0.05))
        (0.4931, 0.0)
    """
    k, n = np.asarray(count, dtype=np.float64), np.asarray(total, dtype=np.float64)
    inner = betaincinv(np.maximum(k, 1e-300), n - k + 1, error)
    return np.asarray(np.where(k <= 0, 0.0, inner * (1 - ROUNDING)), dtype=np.float64)


def probability_upper(count: ArrayLike, total: ArrayLike, error: ArrayLike) -> NDArray[np.float64]:
    """Return p such that `count` or fewer successes are at most `error` likely under p or more (Clopper–Pearson).

    Privacy: none is spent; exact for independent trials. Without any success it is about ln(1/error)/total.

    Example:
        >>> round(float(probability_upper(0, 1000, 0.05)), 5), float(probability_upper(10, 10, 0.05))
        (0.00299, 1.0)
    """
    k, n = np.asarray(count, dtype=np.float64), np.asarray(total, dtype=np.float64)
    inner = betainccinv(k + 1, np.maximum(n - k, 1e-300), error)
    return np.asarray(np.where(k >= n, 1.0, np.minimum(inner * (1 + ROUNDING), 1.0)), dtype=np.float64)


def epsilon_lower(p_lower: float, q_upper: float, delta: float) -> float:
    """Return the ε that an event certifies at a δ: ln((p - δ)/q), for the event or for its complement (THEORY 1.3).

    Args:
        p_lower: What its probability with one input is at least.
        q_upper: What its probability with the other is at most.
        delta: In [0, 1).

    Privacy: (ε,δ)-DP says p ≤ e^ε q + δ of every event in both orders; so no smaller ε can be true.

    Example:
        >>> round(epsilon_lower(0.5, 0.1, delta=0.0), 4), round(epsilon_lower(0.9, 0.5, delta=0.0), 4)
        (1.6094, 1.6094)
    """
    found = 0.0
    for p, q in ((p_lower, q_upper), (1 - q_upper, 1 - p_lower)):
        if p > delta:
            found = max(found, math.log((p - delta) / q) if q > 0 else math.inf)
    return found


def delta_lower(p_lower: float, q_upper: float, epsilon: float) -> float:
    """Return the δ that an event certifies at an ε: p - e^ε q, for the event or for its complement (THEORY 1.3).

    Privacy: as for `epsilon_lower`: no smaller δ can be true.

    Example:
        >>> round(delta_lower(0.5, 0.1, epsilon=1.0), 4), delta_lower(0.5, 0.4, epsilon=1.0)
        (0.2282, 0.0)
    """
    factor = math.exp(min(epsilon, 700.0))
    return max(p_lower - factor * q_upper, (1 - q_upper) - factor * (1 - p_lower), 0.0)
