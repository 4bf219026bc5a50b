"""Files that sources name: which kinds there are, and whether a name still leads to the file that was opened."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


class Held:
    """Text files that stay open, so that their numbers on the disk are given to no other file.

    A text file may be written on, and even written anew, and stay itself; one that is put in its place is another, even
    if the disk would give it the number of the one that was removed.
    """

    def __init__(self) -> None:
        self._handles: dict[str, int] = {}
        weakref.finalize(self, _closed, self._handles)

    def check(self, path: Path) -> None:
        """Hold a file from the first time on, and say whether its name still leads to it.

        Raises:
            FileNotFoundError: It leads to another file, or to none.
        """
        if str(path) not in self._handles:
            self._handles[str(path)] = os.open(path, os.O_RDONLY)
        if not os.path.samestat(os.fstat(self._handles[str(path)]), path.stat()):
            raise FileNotFoundError(path)

    def close(self) -> None:
        """Let them go."""
        _closed(self._handles)


def _closed(handles: dict[str, int]) -> None:
    while handles:
        os.close(handles.popitem()[1])
