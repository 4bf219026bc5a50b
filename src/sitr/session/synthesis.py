"""A synthetic table of a private one: explained for nothing, released for a price."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _validate
from ..accounting import Event
from ..errors import InvalidArgument
from ..ledger.asked import Asked
from ..query.facts import chosen_bound
from ..query.planner import Target
from ..query.remarks import large_delta
from ..query.wording import rows_text
from ..synthesis.explanation import LinkedExplanation, SynthesisExplanation, explained
from ..synthesis.linked import LinkedPlan, LinkedTables, linked_plan
from ..synthesis.plan import SynthesisPlan, chosen_columns, synthesis_plan
from ..synthesis.synthesizer import MOST_CHECKED
from ..synthesis.table import SyntheticTable
from ..tables.codes import CELLS, Coded
from ..tables.relations import Relation, datasets_of, has_unit, rows_per_unit
from ..tables.tally import Tally
from .priced import Priced, Progress

if TYPE_CHECKING:
    from .database import Database

MOST_CELLS = 10_000


Made = TypeVar("Made", SynthesisPlan, LinkedPlan)
Given = TypeVar("Given", SyntheticTable, LinkedTables)


class _WithDelta(Priced[Made, Given]):
    """What synthetic tables of one relation, and linked ones, do alike."""

    relation: Relation

    @property
    def datasets(self) -> tuple[str, ...]:
        """Whose budgets pay: those of every private table that is read."""
        return datasets_of(self.relation, self.database.declared)

    def release(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        operation: str | None = None,
        purpose: str | None = None,
        progress: Progress = lambda stage: None,
    ) -> Given:
        """Return what is synthesized: rehearsed on empty tables, charged once, learnt, and kept by the ledger.

        Args:
            epsilon: The ε of the release, together with
            delta: its δ; the declared one unless told.
            operation: An id, to have the same again for nothing. Left out, asking again is charged again.
            purpose: What for; a budget for that purpose is charged as well.
            progress: Is told which stage begins; never anything about the data.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            DeclarationChanged: The promise was changed to another declaration meanwhile; nothing was charged.
            EngineFailed: The engine could not answer; on empty tables nothing was charged, later the charge stays.
            Cancelled: It was stopped; the charge stays.

        Privacy: the event of the plan, under the declared adjacency; charged before a row is read (THEORY 5.1).
        """
        target = self.target(epsilon, delta)
        return self._released(self._plan(target), target, operation, purpose, progress)

    def asked_before(self, *, epsilon: float, delta: float | None = None, purpose: str | None = None) -> str | None:
        """Return the operation under which the very same was made lately: it returns that for nothing.

        Args:
            epsilon: As for `release`.
            delta: As for `release`.
            purpose: As for `release`.
        """
        target = self.target(epsilon, delta)
        return self._answered_as(self._plan(target), self._asked(target, purpose))

    def target(self, epsilon: float, delta: float | None = None) -> Target:
        """Return what a release may cost: ε, with its δ, which is the declared one unless told.

        Raises:
            InvalidArgument: There is none.
        """
        target = Target.of(self.database.declared, epsilon, delta, None)
        if not target.delta:
            raise InvalidArgument(
                "a synthetic table needs a δ.",
                why="its noise is Gaussian, of which no ε bounds every loss.",
                do="pass delta=1e-6, or declare one: [privacy] delta = 1e-6.",
            )
        return target

    @abstractmethod
    def _plan(self, target: Target) -> Made:
        """How it is made at a price."""

    def _told(self, made: Made, target: Target) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
        """What each budget has left now and after a release, and remarks: also whether it fits."""
        forecast = self.forecast()
        remarks = self.database.hold_to_terms() + self._remarks(made, target)
        if any(not room.admits(made.event) for room in forecast.rooms.values()):
            remarks += (f"This does not fit: {forecast.advice(target)}",)
        return forecast.remaining(made.event), remarks

    def _event_at(self, target: Target) -> Event:
        return self._plan(target).event

    def _read_by(self, made: Made) -> tuple[Tally | Coded, ...]:
        return made.asked

    def _remarks(self, made: Made, target: Target) -> tuple[str, ...]:
        return large_delta(target.delta, self.database.facts(self.relation).units, self.database.declared.unit)


class Synthesis(_WithDelta[SynthesisPlan, SyntheticTable]):
    """A synthetic table that is to be made; made by `PrivateTable.synthesize`.

    Args:
        database: Which one.
        relation: Which rows.
        columns: Which columns; all of them unless told, but for those that name a unit or a row.
        max_rows_per_unit: How many rows of a unit are kept at most; by what is publicly known unless told.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.
        impossible: Combinations that no row has.
        determines: Columns that others determine.
        check: The part of the price that goes into measuring how far the result is from the rows.
    """

    def __init__(
        self,
        database: Database,
        relation: Relation,
        columns: Sequence[str] | None = None,
        max_rows_per_unit: int | None = None,
        cells: int = CELLS,
        impossible: Sequence[Mapping[str, Any] | str] = (),
        determines: Mapping[str, str] | None = None,
        check: float = 0.0,
    ) -> None:
        self.database, self.relation = database, relation
        self.options: dict[str, Any] = {
            "columns": None if columns is None else list(columns),
            "max_rows_per_unit": max_rows_per_unit,
            "cells": _validate.integer("cells", cells, 2, MOST_CELLS),
            "impossible": [rule if isinstance(rule, str) else dict(rule) for rule in impossible],
            "determines": dict(determines or {}),
            "check": _validate.real("check", check, 0, MOST_CHECKED),
        }

    def explain(self, *, epsilon: float, delta: float | None = None) -> SynthesisExplanation:
        """Return what a release would cost and how wrong it would be; reads no row and costs nothing.

        Args:
            epsilon: The ε of the release, together with
            delta: its δ; the declared one unless told.
        """
        target = self.target(epsilon, delta)
        made = self._plan(target)
        remaining, remarks = self._told(made, target)
        facts = self.database.facts(self.relation)
        kept = None if facts.rows is None else facts.rows * (facts.kept(made.rows_per_unit) or 1.0)
        return explained(made, target.delta, kept, remaining, remarks)

    def _plan(self, target: Target) -> SynthesisPlan:
        if self.options["max_rows_per_unit"] is not None or not has_unit(self.relation, self.database.declared):
            return self._plan_with(target, self.options["max_rows_per_unit"])
        # By public facts: what is dropped of units with many rows, and noise that grows with the rows of a unit.
        one = self._plan_with(target, 1)
        most, facts = rows_per_unit(self.relation, self.database.declared), self.database.facts(self.relation)
        sizes = [max(code.size, 1) for code in one.coded.codes]
        noise = float(np.median(one.mechanism.costs.deviations(sizes)))
        return self._plan_with(target, chosen_bound(facts, most, noise, int(np.median(sizes))).rows)

    def _plan_with(self, target: Target, most: int | None) -> SynthesisPlan:
        assert target.epsilon is not None
        options = self.options | {"max_rows_per_unit": most}
        return synthesis_plan(
            self.relation, self.database.declared, epsilon=target.epsilon, delta=target.delta, **options
        )

    def _answered_by(self, made: SynthesisPlan, progress: Progress) -> SyntheticTable:
        return made.run(self.database.source, progress)

    def _described(self) -> dict[str, Any]:
        described = {"relation": self.relation.to_dict(), **self.options}
        return {"synthesize": json.loads(json.dumps(described, default=str))}

    def _words(self, made: SynthesisPlan, target: Target) -> Asked:
        declared = self.database.declared
        columns = ", ".join(code.name for code in made.coded.codes)
        kept = "" if made.coded.bound is None else f", at most {made.rows_per_unit} rows of a {declared.unit}"
        return Asked(
            text=f"synthesize {columns} of {rows_text(self.relation)}{kept}",
            tables=tuple(sorted(set(self.relation.tables()))),
            epsilon=target.epsilon,
            delta=target.delta,
            declaration=f"{declared.name}, version {declared.version}",
        )

    def _read_back(self, content: Any, entry: str, operation: str) -> SyntheticTable:
        return SyntheticTable.from_dict(content, entry, operation)


class LinkedSynthesis(_WithDelta[LinkedPlan, LinkedTables]):
    """Two linked synthetic tables that are to be made; made by `PrivateTable.synthesize_with`.

    Args:
        database: Which one.
        relation: The parents: one row of each unit.
        children: Any number of rows of each unit.
        columns: Which columns of the parents; all of them unless told, but for those that name a unit or a row.
        child_columns: Which of the children.
        max_children: How many of them are kept at most.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.
    """

    def __init__(
        self,
        database: Database,
        relation: Relation,
        children: Relation,
        columns: Sequence[str] | None,
        child_columns: Sequence[str] | None,
        max_children: int,
        cells: int = CELLS,
    ) -> None:
        self.database, self.relation, self.children = database, relation, children
        self.options: dict[str, Any] = {
            "columns": list(chosen_columns(relation, database.declared, columns)),
            "child_columns": list(chosen_columns(children, database.declared, child_columns)),
            "most": _validate.integer("max_children", max_children, 1, 10**6),
            "cells": _validate.integer("cells", cells, 2, MOST_CELLS),
        }

    def explain(self, *, epsilon: float, delta: float | None = None) -> LinkedExplanation:
        """Return what a release would cost and how wrong it would be; reads no row and costs nothing.

        Args:
            epsilon: The ε of the release, together with
            delta: its δ; the declared one unless told.
        """
        target = self.target(epsilon, delta)
        made, units = self._plan(target), self.database.facts(self.relation).units
        remaining, remarks = self._told(made, target)
        above = explained(made.parents, target.delta, units, {})
        rows = self.database.facts(self.children).rows
        below = explained(made.children, target.delta, rows, remaining, remarks, event=made.event)
        return LinkedExplanation(made, above, below)

    def _plan(self, target: Target) -> LinkedPlan:
        assert target.epsilon is not None
        return linked_plan(
            self.relation,
            self.children,
            self.database.declared,
            epsilon=target.epsilon,
            delta=target.delta,
            **self.options,
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """Whose budgets pay: those of every private table that is read."""
        declared = self.database.declared
        return tuple(sorted({*datasets_of(self.relation, declared), *datasets_of(self.children, declared)}))

    def _answered_by(self, made: LinkedPlan, progress: Progress) -> LinkedTables:
        return made.run(self.database.source, progress)

    def _described(self) -> dict[str, Any]:
        return {"synthesize": {"parents": self.relation.to_dict(), "children": self.children.to_dict(), **self.options}}

    def _words(self, made: LinkedPlan, target: Target) -> Asked:
        declared = self.database.declared
        return Asked(
            text=f"synthesize {rows_text(self.relation)} with at most {self.options['most']} rows each of "
            f"{rows_text(self.children)}",
            tables=tuple(sorted({*self.relation.tables(), *self.children.tables()})),
            epsilon=target.epsilon,
            delta=target.delta,
            declaration=f"{declared.name}, version {declared.version}",
        )

    def _read_back(self, content: Any, entry: str, operation: str) -> LinkedTables:
        return LinkedTables.from_dict(content, entry, operation)
