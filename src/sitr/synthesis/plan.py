"""How a table of a database is synthesized, and what that costs: nothing was read to make a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..accounting import Event, compose
from ..errors import InvalidArgument
from ..mechanisms import select_partitions
from ..mechanisms.partitions import MOST_GROUPS, PartitionSelection
from ..tables.codes import CELLS, Code, Coded
from ..tables.crosstab import Crosstab
from ..tables.declaration import Declaration
from ..tables.expressions import Column
from ..tables.relations import Relation, has_unit, private_tables, require_column, rows_per_unit, table_of
from ..tables.source import Source
from ..tables.tally import Bound, Key, Tally
from .choice import Columns, Pair
from .counting import read_combination
from .measuring import MOST_VALUES
from .rules import Determines, Rules
from .synthesizer import Synthesizer, synthesizer
from .table import SyntheticTable

Integers = NDArray[np.int64]
FINDING = 0.1  # the part of ε that finding the values of columns takes,
FINDING_DELTA = 0.5  # and that of δ


@dataclass(frozen=True)
class Found:
    """A column whose values are not declared, and are found privately.

    Attributes:
        tally: What the engine is asked for: how many units have each value.
        selection: Which of them are named.
    """

    tally: Tally
    selection: PartitionSelection

    def values(self, source: Source) -> tuple[Any, ...]:
        """Return the values that are named, in order."""
        table = source.run(self.tally)
        units = "units" if self.tally.bound is not None else "sum0"
        values, counts = (table.column(name).to_pylist() for name in ("key0", units))
        there = {value: int(count) for value, count in zip(values, counts, strict=True) if value is not None}
        return tuple(sorted(self.selection.release(there).value))


@dataclass(frozen=True)
class EngineRows:
    """Rows inside an engine, which counts them exactly: what it counts stays inside."""

    source: Source
    coded: Coded

    def singles(self) -> list[Integers]:
        """Return how many rows have each value of each column."""
        coders = tuple(code.coder() for code in self.coded.codes)
        return self.source.count(self.coded, Crosstab(coders, tuple((column,) for column in range(len(coders)))))

    def pairs(self, bins: Sequence[Integers]) -> Mapping[Pair, Integers]:
        """Return how many rows are in each two bins of each two columns."""
        pairs = tuple(combinations(range(len(bins)), 2))
        return dict(zip(pairs, self._counted(pairs, bins), strict=True))

    def tables(self, groups: Sequence[Columns], bins: Sequence[Integers]) -> Mapping[Columns, Integers]:
        """Return how many rows are in each bins of each group of columns."""
        return dict(zip(groups, self._counted(tuple(groups), bins), strict=True))

    def _counted(self, groups: tuple[Columns, ...], bins: Sequence[Integers]) -> list[Integers]:
        coders = tuple(code.coder(one) for code, one in zip(self.coded.codes, bins, strict=True))
        return self.source.count(self.coded, Crosstab(coders, groups)) if groups else []


@dataclass(frozen=True)
class SynthesisPlan:
    """How a table is synthesized.

    Attributes:
        coded: Which rows, and how their columns are numbered; of columns whose values are found, without any.
        found: Those columns.
        mechanism: What measures, and learns.
        event: What a release costs.
        impossible: Combinations that no row has: of some columns, what is wanted of each as for `sample(condition=)`;
            or the same as SQL has it.
        determines: Columns that others determine: of each, by which.
    """

    coded: Coded
    found: Mapping[str, Found]
    mechanism: Synthesizer
    event: Event
    impossible: Sequence[Mapping[str, Any] | str] = ()
    determines: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> tuple[Tally | Coded, ...]:
        """All that the engine is asked for."""
        return (*(one.tally for one in self.found.values()), self.coded)

    @property
    def rows_per_unit(self) -> int:
        """How many rows of a unit are kept at most."""
        return 1 if self.coded.bound is None else self.coded.bound.rows or 1

    @property
    def rules_in_words(self) -> tuple[str, ...]:
        """What every row keeps, for people."""
        never = (f"never {one if isinstance(one, str) else _in_words(one)}" for one in self.impossible)
        return (*never, *(f"{by} determines {one}" for one, by in self.determines.items()))

    def run(self, source: Source, progress: Callable[[str], None] = lambda stage: None) -> SyntheticTable:
        """Return the synthetic table; it is not charged here."""
        codes = []
        for code in self.coded.codes:
            if code.name in self.found:
                progress(f"finding the values of {code.name}")
                code = replace(code, values=self.found[code.name].values(source))
            codes.append(code)
        progress("measuring and learning")
        made, coded = self.mechanism, replace(self.coded, codes=tuple(codes))
        made = Synthesizer(tuple(code.size for code in codes), made.ordered, made.costs, made.adjacency)
        released = made.release(EngineRows(source, coded))
        tables = set(coded.relation.tables())
        return SyntheticTable(
            value=released.value,
            error95=None,
            event=self.event,
            private=released.private,
            codes=coded.codes,
            rules=self.rules(coded.codes),
            table=tables.pop() if len(tables) == 1 else "rows",
            rows_per_unit=None if coded.bound is None else self.rows_per_unit,
        )

    def rules(self, codes: tuple[Code, ...]) -> Rules | None:
        """Return what every row keeps, in the numbers of its columns.

        Raises:
            InvalidArgument: A rule names no column, or no value of a column whose values are declared.
        """
        if not self.impossible and not self.determines:
            return None
        places = {code.name: place for place, code in enumerate(codes)}
        impossible = [self._combination(rule, codes, places) for rule in self.impossible]
        for name in (*self.determines, *self.determines.values()):
            _require_place(name, places, "determines")
        told = [Determines(places[by], places[column]) for column, by in self.determines.items()]
        return Rules(tuple(max(code.size, 1) for code in codes), impossible, told)

    def _combination(
        self, rule: Mapping[str, Any] | str, codes: tuple[Code, ...], places: Mapping[str, int]
    ) -> dict[int, frozenset[int]]:
        """The numbers that no row has together, by column."""
        wanted, said = read_combination(rule, codes) if isinstance(rule, str) else rule, _validate.shown(rule)
        for name in wanted:
            _require_place(name, places, f"impossible={said}")
        try:
            return {places[name]: self._numbers(codes[places[name]], one) for name, one in wanted.items()}
        except InvalidArgument as error:
            raise InvalidArgument(f"impossible={said}: {error.what}", why=error.why, do=error.do) from None

    def _numbers(self, code: Code, wanted: Any) -> frozenset[int]:
        """The numbers of what is wanted; of a column whose values are found, what was not found has none."""
        if code.name in self.found and wanted is not None:
            several = wanted if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
            wanted = [one for one in several if one is None or one in code.values]
        return frozenset(np.flatnonzero(code.allowed(wanted)[0]).tolist())


def synthesis_plan(
    relation: Relation,
    declared: Declaration,
    *,
    epsilon: float,
    delta: float,
    columns: Sequence[str] | None = None,
    max_rows_per_unit: int | None = None,
    cells: int = CELLS,
    impossible: Sequence[Mapping[str, Any] | str] = (),
    determines: Mapping[str, str] | None = None,
    check: float = 0.0,
    beside: Event | None = None,
) -> SynthesisPlan:
    """Return how a relation is synthesized at a price.

    Args:
        relation: Which rows.
        declared: The declaration.
        epsilon: The ε of the release, together with
        delta: its δ.
        columns: Which columns; all of them unless told, but for those that name a unit or a row. The values of texts
            that are not declared are found privately, with a part of the price.
        max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.
        impossible: Combinations that no row has, such as {"sex": "m", "pregnant": True}, or "sex = 'm' AND pregnant":
            public, and kept exactly.
        determines: Columns that others determine, such as {"country": "town"}: which value goes with which is found
            from what was measured, and kept in every row.
        check: The part of the price that goes into measuring how far the result is from the rows.
        beside: What else is released with it, for the same price.

    Raises:
        InvalidArgument: A column has neither values nor bounds that are public; or a rule means none.

    Privacy: a unit is in at most `max_rows_per_unit` of the counted rows, since the engine bounds what is kept of it;
    values are found as groups are, and the rest is one Gaussian event (`synthesizer`). Both are composed (THEORY 4.5).
    """
    schema, bound = relation.schema(declared), kept_of_unit(relation, declared, max_rows_per_unit)
    names = chosen_columns(relation, declared, columns)
    unlisted = tuple(name for name in names if schema[name].kind == "string" and schema[name].categories is None)
    # What is not named is as if it were missing.
    codes = tuple(
        Code(name, schema[name], None, (), nulls=True) if name in unlisted else Code.of(name, schema[name], cells=cells)
        for name in names
    )
    sizes = [max(code.size, 1) for code in codes]
    found = _found(relation, declared, unlisted, bound, epsilon, delta)
    others = [one.selection.event for one in found.values()] + ([] if beside is None else [beside])
    mechanism = synthesizer(
        sizes,
        epsilon=epsilon,
        delta=delta,
        ordered=[code.ordered for code in codes],
        max_rows_per_unit=1 if bound is None else bound.rows or 1,
        adjacency=declared.adjacency,
        check=check,
        beside=compose(*others) if others else None,
    )
    most = [MOST_VALUES if code.name in found else size for code, size in zip(codes, sizes, strict=True)]
    mechanism.costs.require_drawn(sizes, most)  # of values that are found nobody knows yet how many there will be
    event = compose(*(one.selection.event for one in found.values()), mechanism.event)
    plan = SynthesisPlan(Coded(relation, codes, bound), found, mechanism, event, tuple(impossible), determines or {})
    plan.rules(codes)  # what means nothing is refused before anything is charged
    return plan


def _require_place(name: str, places: Mapping[str, int], said: str) -> None:
    if name not in places:
        raise InvalidArgument(
            f"{said} names {_validate.shown(name)}, which is not among the columns.",
            do=f"{_validate.meant(str(name), places)}Columns: {', '.join(places)}.",
        )


def _in_words(rule: Mapping[str, Any]) -> str:
    """A combination for people."""
    return " and ".join(f"{name} {'missing' if wanted is None else f'= {wanted}'}" for name, wanted in rule.items())


def chosen_columns(relation: Relation, declared: Declaration, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of a synthetic table: who a row is about is none, as there is nobody.

    Raises:
        InvalidArgument: There is no such column, or none is left.
    """
    schema = relation.schema(declared)
    if columns is not None:
        for name in columns:
            require_column(name, schema)
        if not columns or len(set(columns)) < len(columns):
            raise InvalidArgument("columns names none, or one of them twice.")
        return tuple(columns)
    tables = [table_of(declared, name) for name in relation.tables()]
    naming = {table.unit for table in tables} | {table.row_id for table in tables}
    found = tuple(name for name in schema if name not in naming)
    if not found:
        raise InvalidArgument("there is no column but what names a unit or a row.", do="declare others.")
    return found


def kept_of_unit(relation: Relation, declared: Declaration, most: int | None) -> Bound | None:
    """Return how many rows of a unit are kept: so many, or as many as are declared; None where each row is a unit.

    Raises:
        InvalidArgument: The rows are public, or it is more than the owner declared.
    """
    if not private_tables(relation, declared):
        raise InvalidArgument(
            "the table is public.", why="it is about nobody, and its rows may be copied.", do="copy it."
        )
    if not has_unit(relation, declared):
        if most not in (None, 1):
            raise InvalidArgument("each row is a unit of its own: max_rows_per_unit is 1.")
        return None
    declared_most = rows_per_unit(relation, declared)
    if most is None:
        return Bound(rows=declared_most)
    if not 1 <= most <= declared_most:
        raise InvalidArgument(
            f"max_rows_per_unit={most} is not in [1, {declared_most}].", do="the owner declares how many at most."
        )
    return Bound(rows=most)


def _found(
    relation: Relation, declared: Declaration, names: tuple[str, ...], bound: Bound | None, epsilon: float, delta: float
) -> dict[str, Found]:
    if not names:
        return {}
    most = 1 if bound is None else min(bound.rows or 1, MOST_GROUPS)
    selection = select_partitions(
        epsilon=FINDING * epsilon / len(names),
        delta=FINDING_DELTA * delta / len(names),
        max_groups_per_unit=most,
        adjacency=declared.adjacency,
    )
    kept = None if bound is None else Bound(groups=most, rows_per_group=1)
    return {
        name: Found(Tally(relation, (Key(name, Column(name), None),), kept, {}, units=kept is not None), selection)
        for name in names
    }
