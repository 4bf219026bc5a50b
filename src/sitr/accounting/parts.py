"""What sampling and groups make of the parts of an event (THEORY 2.7, 2.8, 4.8)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..errors import NoSuchGuarantee
from .batch_mix import BatchMix
from .engines.closed import closed_form
from .engines.delta import Finite, Found, Total
from .engines.lattice import AtomSum, enumerated
from .engines.line import Line, choose_grid
from .engines.mix import Mix, log_kappa, saddle_tilt
from .engines.ways import Purse, attempt
from .losses import pairs
from .losses.atoms import Atoms, hull
from .losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from .losses.interval import IntervalLoss
from .losses.law import Floats, LaterPair, Pair
from .losses.merged import merged_pair
from .losses.rounding import rounded_up
from .losses.sampled import SampledGaussianLoss
from .losses.sampled_discrete import is_fine
from .renyi import Claim, implied_pair
from .sampled_mix import SampledMix

POINTS = 400  # where a composed profile is sampled before it is thinned
BLOCKS = 20  # of neighbouring points, each with one line
WORK = 2e8  # multiplications for all of them, in both orders, at most
GOAL = 1e-5  # the relative error of δ at such a point that is aimed at
MOST_GROUP = 200  # members up to which a sampled group's mixture is computed exactly
MOST_KINKS = 1000
MOST_SCALE = 1e5  # of a discrete Gaussian that is summed point by point,
MOST_MOVED = 10**5  # and by how many points it is moved
MOST_EPSILON = 600.0  # of a hull, whose points are at e^ε
FAINT = 1e-12  # a Gaussian that moves less attains nothing that could be told
TINY = 1e-280  # δ at which a sampled profile of unbounded loss ends; charged in δ, and no loss of the mechanism's

Parts = tuple[tuple[Pair | Claim, int], ...]


def sampled_part(parts: Parts, q: float) -> Pair:
    """Return the pair of all parts run together on one Poisson sample."""
    known, claims = _known(parts), _claims(parts)
    if not claims and len(known) == 1 and known[0][1] == 1:
        curve = known[0][0].renyi.forward if known[0][0].renyi else None
        if isinstance(curve, SampledMix):  # a sample of a sample
            inside = curve.parts
            return pairs.at_rate(Fraction(q) * Fraction(curve.q), lambda rate: sampled_part(inside, rate))
        if not _has_many_points(known[0][0]):
            return pairs.sampled_pair(known[0][0], q)
    if not claims and all(_is_gaussian(pair) for pair, _ in known):
        mix = Mix.of((pair.forward, n) for pair, n in known)
        return pairs.sampled_pair(pairs.gaussian_pair(math.sqrt(mix.m2)), q)
    return LaterPair(_curves(parts, q), lambda: _laws(parts, q))


def batch_part(parts: Parts, q: float) -> Pair:
    """Return the pair of all parts run together on one batch without replacement, the share q of all people."""
    single = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else None
    if isinstance(single, Pair):
        if single.renyi and isinstance(single.renyi.forward, BatchMix):  # a batch of a batch
            inside = single.renyi.forward.parts
            return pairs.at_rate(Fraction(q) * Fraction(single.renyi.forward.q), lambda rate: batch_part(inside, rate))
        if _are_atoms(single):
            return _batch_of_atoms(single, q)
    orders = [parts] if all(isinstance(part, Claim) or _curve(part).is_symmetric for part, _ in parts) else _both(parts)
    removed = [sampled_part(order, q) for order in orders]
    curve = BatchMix(parts, q, tuple((pair.renyi or pair).forward for pair in removed), _composed(parts))
    return LaterPair(Pair.symmetric(curve), lambda: _batch_laws(parts, q))


def _batch_of_atoms(pair: Pair, q: float) -> Pair:
    law = pairs.batch_pair(pair, q).forward
    curve = None if pair.renyi is None else pairs.batch_pair(_finite(pair), q)
    return Pair(law, law, _sampled_beneath(((pair, 1),), q), curve)


def _are_atoms(pair: Pair) -> bool:
    return not isinstance(pair, LaterPair) and pair.is_symmetric and isinstance(pair.forward, Atoms)


def _finite(pair: Pair) -> Pair:
    """Return the atoms of a pair; where its curve has them without the infinite mass that its law has, those."""
    return pair.renyi if pair.renyi and isinstance(pair.renyi.forward, Atoms) else pair


def _both(parts: Parts) -> list[Parts]:
    """Return the parts in both orders: one who is replaced may be either of the two."""
    swapped = ((Pair(part.backward, part.forward) if isinstance(part, Pair) else part, n) for part, n in parts)
    return [parts, tuple(swapped)]


def _batch_laws(parts: Parts, q: float) -> Pair:
    """Make the laws of all parts run together on one batch, and of what they dominate."""
    law = pairs.batch_pair(_profile_pair(_dominating(parts)), q).forward
    return Pair(law, law, beneath=_sampled_beneath(parts, q))


def _dominating(parts: Parts) -> tuple[tuple[Pair, int], ...]:
    """Return the parts with one pair for all claims."""
    known, claims = _known(parts), _claims(parts)
    return (*known, *([(implied_pair(claims), 1)] if claims else []))


def _sampled_beneath(parts: Parts, q: float) -> Pair:
    """Return what a sample dominates, and a batch too: the person's value is that of all others, or is not."""
    sampled = pairs.sampled_pair(_attained(_known(parts), _claims(parts)), q)
    return sampled.beneath or sampled


def _known(parts: Parts) -> tuple[tuple[Pair, int], ...]:
    return tuple((part, n) for part, n in parts if isinstance(part, Pair))


def _claims(parts: Parts) -> tuple[tuple[Claim, int], ...]:
    return tuple((part, n) for part, n in parts if isinstance(part, Claim))


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
    return part.renyi if isinstance(part, LaterPair) and part.renyi else _finite(part)


def _laws(parts: Parts, q: float) -> Pair:
    """Make the laws of all parts run together on one Poisson sample, and of what they dominate."""
    sampled = pairs.sampled_pair(_profile_pair(_dominating(parts)), q)
    return Pair(sampled.forward, sampled.backward, _sampled_beneath(parts, q))


def _has_many_points(pair: Pair) -> bool:
    """Whether a discrete Gaussian has more points than are summed one by one: around 0, and as far as it is moved."""
    loss = None if isinstance(pair, LaterPair) else pair.forward
    if not isinstance(loss, DiscreteGaussianLoss):
        return False
    far = loss.sensitivity > MOST_MOVED and not is_fine(loss.scale, loss.sensitivity)
    return loss.scale > MOST_SCALE or far


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
    exact = closed_form(mix) if few is None else AtomSum(*few)
    if exact is not None:
        bounds = np.array([exact.upper(float(e)) for e in epsilons])
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
    parts = [(pair.beneath or pair, n) for pair, n in known if not _has_many_points(pair)]
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
        grown = size * loss.bound
        return pairs.laplace_pair(grown) if loss.top else pairs.exponential_pair(rounded_up(grown))
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
    finite = _finite(part)
    orders = [order for order in (finite.forward, finite.backward) if isinstance(order, Atoms)]
    kinks = np.unique(np.concatenate([[0.0], *(order.losses for order in orders)]))
    kinks = kinks[kinks >= 0]
    if kinks.size > MOST_KINKS:
        kinks = kinks[np.unique(np.linspace(0, kinks.size - 1, MOST_KINKS).astype(int))]
    deltas = np.max([_whole_profile(order, kinks) for order in orders], axis=0)
    # ln (e^{sε} - 1)/(e^ε - 1), which is ln s at ε = 0
    log_growth = (size - 1) * kinks + np.log(_ratio(size * kinks)) - np.log(_ratio(kinks)) + math.log(size)
    with np.errstate(divide="ignore"):
        grown = np.minimum(np.exp(np.minimum(np.log(deltas) + log_growth, 0.0)) * (1 + 1e-12), 1.0)
    reached = [(rounded_up(size * Fraction(e)), d) for e, d in zip(kinks.tolist(), grown.tolist(), strict=True)]
    points = [(e, d) for e, d in reached if d < 1 and e <= MOST_EPSILON]
    beneath = part.beneath or part
    if not points:  # e^ε is no number any more: the last kink alone, stated where it holds
        points = reached[-1:]
    law = hull(points).forward
    assert isinstance(law, Atoms)
    law = replace(law, largest_stated=False)
    return Pair(law, law, beneath)


def _whole_profile(order: Atoms, epsilon: Floats) -> Floats:
    return order.infinite_mass + (1 - order.infinite_mass) * order.profile(epsilon)


def _ratio(x: Floats) -> Floats:
    """(1 - e^-x)/x, continuous at 0."""
    return np.where(x > 0, -np.expm1(-x) / np.where(x > 0, x, 1.0), 1.0)
