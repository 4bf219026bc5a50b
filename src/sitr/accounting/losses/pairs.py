"""From the parameters of a mechanism to its dominating pair (THEORY 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from ...errors import NoSuchGuarantee
from .atoms import Atoms, hull, pair_of, response, two_point
from .gaussian import DiscreteGaussianLoss, GaussianLoss
from .interval import BoundedRange, IntervalLoss
from .law import FAINT, Floats, LaterPair, Pair, log_sum_exp, share_of
from .rounding import log_above, rounded_up, sampled_above
from .sampled import SampledGaussianLoss
from .sampled_curve import SampledCurve, log_ratios
from .sampled_discrete import SampledDiscreteLoss

CELLS = 4096  # into how many cells a continuous law is cut where no closed form is left
NEAR_ONE = 0.9  # a rate over which its distance from 1 is rounded too much to be ignored
SAMPLED_AGAIN = Fraction(1, 2**46)  # of a rate: what a hundred roundings of samples of samples can have added to it
MOST_CELL_LOSS = 600.0  # beyond, masses underflow, and the worst pure pair stands for the law
LOST = 1e-9  # so much of Q's mass may be lost to rounding
MOST_STEPS = 4096  # discrete Laplace noise that a person moves further is bounded by its continuous law


@lru_cache(maxsize=4096)
def gaussian_pair(m: float) -> Pair:
    """N(0, 1) against N(m, 1) (THEORY 2.3)."""
    return Pair.symmetric(GaussianLoss(m), farthest=True)


@lru_cache(maxsize=4096)
def laplace_pair(epsilon: float | Fraction) -> Pair:
    """Laplace noise that is ε-DP (THEORY 2.2)."""
    return Pair.symmetric(IntervalLoss.laplace(epsilon), farthest=True)


@lru_cache(maxsize=4096)
def exponential_pair(e0: float) -> Pair:
    """A selection of bounded range e0 (THEORY 2.5).

    The profile is exact for one selection, at each ε for another mechanism: no single pair attains it. Beneath it
    lies randomized response of e0/2, which has that range; and the Rényi curve is a maximum of its own.
    """
    loss = IntervalLoss.exponential(e0)
    return Pair(
        loss,
        loss,
        beneath=two_point_pair(e0 / 2, 0.0),
        renyi=Pair.symmetric(BoundedRange(e0)),
        attains=partial(_selection_of_two, e0),
    )


@lru_cache(maxsize=4096)
def _selection_of_two(e0: float, share: float) -> Pair:
    """A selection from two, of range e0: a loss of t = share · e0, or t - e0, so that the masses of Q sum to one."""
    t = share * e0
    losses = np.array([t - e0, t])
    high = math.log(-math.expm1(t - e0)) - math.log(-math.expm1(-e0))
    low = t - e0 + math.log(-math.expm1(-t)) - math.log(-math.expm1(-e0))
    logs = np.array([low, high])
    return Pair(Atoms(losses, logs), Atoms(-losses[::-1], (logs - losses)[::-1]))


@lru_cache(maxsize=4096)
def discrete_gaussian_pair(scale: float, sensitivity: int) -> Pair:
    """The discrete Gaussian moved by an integer (THEORY 2.4)."""
    return Pair.symmetric(DiscreteGaussianLoss(scale, sensitivity), farthest=True)


@lru_cache(maxsize=4096)
def discrete_laplace_pair(scale: float, sensitivity: int) -> Pair:
    """Losses (Δ - 2j)/t: mass 1/(1+r) at j = 0, (1-r) r^j/(1+r) between, r^Δ/(1+r) at j = Δ (THEORY 2.4)."""
    if sensitivity > MOST_STEPS:
        # P and Q cut into blocks of steps: merging is dominated, spreading to the ends of the block dominates.
        return _coarse_discrete_laplace(scale, sensitivity)
    j = np.arange(sensitivity + 1)
    logs = -j / scale - math.log1p(math.exp(-1 / scale))
    logs[1:-1] += math.log(-math.expm1(-1 / scale))
    losses = (2 * j - sensitivity) / scale
    exact = sensitivity / Fraction(scale)
    losses[-1] = rounded_up(exact)
    losses[0] = -losses[-1]
    loss = Atoms(losses, (logs - log_sum_exp(logs))[::-1].copy(), exact_largest=exact)
    return Pair(loss, loss, grown=lambda size: discrete_laplace_pair(scale, size * sensitivity), farthest=True)


def _coarse_discrete_laplace(scale: float, sensitivity: int) -> Pair:
    edges = np.unique(np.linspace(1, sensitivity, CELLS + 1).astype(np.int64))
    decay = 1 / scale
    top = 1 / (1 + math.exp(-decay))
    # Σ_{a ≤ j < b} (1-r) r^j / (1+r) = (r^a - r^b) / (1+r), and the same for Q with j -> Δ - j.
    a, b = edges[:-1].astype(np.float64), edges[1:].astype(np.float64)
    inner_p = np.exp(-a * decay) * -np.expm1(-(b - a) * decay) * top
    mirrored_a, mirrored_b = sensitivity - b + 1, sensitivity - a + 1
    inner_q = np.exp(-mirrored_a * decay) * -np.expm1(-(mirrored_b - mirrored_a) * decay) * top
    ends = (sensitivity - 2 * a) * decay, (sensitivity - 2 * (b - 1)) * decay
    return _from_cells(
        inner_p,
        inner_q,
        ends[1],
        ends[0],
        rounded_up(sensitivity / Fraction(scale)),
        top,
        math.exp(-sensitivity * decay) * top,
    )


def _from_cells(
    masses_p: Floats, masses_q: Floats, low: Floats, high: Floats, end: float, top: float, bottom: float
) -> Pair:
    """A symmetric law cut into cells: spread to both ends of each cell above, merged into one atom beneath.

    Spreading keeps the masses of P and of Q, so it is a mean-preserving spread of e^{-L} and can only raise δ;
    merging outcomes is post-processing and can only lower it (THEORY 4.5).
    """
    p = masses_p
    with np.errstate(divide="ignore", invalid="ignore"):  # masses may underflow: then the safe end is taken
        merged = np.log(p) - np.log(masses_q)
    known = np.isfinite(merged)
    ratio = np.where(known, np.clip(merged, low, high), high)
    gap = np.where(high > low, -np.expm1(low - high), 1.0)
    at_high = np.where(high > low, p * -np.expm1(low - ratio) / gap, p)
    losses = np.concatenate([[end, -end], high, low])
    above = Atoms.of(losses, np.concatenate([[top, bottom], at_high, p - at_high]))
    merged = np.concatenate([[end, -end], np.where(known, ratio, low)])
    beneath = Atoms.of(merged, np.concatenate([[top, bottom], p]))
    return Pair(above, above, beneath=Pair.symmetric(beneath))


@lru_cache(maxsize=4096)
def k_ary_pair(p: float, k: int) -> Pair:
    """Truth with probability p, each other of k values with r: losses ±ln(p/r), and 0 of mass (k-2) r (THEORY 2.1)."""
    r = (1 - p) / (k - 1)
    truths, all_answers = p.as_integer_ratio()  # p, as exactly as it is given
    true, other = truths * (k - 1), all_answers - truths
    loss = log_above(max(true, other), min(true, other))
    if loss == 0:
        return Pair.symmetric(Atoms(np.zeros(1), np.zeros(1)))
    if k == 2:
        return Pair.symmetric(response(loss), farthest=True)
    # Both orders are equal: the values p and r trade places.
    low, high = (r, p) if true > other else (p, r)
    return Pair.symmetric(Atoms.of(np.array([-loss, 0.0, loss]), np.array([low, (k - 2) * r, high])), farthest=True)


@lru_cache(maxsize=4096)
def two_point_pair(epsilon: float, delta: float) -> Pair:
    """A black box that is (ε,δ)-DP (THEORY 2.6)."""
    return two_point(epsilon, delta)


@lru_cache(maxsize=256)
def failure_pair(mass: float) -> Pair:
    """(0,δ)-DP of neighbours, where nothing is known of groups: no mechanism of its own is claimed to be there."""

    def grown(size: int) -> Pair:
        raise NoSuchGuarantee(
            "no group property is known for this claim.",
            why="that neighbours are told apart with a small probability does not say what happens two steps away.",
            do="describe the mechanism itself, or give the claim for the group.",
        )

    return replace(two_point(0.0, mass), grown=grown)


@lru_cache(maxsize=256)
def guarantees_pair(points: tuple[tuple[float, float], ...]) -> Pair:
    """Several (ε,δ) at once (THEORY 2.6)."""
    return hull(list(points))


@lru_cache(maxsize=256)
def table_pair(losses: tuple[float, ...], probabilities: tuple[float, ...], infinite_mass: float) -> Pair:
    """A finite law of the user's own, in the order with the person; the other order follows."""
    return pair_of(np.array(losses), np.array(probabilities), infinite_mass)


@lru_cache(maxsize=4096)
def sampled_gaussian_pair(sigma: float, sampling_prob: float, group: int = 1) -> Pair:
    """Poisson-sampled Gaussian noise, for a group of people (THEORY 2.7, 4.8)."""
    if sampling_prob == 1:
        return gaussian_pair(group / sigma)
    return SampledGaussianLoss.pair(sigma, sampling_prob, group)


def at_rate(rate: Fraction, make: Callable[[float], Pair]) -> Pair:
    """Return the pair of a sample at a rate that no float may hold: a person who is seen more often loses no less.

    So above it is rounded up. Beneath it is rounded down where it is near 1, since its distance from 1, which says how
    likely a person is left out, is rounded far more than the rate; and where it is faint, nothing is beneath.
    """
    if rate < FAINT:
        return _over(make(FAINT), lambda: two_point_pair(0.0, 0.0))
    most = rounded_up(rate)
    if Fraction(most) == rate or rate < NEAR_ONE:
        return make(most)
    least = -rounded_up(-rate * (1 - SAMPLED_AGAIN))
    return _over(make(most), lambda: make(least))


def _over(above: Pair, make: Callable[[], Pair]) -> Pair:
    """Return a pair with another one beneath, made no sooner than its own laws are."""

    def over(pair: Pair) -> Pair:
        beneath = make()
        return replace(pair, beneath=beneath.beneath or beneath)

    if isinstance(above, LaterPair):
        assert above.renyi is not None
        return LaterPair(above.renyi, lambda: over(above.made))
    return over(above)


def sampled_pair(pair: Pair, q: float) -> Pair:
    """Poisson sampling at rate q of any pair: (1-q)Q + qP against Q, and back (THEORY 2.7)."""
    if q == 1:
        return pair
    if isinstance(pair, LaterPair) and pair.renyi and isinstance(pair.renyi.forward, SampledCurve):  # twice
        curve = pair.renyi.forward
        return at_rate(Fraction(q) * Fraction(curve.q), lambda rate: sampled_pair(curve.pair, rate))
    if isinstance(pair.forward, GaussianLoss):
        return sampled_gaussian_pair(1 / pair.forward.m, q)
    if isinstance(pair.forward, DiscreteGaussianLoss):
        return SampledDiscreteLoss.pair(pair.forward.scale, pair.forward.sensitivity, q)
    if isinstance(pair.forward, SampledGaussianLoss) and pair.forward.steps == 1:
        sigma, inside = pair.forward.sigma, Fraction(pair.forward.sampling_prob)
        return at_rate(Fraction(q) * inside, lambda rate: sampled_gaussian_pair(sigma, rate))
    if isinstance(pair.forward, SampledDiscreteLoss):
        inner = pair.forward
        rate = Fraction(q) * Fraction(inner.q)
        return at_rate(rate, lambda rate: SampledDiscreteLoss.pair(inner.scale, inner.sensitivity, rate))
    if isinstance(pair.forward, IntervalLoss) and pair.forward.e0 > MOST_CELL_LOSS:
        pure, none = two_point_pair(pair.forward.e0, 0.0), two_point_pair(0.0, 0.0)
        pair = Pair(pure.forward, pure.forward, pair.beneath or none)
    return LaterPair(SampledCurve.of(pair, q), lambda: _sampled_laws(pair, q))


def _sampled_laws(pair: Pair, q: float) -> Pair:
    """Make the laws of both orders, and of what lies beneath; a law on an interval is cut into cells first."""
    beneath = None if pair.beneath is None else _attained(sampled_pair(pair.beneath, q))
    if not isinstance(pair.forward, IntervalLoss):
        above = _sampled_atoms(pair, q)
        return Pair(above.forward, above.backward, beneath or above.beneath)
    cells = _cells_of_interval(pair.forward)
    assert cells.beneath is not None
    above, alone = _sampled_atoms(cells, q), _attained(sampled_pair(cells.beneath, q))
    attains = pair.attains
    return Pair(
        above.forward,
        above.backward,
        beneath or alone,
        alone=alone,
        attains=None if attains is None else lambda share: _attained(sampled_pair(attains(share), q)),
    )


def _attained(pair: Pair) -> Pair:
    """What lies beneath a pair: itself, unless that only dominates."""
    return pair.beneath or pair


def _sampled_atoms(pair: Pair, q: float) -> Pair:
    """Mix the atoms of Q with those of P. P's share where Q has none is infinite loss, of mass q times it."""
    forward, backward = pair.forward, pair.backward
    assert isinstance(forward, Atoms)
    assert isinstance(backward, Atoms)
    log_q = forward.logs + forward.log_finite - forward.losses
    only_q = backward.infinite_mass  # where P has nothing, the mixture has (1-q) Q
    masses = np.append(only_q, np.exp(np.minimum(log_q, 0.0)))
    if abs(float(np.sum(masses)) - 1) > LOST:  # then only the largest loss says what holds
        end, fails = max(forward.largest, backward.largest, 0.0), max(forward.infinite_mass, only_q)
        lost = _sampled_atoms(two_point(end, fails), q)
        return Pair(lost.forward, lost.backward, beneath=two_point_pair(0.0, 0.0))
    moved = log_ratios(forward.losses, q)
    losses = np.append(math.log1p(-q), moved)
    mixed = np.append((1 - q) * only_q, np.exp(log_q + moved))
    uneven = bool(forward.infinite_mass)
    return Pair(
        Atoms.of(losses, mixed, share_of(q, forward.infinite_mass), uneven),
        Atoms.of(-losses[::-1], masses[::-1], 0.0, uneven),
    )


def batch_pair(pair: Pair, q: float) -> Pair:
    """A batch without replacement, the share q, of a symmetric pair of atoms, under replace-one (THEORY 2.8).

    For ε ≥ 0 both orders have the profile of the remove order above: its losses over 0, and their mirror images.
    """
    removed = _sampled_atoms(pair, q).forward
    assert isinstance(removed, Atoms)
    over = removed.losses > 0
    losses, masses = removed.losses[over], np.exp(removed.logs[over] + removed.log_finite)
    losses[-1:] = sampled_above(pair.forward.largest, q)
    images = masses * np.exp(-losses)
    left = max(1 - removed.infinite_mass - math.fsum(masses) - math.fsum(images), 0.0)  # where nothing is lost
    law = Atoms.of(
        np.concatenate([-losses[::-1], [0.0], losses]),
        np.concatenate([images[::-1], [left], masses]),
        removed.infinite_mass,
        bool(removed.infinite_mass),
    )
    return Pair.symmetric(law)


def _cells_of_interval(loss: IntervalLoss) -> Pair:
    """Cut A e^{l/2} on [-e0, e0] into cells of equal width, with their exact masses under P and Q."""
    edges = np.linspace(-loss.e0, loss.e0, CELLS + 1)
    p, q = loss.masses(edges), loss.masses(-edges[::-1])[::-1]
    return _from_cells(p, q, edges[:-1], edges[1:], loss.e0, loss.top, loss.bottom)
