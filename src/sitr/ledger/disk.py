"""Files that only their owner may read, names that last, and what is open."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def owner_only(path: str, flags: int) -> int:
    """Open a file as `open(..., opener=owner_only)` does: one that is made is its owner's alone."""
    return os.open(path, flags, 0o600)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last: a file that is synced can still lose its name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_files() -> set[tuple[int, int]]:
    """Return the devices and inodes of all files that this process has open, whoever opened them."""
    found = set()
    for descriptor in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the one that read the list is closed by now
            about = os.fstat(int(descriptor))
            found.add((about.st_dev, about.st_ino))
    return found
