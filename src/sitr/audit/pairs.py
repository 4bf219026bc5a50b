"""The audit of a mechanism on a pair of neighbouring inputs: learn a score, choose one event, certify it afresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from ..errors import InvalidArgument
from .bounds import delta_lower, epsilon_lower, probability_lower, probability_upper
from .claims import Claim, Claimed, claim_of
from .report import AuditReport, Witness
from .samples import Numbers, Reader, Sample, draw
from .scores import Score, learn

LEAST_SAMPLES = 100
MOST_SAMPLES = 10**9
MOST_THRESHOLDS = 256
STRICTER = 1000  # choosing allows so much less error than certifying: luck in a tail is not chosen


def audit(
    mechanism: Callable[[Any], Any] | None,
    d0: Any,
    d1: Any,
    *,
    claimed: Claimed,
    samples: int = 100_000,
    confidence: float = 0.95,
    delta: float | None = None,
    batch: Callable[[Any, int], Sequence[Any]] | None = None,
) -> AuditReport:
    """Attack a mechanism with samples from two neighbouring inputs, and certify what it gives away at least.

    A quarter of the samples teaches scores, a quarter chooses one event, the threshold of one score in one order of the
    pair, by what it certifies against the claimed curve, and a half, never looked at before, certifies that event.

    Args:
        mechanism: From an input to one output: a number, a string, None, a tuple, an array, or a `Release` of one.
            Each call has to be an independent run.
        d0: An input, as the mechanism takes it.
        d1: A neighbour of it, under the adjacency of the claim.
        claimed: What the mechanism states: an event, a curve, or (ε, δ).
        samples: Outputs to draw for each input.
        confidence: How often, at least, an honest claim is not accused.
        delta: Where ε is reported. Left out: that of the pair, the infinite-loss mass where the loss is bounded beyond
            it, else 1e-5.
        batch: From an input and n to n independent outputs, for speed; `mechanism` is then not called and may be None.

    Raises:
        InvalidArgument: An argument is of the wrong kind, or `batch` returns another number of outputs.

    Privacy: if the claim is true of this pair, "violation certified" is said with probability at most 1 - confidence:
    p ≥ `p_lower` and q ≤ `q_upper` hold by Clopper and Pearson, half of the error each, and a p above 1 - f(q) breaks
    the trade-off curve f (THEORY 1.5). ε and δ follow from the same two bounds (THEORY 1.3). Nothing is said of other
    pairs, and a bug may always be smaller than so many samples can see.

    Example:
        >>> chances = np.random.default_rng(7)
        >>> def answer(truth, n):  # randomized response that tells the truth with probability 0.8, not 0.75
        ...     return np.where(chances.random(n) < 0.8, truth, 1 - truth)
        >>> report = audit(None, 0, 1, claimed=(np.log(3), 0.0), samples=40_000, batch=answer)
        >>> report.verdict, round(report.epsilon_lower, 2), report.witness.words
        ('violation certified', 1.36, 'output ≤ 0')
        >>> round(report.escapes_factor, 2)
        1.02
    """
    samples = _validate.integer("samples", samples, LEAST_SAMPLES, MOST_SAMPLES)
    error = (1 - _validate.real("confidence", confidence, 0, 1, open_low=True, open_high=True)) / 2
    _check_callables(mechanism, batch)
    claim = claim_of(claimed, delta)
    reader: Reader | None = None
    read: list[tuple[Sample, Sample]] = []
    for count in (samples // 4, samples // 4, samples - 2 * (samples // 4)):
        raw = [draw(mechanism, batch, data, count) for data in (d0, d1)]
        reader = reader or Reader.of(*raw)
        read.append((reader.read(raw[0]), reader.read(raw[1])))
    chosen = choose(learn(*read[0]), *read[1], claim, error / STRICTER)
    return _certified(chosen, *read[2], claim, error, samples, confidence)


class Chosen(NamedTuple):
    """An event: the score is at least, or at most, a threshold.

    `factor` is how far it sets the inputs apart over what is claimed, `excess` how far its probability lies above what
    is allowed; `order` is 0 where it is likelier with the first input.
    """

    factor: float
    excess: float
    order: int
    above: bool
    threshold: float
    score: Score

    def count(self, sample: Sample) -> int:
        """Return how many outputs are in the event."""
        values = self.score.values(sample)
        return int(np.count_nonzero(values >= self.threshold if self.above else values <= self.threshold))


def choose(scores: list[Score], first: Sample, second: Sample, claim: Claim, error: float) -> Chosen:
    """Return the event that sets the inputs apart by the largest certified factor of what is claimed."""
    found = [best for score in scores for best in _best_of_score(score, first, second, claim, error)]
    return max(found, key=lambda chosen: (chosen.factor, chosen.excess))


def _best_of_score(score: Score, first: Sample, second: Sample, claim: Claim, error: float) -> list[Chosen]:
    """The best threshold of a score for each order and each direction."""
    values = [np.sort(score.values(sample)) for sample in (first, second)]
    thresholds = _thresholds(np.concatenate(values))
    found = []
    for above in (True, False):
        counts = [_counts(ordered, thresholds, above) for ordered in values]
        for order in (0, 1):
            likelier, other = counts[order], counts[1 - order]
            p = probability_lower(likelier, len(values[order]), error)
            q = probability_upper(other, len(values[1 - order]), error)
            factors, excess = claim.factors(p, q), p - claim.sketch(q)
            best = int(np.lexsort((excess, factors))[-1])
            marks = float(factors[best]), float(excess[best])
            found.append(Chosen(*marks, order, above, float(thresholds[best]), score))
    return found


def _thresholds(values: Numbers) -> Numbers:
    """All distinct values, or quantiles, closer together in the tails."""
    distinct = np.unique(values)
    if len(distinct) <= MOST_THRESHOLDS:
        return distinct
    tail = np.geomspace(3 / len(values), 0.01, MOST_THRESHOLDS // 8)
    levels = np.concatenate([tail, np.linspace(0.01, 0.99, 3 * MOST_THRESHOLDS // 4), 1 - tail])
    return np.unique(np.quantile(values, levels, method="nearest"))


def _counts(ordered: Numbers, thresholds: Numbers, above: bool) -> Any:
    if above:
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


def _certified(
    chosen: Chosen, first: Sample, second: Sample, claim: Claim, error: float, samples: int, confidence: float
) -> AuditReport:
    """What fresh samples say of the one event."""
    likelier, other = (first, second) if chosen.order == 0 else (second, first)
    p = float(probability_lower(chosen.count(likelier), likelier.size, error))
    q = float(probability_upper(chosen.count(other), other.size, error))
    allowed = claim.power(q)
    words = chosen.score.words(chosen.threshold, chosen.above)
    return AuditReport(
        claimed=claim.curve,
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_lower=epsilon_lower(p, q, claim.delta),
        delta_lower=delta_lower(p, q, claim.epsilon),
        factor_lower=float(claim.factors(p, q)[0]),
        violated=p > allowed,
        witness=Witness(words, chosen.score.name, chosen.order, p, q, allowed),
        samples=samples,
        confidence=confidence,
        escapes_factor=claim.smallest_factor(likelier.size, error),
        escapes_failure=claim.smallest_failure(likelier.size, error),
    )


def _check_callables(mechanism: Any, batch: Any) -> None:
    if (batch is None and not callable(mechanism)) or (batch is not None and not callable(batch)):
        name, value = ("mechanism", mechanism) if batch is None else ("batch", batch)
        raise InvalidArgument(
            f"{name} cannot be called: {type(value).__name__}.",
            do="Pass a function from an input to one output, or batch=, from an input and n to n outputs.",
        )
