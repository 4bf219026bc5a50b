"""What a declared table is read from, as the engine's catalogue and the file system know it.

One table may have many names: `visits` and `public.visits`, a link, a view, a parent of its partitions. Budgets and
units are compared by what is read, and never by how it is called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import InvalidDeclaration
from .declaration import Declaration, Table, check_alike
from .files import is_file

Origin = tuple[Hashable, ...]  # equal where the rows are the same


@dataclass(frozen=True)
class Seen:
    """What a declared table is read from, as it was looked up at one moment.

    Attributes:
        itself: Says that it is the table that was opened, and how it is read: it must not change while a database is
            open.
        origins: All that is read with it; it may grow.
    """

    itself: Any
    origins: frozenset[Origin]


def check_origins(tables: Mapping[str, Table], seen: Mapping[str, Seen]) -> None:
    """Refuse tables that read the same rows and are paid from different budgets, or protect different units.

    Args:
        tables: The declared ones.
        seen: What those of them that were opened are read from, by name.

    Raises:
        InvalidDeclaration: Two of them do.
    """
    first: dict[Origin, Table] = {}
    for name, one in seen.items():
        for origin in one.origins:
            check_alike(tables[name], first.setdefault(origin, tables[name]))


def origins_of_files(files: Iterable[str | Path]) -> frozenset[Origin]:
    """Return which files these are: a link, hard or symbolic, is the file that it leads to."""
    found = [Path(file).stat() for file in files]
    return frozenset(("file", one.st_dev, one.st_ino) for one in found)


def another_source(table: Table) -> InvalidDeclaration:
    """The refusal of a table whose name leads elsewhere than when it was opened."""
    if is_file(table.source):
        what = f"{Path(table.source).name} is another file than it was."
    else:
        what = f"the source of {table.name} is no longer what was opened, or cannot be looked up."
    return InvalidDeclaration(
        what,
        why="its rows would be read, and paid for, by what was known of the old one.",
        do="open the database again.",
    )


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


def named_source(declared: Declaration, table: Table) -> str:
    """Return what a declaration says that a table is read from, in one form for all ways to write it down.

    A path is told from the folder of the declaration, so that both may move together; no user and no password is told.

    Example:
        >>> from sitr.tables import Declaration
        >>> codes = {"public": True, "source": "./a/../codes.csv", "columns": {"code": {"type": "string"}}}
        >>> declared = Declaration.of({"sitr": 1, "name": "clinic", "tables": {"codes": codes}})
        >>> named_source(declared, declared.tables["codes"])
        'codes.csv'
    """
    source = table.source
    if is_file(source):
        return source if "://" in source else path_within(declared.folder, os.path.abspath, source)
    if declared.engine == "postgresql":
        return f"{_in_schema(source, 'public')} of {_server(declared.address)}"
    if declared.engine == "spark":
        cluster = cluster_of(declared.address)
        return f"{_in_schema(source, 'default').lower()}{f' of {cluster}' if cluster else ''}"
    held = f" of {path_within(declared.folder, os.path.abspath, declared.address)}" if declared.address else ""
    return f"{_in_schema(source, 'main').lower()}{held}"


def path_within(folder: Path, whole: Callable[[str | Path], str], source: str) -> str:
    """Return the path of a file from a folder, or the whole path of one that is not in it.

    Args:
        folder: Where the declaration is.
        whole: `os.path.realpath`, which follows links, or `os.path.abspath`.
        source: The path, from the folder.

    Example:
        >>> path_within(Path("/data"), os.path.abspath, "visits/../a.csv")
        'a.csv'
    """
    path, root = Path(whole(folder / source)), Path(whole(folder))
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def cluster_of(master: str) -> str:
    """Return which cluster a master of Spark is of; all that run on this machine alone are none.

    Example:
        >>> cluster_of("spark://Data.example:7077"), cluster_of("local[4]"), cluster_of("")
        ('spark://data.example:7077', '', '')
    """
    return "" if master.startswith("local") else master.lower()


def _in_schema(source: str, schema: str) -> str:
    return source if "." in source else f"{schema}.{source}"


def _server(address: str) -> str:
    """Which database of which server an address names, as libpq reads it: what follows the "?" wins.

    Example:
        >>> _server("postgresql://amina:secret@Data.example/clinic?port=5433")
        'postgresql://data.example:5433/clinic'
        >>> _server("postgresql://data.example/clinic?dbname=archive&hostaddr=10.0.0.7")
        'postgresql://data.example:5432/archive at 10.0.0.7'
    """
    parts = urlsplit(address, allow_fragments=False)
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    login, _, place = parts.netloc.rpartition("@")
    found = [re.fullmatch(r"(.*?)(?::(\d*))?", one, re.DOTALL) for one in place.split(",")]
    hosts, ports = (",".join(match[part] or "" for match in found if match) for part in (1, 2))
    host, port = asked.get("host", unquote(hosts)), asked.get("port", ports)
    host, port = host if "/" in host else host.lower(), port if port.strip(",") else "5432"  # a folder of sockets
    user = asked.get("user", unquote(login.partition(":")[0]))
    database = asked.get("dbname", unquote(parts.path.removeprefix("/"))) or user  # a database of one's own name
    more = [f" {word} {asked[name]}" for name, word in (("hostaddr", "at"), ("service", "by")) if name in asked]
    return f"postgresql://{host}:{port}/{database}{''.join(more)}"
