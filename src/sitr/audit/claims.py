"""What is claimed of a mechanism: a curve, one point of it for reports, and what samples could show against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrik, ndtr, ndtri

from .. import _validate
from ..accounting import ApproximateDP, Curve, Event
from ..errors import InvalidArgument, NoSuchGuarantee
from .bounds import probability_lower, probability_upper

DELTA = 1e-5  # where ε is reported if the loss has no bound and no other δ is asked for
POINTS = 17  # of the profile, to choose events by; the verdict asks the curve itself
LEAST_DELTA = 1e-8  # where the points end, if the loss has no bound: samples see nothing rarer
MOST_FACTOR = 1e3  # of the bugs that are looked for
FARTHEST = 38.0  # standard deviations: the normal law has no doubles beyond
NO_DISTANCE = 1e-9
FOUND = 0.95  # how often, at least, what is said not to escape is found
LUCK = 0.02  # how often another event looks better by luck where a failure is just large enough
STRAY = 1  # outputs of the other input that may lie in the event that is chosen for a failure
SEEN = 5  # outputs of a failure, by which it is learned that there is something to look at
MOST_EPSILON = 600.0  # e^ε is a number

Claimed = Event | Curve | tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A claimed curve, and where on it ε and δ are reported.

    Attributes:
        curve: An event, or a curve.
        epsilon: The claimed ε at
        delta: this δ.

    Example:
        >>> claim = claim_of((1.0, 1e-6), None)
        >>> claim.epsilon, claim.delta, round(claim.power(0.1), 4)
        (1.0, 1e-06, 0.2718)
    """

    curve: Event | Curve
    epsilon: float
    delta: float

    def power(self, q: float) -> float:
        """Return the most that the claim allows an event to have, if the neighbour has it with probability q.

        Privacy: the upper end of the bracket of 1 - tradeoff(q), so that nothing is accused wrongly (THEORY 1.5).
        """
        return float(self.curve.bad_outcome(min(max(q, 0.0), 1.0)).upper)

    def sketch(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return `power` of many q from a few points of the profile: never less, and hardly more."""
        epsilons, deltas = _points(self.curve)
        grown, x, spare = epsilons[:, None], np.atleast_1d(np.asarray(q))[None, :], 1 - deltas[:, None]
        direct = np.min(1 - spare + np.exp(grown) * x, axis=0)
        turned = np.min(1 - np.exp(-grown) * (spare - x), axis=0)  # the same of the complement (THEORY 1.5)
        return np.asarray(np.clip(np.minimum(direct, turned), 0.0, 1.0), dtype=np.float64)

    def factors(self, p_lower: ArrayLike, q_upper: ArrayLike) -> NDArray[np.float64]:
        """Return how far apart events set the inputs, over how far apart the claim allows them to be.

        Distances are those of two normal laws of spread 1 in which the event would have these probabilities,
        Φ^-1(p) - Φ^-1(q). For a Gaussian claim the factor is that on the noise; for others nearly so.

        Privacy: above 1 the claim is broken: then p is more than it allows (THEORY 1.5).

        Example:
            >>> from sitr.accounting import Gaussian
            >>> claim = claim_of(Gaussian(noise_multiplier=2.0), None)
            >>> claim.factors(ndtr([1.0, 0.25, -0.5]), ndtr([0.0, 0.0, -1.0])).round(2).tolist()
            [2.0, 0.5, 1.0]
        """
        p, q = (np.atleast_1d(np.asarray(bound, dtype=np.float64)) for bound in (p_lower, q_upper))
        apart, allowed = _distance(p, q), _distance(self.sketch(q), q)
        beyond = np.where(apart > allowed, MOST_FACTOR, 0.0)  # where the claim allows no distance at all
        found = np.divide(apart, allowed, out=beyond, where=allowed > NO_DISTANCE)
        return np.asarray(np.clip(found, 0.0, MOST_FACTOR), dtype=np.float64)


@lru_cache(maxsize=64)
def smallest_factor(claim: Claim, total: int, error: float) -> float:
    """Return the least factor, as of `Claim.factors`, that `total` samples of each input certify to be above 1.

    They do so with probability `FOUND` at least, if its best event is looked at: both counts are taken as far off as
    half of the rest allows. Infinite where no factor is found.
    """
    q = ndtr(np.linspace(float(ndtri(1 / total)), -float(ndtri(1 / total)), 121))
    apart = _distance(claim.sketch(q), q)
    most = np.minimum(np.ceil(bdtrik((1 + FOUND) / 2, total, q)), total)
    allowed = claim.sketch(probability_upper(most, total, error))

    def certified(factor: float) -> bool:
        power = np.minimum(ndtr(ndtri(q) + factor * apart), 1 - 1e-15)
        least = np.maximum(np.floor(bdtrik((1 - FOUND) / 2, total, power)), 0)
        return bool(np.any(probability_lower(least, total, error) > allowed))

    return _least(certified, 1.0, MOST_FACTOR)


@lru_cache(maxsize=64)
def smallest_failure(claim: Claim, total: int, error: float, *, chosen: int, learned: int) -> float:
    """Return the least probability of giving one input away for certain that is found with probability `FOUND`.

    Args:
        claim: What is claimed.
        total: Samples of each input that certify.
        error: Of each bound.
        chosen: Samples by which the event is chosen: it has to promise there what it is to certify.
        learned: Samples in which it has to be seen `SEEN` times, so that there is an event to choose.
    """
    allowed = claim.sketch(probability_upper(STRAY, total, error))[0]
    least = _least(lambda count: bool(probability_lower(math.floor(count), total, error) > allowed), 1.0, float(total))
    if math.isinf(least):
        return 1.0
    count = math.floor(least)
    steps = ((total, count), (chosen, math.ceil(count * chosen / total)), (learned, SEEN))

    def found(rate: float) -> bool:
        return bool(sum(bdtr(needed - 1, size, rate) for size, needed in steps) <= 1 - FOUND - LUCK)

    return min(_least(found, 1e-12, 1.0), 1.0)


def claim_of(claimed: Any, delta: float | None) -> Claim:
    """Read what the user claims: an event, a curve, or (ε, δ).

    Raises:
        InvalidArgument: It is none of them, or `delta` contradicts the pair.
        NoSuchGuarantee: No ε holds at `delta`.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> claim = claim_of(Gaussian(noise_multiplier=1.0), 1e-6)
        >>> round(claim.epsilon, 4)
        4.8866
    """
    if isinstance(claimed, Event | Curve):
        return _claim_of_curve(claimed, delta)
    if not isinstance(claimed, tuple) or len(claimed) != 2:
        raise InvalidArgument(
            f"claimed={_validate.shown(claimed)} is neither an event nor (epsilon, delta).",
            do="Pass what the mechanism states, such as mechanism.event, or a pair such as (1.0, 1e-6).",
        )
    epsilon = _validate.real("epsilon", claimed[0], 0, MOST_EPSILON)
    own = _validate.real("delta", claimed[1], 0, 1, open_high=True)
    if delta is not None and delta != own:
        raise InvalidArgument(f"delta={delta!r} is not that of claimed={claimed!r}.", do="Leave delta out.")
    return Claim(ApproximateDP(epsilon, own), epsilon, own)


def _claim_of_curve(curve: Event | Curve, delta: float | None) -> Claim:
    if delta is None:
        bounded = _largest(curve)
        if bounded is not None:
            return Claim(curve, bounded, curve.infinite_mass)
        delta = max(DELTA, 2 * curve.infinite_mass)
    delta = _validate.real("delta", delta, 0, 1, open_high=True)
    epsilon = float(curve.epsilon(delta).upper)
    if math.isinf(epsilon):
        raise NoSuchGuarantee(
            f"the claim has no ε at delta={delta:g}: its loss is infinite with probability {curve.infinite_mass:.3g}.",
            do="Pass a larger delta, or none.",
        )
    return Claim(curve, epsilon, delta)


def _largest(curve: Event | Curve) -> float | None:
    """The largest finite loss, or None where there is no largest."""
    try:
        return curve.pure(delta_part=True)
    except NoSuchGuarantee:
        return None


@lru_cache(maxsize=64)
def _points(curve: Event | Curve) -> tuple[NDArray[Any], NDArray[Any]]:
    """A few points (ε, δ) of the profile, δ rounded up."""
    top = _largest(curve)
    if top is None:
        top = float(curve.epsilon(max(LEAST_DELTA, 2 * curve.infinite_mass)).upper)
    epsilons = np.linspace(0.0, min(top, MOST_EPSILON), POINTS if top > 0 else 1)
    return epsilons, np.asarray(curve.delta(epsilons).upper)


def _distance(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ^-1(p) - Φ^-1(q), with 0 and 1 as far out as doubles go."""
    ends = (np.clip(ndtri(value), -FARTHEST, FARTHEST) for value in (p, q))
    return np.asarray(next(ends) - next(ends), dtype=np.float64)


def _least(holds: Any, low: float, high: float) -> float:
    """The least value from which on `holds`, on a logarithmic scale; infinite where it does not hold at `high`."""
    if not holds(high):
        return math.inf
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
