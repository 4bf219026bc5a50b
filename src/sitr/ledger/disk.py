"""Files that only their owner may read, and names that last."""

from __future__ import annotations

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
