"""SQL on rows that were drawn: in a database of its own, in memory, from which nothing else can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ..display import counted
from ..errors import InvalidArgument
from .answers import NOT_MEASURED, Count

SHOWN = 20  # rows that are printed
ALONE: dict[str, Any] = {
    "enable_external_access": False,  # neither files nor addresses
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # a name is no variable of the process
}
ENDINGS = ("estimate", "low", "high")


@dataclass(frozen=True, eq=False)
class SampleAnswer:
    """What SQL says of rows that were drawn; `print` shows it.

    Attributes:
        rows: An Arrow table.
        drawn: How many rows it was asked of.
        counts: Where it counts rows of measured cells: what the measurements say of each row of it, in order.
        notes: Remarks.
    """

    rows: Any
    drawn: int
    counts: tuple[Count, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names; what the measurements say of counts comes last."""
        return tuple(self.to_arrow().column_names)

    def to_arrow(self) -> Any:
        """Return it as an Arrow table; columns that say what was measured are added where anything was."""
        table = self.rows
        if any(one.low is not None for one in self.counts):
            said = [(None if one.low is None else one.value, one.low, one.high) for one in self.counts]
            for ending, column in zip(ENDINGS, zip(*said, strict=True), strict=True):
                table = table.append_column(_free(f"count_{ending}", table.column_names), [list(column)])
        return table

    def to_pandas(self) -> Any:
        """Return it as a pandas frame."""
        return self.to_arrow().to_pandas()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __str__(self) -> str:
        head, lines = list(self.rows.column_names), self.rows.slice(0, SHOWN).to_pylist()
        cells = [[_cell(value) for value in line.values()] for line in lines]
        if self.counts:
            head.append("by what was measured")
            cells = [[*row, str(one).splitlines()[0]] for row, one in zip(cells, self.counts, strict=False)]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *cells)]
        more = [f"… {counted(len(self), 'row')} in all"] if len(self) > SHOWN else []
        asked = f"asked of {counted(self.drawn, 'row')} that were drawn from the model"
        return "\n".join([*table, *more, asked if self.counts else f"{asked}; {NOT_MEASURED}", *self.notes])


def answered(sql: str, name: str, rows: Any) -> Any:
    """Return what one SELECT says of rows, as an Arrow table.

    Args:
        sql: The SELECT, in the words of DuckDB.
        name: What it calls the rows.
        rows: An Arrow table.

    Raises:
        InvalidArgument: It is no SELECT, or DuckDB cannot run it: as it reaches for something else.
    """
    with duckdb.connect(":memory:", config=ALONE) as connection:
        connection.register("given", rows)
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM given")
        connection.unregister("given")
        connection.execute("SET lock_configuration = true")
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InvalidArgument("this is not one SELECT.", do=f"such as: SELECT COUNT(*) FROM {quoted(name)}")
            return connection.execute(statements[0]).to_arrow_table()
        except duckdb.Error as error:
            said = str(error).split("\n")[0]
        raise InvalidArgument(
            f"the rows that were drawn cannot be asked this: {said}",
            why="SQL runs on one table, in a database of its own that reaches no file and no other table.",
            do=f"ask for columns of {quoted(name)}.",
        )


def quoted(name: str) -> str:
    """Return a name as SQL writes it.

    Example:
        >>> quoted('the "old" ones')
        '"the ""old"" ones"'
    """
    return '"' + name.replace('"', '""') + '"'


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
