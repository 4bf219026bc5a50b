"""Files that are taken for a book, and are none: what they are, and what to name instead."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from ..errors import LedgerDamaged

HEAD = 4096  # bytes that are looked at
DUMPED = b"PostgreSQL database dump"
# By what a file begins with, or has at a place: what it is, and what to do about it.
DATABASE = "name the file of the book; that of the data belongs under [connection], in the declaration."
SIGNS = (
    (8, b"DUCK", "a DuckDB database", DATABASE),
    (0, b"PAR1", "a Parquet file", DATABASE),
    (0, b"PK\x03\x04", "a packed file", "unpack it, and name the book that is in it."),
    (0, b"\x1f\x8b", "a packed file", "unpack it, and name the book that is in it."),
)


def check_is_no_other(path: Path) -> None:
    """Refuse a file that is plainly something else; a book that was damaged is not called by another name.

    Raises:
        LedgerDamaged: It is something else.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:  # it is not there, or cannot be read: others say so
        return
    for place, sign, what, do in SIGNS:
        if head[place:].startswith(sign):
            raise _is(path, what, do)
    if b"\x00" in head or not head.strip():
        return
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not where it was cut
            return
        text = head[: error.start].decode()
    raise _is(path, *_kind_of_text(path, text))


def _kind_of_text(path: Path, text: str) -> tuple[str, str]:
    if path.suffix.lower() == ".toml":
        return "a declaration", f"sitr.open({path.name!r}) finds its book, and so do commands: --ledger {path.name}."
    if DUMPED.decode() in text:
        return "a dump of PostgreSQL", "sitr ledger restore puts it back into a database."
    if _is_anchor(text):
        return "an anchor", "name the book; an anchor is named by anchor=, or --anchor."
    return "a text file", DATABASE


def _is_anchor(text: str) -> bool:
    line = next((line for line in text.splitlines() if line.strip()), "")
    try:
        mark = json.loads(line)
    except ValueError:
        return False
    return isinstance(mark, dict) and {"ledger", "seq", "hash"} <= mark.keys()


def _is(path: Path, what: str, do: str) -> LedgerDamaged:
    return LedgerDamaged(f"there is no ledger at {path}: that is {what}, not a book.", do=do)


def close_to(path: Path) -> Path | None:
    """Return the file beside one that is not there whose name is closest to it; None where none is close.

    Example:
        >>> close_to(Path("/no such folder/book.db")) is None
        True
    """
    try:
        beside = [one.name for one in path.parent.iterdir() if one.is_file() and not one.name.startswith(".")]
    except OSError:
        return None
    close = difflib.get_close_matches(path.name, beside, 1)
    return path.with_name(close[0]) if close else None
