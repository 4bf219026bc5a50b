"""Randomized response: each person reports for themselves, and the truth about all can still be estimated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..accounting import RandomizedResponse
from ..errors import InvalidArgument
from ..release import Release
from .mechanism import Mechanism
from .randomness import Source, source_of
from .samplers.draws import bernoulli, uniform_integers
from .samplers.intervals import exp_interval
from .samplers.table import Integers
from .selection import distinct

MOST_CATEGORIES = 10**6
BITS = 256


class Estimate(NamedTuple):
    """How many people have each answer, estimated from reports.

    Attributes:
        counts: Unbiased estimates, which may be negative or exceed the number of people.
        standard_errors: Of each.
    """

    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]


class Responses(Mechanism):
    """Randomized response; made by `randomized_response`.

    Attributes:
        p: The probability of the true answer.
        k: How many answers there are.
        categories: The answers, or None where they are 0, 1, … k - 1.
    """

    error95 = None
    event: RandomizedResponse

    def __init__(self, event: RandomizedResponse, categories: tuple[Any, ...] | None) -> None:
        self.event, self.p, self.k, self.categories = event, event.p, event.k, categories
        self._places = None if categories is None else {name: place for place, name in enumerate(categories)}

    def __repr__(self) -> str:
        return f"Responses({self.event!r})"

    def release_many(
        self, answers: Any, *, unsafe_seed: int | None = None, unsafe_without_noise: bool = False
    ) -> Release:
        """Return the reports of many people, one answer of each, in their order.

        Privacy: as for one: neighbours differ in one person's answer, and so in the law of one report (THEORY 2.1).

        Example:
            >>> reports = randomized_response(p=0.75).release_many([0, 1, 1], unsafe_seed=1)
            >>> len(reports.value), reports.private
            (3, False)
        """
        source = None if unsafe_without_noise else source_of(unsafe_seed)
        reported = self._reported(self._indexes(answers), source)
        value = reported if self.categories is None else [self.categories[place] for place in reported.tolist()]
        return Release(value, None, self.event, private=source is not None and source.private)

    def estimate(self, counts: Any) -> Estimate:
        """Return how many people have each answer, from how many reported each, in the order of the answers.

        Unbiased: (Y_j - n r)/(p - r), r = (1 - p)/(k - 1), with variance [n_j p(1-p) + (n - n_j) r(1-r)]/(p - r)²
        (THEORY 2.1), in which the estimate, moved into [0, n], stands for n_j.

        Privacy: reports are public, and what is computed of them costs nothing.

        Example:
            >>> found = randomized_response(p=0.75).estimate([600, 400])
            >>> found.counts.round(6).tolist(), found.standard_errors.round(2).tolist()
            ([700.0, 300.0], [27.39, 27.39])
        """
        reported = _validate.reals("counts", counts, 0, 2**53)
        if reported.shape != (self.k,):
            raise InvalidArgument(f"counts are not {self.k} numbers.", do="Pass how many reported each answer.")
        rest = (1 - Fraction(self.p)) / (self.k - 1)
        apart = float(Fraction(self.p) - rest)
        if apart == 0:
            raise InvalidArgument(f"p={self.p} is 1/k, and reports say nothing.", do="Choose another p.")
        other, total = float(rest), math.fsum(reported)
        found = (reported - total * other) / apart
        own = np.clip(found, 0, total)
        variance = own * self.p * (1 - self.p) + (total - own) * other * (1 - other)
        return Estimate(found, np.sqrt(variance) / abs(apart))

    def _checked(self, value: Any) -> Integers:
        return self._indexes([value])

    def _drawn(self, value: Integers, source: Source | None) -> Any:
        place = int(self._reported(value, source)[0])
        return place if self.categories is None else self.categories[place]

    def _indexes(self, answers: Any) -> Integers:
        """Return the places of answers, or refuse them without showing them."""
        try:
            if self._places is not None:
                return np.array([self._places[answer] for answer in answers], dtype=np.int64)
            array = np.asarray(answers)
            if array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0) and np.all(array < self.k):
                found = array.astype(np.int64)
                if np.all(found >= 0):
                    return found
        except (KeyError, TypeError, ValueError):
            pass
        listed = f"whole numbers from 0 to {self.k - 1}" if self.categories is None else "categories"
        raise InvalidArgument(f"answers are not all {listed}.", do="Pass answers of the declared kind only.")

    def _reported(self, answers: Integers, source: Source | None) -> Integers:
        """Keep an answer, or move it round by 1 to k - 1 places: both are drawn for everyone."""
        if source is None:
            return answers
        kept = bernoulli(Fraction(self.p), answers.size, source)
        moves = 1 + uniform_integers(self.k - 1, answers.size, source)
        return np.where(kept == 1, answers, (answers + moves) % self.k)


def randomized_response(
    *, p: float | None = None, epsilon: float | None = None, k: int = 2, categories: Iterable[Any] | None = None
) -> Responses:
    """Return randomized response: the true answer with probability p, else one of the k - 1 others, all alike.

    Args:
        p: The probability of the true answer; or
        epsilon: the pure ε that a report costs: p is e^ε/(e^ε + k - 1), rounded down.
        k: How many answers there are: 0, 1, … k - 1.
        categories: The answers themselves, public; then k is their number.

    Privacy: pure ε-DP with ε = |ln(p/r)|, r = (1 - p)/(k - 1), under `replace_one`: each person reports, and their
    number is public (seed 002, Prop. 5; THEORY 2.1). The coin has exactly the probability p, as a fraction.

    Example:
        >>> mechanism = randomized_response(epsilon=1.0, categories=["yes", "no", "perhaps"])
        >>> round(mechanism.p, 6), mechanism.release("no").value in mechanism.categories
        (0.576117, True)
        >>> round(mechanism.event.pure(), 9)
        1.0
    """
    made = None if categories is None else distinct("categories", categories, MOST_CATEGORIES)
    count = _validate.integer("k", k, 2, MOST_CATEGORIES) if made is None else len(made)
    if made is not None and (count < 2 or k not in (2, count)):
        raise InvalidArgument(f"{count} categories are not k={_validate.shown(k)}, 2 or more.", do="Leave out k.")
    if (p is None) == (epsilon is None):
        raise InvalidArgument(f"p={p}, epsilon={epsilon} is not one target.", do="Pass exactly one of them.")
    if p is None:
        p = _truth(Fraction(_validate.real("epsilon", epsilon, 1e-9, 1e4)), count)
    return Responses(RandomizedResponse(p, count, adjacency="replace_one"), made)


def _truth(epsilon: Fraction, k: int) -> float:
    """The largest float at most 1/(1 + (k-1) e^{-ε})."""
    exact = 1 / (1 + (k - 1) * Fraction(exp_interval(epsilon, BITS)[1], 2**BITS))
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0)
