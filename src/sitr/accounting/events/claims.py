"""Events of which only a guarantee is known, by a theorem of their own or by a table of the user's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ... import _validate
from ...errors import InvalidArgument
from ...units import Adjacency, join
from ..losses import pairs
from ..losses.law import Pair
from ..renyi import Claim, chord_claim, concentrated_claim, curve_claim, zcdp_claim
from .event import Event
from .mechanisms import MOST_EPSILON

MOST_TABLED = 600.0  # an ε or a loss in a table of the user's: e^ε must be a number


@dataclass(frozen=True, repr=False, init=False)
class PureDP(Event):
    """Anything that is known to be ε-DP: charged as randomized response, the worst of them (THEORY 2.6).

    Privacy: holds for every ε-DP mechanism, and exact for the worst one, under the adjacency of the claim.

    Example:
        >>> round(float((PureDP(epsilon=0.1) * 100).epsilon(delta=1e-6)), 4)
        4.7746
    """

    type = "pure_dp"
    at_epsilon: float

    def __init__(self, epsilon: float, *, adjacency: Adjacency | None = None) -> None:
        self._set(at_epsilon=_validate.real("epsilon", epsilon, 0, MOST_EPSILON), adjacency=adjacency)
        self.__post_init__()

    def _describe(self) -> Pair:
        return pairs.two_point_pair(self.at_epsilon, 0.0)


@dataclass(frozen=True, repr=False, init=False)
class ApproximateDP(Event):
    """Anything that is known to be (ε,δ)-DP and by nothing else (Kairouz–Oh–Viswanath; THEORY 2.6).

    Privacy: holds for every such mechanism, and exact for the worst one, whose loss is infinite with probability δ.

    Example:
        >>> round(float((ApproximateDP(epsilon=0.1, delta=1e-8) * 100).epsilon(delta=2e-6)), 4)
        4.7746
    """

    type = "approximate_dp"
    at_epsilon: float
    at_delta: float

    def __init__(self, epsilon: float, delta: float, *, adjacency: Adjacency | None = None) -> None:
        self._set(
            at_epsilon=_validate.real("epsilon", epsilon, 0, MOST_EPSILON),
            at_delta=_validate.real("delta", delta, 0, 1, open_high=True),
            adjacency=adjacency,
        )
        self.__post_init__()

    def _describe(self) -> Pair:
        return pairs.two_point_pair(self.at_epsilon, self.at_delta)


@dataclass(frozen=True, repr=False)
class Guarantees(Event):
    """Something known to be (ε_i, δ_i)-DP for several pairs at once, which seed 003 says nobody composes.

    Args:
        points: (ε, δ) with ε in [0, 600], as e^ε must be a number.

    Privacy: the worst mechanism that satisfies them all, in both orders (THEORY 2.6).

    Example:
        >>> several = Guarantees([(0.5, 1e-3), (1.0, 1e-6)]) * 10
        >>> single = ApproximateDP(epsilon=1.0, delta=1e-6) * 10
        >>> round(float(several.epsilon(delta=1e-4)), 4), round(float(single.epsilon(delta=1e-4)), 4)
        (5.2119, 9.9979)
    """

    type = "guarantees"
    points: tuple[tuple[float, float], ...]

    def _check(self) -> None:
        self._set(points=_pairs_of_numbers("points", self.points, (0, MOST_TABLED), (0, 1), "(epsilon, delta)"))

    def _describe(self) -> Pair:
        return pairs.guarantees_pair(self.points)


@dataclass(frozen=True, repr=False)
class Concentrated(Event):
    """(μ,τ)-concentrated DP: the mean loss is at most μ, and around it the loss is subgaussian with τ (seed 000).

    Privacy: the upper end holds for every such mechanism, by D_α ≤ min(μ, τ²/2) + (α-1)τ²/2 and the best order
    (THEORY 3.2, 3.3); the lower end is Gaussian noise, which is one.

    Example:
        >>> round(float(Concentrated(mu=0.5, tau=1.0).epsilon(delta=1e-6)), 2)
        5.22
    """

    type = "concentrated"
    mu: float
    tau: float

    def _check(self) -> None:
        self._set(mu=_validate.real("mu", self.mu, 0, 1e30), tau=_validate.real("tau", self.tau, 0, 1e15))

    def _describe(self) -> Claim:
        return concentrated_claim(self.mu, self.tau)


@dataclass(frozen=True, repr=False, init=False)
class ZeroConcentrated(Event):
    """(ξ,ρ)-zero-concentrated DP: D_α ≤ ξ + ρα for all α > 1, outside an event of mass `delta` (THEORY 1.4).

    Privacy: the upper end holds for every such mechanism, by the best order (THEORY 3.2); the lower end is Gaussian
    noise, which is one. With ρ = ξ = 0 it is (0,δ)-DP of neighbours alone: where δ > 0 nothing is claimed of groups.

    Example:
        >>> round(float(ZeroConcentrated(rho=0.5).epsilon(delta=1e-6)), 4)
        5.2215
    """

    type = "zero_concentrated"
    rho: float
    xi: float = 0.0
    at_delta: float = 0.0

    def __init__(self, rho: float, xi: float = 0.0, delta: float = 0.0, *, adjacency: Adjacency | None = None) -> None:
        self._set(
            rho=_validate.real("rho", rho, 0, 1e30),
            xi=_validate.real("xi", xi, 0, 1e30),
            at_delta=_validate.real("delta", delta, 0, 1, open_high=True),
            adjacency=adjacency,
        )
        self.__post_init__()

    def _describe(self) -> Pair | Claim:
        if not self.rho and not self.xi and self.at_delta:
            return pairs.failure_pair(self.at_delta)
        return zcdp_claim(self.rho, self.xi, self.at_delta)


@dataclass(frozen=True, repr=False, init=False)
class Renyi(Event):
    """Something known only by its Rényi divergences: a table of (α, ε), or the curve of a named event.

    Args:
        points: (α, ε) with α in [1, ∞]; between them the safe chord is read, past the last nothing is known.
        formula: An event whose Rényi curve is meant, as the moments accountant of seed 004 keeps it.
        delta: The mass outside which the divergences hold.

    Privacy: the divergences are those of both orders; the upper end holds for all that has them, by the best order
    (THEORY 1.4, 3.2). The lower end is Gaussian noise under the table, or the named event.

    Example:
        >>> round(float(Renyi(points=[(2, 0.01), (32, 0.2), (64, 0.5)]).epsilon(delta=1e-6)), 4)
        0.5021
        >>> from sitr.accounting import Gaussian, PoissonSampled
        >>> sgd = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000)
        >>> round(float((Renyi(formula=sgd) * 14062).epsilon(delta=1e-5)), 4)
        2.5965
    """

    type = "renyi"
    points: tuple[tuple[float, float], ...] | None = None
    formula: Event | None = None
    at_delta: float = 0.0

    def __init__(
        self,
        points: Iterable[tuple[float, float]] | None = None,
        formula: Event | None = None,
        delta: float = 0.0,
        *,
        adjacency: Adjacency | None = None,
    ) -> None:
        if (points is None) == (formula is None):
            raise InvalidArgument("a Rényi event takes either points or a formula.", do="Pass exactly one of them.")
        if points is not None:
            points = _pairs_of_numbers("points", points, (1, math.inf), (0, 1e15), "(alpha, epsilon)")
        elif not isinstance(formula, Event):
            raise InvalidArgument(
                f"formula={_validate.shown(formula)} is not an event.", do="Pass one, such as Gaussian(1.1)."
            )
        self._set(
            points=points,
            formula=formula,
            at_delta=_validate.real("delta", delta, 0, 1, open_high=True),
            adjacency=join(adjacency, formula.adjacency if formula is not None else None),
        )
        self.__post_init__()

    @property
    def claimed(self) -> bool:
        """Whether the named formula rests on the user's word."""
        return self.formula is not None and self.formula.claimed

    @property
    def releases(self) -> int:
        """How many there are in the formula."""
        return 1 if self.formula is None else self.formula.releases

    def _describe(self) -> Pair | Claim:
        if self.points is not None and all(math.isinf(alpha) for alpha, _ in self.points):
            return pairs.two_point_pair(min(epsilon for _, epsilon in self.points), self.at_delta)  # pure ε-DP
        if self.points is not None:
            return chord_claim(self.points, self.at_delta)
        assert self.formula is not None
        return curve_claim(self.formula, self.at_delta)


@dataclass(frozen=True, repr=False)
class PrivacyProfile(Event):
    """A mechanism of the user's own, by points (ε, δ(ε)) of its profile; stamped `claimed`.

    Args:
        points: (ε, δ) with ε in [0, 600], as e^ε must be a number.

    Privacy: as good as the claim: the worst mechanism under the chords of the points, in both orders (THEORY 2.6).

    Example:
        >>> event = PrivacyProfile([(0.0, 0.1), (0.5, 1e-3), (1.0, 0.0)])
        >>> event.claimed, round(float(event.delta(epsilon=0.75)), 6)
        (True, 0.000562)
    """

    type = "privacy_profile"
    points: tuple[tuple[float, float], ...]

    def _check(self) -> None:
        self._set(points=_pairs_of_numbers("points", self.points, (0, MOST_TABLED), (0, 1), "(epsilon, delta)"))

    @property
    def claimed(self) -> bool:
        """Always: nothing but the user's word stands behind the table."""
        return True

    def _describe(self) -> Pair:
        return pairs.guarantees_pair(self.points)


@dataclass(frozen=True, repr=False, init=False)
class LossDistribution(Event):
    """A mechanism of the user's own, by its loss values with the person and their probabilities; stamped `claimed`.

    Args:
        losses: Losses ln P/Q in [-600, 600], as e^loss must be a number.
        probabilities: Their probabilities under P; with `infinite_mass` they sum to one.
        infinite_mass: The probability under P of outcomes that Q cannot have.

    Privacy: as good as the claim. The other order follows: Q has e^{-l} times P's mass at loss l, and what is left
    of Q's mass is infinite loss there (THEORY 1.2).

    Example:
        >>> event = LossDistribution(losses=[-1.0, 1.0], probabilities=[0.26894142136999510, 0.7310585786300049])
        >>> event.claimed, round(float(event.delta(epsilon=0)), 4)
        (True, 0.4621)
    """

    type = "loss_distribution"
    losses: tuple[float, ...]
    probabilities: tuple[float, ...]
    at_infinite_mass: float = 0.0

    def __init__(
        self,
        losses: Iterable[float],
        probabilities: Iterable[float],
        infinite_mass: float = 0.0,
        *,
        adjacency: Adjacency | None = None,
    ) -> None:
        self._set(
            losses=_numbers("losses", losses, -MOST_TABLED, MOST_TABLED),
            probabilities=_numbers("probabilities", probabilities, 0, 1),
            at_infinite_mass=_validate.real("infinite_mass", infinite_mass, 0, 1, open_high=True),
            adjacency=adjacency,
        )
        self.__post_init__()

    def _check(self) -> None:
        if len(self.losses) != len(self.probabilities) or not self.losses:
            raise InvalidArgument(
                f"{len(self.losses)} losses and {len(self.probabilities)} probabilities are not one table.",
                do="Give as many probabilities as losses, at least one.",
            )
        total = math.fsum(self.probabilities) + self.at_infinite_mass
        if abs(total - 1) > 1e-12:
            raise InvalidArgument(f"the probabilities sum to {total!r}, not to 1.", do="Normalise them.")
        pairs_of = zip(self.probabilities, self.losses, strict=True)
        other = math.fsum(p * math.exp(-loss) for p, loss in pairs_of)
        if other > 1 + 1e-12:
            raise InvalidArgument(
                f"probabilities * exp(-losses) sum to {other!r}, more than 1.",
                why="that sum is the mass of the other distribution.",
                do="check the sign of the losses: they are ln P/Q, under P.",
            )

    @property
    def claimed(self) -> bool:
        """Always: nothing but the user's word stands behind the table."""
        return True

    def _describe(self) -> Pair:
        return pairs.table_pair(self.losses, self.probabilities, self.at_infinite_mass)


def _numbers(name: str, values: Any, low: float, high: float) -> tuple[float, ...]:
    """Check an iterable of numbers."""
    try:
        rows = list(values)
    except TypeError:
        raise InvalidArgument(f"{name} is not a list of numbers.") from None
    return tuple(_validate.real(name, v, low, high) for v in rows)


def _pairs_of_numbers(
    name: str, value: Any, first: tuple[float, float], second: tuple[float, float], shown: str
) -> tuple[tuple[float, float], ...]:
    """Check an iterable of pairs of numbers, each in its range."""
    left, right = shown.strip("()").split(", ")
    try:
        rows = [tuple(row) for row in value]
    except TypeError:
        raise InvalidArgument(f"{name} is not a list of {shown}.") from None
    if not rows or any(len(row) != 2 for row in rows):
        raise InvalidArgument(f"{name} is not a list of {shown}, with at least one row.")
    return tuple((_validate.real(left, a, *first), _validate.real(right, b, *second)) for a, b in rows)
