"""What a run was charged: the whole plan before its first step, and after a crash the steps that may run twice.

A run is an interactive mechanism: between its steps the same ledger grants other things, which may depend on the
weights seen so far, and the next step may depend on their answers. That costs nothing extra. Every interactive f-DP
mechanism is an interactive post-processing of one that is not interactive (Vadhan and Zhang 2023), and every filter for
mechanisms that are not interactive stays valid for interactive ones that are open at the same time, with (ε,δ), f-DP or
Rényi DP of a fixed order (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang, CCS 2023; THEORY 5.3). It needs that the
price of the run holds against whoever chooses each step after seeing everything before, that the price is fixed when
the run is opened, and that the data stay as they are. Decision 0033 says how each is kept.
"""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _validate
from ..accounting import Event
from ..display import rounded_up, scientific
from ..errors import AlreadyAnswered, AlreadySpent, InvalidArgument, LedgerError, OperationTaken
from ..ledger import Grant, Ledger
from ..ledger.asked import Asked
from ..ledger.journal import journal
from .plan import TrainingPlan


class Span(NamedTuple):
    """The steps from `first` up to, and without, `last`, counted from 0."""

    first: int
    last: int


Paid = tuple[Span, ...]  # what a run was charged for: the plan, and then what may run twice, at each resumption


@dataclass
class Account:
    """The charges of one run to one ledger.

    Attributes:
        ledger: Which.
        dataset: Whose budget pays.
        analyst: Who trains.
        operation: The id of the run; its resumptions have ids that begin with it.
        purpose: What for.
        charges: What was charged by this process: the entry, and the event.
    """

    ledger: Ledger
    dataset: str
    analyst: str
    operation: str
    purpose: str | None = None
    charges: list[tuple[str, Event]] = field(default_factory=list)
    _grant: Grant | None = None
    _started: bool = False

    @classmethod
    def of(
        cls, ledger: Any, dataset: str | None, analyst: str | None, operation: str | None, purpose: str | None
    ) -> Account:
        """Check the names; nothing is charged.

        Raises:
            InvalidArgument: There is no dataset, or no id under which a run could be resumed.
            UnknownName: The dataset has no budget.
        """
        if dataset is None or operation is None:
            raise InvalidArgument(
                "a run that is charged has a dataset and an operation.",
                why="the one says whose budget pays; under the other the run is resumed, and never charged twice.",
                do='attach(..., ledger=ledger, dataset="clinic", operation="model-1").',
            )
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger, create=False)
        book.budget(dataset)
        who = _validate.name("analyst", getpass.getuser() if analyst is None else analyst)
        return cls(book, dataset, who, _validate.name("operation", operation), purpose)

    @property
    def unit(self) -> str:
        """Whom the budget protects, in its owner's word: what each of the plan's n has to stand for."""
        return self.ledger.budget(self.dataset).unit

    def charge(self, plan: TrainingPlan, structure: str) -> Paid:
        """Charge the whole plan, once; a charge that never started goes on.

        Raises:
            BudgetExceeded: It does not fit.
            AlreadySpent: The run was started before: only its checkpoint goes on with it.
            AlreadyAnswered: The run is over.
        """
        paid = (Span(0, plan.steps),)
        try:
            self._reserve(plan, structure, paid)
        except AlreadySpent:
            state = self._state(self.operation)
            raise AlreadySpent(
                f"operation {self.operation!r} was {state} before.",
                why="an operation runs once, so that nothing is made twice for one price.",
                do="resume it from its checkpoint." if state == "started" else "choose a new operation.",
            ) from None
        return paid

    def resume(self, plan: TrainingPlan, structure: str, paid: Paid, lost: Span) -> Paid:
        """Charge the steps that may have run since a checkpoint, as an event of their own, before they run again.

        Args:
            plan: The plan.
            structure: The digest of the model's structure.
            paid: What the checkpoint says was paid for.
            lost: From the step at which the checkpoint was written to that before which the next one would have been.

        Privacy: what was run since the checkpoint is at most `lost`. It was paid for before, and is once more here: no
        step is free. Noise is drawn anew.
        """
        if len(paid) > 1 and (state := self._state(self.operation)) != "started":
            raise _not_under_way(self.operation, state)
        operation, before = self._id(paid), self._state(self._id(paid))
        try:
            self._reserve(plan, structure, paid)
        except AlreadySpent:
            if (state := self._state(operation)) != "started":
                raise _not_under_way(operation, state) from None
        else:
            if lost.first == paid[-1].first:
                return paid  # it was charged, and no noise was drawn for it
            if before is None:
                self.give_back()
            else:
                self._leave_reserved()
            raise _not_under_way(operation, before)
        more = (*paid, lost)
        try:
            self._reserve(plan, structure, more)
        except (AlreadySpent, OperationTaken):
            raise went_on(self.operation) from None
        return more

    def refuse_resumed(self, paid: Paid) -> None:
        """Refuse to go on with a run that was resumed elsewhere, from whichever copy of its checkpoint.

        Raises:
            AlreadySpent: The ledger knows of a resumption that this run did not pay for.
        """
        if self._state(self._id((*paid, paid[-1]))) is not None:
            raise went_on(self.operation)

    @property
    def running(self) -> bool:
        """Whether noise was drawn under a charge of this process."""
        return self._started

    def start(self) -> None:
        """Mark the charge as used, before the first noise is drawn: from here on it is never given back."""
        if not self._started:
            assert self._grant is not None
            self._grant.start()
            self._started = True

    def give_back(self) -> bool:
        """Give back the charge of a plan of which no noise was drawn, if the ledger allows it; return whether it was.

        What was charged for a resumption stays reserved: the next one goes on with it.
        """
        if self._grant is None or self._started or self._grant.operation != self.operation:
            return False
        try:
            self.ledger.refund(self.operation, reason="no noise was drawn")
        except LedgerError:
            return False
        self._grant = None
        self.charges.pop()
        return True

    def _leave_reserved(self) -> None:
        """Let go of a charge that was there before, and stays: the checkpoint shows that noise was drawn under it."""
        self._grant = None
        self.charges.pop()

    def commit(self, summary: dict[str, Any]) -> None:
        """Keep what is to be said of the finished run."""
        assert self._grant is not None
        self._grant.commit(summary)

    def _reserve(self, plan: TrainingPlan, structure: str, paid: Paid) -> None:
        """Charge the last of what is to be paid."""
        first, last = paid[-1]
        event = plan.event_between(first, last)
        again = f" again, steps {first + 1:,} to {last:,}" if len(paid) > 1 else ""
        batches = f"batches of {plan.batch:,} of {plan.n:,} examples ({plan.sampling}), each for one {self.unit}"
        price = float(event.epsilon(plan.delta))
        asked = Asked(f"train a model{again}: {plan.steps:,} steps on {batches}", epsilon=price, delta=plan.delta)
        try:
            self._grant = self.ledger.reserve(
                self.dataset,
                event,
                analyst=self.analyst,
                operation=self._id(paid),
                purpose=self.purpose,
                request={"kind": "training", "plan": plan.to_dict(), "structure": structure, "steps": [first, last]},
                asked=asked,
            )
        except AlreadyAnswered:
            raise AlreadyAnswered(
                f"the run {self.operation!r} is over.",
                why="more steps would be another run.",
                do="make a plan for them, and attach it under a new operation.",
            ) from None
        self.charges.append((self._grant.entry, event))

    def _id(self, paid: Paid) -> str:
        return f"{self.operation}/resumed-{len(paid) - 1}" if len(paid) > 1 else self.operation

    def _state(self, operation: str) -> str | None:
        lines = journal(self.ledger.store.operation(operation), whole=False)
        return lines[0].state if lines else None

    def explain(self) -> str:
        """Return who pays, in a line."""
        return f"{self.dataset}, by {self.analyst}, as operation {self.operation!r}"


def _not_under_way(operation: str, state: str | None) -> InvalidArgument | AlreadyAnswered | AlreadySpent:
    """Return the error of a checkpoint with steps of an operation that is in another state than "started"."""
    if state == "committed":
        return AlreadyAnswered(
            f"operation {operation!r} was committed before.",
            why="the run is over, and more steps would be another run.",
            do="make a plan for them, and attach it under a new operation.",
        )
    kind = AlreadySpent if state == "refunded" else InvalidArgument
    return kind(
        f"the ledger does not know that operation {operation!r} was started"
        + (f": there it was {state}." if state else "."),
        why="the checkpoint has steps of it, which this ledger was not charged for.",
        do="resume with the ledger that the run was begun with.",
    )


def went_on(operation: str | None) -> AlreadySpent:
    """Return the error of a run of which someone else makes the rest."""
    name = "the run" if operation is None else f"the run {operation!r}"
    return AlreadySpent(
        f"{name} went on elsewhere, or from another checkpoint.",
        why="steps that have run since would run again, and be free.",
        do="use its latest checkpoint; or train anew, under a new operation.",
    )


def price(event: Event, delta: float) -> str:
    """Return a price in words, rounded up.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> price(Gaussian(4.0), 1e-6)
        'ε = 1.07 at δ = 1e-06'
    """
    return f"ε = {rounded_up(float(event.epsilon(delta)))} at δ = {scientific(delta)}"
