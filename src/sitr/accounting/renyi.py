"""What is known only by a Rényi curve: concentrated DP, zCDP, tables of (α, ε) (THEORY 1.4, 3.2, 3.3, 3.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .engines.mix import FINE, Mix, best_tilt, chernoff_epsilon, log_kappa, minimise
from .losses.atoms import Atoms, hull, two_point
from .losses.law import UNIT, Complexes, Floats, Loss, Pair
from .losses.rounding import rounded_up

if TYPE_CHECKING:
    from .curve import Answers

POINTS = 400  # where an implied profile is sampled
WIDE, FINER = 200, 1200  # tilts that are tried for it: over all orders, and then over those that matter
FARTHEST = -600.0  # ln of the δ at which the sampling ends; what is left of δ there is infinite-loss mass


@dataclass(frozen=True, eq=False)
class Claim(Loss):
    """D_α ≤ rdp(α) for all α > 1 in both orders, outside an event of mass `infinite_mass`.

    No pair is known. `attained` is the m of a Gaussian mechanism that satisfies the claim: the worst mechanism it
    allows cannot cost less than that one; `beneath` are the parts of a known event that does. `zcdp` is (ρ, ξ) and
    `concentrated` (μ, τ) where the claim says so; `orders` are those of a table, between which only chords are known.
    """

    rdp: Callable[[Floats], Floats]
    attained: float
    infinite_mass: float = 0.0
    zcdp: tuple[float, float] | None = None
    concentrated: tuple[float, float] | None = None
    group: Callable[[int], Claim] | None = None
    orders: tuple[float, ...] = ()
    beneath: Any = ()
    stated: bool = True
    largest_stated: bool = True

    @property
    def largest(self) -> float:  # type: ignore[override]
        return float(self.rdp(np.float64(math.inf)))

    def log_mgf(self, x: Floats) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            # The order 1 + x never rounds to 1, where another divergence lives.
            return np.where(x > 0, x * self.rdp(np.maximum(1 + x, np.nextafter(1.0, 2.0))), 0.0)

    def mean(self) -> float:
        return float(self.rdp(np.float64(1.0)))

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        raise TypeError("a claim has no characteristic function")

    def profile(self, epsilon: Floats) -> Floats:
        raise TypeError("a claim has no profile")


@lru_cache(maxsize=1024)  # equal claims are one: what is made of them is made once
def zcdp_claim(rho: float, xi: float, delta: float) -> Claim:
    """(ξ,ρ)-zCDP: D_α ≤ ξ + ρα; the Gaussian with m² = 2ρ satisfies it.

    Groups of s: (ξ s Σ_{i≤s} 1/i, s²ρ) (Bun and Steinke 2016, Prop. 27); s²ρ alone where ξ = 0, and sξ alone where
    ρ = 0, as that is pure ξ-DP (THEORY 4.8).
    """

    def group(size: int) -> Claim:
        if not rho:
            return replace(zcdp_claim(0.0, rounded_up(size * Fraction(xi)), 0.0), largest_stated=False)
        harmonic = math.fsum(1 / i for i in range(1, size + 1))
        return zcdp_claim(size**2 * rho, size * harmonic * xi, 0.0)

    def rdp(alpha: Floats) -> Floats:
        return xi + rho * alpha if rho else np.full(np.shape(alpha), xi)

    return Claim(rdp, math.sqrt(2 * rho), delta, (rho, xi), None, group if delta == 0 else None)


@lru_cache(maxsize=1024)
def concentrated_claim(mu: float, tau: float) -> Claim:
    """(μ,τ)-CDP: D_α ≤ min(μ, τ²/2) + (α-1) τ²/2 (THEORY 3.3), so ρ = τ²/2, and groups follow as zCDP."""
    mean, rho = min(mu, tau**2 / 2), tau**2 / 2
    attained = min(tau, math.sqrt(2 * mean))

    def rdp(alpha: Floats) -> Floats:
        return mean + (alpha - 1) * rho if rho else np.zeros(np.shape(alpha))

    return Claim(
        rdp,
        attained,
        0.0,
        (rho, 0.0),
        (mu, tau),
        lambda size: replace(zcdp_claim(size**2 * rho, 0.0, 0.0), attained=size * attained),
    )


@lru_cache(maxsize=1024)
def chord_claim(points: tuple[tuple[float, float], ...], delta: float) -> Claim:
    """A table of (α, ε), read on the safe side.

    (α-1) D_α is convex in α and 0 at α = 1, so its chords lie above it; below the first order D_α is at most the
    first value, and past the last order only an entry at ∞ says anything. Groups of 2^c: THEORY 4.8.
    """
    always = min((e for a, e in points if math.isinf(a)), default=math.inf)
    lowest: dict[float, float] = {}
    for a, e in points:  # all of them hold, so the least does
        lowest[a] = min(e, lowest.get(a, math.inf))
    finite = sorted((a, e) for a, e in lowest.items() if math.isfinite(a))
    at_one = min((e for a, e in finite if a == 1), default=math.inf)
    alphas = np.array([1.0, *(a for a, _ in finite if a > 1)])
    heights = np.array([0.0, *((a - 1) * e for a, e in finite if a > 1)])
    first = heights[1] / (alphas[1] - 1) if alphas.size > 1 else math.inf

    def rdp(alpha: Floats) -> Floats:
        alpha = np.asarray(alpha, dtype=np.float64)
        inside = np.where(np.isfinite(alpha) & (alpha > 1), alpha, 2.0)
        chord = np.interp(inside, alphas, heights, right=math.inf) / (inside - 1)
        value = np.where(alpha == 1, min(first, at_one), np.where(np.isfinite(alpha), chord, math.inf))
        return np.minimum(value, always)

    def group(size: int) -> Claim:
        halvings = math.ceil(math.log2(size))
        moved = tuple((a / 2**halvings, 3**halvings * e) for a, e in finite if a >= 2 ** (halvings + 1))
        pure = ((math.inf, rounded_up(size * Fraction(always))),) if math.isfinite(always) else ()
        known = moved + pure
        claim = chord_claim(known, 0.0) if known else Claim(lambda alpha: alpha + math.inf, 0.0)
        # Of the mechanism that attains this one.
        return replace(claim, attained=size * attained, largest_stated=False)

    limits = [2 * e / a for a, e in finite] + ([0.0] if math.isfinite(always) else [])
    attained = math.sqrt(min(limits))
    orders = tuple(a for a, _ in finite if a > 1)
    return Claim(rdp, attained, delta, None, None, group if delta == 0 else None, orders)


@lru_cache(maxsize=1024)
def curve_claim(event: Answers, delta: float) -> Claim:
    """The Rényi curve of a known event, and nothing else of it: what the moments accountant keeps.

    The event itself satisfies the claim, so what it costs is the least that the claim can.
    """

    def rdp(alpha: Floats) -> Floats:
        alphas = np.asarray(alpha, dtype=np.float64)
        return np.array([event.rdp(float(a), delta_part=True) for a in alphas.ravel()]).reshape(alphas.shape)

    fails = event.infinite_mass
    stated = not fails or (not delta and event._orders.most_infinite_mass == fails)
    mass = delta + fails * (1 - delta)
    return Claim(rdp, 0.0, mass, beneath=event.parts, stated=stated, largest_stated=False)


@lru_cache(maxsize=256)
def implied_pair(claims: tuple[tuple[Claim, int], ...]) -> Pair:
    """The pair of the profile that the summed Rényi curves imply (THEORY 2.6, 3.2), from its chords.

    Only a finite number of (ε,δ) is taken, and the hull of those dominates every mechanism that satisfies them.
    """
    mix = Mix.of(claims)
    if mix.mean == 0:
        law = two_point(0.0, mix.infinite_mass).forward
        assert isinstance(law, Atoms)
        return Pair.symmetric(replace(law, stated=mix.failure.lower == mix.failure.upper))  # of several: computed
    high = min(max(chernoff_epsilon(mix, best_tilt(mix, FARTHEST), FARTHEST), 1e-9), 600.0)
    epsilons = np.unique(np.concatenate([np.linspace(0.0, high, POINTS), np.geomspace(high * 1e-6, high, 40)]))
    logs = _implied_profile(mix, epsilons)
    points = [(float(e), math.exp(log)) for e, log in zip(epsilons, logs, strict=True) if log < 0]
    pair = hull(points or [(high, 1.0)])
    total = pair.forward.infinite_mass + mix.infinite_mass * (1 - pair.forward.infinite_mass)
    assert isinstance(pair.forward, Atoms)
    return Pair.symmetric(replace(pair.forward, infinite_mass=total, stated=False))


def _implied_profile(mix: Mix, epsilons: Floats) -> Floats:
    """Bound ln δ at each ε by Chernoff: at tilts far apart, and then close by between the ones that were best."""
    tilts = np.geomspace(1e-9, 1e12, WIDE)
    _, best = _least_height(mix, tilts, epsilons)
    near = np.geomspace(tilts[max(best.min() - 1, 0)], tilts[min(best.max() + 1, WIDE - 1)], FINER)
    logs, _ = _least_height(mix, np.unique([*near, *mix.kinks]), epsilons)
    return np.minimum(logs, 0.0)


def _least_height(mix: Mix, tilts: Floats, epsilons: Floats) -> tuple[Floats, Any]:
    """Return the least of Chernoff's bounds on ln δ(ε) over the tilts, raised for its rounding; and which that is."""
    heights = mix.log_mgf(tilts) + log_kappa(tilts)
    heights = np.where(np.isnan(heights), np.inf, heights)
    best = np.argmin(heights[:, None] - tilts[:, None] * epsilons, axis=0)
    errors = {k: mix.log_mgf_error(float(tilts[k])) for k in np.unique(best) if math.isfinite(heights[k])}
    height, slope = heights[best], tilts[best] * epsilons
    rounding = np.array([errors.get(k, 0.0) for k in best]) + 8 * UNIT * (slope + np.abs(height) + 1)
    return height - slope + rounding, best


def bad_outcome_bound(mix: Mix, p: float) -> float:
    """Proposition 10 of seed 002: (e^{D_α} p)^{(α-1)/α}, for the best α (THEORY 3.4)."""
    if p == 0:
        return 0.0

    def log_bound(c: float) -> float:
        return (float(mix.log_mgf(c)) + c * math.log(p)) / (1 + c)

    return math.exp(min(log_bound(minimise(log_bound, 1.0, FINE)), 0.0))
