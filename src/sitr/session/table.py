"""The fluent verbs: a private table, filtered, extended, joined and grouped, until something is asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, overload

from .. import _validate, markup
from ..errors import InvalidArgument, NotAllowed
from ..habits import AVERAGED, COUNTED, GROUPED, GROUPS, TABLE, told_instead
from ..query.aggregates import Aggregate
from ..query.query import Grouping, Query
from ..synthesis.random_dp import RandomRelease
from ..tables.codes import CELLS
from ..tables.declaration import Table
from ..tables.domains import Domain
from ..tables.expressions import Column, Expression
from ..tables.limits import NUMBERS, check_numbers
from ..tables.moments import dated
from ..tables.relations import (
    Derive,
    Filter,
    Join,
    PerUnit,
    Relation,
    Scan,
    Select,
    UnitAggregate,
    has_unit,
    require_column,
    table_of,
)
from .cells import AllRanges, Cells
from .description import about, columns_html, columns_text
from .outside import random_dp_counts
from .profile import Profile
from .question import Question
from .synthesis import LinkedSynthesis, Synthesis

if TYPE_CHECKING:
    from .database import Database

SHOWN = 12  # columns in a line
OVER_UNIT = {"count": "count", "sum": "sum", "min": "min", "max": "max", "mean": "mean"}
UNKNOWN = "which groups there are, and what is in them, is released with noise, and charged."
UNSEEN = "rows are not shown; what is asked about them is released with noise, and charged."


@told_instead(TABLE, "a private table", UNSEEN)
class PrivateTable:
    """Rows that can be asked about, and not be seen; made by `Database.table`.

    `table["age"]` is a column, `table[["age", "region"]]` selects columns, `table[table["age"] >= 18]` filters rows.
    """

    def __init__(self, database: Database, relation: Relation) -> None:
        self.database, self.relation = database, relation
        self._schema: dict[str, Domain] = {}  # for a traceback that shows a table which was refused
        self._schema = relation.schema(database.declared)

    def __repr__(self) -> str:
        more = len(self._schema) - SHOWN
        shown = [*islice(self._schema, SHOWN), *([f"… {more} more"] if more > 0 else [])]
        return f"PrivateTable({', '.join(shown)})"

    def __str__(self) -> str:
        columns, table = columns_text(self._schema), self._declared
        return columns if table is None else f"{table.name}: {about(table)}\n{columns}"

    def _repr_html_(self) -> str:
        table = self._declared
        above = "" if table is None else markup.title(table.name, about(table))
        return markup.page(above, columns_html(self._schema))

    @property
    def _declared(self) -> Table | None:
        """The declared table that this is; none where something was done to it."""
        relation = self.relation
        return table_of(self.database.declared, relation.table) if isinstance(relation, Scan) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._schema)

    @property
    def has_unit(self) -> bool:
        """Whether rows name their unit; else each row is one."""
        return has_unit(self.relation, self.database.declared)

    @overload
    def __getitem__(self, asked: str) -> Expression: ...

    @overload
    def __getitem__(self, asked: Expression | list[str]) -> PrivateTable: ...

    def __getitem__(self, asked: Any) -> Expression | PrivateTable:
        if isinstance(asked, Expression):
            return self.filter(asked)
        if isinstance(asked, list):
            return self.select(*asked)
        if isinstance(asked, str):
            return self._column(asked)
        raise InvalidArgument(
            f"{_validate.shown(asked)} is not the name of a column.",
            why=UNSEEN,
            do='table["age"] is a column, table[["age", "region"]] are two, and table[table["age"] >= 18] filters.',
        )

    def __setitem__(self, name: Any, value: Any) -> NoReturn:
        raise NotAllowed(
            "a private table is not changed.",
            why="a question asked of it before would come to mean something else.",
            do='table = table.derive(double=table["cost"] * 2).',
        )

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> NoReturn:
        raise NotAllowed(
            "a private table cannot be listed row by row.",
            why=UNSEEN,
            do=f"ask about its rows: table.{COUNTED}; table.columns has the names of its columns.",
        )

    def __len__(self) -> int:
        raise NotAllowed(
            "a private table does not say how many rows it has.",
            why="that number is about the people in it, so it is released with noise, and charged.",
            do=f"table.{COUNTED}.release(epsilon=0.1).",
        )

    def filter(self, condition: Expression) -> PrivateTable:
        """Return the rows for which a condition is true."""
        return PrivateTable(self.database, Filter(self.relation, self._read(condition)))

    def derive(self, **columns: Expression) -> PrivateTable:
        """Return the rows with more columns."""
        made = tuple((name, self._read(value)) for name, value in columns.items())
        return PrivateTable(self.database, Derive(self.relation, made))

    def select(self, *names: str, **renamed: str) -> PrivateTable:
        """Return the rows with some of their columns: `select("cost", home="region")` calls the region home."""
        made = (*((name, name) for name in names), *renamed.items())
        _check_names([old for _, old in made], 'select("cost", home="region")')
        return PrivateTable(self.database, Select(self.relation, made))

    def join(
        self, other: PrivateTable | str, on: str | Sequence[str] | Mapping[str, str] = (), *, keep: bool = False
    ) -> PrivateTable:
        """Return each row with the matching rows of a public table, or of another private table for the same unit.

        Args:
            other: The other table, or its name.
            on: The columns that have to be equal: a name, names, or names here to names there. Two private tables are
                joined on the unit in any case.
            keep: Whether rows that match nothing stay, with missing values; for public tables.
        """
        if isinstance(other, PrivateTable) and other.database is not self.database:
            raise NotAllowed("the two tables are of different databases.", do="join tables of one declaration.")
        right = Scan(other) if isinstance(other, str) else other.relation
        if isinstance(on, Mapping):
            pairs = tuple(on.items())
        else:
            pairs = tuple((name, name) for name in ([on] if isinstance(on, str) else on))
        return PrivateTable(self.database, Join(self.relation, right, pairs, keep))

    def per_unit(self, *keys: str, **values: Aggregate) -> PrivateTable:
        """Return one row for each unit, or for each unit and group, with numbers over its rows.

        Args:
            keys: Columns by which the rows of a unit are grouped.
            values: `count()`, `sum("cost", bounds=...)`, `min`, `max` or `mean` of the unit's rows, by name.
        """
        made = tuple((name, _over_unit(name, self._asked(_aggregate(name, one)))) for name, one in values.items())
        return PrivateTable(self.database, PerUnit(self.relation, keys, made))

    def group_by(self, *names: str, values: Mapping[str, Sequence[Any]] | None = None, **keys: Expression) -> Groups:
        """Return groups of rows.

        Args:
            names: Columns.
            values: The public values of a column, where the declaration lists none; None among them is "missing".
                Values that are listed nowhere are found privately, which needs a δ.
            keys: Expressions, by name: `month=visits["date"].truncate("month")`.
        """
        _check_names(names, 'group_by("region", month=table["day"].truncate("month"))')
        listed = dict(values or {})
        made = [(name, self._column(name)) for name in names] + [(name, self._read(one)) for name, one in keys.items()]
        unknown = listed.keys() - {name for name, _ in made}
        if unknown:
            raise InvalidArgument(f"values for {min(unknown)!r}, which is not grouped by.")
        values_of = {name: tuple(islice(one, NUMBERS + 1)) for name, one in listed.items()}
        for one in values_of.values():
            check_numbers(len(one), 1, 1)
        return Groups(self, tuple(Grouping(name, one, values_of.get(name)) for name, one in made))

    def profile(self, *columns: str) -> Profile:
        """Return a question about how many rows units have, and between which bounds columns lie.

        Its release costs something, and what it finds is used from then on: bounds on rows are chosen by it, and
        `explain` says what they drop.
        """
        return Profile(self, columns)

    def histogram(self, *columns: str, max_rows_per_unit: int | None = None, cells: int = CELLS) -> Cells:
        """Return the histogram of seed 001 to be made: how many rows are in each cell of some columns, by a pure ε.

        Args:
            columns: Which. With several, there is a cell for each choice of a value, or part of the bounds, of each.
            max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
            cells: Into how many cells the bounds of a number, a date or a time are cut at most.
        """
        return Cells(self.database, self.relation, columns, max_rows_per_unit, cells)

    def ranges(self, column: str, *, max_rows_per_unit: int | None = None, cells: int = CELLS) -> AllRanges:
        """Return ranges to be measured: rows between any two values of a column, and its quantiles, by a pure ε.

        Args:
            column: A number, a date or a time.
            max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
            cells: Into how many cells its bounds are cut at most.
        """
        return AllRanges(self.database, self.relation, column, max_rows_per_unit, cells)

    def random_dp_histogram(
        self,
        *columns: str,
        rows: int,
        alpha: float,
        reason: str,
        unsafe_random_dp: bool = False,
        cells: int = CELLS,
    ) -> RandomRelease:
        """Return the sparse histogram of seed 001 under random DP: NOT PRIVATE, and noted in the book as outside.

        Nothing is charged, as no budget could pay for it. Every statement of the dataset shows it from then on.

        Args:
            columns: Which; their declared values and bounds make the cells.
            rows: How many rows there are, which has to be public and right.
            alpha: See `sitr.synthesis.random_dp_histogram`.
            reason: Why it is made; it stays in the book.
            unsafe_random_dp: True: you know that whoever is the only one in a cell is shown to be there.
            cells: Into how many cells the bounds of a number, a date or a time are cut at most.

        Raises:
            InvalidArgument: Without `unsafe_random_dp=True`; or units have several rows.
            NotPermitted: Only an owner of the book notes what is outside its promises.

        Privacy: none for given data (THEORY 6.4).
        """
        return random_dp_counts(
            self.database,
            self.relation,
            columns,
            rows=rows,
            alpha=alpha,
            reason=reason,
            unsafe_random_dp=unsafe_random_dp,
            cells=cells,
        )

    def synthesize(
        self,
        columns: Sequence[str] | None = None,
        *,
        max_rows_per_unit: int | None = None,
        cells: int = CELLS,
        impossible: Sequence[Mapping[str, Any] | str] = (),
        determines: Mapping[str, str] | None = None,
        check: float = 0.0,
    ) -> Synthesis:
        """Return a synthetic table to be made: `explain` says what it costs and shows, `release` makes it.

        Args:
            columns: Which columns; all of them unless told, but for those that name a unit or a row. Of texts whose
                values are not declared, those that enough units have are found with a part of the price; all others
                are as if they were missing.
            max_rows_per_unit: How many rows of a unit are kept at most. More of them take more noise; unless told, the
                number is chosen by the declared sizes.
            cells: Into how many cells the bounds of a number, a date or a time are cut at most.
            impossible: Combinations that no row has, such as {"sex": "m", "pregnant": True}, or as SQL has it: "sex =
                'm' AND pregnant". They are public, and kept exactly; what was only seen in the rows is not public.
            determines: Columns that others determine, such as {"country": "town"}: which goes with which is found from
                what was measured, and kept in every row.
            check: The part of the price, up to a half, that goes into measuring how far the result is from the rows;
                `quality` tells it. Nothing unless told; 0.05 is enough to know the mean of all pairs well.
        """
        return Synthesis(self.database, self.relation, columns, max_rows_per_unit, cells, impossible, determines, check)

    def synthesize_with(
        self,
        children: PrivateTable | str,
        *,
        max_children: int,
        columns: Sequence[str] | None = None,
        child_columns: Sequence[str] | None = None,
        cells: int = CELLS,
    ) -> LinkedSynthesis:
        """Return two linked synthetic tables to be made: these rows, one of each unit, and those of another table.

        Args:
            children: Any number of rows of each unit, or the name of a table; those who have none are left out.
            max_children: How many of them are kept at most.
            columns: Which columns of the parents; all but those that name a unit or a row, unless told.
            child_columns: Which of the children.
            cells: Into how many cells the bounds of a number, a date or a time are cut at most.
        """
        relation = Scan(children) if isinstance(children, str) else children.relation
        return LinkedSynthesis(self.database, self.relation, relation, columns, child_columns, max_children, cells)

    def aggregate(self, *unnamed: Any, **aggregates: Aggregate) -> Question:
        """Return a question about all rows: `aggregate(n=sitr.count())`."""
        return Groups(self, ()).aggregate(*unnamed, **aggregates)

    def _column(self, name: str) -> Expression:
        require_column(name, self._schema)
        return Column(name)

    def _read(self, value: Any) -> Expression:
        """An expression of columns, in which texts beside dates are dates."""
        return dated(_expression(value), self._schema)

    def _asked(self, one: Aggregate) -> Aggregate:
        """An aggregate, with its expressions read."""
        value, other = (None if part is None else self._read(part) for part in (one.value, one.other))
        return one if value is one.value and other is one.other else replace(one, value=value, other=other)


@told_instead(GROUPS, "a grouped table", "all that is asked of its groups is one release.")
class Groups:
    """Rows in groups; made by `PrivateTable.group_by`."""

    def __init__(self, table: PrivateTable, groupings: tuple[Grouping, ...]) -> None:
        self.table, self.groupings = table, groupings

    def __repr__(self) -> str:
        return f"Groups({', '.join(one.name for one in self.groupings)})"

    def __getitem__(self, name: Any) -> NoReturn:
        raise NotAllowed(
            f"a grouped table has no [{_validate.shown(name)}].",
            why=UNKNOWN,
            do=f'name the column in what is asked: table.group_by("region").{AVERAGED}.',
        )

    def __iter__(self) -> NoReturn:
        raise NotAllowed(
            "groups cannot be listed one by one.",
            why=UNKNOWN,
            do=f"ask about all of them at once: table.{GROUPED}.",
        )

    def aggregate(self, *unnamed: Any, **aggregates: Aggregate) -> Question:
        """Return a question about each group: `aggregate(n=sitr.count(), cost=sitr.mean("cost"))`."""
        if unnamed:
            raise InvalidArgument(
                f"an aggregate has no name: {unnamed[0] if isinstance(unnamed[0], Aggregate) else '?'}.",
                why="it is a column of the answer.",
                do="aggregate(n=sitr.count()).",
            )
        asked = {name: self.table._asked(_aggregate(name, one)) for name, one in aggregates.items()}
        return Question(self.table.database, Query(self.table.relation, self.groupings, asked))


def _check_names(names: Sequence[Any], instead: str) -> None:
    for name in names:
        if not isinstance(name, str):
            what = name if isinstance(name, Expression) else _validate.shown(name)
            raise InvalidArgument(f"{what} is not the name of a column.", do=f"{instead}.")


def _expression(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    raise InvalidArgument(
        f"{_validate.shown(value)} is no expression of columns.",
        why="code of your own could do anything to a row, and no proof would cover it.",
        do='visits["age"] >= 18.',
    )


def _aggregate(name: str, value: Any) -> Aggregate:
    if isinstance(value, Aggregate):
        return value
    raise InvalidArgument(f"{name}={_validate.shown(value)} is no aggregate.", do=f"{name}=sitr.count().")


def _over_unit(name: str, one: Aggregate) -> UnitAggregate:
    if one.kind not in OVER_UNIT:
        raise NotAllowed(f"{name}: over the rows of one unit there are {', '.join(OVER_UNIT)}.")
    if one.kind == "count" and one.value is not None:
        raise NotAllowed(f"{name}: over the rows of one unit count() counts rows.")
    return UnitAggregate(one.kind, one.value, one.bounds)
