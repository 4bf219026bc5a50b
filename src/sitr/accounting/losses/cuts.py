"""Parts of a sampled Gaussian's moment generating function: split softly at an edge, or shut off by a gate.

Each is the integral of M with a weight on x that is analytic in a strip, so it is a trapezoid sum on the moved line as
M itself is (`sampled.py`); the proofs are in docs/decisions/0003, points 5 and 6.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfc, log_ndtr, ndtr, wofz

from .law import Complexes, Floats, log_sum_exp
from .sampled import DIGITS, ENDS, FAINT, SampledGaussianLoss, complex_log1p

SOFTNESS = 0.08  # the width of a cut, in standard deviations
ENDED = 6.0  # widths after which a cut has ended: erfc(6)/2 < 2e-17
_LEGENDRE = np.polynomial.legendre.leggauss(24)


def rare(loss: SampledGaussianLoss, c: float, edge: float) -> tuple[Complexes, Complexes]:
    """Return losses and log weights of the rare part, 1 - erfc((x - edge)/width)/2 of M, on the moved line.

    |erfc(ξ+iη)| ≤ e^{η²} erfc(ξ), so the strip theorem holds with e^{y²/width²} more.
    """
    width = cut_width(loss)
    y, h = _rare_line(loss, c)
    line = _rare_nodes(loss, c, edge, h) + 1j * y
    log_r = np.asarray(loss.log_ratio(line))
    logs = -(line**2) / (2 * loss.sigma**2) + loss.power(c) * log_r + loss.log_step(h)
    return log_r, logs + _log_half_erfc((edge - line) / width)


def cut_width(loss: SampledGaussianLoss) -> float:
    """The width of a soft cut, in x."""
    return loss.sigma * SOFTNESS


def kept(loss: SampledGaussianLoss, c: float, edge: float, far: float) -> Complexes:
    """Return, at the nodes of `rare`, which share of the rare part lies before a second soft edge."""
    width = cut_width(loss)
    y, h = _rare_line(loss, c)
    line = _rare_nodes(loss, c, edge, h) + 1j * y
    gone = _log_half_erfc((far - line) / width) - _log_half_erfc((edge - line) / width)
    return -np.expm1(gone)


def _rare_line(loss: SampledGaussianLoss, c: float) -> tuple[float, float]:
    """How far to move the line of the rare part, and its step."""
    width = cut_width(loss)
    y = min(loss.angle(c) * loss.sigma**2, 1.5 * width)
    return y, 2 * math.pi * y / (DIGITS + loss.stretch(c, 2 * y / loss.sigma**2) + 4 * (y / width) ** 2)


def log_rare_moment(loss: SampledGaussianLoss, c: float, edge: float) -> float:
    """Return the log of the rare part of M(c), by a sum on the real line."""
    width = cut_width(loss)
    y = min(loss.angle(c) * loss.sigma**2, 3 * width)
    h = 2 * math.pi * y / (DIGITS + loss.stretch(c, y / loss.sigma**2) + (y / width) ** 2)
    x = _rare_nodes(loss, c, edge, h)
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x) + loss.log_step(h)
    return float(log_sum_exp(logs + log_ndtr((x - edge) / width * math.sqrt(2))))


def _rare_nodes(loss: SampledGaussianLoss, c: float, edge: float, h: float) -> Floats:
    """Nodes right of seven widths before the edge, without those too faint to count."""
    low = max(edge - 7 * cut_width(loss), loss.ends(c)[0])
    high = max(loss.ends(c)[1], edge + ENDS * loss.sigma)
    x = np.arange(math.floor(low / h), math.ceil(high / h) + 1) * h
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x)
    logs = logs + log_ndtr((x - edge) / cut_width(loss) * math.sqrt(2))
    return np.asarray(x[logs > np.max(logs) - FAINT])


def log_body_moment(loss: SampledGaussianLoss, c: float, edge: float) -> float:
    """Return the log of the body's part of M(c) left of where the cut has ended.

    Gauss–Legendre on panels of two widths: the integrand is analytic, and its growth over a panel's ellipse,
    e^30 at most, is far under the 4^48 that 24 nodes gain.
    """
    width = cut_width(loss)
    low, high = loss.ends(c)[0], edge + ENDED * width
    panels = max(math.ceil((high - low) / (2 * width)), 1)
    half = (high - low) / panels / 2
    middles = low + half * (2 * np.arange(panels) + 1)
    x = (middles[:, None] + half * _LEGENDRE[0]).ravel()
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x) + loss.log_step(half)
    weights = np.tile(np.log(_LEGENDRE[1]), panels)
    return float(log_sum_exp(logs + weights + log_ndtr((edge - x) / width * math.sqrt(2))))


def leak(loss: SampledGaussianLoss, edge: float) -> float:
    """Bound the body's mass right of where the cut has ended."""
    x = edge + ENDED * cut_width(loss)
    j = np.arange(loss.steps + 1)
    return float(erfc(ENDED)) / 2 * float(np.sum(np.array(loss.weights) * ndtr((j - x) / loss.sigma)))


def gate_width(loss: SampledGaussianLoss) -> float:
    """The width of a sharp gate, in x: forty of them make a factor of three in the loss, or six deviations."""
    return min(0.027 * loss.sigma**2, 0.15 * loss.sigma)


def near(loss: SampledGaussianLoss, c: float, far: float) -> tuple[Complexes, Complexes]:
    """Return losses and log weights of M behind a gate exp(-e^{(x - far)/width}), on the moved line.

    The gate falls doubly exponentially, so M stays finite and light at every tilt; on Im x = y its modulus is
    exp(-e^u cos(y/width)), which moves it by less than a width.
    """
    return _near_line(loss, c, far, 1.0)


def log_near_decay(loss: SampledGaussianLoss, c: float, far: float, t: Floats) -> Floats:
    """Bound ln |M(c + it')| / M(c) behind the gate for every t' ≥ t, as `log_decay` does without it."""
    unit = log_near_moment(loss, c, far)
    lines = [_near_line(loss, c, far, 2.0**-k) for k in range(0, 12, 2)]
    sizes = [(np.exp(np.real(logs) - unit), np.imag(losses)) for losses, logs in lines]
    bounds = [min(float(np.sum(size * np.exp(-when * angle))) for size, angle in sizes) for when in t]
    return np.minimum(np.log(np.array(bounds) + 1e-13), 0.0)


@lru_cache(maxsize=16)
def _near_line(loss: SampledGaussianLoss, c: float, far: float, height: float) -> tuple[Complexes, Complexes]:
    """The nodes of the gated integrand on the line at a share of its usual height, with the usual step."""
    y = 0.6 * gate_width(loss)
    h = 2 * math.pi * y / (DIGITS + loss.stretch(c, 2 * y / loss.sigma**2) + 6)
    line = _near_nodes(loss, c, far, h) + 1j * y * height
    log_r = np.asarray(loss.log_ratio(line))
    logs = -(line**2) / (2 * loss.sigma**2) + loss.power(c) * log_r + loss.log_step(h)
    return log_r, logs - np.exp((line - far) / gate_width(loss))


def log_near_moment(loss: SampledGaussianLoss, c: float, far: float) -> float:
    """Return the log of M(c) behind the gate, by a sum on the real line."""
    y = 1.2 * gate_width(loss)
    h = 2 * math.pi * y / (DIGITS + loss.stretch(c, y / loss.sigma**2) + 6)
    x = _near_nodes(loss, c, far, h)
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x) + loss.log_step(h)
    return float(log_sum_exp(logs - np.exp((x - far) / gate_width(loss))))


def _near_nodes(loss: SampledGaussianLoss, c: float, far: float, h: float) -> Floats:
    """Nodes up to where the gate has shut against any slope of the integrand."""
    low = loss.ends(c)[0]
    high = min(loss.ends(c)[1], far + gate_width(loss) * math.log(80 + abs(loss.power(c)) * (abs(far) + 1)))
    x = np.arange(math.floor(low / h), math.ceil(high / h) + 1) * h
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x) - np.exp((x - far) / gate_width(loss))
    return np.asarray(x[logs > np.max(logs) - FAINT])


def beyond(loss: SampledGaussianLoss, c: float, far: float, upto: float = math.inf) -> float:
    """Return the mass that the gate keeps out, of P (c = 0) or Q (c = -1), of x up to `upto`."""
    h = 2 * math.pi * 1.2 * gate_width(loss) / (DIGITS + 2)
    low = max(far - 60 * gate_width(loss), -ENDS * loss.sigma)
    x = np.arange(math.floor(low / h), math.ceil((max(far, loss.steps) + 12 * loss.sigma) / h) + 1) * h
    x = x[x <= upto + h]
    logs = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x) + loss.log_step(h)
    with np.errstate(over="ignore"):
        return float(np.sum(np.exp(logs) * -np.expm1(-np.exp((x - far) / gate_width(loss)))))


def _log_half_erfc(z: Complexes) -> Complexes:
    """ln(erfc(z)/2), right of the axis by the scaled function; |Im z| stays under the zeros of erfc."""
    right = np.real(z) > 0
    outer = np.where(right, z, 1.0)
    inner = np.where(right, 1.0, z)
    far = -(outer**2) + np.log(wofz(1j * outer)) - math.log(2)
    return np.where(right, far, complex_log1p(-erfc(-inner) / 2))
