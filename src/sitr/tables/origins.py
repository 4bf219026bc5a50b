"""What a declared table is read from, as the engine's catalogue and the file system know it.

One table may have many names: `visits` and `public.visits`, a link, a view, a parent of its partitions. Budgets and
units are compared by what is read, and never by how it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path

from ..errors import InvalidDeclaration
from .declaration import Table, check_alike

Origin = tuple[Hashable, ...]  # equal where the rows are the same


def check_origins(tables: Mapping[str, Table], origins_of: Callable[[Table], Iterable[Origin]]) -> None:
    """Refuse tables that read the same rows and are paid from different budgets, or protect different units.

    Raises:
        InvalidDeclaration: Two of them do.
    """
    first: dict[Origin, Table] = {}
    for table in tables.values():
        for origin in origins_of(table):
            check_alike(table, first.setdefault(origin, table))


def origins_of_files(files: Iterable[str | Path]) -> frozenset[Origin]:
    """Return which files these are: a link, hard or symbolic, is the file that it leads to."""
    found = [Path(file).stat() for file in files]
    return frozenset(("file", one.st_dev, one.st_ino) for one in found)


def refused_view(name: str) -> InvalidDeclaration:
    """The refusal of a view that does more than to pick columns of one table."""
    return InvalidDeclaration(
        f"{name} is a view that computes something, or calls a column by another name.",
        why="it may fail on a row, and whose rows it shows is not seen from its name.",
        do="declare the table that it reads, pick columns under their own names, or keep its rows: CREATE TABLE ... AS "
        "SELECT ...",
    )


def computed_column(name: str) -> InvalidDeclaration:
    """The refusal of a table with a column that is computed when it is read."""
    return InvalidDeclaration(
        f"{name} has a column that is computed from others.",
        why="it may fail on a row, after the release was paid for.",
        do="keep what it computes: CREATE TABLE ... AS SELECT ...",
    )
