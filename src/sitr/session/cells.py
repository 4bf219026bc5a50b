"""The cells of some columns, and the ranges of one, counted with noise: explained for nothing, released for a price."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..accounting import Event
from ..ledger.asked import Asked
from ..query.planner import Target
from ..query.wording import rows_text
from ..synthesis.cells import CellCounts, CellExplanation, CellPlan, cell_plan
from ..synthesis.range_counts import RangeCounts, RangeExplanation, RangePlan, range_plan
from ..tables.codes import CELLS, Coded
from ..tables.relations import Relation, datasets_of
from .priced import Priced, Progress

if TYPE_CHECKING:
    from .database import Database

Made = TypeVar("Made", CellPlan, RangePlan)
Given = TypeVar("Given", CellCounts, RangeCounts)


class _PureEpsilon(Priced[Made, Given]):
    """What both do alike: they cost a pure ε."""

    relation: Relation
    options: dict[str, Any]
    what: str  # in words

    def release(
        self,
        *,
        epsilon: float,
        operation: str | None = None,
        purpose: str | None = None,
        progress: Progress = lambda stage: None,
    ) -> Given:
        """Return the counts: rehearsed on empty tables, charged, counted by the engine, and kept by the ledger.

        Args:
            epsilon: The pure ε of the release.
            operation: An id, to have the same again for nothing. Left out, asking again is charged again.
            purpose: What for; a budget for that purpose is charged as well.
            progress: Is told which stage begins; never anything about the data.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            EngineFailed: The engine could not answer; on empty tables nothing was charged, later the charge stays.

        Privacy: the event of the plan, under the declared adjacency; charged before a row is read (THEORY 5.1).
        """
        target = self._target(epsilon)
        return self._released(self._plan(target), target, operation, purpose, progress)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Whose budgets pay: those of every private table that is read."""
        return datasets_of(self.relation, self.database.declared)

    @abstractmethod
    def _plan(self, target: Target) -> Made:
        """How they are counted at a price."""

    def _target(self, epsilon: float) -> Target:
        return Target.of(self.database.declared, epsilon, 0.0, None)

    def _event_at(self, target: Target) -> Event:
        return self._plan(target).event

    def _read_by(self, made: Made) -> tuple[Coded, ...]:
        return (made.coded,)

    def _described(self) -> dict[str, Any]:
        return {self.what: {"relation": self.relation.to_dict(), **self.options}}

    def _words(self, made: Made, target: Target) -> Asked:
        declared = self.database.declared
        columns = ", ".join(code.name for code in made.coded.codes)
        return Asked(
            text=f"{self.what} of {columns} of {rows_text(self.relation)}",
            tables=tuple(sorted(set(self.relation.tables()))),
            epsilon=target.epsilon,
            declaration=f"{declared.name}, version {declared.version}",
        )

    def _remarks(self, made: Made, target: Target) -> tuple[str, ...]:
        return ()


class Cells(_PureEpsilon[CellPlan, CellCounts]):
    """Cells that are to be counted; made by `PrivateTable.histogram`.

    Args:
        database: Which one.
        relation: Which rows.
        columns: Which columns.
        max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.
    """

    what = "histogram"

    def __init__(
        self,
        database: Database,
        relation: Relation,
        columns: Sequence[str],
        max_rows_per_unit: int | None = None,
        cells: int = CELLS,
    ) -> None:
        self.database, self.relation = database, relation
        self.options = {"columns": list(columns), "max_rows_per_unit": max_rows_per_unit, "cells": cells}

    def explain(self, *, epsilon: float) -> CellExplanation:
        """Return what a release would cost and how wrong it would be; reads no row and costs nothing.

        Args:
            epsilon: The pure ε of the release.
        """
        made = self._plan(self._target(epsilon))
        facts = self.database.facts(self.relation)
        return CellExplanation(made, facts.rows, self.forecast().remaining(made.event), self.database.hold_to_terms())

    def _plan(self, target: Target) -> CellPlan:
        assert target.epsilon is not None
        return cell_plan(self.relation, self.database.declared, epsilon=target.epsilon, **self.options)

    def _answered_by(self, made: CellPlan, progress: Progress) -> CellCounts:
        return made.run(self.database.source, progress)

    def _read_back(self, content: Any, entry: str, operation: str) -> CellCounts:
        return CellCounts.from_dict(content, entry, operation)


class AllRanges(_PureEpsilon[RangePlan, RangeCounts]):
    """Ranges of a column that are to be measured; made by `PrivateTable.ranges`.

    Args:
        database: Which one.
        relation: Which rows.
        column: A number, a date or a time.
        max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
        cells: Into how many cells its bounds are cut at most.
    """

    what = "ranges"

    def __init__(
        self,
        database: Database,
        relation: Relation,
        column: str,
        max_rows_per_unit: int | None = None,
        cells: int = CELLS,
    ) -> None:
        self.database, self.relation = database, relation
        self.options = {"column": column, "max_rows_per_unit": max_rows_per_unit, "cells": cells}

    def explain(self, *, epsilon: float) -> RangeExplanation:
        """Return what a release would cost and how wrong it would be; reads no row and costs nothing.

        Args:
            epsilon: The pure ε of the release.
        """
        made = self._plan(self._target(epsilon))
        return RangeExplanation(made, self.forecast().remaining(made.event), self.database.hold_to_terms())

    def _plan(self, target: Target) -> RangePlan:
        assert target.epsilon is not None
        return range_plan(self.relation, self.database.declared, epsilon=target.epsilon, **self.options)

    def _answered_by(self, made: RangePlan, progress: Progress) -> RangeCounts:
        return made.run(self.database.source, progress)

    def _read_back(self, content: Any, entry: str, operation: str) -> RangeCounts:
        return RangeCounts.from_dict(content, entry, operation)
