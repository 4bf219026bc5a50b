"""What was answered, kept so that whoever asks again gets the same bytes: to repeat an answer costs nothing."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import _validate
from ..accounting import Event
from ..errors import InvalidArgument, LedgerDamaged, LedgerUnavailable, NotPermitted, UnknownName
from ..release import Release
from .disk import owner_only, sync_folder
from .entry import canonical, sha256
from .store import Kept, Store

LARGE = 2**20  # bytes; a larger answer is kept in a file of its own
LARGEST = 2**30  # bytes of such a file, which is read whole

RESTORE = "restore it from a backup, beside the book or where it was; to ask anew costs anew."
STILL = "The operation stays charged, and this grant can still commit."
SIMPLE = {str, int, float, bool, type(None)}  # types that JSON has, and that hold nothing else
MEDIA = BYTES, TEXT, JSON = "application/octet-stream", "text/plain", "application/json"


@dataclass(frozen=True)
class Answer:
    """A stored answer.

    Attributes:
        content: The bytes that left the first time.
        media: What they are, as a media type.
        time: When they were kept.
        entry: The entry that charged for them.

    Example:
        >>> Answer(b'{"value":3}', "application/json", datetime(2026, 1, 1), "b7c1/41").value
        {'value': 3}
    """

    content: bytes
    media: str
    time: datetime
    entry: str

    @property
    def value(self) -> Any:
        """What was committed: bytes, text, or what JSON makes of it.

        Raises:
            LedgerDamaged: The bytes are not what the media type says; who commits by hand can say anything.
        """
        try:
            if self.media == JSON:
                return json.loads(self.content)
            return self.content.decode() if self.media == TEXT else self.content
        except (ValueError, RecursionError):
            raise LedgerDamaged(f"a stored answer is not {self.media}.", do="read its bytes: `content`.") from None


def encoded(answer: Any, entry: str) -> tuple[str, bytes]:
    """Return an answer as it is kept: its media type and its bytes; a release names the entry that paid for it.

    Raises:
        InvalidArgument: It is none of bytes, text, releases, or what JSON can hold; or a release is not private.

    Example:
        >>> encoded({"visits": np.int64(3)}, "b7c1/41")
        ('application/json', b'{"visits":3}')
    """
    if isinstance(answer, bytes):
        return BYTES, answer
    try:
        if isinstance(answer, str):
            return TEXT, answer.encode()
        return JSON, canonical(_plain(answer, entry)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            f"a {type(answer).__name__} of this kind cannot be kept as an answer.",
            why="what is kept has to read back the same: JSON has no NaN, no sets and no objects of your own.",
            do="commit bytes, text, releases, the Path of a file, or numbers and text in lists and dictionaries. "
            + STILL,
        ) from None


def events_of(answer: Any) -> list[Event]:
    """Return the events of the releases in an answer, at any depth of its lists and dictionaries.

    Example:
        >>> events_of({"n": 3})
        []
    """
    if isinstance(answer, Release):
        return [answer.event, *events_of(answer.value)]
    if isinstance(answer, np.ndarray) and answer.dtype == object:
        answer = answer.tolist()
    held = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, (list, tuple)) else ()
    parts = list(held)
    return [] if _are_simple(parts) else [event for part in parts for event in events_of(part)]


def _release(release: Release, entry: str) -> dict[str, Any]:
    if not release.private:
        raise InvalidArgument(
            "a release that is NOT PRIVATE cannot be committed.",
            why="its noise was seeded or left out, so the value protects nobody; a ledger keeps no exact value.",
            do="release again without any unsafe_ argument.",
        )
    return {
        "value": _plain(release.value, entry),
        "error95": _plain(release.error95, entry),
        "event": release.event.to_dict(),
        "entry": entry,
        "time": release.time.isoformat(),
        "version": release.version,
    }


def _plain(value: Any, entry: str) -> Any:
    """Releases, and numbers and arrays of NumPy, as JSON has them."""
    if isinstance(value, Release):
        return _release(value, entry)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), entry)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        if len({str(name) for name in value}) < len(value):
            raise TypeError("two keys are the same text")
        return {str(name): _plain(item, entry) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value) if _are_simple(value) else [_plain(item, entry) for item in value]
    return value


def _are_simple(values: Iterable[Any]) -> bool:
    """Whether nothing lies in any of them: columns have millions of cells, and to look into each takes seconds."""
    return {*map(type, values)} <= SIMPLE


def file_content(path: Path) -> bytes:
    """Return the bytes of a file that is to be kept, of which no more are read than may be.

    Raises:
        InvalidArgument: It cannot be read.
    """
    try:
        if not path.is_file():
            raise InvalidArgument(f"the answer at {path} is no file, or not there.", do=STILL)
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidArgument(f"the answer at {path} cannot be read: {error.strerror}.", do=STILL) from None


def written(folder: Path, content: bytes) -> str:
    """Write a large answer to a file of its own, which lasts when this returns, and return its name: its sha256.

    Raises:
        LedgerUnavailable: It cannot be written.
    """
    path = folder / sha256(content)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder.parent)
        with open(beside, "wb", opener=owner_only) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(folder)
    except OSError as error:
        raise LedgerUnavailable(
            f"the answer cannot be kept in {folder}: {error.strerror}.",
            why="it was charged for; the operation is started and has no answer yet.",
            do="make room, or make the folder writable, and commit the same answer again.",
        ) from None
    return path.name


class OutOfReach(LedgerDamaged):
    """The file of a large answer is not here: deleted, or on another machine."""


def stored_answer(store: Store, ledger: str, operation: str, analyst: str, folder: Path | None) -> Answer:
    """Return what was committed under an id, to the analyst who asked for it; see `Ledger.answer`."""
    entries = {entry.kind: entry for entry in store.operation(operation)}
    if "commit" not in entries:
        raise UnknownName(f"there is no answer of operation {operation!r}.")
    if "reserve" not in entries:
        raise LedgerDamaged(f"operation {operation!r} was answered and never charged.", do="sitr ledger verify.")
    committed = entries["commit"]
    kept = store.kept(operation, analyst) if committed.analyst == analyst else None
    if kept is None:
        raise NotPermitted(f"operation {operation!r} is another analyst's.", do="ask for it under your own id.")
    content = content_of(kept, folder, committed.record, anywhere=not store.separates)
    return Answer(content, committed.record["media"], committed.time, entries["reserve"].name_in(ledger))


def content_of(kept: Kept, folder: Path | None, record: dict[str, Any], *, anywhere: bool) -> bytes:
    """Return the bytes of a stored answer, if they still are what was committed.

    Args:
        kept: What the store has.
        folder: Where large answers are, each named by its sha256; with the book it may have been moved since.
        record: What the entry of the commit says.
        anywhere: Read a file outside of the folder, which older books name; not one that an analyst could have named.

    Raises:
        OutOfReach: Their file is not here.
        LedgerDamaged: They are others.
    """
    content = kept.content
    if kept.path is not None:
        elsewhere = anywhere and Path(kept.path).is_absolute()
        content = _read(Path(kept.path) if elsewhere else _place(folder, record), record["bytes"])
    if content is None or sha256(content) != record["sha256"] or kept.media != record["media"]:
        where = f"its file {_validate.shown(kept.path)}" if kept.path else "the ledger"
        raise LedgerDamaged(f"a stored answer is not what was committed: {where} was changed.", do=RESTORE)
    return bytes(content)


def _place(folder: Path | None, record: dict[str, Any]) -> Path:
    if folder is None:
        why = "the ledger was opened without the folder of large answers"
        raise OutOfReach(f"a stored answer is not here: {why}.", do="Ledger.open(..., answers=<the folder>).")
    return folder / str(record["sha256"])


def _read(path: Path, size: int) -> bytes | None:
    """The bytes of a file of the right size; nothing of a device, a pipe or something else that has no end."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size != size:
            return None
        return path.read_bytes()
    except OSError:
        gone = f"its file {_validate.shown(path.name)} was moved or lost"
        raise OutOfReach(f"a stored answer is not here: {gone}.", do=RESTORE) from None
