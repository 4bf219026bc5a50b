"""Maximally divergent pairs, and the reduction of any pair to one (seed 000; THEORY 3.7).

A pair whose losses are bounded by ε is replaced by one whose losses are -ε, 0 and ε: every outcome is split into one
that tells as much as is allowed and one that tells nothing. Whoever puts the pieces together again has the first pair,
so it can cost no more than the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..errors import InvalidArgument, NoSuchGuarantee
from ..units import Adjacency
from .curve import Answers
from .events import Guarantees

MOST_EPSILON = 600.0  # e^ε must be a number
ROUNDING = 1e-12  # by how much given probabilities may miss one


@dataclass(frozen=True)
class MaximallyDivergent:
    """A pair of laws whose privacy loss is -ε, 0 or ε in every outcome: an MD pair of seed 000 (THEORY 3.7).

    Of all pairs with this largest loss and this total variation none has a larger δ, at any ε, or Rényi divergence.

    Args:
        epsilon: The largest loss, in [0, 600].
        total_variation: The distance of the two laws, δ(0): at most tanh(ε/2), where no outcome is left with loss 0.
        adjacency: The relation of the neighbours whom the pair stands for.

    Example:
        >>> pair = MaximallyDivergent(epsilon=1.0, total_variation=0.3)
        >>> round(pair.expected_loss, 4), round(float(pair.event.delta(epsilon=0.5)), 4)
        (0.3, 0.1867)
    """

    epsilon: float
    total_variation: float
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        epsilon = _validate.real("epsilon", self.epsilon, 0, MOST_EPSILON)
        most = math.tanh(epsilon / 2)
        variation = _validate.real("total_variation", self.total_variation, 0, most * (1 + ROUNDING))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "total_variation", min(variation, most))

    @classmethod
    def antipodal(cls, epsilon: float) -> MaximallyDivergent:
        """Return the pair without an outcome of loss 0: randomized response, the worst of all at this ε (THEORY 3.1).

        Its mean loss ε tanh(ε/2) is the tight bound of seed 000, which ε(e^ε - 1)/2 is to leading order.

        Example:
            >>> round(MaximallyDivergent.antipodal(1.0).expected_loss, 6)
            0.462117
        """
        epsilon = _validate.real("epsilon", epsilon, 0, MOST_EPSILON)
        return cls(epsilon, math.tanh(epsilon / 2))

    @classmethod
    def of_event(cls, event: Answers) -> MaximallyDivergent:
        """Return what an event of bounded loss is reduced to: the same largest loss, and the same δ(0) (THEORY 3.7).

        Raises:
            NoSuchGuarantee: The loss is unbounded, or infinite with some probability.

        Example:
            >>> from sitr.accounting import Laplace
            >>> laplace = Laplace(noise_multiplier=1.0)
            >>> pair = MaximallyDivergent.of_event(laplace)
            >>> round(laplace.expected_loss(), 4), round(pair.expected_loss, 4)
            (0.3679, 0.3935)
        """
        if not isinstance(event, Answers):
            raise InvalidArgument(f"event={_validate.shown(event)} is not an event.", do="Pass one, such as PureDP(1).")
        epsilon = float(event.epsilon(delta=0).upper)
        return cls(epsilon, min(event.delta(epsilon=0).upper, math.tanh(epsilon / 2)), event.adjacency)

    @classmethod
    def of_outcomes(cls, p: ArrayLike, q: ArrayLike) -> MaximallyDivergent:
        """Return what a pair of laws on finitely many outcomes is reduced to (THEORY 3.7); `split` says how.

        Args:
            p: The probabilities of the outcomes with the person.
            q: And without.

        Raises:
            NoSuchGuarantee: An outcome has a probability of 0 on one side alone: its loss is infinite.

        Example:
            >>> round(MaximallyDivergent.of_outcomes([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]).expected_loss, 6)
            0.040547
        """
        with_person, without = _law("p", p), _law("q", q)
        losses = _losses(with_person, without)
        variation = float(np.sum(np.abs(with_person - without))) / 2
        epsilon = float(np.max(np.abs(losses)))
        return cls(epsilon, min(variation, math.tanh(epsilon / 2)))

    @property
    def expected_loss(self) -> float:
        """The mean loss, εv for total variation v: no pair that is reduced to this one has a larger (THEORY 3.7).

        Example:
            >>> MaximallyDivergent(epsilon=2.0, total_variation=0.25).expected_loss
            0.5
        """
        return self.epsilon * self.total_variation

    @property
    def probabilities(self) -> tuple[float, float, float]:
        """P's probabilities of the losses ε, 0 and -ε; Q's are e^-ε, 1 and e^ε times as large (THEORY 3.7).

        Example:
            >>> high, none, low = MaximallyDivergent(epsilon=1.0, total_variation=0.3).probabilities
            >>> round(high, 4), round(none, 4), round(low, 4)
            (0.4746, 0.3508, 0.1746)
        """
        if self.epsilon == 0:
            return 0.0, 1.0, 0.0
        high = self.total_variation / -math.expm1(-self.epsilon)
        low = self.total_variation / math.expm1(self.epsilon)
        return high, max(1 - high - low, 0.0), low

    @property
    def event(self) -> Guarantees:
        """The pair as an event, which answers every question: what is known to be ε-DP and (0, v)-DP (THEORY 2.6).

        Example:
            >>> round(float((MaximallyDivergent(epsilon=0.1, total_variation=0.03).event * 100).epsilon(1e-6)), 4)
            3.6106
        """
        return Guarantees(((0.0, self.total_variation), (self.epsilon, 0.0)), adjacency=self.adjacency)

    def split(self, p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
        """Return the pieces of each outcome: P's masses with loss ε, 0 and -ε, a row for each (THEORY 3.7).

        A row adds up to its p, and with the factors e^-ε, 1 and e^ε of Q to its q.

        Args:
            p: The probabilities of the outcomes with the person.
            q: And without; the losses ln p/q are at most ε in size.

        Example:
            >>> pair = MaximallyDivergent.of_outcomes([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
            >>> pieces = pair.split([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
            >>> pieces.round(3)
            array([[0.3, 0.2, 0. ],
                   [0. , 0.3, 0. ],
                   [0. , 0. , 0.2]])
        """
        with_person, without = _law("p", p), _law("q", q)
        largest = float(np.max(np.abs(_losses(with_person, without))))
        if largest > self.epsilon * (1 + ROUNDING):
            raise InvalidArgument(
                f"an outcome has a loss of {largest:.6g}, and the pair only {self.epsilon:.6g}.",
                do="reduce these outcomes: MaximallyDivergent.of_outcomes(p, q).",
            )
        if self.epsilon == 0:
            return np.stack([0 * with_person, with_person, 0 * with_person], axis=1)
        gap = with_person - without
        high = np.minimum(np.maximum(gap, 0.0) / -math.expm1(-self.epsilon), with_person)
        low = np.minimum(np.maximum(-gap, 0.0) / math.expm1(self.epsilon), with_person)
        return np.stack([high, with_person - high - low, low], axis=1)


def _law(name: str, values: Any) -> NDArray[np.float64]:
    """Check the probabilities of outcomes."""
    masses = np.atleast_1d(_validate.reals(name, values, 0, 1))
    if masses.ndim != 1 or abs(float(np.sum(masses)) - 1) > ROUNDING * masses.size:
        raise InvalidArgument(f"{name} is not a list of probabilities that add up to 1.")
    return masses


def _losses(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln p/q, and 0 where an outcome never comes."""
    if p.size != q.size:
        raise InvalidArgument(f"p has {p.size} outcomes and q {q.size}.", do="Give both probabilities of each outcome.")
    if np.any((p > 0) != (q > 0)):
        raise NoSuchGuarantee(
            "no pair of bounded loss exists: an outcome has a probability of 0 on one side alone.",
            why="seeing it tells with certainty which data it came from (THEORY 1.2).",
            do="leave such outcomes out, and account for their mass as δ.",
        )
    return np.log(p, where=p > 0, out=np.zeros_like(p)) - np.log(q, where=q > 0, out=np.zeros_like(q))
