"""CDP, zCDP and GDP of one part, where a theorem gives them (THEORY 3.1, 3.3, 3.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import erfinv, log_expit, ndtri_exp

from ..errors import NoSuchGuarantee
from .batch_mix import BatchMix
from .losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from .losses.interval import BoundedRange, IntervalLoss
from .losses.law import UNIT, Loss, Pair
from .losses.sampled import SampledGaussianLoss
from .losses.sampled_discrete import SampledDiscreteLoss
from .parts import Parts
from .renyi import Claim
from .sampled_mix import SampledMix

SMOOTHING = 1.5  # the variance that discrete Gaussian noise gives up to pass for Gaussian noise, but for 1e-25
LEAST_VARIANCE = 2 * SMOOTHING  # under this, half of the noise and more would be given up


def zcdp_of(part: Pair | Claim) -> tuple[float, float]:
    """Return (ρ, ξ) with D_α ≤ ξ + ρα.

    Gaussian and discrete Gaussian m²/2; sampled Gaussian the same, since mixing in Q only lowers D_α and at large
    orders the mixing no longer helps; bounded range ε²/8; pure ε: ε²/2.
    """
    if isinstance(part, Claim):
        if part.zcdp is None:
            raise _unknown("zCDP", "only some Rényi orders are known", "ask for rdp(alpha)")
        return part.zcdp
    loss = _described(part)
    if isinstance(loss, (GaussianLoss, DiscreteGaussianLoss)):
        return loss.m**2 / 2, 0.0
    if isinstance(loss, SampledDiscreteLoss):
        return _squared(loss.sensitivity / loss.scale) / 2, 0.0
    if isinstance(loss, SampledGaussianLoss):
        return _squared(loss.steps / loss.sigma) / 2, 0.0
    if isinstance(loss, BoundedRange):
        return loss.e0**2 / 8, 0.0
    if isinstance(loss, SampledMix) and math.isinf(_largest(part)):
        return _sampled_zcdp(loss)
    if isinstance(loss, BatchMix) and math.isinf(_largest(part)):
        return _whole_zcdp(_unfailing(loss, "zCDP").parts)
    return _squared(_largest(part)) / 2, 0.0


def _sampled_zcdp(mix: SampledMix) -> tuple[float, float]:
    """(ρ, ξ) before sampling; a loss of -ln(1-q) where the other order had an infinite one is at most ξ."""
    rho, xi = _whole_zcdp(mix.parts)
    return rho, max(xi, -math.log1p(-mix.q)) if mix.backward.infinite_mass else xi


def _whole_zcdp(parts: Parts) -> tuple[float, float]:
    """(ρ, ξ) of all parts: those of a batch too, as D_α of a mixture of pairs is no larger than the largest."""
    pieces = [(zcdp_of(part), count) for part, count in parts]
    rho, xi = (math.fsum(count * piece[i] for piece, count in pieces) for i in (0, 1))
    return rho, xi


def concentrated_of(part: Pair | Claim) -> tuple[float, float]:
    """Return (μ, τ): Gaussian (m²/2, m); a loss in [a, b] has its own mean and, by Hoeffding's lemma, τ = (b-a)/2."""
    if isinstance(part, Claim):
        if part.concentrated is None:
            raise _unknown(
                "CDP", "the claim bounds Rényi divergences, not the centred loss", "use zcdp() or rdp(alpha)"
            )
        return part.concentrated
    loss = _described(part)
    if isinstance(loss, (GaussianLoss, DiscreteGaussianLoss)):
        return loss.m**2 / 2, loss.m
    if isinstance(loss, (SampledGaussianLoss, SampledDiscreteLoss)) or math.isinf(_largest(part)):
        raise _unknown("CDP", "no subgaussian standard of the sampled Gaussian is proved", "use zcdp() or rdp(alpha)")
    # The curve knows the range of the truth; a law made of points of its profile may be cut short of it.
    curves = part.renyi or part
    forward, backward = curves.forward, curves.backward
    means = (order.mean() for order in (forward, backward, part.forward, part.backward))
    return max(means), (forward.largest + backward.largest) / 2


def gdp_of(part: Pair | Claim) -> tuple[float, float]:
    """Return μ of Gaussian DP, and the mass outside which it holds, infinite losses apart (THEORY 3.5).

    2 Φ^{-1}((1+TV)/2) for pure, Laplace and bounded-range losses; discrete Gaussian noise leaves out a mass near 1e-25.
    """
    if isinstance(part, Claim):
        raise _unknown(
            "Gaussian DP", "a Rényi curve does not bound the trade-off curve by a Gaussian's", "use epsilon(delta)"
        )
    loss = _described(part)
    if isinstance(loss, GaussianLoss):
        return loss.m, 0.0
    if isinstance(loss, SampledGaussianLoss):
        return loss.steps / loss.sigma, 0.0
    if isinstance(loss, (DiscreteGaussianLoss, SampledDiscreteLoss)):
        return discrete_gdp(loss.scale, loss.sensitivity)
    if isinstance(loss, SampledMix) and math.isinf(_largest(part)):
        return _sampled_gdp(loss)
    if isinstance(loss, BatchMix) and math.isinf(_largest(part)):
        # The trade-off curve of a mixture of pairs lies over the lowest.
        return composed_gdp(_unfailing(loss, "Gaussian DP").parts)
    if isinstance(loss, BoundedRange):
        loss = part.forward
    if isinstance(loss, IntervalLoss):
        return _gdp_of_variation(float(loss.profile(np.float64(0.0))), loss.log_overlap), 0.0
    largest = _largest(part)
    return _gdp_of_variation(math.tanh(largest / 2), float(log_expit(-largest)) + math.log(2)), 0.0


def _gdp_of_variation(variation: float, log_overlap: float) -> float:
    """Return 2 Φ^{-1}((1+TV)/2), by TV where that is small, and else by ln(1-TV), which keeps its digits near one."""
    if variation < 0.5:
        return 2 * math.sqrt(2) * float(erfinv(variation))
    return -2 * float(ndtri_exp(log_overlap - math.log(2)))


def composed_gdp(parts: Iterable[tuple[Pair | Claim, int]]) -> tuple[float, float]:
    """Return μ of several parts, whose squares add, and the mass outside which it holds, which adds (THEORY 4.1)."""
    pieces = [(gdp_of(part), count) for part, count in parts]
    mu = math.sqrt(math.fsum(count * _squared(piece[0]) for piece, count in pieces))
    return mu, math.fsum(count * piece[1] for piece, count in pieces)


def discrete_gdp(scale: float, sensitivity: int, smoothing: float = SMOOTHING) -> tuple[float, float]:
    """Return (μ, η): discrete Gaussian noise on one integer is μ-Gaussian DP outside a mass η (THEORY 3.5).

    Let s² < σ², and draw Y from N(x, σ²-s²), then Z from the discrete Gaussian of variance s² around Y: post-processing
    of Gaussian noise, with μ = Δ/√(σ²-s²). With Θ_s(y) = Σ_z φ_s(z-y), the law of Z at z is φ_σ(z-x) E[1/Θ_s(Y) | z],
    and given z, Y is normal with variance v = s²(σ²-s²)/σ². By Poisson summation Θ_s(y) = 1 + e(y), where
    e(y) = 2 Σ_k q^{k²} cos 2πky and q = e^{-2π²s²}; it is at most e₀ = 2 Σ_k q^{k²} in size. As 1/(1+e) is at most
    1 - e + e₀²/(1-e₀), and E cos 2πkY at most e^{-2π²k²v} in size,

        E[1/Θ_s(Y) | z] ≤ 1 + 2 Σ_k (q e^{-2π²v})^{k²} + e₀²/(1-e₀).

    The noise that is drawn has φ_σ(z-x)/Θ_σ(0): at every z at least 1-η times the law of Z. So with probability 1-η it
    *is* that post-processing, and with η it may be anything. Poisson sampling mixes both in equal shares: μ and η stay.
    Of a vector, each coordinate that moves is such a pair: μ = ‖Δ‖₂/√(σ²-s²), outside η for each of at most ‖Δ‖₂².
    `smoothing` is s²: a larger one gives up more variance, and leaves less outside.

    Example:
        >>> mu, outside = discrete_gdp(20.0, 1)
        >>> round(mu, 6), outside < 2e-25
        (0.050094, True)
    """
    if scale**2 < 2 * smoothing:
        raise _unknown("Gaussian DP", "noise so small on the integers is far from a Gaussian's", "use zcdp()")
    rest = scale**2 - smoothing
    size = _ripple(smoothing)
    over = _ripple(smoothing * (1 + rest / scale**2)) + size**2 / (1 - size)  # s² + v in place of s²
    outside = over + _ripple(scale**2) * (1 + over)
    return sensitivity / math.sqrt(rest) * (1 + 4 * UNIT), outside * 1.001  # roundings take far less than that


def _ripple(variance: float) -> float:
    """Bound 2 Σ_{k≥1} q^{k²}, q = e^{-2π² variance}: each exponent is at least 1 + 3(k-1)."""
    q = math.exp(-2 * math.pi**2 * variance)
    return 2 * q / (1 - q**3)


def _sampled_gdp(mix: SampledMix) -> tuple[float, float]:
    """μ before sampling: the trade-off curve of a mixture with Q lies over that of P."""
    if mix.backward.infinite_mass:
        raise _unknown("Gaussian DP", "sampling makes other losses of infinite ones", "use epsilon(delta)")
    return composed_gdp(mix.parts)


def _unfailing(curve: BatchMix, notion: str) -> BatchMix:
    if curve.infinite_mass:
        raise _unknown(
            notion, "of a batch it is proved only where no loss is infinite", "use rdp(alpha) or epsilon(delta)"
        )
    return curve


def _squared(number: float) -> float:
    """Return the square; infinity where it is no number, where `**` would raise."""
    return number * number


def _described(part: Pair) -> Loss:
    """What says the most of a part at once: its Rényi curve, where laws would have to be made first."""
    return (part.renyi or part).forward


def _largest(part: Pair) -> float:
    """The ε of a bounded loss, both orders; infinite-loss mass is left to the δ part."""
    orders = part.renyi or part
    return max(orders.forward.largest, orders.backward.largest)


def _unknown(notion: str, why: str, do: str) -> NoSuchGuarantee:
    return NoSuchGuarantee(f"no {notion} guarantee is known for this event.", why=f"{why}.", do=f"{do}.")
