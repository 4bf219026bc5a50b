"""Frozen descriptions of what was done. Their meaning never changes, because ledgers keep them.

An event says what was released and with which public parameters; everything that can be said of its privacy loss is
its curve (`Answers`). Compatibility promise: no event type and no parameter is ever removed or changes meaning;
docs/decisions/0005 has the rules, `schema.py` the JSON form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

from .. import _validate
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency, join
from .curve import Answers
from .losses import pairs
from .losses.law import Pair, inverse_above
from .parts import Parts, sampled_part
from .renyi import Claim, chord_claim, concentrated_claim, curve_claim, zcdp_claim

SMALLEST, LARGEST = 1e-4, 1e12  # noise multipliers and scales that are accepted
MOST_EPSILON = 1e4
MOST_TABLED = 600.0  # an ε or a loss in a table of the user's: e^ε must be a number
MOST_COUNT = 10**9


@dataclass(frozen=True, repr=False)
class Event(Answers):
    """What was done. `event * k` and `a + b` compose (THEORY 4.5); every event answers for its privacy loss.

    Args:
        adjacency: The relation that its sensitivity was measured in; `None` joins with anything.

    Example:
        >>> event = Gaussian(noise_multiplier=10) * 100 + Laplace(noise_multiplier=20) * 30
        >>> round(float(event.epsilon(delta=1e-6)), 4)
        5.0871
    """

    type: ClassVar[str] = ""
    adjacency: Adjacency | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if type(self) is Event:
            raise InvalidArgument("an Event by itself describes nothing.", do="Make one, such as Gaussian(10).")
        if self.adjacency is not None:
            _validate.choice("adjacency", self.adjacency, ADJACENCIES)
        self._check()

    def _check(self) -> None:
        """Validate the parameters and bring them to their plain types."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def parameters(self) -> dict[str, Any]:
        """Return the arguments that make this event; the attribute `at_x` is the argument `x`, as x is a question.

        Example:
            >>> ApproximateDP(epsilon=0.5, delta=1e-6).parameters()
            {'epsilon': 0.5, 'delta': 1e-06, 'adjacency': None}
        """
        ordered = sorted(fields(self), key=lambda f: f.name == "adjacency")
        return {f.name.removeprefix("at_"): getattr(self, f.name) for f in ordered}

    @property
    def claimed(self) -> bool:
        """Whether the curve rests on the user's word: a table of their own mechanism (THEORY 1.2, 2.6).

        Example:
            >>> table = PrivacyProfile([(0.5, 1e-3)])
            >>> table.claimed, Gaussian(noise_multiplier=10).claimed, float(table.delta(epsilon=0.5))
            (True, False, 0.001)
        """
        return False

    @property
    def parts(self) -> Parts:
        """The dominating pairs, or claims, that this event is made of, with their counts (THEORY 1.2, 2.6)."""
        return ((self._part, 1),)

    @cached_property
    def _part(self) -> Pair | Claim:
        return self._describe()

    def _describe(self) -> Pair | Claim:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # what was computed is not what was done

    def __add__(self, other: object) -> Event:
        return compose(self, other) if isinstance(other, Event) else NotImplemented

    def __mul__(self, count: object) -> Event:
        count = _validate.integer("count", count, 1, MOST_COUNT)
        return self if count == 1 else Composed(((self, count),))

    __rmul__ = __mul__

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a JSON-ready dictionary with its schema version.

        Example:
            >>> PureDP(epsilon=0.5).to_dict()
            {'schema_version': 1, 'type': 'pure_dp', 'epsilon': 0.5}
        """
        from .schema import to_dict

        return to_dict(self)

    def to_json(self) -> str:
        """Return the event as canonical JSON; `Event.from_json` reads it back.

        Example:
            >>> Laplace(noise_multiplier=20).to_json()
            '{"noise_multiplier":20.0,"schema_version":1,"type":"laplace"}'
        """
        from .schema import to_json

        return to_json(self)

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Event:
        """Read an event from the dictionary of `to_dict`.

        Example:
            >>> Event.from_dict({"schema_version": 1, "type": "pure_dp", "epsilon": 0.5})
            PureDP(epsilon=0.5)
        """
        from .schema import from_dict

        return from_dict(record)

    @staticmethod
    def from_json(text: str) -> Event:
        """Read an event from the JSON of `to_json`.

        Example:
            >>> Event.from_json('{"schema_version": 1, "type": "gaussian", "noise_multiplier": 2}')
            Gaussian(noise_multiplier=2.0)
        """
        from .schema import from_json

        return from_json(text)

    def __repr__(self) -> str:
        defaults = {f.name.removeprefix("at_"): f.default for f in fields(self)}
        shown = [f"{name}={value!r}" for name, value in self.parameters().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Gaussian(Event):
    """Gaussian noise; `noise_multiplier` is its standard deviation over the ℓ2 sensitivity.

    Privacy: exact; the loss is N(m²/2, m²), m = 1/noise_multiplier (THEORY 2.3).

    Example:
        >>> round(float(Gaussian(noise_multiplier=4.224679).epsilon(delta=1e-6)), 6)
        1.0
    """

    type = "gaussian"
    noise_multiplier: float

    def _check(self) -> None:
        self._set(noise_multiplier=_noise(self.noise_multiplier))

    def _describe(self) -> Pair:
        return pairs.gaussian_pair(1 / self.noise_multiplier)


@dataclass(frozen=True, repr=False)
class Laplace(Event):
    """Laplace noise; `noise_multiplier` is its scale over the ℓ1 sensitivity.

    Privacy: exact, and pure with ε = 1/noise_multiplier (THEORY 2.2).

    Example:
        >>> Laplace(noise_multiplier=2).pure()
        0.5
    """

    type = "laplace"
    noise_multiplier: float

    def _check(self) -> None:
        self._set(noise_multiplier=_noise(self.noise_multiplier))

    def _describe(self) -> Pair:
        return pairs.laplace_pair(inverse_above(self.noise_multiplier))


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Event):
    """Integer noise with P(x) ∝ e^{-x²/2 scale²} on one integer that a person moves by at most `sensitivity`.

    Privacy: the discrete curve itself, which the continuous one under-reports (THEORY 2.4). One dimension only:
    for vectors use `ZeroConcentrated(rho=l2_sensitivity**2 / (2 * scale**2))`, which holds in any.

    Example:
        >>> round(float(DiscreteGaussian(scale=1.0).delta(epsilon=1.0)), 4)
        0.1414
    """

    type = "discrete_gaussian"
    scale: float
    sensitivity: int = 1

    def _check(self) -> None:
        self._set(
            scale=_validate.real("scale", self.scale, 1e-2, LARGEST),
            sensitivity=_validate.integer("sensitivity", self.sensitivity, 1, 10**15),
        )
        _validate.real("scale / sensitivity", self.scale / self.sensitivity, SMALLEST, LARGEST)

    def _describe(self) -> Pair:
        return pairs.discrete_gaussian_pair(self.scale, self.sensitivity)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Event):
    """Integer noise with P(x) ∝ e^{-|x|/scale} on integers that a person moves by at most `sensitivity` in ℓ1.

    Privacy: the discrete curve itself; pure with ε = sensitivity/scale (THEORY 2.4).

    Example:
        >>> round(float(DiscreteLaplace(scale=1.0).delta(epsilon=0.0)), 4)
        0.4621
    """

    type = "discrete_laplace"
    scale: float
    sensitivity: int = 1

    def _check(self) -> None:
        self._set(
            scale=_validate.real("scale", self.scale, SMALLEST, LARGEST),
            sensitivity=_validate.integer("sensitivity", self.sensitivity, 1, 10**15),
        )
        _validate.real("scale / sensitivity", self.scale / self.sensitivity, SMALLEST, LARGEST)

    def _describe(self) -> Pair:
        return pairs.discrete_laplace_pair(self.scale, self.sensitivity)


@dataclass(frozen=True, repr=False)
class RandomizedResponse(Event):
    """The true one of `k` values with probability `p`, each other one with (1-p)/(k-1) (seed 002, Prop. 5).

    Privacy: exact; pure with ε = |ln(p/r)|, r = (1-p)/(k-1) (THEORY 2.1). Reports of people are `replace_one`.

    Example:
        >>> round(float(RandomizedResponse(p=0.75).epsilon(delta=0)), 6)
        1.098612
    """

    type = "randomized_response"
    p: float
    k: int = 2

    def _check(self) -> None:
        self._set(
            p=_validate.real("p", self.p, 0, 1, open_low=True, open_high=True),
            k=_validate.integer("k", self.k, 2, 10**9),
        )

    def _describe(self) -> Pair:
        return pairs.k_ary_pair(self.p, self.k)


@dataclass(frozen=True, repr=False, init=False)
class Exponential(Event):
    """The exponential mechanism at `epsilon`: a selection of bounded range ε.

    Privacy: the exact profile of bounded range (THEORY 2.5), which lies under that of pure ε. Permute-and-flip is
    *not* of bounded range: use `PureDP`.

    Example:
        >>> round(float(Exponential(epsilon=1.0).delta(epsilon=0.5)), 6)
        0.077405
    """

    type = "exponential"
    at_epsilon: float

    def __init__(self, epsilon: float, *, adjacency: Adjacency | None = None) -> None:
        self._set(at_epsilon=_validate.real("epsilon", epsilon, 1e-9, MOST_EPSILON), adjacency=adjacency)
        self.__post_init__()

    def _describe(self) -> Pair:
        return pairs.exponential_pair(self.at_epsilon)


@dataclass(frozen=True, repr=False)
class PoissonSampled(Event):
    """`event` run on a sample that includes each person with probability `sampling_prob`, independently.

    Privacy: exact in both orders, under `add_remove` only (THEORY 2.7). Sampling without replacement and shuffling
    are other mechanisms, with other curves, and may not claim this one.

    Example:
        >>> event = PoissonSampled(Laplace(noise_multiplier=1.0), sampling_prob=0.01)
        >>> round(float(event.epsilon(delta=0)), 6)
        0.017037
    """

    type = "poisson_sampled"
    event: Event
    sampling_prob: float

    def _check(self) -> None:
        if not isinstance(self.event, Event):
            raise InvalidArgument(
                f"event={_validate.shown(self.event)} is not an event.", do="Pass one, such as Gaussian(1.1)."
            )
        q = _validate.real("sampling_prob", self.sampling_prob, 0, 1, open_low=True)
        _validate.real("sampling_prob", q, 1e-15, 1)
        self._set(sampling_prob=q, adjacency=join(join(self.adjacency, self.event.adjacency), "add_remove"))

    @property
    def claimed(self) -> bool:
        """Whether the sampled event rests on the user's word."""
        return self.event.claimed

    @property
    def parts(self) -> Parts:
        """One part, of all that is run on the sample; where everyone is sampled, the parts of the event."""
        return self.event.parts if self.sampling_prob == 1 else super().parts

    def _describe(self) -> Pair:
        return sampled_part(self.event.parts, self.sampling_prob)


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
    noise, which is one.

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

    def _describe(self) -> Claim:
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


@dataclass(frozen=True, repr=False)
class Composed(Event):
    """Several events, each with a count, released one after the other on the same data.

    Privacy: the losses add, in both orders (THEORY 4.5); the parameters are fixed in advance, the queries need not
    be. For parameters chosen after seeing answers, enforce with a filter (THEORY 5).

    Example:
        >>> (Laplace(noise_multiplier=2) * 3).parts[0][1]
        3
    """

    type = "composed"
    events: tuple[tuple[Event, int], ...]

    def _check(self) -> None:
        merged: dict[Event, int] = {}
        adjacency = self.adjacency
        for event, count in _counted(self.events):
            if not isinstance(event, Event):
                raise InvalidArgument(f"{_validate.shown(event)} is not an event.", do="Compose events only.")
            adjacency = join(adjacency, event.adjacency)
            for inner, times in event.events if isinstance(event, Composed) else ((event, 1),):
                total = merged.get(inner, 0) + times * _validate.integer("count", count, 1, MOST_COUNT)
                merged[inner] = _validate.integer("count", total, 1, MOST_COUNT)
        if not merged:
            raise InvalidArgument("nothing to compose.", do="Pass at least one event.")
        self._set(events=tuple(merged.items()), adjacency=adjacency)

    @property
    def claimed(self) -> bool:
        """Whether any of the events rests on the user's word."""
        return any(event.claimed for event, _ in self.events)

    @property
    def parts(self) -> Parts:
        """The parts of all events, with their counts."""
        return tuple((part, n * count) for event, count in self.events for part, n in event.parts)

    def __repr__(self) -> str:
        shown = (repr(event) if count == 1 else f"{event!r} * {count}" for event, count in self.events)
        return " + ".join(shown)


def compose(*events: Event) -> Event:
    """Return the composition of all events (THEORY 4.5); equal ones are counted together.

    Raises:
        IncompatibleAdjacency: They speak of different neighbours.

    Privacy: that of `Composed`: the losses add, in both orders, for parameters fixed in advance.

    Example:
        >>> event = compose(Laplace(noise_multiplier=2), Laplace(noise_multiplier=2), Gaussian(noise_multiplier=5))
        >>> event
        Laplace(noise_multiplier=2.0) * 2 + Gaussian(noise_multiplier=5.0)
        >>> round(float(event.epsilon(delta=1e-6)), 4)
        1.7724
    """
    return events[0] if len(events) == 1 and isinstance(events[0], Event) else Composed(tuple((e, 1) for e in events))


def _counted(events: Any) -> list[tuple[Any, Any]]:
    """Check an iterable of events with their counts, as far as its shape goes."""
    try:
        return [(event, count) for event, count in events]
    except (TypeError, ValueError):
        raise InvalidArgument("events is not a list of (event, count).", do="Compose with `*` and `+`.") from None


def _noise(value: Any) -> float:
    return _validate.real("noise_multiplier", value, SMALLEST, LARGEST)


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
