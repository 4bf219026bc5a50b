"""What of a database does not fit its declaration: counted for its owner, noted before a row is read, and stamped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .. import markup
from ..display import counted
from ..ledger import Ledger
from ..tables.declaration import Declaration, KeyPath
from ..tables.misfits import LostKey, Misfits, misfits
from ..tables.source import Source

STAMP = "NOT PRIVATE: exact counts without noise, for the owner's eyes alone."
PUBLISHED = "What you copy from here into the declaration becomes public."
PROFILE = """\
For bounds and row limits, take a profile: db.table("visits").profile("cost").
It finds them privately, and its cost is charged to the budget."""
NOT_KEPT = "The ledger is in memory: its note of this check is lost with the process."
NOTION = "exact counts, which protect nobody"
REASON = "to see what the declaration leaves out"
COLUMNS = ("missing", "do not parse", "outside bounds", "outside categories")
NOT_COUNTED = "lines that are left out, and cells that do not parse: not counted on this engine"


@dataclass(frozen=True)
class Check:
    """What was counted; `print` shows it.

    Attributes:
        unit: Whom the tables are about, in a word.
        tables: What does not fit, table by table.
        noted: The datasets as whose owner this was noted in the book; none before it is begun.
        private: Never.
        lasting: Whether the book outlives the process; one in memory does not, nor does what it has noted.
    """

    unit: str
    tables: tuple[Misfits, ...]
    noted: tuple[str, ...]
    private = False
    lasting: bool = True

    def __str__(self) -> str:
        lines = self._above()
        for found in self.tables:
            lines += ["", *remarks(found, self.unit)]
            lines += [f"  {name}: {', '.join(_said(cells))}" for name, *cells in column_rows(found)]
        return "\n".join([*lines, "", PROFILE])

    def __repr__(self) -> str:
        return f"{STAMP} Check({counted(len(self.tables), 'table')})"

    def _repr_html_(self) -> str:
        pieces = []
        for found in self.tables:
            head, *under = remarks(found, self.unit)
            pieces += [markup.title(head), markup.lines(*under)]
            pieces.append(markup.table(("column", *COLUMNS), column_rows(found), numbers=len(COLUMNS)))
        return markup.page(markup.lines(*self._above()), *pieces, markup.lines(*PROFILE.splitlines()))

    def _above(self) -> list[str]:
        """What stands above the counts."""
        return [STAMP, PUBLISHED] if self.lasting else [STAMP, PUBLISHED, NOT_KEPT]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        tables = {found.table.name: _record(found) for found in self.tables}
        said = {"private": False, "stamp": STAMP, "warning": PUBLISHED}
        return {**said, "noted": list(self.noted), "lasting": self.lasting, "unit": self.unit, "tables": tables}


def check(
    source: Source,
    ledger: Ledger | None,
    *,
    analyst: str | None,
    reason: str,
    progress: Callable[[str], None] = lambda stage: None,
) -> Check:
    """Count what of each declared table does not fit, once the book has noted that it is counted.

    Args:
        source: The tables, which were held against their declaration.
        ledger: The book; None before it is begun.
        analyst: Who counts.
        reason: Why.
        progress: Is told what is counted now.

    Raises:
        UnknownName: A dataset has no budget in the book, and so no promise that this could be outside of.
        EngineFailed: The engine did not answer.

    Privacy: none. The book says so, and so does every statement from then on.
    """
    noted = () if ledger is None else _noted(source.declared, ledger, reason, analyst)
    found = []
    for table in source.declared.tables.values():
        progress(f"counting {table.name}")
        found.append(misfits(source, table))
    return Check(source.declared.unit, tuple(found), noted, lasting=ledger is None or not ledger.in_memory)


def _noted(declared: Declaration, ledger: Ledger, reason: str, analyst: str | None) -> tuple[str, ...]:
    """Write down for each dataset that it is counted, and return which they are."""
    datasets = sorted({table.dataset for table in declared.tables.values() if not table.public})
    what = f"counts of what does not fit the declaration {declared.name}"
    for dataset in datasets:
        ledger.note_outside(dataset, what, notion=NOTION, reason=reason, analyst=analyst)
    return tuple(datasets)


def remarks(found: Misfits, unit: str) -> list[str]:
    """Say what was counted of a table beside its columns, a line for each count."""
    return [_head(found, unit), *(f"  {line}" for line in _lines(found, unit))]


def column_rows(found: Misfits) -> list[tuple[str, ...]]:
    """Return the counts of each column behind its name, in the order of `COLUMNS`; empty is what is not counted."""
    return [
        (name, *("" if count is None else f"{count:,}" for count in asdict(column).values()))
        for name, column in found.columns.items()
    ]


def _head(found: Misfits, unit: str) -> str:
    rows = f"{found.table.name}: {counted(found.rows, 'row')}"
    if found.table.public:
        return f"{rows}, public"
    if found.units is None:
        return f"{rows}, each of them a unit of its own"
    return f"{rows} of {counted(found.units.units, unit)}"


def _lines(found: Misfits, unit: str) -> Iterator[str]:
    if found.units is not None:
        limit, over = counted(found.table.max_rows_per_unit, "row"), found.units.over
        yield (
            f"{counted(over, unit)} {'has' if over == 1 else 'have'} more than {limit}: "
            f"{counted(found.units.rows_over, 'row')} beyond that"
        )
        lacks = f"no key to a {unit}" if isinstance(found.table.unit, KeyPath) else f"no {unit}"
        yield f"{counted(found.units.nameless, 'row')} with {lacks}"
    for lost in found.lost_keys:
        yield _lost(lost)
    if found.repeated is not None:
        yield f"{counted(found.repeated, 'row')} with a key that another row has"
    if found.left_out is not None:
        reasons = found.left_out
        yield (
            f"{counted(sum(reasons), 'line')} left out: {reasons.quotes:,} with an open quote, "
            f"{reasons.too_long:,} too long, {reasons.heads:,} like the first line"
        )
    if found.uncounted:
        yield NOT_COUNTED


def _lost(lost: LostKey) -> str:
    key = ", ".join(name for name, _ in lost.columns)
    return f"{counted(lost.rows, 'row')} whose key ({key}) is in no row of {lost.table}"


def _said(cells: list[str]) -> list[str]:
    return [f"{count} {what}" for count, what in zip(cells, COLUMNS, strict=True) if count]


def _record(found: Misfits) -> dict[str, Any]:
    units = None if found.units is None else asdict(found.units) | {"limit": found.table.max_rows_per_unit}
    return {
        "rows": found.rows,
        "units": units,
        "lost_keys": [{"table": lost.table, "on": dict(lost.columns), "rows": lost.rows} for lost in found.lost_keys],
        "repeated_keys": found.repeated,
        "lines_left_out": None if found.left_out is None else found.left_out._asdict(),
        "columns": {name: asdict(column) for name, column in found.columns.items()},
    }
