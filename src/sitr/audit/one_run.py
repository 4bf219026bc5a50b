"""The audit of one training run, from the scores of canaries that were put in by coin flips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import binom

from .. import _validate
from ..display import rounded_down, rounded_up, scientific
from ..errors import InvalidArgument
from .bounds import probability_lower
from .claims import MOST_EPSILON, Claimed, claim_of
from .report import VIOLATION

MOST_CANARIES = 10**7
TIES = 0  # equal scores are taken in a fixed shuffled order, in case the canaries were sorted by what they are
GRID = 64  # where ε is tried before the search narrows
SPAN = 40  # standard deviations beyond which a binomial law has no mass that matters


@dataclass(frozen=True)
class OneRunReport:
    """What the canaries of one run certify.

    Attributes:
        epsilon_lower: The true ε at `delta` is at least this, with the stated confidence.
        delta: As asked, or as claimed.
        claimed_epsilon: What was claimed at that δ; None if nothing was.
        violated: Whether the claim is certainly broken.
        canaries: How many were put in by coin flips.
        guesses: How many of them were guessed, the others passed over.
        correct: How many guesses were right.
        confidence: How often, at least, an honest claim is not accused.
        escapes_epsilon: A true ε under this would have escaped the claim more often than not, or, without a claim, the
            most that so many guesses can certify if all are right.

    Example:
        >>> report = OneRunReport(1.2, 0.0, 1.0, True, 1000, 200, 170, 0.95, 1.1)
        >>> report.verdict, report.epsilon_lower
        ('violation certified', 1.2)
    """

    epsilon_lower: float
    delta: float
    claimed_epsilon: float | None
    violated: bool
    canaries: int
    guesses: int
    correct: int
    confidence: float
    escapes_epsilon: float

    @property
    def verdict(self) -> str:
        """Say "violation certified", or that none was found and what would have escaped; never that all is well."""
        if self.violated:
            return VIOLATION
        if self.claimed_epsilon is None:
            most = rounded_down(self.escapes_epsilon)
            return f"nothing was claimed ({self.canaries} canaries can show ε = {most} at most)"
        if math.isinf(self.escapes_epsilon):
            return f"no violation found, and {self.guesses} guesses are too few to show one"
        least = rounded_up(self.escapes_epsilon, 4)
        return f"no violation found with {self.canaries} canaries (a true ε smaller than {least} would escape)"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it.

        Example:
            >>> OneRunReport(1.2, 0.0, 1.0, True, 1000, 200, 170, 0.95, 1.1).to_dict()["correct"]
            170
        """
        return {**vars(self), "verdict": self.verdict}

    def __str__(self) -> str:
        claimed = "" if self.claimed_epsilon is None else f", claimed {rounded_up(self.claimed_epsilon)}"
        return (
            f"{self.verdict}\n"
            f"certified  ε ≥ {rounded_down(self.epsilon_lower)} at δ = {scientific(self.delta)}{claimed}, "
            f"with confidence {100 * self.confidence:g} %: {self.correct} of {self.guesses} guesses were right"
        )


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    claimed: Claimed | None = None,
    delta: float | None = None,
    guesses: int | Sequence[int] | None = None,
    confidence: float = 0.95,
) -> OneRunReport:
    """Certify a lower bound on ε from one run, by canaries (Steinke, Nasr, Jagielski 2023).

    Each of m canaries was put into the data or left out by its own fair coin, and afterwards got a score from what was
    released. The highest scores are guessed to be in, the lowest out, the rest is passed over.

    Args:
        scores: A number for each canary, high where it seems to be in; made without looking at `included`.
        included: Whether each canary was in, each by a fair coin of its own.
        claimed: What the run states: an event, a curve or (ε, δ); may be left out.
        delta: Where ε is asked for; left out, that of the claim, or 0.
        guesses: How many canaries to guess, half of them in and half out, fixed before the scores are seen; half of all
            if left out. Of several numbers the best is taken, and the error is shared among them.
        confidence: How often, at least, the bound holds.

    Raises:
        InvalidArgument: The arrays are not one number and one truth value for each canary, or a number is out of range.

    Privacy: under ε-DP the right guesses are dominated by r coins of bias e^ε/(1+e^ε), an exact binomial test; under
    (ε,δ)-DP the chance of v or more grows by at most 2mδ max_i P[v - i ≤ W < v]/i (their Theorem 5.2). Neighbours
    differ in one canary, in or out (THEORY 1.1).

    Example:
        >>> chances = np.random.default_rng(3)
        >>> included = chances.random(10_000) < 0.5
        >>> scores = included + chances.laplace(size=10_000) / 2  # ε = 2 for each canary
        >>> report = audit_one_run(scores, included, claimed=(1.0, 0.0), guesses=2_000)
        >>> report.verdict, report.correct, round(report.epsilon_lower, 2)
        ('violation certified', 1762, 1.89)
        >>> round(audit_one_run(scores, included, delta=1e-6, guesses=2_000).epsilon_lower, 2)
        1.89
    """
    values, truth = _arrays(scores, included)
    tries = _guesses(guesses, len(values))
    error = (1 - _validate.real("confidence", confidence, 0, 1, open_low=True, open_high=True)) / len(tries)
    claim = None if claimed is None else claim_of(claimed, delta)
    at = claim.delta if claim else _validate.real("delta", 0.0 if delta is None else delta, 0, 1, open_high=True)
    order = _ranked(values)
    found = [(epsilon_lower_one_run(len(values), r, c, at, error), r, c) for r, c in _tried(truth[order], tries)]
    epsilon, count, correct = max(found)
    return OneRunReport(
        epsilon_lower=epsilon,
        delta=at,
        claimed_epsilon=claim.epsilon if claim else None,
        violated=claim is not None and epsilon > claim.epsilon,
        canaries=len(values),
        guesses=count,
        correct=correct,
        confidence=confidence,
        escapes_epsilon=_escapes(len(values), count, at, error, claim.epsilon if claim else None),
    )


def epsilon_lower_one_run(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """Return the least ε that so many right guesses leave possible, wrong with probability `error` at most.

    Every smaller ε is refuted, so the bound exceeds the true ε only if the test of that ε errs.

    Example:
        >>> round(epsilon_lower_one_run(1000, 500, 400, 0.0, 0.05), 4)
        1.1986
        >>> round(epsilon_lower_one_run(1000, 500, 400, 1e-5, 0.05), 4)
        1.198
    """
    if delta == 0:
        accuracy = float(probability_lower(correct, guesses, error))
        return max(math.log(accuracy / (1 - accuracy)), 0.0) if accuracy > 0 else 0.0

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, correct, epsilon, delta) <= error

    # For 2mδ ≤ 1 the p-value grows with ε (each term of the maximum does); else the grid stops at the first crossing.
    top = epsilon_lower_one_run(canaries, guesses, correct, 0.0, error)
    steps = np.linspace(0.0, top, 2 if 2 * canaries * delta <= 1 else GRID)
    low, high = 0.0, 0.0
    for high in steps.tolist():
        if not refuted(high):
            break
        low = high
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the chance of so many right guesses, or more, under (ε,δ)-DP (Steinke, Nasr, Jagielski 2023, Theorem 5.2).

    Example:
        >>> round(p_value(1000, 100, 80, 1.0, 0.0), 5), round(p_value(1000, 100, 80, 1.0, 1e-4), 5)
        (0.07156, 0.08608)
    """
    bias = float(expit(min(epsilon, MOST_EPSILON)))
    beyond = float(binom.sf(correct - 1, guesses, bias))
    if delta == 0 or correct == 0:
        return min(beyond, 1.0)
    # Averages of masses under `correct`: none is larger than that which ends where the law has no mass left.
    spread = math.sqrt(guesses * bias * (1 - bias)) + 1
    reach = min(correct, math.ceil(correct - guesses * bias + SPAN * spread)) if correct > guesses * bias else correct
    back = np.arange(1, max(reach, 1) + 1)
    under = np.cumsum(binom.pmf(correct - back, guesses, bias))
    alpha = float(np.max(under / back)) * (1 + 1e-12)
    return min(beyond + 2 * canaries * delta * alpha, 1.0)


def _arrays(scores: ArrayLike, included: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, truth = np.asarray(scores), np.asarray(included)
    if values.ndim != 1 or values.shape != truth.shape or truth.dtype != np.bool_ or values.dtype.kind not in "biuf":
        raise InvalidArgument(
            "scores and included are not one number and one truth value for each canary.",
            do="Pass two arrays of one length, the second of booleans.",
        )
    values = values.astype(np.float64)
    if np.isnan(values).any():
        raise InvalidArgument("scores has entries that are no numbers.", do="Score every canary.")
    _validate.integer("canaries", len(values), 2, MOST_CANARIES)
    return values, truth


def _guesses(guesses: int | Sequence[int] | None, canaries: int) -> list[int]:
    if guesses is None:
        return [max(canaries // 2, 1)]
    tries = list(guesses) if isinstance(guesses, Iterable) else [guesses]
    if not tries:
        raise InvalidArgument("guesses is an empty list.", do="Pass how many canaries to guess.")
    return [_validate.integer("guesses", count, 1, canaries) for count in tries]


def _ranked(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The canaries from the highest score down; equal scores in an order that does not depend on theirs."""
    shuffled = np.random.default_rng(TIES).permutation(len(values))
    return shuffled[np.argsort(-values[shuffled], kind="stable")]


def _tried(ranked: NDArray[np.bool_], tries: list[int]) -> list[tuple[int, int]]:
    """For each number of guesses, how many of them are right: the upper half in, the lower half out."""
    found = []
    for count in tries:
        top, bottom = (count + 1) // 2, count // 2
        right = np.count_nonzero(ranked[:top]) + np.count_nonzero(~ranked[len(ranked) - bottom :])
        found.append((count, int(right)))
    return found


def _escapes(canaries: int, guesses: int, delta: float, error: float, claimed: float | None) -> float:
    """The bias, as an ε, at which the mean number of right guesses just refutes the claim; or the most there is.

    Where only all right ones refute it, the bias at which all are right half of the time: 2^(-1/guesses).
    """
    if claimed is None:
        return epsilon_lower_one_run(canaries, guesses, guesses, delta, error)
    low, high = 0, guesses + 1  # `high` right guesses refute the claim, or are more than there can be
    while high - low > 1:
        middle = (low + high) // 2
        refutes = epsilon_lower_one_run(canaries, guesses, middle, delta, error) > claimed
        low, high = (low, middle) if refutes else (middle, high)
    if high == guesses:
        return -math.log(math.expm1(math.log(2) / guesses))
    return math.inf if high > guesses else math.log(high / (guesses - high))
