"""A question to a database: explained for nothing, released for a price."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from .. import _validate, markup
from ..accounting import Event
from ..display import shortened
from ..errors import AccuracyWarning, CannotCalibrate, InvalidArgument, NotAllowed, UselessQuestion
from ..habits import QUESTION, told_instead
from ..ledger.asked import Asked
from ..query.answer import Answer
from ..query.doubts import Doubt, doubts
from ..query.execution import Execution
from ..query.explanation import (
    NO_FIT,
    Explanation,
    bounding,
    expected_errors,
    expected_sizes,
    explained,
    known_size,
)
from ..query.listed import Listed, with_public_groups
from ..query.planner import Plan, Target, plan
from ..query.query import Limits, Query
from ..query.remarks import large_delta, least_listed
from ..query.wording import limits_text, question_text
from ..tables.tally import Tally
from .priced import UNASKED, Priced, Progress
from .prices import LADDER, Price, Prices

if TYPE_CHECKING:
    from .database import Database

LONGEST = 200  # characters of a question in a line
HALVINGS = 40
HIGHEST = 100.0  # ε that is tried


@told_instead(QUESTION, "a question", "it has no answer yet: no private row was read, and nothing was charged.")
class Question(Priced[Plan, Answer]):
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

    def __repr__(self) -> str:
        return f"Question({shortened(' '.join(self._said().split()), LONGEST)})"

    def _repr_html_(self) -> str:
        return markup.page(markup.code(self._said()), markup.lines(UNASKED))

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

    @overload
    def explain(self, *, epsilon: float, delta: float | None = None) -> Explanation: ...

    @overload
    def explain(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        relative_error: float | None = None,
    ) -> Explanation | Prices: ...

    def explain(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: float | None = None,
        relative_error: float | None = None,
    ) -> Explanation | Prices:
        """Return what a release would cost and how wrong it would be; reads no private row and costs nothing.

        Without a price it returns a table of several, to choose from.

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
        epsilon, notes = self._epsilon_of(epsilon, delta, rho, error, relative_error)
        if epsilon is None and rho is None:
            return self._prices(delta)
        found = self._explained(epsilon, delta, rho, notes)
        database, forecast = self.database, self.forecast()
        statements = tuple(database.source.asked(tally) for tally in found.plan.tallies)
        remaining = forecast.remaining(found.plan.event)
        remarks: tuple[str, ...] = ()
        if NO_FIT in (after for _, after in remaining.values()):
            remarks = (f"This does not fit: {forecast.advice(found.target)}",)
        return replace(
            found,
            remaining=remaining,
            statements=statements,
            notes=(*found.notes, *remarks),
            lasting=not database.ledger.in_memory,
        )

    def _explained(
        self, epsilon: float | None, delta: float | None, rho: float | None, notes: tuple[str, ...] = ()
    ) -> Explanation:
        """What a plan says of itself; nothing of budgets, nor of engines."""
        made, target = self._planned(epsilon, delta, rho)
        facts, unit = self.database.facts(self.query.relation), self.database.declared.unit
        found = explained(made, target, facts, {}, (), notes, unit)
        doubted = tuple(one.text for one in self._doubts(made, found.errors))
        remarks = self.database.hold_to_terms() + doubted + self._grouped.notes + self._delta_remarks(made, target)
        return replace(found, notes=(*found.notes, *remarks), public_read=self._grouped.read)

    def _prices(self, delta: float | None) -> Prices:
        """What it would cost at each price that its noise can be drawn at."""
        forecast, rows, refusal = self.forecast(), [], None
        for epsilon in LADDER:
            try:
                found = self._explained(epsilon, delta, None)
            except (InvalidArgument, NotAllowed) as error:
                refusal = error
                continue
            rows.append((Price.of(found, forecast), found))
        if not rows and refusal is not None:
            raise refusal
        always = [note for note in rows[0][1].notes if all(note in found.notes for _, found in rows)]
        spends_delta = any(found.plan.spends_delta for _, found in rows)
        return Prices(tuple(row for row, _ in rows), rows[0][1].target.delta, spends_delta, tuple(always))

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
        progress: Progress = lambda stage: None,
        anyway: bool = False,
        error: float | None = None,
        relative_error: float | None = None,
    ) -> Answer:
        """Return the answer: rehearsed on empty tables, charged, run once, and kept by the ledger.

        Args:
            epsilon: The ε of the release, in all; or
            delta: With `epsilon`; the declared one unless told.
            rho: the ρ of the release.
            operation: An id, to ask for the same answer again for nothing. Left out, asking again is charged again.
            purpose: What for; a budget for that purpose is charged as well.
            progress: Is told which stage begins; never anything about the data.
            anyway: Spend even on what is known beforehand to be useless.
            error: In the place of a price: what the 95 % error of every aggregate shall be at most, as in `explain`; or
            relative_error: the same as a part of each count.

        Raises:
            UselessQuestion: By what is declared, the answer would tell nothing; nothing was charged.
            BudgetExceeded: It does not fit; nothing was charged.
            DeclarationChanged: The promise was changed to another declaration meanwhile; nothing was charged.
            EngineFailed: The engine could not answer; on empty tables nothing was charged, later the charge stays.
            Cancelled: It was stopped; the charge stays.

        Privacy: the event of the plan, under the declared adjacency; charged before a row is read (THEORY 5.1).
        """
        epsilon, _ = self._epsilon_of(epsilon, delta, rho, error, relative_error)
        made, target = self._planned(epsilon, delta, rho)
        found = self._doubts(made)
        if found and not anyway and (operation is None or self._answer_under(operation) is None):
            _refuse_useless(found)
        given = self._released(made, target, operation, purpose, progress, tuple(one.text for one in found))
        return given if self._after is None else self._after(given)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Whose budgets pay: those of every private table that is read."""
        return self.query.datasets(self.database.declared)

    def _event_at(self, target: Target) -> Event:
        facts = self.database.facts(self.query.relation)
        return plan(self._grouped.query, self.database.declared, target, facts).event

    def _read_by(self, made: Plan) -> tuple[Tally, ...]:
        return made.tallies

    def _answered_by(self, made: Plan, progress: Progress) -> Answer:
        return Execution(made, self.database.source, progress).answer()

    def _remarks(self, made: Plan, target: Target) -> tuple[str, ...]:
        bounded = bounding(made, self.database.facts(self.query.relation), self.database.declared.unit)
        return self._delta_remarks(made, target) + bounded

    def _read_back(self, content: Any, entry: str, operation: str) -> Answer:
        return Answer.from_dict(content, entry, operation)

    def _described(self) -> dict[str, Any]:
        return {"query": json.loads(json.dumps(self._grouped.query.to_dict(), default=str))}

    def _doubts(self, made: Plan, errors: Mapping[str, float] | None = None) -> tuple[Doubt, ...]:
        """What speaks against paying for a plan; its errors are worked out if they are not known."""
        facts = self.database.facts(self.query.relation)
        size = known_size(made, facts)
        if errors is None:
            errors = {} if size is None else expected_errors(made, size)
        return doubts(made, facts, self.database.declared, errors, size)

    def _delta_remarks(self, made: Plan, target: Target) -> tuple[str, ...]:
        """Remarks on what takes a δ: groups that are found; and on one too large for the number of units, if known."""
        units, unit = self.database.facts(self.query.relation).units, self.database.declared.unit
        large = large_delta(target.delta, units, unit) if made.spends_delta else ()
        return least_listed(made, unit) + large

    def _words(self, made: Plan, target: Target) -> Asked:
        """The question as the book keeps it for people."""
        declared = self.database.declared
        return Asked(
            text=self._said(),
            tables=tuple(sorted(set(self.query.relation.tables()))),
            epsilon=target.epsilon,
            rho=target.rho,
            delta=made.delta_of(target),
            declaration=f"{declared.name}, version {declared.version}",
        )

    def _said(self) -> str:
        """The question as it was written, or in words."""
        text = question_text(self.query) if self._text is None else self._text
        return f"{text.strip()}{limits_text(self.query)}"

    def _planned(self, epsilon: float | None, delta: float | None, rho: float | None) -> tuple[Plan, Target]:
        database = self.database
        for name, stated, given in (("epsilon", self._epsilon, epsilon), ("delta", self._delta, delta)):
            if stated is not None and given is not None and given != stated:
                raise InvalidArgument(
                    f"{name}={_validate.shown(given)}, but the query itself says {name} = {stated:g}.",
                    do="leave one of them out.",
                )
        if self._epsilon is not None and rho is None:
            epsilon = self._epsilon
        elif self._epsilon is not None:
            raise InvalidArgument(
                f"rho was given, but the query itself says epsilon = {self._epsilon:g}.", do="leave rho out."
            )
        delta = delta if self._delta is None else self._delta
        target = Target.of(database.declared, epsilon, delta, rho)
        return database.planned(self._grouped.query, target, database.facts(self.query.relation)), target

    @cached_property
    def _grouped(self) -> Listed:
        """The query with the groups that public tables list, which are read for it; and a remark, if one lists more."""
        return with_public_groups(self.query, self.database.declared, self.database.source.public_values)

    def _epsilon_of(
        self,
        epsilon: float | None,
        delta: float | None,
        rho: float | None,
        error: float | None,
        relative_error: float | None,
    ) -> tuple[float | None, tuple[str, ...]]:
        """The ε that was said, by the question too, or the one that an error takes; and what is said of it."""
        if error is None and relative_error is None:
            return (self._epsilon if epsilon is None and rho is None else epsilon), ()
        asked = {"epsilon": epsilon, "rho": rho, "error": error, "relative_error": relative_error}
        _check_one_price({name: value for name, value in asked.items() if value is not None}, self._epsilon)
        wanted, notes = self._wanted(error, relative_error, delta)
        return self._epsilon_for(wanted, delta), notes

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


def _check_one_price(given: Mapping[str, float], stated: float | None) -> None:
    """Refuse what says in several ways how much is spent; the question itself may have stated it."""
    name, value = list(given.items())[-1]
    why = "each of them alone decides how much is spent."
    if stated is not None:
        raise InvalidArgument(
            f"{name} was given, but the query itself says epsilon = {stated:g}.",
            why=why,
            do=f"leave {name} out, or take epsilon out of the OPTIONS of the query.",
        )
    if len(given) > 1:
        what = f"{' and '.join(given)} were given together."
        raise InvalidArgument(what, why=why, do=f"pass {name}={_validate.shown(value)} alone.")


def _refuse_useless(found: tuple[Doubt, ...]) -> None:
    """Refuse what is certain to tell nothing, and warn of what is likely to."""
    if sure := [one.text for one in found if one.certain]:
        raise UselessQuestion(
            " ".join(sure),
            why="by what is declared, the answer would tell you nothing that you do not know. Nothing was spent.",
            do="change the question, or pass anyway=True to spend all the same.",
        )
    for one in found:
        warnings.warn(AccuracyWarning(one.text), stacklevel=_level_outside())


def _level_outside() -> int:
    """How many calls above its own the first one is that is not of sitr: a profile asks questions for its user."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "sitr":
        frame, level = frame.f_back, level + 1
    return level
