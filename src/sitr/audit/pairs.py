"""The audit of a mechanism on a pair of neighbouring inputs: learn a score, choose one event, certify it afresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _validate
from ..errors import InvalidArgument
from .bounds import delta_lower, epsilon_lower, probability_lower, probability_upper
from .claims import SEEN, Claim, Claimed, claim_of, smallest_factor, smallest_failure
from .features import Features
from .report import AuditReport, Witness
from .samples import Numbers, Reader, Sample, draw
from .scores import Score, learn

LEAST_SAMPLES = 100
MOST_SAMPLES = 10**9
MOST_THRESHOLDS = 256
STRICTER = 1000  # choosing by what is certain allows so much less error than certifying: luck in a tail is not chosen
RARE = 4  # times the probability of a failure that is to be found: as far rare events are looked through
FINALISTS = 2  # events that are certified at most
LEAST_ERROR, HALVINGS = 1e-30, 16  # where, and how closely, it is looked how unlikely an event is
NEARLY = 2  # times as likely is about as unlikely

Samples = Sequence[Sample]  # of the first input, and of the second


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

    A quarter of the samples teaches scores. A quarter chooses events, each the threshold of one score in one order of
    the pair: that which surely sets the inputs furthest apart, measured by the claimed curve, and a rare one if it
    promises to break the curve. A half, never looked at before, certifies them.

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
    p ≥ `p_lower` and q ≤ `q_upper` hold by Clopper and Pearson, with the error divided among the bounds of all events
    that are certified, and a p above 1 - f(q) breaks the trade-off curve f (THEORY 1.5). ε and δ follow from the same
    two bounds (THEORY 1.3). Nothing is said of other pairs, and a bug may always be smaller than so many samples can
    see.

    Example:
        >>> chances = np.random.default_rng(7)
        >>> def answer(truth, n):  # randomized response that tells the truth with probability 0.8, not 0.75
        ...     return np.where(chances.random(n) < 0.8, truth, 1 - truth)
        >>> report = audit(None, 0, 1, claimed=(np.log(3), 0.0), samples=40_000, batch=answer)
        >>> report.verdict, round(report.epsilon_lower, 2), report.witness.words
        ('violation certified', 1.36, 'output ≤ 0')
        >>> round(report.escapes_factor, 2)
        1.04
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
    features = Features.of(*read[0])
    taught, choosing, certifying = ([features.added(sample) for sample in pair] for pair in read)
    failure = smallest_failure(claim, certifying[0].size, error / FINALISTS, chosen=samples // 4, learned=samples // 4)
    chosen = choose(learn(*taught), taught, choosing, claim, error, RARE * failure)
    return _certified(chosen, certifying, claim, error, samples, confidence, failure)


class Chosen(NamedTuple):
    """An event: the score is at least, or at most, a threshold; `order` is 0 if the first input makes it likelier."""

    order: int
    above: bool
    threshold: float
    score: Score

    def count(self, sample: Sample) -> int:
        """Return how many outputs are in the event."""
        values = self.score.values(sample)
        return int(np.count_nonzero(values >= self.threshold if self.above else values <= self.threshold))


def choose(
    scores: list[Score], taught: Samples, choosing: Samples, claim: Claim, error: float, rare: float
) -> list[Chosen]:
    """Return the events that are worth certifying: one, or two.

    The first surely sets the inputs apart by the largest factor of what is claimed. The second is rare, and of all such
    the least likely under the claim, if it is so unlikely that the claim would be broken, were the samples fresh. A
    failure is too rare to be sure of anything yet; and where luck chose, the first event is certified all the same.

    Args:
        scores: That were learned.
        taught: What they were learned from, which speaks for events of scores that have little to learn.
        choosing: Other outputs, for the first input and for the second.
        claim: What they are measured by.
        error: Of each bound, if one event is certified.
        rare: How likely a rare event is at most.
    """
    cuts = [cut for score in scores for cut in _cuts(score, choosing)]
    *_, surest = max((cut.best(claim, error / STRICTER) for cut in cuts), key=lambda best: best[:2])
    both = taught[0].joined(choosing[0]), taught[1].joined(choosing[1])
    seen = [cut for score in scores for cut in _cuts(score, choosing if score.learned else both)]
    promising = _least_likely([cut.under(rare) for cut in seen], claim)
    return [surest] if promising is None or promising.error > error else [surest, promising.chosen]


class _Promising(NamedTuple):
    """An event, and the error of bounds that would just certify it, were the samples fresh."""

    error: float
    chosen: Chosen


def _least_likely(cuts: list[_Cut], claim: Claim) -> _Promising | None:
    """The event that the claim makes least likely; all are looked at together, since each takes many bounds."""
    events = [(cut, threshold) for cut in cuts for threshold in cut.thresholds.tolist()]
    likelier, other = (np.concatenate([getattr(cut, name) for cut in cuts]) for name in ("likelier", "other"))
    sizes = [np.concatenate([np.full(len(cut.likelier), cut.sizes[at]) for cut in cuts]) for at in (0, 1)]
    beyond = np.flatnonzero((likelier / sizes[0] > claim.sketch(other / sizes[1])) & (likelier >= SEEN))
    if not len(beyond):
        return None
    likelier, other, sizes = likelier[beyond], other[beyond], [size[beyond] for size in sizes]
    low, high = np.full(len(beyond), LEAST_ERROR), np.ones(len(beyond))
    for _ in range(HALVINGS):
        error = np.sqrt(low * high)
        broken = probability_lower(likelier, sizes[0], error) > claim.sketch(probability_upper(other, sizes[1], error))
        low, high = np.where(broken, low, error), np.where(broken, error, high)
    # Of those that are about as unlikely, the purest: what else is in a larger event may be there by luck.
    at = int(np.argmin(np.where(high <= NEARLY * high.min(), likelier, np.inf)))
    cut, threshold = events[beyond[at]]
    return _Promising(float(high[at]), cut.event(threshold))


class _Cut(NamedTuple):
    """The events of one score in one order and one direction, a threshold each, and how many outputs are in them."""

    score: Score
    order: int
    above: bool
    thresholds: Numbers
    likelier: Any
    other: Any
    sizes: tuple[int, int]

    def under(self, share: float) -> _Cut:
        """Only the events that are no likelier than this."""
        few = self.likelier <= share * self.sizes[0]
        return self._replace(thresholds=self.thresholds[few], likelier=self.likelier[few], other=self.other[few])

    def best(self, claim: Claim, error: float) -> tuple[float, float, Chosen]:
        """The event of the largest certain factor; its excess is how far p lies above what is allowed."""
        p = probability_lower(self.likelier, self.sizes[0], error)
        q = probability_upper(self.other, self.sizes[1], error)
        factors, excess = claim.factors(p, q), p - claim.sketch(q)
        at = int(np.lexsort((excess, factors))[-1])
        return float(factors[at]), float(excess[at]), self.event(float(self.thresholds[at]))

    def event(self, threshold: float) -> Chosen:
        """The event of one threshold."""
        return Chosen(self.order, self.above, threshold, self.score)


def _cuts(score: Score, samples: Samples) -> list[_Cut]:
    """The events of a score, for each order and each direction."""
    values = [np.sort(score.values(sample)) for sample in samples]
    thresholds = _thresholds(np.concatenate(values))
    cuts = []
    for above in (True, False):
        counts = [_counts(ordered, thresholds, above) for ordered in values]
        for order in (0, 1):
            sizes = len(values[order]), len(values[1 - order])
            cuts.append(_Cut(score, order, above, thresholds, counts[order], counts[1 - order], sizes))
    return cuts


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


class _Certified(NamedTuple):
    """An event, what its probabilities certainly are, and how far it sets the inputs apart over what is claimed."""

    factor: float
    excess: float
    p: float
    q: float
    chosen: Chosen

    @classmethod
    def of(cls, chosen: Chosen, fresh: Samples, claim: Claim, error: float) -> _Certified:
        """What fresh samples say of it."""
        likelier, other = fresh[chosen.order], fresh[1 - chosen.order]
        p = float(probability_lower(chosen.count(likelier), likelier.size, error))
        q = float(probability_upper(chosen.count(other), other.size, error))
        return cls(float(claim.factors(p, q)[0]), float(p - claim.sketch(q)[0]), p, q, chosen)


def _certified(
    finalists: list[Chosen],
    fresh: Samples,
    claim: Claim,
    error: float,
    samples: int,
    confidence: float,
    failure: float,
) -> AuditReport:
    """What fresh samples say of the events; their bounds all hold together, so the best may be told."""
    certified = [_Certified.of(one, fresh, claim, error / len(finalists)) for one in finalists]
    factor, _, p, q, chosen = max(certified, key=lambda one: one[:2])
    allowed = claim.power(q)
    words = chosen.score.words(chosen.threshold, chosen.above)
    return AuditReport(
        claimed=claim.curve,
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_lower=epsilon_lower(p, q, claim.delta),
        delta_lower=delta_lower(p, q, claim.epsilon),
        factor_lower=factor,
        violated=p > allowed,
        witness=Witness(words, chosen.score.name, chosen.order, p, q, allowed),
        samples=samples,
        confidence=confidence,
        escapes_factor=smallest_factor(claim, fresh[0].size, error / FINALISTS),
        escapes_failure=failure,
    )


def _check_callables(mechanism: Any, batch: Any) -> None:
    if (batch is None and not callable(mechanism)) or (batch is not None and not callable(batch)):
        name, value = ("mechanism", mechanism) if batch is None else ("batch", batch)
        raise InvalidArgument(
            f"{name} cannot be called: {type(value).__name__}.",
            do="Pass a function from an input to one output, or batch=, from an input and n to n outputs.",
        )
