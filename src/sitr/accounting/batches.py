"""Events of a crowd whose size is public: batches of fixed size, shuffled passes over the data, shuffled reports.

In all of them one person is replaced by another, and the number of people stays: they are `replace_one`, and so must be
what is run inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from .. import _validate
from ..errors import InvalidArgument, NoSuchGuarantee
from ..units import Adjacency, join
from .events import MOST_COUNT, Composed, Event, PureDP, RandomizedResponse, Renyi
from .losses.law import Pair
from .losses.pairs import at_rate
from .losses.shuffled import counted_beneath, shuffled_above, shuffled_beneath
from .parts import Parts, batch_part

MOST_PEOPLE = 10**15
MOST_REPORTS = 10**9
LEAST_HIDDEN, MOST_HIDDEN = 1e-9, 50.0  # the ε of a report outside which n others are not asked to hide it


@dataclass(frozen=True, repr=False)
class SampledWithoutReplacement(Event):
    """`event` run on a batch of exactly `batch` of the `n` people, every batch of that size as likely as any other.

    Args:
        event: What is run on the batch, its sensitivity measured in `replace_one`.
        n: How many people there are, publicly.
        batch: How many of them are drawn.

    Privacy: under `replace_one`, δ(ε) = q δ'(ln(1 + (e^ε - 1)/q)) for ε ≥ 0 and in both orders, with q = batch/n and δ'
    that of `event` (THEORY 2.8); exact for one batch. Several batches are bounded by the pair with that profile, and
    their lower end is the case in which the person's value is that of all others, or is not.

    Example:
        >>> from sitr.accounting import Laplace
        >>> event = SampledWithoutReplacement(Laplace(noise_multiplier=1.0), n=10_000, batch=100)
        >>> round(float(event.epsilon(delta=0)), 6)
        0.017037
    """

    type = "sampled_without_replacement"
    event: Event
    n: int
    batch: int

    def _check(self) -> None:
        _require_event("event", self.event)
        n = _validate.integer("n", self.n, 1, MOST_PEOPLE)
        batch = _validate.integer("batch", self.batch, 1, n)
        other = next(_misfits(self.event, batch), None)
        if other is not None:
            raise InvalidArgument(
                f"what is run on the batch speaks of {other} people, and the batch has {batch}.",
                why="the fewer people, the less hides each of them.",
                do="state the event inside for a crowd of the size of the batch.",
            )
        self._set(n=n, batch=batch, adjacency=_replace_one(self, self.event))

    @property
    def claimed(self) -> bool:
        """Whether what is run on the batch rests on the user's word."""
        return self.event.claimed

    @property
    def releases(self) -> int:
        """How many there are on the batch."""
        return self.event.releases

    @property
    def parts(self) -> Parts:
        """One part, of all that is run on the batch; where that is everyone, the parts of the event."""
        return self.event.parts if self.batch == self.n else super().parts

    def _describe(self) -> Pair:
        return at_rate(Fraction(self.batch, self.n), lambda rate: batch_part(self.event.parts, rate))


@dataclass(frozen=True, repr=False)
class ShuffledEpochs(Event):
    """`event` run on every batch of a pass over the people in an order that no data decides, `epochs` times.

    Args:
        event: What is run on each batch, its sensitivity measured in `replace_one`.
        epochs: How many passes; each may have an order of its own.

    Privacy: under `replace_one` that of `event` * epochs, and exact for orders that are known: who is replaced stays in
    their place, so in each pass one batch changes, and the others lose nothing (THEORY 4.9). A hidden order promises no
    more. Under `add_remove` nothing holds: one person less moves everyone behind into another place.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> epochs = ShuffledEpochs(Gaussian(noise_multiplier=4.0), epochs=10)
        >>> round(float(epochs.epsilon(delta=1e-6)), 4)
        3.7472
    """

    type = "shuffled_epochs"
    event: Event
    epochs: int

    def _check(self) -> None:
        _require_event("event", self.event)
        epochs = _validate.integer("epochs", self.epochs, 1, MOST_COUNT)
        self._set(epochs=epochs, adjacency=_replace_one(self, self.event))
        self._refuse_too_many()

    @property
    def claimed(self) -> bool:
        """Whether what is run on each batch rests on the user's word."""
        return self.event.claimed

    @property
    def releases(self) -> int:
        """How many there are on batches that a person is in."""
        return self.epochs * self.event.releases

    @property
    def parts(self) -> Parts:
        """The parts of what is run on a batch, once for each pass."""
        return tuple((part, count * self.epochs) for part, count in self.event.parts)


@dataclass(frozen=True, repr=False)
class ShuffledReports(Event):
    """Reports of `n` people, each made by `local` from its owner's value alone, and shuffled before anyone sees them.

    Args:
        local: How a report is made, the same for all; pure, and its ε is that of any two values.
        n: How many reports there are, publicly.

    Privacy: under `replace_one` the upper end holds for every such `local` (THEORY 2.9), and uses more than its ε for
    `RandomizedResponse` alone. The lower end is one case: all others hold one value.

    Raises:
        InvalidArgument: A report may lose more than any ε: no theorem here hides it; or it is made from a crowd.

    Example:
        >>> reports = ShuffledReports(RandomizedResponse(p=0.5, k=10), n=10_000)
        >>> round(RandomizedResponse(p=0.5, k=10).pure(), 4), round(float(reports.epsilon(delta=1e-6)), 4)
        (2.1972, 0.0969)
    """

    type = "shuffled_reports"
    local: Event
    n: int

    def _check(self) -> None:
        _require_event("local", self.local)
        n = _validate.integer("n", self.n, 1, MOST_REPORTS)
        self._set(n=n, adjacency=_replace_one(self, self.local))
        crowd = next(_misfits(self.local, 1), None)
        if crowd is not None:
            raise InvalidArgument(
                f"a report is made from one person's value, and this one speaks of {crowd} people.",
                why="what hides a person among others does not hide the value that a report is made from.",
                do="state how one report is made, such as RandomizedResponse(0.75).",
            )
        try:
            self.local.epsilon(0)
        except NoSuchGuarantee:
            raise InvalidArgument(
                "the loss of a report is unbounded, or infinite with some probability.",
                why="that a crowd hides a report is known here for pure reports only (THEORY 2.9).",
                do="describe a report that is ε-DP, such as RandomizedResponse(0.75).",
            ) from None

    @property
    def claimed(self) -> bool:
        """Whether the report rests on the user's word."""
        return self.local.claimed

    @property
    def parts(self) -> Parts:
        """One part; that of the report itself where it is alone, says nothing, or hides nothing."""
        hidden = self.n > 1 and LEAST_HIDDEN <= self.local.epsilon(0).upper <= MOST_HIDDEN
        return super().parts if hidden else self.local.parts

    def _describe(self) -> Pair:
        return _shuffled_pair(self.local, self.n)


@lru_cache(maxsize=64)
def _shuffled_pair(local: Event, n: int) -> Pair:
    """Return the pair of n reports, with what they dominate."""
    epsilon, k = local.epsilon(0), 2
    if isinstance(local, RandomizedResponse) and local.p * local.k > 1:
        k = local.k
    above = shuffled_above(float(epsilon.upper), k, n)
    known = 3 if isinstance(local, PureDP) else k  # three values are worse than two, of which the others hold one
    if known > 2:
        return replace(above, beneath=shuffled_beneath(float(epsilon.lower), known, n))
    # Where both orders are equal, a test has errors that are equal too; of other tables nothing is said.
    equal = all(isinstance(part, Pair) and part.is_symmetric for part, _ in local.parts)
    return replace(above, beneath=counted_beneath(float(local.delta(0).lower) if equal else 0.0, n))


def _require_event(name: str, value: Any) -> None:
    if not isinstance(value, Event):
        raise InvalidArgument(
            f"{name}={_validate.shown(value)} is not an event.", do="Pass one, such as RandomizedResponse(0.75)."
        )


def _replace_one(event: Event, inside: Event) -> Adjacency | None:
    return join(join(event.adjacency, inside.adjacency), "replace_one")


def _misfits(event: Event, people: int, *, in_pass: bool = False) -> Iterator[int]:
    """Yield the sizes of crowds in an event that so many people cannot be; batches of a pass over them may be less."""
    if isinstance(event, (SampledWithoutReplacement, ShuffledReports)):
        if event.n > people or (event.n < people and not in_pass):
            yield event.n
    elif isinstance(event, ShuffledEpochs):
        yield from _misfits(event.event, people, in_pass=True)
    elif isinstance(event, Composed):
        for inner, _ in event.events:
            yield from _misfits(inner, people, in_pass=in_pass)
    elif isinstance(event, Renyi) and event.formula is not None:
        yield from _misfits(event.formula, people, in_pass=in_pass)
