"""Events of mechanisms whose privacy loss is known: noise, responses, selection, and what is run on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ... import _validate
from ...errors import InvalidArgument
from ...units import Adjacency, join
from ..losses import pairs
from ..losses.law import Pair
from ..parts import Parts, sampled_part
from .event import Event

SMALLEST, LARGEST = 1e-4, 1e12  # noise multipliers and scales that are accepted
MOST_EPSILON = 1e4


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
        return pairs.laplace_pair(1 / Fraction(self.noise_multiplier))


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
    def releases(self) -> int:
        """How many there are on the sample."""
        return self.event.releases

    @property
    def parts(self) -> Parts:
        """One part, of all that is run on the sample; where everyone is sampled, the parts of the event."""
        return self.event.parts if self.sampling_prob == 1 else super().parts

    def _describe(self) -> Pair:
        return sampled_part(self.event.parts, self.sampling_prob)


def _noise(value: Any) -> float:
    return _validate.real("noise_multiplier", value, SMALLEST, LARGEST)
