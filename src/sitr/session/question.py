"""A question to a database: explained for nothing, released for a price."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import _validate
from ..errors import (
    AlreadyAnswered,
    BudgetExceeded,
    Cancelled,
    CannotCalibrate,
    EngineFailed,
    InvalidArgument,
    LedgerError,
    OperationTaken,
)
from ..ledger.asked import Asked
from ..query.answer import Answer
from ..query.execution import Execution
from ..query.explanation import NO_FIT, Explanation, bounding, expected_sizes, explained
from ..query.planner import Plan, Target
from ..query.query import Limits, Query
from ..query.remarks import large_delta, unlisted
from ..query.wording import limits_text, question_text
from .room import Forecast

if TYPE_CHECKING:
    from .database import Database

HALVINGS = 40
HIGHEST = 100.0  # ε that is tried


class Question:
    """A query on a database; made by `PrivateTable.aggregate`, `Groups.aggregate` and `Database.sql`.

    Args:
        database: Which one.
        query: What is measured, and charged.
        after: What is done with the answer, for nothing; the ledger keeps the answer as it was measured.
        epsilon: The ε that the question itself states.
        delta: The δ that it states.
        text: The question as it was written; in words of ours unless told.
    """

    def __init__(
        self,
        database: Database,
        query: Query,
        after: Callable[[Answer], Answer] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        text: str | None = None,
    ) -> None:
        self.database, self.query = database, query
        self._after, self._epsilon, self._delta, self._text = after, epsilon, delta, text
        query.check(database.declared)

    def bounded(
        self,
        *,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_group: int | None = None,
    ) -> Question:
        """Return the question with bounds on what is kept of a unit; no more than the owner's maximum in any case.

        Args:
            max_rows_per_unit: Its rows in all; or
            max_groups_per_unit: the groups that it is in, with
            max_rows_per_group: its rows in each of them.
        """
        limits = Limits(max_rows_per_unit, max_groups_per_unit, max_rows_per_group)
        query = replace(self.query, limits=limits)
        stated = {"epsilon": self._epsilon, "delta": self._delta}
        return Question(self.database, query, self._after, **stated, text=self._text)

    def explain(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        relative_error: float | None = None,
    ) -> Explanation:
        """Return what a release would cost and how wrong it would be; reads no row and costs nothing.

        Args:
            epsilon: The ε of the release; or
            delta: With `epsilon`; the declared one unless told.
            rho: the ρ of the release; or
            error: what the 95 % error of every aggregate shall be at most, from which ε is found; or
            relative_error: the same as a part of each count, by the declared number of rows and units.

        Raises:
            CannotCalibrate: No ε up to 100 reaches the error.
            InvalidArgument: A relative error of what has no declared size.
        """
        notes: tuple[str, ...] = ()
        if error is not None or relative_error is not None:
            if [epsilon or self._epsilon, rho, error, relative_error].count(None) != 3:
                raise InvalidArgument("of epsilon, rho, error and relative_error, one says what is wanted.")
            wanted, notes = self._wanted(error, relative_error, delta)
            epsilon = self._epsilon_for(wanted, delta)
        made, target = self._planned(epsilon, delta, rho)
        database = self.database
        statements = tuple(database.source.asked(tally) for tally in made.tallies)
        facts = database.facts(self.query.relation)
        forecast = self.forecast()
        found = explained(made, target, facts, forecast.remaining(made.event), statements, notes)
        remarks = database.hold_to_terms() + unlisted(self.query, database.declared) + self._delta_remarks(made, target)
        if NO_FIT in (after for _, after in found.remaining.values()):
            remarks += (f"This does not fit: {forecast.advice(target)}",)
        return replace(found, notes=(*found.notes, *remarks), lasting=not database.ledger.in_memory)

    def forecast(self, *, purpose: str | None = None) -> Forecast:
        """Return what the budgets that this falls under have left, and how much of it they pay for.

        Args:
            purpose: What for; a budget for that purpose has to have room as well.
        """
        return Forecast(self.database, self.query, purpose)

    def asked_before(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        purpose: str | None = None,
    ) -> str | None:
        """Return the operation under which the very same was answered lately: it returns that answer for nothing.

        Args:
            epsilon: As for `release`.
            delta: As for `release`.
            rho: As for `release`.
            purpose: As for `release`.
        """
        made, target = self._planned(epsilon, delta, rho)
        return self._answered_as(made, self._asked(target, purpose))

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        operation: str | None = None,
        purpose: str | None = None,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Answer:
        """Return the answer: rehearsed on empty tables, charged, run once, and kept by the ledger.

        Args:
            epsilon: The ε of the release, in all; or
            delta: With `epsilon`; the declared one unless told.
            rho: the ρ of the release.
            operation: An id, to ask for the same answer again for nothing. Left out, asking again is charged again.
            purpose: What for; a budget for that purpose is charged as well.
            progress: Is told which stage begins; never anything about the data.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            DeclarationChanged: The promise was changed to another declaration meanwhile; nothing was charged.
            EngineFailed: The engine could not answer; on empty tables nothing was charged, later the charge stays.
            Cancelled: It was stopped; the charge stays.

        Privacy: the event of the plan, under the declared adjacency; charged before a row is read (THEORY 5.1).
        """
        made, target = self._planned(epsilon, delta, rho)
        database = self.database
        remarks = database.hold_to_terms()  # again: an owner may have changed a promise since it was opened
        remarks += self._delta_remarks(made, target)
        dropped = bounding(made, database.facts(self.query.relation))
        progress("rehearsing on empty tables")
        for tally in made.tallies:
            database.source.rehearse(tally)
        progress("charging")
        asked = self._asked(target, purpose)
        paid = self.query.datasets(database.declared), made.event
        before = None if operation is not None else self._answered_as(made, asked)
        try:
            grant = database.ledger.reserve(*paid, operation=operation, **asked, asked=self._words(made, target))
        except AlreadyAnswered:
            return self._finished(self._kept(str(operation)))
        except BudgetExceeded as refusal:
            raise self._refused(refusal, target, purpose) from None
        except OperationTaken:  # the same question has another plan where more is known of the data since
            answered = self._answered(str(operation), asked)
            if answered is None:
                raise
            return self._finished(answered)
        with grant:
            answer = self._run(made, progress)
            hint = (f"The same was answered before: operation={before!r} returns that answer for nothing.",)
            notes = (*remarks, *dropped, *answer.notes, *(hint if before else ()))
            left, told = self._left(made, target, purpose)
            answer = replace(answer, entry=grant.entry, operation=grant.operation, notes=notes, left=told)
            answer = replace(answer, lasting=not database.ledger.in_memory)
            grant.commit(answer.to_dict() | {"asked": _recorded(asked)}, left=left)
        return self._finished(answer)

    def _run(self, made: Plan, progress: Callable[[str], None]) -> Answer:
        """The answer; whatever else happens once rows were read is told without a word of it, nor of where it was."""
        stopped = False
        try:
            return Execution(made, self.database.source, progress).answer()
        except (Cancelled, EngineFailed):
            raise
        except KeyboardInterrupt:
            stopped = True
        except Exception:
            pass
        if stopped:
            raise Cancelled(
                "the query was stopped.",
                why="it has read rows, so what it was charged stays.",
                do="ask again under a new operation id: that is charged anew.",
            )
        raise EngineFailed(
            "the answer could not be made.",
            why="what went wrong is not shown, since it may hold values of the data; the charge stays.",
            do="report it, with the query and the declaration.",
        )

    def _refused(self, refusal: BudgetExceeded, target: Target, purpose: str | None) -> BudgetExceeded:
        """A refusal of the ledger, with what an analyst can do about it: how much of the question still fits."""
        try:
            return BudgetExceeded(refusal.what, why=refusal.why, do=self.forecast(purpose=purpose).advice(target))
        except LedgerError:  # it can be lost at any moment
            return refusal

    def _delta_remarks(self, made: Plan, target: Target) -> tuple[str, ...]:
        """A remark on a δ that is too large for the number of units, where it is spent and that is known."""
        units = self.database.facts(self.query.relation).units
        return large_delta(target.delta, units, self.database.declared.unit) if made.spends_delta else ()

    def _words(self, made: Plan, target: Target) -> Asked:
        """The question as the book keeps it for people."""
        declared = self.database.declared
        text = question_text(self.query) if self._text is None else self._text
        return Asked(
            text=f"{text.strip()}{limits_text(self.query)}",
            tables=tuple(sorted(set(self.query.relation.tables()))),
            epsilon=target.epsilon,
            rho=target.rho,
            delta=made.delta_of(target),
            declaration=f"{declared.name}, version {declared.version}",
        )

    def _left(self, made: Plan, target: Target, purpose: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
        """What is left after a charge, for the book and for people; a release does not fail for want of it."""
        try:
            forecast = self.forecast(purpose=purpose)
            return forecast.left(), forecast.left_after(made.event, target)
        except LedgerError:
            return {}, ()

    def _finished(self, answer: Answer) -> Answer:
        return answer if self._after is None else self._after(answer)

    def _kept(self, operation: str) -> Answer:
        kept = self.database.ledger.answer(operation, analyst=self.database.analyst)
        return Answer.from_dict(kept.value, kept.entry, operation)

    def _answered(self, operation: str, asked: Mapping[str, Any]) -> Answer | None:
        """The answer under an id, if it is one to this very question."""
        try:
            kept = self.database.ledger.answer(operation, analyst=self.database.analyst).value
        except LedgerError:
            return None
        same = isinstance(kept, Mapping) and kept.get("asked") == _recorded(asked)
        return self._kept(operation) if same else None

    def _planned(self, epsilon: float | None, delta: float | None, rho: float | None) -> tuple[Plan, Target]:
        database = self.database
        for name, stated, given in (("epsilon", self._epsilon, epsilon), ("delta", self._delta, delta)):
            if stated is not None and given is not None and given != stated:
                raise InvalidArgument(
                    f"{name}={_validate.shown(given)}, and the query states {name} = {stated:g}.",
                    why="a release has one price.",
                    do="leave one of them out.",
                )
        if self._epsilon is not None and rho is None:
            epsilon = self._epsilon
        elif self._epsilon is not None:
            raise InvalidArgument(
                f"rho, and the query states epsilon = {self._epsilon:g}.",
                why="a release has one price.",
                do="leave rho out.",
            )
        delta = delta if self._delta is None else self._delta
        target = Target.of(database.declared, epsilon, delta, rho)
        return database.planned(self.query, target, database.facts(self.query.relation)), target

    def _asked(self, target: Target, purpose: str | None) -> dict[str, Any]:
        return {"analyst": self.database.analyst, "purpose": purpose, "request": self._request(target)}

    def _answered_as(self, made: Plan, asked: dict[str, Any]) -> str | None:
        paid = self.query.datasets(self.database.declared), made.event
        return self.database.ledger.asked_before(*paid, **asked)

    def _request(self, target: Target) -> dict[str, Any]:
        declared = self.database.declared
        query = json.loads(json.dumps(self.query.to_dict(), default=str))
        return {"query": query, "declaration": [declared.name, declared.version], "target": vars(target)}

    def _wanted(
        self, error: float | None, relative: float | None, delta: float | None
    ) -> tuple[dict[str, float], tuple[str, ...]]:
        """How large the error of each aggregate may be, and what is said of it."""
        if relative is None:
            most = _validate.real("error", error, 0, 1e300, open_low=True)
            return dict.fromkeys(self.query.aggregates, most), ()
        part = _validate.real("relative_error", relative, 0, 1, open_low=True, open_high=True)
        made, _ = self._planned(HIGHEST, delta, None)
        sizes = expected_sizes(made, self.database.facts(self.query.relation))
        shown = ", ".join(f"{size:,.0f} for {name}" for name, size in sizes.items())
        note = f"An error of {100 * part:g} % is one of what is expected in a group, before filters: {shown}."
        return {name: part * size for name, size in sizes.items()}, (note,)

    def _epsilon_for(self, wanted: Mapping[str, float], delta: float | None) -> float:
        """The least ε, to a part in a thousand, at which no aggregate is wrong by more than is wanted."""
        facts = self.database.facts(self.query.relation)

        def reached(epsilon: float) -> bool:
            made, target = self._planned(epsilon, delta, None)
            found = explained(made, target, facts, {}, ()).errors
            return all(error <= wanted[name] for name, error in found.items())

        low, high = 1e-6, HIGHEST
        if not reached(high):
            least = min(wanted.values())
            raise CannotCalibrate(f"no ε up to {high:g} makes the error {least:g}.", do="ask for a larger error.")
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if reached(middle) else (middle, high)
            if high / low < 1.001:
                break
        return high


def _recorded(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked and for what purpose, as JSON holds it."""
    return {"purpose": asked["purpose"], **json.loads(json.dumps(asked["request"]))}
