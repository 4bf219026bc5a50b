"""Files that sources name: which kinds there are, and whether one is still what it was when it was opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import InvalidDeclaration
from .arrow import parquet_of
from .lines import Lines

PARQUET = ".parquet"
FILES = (PARQUET, ".csv", ".csv.gz", ".tsv")


def is_file(source: str) -> bool:
    """Whether a source is a file, by its name.

    Example:
        >>> is_file("data/visits.CSV"), is_file("visits"), is_file("visits.json")
        (True, False, False)
    """
    return source.lower().endswith(FILES)


def is_parquet(source: str) -> bool:
    """Whether a source is a Parquet file, or a folder or a pattern of them, by its name."""
    return source.lower().endswith(PARQUET)


def written(files: Iterable[str | Path]) -> list[tuple[int, int, int]]:
    """Return what changes whenever files are written anew."""
    return [(one.st_size, one.st_mtime_ns, one.st_ino) for one in (Path(file).stat() for file in files)]


def head_of(path: Path) -> Any:
    """Return what says how a file is read: a first line; of Parquet the schema and the files, which Arrow remembers."""
    if not is_parquet(path.name):
        return Lines(path).head
    found = parquet_of(path)
    return found.files, found.schema, written(found.files)


class Opened:
    """Files that were opened, each with what says how it is read."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[Callable[[], Any], Any]] = {}

    def keep(self, path: str, head: Callable[[], Any]) -> None:
        """Remember what a file says of itself now; `head` reads it again later."""
        self._heads[path] = head, head()

    def check(self) -> None:
        """Hold each file against what it was.

        Raises:
            InvalidDeclaration: One of them is another file now, or gone.
        """
        for path, (head, before) in self._heads.items():
            if _now(head) != before:
                raise InvalidDeclaration(
                    f"{Path(path).name} is another file than it was.",
                    why="its rows would be read by what was known of the old one.",
                    do="open the database again.",
                )


def _now(head: Callable[[], Any]) -> Any:
    try:
        return head()
    except Exception:  # gone, or no longer what it was: what is said of it may quote it
        return None
