"""What is explained for nothing and released for a price: rehearsed, charged, run once, and kept by the ledger."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ..accounting import Event
from ..errors import (
    AlreadyAnswered,
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    InvalidRecord,
    LedgerError,
    NoSuchGuarantee,
    OperationTaken,
    SitrError,
)
from ..ledger.asked import Asked
from ..query.planner import Target
from ..release import Paid
from ..tables.codes import Coded
from ..tables.tally import Tally
from .room import Forecast

if TYPE_CHECKING:
    from ..ledger.answer import Answer as Kept
    from .database import Database

Progress = Callable[[str], None]
UNASKED = (
    "No private row was read, and nothing was charged. explain(epsilon=0.5) says what it would cost, "
    "release(epsilon=0.5) answers it."
)


class Costing(Protocol):
    """A plan."""

    @property
    def event(self) -> Event:
        """What it costs."""


Planned = TypeVar("Planned", bound=Costing)
Given = TypeVar("Given", bound=Paid)


class Priced(ABC, Generic[Planned, Given]):
    """A question of any kind to a database.

    Attributes:
        database: Which one.
    """

    database: Database

    # What each kind says of itself

    @property
    @abstractmethod
    def datasets(self) -> tuple[str, ...]:
        """Whose budgets pay."""

    @abstractmethod
    def _event_at(self, target: Target) -> Event:
        """What is done at a price."""

    @abstractmethod
    def _read_by(self, made: Planned) -> Iterable[Tally | Coded]:
        """All that a plan asks of the engine."""

    @abstractmethod
    def _answered_by(self, made: Planned, progress: Progress) -> Given:
        """Run a plan, once; it is charged already."""

    @abstractmethod
    def _described(self) -> dict[str, Any]:
        """The question as the digest of a request covers it, in what JSON holds."""

    @abstractmethod
    def _words(self, made: Planned, target: Target) -> Asked:
        """The question as the book keeps it for people."""

    @abstractmethod
    def _remarks(self, made: Planned, target: Target) -> tuple[str, ...]:
        """What people are told with an answer, whatever it is."""

    @abstractmethod
    def _read_back(self, content: Any, entry: str, operation: str) -> Given:
        """An answer that the ledger kept."""

    # What all of them do

    def forecast(self, *, purpose: str | None = None) -> Forecast:
        """Return what the budgets that this falls under have left, and how much of it they pay for.

        Args:
            purpose: What for; a budget for that purpose has to have room as well.
        """
        return Forecast(self.database, self.datasets, self._event_at, purpose)

    def _released(
        self,
        made: Planned,
        target: Target,
        operation: str | None,
        purpose: str | None,
        progress: Progress,
        notes: tuple[str, ...] = (),
    ) -> Given:
        """Rehearse, charge, run once and keep; see `Question.release`."""
        database = self.database
        # The terms again: an owner may have changed a promise since the database was opened.
        remarks = database.hold_to_terms() + notes + self._remarks(made, target)
        progress("rehearsing on empty tables")
        for one in self._read_by(made):
            database.source.rehearse(one)
        progress("charging")
        asked = self._asked(target, purpose)
        before = None if operation is not None else self._answered_as(made, asked)
        try:
            grant = database.ledger.reserve(
                self.datasets, made.event, operation=operation, **asked, asked=self._words(made, target)
            )
        except AlreadyAnswered:
            return self._kept(str(operation))
        except (BudgetExceeded, NoSuchGuarantee) as refusal:
            raise self._refused(refusal, target, purpose) from None
        except OperationTaken:  # the same question has another plan where more is known of the data since
            answered = self._answered(str(operation), asked)
            if answered is None:
                raise
            return answered
        with grant:
            given = self._run(made, progress)
            hint = (f"The same was answered before: operation={before!r} returns that answer for nothing.",)
            notes = (*remarks, *given.notes, *(hint if before else ()))
            left, told = self._left(made, target, purpose)
            given = replace(given, entry=grant.entry, operation=grant.operation, notes=notes, left=told)
            given = replace(given, lasting=not database.ledger.in_memory)
            grant.commit(given.to_dict() | {"asked": _recorded(asked)}, left=left)
        return given

    def _run(self, made: Planned, progress: Progress) -> Given:
        """The answer; whatever else happens once rows were read is told without a word of it, nor of where it was."""
        stopped = False
        try:
            return self._answered_by(made, progress)
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

    def _refused(self, refusal: SitrError, target: Target, purpose: str | None) -> SitrError:
        """A refusal of the ledger, with what an analyst can do about it: how much of the question still fits."""
        try:
            return type(refusal)(refusal.what, why=refusal.why, do=self.forecast(purpose=purpose).advice(target))
        except LedgerError:  # it can be lost at any moment
            return refusal

    def _left(self, made: Planned, target: Target, purpose: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
        """What is left after a charge, for the book and for people; a release does not fail for want of it."""
        try:
            forecast = self.forecast(purpose=purpose)
            return forecast.left(), forecast.left_after(made.event, target)
        except LedgerError:
            return {}, ()

    def _kept(self, operation: str) -> Given:
        kept = self.database.ledger.answer(operation, analyst=self.database.analyst)
        try:
            return self._read_back(kept.value, kept.entry, operation)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise InvalidRecord(
                "the answer that was kept for this operation is of another form than is read here.",
                why="it was made by an earlier development version of sitr. Nothing was charged.",
                do="read it with that version, or ask under another operation: that is charged anew.",
            ) from None

    def _answered(self, operation: str, asked: Mapping[str, Any]) -> Given | None:
        """The answer under an id, if it is one to this very question."""
        kept = self._answer_under(operation)
        same = kept is not None and isinstance(kept.value, Mapping) and kept.value.get("asked") == _recorded(asked)
        return self._kept(operation) if same else None

    def _answer_under(self, operation: str) -> Kept | None:
        """What the ledger keeps under an id, if it is an answer that this analyst may have."""
        try:
            return self.database.ledger.answer(operation, analyst=self.database.analyst)
        except LedgerError:
            return None

    def _asked(self, target: Target, purpose: str | None) -> dict[str, Any]:
        declared = self.database.declared
        request = {**self._described(), "declaration": [declared.name, declared.version], "target": vars(target)}
        return {"analyst": self.database.analyst, "purpose": purpose, "request": request}

    def _answered_as(self, made: Planned, asked: dict[str, Any]) -> str | None:
        """The operation under which the very same was answered lately."""
        return self.database.ledger.asked_before(self.datasets, made.event, **asked)


def _recorded(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked and for what purpose, as JSON holds it."""
    return {"purpose": asked["purpose"], **json.loads(json.dumps(asked["request"]))}
