"""What sampling and groups make of the parts of an event (THEORY 2.7, 4.8)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..errors import NoSuchGuarantee
from .engines.delta import Finite, Found, Total
from .engines.lattice import AtomSum, enumerated
from .engines.line import Line, choose_grid
from .engines.mix import Mix, log_kappa, saddle_tilt
from .engines.ways import Purse, attempt
from .losses import pairs
from .losses.atoms import Atoms, hull
from .losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from .losses.interval import IntervalLoss
from .losses.law import Floats, LaterPair, Pair, rounded_up, sampled_twice
from .losses.merged import merged_pair
from .losses.sampled import SampledGaussianLoss
from .renyi import Claim, implied_pair
from .sampled_mix import SampledMix

POINTS = 400  # where a composed profile is sampled before it is thinned
BLOCKS = 20  # of neighbouring points, each with one line
WORK = 2e8  # multiplications for all of them, in both orders, at most
GOAL = 1e-5  # the relative error of δ at such a point that is aimed at
MOST_GROUP = 200  # members up to which a sampled group's mixture is computed exactly
MOST_KINKS = 1000
MOST_SCALE = 1e5  # of a discrete Gaussian that is summed point by point
MOST_EPSILON = 600.0  # of a hull, whose points are at e^ε
FAINT = 1e-12  # a Gaussian that moves less attains nothing that could be told
TINY = 1e-280  # δ at which a sampled profile of unbounded loss ends; charged in δ, and no loss of the mechanism's

Parts = tuple[tuple[Pair | Claim, int], ...]


def sampled_part(parts: Parts, q: float) -> Pair:
    """Return the pair of all parts run together on one Poisson sample."""
    known = [(part, n) for part, n in parts if isinstance(part, Pair)]
    claims = [(part, n) for part, n in parts if isinstance(part, Claim)]
    if not claims and len(known) == 1 and known[0][1] == 1:
        curve = known[0][0].renyi.forward if known[0][0].renyi else None
        if isinstance(curve, SampledMix):  # a sample of a sample
            return sampled_part(curve.parts, sampled_twice(q, curve.q))
        if not _is_too_fine(known[0][0]):
            return pairs.sampled_pair(known[0][0], q)
    if not claims and all(_is_gaussian(pair) for pair, _ in known):
        mix = Mix.of((pair.forward, n) for pair, n in known)
        return pairs.sampled_pair(pairs.gaussian_pair(math.sqrt(mix.m2)), q)
    return LaterPair(_curves(parts, q), lambda: _laws(known, claims, q))


def _is_gaussian(pair: Pair) -> bool:
    return not isinstance(pair, LaterPair) and isinstance(pair.forward, GaussianLoss)


def _curves(parts: Parts, q: float) -> Pair:
    """Return the Rényi curves of both orders of all parts run together on one Poisson sample."""
    forward, backward = _composed(parts)
    # A claim says nothing of the orders of the mechanism that satisfies it.
    equal = all(isinstance(part, Pair) and _curve(part).is_symmetric for part, _ in parts)
    return Pair(
        SampledMix(parts, forward, backward, q, True),
        SampledMix(parts, forward, backward, q, False),
        leads=equal and not forward.infinite_mass,
    )


@lru_cache(maxsize=256)  # one for all rates, which a calibration may look for: what is kept of it serves them all
def _composed(parts: Parts) -> tuple[Mix, Mix]:
    """Return the Rényi curves of both orders before sampling."""
    curves = [(_curve(part), n) for part, n in parts]
    forward, backward = (Mix.of((getattr(c, order), n) for c, n in curves) for order in ("forward", "backward"))
    return forward, backward


def _curve(part: Pair | Claim) -> Pair:
    """What is known of a part at once: its laws, or curves where these would have to be made first."""
    if isinstance(part, Claim):
        return Pair.symmetric(part)
    return part.renyi if isinstance(part, LaterPair) and part.renyi else part


def _laws(known: list[tuple[Pair, int]], claims: list[tuple[Claim, int]], q: float) -> Pair:
    """Make the laws of all parts run together on one Poisson sample, and of what they dominate."""
    above = _profile_pair((*known, *([(implied_pair(tuple(claims)), 1)] if claims else [])))
    beneath = pairs.sampled_pair(_attained(tuple(known), tuple(claims)), q)
    sampled = pairs.sampled_pair(above, q)
    return Pair(sampled.forward, sampled.backward, beneath.beneath or beneath)


def _is_too_fine(pair: Pair) -> bool:
    """Whether a discrete Gaussian has more points than are summed one by one."""
    loss = None if isinstance(pair, LaterPair) else pair.forward
    return isinstance(loss, DiscreteGaussianLoss) and loss.scale > MOST_SCALE


@lru_cache(maxsize=256)  # it does not depend on the rate, which a calibration may look for
def _profile_pair(parts: tuple[tuple[Pair, int], ...]) -> Pair:
    """Return a pair that dominates the composition in both orders: the hull of its certified profile."""
    mixes = [Mix.of((p.forward, n) for p, n in parts)]
    if not all(p.is_symmetric for p, _ in parts):
        mixes.append(Mix.of((p.backward, n) for p, n in parts))
    infinite_mass = max(mix.infinite_mass for mix in mixes)
    if infinite_mass >= 1 or max(mix.largest for mix in mixes) <= 0:  # then δ(0) is all infinite mass
        return pairs.two_point_pair(0.0, max(mix.failure.upper for mix in mixes))
    # Given that it is finite the loss may well be negative: E L is at least the log of that condition's probability.
    mean = max(mix.mean - math.log1p(-mix.infinite_mass) for mix in mixes)
    spread = math.sqrt(2 * max(mean, 0.0))
    high = min(max(mix.largest for mix in mixes), max(mean + 40 * spread, 1e-280), 600.0)
    if high < 1e-280:
        return pairs.two_point_pair(high, max(mix.failure.upper for mix in mixes))
    core = min(high, mean + 8 * spread)  # where most of any moment lies
    rows = (
        np.linspace(0, core, POINTS),
        np.linspace(core, high, POINTS // 4),
        np.geomspace(core * 1e-4, core, POINTS // 8),
    )
    epsilons = np.unique(np.concatenate(rows))
    unbounded = any(math.isinf(mix.largest) for mix in mixes)
    least = TINY if unbounded else 0.0
    share = WORK / BLOCKS / len(mixes)
    deltas = np.max([_profile_above(mix, epsilons, high / 20, share) for mix in mixes], axis=0)
    return hull([(float(e), max(float(d) * (1 + 1e-9), least)) for e, d in zip(epsilons, deltas, strict=True)])


@np.errstate(all="ignore")
def _profile_above(mix: Mix, epsilons: Floats, typical: float, share: float) -> list[Total]:
    """Bound δ at each ε from above, to about GOAL."""
    few = enumerated(mix)
    if few is not None:
        atoms = AtomSum(*few)
        bounds = np.array([atoms.upper(float(e)) for e in epsilons])
    else:
        blocks = [_block_above(mix, block, typical, share) for block in np.array_split(epsilons, BLOCKS)]
        bounds = np.where(epsilons < mix.largest, np.concatenate(blocks), 0.0)
    finite = (Found(Finite(0.0), Finite(bound), "profile") for bound in bounds)
    return [mix.failure.total(found).upper for found in finite]


def _block_above(mix: Mix, epsilons: Floats, typical: float, share: float) -> Floats:
    """Bound δ at neighbouring ε by one tilt: Chernoff's bound, and a line that is smoothed more than one for an answer.

    The sum on a line is an upper bound at every ε, wherever it was tuned (decision 0003).
    """
    middle = float(epsilons[epsilons.size // 2])
    c = min(saddle_tilt(mix, middle), mix.tilt_limit)
    logs = float(mix.log_mgf(c)) + mix.log_mgf_error(c) + float(log_kappa(c)) - c * epsilons
    bounds = np.exp(np.minimum(logs, 0.0))
    near = float(logs[epsilons.size // 2])  # about ln δ, under 0 at a saddle: only sets how fine the line is
    at = max(middle, typical)
    line = attempt(lambda: Line(mix, choose_grid(mix, c, at, near, GOAL, most_work=share)), Purse(2 * share))
    if line is None:
        return bounds
    return np.fmin(bounds, [line.upper(float(e)) for e in epsilons])  # what is no number proves nothing


@lru_cache(maxsize=256)  # as above
def _attained(known: tuple[tuple[Pair, int], ...], claims: tuple[tuple[Claim, int], ...]) -> Pair:
    """Return what the composition dominates: its outcomes merged, or one component alone, which is post-processing."""
    parts = [(pair.beneath or pair, n) for pair, n in known if not _is_too_fine(pair)]
    parts += [(pairs.gaussian_pair(claim.attained), n) for claim, n in claims if claim.attained > FAINT]
    parts += [(pairs.two_point_pair(0.0, claim.infinite_mass), n) for claim, n in claims if claim.infinite_mass]
    merged = merged_pair(parts)
    single = [pair for pair, _ in parts] + ([] if merged is None else [merged])
    if not single:
        return pairs.two_point_pair(0.0, 0.0)
    return max(single, key=lambda pair: (pair.forward.infinite_mass, pair.forward.mean()))


def group_part(part: Pair | Claim, size: int) -> Pair | Claim:
    """Return what `part` is for a group of `size` people."""
    if size == 1:
        return part
    if isinstance(part, Claim):
        if part.group is None:
            raise NoSuchGuarantee(
                "no group property is known for this claim.",
                why="an approximate or bare Rényi curve does not say what happens two steps away (THEORY 4.8).",
                do="describe the mechanism itself, or give the claim for the group.",
            )
        return part.group(size)
    loss = part.forward
    if isinstance(loss, GaussianLoss):
        return pairs.gaussian_pair(size * loss.m)
    if isinstance(loss, DiscreteGaussianLoss):
        return pairs.discrete_gaussian_pair(loss.scale, size * loss.sensitivity)
    if isinstance(loss, IntervalLoss):
        grown = rounded_up(size * Fraction(loss.e0))
        return (pairs.laplace_pair if loss.top else pairs.exponential_pair)(grown)
    if isinstance(loss, SampledGaussianLoss):
        return _sampled_group(loss, size)
    if part.grown is not None:
        return part.grown(size)
    if not isinstance(loss, Atoms):
        raise NoSuchGuarantee(
            "no group property is computed for this event.",
            why="a sampled discrete law for several people is another mixture, which is not summed here.",
            do="bound it by the unsampled mechanism, which can only cost more.",
        )
    return _group_by_profile(part, size)


def _sampled_group(loss: SampledGaussianLoss, size: int) -> Pair:
    members = loss.steps * size
    if members > MOST_GROUP:
        raise NoSuchGuarantee(
            f"a sampled group of {members} people is not computed.",
            why=f"its mixture has a term for each member; {MOST_GROUP} is the most.",
            do="bound it by the unsampled mechanism, which can only cost more.",
        )
    return pairs.sampled_gaussian_pair(loss.sigma, loss.sampling_prob, members)


def _group_by_profile(part: Pair, size: int) -> Pair:
    """(ε, δ(ε)) becomes (sε, δ(ε) (e^{sε} - 1)/(e^ε - 1)) at every kink of the profile; their hull dominates."""
    orders = [order for order in (part.forward, part.backward) if isinstance(order, Atoms)]
    kinks = np.unique(np.concatenate([[0.0], *(order.losses for order in orders)]))
    kinks = kinks[kinks >= 0]
    if kinks.size > MOST_KINKS:
        kinks = kinks[np.unique(np.linspace(0, kinks.size - 1, MOST_KINKS).astype(int))]
    deltas = np.max([_whole_profile(order, kinks) for order in orders], axis=0)
    # ln (e^{sε} - 1)/(e^ε - 1), which is ln s at ε = 0
    log_growth = (size - 1) * kinks + np.log(_ratio(size * kinks)) - np.log(_ratio(kinks)) + math.log(size)
    with np.errstate(divide="ignore"):
        grown = np.minimum(np.exp(np.minimum(np.log(deltas) + log_growth, 0.0)) * (1 + 1e-12), 1.0)
    reached = [(float(size * e), float(d)) for e, d in zip(kinks, grown, strict=True)]
    points = [(e, d) for e, d in reached if d < 1 and e <= MOST_EPSILON]
    beneath = part.beneath or part
    if not points:  # e^ε is no number any more: the last kink alone, stated where it holds
        end, left = reached[-1]
        black_box = pairs.two_point_pair(end, left)
        return Pair(black_box.forward, black_box.backward, beneath)
    return Pair(*(2 * (hull(points).forward,)), beneath=beneath)


def _whole_profile(order: Atoms, epsilon: Floats) -> Floats:
    return order.infinite_mass + (1 - order.infinite_mass) * order.profile(epsilon)


def _ratio(x: Floats) -> Floats:
    """(1 - e^-x)/x, continuous at 0."""
    return np.where(x > 0, -np.expm1(-x) / np.where(x > 0, x, 1.0), 1.0)
